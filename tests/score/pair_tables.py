"""What was predicted and what was won, and the factors behind it, as tables."""

from collections.abc import Iterable, Iterator, Sequence

from score.pairs import Holds, Result, Span
from score.tables import names, part, table
from stepscope.base import calibration
from stepscope.base.formatting import count, duration, share

ANSWERS: dict[Holds, str] = {
    "yes": "yes",
    "within noise": "within the steps' jitter",
    "no": "**no**",
    "nothing predicted": "nothing predicted",
}


def predicted(results: Iterable[Result]) -> list[Result]:
    """Return the pairs of which something was predicted."""
    return [each for each in results if each.holds != "nothing predicted"]


def held(results: Iterable[Result]) -> str:
    """Return how many of the predictions of pairs hold what was won."""
    told = predicted(results)
    exact, _ = numbers_held(told)
    return f"{part(exact, len(told))} ({share(exact / len(told))})" if told else part(0, 0)


def nearly_held(results: Iterable[Result]) -> str:
    """Return how many more miss it by no more than the steps' jitter."""
    told = predicted(results)
    return part(numbers_held(told)[1], len(told))


def numbers_held(results: Iterable[Result]) -> tuple[int, int]:
    """Return how many ranges hold what was won, and how many more miss it by jitter alone."""
    answers = [each.holds for each in results]
    return answers.count("yes"), answers.count("within noise")


def pairs(recorded: Sequence[Result], synthetic: Sequence[Result]) -> Iterator[str]:
    """Yield the section on faults and their fixes."""
    yield from (
        "## Faults and their fixes { #pairs }",
        "",
        "*Predicted* is the saving that the causes which the fix removes were said to have, and in "
        "brackets that of all findings together. *Won* is the difference of the mean steps, and "
        "behind it the differences that the steps' own spread allows at 95 % (the permutation test "
        "of `stepscope compare`, turned round). Where the fix changes how many samples are in a "
        "step, both are told by the sample: the saving of a step by the samples in it. *Within the "
        "steps' jitter*: what was won is outside of the predicted range, but that range and the "
        "one in brackets overlap, as they do sooner the more the steps vary. *Own* marks a pair on "
        "which a factor was measured, be it one of its prediction or not: that its range holds "
        "says little.",
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
                "predicted:",
                "won:",
                "holds",
                "own",
            ),
            map(_pair_row, results),
        )
        yield from _notes(results)
        yield from _coverage(results)
        yield from table(
            ("fault", "what is different"),
            ((f"`{each.pair.fault}`", each.pair.why) for each in results),
        )


def _pair_row(result: Result) -> tuple[str, ...]:
    by = " a sample" if result.pair.unit == "sample" else ""
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
        "own" if result.is_own_source else "",
    )


def _span(span: Span) -> str:
    if not span.high and not span.low:
        return "nothing"
    low = duration(span.low) if span.low else "0"
    return f"{low} to {duration(span.high)}"


def _notes(results: Iterable[Result]) -> Iterator[str]:
    for each in results:
        if each.pair.outside:
            yield f"- `{each.pair.fault}`: {each.pair.outside}"
    yield ""


def _coverage(results: Sequence[Result]) -> Iterator[str]:
    """Yield how many ranges hold, how many of them could hardly fail, and which are not own."""
    told = predicted(results)
    wide = [each for each in told if not each.predicted.low]
    other = [each for each in told if not each.is_own_source]
    by_all = [each.holds_by_all for each in results if each.holds_by_all != "nothing predicted"]
    faults = len({each.pair.fault for each in told})
    if told:
        yield (
            f"Held: {held(told)}; of those that no factor was measured on: {held(other)}; of all "
            "pairs, those of which nothing was predicted included: "
            f"{part(numbers_held(told)[0], len(results))}. Missed, but within the steps' jitter: "
            f"{nearly_held(told)}. Ranges that begin at nothing, and could hardly fail: "
            f"{len(wide)}. The ranges are of {count(faults, 'fault')}: one with two fixes counts "
            "twice. Held by the range of all findings together, also where they name another "
            f"cause: {part(by_all.count('yes'), len(by_all))}."
        )
        yield ""


def calibrated(results: Sequence[Result]) -> Iterator[str]:
    """Yield the section on factors: what was won of the claimed time, and what was changed."""
    yield from (
        "## What is won of the claimed time { #calibration }",
        "",
        "A rule claims times; a [factor](rules.md#factors) says what share of them a fix wins, at "
        "least and at most. *At most* is the most that the cause could save alone; *shown* what "
        "the advice says of it, and *won* what the fix did; above 100 % it also did what nobody "
        "claimed. A factor is drawn with room to both sides of what its source names.",
        "",
    )
    yield from table(
        ("rule", "fault", "at most:", "shown:", "won:", "kind"),
        (row for each in results for row in _won_rows(each)),
    )
    changed = [
        (name, factor)
        for name, factor in vars(calibration).items()
        if isinstance(factor, calibration.Factor) and factor.previous is not None
    ]
    yield from (f"{count(len(changed), 'factor')} changed by what pairs showed:", "")
    yield from table(
        ("factor", "was:", "is:", "source"),
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
