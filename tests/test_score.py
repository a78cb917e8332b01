"""How the score is reckoned: what holds, what is likely, and how other programs are graded."""

from importlib.metadata import distributions

import numpy as np
import pytest

from peers.young_advisers import PEERS
from score import pair_tables
from score import story_pairs as scored
from score.__main__ import printed
from score.peers import PROGRAMS, ProgramOutput, grade, names_of, run_programs, stored_results
from score.ranges import Span, judgement
from score.stories import Pair, Recording, stories
from score.story_pairs import Result, likely_difference
from stepscope.comparison.significance import LEVEL, permutation_test
from stepscope.render.rule_page import RuleRecord, RunCounts, accuracy

MS = 1e6

# What is likely


def steps(*times_ms: float) -> np.ndarray:
    return np.array(times_ms) * MS


def test_of_steady_steps_little_else_is_likely_than_the_difference() -> None:
    likely = likely_difference(
        steps(50, 50.2, 49.8, 50.1, 49.9, 50), steps(30, 30.1, 29.9, 30, 30.2, 29.8)
    )
    assert 19.6 * MS < likely.low < 20 * MS < likely.high < 20.4 * MS


def test_what_compare_calls_chance_may_be_nothing() -> None:
    before, after = steps(50, 58, 43, 55, 47, 51), steps(49, 57, 42, 54, 46, 50)
    assert permutation_test(before[None], after[None], 1.0).p[0] > LEVEL
    assert likely_difference(before, after).holds(0.0)


def test_its_bounds_are_where_compare_would_see_a_change() -> None:
    before, after = steps(50, 51, 49, 52, 48, 50), steps(40, 42, 39, 41, 38, 40)
    likely = likely_difference(before, after)
    width = likely.high - likely.low
    for bound, way in ((likely.low, -1), (likely.high, 1)):
        inside, outside = bound - way * 1e-3 * width, bound + way * 1e-3 * width
        assert permutation_test((before - inside)[None], after[None], 1.0).p[0] >= LEVEL
        assert permutation_test((before - outside)[None], after[None], 1.0).p[0] < LEVEL


def test_steps_without_any_spread_have_one_difference() -> None:
    assert likely_difference(steps(5, 5, 5), steps(3, 3, 3)) == Span(low=2 * MS, high=2 * MS)


def test_two_steps_tell_no_bound() -> None:
    assert likely_difference(steps(5, 6), steps(3, 4)) == Span(low=-np.inf, high=np.inf)


def test_spans_that_differ_widen_it() -> None:
    before, after = steps(5, 5.1, 5.2, 4.9), steps(3, 3.1, 3.2, 2.9)
    narrow, wide = likely_difference(before, after), likely_difference(before, after, MS)
    assert (wide.low, wide.high) == (narrow.low - MS, narrow.high + MS)


@pytest.mark.parametrize(
    ("predicted", "won", "likely", "answer"),
    [
        ((1, 3), 2, (1.5, 2.5), "yes"),
        ((1, 3), 3.2, (2.9, 3.5), "within noise"),
        ((1, 3), 3.2, (3.1, 3.3), "no"),
        ((1, 3), 0.5, (0.2, 0.8), "no"),
        ((0, 0), 0.5, (0.2, 0.8), "nothing predicted"),
    ],
)
def test_a_range_holds_what_was_won_or_not(
    predicted: tuple[float, float], won: float, likely: tuple[float, float], answer: str
) -> None:
    said, possible = (Span(low=low, high=high) for low, high in (predicted, likely))
    assert judgement(said, won, possible) == answer


def test_by_the_sample_a_larger_batch_saves_though_its_step_is_longer() -> None:
    pair = next(each for each in stories().pair if each.fault == "synthetic_tiny_batch/fault")
    result = scored.result_of(pair)
    by_step = scored.side(pair.fault).durations().mean() - scored.side(pair.fix).durations().mean()
    assert by_step < 0 < result.won_ns
    assert result.before_ns == scored.side(pair.fault).durations().mean() / 2


def result(won_ms: float, *, predicted: Span, by_all: Span) -> Result:
    return Result(
        pair=Pair(fault="a/fault", fix="a/fix", why="made"),
        before_ns=10 * MS,
        after_ns=(10 - won_ms) * MS,
        step_counts=(6, 6),
        first_rule="item-sync",
        is_first_serious=True,
        healed=("item-sync",),
        claimed_ns=predicted.high,
        predicted=predicted,
        predicted_by_all=by_all,
        likely=Span(low=(won_ms - 0.5) * MS, high=(won_ms + 0.5) * MS),
    )


def test_what_is_held_is_told_apart_from_what_was_near_and_from_what_was_not_predicted() -> None:
    nothing, some = Span(low=0, high=0), Span(low=MS, high=3 * MS)
    results = [
        result(2, predicted=some, by_all=some),
        result(3.2, predicted=some, by_all=some),
        result(5, predicted=nothing, by_all=some),
    ]
    assert pair_tables.contained(results) == "1 of 2 (50.0 %)"
    assert pair_tables.nearly_contained(results) == "1 of 2"
    [text, _] = pair_tables._coverage(results)  # noqa: SLF001
    assert text.startswith("Contained: 1 of 2 (50.0 %);")
    assert "including those without an estimate: 1 of 3." in text
    assert "Missed, but within the jitter: 1 of 2." in text
    assert "The estimates are of 1 fault: a fault with two fixes counts twice." in text
    assert text.endswith("including other causes: 1 of 3.")


def test_the_summary_the_pairs_and_the_rules_are_printed() -> None:
    page = "# How often?\n\n## Pairs { #pairs }\n\n1 of 2\n\n## Truth { #truth }\n\nlong\n"
    assert printed(page) == "# How often?\n\n## Pairs { #pairs }\n\n1 of 2\n\n"


# Other programs


def truth(*causes: str, healthy: bool = False) -> Recording:
    return Recording(run="a", device="cuda", healthy=healthy, causes=causes, why="made")


FAULT = truth("dataloader-no-workers")
HEALTHY = truth(healthy=True)


@pytest.mark.parametrize(
    ("of", "verdicts", "expected"),
    [
        (FAULT, ["input_bound"], "right"),
        (FAULT, ["launch_bound"], "wrong"),
        (FAULT, ["No issues found. Training looks balanced."], "wrong"),
        (FAULT, ["No recommendation"], "silent"),
        (FAULT, ["insufficient_telemetry"], "silent"),
        (FAULT, ["launch_bound", "input_bound"], "right"),
        (HEALTHY, ["No recommendation"], "right"),
        (HEALTHY, ["No bottleneck found."], "right"),
        (HEALTHY, ["launch_bound"], "wrong"),
        (HEALTHY, ["No bottleneck found.", "launch_bound"], "wrong"),
        (HEALTHY, ["No trace data"], "silent"),
    ],
)
def test_a_program_is_graded_by_what_it_names(
    of: Recording, verdicts: list[str], expected: str
) -> None:
    assert grade(tuple(ProgramOutput(verdict=each) for each in verdicts), of) == expected


def test_a_traceback_is_a_crash() -> None:
    answers = (ProgramOutput(verdict="KeyError: input_bound", has_crashed=True),)
    assert grade(answers, FAULT) == "crash"


def test_a_cause_without_words_of_its_own_is_known_by_its_name() -> None:
    answers = (ProgramOutput(verdict="Your python GC pauses cost 12 %"),)
    assert grade(answers, truth("python-gc-pauses")) == "right"
    assert names_of(truth()) == "(?!)"


def test_every_program_was_asked_about_every_run() -> None:
    assert stored_results().keys() == {each.run for each in stories().recording}
    assert {tuple(each.outputs) for each in stored_results().values()} == {tuple(PROGRAMS)}


@pytest.mark.peer
@pytest.mark.skipif(not (PEERS / "analyzer.py").exists(), reason="the peers are not installed")
def test_the_programs_versions_are_those_that_are_named() -> None:
    there = {f"{each.name} {each.version}" for each in distributions(path=[str(PEERS)])}
    assert set(list(PROGRAMS)[1:]) <= there


@pytest.mark.peer
@pytest.mark.slow
@pytest.mark.skipif(not (PEERS / "analyzer.py").exists(), reason="the peers are not installed")
@pytest.mark.parametrize("run", ["dataloader/no_workers", "synthetic_healthy"])
def test_the_programs_say_what_was_kept(run: str) -> None:
    """Of two runs: all of them take minutes, and `make score` asks about what changed."""
    from score.peers import files_of

    said = [run_programs(path) for path in files_of(run)]
    assert stored_results()[run].outputs == {
        name: tuple(each[name] for each in said) for name in PROGRAMS
    }


# A rule's own record


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (
            RuleRecord(recorded=RunCounts(hit_count=2, missed_count=1)),
            "Recorded: found in 2 of 3 runs with this fault, no false alarm.",
        ),
        (
            RuleRecord(
                recorded=RunCounts(also_true_count=1, false_count=2),
                synthetic=RunCounts(hit_count=1),
            ),
            "Recorded: also true in 1 run, **a false alarm in 2 runs**. Synthetic (written from a"
            " schedule, not recorded): found in 1 of 1 run with this fault, no false alarm.",
        ),
        (
            RuleRecord(),
            "No trace with this fault has tested the rule; on the other traces it has never been a"
            " false alarm.",
        ),
    ],
)
def test_a_record_is_told_in_words(record: RuleRecord, text: str) -> None:
    assert accuracy(record) == text
