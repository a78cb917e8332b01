"""When Python's garbage collector ran."""

from typing import Any

import pytest

import tracebuild
from loading import trace_of
from stepscope.analyses.host.garbage_collection import collections
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace


def recorded(*body: dict[str, Any]) -> Trace:
    actions = [{"steps": 1, "body": list(body)}]
    schedule = {"machine": "cpu", "record": ["stacks"], "actions": actions}
    return trace_of(document=tracebuild.document(schedule=schedule))


def test_a_run_within_a_call_of_collect_is_one_and_names_its_line() -> None:
    """From 10 us on 100 us in `gc.collect()`, from 110 on 30 by itself, outside any function."""
    call = {"python": "<built-in function collect>", "body": [{"python": "Python GC", "us": 100}]}
    trace = recorded(
        {"python": "train.py(3): train", "us": 10, "body": [call]},
        {"python": "Python GC", "us": 30},
    )
    found = collections(trace)
    assert found.times.tolist() == [[10_000, 140_000]]
    assert found.explicit.tolist() == [[10_000, 110_000]]
    assert found.lines == ("train.py(3): train", "")


def test_what_was_not_recorded_is_not_guessed() -> None:
    with pytest.raises(MissingDataError, match="no run of Python's garbage collector") as error:
        collections(recorded({"python": "train.py(3): train", "us": 500_000}))
    assert "record_python_gc_info=True" in error.value.remedy


def test_what_ran_outside_the_steps_is_left_out() -> None:
    actions = [{"python": "Python GC", "us": 50}, {"steps": 1, "body": [{"host": 10}]}]
    schedule = {"machine": "cpu", "record": ["stacks"], "actions": actions}
    found = collections(trace_of(document=tracebuild.document(schedule=schedule)))
    assert (len(found.rows), len(found.times)) == (0, 0)
