"""The accuracy page's section on pairs that ran in turns."""

import statistics
from collections.abc import Iterable, Iterator, Sequence

from pairs.result import LARGEST_ERROR_SHARE, LARGEST_STEP_SHARE
from score.factors import COLUMNS, FLOOR, MOST_ERROR, held_out, realised_factors, rule_rows, summary
from score.pair_tables import ANSWERS
from score.ranges import NO_ESTIMATE, Span
from score.tables import names, part, table
from score.turn_pairs import Method, TurnPair
from stepscope.base.formatting import count, duration, share

METHODS: dict[str, Method] = {
    "replay": "replay",
    "replay, both steps": "steps",
    "sums of intervals": "intervals",
}
PICTURE = "images/pairs.svg"


def in_a_line(pairs: Sequence[TurnPair]) -> Iterator[str]:
    """Yield the summary of the section."""
    judged = estimable(pairs)
    if judged:
        answers = [pair.holds() for pair in judged]
        estimated = sum(answer not in NO_ESTIMATE for answer in answers)
        families = {pair.result.family for pair in judged}
        yield (
            f"- **In turns:** of {count(len(judged), 'saving')} in "
            f"{count(len(families), 'family', 'families')} of jobs, realised without the profiler, "
            f"{estimated} are estimated from a trace of the fault: {answers.count('yes')} of these "
            f"({share(answers.count('yes') / max(1, estimated))}) are in the estimated range, "
            f"{answers.count('within noise')} are outside by no more than the variation of turns; "
            f"median width of a range: {width(median_width(judged))} ([pairs](#turns))."
        )


def turns(pairs: Sequence[TurnPair]) -> Iterator[str]:
    """Yield the section; nothing without pairs."""
    if not pairs:
        return
    judged = estimable(pairs)
    yield from _method(pairs)
    yield from (f"![Estimated ranges and realised savings]({PICTURE})", "")
    yield from _scores(judged)
    yield from table(
        (
            "faults",
            "family",
            "rules",
            "before:",
            "estimated:",
            "realised:",
            "contained",
            "width:",
            "sum of intervals:",
            "own",
        ),
        map(_row, judged),
    )
    yield from _notes(pairs)
    yield from _factors(pairs)


def estimable(pairs: Iterable[TurnPair]) -> list[TurnPair]:
    """Return the pairs whose faults rules should name."""
    return [pair for pair in pairs if pair.result.rules and not pair.stored.unnamed]


def _method(pairs: Sequence[TurnPair]) -> Iterator[str]:
    cores = max(pair.result.core_count for pair in pairs)
    processors = sorted({pair.result.processor for pair in pairs})
    versions = sorted({pair.result.torch for pair in pairs})
    families = {pair.result.family for pair in pairs}
    yield from (
        "## Faults switched on and off { #turns }",
        "",
        f"{count(len(pairs), 'pair')} from {count(len(families), 'family', 'families')} of jobs "
        "(`sample_logs/record/pairs`), each the same job with faults and without them. Both run "
        "without a profiler in turns of at least 0.4 s and 8 steps, five turns each: only one runs "
        "at a time, the order of the two is reversed every other time, and the first steps of a "
        "turn are dropped. Then each is recorded once. *Before*: the mean step with the faults, "
        "without the profiler. *Realised*: what the fix saves of it, with the 95 % confidence "
        "interval by turns. *Estimated*: the potential saving that the advice on the trace of the "
        "fault shows for the faults' rules, in the step without the profiler where that is known. "
        "*Contained*: whether the estimate contains the realised saving; *within the jitter*: it "
        "does not, but it overlaps the confidence interval; *nothing to save*: there is no "
        "estimate, and the confidence interval contains 0; *ruled out*: the advice says that the "
        "fault costs nothing here, with the numbers. *Width*: upper over lower end. *Sum of "
        "intervals*: the estimate as factors times claimed times, without a simulation (of "
        "rules over all ranks: the same estimate). *Own*: a "
        "factor was fitted on a pair of the same family with one of these faults. Where a fault "
        "changes the number of samples in a step, times are per sample. A pair is repeated, twice "
        "at most, while half of its confidence interval exceeds "
        f"{100 * LARGEST_ERROR_SHARE:g} % of the saving and {100 * LARGEST_STEP_SHARE:g} % of the "
        f"step; the steadiest series counts. Run with torch {', '.join(versions)} on "
        f"{' and '.join(processors)}, {count(cores, 'core')}.",
        "",
    )


def _scores(pairs: Sequence[TurnPair]) -> Iterator[str]:
    yield from (
        "The *interval score* (Gneiting & Raftery 2007, alpha 0.1) is the width of the range plus "
        "20 times the distance of a saving outside of it, here as a fraction of the step: less is "
        "better. A missing estimate counts as 0 to 0. *Both steps*: from the least to the greatest "
        "saving as recorded and without the profiler; the advice states both where they differ.",
        "",
    )
    groups = {
        "all pairs": pairs,
        "one fault": [pair for pair in pairs if len(pair.result.faults) == 1],
        "several faults at once": [pair for pair in pairs if len(pair.result.faults) > 1],
        "families seen while rules were mended": [pair for pair in pairs if pair.is_seen],
        "other families": [pair for pair in pairs if not pair.is_seen],
    }
    yield from table(
        (
            "pairs",
            "estimated by",
            "contained:",
            "within the jitter:",
            "missed:",
            "nothing to save:",
            "no estimate:",
            "median width:",
            "mean interval score:",
        ),
        (
            score_row(title, name, group, method)
            for title, group in groups.items()
            if group
            for name, method in METHODS.items()
        ),
    )


def score_row(title: str, name: str, pairs: Sequence[TurnPair], method: Method) -> tuple[str, ...]:
    """Return the row of a group of pairs (at least one)."""
    answers = [pair.holds(method) for pair in pairs]
    missing, right = answers.count("nothing predicted"), answers.count("nothing to save")
    estimated = len(pairs) - missing - right
    percentage = f" ({share(answers.count('yes') / estimated)})" if estimated else ""
    return (
        f"{title} ({len(pairs)})",
        name,
        f"{part(answers.count('yes'), estimated)}{percentage}",
        str(answers.count("within noise")),
        str(answers.count("no")),
        str(right),
        str(missing),
        width(median_width(pairs, method)),
        f"{statistics.fmean(pair.score(method) for pair in pairs):.3f}",
    )


def median_width(pairs: Iterable[TurnPair], method: Method = "replay") -> float:
    """Return the median width of the estimates; infinite without any."""
    estimates = [pair.estimate(method) for pair in pairs]
    widths = [estimate.width for estimate in estimates if estimate.high]
    return statistics.median(widths) if widths else float("inf")


def width(ratio: float) -> str:
    """Return a width; a dash for a range that begins at 0."""
    return "–" if ratio == float("inf") else f"{ratio:.1f}"


def _row(pair: TurnPair) -> tuple[str, ...]:
    estimate, by_intervals = pair.estimate(), pair.estimate("intervals")
    by = " per sample" if pair.result.samples != (1, 1) else ""
    likely = f"{duration(pair.likely.low)} to {duration(pair.likely.high)}"
    disturbed = ", disturbed" if pair.result.is_disturbed else ""
    return (
        ", ".join(pair.result.faults),
        pair.result.family,
        names(pair.result.rules),
        f"{duration(pair.before_ns)}{by}",
        _range(estimate),
        f"{duration(pair.realised_ns)} ({likely}{disturbed})",
        "ruled out" if pair.is_ruled_out else ANSWERS[pair.holds()],
        width(estimate.width) if estimate.high else "–",
        _range(by_intervals),
        "own" if pair.is_own else "",
    )


def _range(span: Span) -> str:
    if not span.high:
        return "none"
    return f"{duration(span.low) if span.low else '0'} to {duration(span.high)}"


def _notes(pairs: Sequence[TurnPair]) -> Iterator[str]:
    alarms = [pair for pair in pairs if pair.stored.alarms]
    without = [pair for pair in pairs if pair.stored.unnamed]
    misnamed = [pair for pair in estimable(pairs) if not _is_first(pair)]
    by_all = [pair for pair in pairs if pair.estimate(has_all=True).holds(pair.realised_ns)]
    yield (
        f"One of the faults' rules is first in the report of "
        f"{part(len(estimable(pairs)) - len(misnamed), len(estimable(pairs)))} pairs. "
        f"The estimate of all findings together, including other causes, contains the realised "
        f"saving of {part(len(by_all), len(pairs))}. Fixes with a finding at warning or above: "
        f"{part(len(alarms), len(pairs))}."
    )
    yield ""
    for title, members in (
        ("Another finding is first", ((e, names([_first(e)])) for e in misnamed)),
        ("Findings on a fix", ((e, names(e.stored.alarms)) for e in alarms)),
        ("Faults that no rule names", ((e, ", ".join(e.stored.unnamed)) for e in without)),
    ):
        lines = [f"`{pair.name}` ({text})" for pair, text in members]
        if lines:
            yield from (f"{title}: {', '.join(lines)}.", "")


def _first(pair: TurnPair) -> str:
    return next((saving.rule for saving in pair.stored.savings if saving.position == 1), "none")


def _is_first(pair: TurnPair) -> bool:
    return _first(pair) in pair.result.rules


def _factors(pairs: Sequence[TurnPair]) -> Iterator[str]:
    realised = realised_factors(pairs)
    if not realised:
        return
    yield from (
        "### Realised factors { #factors }",
        "",
        "Of pairs with one rule: the realised saving over the saving that is simulated if all that "
        "the rule claims goes, in the step without the profiler; pairs whose turns leave it open "
        f"by more than ± {MOST_ERROR} are left out. *Center*: geometric mean over families. "
        "*Range*: in which 90 % of further families' factors are expected; the spread of "
        f"logarithms is shrunk to that of all rules, and factors below {FLOOR} count as {FLOOR}. "
        "*Held out*: pairs whose factor is in the range that the other families give "
        "(`python -m score.factors` lists them).",
        "",
    )
    yield from table(COLUMNS, rule_rows(realised))
    yield from (summary(list(held_out(realised))), "")
