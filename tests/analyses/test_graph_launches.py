"""Launches of recorded graphs: what each replay did, which graph it was, and what is missing."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from loading import SHARED_TRACES, rows_of, trace_at, trace_of
from stepscope.analyses.core.graph_launches import (
    graph_launch_table,
    graph_node_table,
    graph_table,
)
from stepscope.model import intervals
from stepscope.model.trace import Trace

US = 1000
Kernel = tuple[str, float, float]


def replay(number: int, launch: float, *kernels: Kernel, **more: Any) -> list[list[Any]]:
    """A launch at a time, and its kernels: name, start, duration."""
    rows: list[list[Any]] = [
        ["cuda_runtime", "cudaGraphLaunch", launch, 4, {"correlation": number}]
    ]
    for name, start, duration in kernels:
        category = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
        rows.append([category, name, start, duration, {"correlation": number, **more}])
    return rows


TWO_GRAPHS = [
    ["user_annotation", "decode", 0, 300],
    *replay(1, 0, ("a", 10, 10), ("Memcpy DtoD", 15, 10), ("b", 30, 5)),
    *replay(2, 50, ("a", 60, 12), ("Memcpy DtoD", 72, 10), ("b", 90, 5)),
    *replay(3, 100, ("b", 110, 5)),
    *replay(4, 150),
    ["cuda_runtime", "cudaLaunchKernel", 190, 4, {"correlation": 9}],
    ["kernel", "a", 200, 10, {"correlation": 9}],
]


def test_a_replay_is_its_call_and_what_it_launched() -> None:
    table = graph_launch_table(trace_of(TWO_GRAPHS))
    calls = table[["event", "name", "thread", "start_ns", "host_ns", "graph", "graph_id"]]
    on_host = "cudaGraphLaunch", "100/100"
    assert rows_of(calls) == [
        (1, *on_host, 0, 4 * US, 0, -1),
        (5, *on_host, 50 * US, 4 * US, 0, -1),
        (9, *on_host, 100 * US, 4 * US, 1, -1),
        (11, *on_host, 150 * US, 4 * US, 2, -1),
    ]
    replays = table.drop(columns=list(calls.columns))
    assert rows_of(replays.astype(object).where(replays.notna(), None)) == [
        # device, kernels, events, missing, delay, span, busy, gap
        (0, 2, 3, 0, 10 * US, 25 * US, 20 * US, 5 * US),
        (0, 2, 3, 0, 10 * US, 35 * US, 27 * US, 8 * US),
        (0, 1, 1, 0, 10 * US, 5 * US, 5 * US, 0),
        (-1, 0, 0, 0, None, 0, 0, 0),
    ]


def test_graphs_are_told_apart_by_what_they_do() -> None:
    table = graph_table(trace_of(TWO_GRAPHS))
    shown = table.drop(columns=["busy_share", "kernels_per_second"])
    assert rows_of(shown) == [
        # graph, id, replays, kernels, events, short ones, host, span, busy, gap
        (0, -1, 2, 2, 3, 0, 8 * US, 60 * US, 47 * US, 13 * US),
        (1, -1, 1, 1, 1, 0, 4 * US, 5 * US, 5 * US, 0),
        (2, -1, 1, 0, 0, 0, 4 * US, 0, 0, 0),
    ]
    assert table["busy_share"].to_numpy()[:2] == pytest.approx([47 / 60, 1])
    assert table["kernels_per_second"].to_numpy()[0] == pytest.approx(4 / 60e-6)
    assert np.isnan(table["busy_share"].to_numpy()[2])


def test_nodes_are_places_in_the_replay() -> None:
    first = graph_node_table(trace_of(TWO_GRAPHS))
    shown = first[first["graph"] == 0].drop(columns=["graph", "graph_id"])
    assert rows_of(shown) == [
        (0, -1, "a", 2, 22 * US, 11 * US, 10 * US, 12 * US),
        (1, -1, "Memcpy DtoD", 2, 20 * US, 10 * US, 10 * US, 10 * US),
        (2, -1, "b", 2, 10 * US, 5 * US, 5 * US, 5 * US),
    ]


def test_a_replay_of_a_numbered_graph_that_left_less_is_short_of_it() -> None:
    told = {"graph id": 5}
    rows = [
        *replay(1, 0, ("a", 10, 10), ("b", 30, 5), **told),
        *replay(2, 50, ("a", 60, 12), **told),
    ]
    trace = trace_of(rows)
    assert graph_launch_table(trace)["missing_count"].tolist() == [0, 1]
    [graph] = rows_of(graph_table(trace))
    assert (graph.graph_id, graph.replay_count, graph.under_recorded_count) == (5, 2, 1)


def test_numbered_nodes_are_found_again_wherever_they_ran() -> None:
    def node(number: int, name: str, start: float, correlation: int) -> list[Any]:
        more = {"correlation": correlation, "graph id": 5, "graph node id": number}
        return ["kernel", name, start, 5, more]

    rows = [
        *replay(1, 0),
        node(7, "a", 10, 1),
        node(8, "b", 20, 1),
        *replay(2, 50),
        node(8, "b", 60, 2),
        node(7, "a", 70, 2),
    ]
    table = graph_node_table(trace_of(rows))
    shown = table[["node_id", "name", "replay_count", "total_ns"]]
    assert sorted(rows_of(shown)) == [(7, "a", 2, 10 * US), (8, "b", 2, 10 * US)]


@pytest.mark.parametrize(
    ("name", "kernel_count"),
    [
        ("tracelens/inference/sglang_decode/sglang_Qwen3-8B_decode.json.gz", 544),
        ("tracelens/inference/vllm_decode_full/graph_execution.json.gz", 421),
    ],
)
def test_decoding_replays_one_graph(name: str, kernel_count: int) -> None:
    path = SHARED_TRACES / name
    if not path.exists():
        pytest.skip("the shared traces are not beside the clone")
    [graph] = rows_of(graph_table(trace_at(path)))
    assert (graph.replay_count, graph.kernel_count) == (1, kernel_count)
    assert 0.9 < graph.busy_share <= 1


KERNELS = st.tuples(st.sampled_from("ab"), st.integers(0, 50), st.integers(0, 20))


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    rows = [["kernel", "other", 0, 1]]
    for number, kernels in enumerate(draw(st.lists(st.lists(KERNELS, max_size=5), max_size=5))):
        rows += replay(number, 10 * number, *kernels)
    return trace_of(rows)


@examples(40)
@given(traces())
def test_each_launch_against_a_slow_count(trace: Trace) -> None:
    calls, events = trace.runtime_calls, trace.device_events
    contents: list[list[str]] = []
    for row in rows_of(graph_launch_table(trace)):
        number = int(calls.loc[calls["event"] == row.event, "correlation"].iloc[0])
        mine = events[events["correlation"] == number]
        start, end = mine["start_ns"].to_numpy(), mine["end_ns"].to_numpy()
        span = int(end.max() - start.min()) if len(mine) else 0
        busy = intervals.duration_ns(intervals.union(start, end))
        contents.append([str(name) for name in mine["name"]])
        assert row.event_count == len(mine)
        assert (row.device_span_ns, row.device_busy_ns, row.gap_ns) == (span, busy, span - busy)
    graphs = graph_launch_table(trace)["graph"].tolist()
    same = [graphs[contents.index(content)] for content in contents]
    assert graphs == same
    assert len(set(graphs)) == len({tuple(content) for content in contents})
