"""docs/accuracy.md: how often the advice is right, and what its savings were worth."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from score import pair_tables, peer_tables
from score.answers import report, serious
from score.judging import (
    RuleRecord,
    false_alarms,
    is_missed,
    records,
    right_first,
    rules_said,
)
from score.pairs import Result, result_of
from score.peers import Answers
from score.stories import Recording, Stories
from score.tables import names, part, table
from stepscope.base.formatting import count, share
from stepscope.render import rule_page
from stepscope.rules import all_rules

KINDS = {"recorded": False, "synthetic": True}
COUNTED = ("found", "missed", "also true", "false")
"""Of each rule, in runs."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The recordings of one kind: those that were recorded, or those written from schedules."""

    truths: tuple[Recording, ...]
    results: tuple[Result, ...]

    @property
    def faults(self) -> tuple[Recording, ...]:
        """Those with something to change."""
        return tuple(each for each in self.truths if not each.healthy)

    @property
    def healthy(self) -> tuple[Recording, ...]:
        """Those with nothing to change: fixes, and jobs that never had a fault."""
        return tuple(each for each in self.truths if each.healthy)

    @property
    def where(self) -> str:
        """What they were recorded on, in words."""
        on_gpu = sum(each.device == "cuda" for each in self.truths)
        if not on_gpu:
            return "on a CPU: no GPU was at hand"
        return f"{count(on_gpu, 'run')} of {len(self.truths)} on a GPU, the others on a CPU"

    @cached_property
    def rules(self) -> dict[str, RuleRecord]:
        """How each rule fared."""
        return {each.rule: each for each in records([r.id for r in all_rules()], self.truths)}


def parts(stories: Stories) -> dict[str, Part]:
    """Return the two kinds of recordings by name."""
    results = [result_of(pair) for pair in stories.pair]
    return {
        name: Part(
            truths=tuple(e for e in stories.recording if e.is_synthetic == is_synthetic),
            results=tuple(e for e in results if e.pair.is_synthetic == is_synthetic),
        )
        for name, is_synthetic in KINDS.items()
    }


def page(stories: Stories, answers: dict[str, Answers]) -> str:
    """Return the page in Markdown."""
    of = parts(stories)
    lines = [
        *_summary(of),
        *peer_tables.summary(stories, answers),
        *_how(),
        *pair_tables.pairs(of["recorded"].results, of["synthetic"].results),
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
        "stepscope is run over every recording in `sample_logs/` of which the truth is known, and "
        "its answers are held against it. `make score` makes this page; CI fails where it is not "
        "what the advisor says now.",
        "",
    )
    yield from (*(_in_a_line(*each) for each in of.items()), "")
    rows = [
        ("Faults whose true cause is named first", *map(_right, of.values())),
        ("Faults with a cause that is not named (missed)", *map(_missed, of.values())),
        ("False alarms on healthy and fixed recordings", *map(_alarms, of.values())),
        ("False alarms on the faults", *map(_alarms_on_faults, of.values())),
        ("Predicted savings that hold what the fix won", *map(_held, of.values())),
        ("Those that miss it by no more than the steps' jitter", *map(_nearly_held, of.values())),
        (
            "Predicted savings that hold it, of pairs on which no factor was measured",
            *map(_held_out, of.values()),
        ),
        ("Fixes of which nothing was predicted", *map(_unpredicted, of.values())),
        (
            "Healthy recordings of which something is said that counts as true",
            *map(_true_of_healthy, of.values()),
        ),
    ]
    yield from table(("", "recorded:", "synthetic:"), rows)
    yield from (
        f"*Recorded*: by torch's profiler, {of['recorded'].where}. *Synthetic*: written from a "
        "schedule that tells of a GPU; such a file shows that a rule sees what it is meant to see, "
        "and nothing about the world. The two are never added. *First* is before all other causes: "
        "a symptom, which names none, may stand before it. A *false alarm* is a finding at "
        "`warning` or above that is not true; what `stories.toml` calls *also true* is none.",
        "",
    )


def _in_a_line(kind: str, of: Part) -> str:
    predicted = pair_tables.predicted(of.results)
    exact, near = pair_tables.numbers_held(predicted)
    held = f" ({share(exact / len(predicted))})" if predicted else ""
    others = len(of.results) - len(predicted)
    unpredicted = f"; of {count(others, 'more fix', 'more fixes')} nothing was predicted"
    return (
        f"- **{kind.capitalize()}:** of {count(len(of.faults), 'fault')} the right cause comes "
        f"first in {sum(map(right_first, of.faults))}; on "
        f"{count(len(of.healthy), 'healthy run')} there are "
        f"{count(_number_false(of.healthy), 'false alarm')}; of "
        f"{count(len(predicted), 'predicted saving')} {exact} hold what the fix won{held}, {near} "
        f"miss it by no more than the steps' jitter, and {len(predicted) - exact - near} by more"
        f"{unpredicted if others else ''}."
    )


def _right(of: Part) -> str:
    return part(sum(map(right_first, of.faults)), len(of.faults))


def _missed(of: Part) -> str:
    return part(sum(map(is_missed, of.faults)), len(of.faults))


def _held_out(of: Part) -> str:
    return pair_tables.held([each for each in of.results if not each.is_own_source])


def _held(of: Part) -> str:
    return pair_tables.held(of.results)


def _nearly_held(of: Part) -> str:
    return pair_tables.nearly_held(of.results)


def _unpredicted(of: Part) -> str:
    return part(sum(e.holds == "nothing predicted" for e in of.results), len(of.results))


def _true_of_healthy(of: Part) -> str:
    return part(
        sum(bool(rules_said(each.run) & each.true_rules) for each in of.healthy), len(of.healthy)
    )


def _alarms(of: Part) -> str:
    return _count(of.healthy)


def _alarms_on_faults(of: Part) -> str:
    return _count(of.faults)


def _count(truths: Sequence[Recording]) -> str:
    return f"{_number_false(truths)} on {len(truths)} runs"


def _number_false(truths: Sequence[Recording]) -> int:
    return sum(len(false_alarms(each)) for each in truths)


def _how() -> Iterator[str]:
    yield from (
        "Each run is a folder: the same job with a fault, and without it. What is true of it "
        "stands in `sample_logs/stories.toml`, apart from the rules and from the cases in "
        "`tests/rules/` that they were written against: it is known from what the script does, "
        "and is [told below](#truth).",
        "",
    )


def _healthy(of: dict[str, Part]) -> Iterator[str]:
    yield from (
        "## Healthy recordings { #healthy }",
        "",
        "Fixes, and jobs that never had a fault. *Notes* are findings at `info`, between 1 % and "
        "5 % of the step: they are not judged here.",
        "",
    )
    for title, each in of.items():
        yield from (f"### {title.capitalize()}", "")
        yield from table(
            ("run", "said at warning or above", "of that true", "notes", "verdict"),
            map(_healthy_row, each.healthy),
        )


def _healthy_row(truth: Recording) -> tuple[str, ...]:
    told = report(truth.run)
    said = [outcome.rule for outcome in serious(told)]
    notes = [e.outcome.rule for e in told.merged if e.outcome.severity == "info"]
    true = [rule for rule in said if rule in truth.true_rules]
    return f"`{truth.run}`", names(said), names(true), names(notes), told.verdict


def _rules(of: dict[str, Part]) -> Iterator[str]:
    recorded, synthetic = of["recorded"].rules, of["synthetic"].rules
    scored = [r for r in recorded if recorded[r].has_something or synthetic[r].has_something]
    yield from (
        "## Rule by rule { #rules }",
        "",
        "*Found* of how many runs whose cause the rule names, and how many of them it *missed*. "
        "*Also true*: said of runs in which it is true beside the cause. Every rule was asked of "
        "every run, so that it had "
        f"{len(of['recorded'].truths)} recorded and {len(of['synthetic'].truths)} synthetic ones "
        "in which to be falsely alarmed.",
        "",
    )
    columns = [f"{kind}: {what}:" for kind in of for what in COUNTED]
    yield from table(
        ("rule", *columns),
        ((_link(rule), *_tally(recorded[rule]), *_tally(synthetic[rule])) for rule in scored),
    )
    without = [rule for rule in recorded if not recorded[rule].is_tested]
    only_synthetic = [rule for rule in without if synthetic[rule].is_tested]
    nowhere = [rule for rule in without if rule not in only_synthetic]
    yield from (
        "### Rules that no recording has put to the test",
        "",
        "Synthetic recordings only, of a state that the rule was written for: "
        f"{', '.join(map(_link, only_synthetic)) or '–'}.",
        "",
        f"None at all ({len(nowhere)} of {len(recorded)} rules), beside the cases that they were "
        f"written with: {', '.join(map(_link, nowhere)) or '–'}.",
        "",
    )


def _link(rule: str) -> str:
    known = {each.id: each for each in all_rules()}
    return f"[{rule}](rules/{rule_page.file_name(known[rule])})"


def _tally(record: RuleRecord) -> tuple[str, str, str, str]:
    total = len(record.found) + len(record.missed)
    return (
        part(len(record.found), total),
        str(len(record.missed) or "–"),
        str(len(record.also_true) or "–"),
        str(len(record.false) or "–"),
    )


def _truth(stories: Stories) -> Iterator[str]:
    yield from (
        "## What is true, and how that is known { #truth }",
        "",
        "Causes are written when a scenario is made, from what its script does, and not from what "
        "the rules say: of the faults, *cause* is what must come first. *Also true* may be said at "
        "`warning` beside it, or of a healthy run. Some of that was looked into only because a "
        "rule had said it, and stands here since it was found to be so; what is true beside the "
        "cause and no rule says may be missing.",
        "",
    )
    yield from table(
        ("run", "cause", "how it is known", "also true", "not said yet"),
        map(_true, stories.recording),
    )
    yield from ("Stories that users told in public, where a run tells one:", "")
    for number, told in stories.stories.items():
        runs = [each.run for each in stories.recording if each.story == int(number)]
        yield f"- {told}: {names(runs) if runs else 'not recorded'}"
    yield ""


def _true(truth: Recording) -> tuple[str, ...]:
    also = " ".join(f"`{rule}`: {why}" for rule, why in truth.also.items())
    cause = "healthy" if truth.healthy else names(truth.causes)
    return f"`{truth.run}`", cause, truth.why, also or "–", truth.known_miss or "–"


def _limits(of: dict[str, Part]) -> Iterator[str]:
    untested = sum(not each.is_tested for each in of["recorded"].rules.values())
    yield from (
        "## What these figures do not say { #limits }",
        "",
        "- **They are few.** "
        f"{len(of['recorded'].faults)} recorded faults tell a rate of a half from one of nine "
        "tenths, and not much more; most rules have one run, or none.",
        "- **The scenarios are ours.** Who makes up a fault knows what to look for. A job in the "
        "field has several faults at once, each smaller than these; the advice will be right less "
        "often there.",
        "- **Few machines.** The recordings were made on one virtual machine of each kind: "
        f"{of['recorded'].where}. "
        f"{untested} of {len(of['recorded'].rules)} rules have no recorded fault of theirs: most "
        "speak of devices.",
        "- **Small jobs.** Models and batches were chosen so that fault and fix stand apart and "
        "files stay small.",
        "- **Some recordings were chosen.** Most are the first that was made while the machine had "
        "little else to do; of a few several were made, and the steadiest was kept, or one without "
        "a late batch (`sample_logs/README.md` says of which). That is kind to the advice.",
        "- **A pair is one difference.** What was won is told for the change that the pair makes, "
        "on the day it was recorded; the range of what is likely knows the jitter of its steps, "
        "and not that of another start of the job, nor of another machine.",
        "- **Some ranges were drawn from these pairs.** Those are marked: of them the page tells "
        "that the factor fits what it was fitted to. The others are not wholly apart from the "
        "rules either: both were worked on at the same time, and which factor a rule claims by was "
        "chosen with such recordings at hand.",
        "",
    )
