"""A recording narrowed to a time: parts that make the whole, and events that keep their names."""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from stepscope.analyses.core import trace_cut as narrowing
from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.analyses.operators.operator_table import operator_table
from stepscope.base.errors import UsageError
from stepscope.model.read import read_trace
from stepscope.model.trace import Trace
from stepscope.storage import discover

SAMPLE_LOGS = Path(__file__).resolve().parents[2] / "sample_logs"


@pytest.fixture(scope="module", params=["synthetic_dataloader/fault", "masking/numpy"])
def trace(request: pytest.FixtureRequest) -> Trace:
    [file] = discover.at(str(SAMPLE_LOGS / request.param))
    return read_trace(file)


def parts_of(trace: Trace, count: int) -> list[Trace]:
    last_ns = int(trace.columns.start_ns.max()) + 1
    edges = np.linspace(0, last_ns, count + 1).astype(int).tolist()
    return [slice_trace(trace, *pair) for pair in pairwise(edges)]


def test_every_event_is_in_one_part(trace: Trace) -> None:
    parts = parts_of(trace, 5)
    for frame in ("host_calls", "runtime_calls", "device_events", "python_calls", "memory"):
        whole = sorted(getattr(trace, frame)["event"])
        assert sorted(e for part in parts for e in getattr(part, frame)["event"]) == whole


def test_work_on_the_device_is_in_the_part_that_launched_it(trace: Trace) -> None:
    steps = trace.steps
    if not len(trace.device_events):
        pytest.skip("nothing ran on a device")
    start_ns, end_ns = int(steps["start_ns"].iloc[1]), int(steps["end_ns"].iloc[1])
    part = slice_trace(trace, start_ns, end_ns)
    assert part.device_events["end_ns"].max() > end_ns, "it runs on after the host's step"
    assert len(part.device_events) == pytest.approx(len(trace.device_events) / len(steps), rel=0.3)


def test_sums_over_steps_are_sums_of_the_whole(trace: Trace) -> None:
    edges = [0, *trace.steps["start_ns"].tolist(), int(trace.columns.start_ns.max()) + 1]
    whole = operator_table(trace, "name")
    parts = [operator_table(slice_trace(trace, *pair), "name") for pair in pairwise(edges)]
    for column in ("call_count", "device_self_ns", "host_self_ns"):
        assert sum(part[column].sum() for part in parts) == whole[column].sum()


def test_no_time_is_the_recording_itself(trace: Trace) -> None:
    assert slice_trace(trace, None, None) is trace


def test_the_same_part_is_worked_out_once(trace: Trace) -> None:
    assert slice_trace(trace, 0, 1_000_000) is slice_trace(trace, 0, 1_000_000)


def test_who_asks_what_is_kept_does_not_wait_until_a_part_is_made(
    trace: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def made(_: Trace, *time: int) -> Trace:
        with ThreadPoolExecutor(1) as another:
            asked = another.submit(narrowing.cached_slices, trace).result(timeout=60)
        assert all(part is not trace for part in asked)
        return make(trace, *time)

    make = narrowing._part  # noqa: SLF001 (what takes its time)
    monkeypatch.setattr(narrowing, "_part", made)
    part = slice_trace(trace, 1, 2_000_000)
    assert part in narrowing.cached_slices(trace)


@pytest.mark.parametrize(("start_ns", "end_ns"), [(5, 5), (9, 5), (None, 5), (5, None)])
def test_a_time_that_is_none_is_refused(
    trace: Trace, start_ns: int | None, end_ns: int | None
) -> None:
    with pytest.raises(UsageError):
        slice_trace(trace, start_ns, end_ns)
