"""Pairs in turns: realised savings, scores of ranges, and factors from other families."""

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SAMPLE_LOGS, fresh_trace_at, trace_at
from pairs.family import Family, Pair, find_pairs, load_family
from pairs.job import Fault
from pairs.result import FILE_NAME, PairResult, half_interval
from pairs.side import Turn
from pairs.turns import TURN_COUNT, alternate, measure, record_pair
from score import picture, turn_pairs, turn_tables
from score.factors import (
    DEFAULT_SPREAD,
    FLOOR,
    Z_90,
    HeldOut,
    Realised,
    fitted_range,
    held_out,
    pooled_spread,
    range_of,
    realised_factors,
)
from score.interval_method import interval_savings, rules_of, whole_savings
from score.pairs import bounds_of, of_worst_trace
from score.ranges import Span, interval_score
from score.turn_pairs import RuleSaving, StoredPair, TurnPair, encode, stored_pairs
from stepscope.advice.trace_rules import rule_outcomes
from stepscope.base import calibration
from stepscope.base.calibration import Factor

MS = 1_000_000


def pair_result(
    fault_ms: Sequence[float] = (10, 10, 10),
    fix_ms: Sequence[float] = (6, 6, 6),
    samples: tuple[int, int] = (1, 1),
    rules: tuple[str, ...] = ("item-sync",),
) -> PairResult:
    return PairResult(
        family="vision",
        faults=("read_each",),
        behind=(),
        kinds=rules,
        rules=rules,
        samples=samples,
        fault_ms=tuple(fault_ms),
        fix_ms=tuple(fix_ms),
        turn_step_counts=(8, 8),
        attempt_count=1,
        torch="2.13.0",
        processor="a processor",
        core_count=2,
        ranks=1,
        threads=1,
    )


def turn_pair(*savings: RuleSaving, result: PairResult | None = None) -> TurnPair:
    return TurnPair(stored=StoredPair(result=result or pair_result(), savings=savings))


def saving(low_ms: float, high_ms: float, rule: str = "item-sync") -> RuleSaving:
    return RuleSaving(rule=rule, unrecorded=(round(low_ms * MS), round(high_ms * MS)))


# Turns


def test_the_realised_saving_is_the_mean_over_turns_with_students_interval() -> None:
    result = pair_result((10, 11, 12), (6, 6, 6))
    assert result.saving_ms == 5
    assert result.error_ms == pytest.approx(4.303 * 1 / math.sqrt(3))
    assert result.is_disturbed


def test_of_one_turn_nothing_limits_the_interval() -> None:
    assert half_interval((5.0,)) == math.inf


def test_a_larger_batch_saves_by_the_sample_though_its_step_is_longer() -> None:
    result = pair_result((10, 10, 10), (30, 30, 30), samples=(2, 10))
    assert (result.before_ms, result.saving_ms) == (5, 2)


def test_turns_that_agree_are_not_disturbed() -> None:
    assert not pair_result((10, 10.1, 9.9), (6, 6.1, 5.9)).is_disturbed
    assert not pair_result((10, 10.02, 9.98), (10, 10, 10)).is_disturbed


class Side:
    """A side whose turns take given times."""

    counted_steps = 8

    def __init__(self, name: str, times_ms: Sequence[float], order: list[str]) -> None:
        self._name, self._times_ms, self._order = name, list(times_ms), order

    def begin(self, turn: Turn) -> None:
        self._order.append(f"{self._name}: {turn.step_count} steps")

    def times_ns(self) -> tuple[float, ...]:
        return ()

    def warm_up(self) -> None:
        self._order.append(f"warm {self._name}")

    def mean_ms(self) -> float:
        self._order.append(self._name)
        return self._times_ms.pop(0)


def made_pair() -> Pair:
    family = Family(
        name="made",
        faults={"slow": Fault("item-sync"), "old": Fault(kind="an old fault")},
        pairs=(("slow",),),
        train=lambda _faults, _steps: None,
        behind={("slow",): {"old"}},
        samples=lambda faults: 4 if "slow" in faults else 8,
    )
    return Pair(family=family, faults=("slow",))


def test_sides_alternate_and_every_other_turn_begins_with_the_fix() -> None:
    order: list[str] = []
    times = range(TURN_COUNT)
    sides = Side("fault", times, order), Side("fix", times, order)
    assert alternate(sides) == (tuple(times), tuple(times))  # type: ignore[arg-type]
    assert order == ["fault", "fix", "fix", "fault"] * 2 + ["fault", "fix"]


def test_disturbed_turns_are_repeated_and_the_steadiest_series_is_stored() -> None:
    disturbed, steadier, worst = (8, 12, 8, 12, 8), (9, 11, 9, 11, 9), (4, 16, 4, 16, 4)
    before = Side("fault", (*disturbed, *steadier, *worst), [])
    result = measure(made_pair(), (before, Side("fix", (8.0,) * 15, [])))  # type: ignore[arg-type]
    assert (result.fault_ms, result.attempt_count) == (steadier, 3)
    assert (result.samples, result.behind) == ((4, 8), ("old",))
    assert made_pair().sides == (frozenset({"slow", "old"}), frozenset({"old"}))


def test_a_steady_series_is_not_repeated() -> None:
    sides = Side("fault", (10.0,) * 5, []), Side("fix", (6.0,) * 5, [])
    assert measure(made_pair(), sides).attempt_count == 1  # type: ignore[arg-type]


def test_pairs_are_selected_by_family_and_faults() -> None:
    assert [pair.name for pair in find_pairs("tabular")] == [
        "tabular:no_workers",
        "tabular:one_by_one",
        "tabular:no_workers+one_by_one",
    ]
    [both] = find_pairs("tabular:one_by_one+no_workers")
    assert both.faults == ("no_workers", "one_by_one")
    with pytest.raises(ValueError, match="its pairs are tabular:no_workers, "):
        find_pairs("tabular:float64")


@pytest.mark.every
@pytest.mark.recording
def test_a_pair_is_run_in_turns_and_recorded(tmp_path: Path) -> None:
    [pair] = find_pairs("tabular:one_by_one")
    result = record_pair(pair, tmp_path)
    assert msgspec.json.decode((tmp_path / FILE_NAME).read_bytes(), type=PairResult) == result
    assert len(result.fault_ms) == len(result.fix_ms) == TURN_COUNT
    for name in ("fault", "fix"):
        [path] = (tmp_path / name).iterdir()
        assert trace_at(path).host_calls is not None


@pytest.mark.parametrize("name", ["tabular"])
def test_a_family_has_the_names_that_it_needs(name: str) -> None:
    assert load_family(name).name == name


# Estimates and scores


def test_an_estimate_is_the_sum_over_the_faults_rules_without_the_profiler() -> None:
    recorded = RuleSaving(rule="numpy-in-step", recorded=(MS, 3 * MS), intervals=(0, 7 * MS))
    result = pair_result(rules=("item-sync", "numpy-in-step"), samples=(2, 2))
    pair = turn_pair(saving(1, 2), recorded, saving(1, 1, "float64-compute"), result=result)
    assert pair.estimate() == Span(low=1 * MS, high=2.5 * MS)
    assert pair.estimate("intervals") == Span(low=0, high=3.5 * MS)
    both = RuleSaving(rule="item-sync", recorded=(2 * MS, 6 * MS), unrecorded=(MS, 2 * MS))
    assert turn_pair(both).estimate("steps") == Span(low=MS, high=6 * MS)
    assert pair.estimate(has_all=True) == Span(low=1.5 * MS, high=3 * MS)


@pytest.mark.parametrize(
    ("low_ms", "high_ms", "answer"),
    [(3, 5, "yes"), (4.1, 5, "within noise"), (5, 6, "no"), (0, 0, "nothing predicted")],
)
def test_an_estimate_contains_the_realised_saving_or_not(
    low_ms: float, high_ms: float, answer: str
) -> None:
    result = pair_result((10, 10.1, 9.9), (6, 6, 6))
    assert turn_pair(saving(low_ms, high_ms), result=result).holds() == answer


def test_a_fault_is_ruled_out_if_the_report_says_so_and_has_no_finding() -> None:
    ruled_out = RuleSaving(rule="item-sync", is_ruled_out=True)
    assert turn_pair(ruled_out).is_ruled_out
    assert not turn_pair().is_ruled_out
    result = pair_result(rules=("item-sync", "numpy-in-step"))
    both = (ruled_out, RuleSaving(rule="numpy-in-step", position=1))
    assert not turn_pair(*both, result=result).is_ruled_out
    assert "| ruled out |" in "\n".join(turn_tables.turns([turn_pair(ruled_out)]))


def test_the_interval_score_is_the_width_and_20_times_the_distance() -> None:
    estimate = Span(low=2, high=5)
    assert interval_score(estimate, 3) == 3
    assert interval_score(estimate, 1.5) == pytest.approx(3 + 20 * 0.5)
    assert interval_score(estimate, 6) == pytest.approx(3 + 20 * 1)
    assert turn_pair(saving(1, 2)).score() == pytest.approx((1 + 20 * 2) / 10)
    assert turn_pair().score() == pytest.approx(20 * 4 / 10)


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0, 100))
def test_no_range_scores_better_than_the_value_itself(
    low: float, high: float, value: float
) -> None:
    low, high = sorted((low, high))
    exact = Span(low=value, high=value)
    assert interval_score(Span(low=low, high=high), value) >= interval_score(exact, value) == 0


def test_a_width_is_the_ratio_of_the_ends() -> None:
    assert Span(low=2, high=5).width == 2.5
    assert Span(low=0, high=5).width == math.inf
    pairs = [turn_pair(saving(1, 3)), turn_pair(saving(1, 2)), turn_pair(saving(0, 2)), turn_pair()]
    assert turn_tables.median_width(pairs) == 3


def test_a_pair_is_own_if_a_factor_was_fitted_on_its_family_and_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fitted = Factor(0.5, 1.0, "pairs", pairs=("vision:read_each+float64", "text:float64"))
    monkeypatch.setattr(turn_pairs, "factors", lambda: (fitted,))
    assert turn_pairs.fitted_faults("vision") == {"read_each", "float64"}
    assert turn_pairs.fitted_faults("text") == {"float64"}
    assert turn_pair().is_own
    other = msgspec.structs.replace(pair_result(), family="text")
    assert not turn_pair(result=other).is_own


def test_a_factor_names_pairs_that_exist() -> None:
    stored = {pair.name for pair in stored_pairs()}
    assert {name for factor in turn_pairs.factors() for name in factor.pairs} <= stored
    assert calibration.EXPOSED_TIME in turn_pairs.factors()


def test_the_score_of_a_group_counts_its_answers() -> None:
    unsaved = turn_pair(result=pair_result((10, 9, 10), (9, 10, 10)))
    pairs = [turn_pair(saving(3, 5)), turn_pair(saving(1, 2)), turn_pair(), unsaved]
    scores = 0.2, (1 + 20 * 2) / 10, 20 * 4 / 10, 0.0
    assert turn_tables.score_row("all", "replay", pairs, "replay") == (
        "all (4)",
        "replay",
        "1 of 2 (50.0 %)",
        "0",
        "1",
        "1",
        "1",
        "1.8",
        f"{sum(scores) / 4:.3f}",
    )


def test_a_pair_with_a_fault_that_no_rule_names_is_not_judged() -> None:
    named, unnamed = turn_pair(), turn_pair(result=pair_result(rules=()))
    partly = TurnPair(
        stored=StoredPair(result=pair_result(), savings=(), unnamed=("an old fault",))
    )
    assert turn_tables.estimable([named, unnamed, partly]) == [named]


# Estimates of a trace


def test_findings_of_a_rule_are_summed_by_trace_and_the_worst_trace_counts() -> None:
    assert of_worst_trace({"a": (1, 5), "b": (2, 6)}) == (2, 6)
    assert of_worst_trace({"a": (1, 5), "": (1, 1)}) == (2, 6)
    assert of_worst_trace({"": (1, 2)}) == (1, 2)
    assert of_worst_trace({}) is None


def test_without_a_device_sums_of_intervals_are_the_recorded_savings() -> None:
    [path] = (SAMPLE_LOGS / "optimizer" / "one_by_one").glob("*.gz")
    trace = trace_at(path)
    recorded, unrecorded = bounds_of(
        "cpu-optimizer-not-fused", rule_outcomes(trace, rules_of(trace))
    )
    by_intervals = interval_savings(fresh_trace_at(path))["cpu-optimizer-not-fused"]
    assert by_intervals == pytest.approx(recorded, abs=2)
    assert unrecorded is not None
    assert whole_savings(trace)["cpu-optimizer-not-fused"] >= unrecorded[1]


# Factors


def realised(rule: str, family: str, factor: float) -> Realised:
    shown = Span(low=0.2, high=1)
    name = f"{family}:x"
    return Realised(rule=rule, family=family, pair=name, factor=factor, error=0, shown=shown)


def test_the_realised_factor_is_the_saving_over_that_of_the_whole_claim() -> None:
    found = RuleSaving(rule="item-sync", unrecorded=(2 * MS, 8 * MS), whole_ns=8 * MS)
    result = pair_result((10, 10, 10), (3, 3, 3), samples=(2, 1))
    assert realised_factors([turn_pair(found, result=result), turn_pair()]) == (
        Realised(
            rule="item-sync",
            family="vision",
            pair="vision:read_each",
            factor=0.5,
            error=0,
            shown=Span(low=0.25, high=1),
        ),
    )


def test_pairs_with_several_rules_or_uncertain_turns_have_no_realised_factor() -> None:
    found = RuleSaving(rule="item-sync", unrecorded=(2 * MS, 8 * MS), whole_ns=8 * MS)
    several = pair_result(rules=("item-sync", "numpy-in-step"))
    uncertain = pair_result((6, 10, 14))
    assert realised_factors([turn_pair(found, result=e) for e in (several, uncertain)]) == ()


def test_the_range_of_one_family_has_the_pooled_spread() -> None:
    expected = 0.5 * math.exp(-Z_90 * 0.2 * math.sqrt(2))
    assert range_of([math.log(0.5)], 0.2 * math.sqrt(3 / 3)).low == pytest.approx(expected)
    assert range_of([math.log(0.9)], 0.5).high == 1


def test_many_families_outweigh_the_pooled_spread() -> None:
    logs = [math.log(0.5) + way * 0.1 for way in (-1, 1)] * 500
    assert range_of(logs, 2.0).width == pytest.approx(math.exp(2 * Z_90 * 0.1), rel=0.2)


def test_spreads_are_pooled_over_rules_with_several_families() -> None:
    assert pooled_spread({"a": {"x": 0.0, "y": 2.0}, "b": {"x": 5.0}}) == pytest.approx(2**0.5)
    assert pooled_spread({"b": {"x": 5.0}}) == DEFAULT_SPREAD


@given(st.lists(st.floats(0.05, 1.5), min_size=1, max_size=4), st.floats(-1, 2), st.floats(-1, 2))
def test_the_range_for_a_family_uses_none_of_its_pairs(
    others: list[float], one: float, other: float
) -> None:
    fixed = [realised("item-sync", f"family {index}", f) for index, f in enumerate(others)]
    fixed.append(realised("float64-compute", "family 0", 0.7))

    def range_for(factor: float) -> HeldOut:
        more = [realised(rule, "held", factor) for rule in ("item-sync", "float64-compute")]
        [held] = (
            e for e in held_out([*fixed, *more]) if (e.rule, e.family) == ("item-sync", "held")
        )
        return held

    assert range_for(one).range == range_for(other).range
    assert range_for(one).contained_count == range_for(one).range.holds(one)


def test_a_factor_of_nothing_counts_as_the_floor() -> None:
    assert fitted_range("a", [realised("a", "x", -1.0)]) == fitted_range(
        "a", [realised("a", "x", FLOOR)]
    )


# The stored pairs


def test_pairs_are_stored_one_per_line(tmp_path: Path) -> None:
    pairs = [turn_pair(saving(1, 2)).stored, turn_pair().stored]
    path = tmp_path / "pairs.json"
    path.write_bytes(encode(pairs))
    assert len(path.read_text().splitlines()) == 4
    assert [pair.stored for pair in stored_pairs(path)] == pairs
    assert stored_pairs(tmp_path / "absent.json") == ()


def test_the_picture_shows_each_estimate_and_is_current() -> None:
    text = picture.picture([turn_pair(saving(3, 5)), turn_pair()])
    assert text.count("<circle") == 1
    assert "<title>vision:read_each</title>" in text
    if pairs := stored_pairs():
        assert picture.FILE.read_text(encoding="utf-8") == picture.picture(pairs)


def test_the_section_is_left_out_without_pairs() -> None:
    assert list(turn_tables.turns(())) == list(turn_tables.in_a_line(())) == []
    section = "\n".join(turn_tables.turns([turn_pair(saving(3, 5))]))
    assert "| read_each | vision | `item-sync` | 10.0 ms | 3.00 ms to 5.00 ms |" in section
