"""All-to-all exchanges: splits as kineto and gloo write them, and the traffic of a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracebuild
from analyses.all_to_all import record
from loading import fresh_trace_at, trace_of
from stepscope.analyses.communication.all_to_all import (
    NOT_RECORDED,
    TRUNCATED,
    all_to_all_splits,
    all_to_all_traffic,
    exchange_part,
    group_traffic,
    parse_splits,
)
from stepscope.model.trace import Trace

pytestmark = pytest.mark.frames

RECORDED = Path(record.__file__).parent
KERNEL = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
FLOAT = 4


def exchanging(rank: int, *exchanges: dict[str, Any], size: int = 2) -> Trace:
    """A rank of a group of all, whose kernels of exchanges have these arguments."""
    rows: list[tracebuild.Row] = [
        [
            "kernel",
            KERNEL,
            100 * at,
            10,
            {
                "Collective name": "all_to_allv",
                "dtype": "Float",
                "Group size": size,
                "Process Group Name": "ep",
                "Process Group Description": "experts",
                "Process Group Ranks": str(list(range(size))),
                "Seq": at,
                "stream": 20,
                **exchange,
            },
        ]
        for at, exchange in enumerate(exchanges)
    ]
    return trace_of(rows, distributedInfo={"rank": rank, "world_size": size, "backend": "nccl"})


def splits(sent: list[int], received: list[int], width: int = 1) -> dict[str, Any]:
    """The arguments of an exchange of rows of floats."""
    return {
        "In split size": str(sent),
        "Out split size": str(received),
        "In msg nelems": sum(sent) * width,
        "Out msg nelems": sum(received) * width,
    }


@pytest.mark.parametrize(
    ("text", "size", "parsed"),
    [
        ("[8, 16]", 2, (8, 16)),
        ("[0, 0]", 2, (0, 0)),
        ("[]", 3, (1, 1, 1)),
        ("[8, 16, ...]", 40, TRUNCATED),
        ("[8, 16]", 3, NOT_RECORDED),
        ("[8, -1]", 2, NOT_RECORDED),
        ("[8, 1.5]", 2, NOT_RECORDED),
        ("[8,", 2, NOT_RECORDED),
        ("8", 1, NOT_RECORDED),
        ("[]", 0, NOT_RECORDED),
        (None, 2, NOT_RECORDED),
    ],
)
def test_splits_are_whole_lists_or_unknown(text: str | None, size: int, parsed: object) -> None:
    assert parse_splits(text, size) == parsed


def test_parts_of_exchanges_are_bytes_to_and_from_each_rank() -> None:
    trace = exchanging(
        1,
        splits([1, 3], [2, 2], width=10),
        splits([], []) | {"In msg nelems": 8, "Out msg nelems": 8},
        splits([0, 0], [5, 0]),
        {"In split size": "[1, 2, ...]", "Out split size": "[1, 2, ...]", "In msg nelems": 8},
        {"In msg nelems": 8},
    )
    rows = all_to_all_splits(trace)
    columns = ["group_rank", "sent_bytes", "bytes_to_ranks", "bytes_from_ranks", "reason"]
    assert rows[columns].to_numpy().tolist() == [
        [1, 160.0, "[40, 120]", "[80, 80]", None],
        [1, 32.0, "[16, 16]", "[16, 16]", None],
        [1, 0.0, "[0, 0]", "[20, 0]", None],
        [1, 32.0, None, None, TRUNCATED],
        [1, 32.0, None, None, NOT_RECORDED],
    ]


def test_an_empty_list_of_an_exchange_of_lists_is_not_equal_parts() -> None:
    arguments = splits([], []) | {"Collective name": "all_to_all", "In msg nelems": 8,
                                  "Group size": 2, "dtype": "Float"}  # fmt: skip
    rows: list[tracebuild.Row] = [
        ["cpu_op", "c10d::alltoall_", 0, 50],
        ["cpu_op", "record_param_comms", 10, 20, arguments],
        ["cuda_runtime", "cudaLaunchKernel", 15, 5, {"correlation": 1}],
        ["kernel", KERNEL, 100, 10, {"correlation": 1}],
    ]
    assert list(all_to_all_splits(trace_of(rows))["reason"]) == [NOT_RECORDED]
    rows[0] = ["cpu_op", "c10d::alltoall_base_", 0, 50]
    assert list(all_to_all_splits(trace_of(rows))["bytes_to_ranks"]) == ["[16, 16]"]


def test_traffic_and_imbalance_of_a_group() -> None:
    first = exchange_part(exchanging(0, splits([1, 3], [1, 1]), splits([1, 3], [1, 1])))
    second = exchange_part(exchanging(1, splits([1, 1], [3, 1]), splits([1, 1], [3, 1])))
    expected = [
        ["ep", "experts", 0, 0, 2, 8.0, 4 / 3],
        ["ep", "experts", 0, 1, 2, 24.0, 4 / 3],
        ["ep", "experts", 1, 0, 2, 8.0, 4 / 3],
        ["ep", "experts", 1, 1, 2, 8.0, 4 / 3],
    ]
    assert all_to_all_traffic([first, second]).to_numpy().tolist() == expected
    assert all_to_all_traffic([second, first]).to_numpy().tolist() == expected


def test_the_imbalance_is_unknown_without_all_ranks_and_exchanges() -> None:
    whole = exchanging(0, splits([1, 3], [1, 1]), splits([1, 3], [1, 1]))
    (alone,) = group_traffic([exchange_part(whole)])
    assert alone.missing == (1,)
    assert np.isnan(alone.imbalance)
    table = all_to_all_traffic([exchange_part(whole)])
    assert table[["sender", "receiver", "total_bytes"]].to_numpy().tolist() == [
        [0, 0, 8],
        [0, 1, 24],
    ]
    cut = {"In split size": "[1, ...]", "Out split size": "[1, ...]", "In msg nelems": 8}
    other = exchanging(1, splits([1, 1], [3, 1]), cut)
    (partly,) = group_traffic([exchange_part(whole), exchange_part(other)])
    assert (partly.missing, partly.withheld_count, partly.reasons) == ((), 1, (TRUNCATED,))
    assert np.isnan(partly.imbalance)
    shorter = exchanging(1, splits([1, 1], [3, 1]))
    (uneven,) = group_traffic([exchange_part(whole), exchange_part(shorter)])
    assert np.isnan(uneven.imbalance)


def test_recorded_exchanges_of_gloo_have_the_parts_that_were_sent() -> None:
    paths = [RECORDED / f"rank{rank}.pt.trace.json.gz" for rank in range(record.RANKS)]
    traces = [fresh_trace_at(path) for path in paths]
    (traffic,) = group_traffic([exchange_part(trace) for trace in traces])
    ranks = range(record.RANKS)
    row_bytes = record.COLUMNS * FLOAT
    truth = [
        [
            record.TIMES * record.sent_rows(sender, receiver) * row_bytes + record.EQUAL * FLOAT
            for receiver in ranks
        ]
        for sender in ranks
    ]
    assert traffic.sent_bytes.tolist() == truth
    received = np.sum(truth, axis=0)
    assert traffic.imbalance == pytest.approx(received.max() / received.mean())
    from_ranks = all_to_all_splits(traces[2])["bytes_from_ranks"].iloc[0]
    assert from_ranks == str([record.sent_rows(sender, 2) * row_bytes for sender in ranks])


def test_other_traces_have_none() -> None:
    trace = trace_of([["cpu_op", "aten::mm", 0, 10]])
    assert len(all_to_all_splits(trace)) == len(all_to_all_traffic([exchange_part(trace)])) == 0
