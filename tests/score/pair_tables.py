"""Tables of estimated and measured savings, and of the factors behind the estimates."""

from collections.abc import Iterable, Iterator, Sequence

from score.ranges import NO_ESTIMATE, Holds, Span
from score.story_pairs import Result
from score.tables import names, part, table
from stepscope.base import calibration
from stepscope.base.formatting import count, duration, share

ANSWERS: dict[Holds, str] = {
    "yes": "yes",
    "within noise": "within the jitter",
    "no": "**no**",
    "nothing predicted": "no estimate",
    "nothing to save": "nothing to save",
}


def predicted(results: Iterable[Result]) -> list[Result]:
    """Return the pairs with an estimate."""
    return [result for result in results if result.holds not in NO_ESTIMATE]


def contained(results: Iterable[Result]) -> str:
    """Return the number of estimates that contain the measured saving."""
    estimated = predicted(results)
    exact, _ = contained_counts(estimated)
    if not estimated:
        return part(0, 0)
    return f"{part(exact, len(estimated))} ({share(exact / len(estimated))})"


def nearly_contained(results: Iterable[Result]) -> str:
    """Return the number of estimates that miss it by no more than the jitter of the steps."""
    estimated = predicted(results)
    return part(contained_counts(estimated)[1], len(estimated))


def contained_counts(results: Iterable[Result]) -> tuple[int, int]:
    """Return the numbers of estimates that contain the measured saving, or miss it by jitter."""
    answers = [result.holds for result in results]
    return answers.count("yes"), answers.count("within noise")


def pairs(recorded: Sequence[Result], synthetic: Sequence[Result]) -> Iterator[str]:
    """Yield the section on faults and their fixes."""
    yield from (
        "## Faults and their fixes { #pairs }",
        "",
        "*Estimated*: the potential saving of the causes that the fix removes; in parentheses, "
        "that of all findings. *Measured*: the difference of the mean steps, with its 95 % "
        "confidence interval (the permutation test of `stepscope compare`, inverted). Where the "
        "fix changes the number of samples in a step, both are per sample. *Contained*: whether "
        "the estimate contains the measured saving; *within the jitter*: it does not, but it "
        "overlaps the confidence interval. *Own* marks pairs on which a factor of an estimate was "
        "measured: their estimates are no independent test.",
        "",
    )
    for title, results in (("Recorded", recorded), ("Synthetic", synthetic)):
        yield from (f"### {title} pairs", "")
        yield from table(
            (
                "fault",
                "fix",
                "first cause",
                "steps:",
                "before:",
                "estimated:",
                "measured:",
                "contained",
                "own",
            ),
            map(_pair_row, results),
        )
        yield from _notes(results)
        yield from _coverage(results)
        yield from table(
            ("fault", "difference"),
            ((f"`{result.pair.fault}`", result.pair.why) for result in results),
        )


def _pair_row(result: Result) -> tuple[str, ...]:
    by = " per sample" if result.pair.unit == "sample" else ""
    everything = _span(result.predicted_by_all)
    predicted = _span(result.predicted)
    both = predicted if predicted == everything else f"{predicted} ({everything})"
    return (
        f"`{result.pair.fault}`",
        f"`{result.pair.fix}`",
        names([result.first_rule]) if result.is_first_serious else "–",
        f"{result.step_counts[0]} and {result.step_counts[1]}",
        f"{duration(result.before_ns)}{by}",
        both,
        f"{duration(result.won_ns)} ({_span(result.likely)})",
        ANSWERS[result.holds],
        "own" if result.is_calibration_source else "",
    )


def _span(span: Span) -> str:
    if not span.high and not span.low:
        return "none"
    low = duration(span.low) if span.low else "0"
    return f"{low} to {duration(span.high)}"


def _notes(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        if result.pair.outside:
            yield f"- `{result.pair.fault}`: {result.pair.outside}"
    yield ""


def _coverage(results: Sequence[Result]) -> Iterator[str]:
    """Yield the numbers of estimates that hold, of wide ones, and of those on pairs not own."""
    estimated = predicted(results)
    wide = [result for result in estimated if not result.predicted.low]
    other = [result for result in estimated if not result.is_calibration_source]
    by_all = [e.holds_by_all for e in results if e.holds_by_all not in NO_ESTIMATE]
    faults = len({result.pair.fault for result in estimated})
    if estimated:
        yield (
            f"Contained: {contained(estimated)}; of pairs that no factor was measured on: "
            f"{contained(other)}; of all pairs, including those without an estimate: "
            f"{part(contained_counts(estimated)[0], len(results))}. Missed, but within the jitter: "
            f"{nearly_contained(estimated)}. Estimates that begin at 0, and could hardly fail: "
            f"{len(wide)}. The estimates are of {count(faults, 'fault')}: a fault with two fixes "
            "counts twice. Contained in the estimate of all findings together, including other "
            f"causes: {part(by_all.count('yes'), len(by_all))}."
        )
        yield ""


def calibrated(results: Sequence[Result]) -> Iterator[str]:
    """Yield the section on factors: measured savings as parts of the claimed time."""
    yield from (
        "## Measured savings as parts of the claimed time { #calibration }",
        "",
        "A rule claims times; a [factor](rules.md#factors) is the minimum and maximum part of "
        "them that a fix saves. *Claimed*: the most that the cause could save alone; *estimated*: "
        "the range that the advice shows; *measured*: the part that the fix saved, which exceeds "
        "100 % where it also saved time that no rule claims. Factors leave a margin on both sides "
        "of the values in their sources.",
        "",
    )
    yield from table(
        ("rule", "fault", "claimed:", "estimated:", "measured:", "kind"),
        (row for result in results for row in _won_rows(result)),
    )
    changed = [
        (name, factor)
        for name, factor in vars(calibration).items()
        if isinstance(factor, calibration.Factor) and factor.previous is not None
    ]
    yield from (f"{count(len(changed), 'factor')} changed after measurements on pairs:", "")
    yield from table(
        ("factor", "before:", "now:", "source"),
        (
            (
                f"`{name}`",
                _shares(*factor.previous),
                _shares(factor.low, factor.high),
                factor.source,
            )
            for name, factor in changed
            if factor.previous is not None
        ),
    )


def _won_rows(result: Result) -> Iterator[tuple[str, ...]]:
    if result.claimed_ns and result.predicted.high:
        yield (
            names(result.healed),
            f"`{result.pair.fault}`",
            duration(result.claimed_ns),
            _shares(
                result.predicted.low / result.claimed_ns, result.predicted.high / result.claimed_ns
            ),
            share(result.won_ns / result.claimed_ns),
            "synthetic" if result.pair.is_synthetic else "recorded",
        )


def _shares(low: float, high: float) -> str:
    return f"{low * 100:.0f} to {high * 100:.0f} %"
