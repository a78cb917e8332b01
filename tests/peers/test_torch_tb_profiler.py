"""Figures beside torch-tb-profiler's, from the same files: the same where it is right.

Where they differ on purpose, a test says where and why.
"""

import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from loading import SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.analyses.core.counter_table import counter_table
from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.devices.device_metrics import device_metrics, stepped_span
from stepscope.analyses.devices.kernel_table import kernel_table
from stepscope.analyses.operators.operator_table import operator_table
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.model.trace import Trace

pytest.importorskip("torch_tb_profiler")
pytestmark = [pytest.mark.peer, pytest.mark.slow]

US = 1000
ROLES = ("kernel", "memcpy", "memset", "communication", "runtime", "dataloader", "cpu", "other")
"""`ProfileRole`'s order, in our words; `Total` follows."""
RESNETS = shared_trace_names("kineto")
NCCL = "hta/nccl_parser_config/nccl_data.json.gz"
CONTROL = "hta/trace_diff/control/control.json.gz"
H100 = "tracelens/h100/Falconsai_nsfw_image_detection__1016002.json.gz"
MI300 = "tracelens/mi300/Falconsai_nsfw_image_detection__1016002.json.gz"


@dataclass(frozen=True)
class Pair:
    """One file as both read it."""

    ours: Trace
    theirs: Any

    @property
    def their_mean_ns(self) -> dict[str, float]:
        """The peer's mean step by category."""
        costs = self.theirs.avg_costs.costs
        return {role: cost * US for role, cost in zip(ROLES, costs, strict=False)}

    @property
    def their_step_ns(self) -> float:
        return float(self.theirs.avg_costs.costs[len(ROLES)] * US)


def _their_profile(parse: Callable[[Any], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # its modules import in this order only
        import torch_tb_profiler.profiler  # noqa: F401
        from torch_tb_profiler.profiler.data import RunProfileData

        logging.getLogger("torch_tb_profiler").setLevel(logging.ERROR)
        return parse(RunProfileData)


@lru_cache(maxsize=1)
def _read(name: str) -> Pair:
    if not SHARED_TRACES.is_dir():
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    path = SHARED_TRACES / name
    with tempfile.TemporaryDirectory() as cache:
        theirs = _their_profile(lambda data: data.parse("worker", "1", str(path), cache))
    return Pair(trace_at(path), theirs)


@pytest.fixture(scope="module", params=RESNETS or [""])
def resnet(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """ResNet-50 on a V100, torch 1.8: two spans without and two with DataLoader workers."""
    if not request.param:
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    yield _read(request.param)
    _read.cache_clear()


# --- the same --------------------------------------------------------------------------------


def test_utilization_and_sm_efficiency_are_the_same(resnet: Pair) -> None:
    (device,) = device_metrics(resnet.ours)
    theirs = resnet.theirs.gpu_metrics_parser
    assert device.kernel_busy_share == pytest.approx(theirs.gpu_utilization[0], rel=1e-9)
    efficiency = theirs.avg_approximated_sm_efficiency_per_device[0]
    assert device.sm_efficiency_share == pytest.approx(efficiency, rel=1e-9)
    assert device.tensor_core_share == resnet.theirs.tc_used_ratio == 0


def test_occupancy_is_within_one_percent(resnet: Pair) -> None:
    (device,) = device_metrics(resnet.ours)
    theirs = resnet.theirs.gpu_metrics_parser.avg_occupancy_per_device[0] / 100
    assert device.occupancy_share == pytest.approx(theirs, rel=0.01)


def test_the_mean_step_is_the_same_in_every_category(resnet: Pair) -> None:
    steps = step_breakdown(resnet.ours)
    assert [str(number) for number in steps.numbers] == resnet.theirs.steps_names
    between_ns = _between_ns(resnet.ours)
    assert steps.mean_ns - between_ns == pytest.approx(resnet.their_step_ns, abs=1)
    more = {name: of - resnet.their_mean_ns[name] for name, of in steps.mean_parts_ns.items()}
    assert all(-1 <= ns <= between_ns + 1 for ns in more.values())


def _between_ns(trace: Trace) -> float:
    """The mean time from the end of a step to the start of the next, which the peer leaves out."""
    steps = complete_steps(trace)
    gaps_ns = steps.end_ns - np.maximum.accumulate(steps.work_end_ns)
    return float(gaps_ns.mean())


def test_every_kernel_has_the_same_times(resnet: Pair) -> None:
    ours = kernel_table(resnet.ours).set_index("full_name")
    theirs = resnet.theirs.kernel_stat
    assert set(ours.index) == set(theirs.index)
    assert list(ours.index[:10]) == list(theirs.index[:10])
    theirs = theirs.loc[ours.index]
    assert (ours["total_ns"] == theirs["sum"].astype("int64") * US).all()
    assert (ours["call_count"] == theirs["count"]).all()
    assert (ours["max_ns"] == theirs["max"].astype("int64") * US).all()
    assert np.allclose(ours["blocks_per_sm"], theirs["blocks_per_sm"].astype(float), rtol=1e-6)


@pytest.mark.parametrize("name", [NCCL, CONTROL, H100, MI300])
def test_todays_kernels_have_the_same_statistics(name: str) -> None:
    pair = _read(name)
    ours = kernel_table(pair.ours).set_index("full_name")
    theirs = pair.theirs.kernel_stat.loc[ours.index]
    assert len(ours) == len(pair.theirs.kernel_stat)
    assert (ours["call_count"] == theirs["count"]).all()
    # it keeps microseconds as floats, and an event's end instead of its duration
    for mine, its in {"total": "sum", "mean": "mean", "max": "max", "min": "min"}.items():
        assert np.allclose(ours[f"{mine}_ns"], theirs[its].astype(float) * US, rtol=1e-6, atol=1)


def test_kernels_by_launch_are_the_same(resnet: Pair) -> None:
    # kernels too short for the clock, 0 µs: they have no mean by time, for which it writes 0
    ours = kernel_table(resnet.ours, by="launch").fillna({"blocks_per_sm": 0})
    shown = ours["grid"].str.replace(",", ", ") + ours["block"].str.replace(",", ", ")
    mine: dict[Any, Any] = {
        (row.full_name, row.operator, where, row.registers_per_thread, row.shared_memory_bytes): (
            row.call_count,
            row.total_ns,
            row.blocks_per_sm,
        )
        for row, where in zip(ours.itertuples(), shown, strict=True)
    }
    theirs = {
        (a.name, a.op_name, f"{a.grid}{a.block}", a.regs_per_thread, a.shared_memory): (
            a.calls,
            a.total_duration * US,
            pytest.approx(a.avg_blocks_per_sm),
        )
        for a in resnet.theirs.kernel_list_groupby_name_op
    }
    assert mine == theirs


def test_every_operator_has_the_same_times(resnet: Pair) -> None:
    ours = operator_table(resnet.ours).set_index("name")
    theirs = {op.name: op for op in resnet.theirs.op_list_groupby_name}
    assert set(ours.query("kind == 'operator'").index) == set(theirs)
    for op in theirs.values():
        mine = ours.loc[op.name]
        assert mine["host_total_ns"] == op.host_duration * US, op.name
        assert mine["host_self_ns"] == op.self_host_duration * US, op.name
        assert mine["device_total_ns"] == op.device_duration * US, op.name
        assert mine["device_self_ns"] == op.self_device_duration * US, op.name
        assert mine["call_count"] == op.calls, op.name


# --- where they differ, and why --------------------------------------------------------------


def test_occupancy_leaves_out_kernels_that_report_none(resnet: Pair) -> None:
    # Kineto writes 0 where it could not reckon an occupancy: the peer averages the zeros in.
    (device,) = device_metrics(resnet.ours)
    start_ns, end_ns = stepped_span(resnet.ours)
    kernels = resnet.ours.kernels
    inside = kernels["end_ns"].clip(upper=end_ns) - kernels["start_ns"].clip(lower=start_ns)
    weight = inside.clip(lower=0)
    occupancy = kernels["occupancy_share"]
    assert (occupancy == 0).any()
    with_zeros = (occupancy * weight).sum() / weight.sum()
    theirs = resnet.theirs.gpu_metrics_parser.avg_occupancy_per_device[0] / 100
    assert with_zeros == pytest.approx(theirs, rel=1e-6)
    assert device.occupancy_share is not None
    assert device.occupancy_share > theirs


def test_a_kernels_occupancy_leaves_out_its_runs_that_report_none(resnet: Pair) -> None:
    ours = kernel_table(resnet.ours).set_index("full_name")
    theirs = resnet.theirs.kernel_stat.loc[ours.index]["occupancy"].astype(float) / 100
    all_report = ours["no_occupancy_count"] == 0
    assert 0 < all_report.sum() < len(ours)
    assert np.allclose(ours["occupancy_share"][all_report], theirs[all_report], rtol=1e-6)
    assert (ours["occupancy_share"].fillna(0) >= theirs - 1e-9).all()


@pytest.mark.parametrize("name", [NCCL, CONTROL, H100, MI300])
def test_kernels_on_matrix_units_are_the_peers_and_those_with_names_that_it_does_not_know(
    name: str,
) -> None:
    # Its list knows cuDNN's `xmma_implicit_gemm` but not `sm80_xmma_fprop_implicit_gemm`, ends
    # before flash attention, and has no name of AMD's.
    pair = _read(name)
    ours = kernel_table(pair.ours).set_index("full_name")["uses_matrix_unit"]
    theirs = pair.theirs.kernel_stat["tc_used"].loc[ours.index]
    assert set(ours[theirs]) <= {True}
    later = ours[(ours == True) & ~theirs]  # noqa: E712 (objects: None is neither)
    known = "_xmma_(?:fprop|dgrad|wgrad)_|flash_fwd|^Cijk_|^attn_fwd|^igemm_|ImplicitGemm"
    assert later.index.str.contains(known).all()


def test_the_counters_that_it_adds_to_a_trace_are_known_as_derived(resnet: Pair) -> None:
    written = resnet.theirs.gpu_metrics_parser.get_gpu_metrics()
    counters = [json.loads(text) for text in written]
    table = counter_table(trace_of(document={"traceEvents": counters}))
    assert table["sample_count"].sum() == len(counters)
    assert set(table["derived_by"]) == {"torch-tb-profiler"}
    assert sorted(table["series"]) == ["Est. SM Efficiency", "GPU Utilization"]


@pytest.mark.parametrize("name", [NCCL, CONTROL])
def test_nccl_kernels_are_communication(name: str) -> None:
    # The peer looks for kernels with the External id of an `nccl:*` range. Since torch 1.12 they
    # carry another, so that it counts their time as computation, and the host's ranges as
    # communication.
    pair = _read(name)
    ours, theirs = step_breakdown(pair.ours).mean_parts_ns, pair.their_mean_ns
    both = ours["kernel"] + ours["communication"]
    # its kernel time is ours and the collectives' (in one file the host ranges add a little)
    assert theirs["kernel"] == pytest.approx(both, rel=0.001)
    assert ours["communication"] > 20 * theirs["communication"]
    collectives = pair.ours.kernels.query("is_collective")
    assert ours["communication"] <= collectives["duration_ns"].sum()
    (device,) = device_metrics(pair.ours)
    utilization = pair.theirs.gpu_metrics_parser.gpu_utilization[device.id]
    assert device.kernel_busy_share == pytest.approx(utilization, rel=1e-6)


@pytest.mark.parametrize("name", [H100, MI300])
def test_a_step_is_counted_once(name: str) -> None:
    # Traces repeat `ProfilerStep#N` on the device (gpu_user_annotation): the peer takes it for
    # one more step.
    pair = _read(name)
    assert pair.theirs.steps_names == ["6", "6"]
    assert step_breakdown(pair.ours).numbers == (6,)


def test_hopper_kernels_use_tensor_cores() -> None:
    # The peer's list of names ends with Ampere: it misses flash attention and cutlass 3.
    pair = _read(H100)
    (device,) = device_metrics(pair.ours)
    assert device.tensor_core_share is not None
    assert 0.6 < pair.theirs.tc_used_ratio < device.tensor_core_share < 0.8


def test_matrix_cores_are_seen() -> None:
    # The peer knows NVIDIA's names alone, and so advises mixed precision to a run in bfloat16.
    pair = _read(MI300)
    (device,) = device_metrics(pair.ours)
    assert pair.theirs.tc_used_ratio == 0
    assert device.tensor_core_share is not None
    assert device.tensor_core_share > 0.5


def test_driver_launches_find_their_operators() -> None:
    # The peer does not read `cuda_driver` calls: what they launch belongs to "CallTreeRoot" there.
    pair = _read(H100)
    theirs = {op.name: op.self_device_duration * US for op in pair.theirs.op_list_groupby_name}
    ours = operator_table(pair.ours).set_index("name")["device_self_ns"]
    assert theirs.get("aten::addmm", 0) < ours["aten::addmm"]
    kernels = pair.ours.device_events["duration_ns"].sum()
    assert ours.sum() == kernels
    assert sum(theirs.values()) < 0.9 * kernels


def test_a_step_that_is_all_kernel_is_100_percent() -> None:
    # Where kernels leave nothing of the steps, the peer begins anew for every category after it
    # (overall_parser.py: `if slots`), and shows 200 %.
    rows: list[list[Any]] = [
        ["user_annotation", "ProfilerStep#1", 0, 1000],
        ["cpu_op", "aten::mm", 5, 900, {"External id": 1}],
        ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 1, "External id": 1}],
        ["kernel", "gemm", 0, 1000, {"correlation": 1, "External id": 1}],
    ]
    parts = step_breakdown(trace_of(rows)).mean_parts_ns
    assert parts["kernel"] == sum(parts.values()) == 1000 * US
    pair = Pair(trace_of(rows), _their_profile(lambda data: _from_rows(data, rows)))
    assert sum(pair.their_mean_ns.values()) == pytest.approx(2 * pair.their_step_ns, rel=0.01)


def _from_rows(data: Any, rows: list[list[Any]]) -> Any:
    import tracebuild

    return data.from_json("worker", "1", tracebuild.document(rows=rows))
