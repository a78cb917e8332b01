"""Collectives of hostile traces: whatever arguments, header and times say, tables are whole."""

import json
import random
from typing import Any

import pytest

from loading import columns_of
from stepscope.base.errors import MissingDataError, UnreadableError
from stepscope.model.trace import Trace, trace_from_columns
from stepscope.tables import RunTable, all_tables

TABLES = (
    "collectives",
    "collective-events",
    "process-groups",
    "ranks",
    "matched-collectives",
    "clock-alignment",
    "stragglers",
)
ODD: tuple[Any, ...] = (
    None, -1, 0, 1, 3, True, 2**31, 2**53, 2**63, 2**70, -(2**63), 1e300, "", "x", "[", "NaN", "0",
    "[0, 1]", "[0, 1, ..., 99999999]", [1, 2], {"a": 1}, [[[]]], "Float", "allreduce",
    "[[1,2],[3]]", [["a"]], [[2**70]],
)  # fmt: skip
ARGUMENTS = (
    "Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype",
    "Process Group Name", "Process Group Description", "Process Group Ranks", "Seq", "Rank",
    "Global rank start", "Global rank stride", "Src Rank", "Dst Rank", "Is asynchronized op",
    "Input Dims", "Input type", "correlation", "device", "stream",
)  # fmt: skip
EVENTS = (
    ("kernel", "ncclDevKernel_AllReduce_x"),
    ("kernel", "ncclDevKernel_SendRecv"),
    ("kernel", "gemm"),
    ("cpu_op", "record_param_comms"),
    ("cpu_op", "c10d::_allgather_base_"),
    ("user_annotation", "nccl:all_gather"),
    ("user_annotation", "nccl:send 0->1"),
    ("user_annotation", "gloo:all_reduce"),
    ("user_annotation", "ProfilerStep#3"),
    ("cuda_runtime", "cudaLaunchKernel"),
    ("cuda_runtime", "cudaGraphLaunch"),
    ("gpu_memcpy", "Memcpy"),
)


def _event(choose: random.Random) -> dict[str, Any]:
    category, name = choose.choice(EVENTS)
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": choose.choice([0, 1, "x", None]),
        "tid": choose.choice([1, 2, None]),
        "ts": choose.choice([choose.randrange(100), 1e3 * choose.random(), -5, 9e15, 0, None]),
        "dur": choose.choice([choose.randrange(50), -3, 0, 1e12, None, float("inf")]),
        "args": {key: choose.choice(ODD) for key in ARGUMENTS if choose.random() < 0.5},
    }


def _header(choose: random.Random) -> dict[str, Any]:
    group = {
        "pg_name": choose.choice(ODD),
        "pg_size": choose.choice(ODD),
        "pg_desc": choose.choice(ODD),
        "backend_config": choose.choice(ODD),
        "ranks": choose.choice([None, 5, [0, 1], ["a", None, 2**80], "[0, 1]"]),
    }
    groups = choose.choice([None, 5, "[", [group], [group, group]])
    info = {"rank": choose.choice(ODD), "world_size": choose.choice(ODD), "pg_config": groups}
    return {
        "distributedInfo": choose.choice([None, 5, [], info, info, info]),
        "baseTimeNanoseconds": choose.choice([0, 10**18, 2**62, 2**70, -(2**70), "x"]),
        "host_name": choose.choice(["a", "b", 5, None]),
        "deviceProperties": choose.choice([5, None, [5], [{"id": 0, "name": 5}], {}]),
    }


def _traces(choose: random.Random) -> list[Trace]:
    traces = []
    for rank in range(choose.randrange(1, 5)):
        events = [_event(choose) for _ in range(choose.randrange(1, 25))]
        document = {**_header(choose), "traceEvents": events}
        try:
            columns = columns_of(json.dumps(document))
        except UnreadableError:  # not one event has a time
            continue
        traces.append(trace_from_columns(columns, worker=f"w{rank}"))
    return traces


@pytest.mark.parametrize("seed", range(40))
def test_odd_traces_cost_no_table(seed: int) -> None:
    traces = _traces(random.Random(seed))  # noqa: S311 - nothing is kept secret by it
    for name in TABLES:
        table = all_tables()[name]
        wanted = {column.name: column.dtype for column in table.schema}
        try:
            if isinstance(table, RunTable):
                frames = [table.build([table.part(trace) for trace in traces])]
            else:
                frames = [table.build(trace) for trace in traces]
        except MissingDataError:
            continue
        for frame in frames:
            assert {str(column): str(of) for column, of in frame.dtypes.items()} == wanted, name
