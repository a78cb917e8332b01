"""`python -m score.factors`: factors that pairs in turns realised, and ranges from other families.

The realised factor of a pair is the realised saving over the saving that is simulated if all that
the rule claims goes. Ranges are computed from logarithms: the mean of the families' means, and a
spread that is shrunk to the pooled spread of all rules. The range for a family uses no pair of it.
"""

import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from score.ranges import Span
from score.tables import part, table
from score.turn_pairs import MS, TurnPair, stored_pairs
from stepscope.base.formatting import share

FLOOR = 0.02
"""Realised factors below it, such as those of fixes that save nothing, count as this."""
MOST_ERROR = 0.25
Z_90 = 1.645
"""Standard deviations to each side that contain 90 % of a normal distribution."""
PRIOR_FAMILIES = 3
"""Weight of the pooled spread, in families."""
DEFAULT_SPREAD = 0.5
"""Spread of logarithms without two families of any rule: a factor of 1.6."""


@dataclass(frozen=True, kw_only=True)
class Realised:
    """The realised factor of a pair with the fault of one rule."""

    rule: str
    family: str
    pair: str
    factor: float
    error: float
    """Half of the factor's 95 % interval, by turns."""
    shown: Span
    """The range that the advice shows, as fractions of the same saving."""

    @property
    def log(self) -> float:
        """Logarithm of the factor, at least of `FLOOR`."""
        return math.log(max(FLOOR, self.factor))


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The range for a family by the pairs of the other families."""

    rule: str
    family: str
    range: Span
    pairs: tuple[Realised, ...]
    """Pairs of the family, on which the range is judged."""

    @property
    def contained_count(self) -> int:
        """Number of pairs whose realised factor is in the range."""
        return sum(self.range.holds(pair.factor) for pair in self.pairs)


def realised_factors(pairs: Sequence[TurnPair]) -> tuple[Realised, ...]:
    """Return the realised factors of pairs whose faults concern one rule, which found them.

    Pairs in which the turns leave the factor open by more than `MOST_ERROR` are left out.
    """
    realised = []
    for pair in pairs:
        savings = [e for e in pair.stored.savings if e.rule in pair.result.rules and e.whole_ns]
        if (
            len(pair.result.rules) != 1
            or pair.stored.unnamed
            or not savings
            or not savings[0].replayed
        ):
            continue
        [saving] = savings
        whole_ns = (saving.whole_ns or 0) / pair.result.samples[0]
        error = pair.result.error_ms * MS / whole_ns
        if error > MOST_ERROR:
            continue
        realised.append(
            Realised(
                rule=saving.rule,
                family=pair.result.family,
                pair=pair.name,
                factor=pair.realised_ns / whole_ns,
                error=error,
                shown=pair.estimate().scaled(1 / whole_ns),
            )
        )
    return tuple(realised)


def by_rule(realised: Sequence[Realised]) -> dict[str, tuple[Realised, ...]]:
    """Return the realised factors of each rule, by name."""
    rules = sorted({pair.rule for pair in realised})
    return {rule: tuple(pair for pair in realised if pair.rule == rule) for rule in rules}


def family_means(realised: Sequence[Realised]) -> dict[str, float]:
    """Return the mean logarithm of each family."""
    families = sorted({pair.family for pair in realised})
    return {
        family: statistics.fmean(pair.log for pair in realised if pair.family == family)
        for family in families
    }


def pooled_spread(means: Mapping[str, Mapping[str, float]]) -> float:
    """Return the standard deviation of families around their rule's mean, over all rules."""
    of_several = [list(of_rule.values()) for of_rule in means.values() if len(of_rule) > 1]
    freedom = sum(len(logs) - 1 for logs in of_several)
    if not freedom:
        return DEFAULT_SPREAD
    squares = sum(statistics.variance(logs) * (len(logs) - 1) for logs in of_several)
    return math.sqrt(squares / freedom)


def range_of(logs: Sequence[float], pooled: float) -> Span:
    """Return the 90 % range of a further family's factor, at most 1; `logs` has one per family."""
    freedom = len(logs) - 1
    squares = statistics.variance(logs) * freedom if freedom else 0.0
    spread = math.sqrt((squares + PRIOR_FAMILIES * pooled**2) / (freedom + PRIOR_FAMILIES))
    distance = Z_90 * spread * math.sqrt(1 + 1 / len(logs))
    center = statistics.fmean(logs)
    low, high = math.exp(center - distance), math.exp(center + distance)
    return Span(low=min(1.0, low), high=min(1.0, high))


def fitted_range(rule: str, realised: Sequence[Realised]) -> Span:
    """Return the range by all families of a rule."""
    means = {name: family_means(of_rule) for name, of_rule in by_rule(realised).items()}
    return range_of(list(means[rule].values()), pooled_spread(means))


def held_out(realised: Sequence[Realised]) -> Iterator[HeldOut]:
    """Yield the range for each family of the rules with two families or more."""
    for rule, of_rule in by_rule(realised).items():
        families = family_means(of_rule)
        for family in families if len(families) > 1 else ():
            others = [pair for pair in realised if pair.family != family]
            yield HeldOut(
                rule=rule,
                family=family,
                range=fitted_range(rule, others),
                pairs=tuple(pair for pair in of_rule if pair.family == family),
            )


def summary(ranges: Sequence[HeldOut]) -> str:
    """Return coverage and median width of held-out ranges, and of those that the advice shows."""
    pairs = [pair for held in ranges for pair in held.pairs]
    if not pairs:
        return "No rule has pairs in two families yet."
    contained = sum(held.contained_count for held in ranges)
    width = statistics.median(held.range.width for held in ranges for _ in held.pairs)
    shown = sum(pair.shown.holds(pair.factor) for pair in pairs)
    shown_width = statistics.median(pair.shown.width for pair in pairs)
    return (
        f"Ranges from the other families contain the realised factor in "
        f"{part(contained, len(pairs))} pairs ({share(contained / len(pairs))}), with a median "
        f"width of {width:.1f}; the factors of the rules in {part(shown, len(pairs))}, with "
        f"{shown_width:.1f}."
    )


def rule_rows(realised: Sequence[Realised]) -> Iterator[tuple[str, ...]]:
    """Yield a row of the table for each rule."""
    ranges = list(held_out(realised))
    for rule, of_rule in by_rule(realised).items():
        factors = sorted(pair.factor for pair in of_rule)
        means = family_means(of_rule)
        judged = [held for held in ranges if held.rule == rule]
        yield (
            f"`{rule}`",
            ", ".join(means),
            ", ".join(f"{factor:.2f}" for factor in factors),
            f"{math.exp(statistics.fmean(means.values())):.2f}",
            as_text(fitted_range(rule, realised)),
            part(sum(held.contained_count for held in judged), sum(len(e.pairs) for e in judged)),
        )


def as_text(fractions: Span) -> str:
    """Return a range of fractions."""
    return f"{fractions.low:.2f} to {fractions.high:.2f}"


COLUMNS = ("rule", "families", "realised:", "center:", "range:", "held out, contained:")


def main() -> None:
    """Print the realised factors of each rule, and of each pair."""
    realised = realised_factors(stored_pairs())
    ranges = list(held_out(realised))
    lines = [*table(COLUMNS, rule_rows(realised))]
    for rule, of_rule in by_rule(realised).items():
        lines += (f"{rule}: pairs={tuple(pair.pair for pair in of_rule)!r}", "")
        by_others = {held.family: held.range for held in ranges if held.rule == rule}
        lines += table(
            ("pair", "realised:", "shown:", "by other families:"),
            (
                (
                    pair.pair,
                    f"{pair.factor:.3f} ± {pair.error:.3f}",
                    as_text(pair.shown),
                    as_text(by_others[pair.family]) if pair.family in by_others else "–",
                )
                for pair in of_rule
            ),
        )
    sys.stdout.write("\n".join((*lines, summary(ranges), "")))


if __name__ == "__main__":
    main()
