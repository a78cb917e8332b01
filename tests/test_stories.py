"""sample_logs/stories.toml: its format, and that it speaks of every recording that there is."""

import pytest

from loading import SAMPLE_LOGS, trace_at
from score.stories import Pair, Stories, read, stories
from stepscope.rules import all_rules

RUNS = sorted(
    {
        path.parent.relative_to(SAMPLE_LOGS).as_posix()
        for path in SAMPLE_LOGS.rglob("*.pt.trace.json.gz")
    }
)
RULES = {rule.id for rule in all_rules()}


def test_every_recording_has_an_entry_and_every_entry_its_recording() -> None:
    assert sorted(each.run for each in stories().recording) == RUNS


def test_every_fault_recorded_on_a_cpu_or_made_is_in_a_pair() -> None:
    alone = {
        each.run
        for each in stories().recording
        if not each.healthy and not each.run.partition("/")[0].endswith("_cuda")
    }
    assert alone <= {pair.fault for pair in stories().pair}


def test_the_rules_that_it_names_exist() -> None:
    named = {rule for each in stories().recording for rule in each.true_rules}
    assert named <= RULES


@pytest.mark.parametrize("run", RUNS)
def test_what_was_written_from_a_schedule_is_called_synthetic(run: str) -> None:
    path = next((SAMPLE_LOGS / run).glob("*.pt.trace.json.gz"))
    assert stories().of(run).is_synthetic == trace_at(path).is_synthetic


# The format

FAULT = """
[[recording]]
run = "a/fault"
device = "cpu"
healthy = false
causes = ["item-sync"]
why = "made so"
"""
FIX = """
[[recording]]
run = "a/fix"
device = "cpu"
healthy = true
why = "made so"
"""
PAIR = """
[[pair]]
fault = "a/fault"
fix = "a/fix"
why = "one line"
"""


def of(*parts: str) -> Stories:
    return read("\n".join(("schema = 1", "[stories]", '1 = "a user\'s"', *parts)))


def test_a_pair_is_read_with_what_it_leaves_out() -> None:
    told = of(FAULT, FIX, PAIR)
    assert told.pair == (Pair(fault="a/fault", fix="a/fix", why="one line"),)
    assert told.healed(told.pair[0]) == ("item-sync",)
    assert told.of("a/fix").true_rules == frozenset()


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ((FAULT, FAULT, FIX, PAIR), "a/fault: two entries"),
        ((FAULT, FIX, PAIR, PAIR), "two entries"),
        ((FAULT, PAIR), "no entry a/fix"),
        ((FAULT.replace("false", "true"), FIX, PAIR), "a/fault: healthy, but has causes"),
        ((FAULT, FIX.replace("true", "false"), PAIR), "a/fix: not healthy, but has no cause"),
        ((FAULT + "story = 9", FIX, PAIR), "a/fault: there is no story 9"),
        ((FAULT, FIX, PAIR + 'heals = ["launch-bound"]'), "names a rule that is not a cause"),
        ((FAULT, FIX, PAIR + "samples = [2, 4]"), "`samples` requires"),
        ((FAULT, FIX, PAIR + 'unit = "sample"'), "`samples` requires"),
        ((FAULT + "cause = 1", FIX, PAIR), "unknown field `cause`"),
    ],
)
def test_what_contradicts_itself_is_refused(parts: tuple[str, ...], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        of(*parts)
