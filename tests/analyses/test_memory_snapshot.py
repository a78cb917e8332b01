"""Memory snapshots: what is held, by whom, how fragmented, and what happened before."""

import contextlib
import io
import json
import pickle
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of
from snapshotbuild import MIB, Allocator, frames
from stepscope.analyses.memory.snapshot_history import SCHEMA as HISTORY_SCHEMA
from stepscope.analyses.memory.snapshot_history import histories, history_curve, live_at_peak
from stepscope.analyses.memory.snapshot_tables import HOLDERS as HOLDER_SCHEMA
from stepscope.analyses.memory.snapshot_tables import OOMS as OOM_SCHEMA
from stepscope.analyses.memory.snapshot_tables import POOLS as POOL_SCHEMA
from stepscope.analyses.memory.snapshot_tables import (
    snapshot_holders,
    snapshot_ooms,
    snapshot_pools,
)
from stepscope.base.errors import UnreadableError
from stepscope.ingest import memory_files
from stepscope.model.frames.memory_snapshot import (
    BLOCK_SCHEMA,
    ENTRY_SCHEMA,
    MOST_ROWS,
    SEGMENT_SCHEMA,
    MemorySnapshot,
    snapshot_of,
)


def _trained() -> Allocator:
    """Weights from before the history, activations, a gradient that is still used elsewhere."""
    allocator = Allocator()
    allocator.alloc(1000, "linear", "model", is_recorded=False)
    first = allocator.alloc(300_000, "relu", "forward")
    second = allocator.alloc(300_000, "relu", "forward")
    allocator.free(first)
    gradient = allocator.alloc(5000, "backward")
    allocator.alloc(3 * MIB, "embedding", "model")
    allocator.free(second)
    allocator.free(gradient, is_pending=True)
    return allocator


def _snapshot(allocator: Allocator) -> MemorySnapshot:
    return snapshot_of(pickle.loads(pickle.dumps(allocator.snapshot())))  # noqa: S301 (ours)


def test_who_holds_it_in_the_end() -> None:
    holders = rows_of(snapshot_holders(_snapshot(_trained())))
    told = [(row.stack, row.held_bytes, row.allocation_count, row.earlier_bytes) for row in holders]
    assert told == [
        ("model.py:7:model;embedding.py:7:embedding", 3 * MIB, 1, 0),
        ("model.py:7:model;linear.py:7:linear", 1000, 1, 1000),
    ]


def test_who_held_it_when_most_was_held() -> None:
    snapshot = _snapshot(_trained())
    (history,) = histories(snapshot)
    assert history.peak_bytes == 1000 + 300_000 + 5000 + 3 * MIB
    assert history.start_requested_bytes == 1000
    holders = {row.stack: row.held_bytes for row in rows_of(snapshot_holders(snapshot, "peak"))}
    assert holders == {
        "model.py:7:model;embedding.py:7:embedding": 3 * MIB,
        "forward.py:7:forward;relu.py:7:relu": 300_000,
        "backward.py:7:backward": 5000,
        "model.py:7:model;linear.py:7:linear": 1000,
    }


def test_what_was_freed_after_the_peak_and_is_older_than_the_history_has_no_stack() -> None:
    allocator = Allocator()
    old = allocator.alloc(4000, "old", is_recorded=False)
    allocator.alloc(100, "new")
    allocator.free(old)
    holders = rows_of(snapshot_holders(_snapshot(allocator), "peak"))
    assert [(row.stack, row.held_bytes) for row in holders] == [(None, 4000), ("new.py:7:new", 100)]


def test_the_level_over_time() -> None:
    curve = history_curve(_snapshot(_trained()))
    releases = curve[curve["action"].isin(["alloc", "free_requested"])]
    assert releases["requested_bytes"].tolist() == [
        301_000,
        601_000,
        301_000,
        306_000,
        306_000 + 3 * MIB,
        6000 + 3 * MIB,
        1000 + 3 * MIB,
    ]
    assert curve["reserved_bytes"].iloc[-1] == 22 * MIB
    assert np.diff(curve["time_ns"]).tolist() == [10_000] * (len(curve) - 1)


def test_reserved_memory_is_requested_rounded_pending_or_free() -> None:
    pools = {row.size_class: row for row in rows_of(snapshot_pools(_snapshot(_trained())))}
    small, large = pools["small"], pools["large"]
    assert (small.reserved_bytes, small.requested_bytes, small.rounding_bytes) == (
        2 * MIB,
        1000,
        24,
    )
    assert (small.pending_bytes, large.reserved_bytes, large.requested_bytes) == (
        5120,
        20 * MIB,
        3 * MIB,
    )
    for row in pools.values():
        parts = row.requested_bytes + row.rounding_bytes + row.pending_bytes + row.free_bytes
        assert parts == row.reserved_bytes
    assert small.fragmented_share == pytest.approx(1 - small.largest_free_bytes / small.free_bytes)
    assert large.fragmented_share == 0


@pytest.mark.parametrize(
    ("asked", "device_free", "cause"),
    [(5 * MIB, 0, "fragmented"), (50 * MIB, 60 * MIB, "limited"), (50 * MIB, MIB, "full")],
)
def test_why_a_device_ran_out(asked: int, device_free: int, cause: str) -> None:
    allocator = _trained()
    allocator.out_of_memory(asked, device_free, "matmul", "forward")
    (row,) = rows_of(snapshot_ooms(_snapshot(allocator)))
    assert (row.asked_bytes, row.device_free_bytes, row.cause) == (asked, device_free, cause)
    assert row.requested_bytes == 1000 + 3 * MIB
    assert row.reserved_bytes == 22 * MIB
    assert row.stack == "forward.py:7:forward;matmul.py:7:matmul"


def test_devices_are_apart() -> None:
    one, two = Allocator(0), Allocator(1)
    one.alloc(100, "a")
    two.alloc(200, "b")
    first, second = one.snapshot(), two.snapshot()
    both = {
        "segments": first["segments"] + second["segments"],
        "device_traces": [first["device_traces"][0], second["device_traces"][1]],
    }
    snapshot = snapshot_of(both)
    assert [(h.device, h.peak_bytes) for h in histories(snapshot)] == [(0, 100), (1, 200)]
    assert snapshot_holders(snapshot)["held_bytes"].tolist() == [100, 200]


def test_without_a_history_the_snapshot_is_the_peak() -> None:
    document = _trained().snapshot() | {"device_traces": [[]]}
    (history,) = histories(snapshot_of(document))
    assert (history.peak_at, history.peak_bytes) == (-1, 1000 + 3 * MIB)


def test_segments_alone_are_a_snapshot_too() -> None:
    snapshot = snapshot_of(_trained().snapshot()["segments"])
    assert len(snapshot.segments) == 2
    assert len(snapshot.entries) == 0


def test_blocks_of_torch_before_2_0_have_their_stack_in_a_history() -> None:
    block = {
        "size": 512,
        "state": "active_allocated",
        "history": [{"addr": 1, "real_size": 300, "frames": frames("old")}],
    }
    segment = {"device": 0, "address": 2**46, "total_size": 512, "stream": 0, "blocks": [block]}
    (row,) = rows_of(snapshot_holders(snapshot_of({"segments": [segment], "device_traces": []})))
    assert (row.stack, row.held_bytes) == ("old.py:7:old", 300)


def test_an_empty_snapshot_gives_empty_tables_with_their_columns() -> None:
    snapshot = snapshot_of({"segments": [], "device_traces": [[]]})
    for table, schema in (
        (snapshot.segments, SEGMENT_SCHEMA),
        (snapshot.blocks, BLOCK_SCHEMA),
        (snapshot.entries, ENTRY_SCHEMA),
        (snapshot_holders(snapshot), HOLDER_SCHEMA),
        (snapshot_pools(snapshot), POOL_SCHEMA),
        (snapshot_ooms(snapshot), OOM_SCHEMA),
        (history_curve(snapshot), HISTORY_SCHEMA),
    ):
        assert len(table) == 0
        found = {str(name): str(dtype) for name, dtype in table.dtypes.items()}
        assert found == {column.name: column.dtype for column in schema}


@pytest.mark.parametrize("moment", ["end", "peak"])
def test_tables_have_the_columns_of_their_schemas(moment: Any) -> None:
    allocator = _trained()
    allocator.out_of_memory(1, 1, "a")
    snapshot = _snapshot(allocator)
    for table, schema in (
        (snapshot.segments, SEGMENT_SCHEMA),
        (snapshot.blocks, BLOCK_SCHEMA),
        (snapshot.entries, ENTRY_SCHEMA),
        (snapshot_holders(snapshot, moment), HOLDER_SCHEMA),
        (snapshot_pools(snapshot), POOL_SCHEMA),
        (snapshot_ooms(snapshot), OOM_SCHEMA),
        (history_curve(snapshot), HISTORY_SCHEMA),
    ):
        found = {str(name): str(dtype) for name, dtype in table.dtypes.items()}
        assert found == {column.name: column.dtype for column in schema}


moves = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 3 * MIB), st.booleans()), max_size=30)


def _played(played: list[tuple[int, int, bool]]) -> tuple[Allocator, list[int], int]:
    """An allocator after these moves, what it held after each, and before the history."""
    allocator, before = Allocator(), 0
    held: list[tuple[int, int]] = []
    levels: list[int] = []
    for place, (which, size, is_pending) in enumerate(played):
        is_recorded = place >= 4
        if which < 3 or not held:
            held.append((allocator.alloc(size, f"f{which}", is_recorded=is_recorded), size))
        elif is_recorded:
            address, _ = held.pop(which % len(held))
            allocator.free(address, is_pending=is_pending)
        total = sum(size for _, size in held)
        levels, before = ([*levels, total], before) if is_recorded else (levels, total)
    return allocator, levels, before


@given(moves)
def test_levels_are_those_of_the_allocator_and_holders_sum_to_them(
    played: list[tuple[int, int, bool]],
) -> None:
    allocator, levels, before = _played(played)
    snapshot = _snapshot(allocator)
    for history in histories(snapshot):
        assert history.start_requested_bytes == before
        assert history.peak_bytes == max([before, *levels])
        assert live_at_peak(snapshot, history).bytes.sum() == history.peak_bytes
        ends = history.requested_bytes.tolist() or [before]
        assert snapshot_holders(snapshot)["held_bytes"].sum() == ends[-1]


@pytest.mark.peer
@given(moves)
def test_sums_are_those_of_torchs_own_viewer(played: list[tuple[int, int, bool]]) -> None:
    viewer = pytest.importorskip("torch.cuda._memory_viz")
    allocator, *_ = _played(played)
    document = allocator.snapshot()
    if not document["segments"]:
        return
    snapshot = snapshot_of(document)
    pools = snapshot_pools(snapshot)
    theirs = viewer.segsum(document)  # which fails unless segments are the sum of their blocks
    their = dict(re.findall(r"^(total_\w+): (\S+)", theirs, re.MULTILINE))
    assert their["total_reserved"] == repr(viewer.Bytes(int(pools["reserved_bytes"].sum())))
    assert their["total_allocated"] == repr(viewer.Bytes(int(pools["requested_bytes"].sum())))
    # it counts what another stream still uses, and rounding, as free
    free = pools["reserved_bytes"].sum() - pools["requested_bytes"].sum()
    assert their["total_free"] == repr(viewer.Bytes(int(free)))
    lines = viewer.memory(document, format_flamegraph=lambda text: text).splitlines()
    held: dict[str, int] = defaultdict(int)
    for line in lines:
        _, state, *stack, size = re.split(r";| (?=\d+$)", line)
        if state == "active_allocated" and stack != ["<gaps>"]:
            held[";".join(stack)] += int(size)
    ours = snapshot_holders(snapshot)
    assert dict(zip(ours["stack"], ours["held_bytes"], strict=True)) == held
    assert "entries" in viewer.trace(document | {"device_traces": [allocator.entries]}) or (
        not allocator.entries
    )


@pytest.mark.parametrize("name", ["snapshot.pickle", "snapshot.json", "snapshot.json.gz"])
def test_files_of_every_form_are_told_by_their_content(tmp_path: Path, name: str) -> None:
    import gzip

    path = tmp_path / name
    document = _trained().snapshot()
    data = pickle.dumps(document) if "pickle" in name else json.dumps(document).encode()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    read = memory_files.read(str(path))
    assert read is not None
    assert read.what == "snapshot"
    assert snapshot_holders(snapshot_of(read.content))["held_bytes"].sum() == 1000 + 3 * MIB


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (pickle.dumps(print), "contains code"),
        (pickle.dumps({"segments": []})[:-3], "damaged"),
        (b"PK\x03\x04" + b"x" * 40, "archive"),
        (b'{"segments": [1, ', "not valid JSON"),
        (b'{"segments": ' + b"[" * 100_000, "not valid JSON"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_reason(
    tmp_path: Path, content: bytes, complaint: str
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UnreadableError, match=complaint):
        memory_files.read(str(path))


@pytest.mark.parametrize("document", [None, 3, "text", {}, {"segments": 3}, {"other": []}])
def test_other_documents_are_no_snapshots(document: object) -> None:
    with pytest.raises(UnreadableError, match="not a memory snapshot"):
        snapshot_of(document)


def test_a_list_that_is_named_again_and_again_is_not_multiplied() -> None:
    blocks = [{"size": 1, "state": "inactive"}] * 100_000
    segments = [{"address": 0, "total_size": 1, "blocks": blocks}] * (MOST_ROWS // 100_000)
    with pytest.raises(UnreadableError, match="more than 5,000,000 blocks"):
        snapshot_of({"segments": segments})


def test_long_stacks_are_cut_and_shared_ones_made_once() -> None:
    endless = frames(*(["deep"] * 100_000))
    entries = [{"action": "alloc", "addr": n, "size": 1, "frames": endless} for n in range(1000)]
    snapshot = snapshot_of({"segments": [], "device_traces": [entries]})
    assert len(snapshot.stacks) == 1
    assert len(snapshot.stacks[0].split(";")) == 64


def test_frames_of_the_interpreter_are_left_out_as_torch_does() -> None:
    own = [
        *frames("a"),
        {"filename": "ceval.c", "line": 1, "name": "_PyEval_EvalFrameDefault"},
        {"filename": "??", "line": 0, "name": "_start"},
    ]
    block = {"size": 1, "state": "active_allocated", "requested_size": 1, "frames": own}
    snapshot = snapshot_of({"segments": [{"address": 0, "total_size": 1, "blocks": [block]}]})
    assert snapshot.stacks == ("a.py:7:a",)


def test_what_is_no_text_is_never_written_out() -> None:
    laughs: Any = "lol"
    for _ in range(60):  # 2^60 of them, were it written out
        laughs = [laughs, laughs]
    frame = {"filename": laughs, "name": laughs, "line": laughs}
    block = {"size": 1, "state": "active_allocated", "frames": [frame]}
    segment = {"address": 0, "total_size": 1, "blocks": [block], "segment_type": laughs}
    snapshot = snapshot_of({"segments": [segment], "allocator_settings": {"a": laughs}})
    assert snapshot.stacks == (":0:",)
    assert snapshot.settings == {}


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(st.data())
def test_absurd_values_cost_what_they_say_and_not_the_file(data: st.DataObject) -> None:
    document: Any = json.loads(json.dumps(_trained().snapshot()))
    places: list[tuple[Any, Any]] = [(document, key) for key in document]
    for segment in document["segments"]:
        places += [(segment, key) for key in segment]
        places += [(block, key) for block in segment["blocks"] for key in block]
    places += [(entry, key) for entry in document["device_traces"][0] for key in entry]
    for _ in range(data.draw(st.integers(1, 5))):
        holder, key = data.draw(st.sampled_from(places))
        holder[key] = data.draw(anything)
    with contextlib.suppress(UnreadableError), contextlib.redirect_stdout(io.StringIO()):
        snapshot = snapshot_of(document)
        snapshot_pools(snapshot)
        snapshot_ooms(snapshot)
        history_curve(snapshot)
        snapshot_holders(snapshot)
        snapshot_holders(snapshot, "peak")
