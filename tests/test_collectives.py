"""Collectives as rows: what belongs together, what is read of whom, and real traces."""

import json
from typing import Any

import numpy as np
import pytest

from loading import ROOT, SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.model.frames.collective_names import kind_of, peers_of, type_of
from stepscope.model.frames.collectives import SCHEMA
from stepscope.model.frames.process_groups import header_groups, members

pytestmark = pytest.mark.frames

US = 1000
REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ANNOTATED = {"Input Dims": [[1024]], "Input type": ["float"]}
TOLD = {
    "Collective name": "allreduce",
    "In msg nelems": 1000,
    "Out msg nelems": 1000,
    "Group size": 4,
    "dtype": "BFloat16",
    "Process Group Name": "7",
    "Process Group Description": "mesh_tp",
    "Process Group Ranks": "[0, 1, 2, 3]",
    "Seq": 12,
    "Rank": 2,
    "Is asynchronized op": True,
}


def _call(
    start: int, correlation: int, *, params: Any = None, name: str = "nccl:all_reduce"
) -> Any:
    """The host's side of a collective, as torch nests it."""
    return [
        ["cpu_op", "c10d::allreduce_", start, 40],
        ["cpu_op", "record_param_comms", start + 5, 30, params or {}],
        ["user_annotation", name, start + 10, 20, ANNOTATED],
        ["cuda_runtime", "cudaLaunchKernelExC", start + 15, 5, {"correlation": correlation}],
    ]


def _kernel(start: int, duration: int, correlation: int, **more: Any) -> list[Any]:
    name = more.pop("name", REDUCE)
    return ["kernel", name, start, duration, {"correlation": correlation, "stream": 20, **more}]


def test_a_kernel_is_the_time_and_its_arguments_tell_the_rest() -> None:
    rows = [*_call(0, 1, params={"Seq": 99}), _kernel(100, 50, 1, **TOLD)]
    [only] = trace_of(rows).collectives.to_dict("records")
    assert (only["start_ns"], only["duration_ns"], only["active_ns"]) == (
        100 * US,
        50 * US,
        50 * US,
    )
    assert (only["call_start_ns"], only["call_end_ns"]) == (5 * US, 35 * US)
    assert (only["kind"], only["backend"], only["dtype"]) == ("all_reduce", "nccl", "bfloat16")
    assert only["in_bytes"] == only["out_bytes"] == only["message_bytes"] == 2000
    assert (only["group"], only["group_description"]) == ("7", "mesh_tp")
    assert (only["group_ranks"], only["group_size"], only["group_rank"]) == ("[0,1,2,3]", 4, 2)
    assert (only["sequence"], only["stream"], only["kernel_count"]) == (12, 20, 1)
    assert only["is_async"] is True
    assert only["is_timed"]


def test_what_the_kernel_lacks_comes_from_the_call_around_its_launch() -> None:
    [only] = trace_of([*_call(0, 1, params=TOLD), _kernel(100, 50, 1)]).collectives.to_dict(
        "records"
    )
    assert (only["group"], only["sequence"], only["message_bytes"]) == ("7", 12, 2000)


def test_before_torch_2_1_the_annotation_tells_kind_and_size() -> None:
    rows = [*_call(0, 1, name="nccl:all_to_all"), _kernel(100, 50, 1, name="ncclKernel_SendRecv")]
    [only] = trace_of(rows).collectives.to_dict("records")
    assert (only["kind"], only["message_bytes"], only["dtype"]) == ("all_to_all", 4096, "float32")
    assert not isinstance(only["group"], str)
    assert np.isnan(only["group_size"])
    assert only["sequence"] == -1


def test_kernels_of_one_call_are_one_collective() -> None:
    rows = [
        *_call(0, 1),
        ["cuda_runtime", "cudaLaunchKernelExC", 22, 5, {"correlation": 2}],
        _kernel(100, 50, 1),
        _kernel(170, 30, 2),
    ]
    [only] = trace_of(rows).collectives.to_dict("records")
    assert (only["kernel_count"], only["duration_ns"], only["active_ns"]) == (2, 100 * US, 80 * US)


def test_kernels_that_a_graph_replays_are_collectives_each() -> None:
    rows = [
        ["cuda_runtime", "cudaGraphLaunch", 0, 10, {"correlation": 5}],
        _kernel(100, 50, 5),
        _kernel(170, 30, 5),
    ]
    frame = trace_of(rows).collectives
    assert list(frame["active_ns"]) == [50 * US, 30 * US]
    assert set(frame["call"]) == {-1}


def test_the_hosts_call_is_never_time_of_a_devices_library() -> None:
    [only] = trace_of(_call(0, 1)).collectives.to_dict("records")
    assert not only["is_timed"]
    assert (only["duration_ns"], only["active_ns"], only["message_bytes"]) == (0, 0, 4096)


def test_gloos_annotation_is_its_time() -> None:
    header = {"pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]}]}
    rows = [
        ["cpu_op", "c10d::allreduce_", 0, 10],
        ["user_annotation", "gloo:all_reduce", 20, 300, {**ANNOTATED, "tid": 9}],
    ]
    [only] = trace_of(rows, distributedInfo=header).collectives.to_dict("records")
    assert (only["start_ns"], only["duration_ns"], only["kernel_count"]) == (20 * US, 300 * US, 0)
    assert (only["backend"], only["group"], only["group_ranks"]) == ("gloo", "0", "[0,1]")
    assert (only["group_size"], only["message_bytes"], only["is_timed"]) == (2, 4096, True)


def test_a_wait_and_a_call_that_says_nothing_are_no_collectives() -> None:
    wait = ["cpu_op", "record_param_comms", 0, 5, {"Collective name": "wait"}]
    assert not len(trace_of([wait, ["cpu_op", "record_param_comms", 10, 5]]).collectives)


@pytest.mark.parametrize(
    ("operator", "kernel", "kind", "backend"),
    [
        ("symm_mem::multimem_all_reduce_", "multimem_all_reduce_kernel", "all_reduce", "symm_mem"),
        ("_C_custom_ar::all_reduce", "vllm::cross_device_reduce_1stage", "all_reduce", "custom"),
    ],
)
def test_kernels_that_reach_into_other_devices_are_collectives_of_their_operator(
    operator: str, kernel: str, kind: str, backend: str
) -> None:
    shapes = {"Input Dims": [[8, 16], []], "Input type": ["c10::BFloat16", ""]}
    rows = [
        ["cpu_op", operator, 0, 20, shapes],
        ["cuda_runtime", "cudaLaunchKernel", 5, 5, {"correlation": 1}],
        _kernel(100, 50, 1, name=kernel),
    ]
    [only] = trace_of(rows).collectives.to_dict("records")
    assert (only["kind"], only["backend"], only["message_bytes"]) == (kind, backend, 256)


def test_the_larger_side_is_the_message_and_tells_the_groups_size() -> None:
    shapes = {"Input Dims": [[4096], [1024], []], "Input type": ["float", "float", ""]}
    rows = [
        ["cpu_op", "c10d::_allgather_base_", 0, 40, shapes],
        ["user_annotation", "nccl:_all_gather_base", 10, 20, ANNOTATED],
        ["cuda_runtime", "cudaLaunchKernel", 12, 5, {"correlation": 1}],
        _kernel(100, 50, 1, name="ncclKernel_AllGather_RING_LL"),
    ]
    [only] = trace_of(rows).collectives.to_dict("records")
    assert (only["kind"], only["in_bytes"], only["out_bytes"]) == ("all_gather", 4096, 16384)
    assert (only["message_bytes"], only["group_size"]) == (16384, 4)


def test_point_to_point_says_from_whom_to_whom() -> None:
    rows = [*_call(0, 1, name="nccl:recv 1<-0"), _kernel(100, 9, 1, name="ncclDevKernel_SendRecv")]
    [only] = trace_of(rows).collectives.to_dict("records")
    assert (only["kind"], only["source_rank"], only["destination_rank"]) == ("recv", 0, 1)


def test_on_rocm_nccls_names_are_rccls_and_its_kernels_name_no_kind() -> None:
    rows = [
        [*row[:1], "hipLaunchKernel", *row[2:]] if row[0] == "cuda_runtime" else row
        for row in _call(0, 1, name="nccl:_reduce_scatter_base")
    ]
    generic = _kernel(100, 50, 1, name="ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)")
    groups = [
        {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "ranks": [0, 1]},
        {"pg_name": "1", "pg_desc": "undefined", "backend_config": "cpu:gloo", "ranks": [0, 1]},
    ]
    trace = trace_of([*rows, generic], distributedInfo={"pg_config": groups})
    [only] = trace.collectives.to_dict("records")
    assert (only["backend"], only["kind"]) == ("rccl", "reduce_scatter")
    assert (only["group"], only["group_size"]) == ("0", 2)


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("_allgather_base", "all_gather"),
        ("allgather_into_tensor_coalesced", "all_gather"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_reduce_barrier", "barrier"),
        ("all_to_allv", "all_to_allv"),
        ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL", "reduce_scatter"),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t", "send_recv"),
        ("_broadcast_oop", "broadcast"),
        ("hcom_allReduce__471_0_1", "all_reduce"),
        ("oneccl_allreduce_medium", "all_reduce"),
        ("send 0->1", "send"),
        ("coalesced", "coalesced"),
        ("wait", ""),
        ("something", "other"),
    ],
)
def test_kinds_are_told_by_their_words(words: str, kind: str) -> None:
    assert kind_of(words) == kind


def test_types_and_peers_are_told_by_their_words() -> None:
    assert [type_of(text) for text in ("c10::BFloat16", "Long", "Float8_e4m3fn", "TensorList")] == [
        ("bfloat16", 2),
        ("int64", 8),
        ("float8_e4m3fn", 1),
        None,
    ]
    assert (peers_of("send 3->5"), peers_of("recv 3<-5"), peers_of("x")) == ((3, 5), (5, 3), None)


def test_a_shortened_list_of_ranks_is_made_whole_or_left_out() -> None:
    short = "[0, 8, ..., 248]"
    assert members(short, 32, 0, 8) == tuple(range(0, 256, 8))
    assert members(short, 32, -1, -1) == ()
    assert members("[1, 5]", 2, -1, -1) == (1, 5)


def test_a_header_of_other_types_names_no_group() -> None:
    odd: list[Any] = [None, [], {"pg_config": 5}, {"pg_config": [5, {}]}, {"pg_config": "["}]
    for info in odd:
        assert header_groups({"distributedInfo": info}) == {}
    ranks = {"pg_config": [{"pg_name": 3, "pg_size": -1, "ranks": [0, "x", -4, 10**12, 2]}]}
    assert header_groups({"distributedInfo": ranks})["3"].ranks == (0, 2)


def test_absurd_arguments_are_unknown() -> None:
    odd = {
        "In msg nelems": -5,
        "Out msg nelems": 1e300,
        "Group size": -1,
        "dtype": "Sofa",
        "Seq": -9,
    }
    [only] = trace_of([_kernel(0, 5, 1, **odd)]).collectives.to_dict("records")
    assert np.isnan([only["in_bytes"], only["out_bytes"], only["group_size"]]).all()


@pytest.mark.parametrize("name", shared_trace_names())
def test_time_of_collectives_is_time_of_their_kernels_on_real_traces(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    frame, events = trace.collectives, trace.device_events
    assert list(frame) == [column.name for column in SCHEMA]
    assert {c: str(t) for c, t in frame.dtypes.items()} == {c.name: c.dtype for c in SCHEMA}
    on_device = frame[frame["kernel_count"] > 0]
    kernels = events[events["is_collective"]]
    assert on_device["active_ns"].sum() == kernels["duration_ns"].sum()
    assert on_device["kernel_count"].sum() == len(kernels)
    assert not frame.loc[~frame["is_timed"], "active_ns"].any()


@pytest.mark.skipif(not SHARED_TRACES.is_dir(), reason="the shared traces are not here")
@pytest.mark.parametrize(
    ("name", "kernels_us"),
    [
        ("hta/trace_diff/control/control.json.gz", 163_535),
        ("hta/nccl_parser_config/nccl_data.json.gz", 46_876),
        ("hta/trace_filter/sampled_rank-0.json.gz", 396_199),
    ],
)
def test_no_nccl_time_is_lost_where_torch_tb_profiler_counts_the_hosts_launch(
    name: str, kernels_us: int
) -> None:
    """It links kernels by External id, which has not been the annotation's since torch 1.12."""
    frame = trace_at(SHARED_TRACES / name).collectives
    assert frame["is_timed"].all()
    assert frame["active_ns"].sum() // US == kernels_us
    assert frame["message_bytes"].notna().all()


def test_gloo_of_a_real_run_has_group_and_bytes() -> None:
    [path] = (ROOT / "sample_logs/ranks/one_slow_rank").glob("rank0*")
    frame = trace_at(path).collectives
    assert set(frame["group_ranks"]) == {"[0,1]"}
    assert set(frame["message_bytes"]) == {150538 * 4}
    assert json.loads(frame["group_ranks"].iloc[0]) == [0, 1]
