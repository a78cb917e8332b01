"""Large or shuffled traces, compared with the trace that they repeat."""

import os
from typing import Any

import msgspec
import numpy as np
import pytest

from benchmarks.processes import measured, of_module
from benchmarks.scaled import SEED, scaled
from loading import trace_at
from stepscope.advice import advise
from stepscope.dialects import Kind
from stepscope.model.trace import Run, Trace

LARGE = pytest.mark.skipif(
    not os.environ.get("STEPSCOPE_LARGE"),
    reason="half a minute and gigabytes of disk each: STEPSCOPE_LARGE=1, or make bench FULL=1",
)
MOST_PEAK_BYTES_A_JSON_BYTE = 0.75
REPEATED = (Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON_CALL, Kind.MEMORY, Kind.KERNEL)


def _counts(trace: Trace) -> list[int]:
    counts = np.bincount(trace.source.kinds, minlength=len(Kind))
    return [int(counts[kind]) for kind in REPEATED]


def _report(trace: Trace) -> dict[str, Any]:
    """Return the report of a trace, except for the order of events in the file."""
    report: dict[str, Any] = msgspec.to_builtins(advise(Run(name="run", workers=(trace,))))
    [worker] = report["workers"]
    del worker["fingerprint"]
    worker["health"] = [item for item in worker["health"] if item["kind"] != "out-of-order"]
    for outcome in (*report["outcomes"], *(merged["outcome"] for merged in report["merged"])):
        for event in outcome["events"]:
            del event["event"]  # its position in the file
    return report


@pytest.mark.slow
def test_events_in_no_order_tell_the_same() -> None:
    ordered, shuffled = (trace_at(scaled("43MB", is_shuffled=is_so)) for is_so in (False, True))
    assert (np.diff(shuffled.columns.start_ns) < 0).any()
    assert _counts(shuffled) == _counts(ordered)
    for frame in ("host_calls", "python_calls", "memory"):
        total = getattr(ordered, frame).sum(numeric_only=True).drop("event")
        assert getattr(shuffled, frame).sum(numeric_only=True).drop("event").equals(total), frame
    assert _report(shuffled) == _report(ordered)


@LARGE
@pytest.mark.parametrize("size", ["2GB", "10M"])
def test_a_large_trace_is_so_many_times_its_seed(size: str) -> None:
    seed, large = trace_at(SEED), trace_at(scaled(size))
    times = len(large.steps) // len(seed.steps)
    assert times > 200
    assert _counts(large) == [times * count for count in _counts(seed)]
    for column in ("duration_ns", "self_ns", "depth"):
        assert large.host_calls[column].sum() == times * seed.host_calls[column].sum()


@LARGE
def test_two_gigabytes_of_json_take_less_than_their_size() -> None:
    path = scaled("2GB")
    json_bytes = int.from_bytes(path.read_bytes()[-4:], "little")
    run = measured(of_module("stepscope", "advise", str(path)))
    assert run.peak_bytes < MOST_PEAK_BYTES_A_JSON_BYTE * json_bytes
