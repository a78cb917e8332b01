"""docs/accuracy.md: accuracy of the advice, and estimated against measured savings."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from score import pair_tables, peer_tables, turn_tables, zoo_tables
from score.answers import report, serious
from score.judging import (
    RuleRecord,
    false_alarms,
    is_missed,
    records,
    reported_rules,
    right_first,
)
from score.peers import RunOutputs
from score.ranges import NO_ESTIMATE
from score.stories import Recording, Stories
from score.story_pairs import Result, result_of
from score.tables import names, part, table
from score.turn_pairs import stored_pairs
from score.zoo import stored_scripts
from stepscope.base.formatting import count, share
from stepscope.render import rule_page
from stepscope.rules import all_rules

KINDS = {"recorded": False, "synthetic": True}
COUNTED = ("found", "missed", "also true", "false")
"""Columns of each rule: numbers of runs."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The traces of one kind: recorded by a profiler, or generated from schedules."""

    truths: tuple[Recording, ...]
    results: tuple[Result, ...]

    @property
    def faults(self) -> tuple[Recording, ...]:
        """Runs with a fault."""
        return tuple(truth for truth in self.truths if not truth.healthy)

    @property
    def healthy(self) -> tuple[Recording, ...]:
        """Runs without a fault: fixes, and jobs that never had one."""
        return tuple(truth for truth in self.truths if truth.healthy)

    @property
    def where(self) -> str:
        """The devices that they were recorded on, as a phrase."""
        on_gpu = sum(truth.device == "cuda" for truth in self.truths)
        if not on_gpu:
            return "on a CPU, since no GPU was available"
        return f"{count(on_gpu, 'run')} of {len(self.truths)} on a GPU, the others on a CPU"

    @cached_property
    def rules(self) -> dict[str, RuleRecord]:
        """Record of each rule, by id."""
        rules = [rule.id for rule in all_rules()]
        return {record.rule: record for record in records(rules, self.truths)}


def parts(stories: Stories) -> dict[str, Part]:
    """Return the two kinds of traces by name."""
    results = [result_of(pair) for pair in stories.pair]
    return {
        name: Part(
            truths=tuple(e for e in stories.recording if e.is_synthetic == is_synthetic),
            results=tuple(e for e in results if e.pair.is_synthetic == is_synthetic),
        )
        for name, is_synthetic in KINDS.items()
    }


def page(stories: Stories, answers: dict[str, RunOutputs]) -> str:
    """Return the page in Markdown."""
    of = parts(stories)
    lines = [
        *_summary(of),
        *peer_tables.summary(stories, answers),
        *_how(),
        *pair_tables.pairs(of["recorded"].results, of["synthetic"].results),
        *turn_tables.turns(stored_pairs()),
        *zoo_tables.zoo(stored_scripts()),
        *_healthy(of),
        *_rules(of),
        *peer_tables.details(stories, answers),
        *pair_tables.calibrated((*of["recorded"].results, *of["synthetic"].results)),
        *_truth(stories),
        *_limits(of),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _summary(of: dict[str, Part]) -> Iterator[str]:
    yield from (
        "# How often is the advice right?",
        "",
        "`make score` runs stepscope on every trace in `sample_logs/` whose cause is known, "
        "compares its findings with that cause, and writes this page. CI fails if the page is out "
        "of date.",
        "",
    )
    yield from (*(_in_a_line(*part) for part in of.items()), *turn_tables.in_a_line(stored_pairs()))
    yield from zoo_tables.zoo_line(stored_scripts())
    yield ""
    rows = [
        ("Faults whose true cause is named first", *map(_right, of.values())),
        ("Faults whose cause is not named (missed)", *map(_missed, of.values())),
        ("False alarms on healthy and fixed runs", *map(_alarms, of.values())),
        ("False alarms on the faults", *map(_alarms_on_faults, of.values())),
        ("Estimated savings that contain the measured saving", *map(_contained, of.values())),
        (
            "Estimates that miss it by no more than the jitter of the steps",
            *map(_nearly_contained, of.values()),
        ),
        (
            "Estimates that contain it, for pairs that no factor was measured on",
            *map(_contained_out_of_sample, of.values()),
        ),
        ("Fixes without an estimate", *map(_unpredicted, of.values())),
        (
            "Healthy runs with a true finding at `warning` or above",
            *map(_true_of_healthy, of.values()),
        ),
    ]
    yield from table(("", "recorded:", "synthetic:"), rows)
    yield from (
        f"*Recorded*: by torch's profiler, {of['recorded'].where}. *Synthetic*: generated from a "
        "schedule that includes a GPU; such a trace shows that a rule detects its cause, and says "
        "nothing about real programs. The two kinds are counted separately. *First*: before all "
        "other causes; a symptom, which names no cause, may precede it. A *false alarm* is a "
        "finding at `warning` or above that is not true; findings that `stories.toml` lists as "
        "*also true* are true.",
        "",
    )


def _in_a_line(kind: str, of: Part) -> str:
    predicted = pair_tables.predicted(of.results)
    exact, near = pair_tables.contained_counts(predicted)
    percentage = f" ({share(exact / len(predicted))})" if predicted else ""
    others = len(of.results) - len(predicted)
    unpredicted = f"; {count(others, 'more fix has', 'more fixes have')} no estimate"
    return (
        f"- **{kind.capitalize()}:** the true cause is named first in "
        f"{sum(map(right_first, of.faults))} of {count(len(of.faults), 'fault')}; "
        f"{count(_number_false(of.healthy), 'false alarm')} on "
        f"{count(len(of.healthy), 'healthy run')}; of "
        f"{count(len(predicted), 'estimated saving')}, {exact}{percentage} contain the measured "
        f"saving, {count(near, 'misses', 'miss')} it by no more than the jitter of the steps, and "
        f"{count(len(predicted) - exact - near, 'misses', 'miss')} it by more"
        f"{unpredicted if others else ''}."
    )


def _right(of: Part) -> str:
    return part(sum(map(right_first, of.faults)), len(of.faults))


def _missed(of: Part) -> str:
    return part(sum(map(is_missed, of.faults)), len(of.faults))


def _contained_out_of_sample(of: Part) -> str:
    return pair_tables.contained(
        [result for result in of.results if not result.is_calibration_source]
    )


def _contained(of: Part) -> str:
    return pair_tables.contained(of.results)


def _nearly_contained(of: Part) -> str:
    return pair_tables.nearly_contained(of.results)


def _unpredicted(of: Part) -> str:
    return part(sum(e.holds in NO_ESTIMATE for e in of.results), len(of.results))


def _true_of_healthy(of: Part) -> str:
    return part(
        sum(bool(reported_rules(run.run) & run.true_rules) for run in of.healthy), len(of.healthy)
    )


def _alarms(of: Part) -> str:
    return _count(of.healthy)


def _alarms_on_faults(of: Part) -> str:
    return _count(of.faults)


def _count(truths: Sequence[Recording]) -> str:
    return f"{_number_false(truths)} on {len(truths)} runs"


def _number_false(truths: Sequence[Recording]) -> int:
    return sum(len(false_alarms(truth)) for truth in truths)


def _how() -> Iterator[str]:
    yield from (
        "Each run is a folder of traces of one job, with a fault or without. The true cause "
        "([listed below](#truth)) is in `sample_logs/stories.toml`: written from the script's "
        "code, separately from the rules and from their cases in `tests/rules/`.",
        "",
    )


def _healthy(of: dict[str, Part]) -> Iterator[str]:
    yield from (
        "## Healthy runs { #healthy }",
        "",
        "Fixes, and jobs that never had a fault. *Notes* are findings at `info`, between 1 % and "
        "5 % of the step; they do not count as alarms.",
        "",
    )
    for title, kind in of.items():
        yield from (f"### {title.capitalize()}", "")
        yield from table(
            ("run", "findings at warning or above", "true ones", "notes", "verdict"),
            map(_healthy_row, kind.healthy),
        )


def _healthy_row(truth: Recording) -> tuple[str, ...]:
    advice = report(truth.run)
    reported = [outcome.rule for outcome in serious(advice)]
    notes = [e.outcome.rule for e in advice.merged if e.outcome.severity == "info"]
    true = [rule for rule in reported if rule in truth.true_rules]
    return f"`{truth.run}`", names(reported), names(true), names(notes), advice.verdict


def _rules(of: dict[str, Part]) -> Iterator[str]:
    recorded, synthetic = of["recorded"].rules, of["synthetic"].rules
    scored = [r for r in recorded if recorded[r].has_something or synthetic[r].has_something]
    yield from (
        "## Rule by rule { #rules }",
        "",
        "*Found*: of the runs whose cause the rule names, those in which it reports it; *missed*: "
        "the others. *Also true*: reported, and true, in runs with another cause. Every rule is "
        f"applied to all {len(of['recorded'].truths)} recorded and "
        f"{len(of['synthetic'].truths)} synthetic runs, so each is a chance of a false alarm.",
        "",
    )
    columns = [f"{kind}: {count}:" for kind in of for count in COUNTED]
    yield from table(
        ("rule", *columns),
        ((_link(rule), *_tally(recorded[rule]), *_tally(synthetic[rule])) for rule in scored),
    )
    without = [rule for rule in recorded if not recorded[rule].is_tested]
    only_synthetic = [rule for rule in without if synthetic[rule].is_tested]
    nowhere = [rule for rule in without if rule not in only_synthetic]
    yield from (
        "### Rules that no recorded run tests",
        "",
        f"Tested by synthetic runs only: {', '.join(map(_link, only_synthetic)) or '–'}.",
        "",
        f"Tested by no run ({len(nowhere)} of {len(recorded)} rules), only by their cases in "
        f"`tests/rules/`: {', '.join(map(_link, nowhere)) or '–'}.",
        "",
    )


def _link(rule: str) -> str:
    rules = {rule.id: rule for rule in all_rules()}
    return f"[{rule}](rules/{rule_page.file_name(rules[rule])})"


def _tally(record: RuleRecord) -> tuple[str, str, str, str]:
    total = len(record.hits) + len(record.missed)
    return (
        part(len(record.hits), total),
        str(len(record.missed) or "–"),
        str(len(record.also_true) or "–"),
        str(len(record.false) or "–"),
    )


def _truth(stories: Stories) -> Iterator[str]:
    yield from (
        "## True causes, and how they are known { #truth }",
        "",
        "Causes are written down when a scenario is made, from the code of its script, not from "
        "the rules' findings. *Cause* must be named first; *also true* findings may be reported at "
        "`warning` as well, or of a healthy run. Some of the latter were checked only because a "
        "rule reported them; further true causes that no rule reports may be missing.",
        "",
    )
    yield from table(
        ("run", "cause", "how it is known", "also true", "not reported yet"),
        map(_true, stories.recording),
    )
    yield from ("Problems that users described in public, with the runs that reproduce them:", "")
    for number, story in stories.stories.items():
        runs = [truth.run for truth in stories.recording if truth.story == int(number)]
        yield f"- {story}: {names(runs) if runs else 'not recorded'}"
    yield ""


def _true(truth: Recording) -> tuple[str, ...]:
    also = " ".join(f"`{rule}`: {why}" for rule, why in truth.also.items())
    cause = "healthy" if truth.healthy else names(truth.causes)
    return f"`{truth.run}`", cause, truth.why, also or "–", truth.known_miss or "–"


def _limits(of: dict[str, Part]) -> Iterator[str]:
    untested = sum(not record.is_tested for record in of["recorded"].rules.values())
    yield from (
        "## Limits of these figures { #limits }",
        "",
        "- **Few faults.** "
        f"{len(of['recorded'].faults)} recorded faults distinguish a rate of 50 % from one of "
        "90 %, but little more; most rules have one run, or none.",
        "- **The scenarios are ours.** We knew each fault when we wrote the rules. A job in the "
        "field has several faults at once, each smaller than these; expect the advice to be right "
        "less often there.",
        "- **Few machines.** The traces were recorded on one virtual machine of each kind, "
        f"{of['recorded'].where}. "
        f"{untested} of {len(of['recorded'].rules)} rules have no recorded fault: most of these "
        "concern GPUs.",
        "- **Small jobs.** Models and batches were chosen so that fault and fix differ clearly and "
        "files stay small.",
        "- **Some traces were selected.** Most are the first recording made while the machine was "
        "mostly idle; for a few, several were made, and the steadiest was kept, or the one without "
        "a late batch (`sample_logs/README.md` lists them). That favors the advice.",
        "- **A pair is one measurement.** The measured saving is that of one change on one day; "
        "its interval contains the jitter of the steps, not the variation between starts of the "
        "job or between machines.",
        "- **Some factors were measured on these pairs.** Those pairs are marked: that their "
        "estimates hold only shows that the factor fits its own data. The other pairs are not "
        "fully independent either: rules and pairs were written at the same time.",
        "",
    )
