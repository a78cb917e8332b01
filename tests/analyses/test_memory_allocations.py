"""Pairs of allocation and release: what goes in comes out; and who asked for it."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import SHARED_TRACES, rows_of, shared_trace_names, trace_at, trace_of
from memorybuild import in_turn, memory
from stepscope.analyses.memory.allocations import SCHEMA, memory_allocations
from stepscope.analyses.memory.memory_devices import memory_pairs
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace


def _told(trace: Trace) -> list[tuple[Any, ...]]:
    """Bytes, state, and when it was allocated and freed (µs; None: not known)."""
    return [
        (
            row.bytes,
            row.state,
            None if np.isnan(row.allocated_ns) else row.allocated_ns / 1000,
            None if np.isnan(row.freed_ns) else row.freed_ns / 1000,
        )
        for row in rows_of(memory_allocations(trace))
    ]


def test_an_allocation_ends_with_the_next_release_of_its_address() -> None:
    trace = trace_of(in_turn(["+8@1", "+16@2", "-8@1", "+8@1", "-8@1"]))
    assert _told(trace) == [(8, "freed", 0, 2), (16, "held", 1, None), (8, "freed", 3, 4)]
    assert memory_allocations(trace)["lifetime_ns"].tolist()[::2] == [2000, 1000]


def test_what_was_allocated_before_is_only_freed() -> None:
    assert _told(trace_of(in_turn(["-8@1"]))) == [(8, "earlier", None, 0)]


def test_an_address_given_out_twice_shows_that_a_release_was_not_recorded() -> None:
    trace = trace_of(in_turn(["+8@1", "+16@1", "-16@1"]))
    assert _told(trace) == [(8, "lost", 0, None), (16, "freed", 1, 2)]


def test_a_release_of_another_size_is_of_another_allocation() -> None:
    assert _told(trace_of(in_turn(["+8@1", "-16@1"]))) == [
        (8, "lost", 0, None),
        (16, "earlier", None, 1),
    ]


def test_without_addresses_nothing_can_be_paired() -> None:
    assert _told(trace_of(in_turn(["+8", "-8"]))) == [
        (8, "unknown", 0, None),
        (8, "unknown", None, 1),
    ]


def test_the_same_address_on_two_devices_is_two_places() -> None:
    trace = trace_of([memory(0, "+8@1"), memory(1, "+8@1", device=1), memory(2, "-8@1", device=1)])
    assert _told(trace) == [(8, "held", 0, None), (8, "freed", 1, 2)]


def test_who_asked_for_it() -> None:
    trace = trace_of(
        [
            ["python_function", "train.py(7): main", 0, 100],
            ["python_function", "nn.Module: Conv2d_0", 5, 50],
            ["python_function", "torch/nn/modules/conv.py(1): forward", 6, 48],
            ["cpu_op", "aten::conv2d", 10, 20],
            ["cpu_op", "aten::empty", 12, 3],
            memory(13, "+8@1"),
            memory(20, "+16@2"),
            ["cpu_op", "aten::zero_", 60, 10],
            memory(65, "-8@1"),
            memory(99, "-4@9"),
        ]
    )
    empty, conv, earlier = rows_of(memory_allocations(trace))
    assert (empty.operator, empty.module) == ("aten::conv2d (aten::empty)", "nn.Module: Conv2d_0")
    assert (empty.stack, empty.freed_in) == ("train.py(7): main", "aten::zero_")
    assert conv.operator == "aten::conv2d"
    owners = memory_allocations(trace)[["operator", "module", "stack"]].iloc[2]
    assert earlier.state == "earlier"
    assert owners.isna().all()


def test_stacks_are_told_apart_by_their_whole_path() -> None:
    rows: list[Any] = []
    for start, outer in ((0, "a.py(1): a"), (100, "b.py(1): b"), (200, "a.py(1): a")):
        rows += [
            ["python_function", outer, start, 50],
            ["python_function", "c.py(2): c", start + 10, 20],
            memory(start + 15, f"+8@{start + 1}"),
        ]
    stacks = memory_allocations(trace_of(rows))["stack"].tolist()
    assert stacks == ["a.py(1): a;c.py(2): c", "b.py(1): b;c.py(2): c", "a.py(1): a;c.py(2): c"]


def test_old_traces_have_their_stack_in_the_operator() -> None:
    call = {"Call stack": "train.py(3): main"}
    trace = trace_of([["Operator", "aten::mm", 0, 10, call], memory(5, "+8")])
    assert memory_allocations(trace)["stack"].tolist() == ["train.py(3): main"]


def test_deep_stacks_are_cut_to_the_innermost_functions() -> None:
    rows = [["python_function", f"a.py({n}): f", n, 1000 - 2 * n] for n in range(300)]
    (stack,) = memory_allocations(trace_of([*rows, memory(400, "+8@1")]))["stack"]
    assert stack.split(";")[-1] == "a.py(299): f"
    assert len(stack.split(";")) <= 24


def test_events_of_no_size_leave_an_empty_table_with_its_columns() -> None:
    table = memory_allocations(trace_of([memory(0, "+0@1")]))
    assert {name: str(kind) for name, kind in table.dtypes.items()} == {
        column.name: column.dtype for column in SCHEMA
    }
    assert len(table) == 0


sizes = st.sampled_from([8, 16])
events = st.lists(
    st.tuples(st.sampled_from("+-"), sizes, st.sampled_from(["@1", "@2", "@3", ""])), max_size=24
)


@given(events)
def test_bytes_in_are_bytes_out(given_events: list[tuple[str, int, str]]) -> None:
    texts = [f"{sign}{size}{address}" for sign, size, address in given_events]
    trace = trace_of([*in_turn(texts), ["cpu_op", "aten::mm", 0, 1], memory(99, "+0")])
    size = trace.memory["bytes"]
    table = memory_allocations(trace)
    held_bytes = table.groupby("state", observed=False)["bytes"].sum()
    is_in, is_out = table["allocated_ns"].notna(), table["freed_ns"].notna()
    assert table["bytes"][is_in].sum() == size[size > 0].sum()
    assert table["bytes"][is_out].sum() == -size[size < 0].sum()
    assert held_bytes["freed"] == table["bytes"][is_in & is_out].sum()
    assert (is_in | is_out).all()
    assert is_out[table["state"].isin(["freed", "earlier"])].all()
    assert not is_out[table["state"].isin(["held", "lost"])].any()


@given(events)
def test_pairs_are_those_of_a_walk_over_the_events(
    given_events: list[tuple[str, int, str]],
) -> None:
    texts = [f"{sign}{size}{address}" for sign, size, address in given_events]
    trace = trace_of([*in_turn(texts), memory(99, "+0")])
    last: dict[str, int] = {}
    pairs = []
    for place, (sign, size, address) in enumerate(given_events):
        if not address:
            continue
        before = last.get(address)
        if sign == "-" and before is not None and given_events[before] == ("+", size, address):
            pairs.append((before, place))
        last[address] = place
    found = [
        pair
        for device in memory_pairs(trace)
        for pair in zip(device.allocated_at.tolist(), device.freed_at.tolist(), strict=True)
        if -1 not in pair
    ]
    assert sorted(found) == sorted(pairs)


@pytest.mark.parametrize("name", shared_trace_names())
def test_what_real_traces_allocate_is_freed_held_or_said_to_be_unknown(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    try:
        table = memory_allocations(trace)
    except MissingDataError:
        assert not len(trace.memory)
        return
    size = trace.memory["bytes"]
    assert table.loc[table["allocated_ns"].notna(), "bytes"].sum() == size[size > 0].sum()
    assert table.loc[table["freed_ns"].notna(), "bytes"].sum() == -size[size < 0].sum()
    assert (table["lifetime_ns"].dropna() >= 0).all()
    has_addresses = (trace.memory["address"] != -1).any()
    assert ("unknown" in set(table["state"])) is not bool(has_addresses)
    assert "lost" not in set(table["state"])
