"""Memory beside torch-tb-profiler's, from the same files.

Where they differ on purpose, a test says where and why.
"""

import logging
import tempfile
import warnings
from functools import lru_cache
from typing import Any, NamedTuple

import pytest

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at
from stepscope.analyses.memory.allocations import memory_allocations
from stepscope.analyses.memory.curve import memory_curves
from stepscope.analyses.memory.operator_memory import SCHEMA, memory_statistics
from stepscope.model.trace import Trace

pytest.importorskip("torch_tb_profiler")
pytestmark = [pytest.mark.peer, pytest.mark.slow]
NVIDIA = shared_trace_names("tracelens/h100") + shared_trace_names("kineto")
HIP = shared_trace_names("tracelens/mi300")
WITH_ADDRESSES = ["Falconsai", "Qwen"]
THEIR_ORDER = (
    "self_increase_bytes",
    "self_allocation_bytes",
    "self_allocation_count",
    "increase_bytes",
    "allocation_bytes",
    "allocation_count",
)
"""`MemoryMetrics`; calls follow."""
assert {*THEIR_ORDER} < {column.name for column in SCHEMA}


class Pair(NamedTuple):
    ours: Trace
    theirs: Any


@lru_cache(maxsize=1)
def _read(name: str) -> Pair:
    if not SHARED_TRACES.is_dir():
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    path = SHARED_TRACES / name
    with tempfile.TemporaryDirectory() as cache, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # its modules import in this order only
        import torch_tb_profiler.profiler  # noqa: F401
        from torch_tb_profiler.profiler.data import RunProfileData
        from torch_tb_profiler.profiler.run_generator import RunGenerator

        logging.getLogger("torch_tb_profiler").setLevel(logging.ERROR)
        data = RunProfileData.parse("worker", "1", str(path), cache)
        profile = RunGenerator("worker", "1", data).generate_run_profile()
    return Pair(trace_at(path), (data, profile))


def _device(type_name: str, number: int) -> str:
    return "CPU" if type_name == "CPU" else f"GPU{number}"


@pytest.fixture(params=[name for name in NVIDIA if any(w in name for w in WITH_ADDRESSES)])
def nvidia(request: pytest.FixtureRequest) -> Pair:
    return _read(request.param)


@pytest.mark.parametrize("name", NVIDIA)
def test_memory_statistics_are_its_own(name: str) -> None:
    pair = _read(name)
    data, _ = pair.theirs
    theirs = data.memory_snapshot.get_memory_statistics(data.tid2tree)
    ours: dict[str, dict[str, list[int]]] = {}
    for row in rows_of(memory_statistics(pair.ours)):
        device = ours.setdefault(_device(row.device_type, row.device), {})
        device[row.operator] = [*(getattr(row, name) for name in THEIR_ORDER), row.call_count]
    assert ours == {device: dict(rows) for device, rows in theirs.items() if rows}


def test_curves_are_its_own(nvidia: Pair) -> None:
    data, profile = nvidia.theirs
    curve = profile.get_memory_curve(time_metric="us", memory_metric="B")
    for ours in memory_curves(nvidia.ours):
        device = _device(ours.device.type, ours.device.number)
        peaks = data.memory_snapshot.get_peak_memory()
        theirs = {(kind.name, number): peak for (kind, number), peak in peaks.items()}
        assert ours.allocated_bytes.max() == theirs[ours.device.type, ours.device.number]
        # it draws each point twice, for steps; the last is ours
        assert curve["rows"][device][-1][1] == pytest.approx(ours.allocated_bytes[-1])


def test_allocations_are_its_own(nvidia: Pair) -> None:
    _, profile = nvidia.theirs
    theirs: dict[Any, list[float]] = {}
    for device, rows in profile.get_memory_events(time_metric="us", memory_metric="B")[
        "rows"
    ].items():
        for name, size, *_, lifetime in rows:  # the sign of a size tells what is missing
            key = (device, name, abs(size), lifetime is None)
            theirs.setdefault(key, []).append(lifetime or 0)
    ours: dict[Any, list[float]] = {}
    for row in rows_of(memory_allocations(nvidia.ours)):
        name = row.operator if isinstance(row.operator, str) else "<unknown>"
        device, is_open = _device(row.device_type, row.device), row.state != "freed"
        lifetime_us = 0 if is_open else row.lifetime_ns / 1000
        ours.setdefault((device, name, row.bytes, is_open), []).append(lifetime_us)
    assert ours.keys() == theirs.keys()
    for key, lifetimes in ours.items():
        assert sorted(lifetimes) == pytest.approx(sorted(theirs[key]), abs=0.02), key  # floats


@pytest.mark.parametrize("name", HIP)
def test_memory_of_amd_devices_has_a_name_here(name: str) -> None:
    """It knows CPU and CUDA only: HIP is not in its statistics, and its memory events fail."""
    pair = _read(name)
    data, profile = pair.theirs
    assert "GPU0" not in data.memory_snapshot.get_memory_statistics(data.tid2tree)
    if "CPU" in set(memory_allocations(pair.ours)["device_type"]):
        with pytest.raises(TypeError, match="NoneType"):  # devices None and "CPU" are sorted
            profile.get_memory_events()
    assert "HIP" in set(memory_statistics(pair.ours)["device_type"])


@pytest.mark.parametrize("name", shared_trace_names("kineto"))
def test_where_it_shows_an_empty_curve_the_change_is_shown(name: str) -> None:
    """Traces of torch 1.8 have neither totals nor addresses; it leaves them out."""
    pair = _read(name)
    _, profile = pair.theirs
    assert profile.get_memory_curve()["rows"] == {}
    assert {curve.device.label for curve in memory_curves(pair.ours)} == {"CPU", "CUDA 0"}
    for curve in memory_curves(pair.ours):
        assert not curve.has_totals
        assert curve.change_bytes.max() > 0
