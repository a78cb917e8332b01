"""Snapshots of torch's caching allocator, from `torch.cuda.memory._dump_snapshot`.

The format is documented in `torch/cuda/memory.py` (`_snapshot`) and written by
`torch/csrc/cuda/Module.cpp` and `memory_snapshot.cpp`, as a pickle; some tools store it as JSON. A
missing or invalid value affects only that value, not the file.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from stepscope.base.errors import UnreadableError
from stepscope.ingest.memory_files import RECORD_AGAIN, RECORD_LESS
from stepscope.model.frames import Column, Schema

MOST_STACK_CHARACTERS = 2**29
"""Limit of all stacks as text."""
MOST_FRAMES = 64
"""Limit of frames per stack, from the innermost."""
MOST_FRAME_CHARACTERS = 240
UNKNOWN = -1
OMITTED_FUNCTIONS = (
    "unwind::unwind",
    "CapturedTraceback::gather",
    "gather_with_cpp",
    "_start",
    "__libc_start_main",
    "PyEval_",
    "PyObject_",
    "PyFunction_",
)
OMITTED_FILES = (
    "core/boxing",
    "/Register",
    "/Redispatch",
    "pythonrun.c",
    "Modules/main.c",
    "Objects/call.c",
    "Objects/methodobject.c",
    "pycore_ceval.h",
    "ceval.c",
    "cpython/abstract.h",
)
"""Frames that torch's own flame graphs omit (`torch/cuda/_memory_viz.py`)."""


class Stacks:
    """Distinct stacks by their frames, each converted to text once."""

    def __init__(self, path: str) -> None:
        self.texts: list[str] = []
        self._path = path
        self._number_of_text: dict[str, int] = {}
        self._of_frames: dict[tuple[int, ...], int] = {}
        """By the identities of their frames: torch shares the frames of its stacks."""
        self._of_frame: dict[int, str] = {}
        self._left = MOST_STACK_CHARACTERS

    def number(self, holder: Mapping[str, Any]) -> int:
        """Return the index of an item's stack, or -1."""
        frames = holder.get("frames")
        if not isinstance(frames, list) or not frames:
            return UNKNOWN
        key = tuple(map(id, frames[: 4 * MOST_FRAMES]))
        number = self._of_frames.get(key)
        if number is None:
            number = self._of_frames[key] = self._made(frames[: 4 * MOST_FRAMES])
        return number

    def _made(self, frames: list[Any]) -> int:
        """Return the index of a stack with new frames."""
        shown = [text for frame in frames if (text := self._frame(frame))]
        text = ";".join(reversed(shown[:MOST_FRAMES]))
        number = self._number_of_text.get(text, UNKNOWN)
        if text and number == UNKNOWN:
            self._left -= len(text)
            if self._left < 0:
                message = "Its stacks are too long to read."
                raise UnreadableError(self._path, message, RECORD_LESS)
            number = self._number_of_text[text] = len(self.texts)
            self.texts.append(text)
        return number

    def _frame(self, frame: object) -> str:
        text = self._of_frame.get(id(frame))
        if text is None:
            text = _frame_text(frame) if isinstance(frame, dict) else ""
            self._of_frame[id(frame)] = text
        return text


def _frame_text(frame: Mapping[str, Any]) -> str:
    """Return `file:line:function`, as in torch's flame graphs; empty for internal frames."""
    name, file = (_end_of_text(frame.get(key)) for key in ("name", "filename"))
    line = frame.get("line")
    if any(part in name for part in OMITTED_FUNCTIONS) or any(p in file for p in OMITTED_FILES):
        return ""
    text = f"{file.split('/')[-1]}:{line if type(line) is int else 0}:{name}"
    return text[:MOST_FRAME_CHARACTERS].replace(";", ",")


def _end_of_text(value: object) -> str:
    """Return the end of a text; empty for other values, which might be unbounded."""
    return value[-MOST_FRAME_CHARACTERS:] if isinstance(value, str) else ""


MOST_DEVICES = 64
MOST_ROWS = 5_000_000
"""Limit of segments, blocks and entries together, since a pickle may repeat a list of them."""
MOST_BYTES = 2**50
PENDING = "awaiting free"
STATES = {
    "active_allocated": "allocated",
    "active_awaiting_free": PENDING,
    "active_pending_free": PENDING,
    "inactive": "free",
}
"""torch's names of a block's state; its documentation and its code differ in the second."""
SEGMENT_SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("address", "int64", "id", "Start address."),
    Column("total_bytes", "int64", "bytes", "Taken from the device."),
    Column("allocated_bytes", "int64", "bytes", "Of it, in blocks of tensors, with rounding."),
    Column("pending_bytes", "int64", "bytes", "Freed, but another stream still uses it."),
    Column("requested_bytes", "int64", "bytes", "Requested by the allocated blocks."),
    Column("largest_free_bytes", "int64", "bytes", "Its largest free block."),
    Column("block_count", "int64", "count", "Its blocks."),
    Column("stream", "int64", "id", "The stream of its allocations."),
    Column("size_class", "object", "text", "`small` (blocks up to 1 MiB) or `large`."),
    Column("pool", "object", "text", "The memory pool that owns it; `0, 0` is the default."),
    Column("is_expandable", "bool", "", "Of `expandable_segments`."),
)
BLOCK_SCHEMA: Schema = (
    Column("segment", "int64", "id", "The row of its segment."),
    Column("address", "int64", "id", "Start address; -1: unknown."),
    Column("bytes", "int64", "bytes", "Size, rounded up."),
    Column("requested_bytes", "int64", "bytes", "Requested size."),
    Column("state", "object", "text", "`allocated`, `awaiting free` or `free`."),
    Column("stack", "int64", "id", "Index of the allocating stack; -1: not recorded."),
)
ENTRY_SCHEMA: Schema = (
    Column("device", "int64", "id", "The device's number."),
    Column("action", "object", "text", "torch's name of the allocator's action."),
    Column("address", "int64", "id", "Address; -1: unknown."),
    Column("bytes", "int64", "bytes", "Size."),
    Column("stream", "int64", "id", "The stream."),
    Column("time_ns", "int64", "ns", "Unix time; -1 before torch 2.1."),
    Column("device_free_bytes", "int64", "bytes", "Free memory of the device when it ran out."),
    Column("stack", "int64", "id", "Index of the requesting stack; -1: not recorded."),
)


@dataclass(frozen=True, kw_only=True, eq=False)
class MemorySnapshot:
    """The memory of every device's allocator, and its history."""

    segments: pd.DataFrame
    blocks: pd.DataFrame
    entries: pd.DataFrame
    """In chronological order per device; empty without a history."""
    stacks: tuple[str, ...]
    """`outermost;…;innermost`, each `file:line:function`."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The allocator's, such as `PYTORCH_CUDA_ALLOC_CONF`."""


def snapshot_of(document: object, path: str = "") -> MemorySnapshot:
    """Return the contents of a document in torch's format.

    Raises:
        UnreadableError: The document has another format.
    """
    # torch.cuda.memory_snapshot() returns only the segments
    if isinstance(document, list) and all(isinstance(segment, dict) for segment in document):
        document = {"segments": document}
    if not isinstance(document, dict) or not isinstance(document.get("segments"), list):
        message = "This is not a memory snapshot: it has no list of segments."
        raise UnreadableError(path, message, RECORD_AGAIN)
    if _row_count(document) > MOST_ROWS:
        message = f"It contains more than {MOST_ROWS:,} blocks and entries."
        raise UnreadableError(path, message, RECORD_LESS)
    stacks = Stacks(path)
    segments, blocks = _segments(document["segments"], stacks)
    entries = _entries(_items(document, "device_traces"), stacks)
    settings = document.get("allocator_settings")
    return MemorySnapshot(
        segments=segments,
        blocks=blocks,
        entries=entries,
        stacks=tuple(stacks.texts),
        settings={
            str(key)[:MOST_FRAME_CHARACTERS]: str(value)[:MOST_FRAME_CHARACTERS]
            for key, value in (settings.items() if isinstance(settings, dict) else ())
            if isinstance(value, str | int | float)
        },
    )


def _row_count(document: Mapping[str, Any]) -> int:
    """Return the number of segments, blocks and entries in a document."""
    segments, traces = document["segments"], _items(document, "device_traces")
    blocks = (len(_items(segment, "blocks")) for segment in segments if isinstance(segment, dict))
    entries = (len(trace) for trace in traces[:MOST_DEVICES] if isinstance(trace, list))
    return len(segments) + sum(blocks) + sum(entries)


def _segments(listed: list[Any], stacks: Stacks) -> tuple[pd.DataFrame, pd.DataFrame]:
    segments: list[tuple[Any, ...]] = []
    blocks: list[tuple[Any, ...]] = []
    for segment in listed:
        if not isinstance(segment, dict):
            continue
        blocks_of_segment = list(_blocks(segment, len(segments), stacks))
        sizes = {
            state: [b for b in blocks_of_segment if b[4] == state] for state in set(STATES.values())
        }
        segments.append(
            (
                _whole(segment, "device", 0),
                _address(segment, "address"),
                _size(segment, "total_size"),
                sum(block[2] for block in sizes["allocated"]),
                sum(block[2] for block in sizes[PENDING]),
                sum(block[3] for block in sizes["allocated"]),
                max((block[2] for block in sizes["free"]), default=0),
                len(blocks_of_segment),
                _whole(segment, "stream", 0),
                _text(segment.get("segment_type")),
                _pool(segment.get("segment_pool_id")),
                bool(segment.get("is_expandable", False)),
            )
        )
        blocks += blocks_of_segment
    return _frame_of(segments, SEGMENT_SCHEMA), _frame_of(blocks, BLOCK_SCHEMA)


def _blocks(
    segment: Mapping[str, Any], number: int, stacks: Stacks
) -> Iterator[tuple[int, int, int, int, str, int]]:
    address = _address(segment, "address")
    for block in _items(segment, "blocks"):
        if not isinstance(block, dict):
            continue
        size = _size(block, "size")
        holder = _stack_holder(block)
        at = _address(block, "address")
        yield (
            number,
            at if at != UNKNOWN else address,
            size,
            _size(holder, "requested_size", _size(holder, "real_size", size)),
            STATES.get(_text(block.get("state")), "free"),
            stacks.number(holder),
        )
        address += size


def _stack_holder(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the dict with a block's stack: before torch 2.0, the first of its `history`."""
    history = _items(block, "history")
    if "frames" not in block and history and isinstance(history[0], dict):
        return history[0]
    return block


def _entries(traces: list[Any], stacks: Stacks) -> pd.DataFrame:
    traces_by_device = [trace if isinstance(trace, list) else [] for trace in traces[:MOST_DEVICES]]
    entries = [
        (
            device,
            _text(entry.get("action")),
            _address(entry, "addr"),
            _size(entry, "size"),
            _whole(entry, "stream", 0),
            1000 * _whole(entry, "time_us", UNKNOWN, 2**53) if "time_us" in entry else UNKNOWN,
            _size(entry, "device_free", UNKNOWN),
            stacks.number(entry),
        )
        for device, trace in enumerate(traces_by_device)
        for entry in trace
        if isinstance(entry, dict)
    ]
    return _frame_of(entries, ENTRY_SCHEMA)


def _items(holder: Mapping[str, Any], key: str) -> list[Any]:
    items = holder.get(key)
    return items if isinstance(items, list) else []


def _whole(holder: Mapping[str, Any], key: str, default: int, limit: int = 2**63) -> int:
    """Return a whole number; the default if it is missing or implausible."""
    value = holder.get(key, default)
    is_whole = type(value) is int and -limit <= value < limit
    return value if is_whole else default


def _address(holder: Mapping[str, Any], key: str) -> int:
    """Return an address as signed 64 bits, used only for comparisons."""
    value = _whole(holder, key, UNKNOWN, 2**64)
    return value - 2**64 if value >= 2**63 else max(value, -(2**63))


def _size(holder: Mapping[str, Any], key: str, default: int = 0) -> int:
    value = _whole(holder, key, default, MOST_BYTES)
    return value if value >= 0 else default


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _pool(value: object) -> str:
    """Return the pool's two numbers; empty before torch 2.1."""
    if isinstance(value, tuple | list) and all(type(part) is int for part in value[:2]):
        return ", ".join(str(part)[:20] for part in value[:2])
    return ""


def _frame_of(rows: list[tuple[Any, ...]], schema: Schema) -> pd.DataFrame:
    """Return rows as a frame with the columns of the schema."""
    columns: list[Any] = list(zip(*rows, strict=True)) or [()] * len(schema)
    make: Callable[..., Any] = np.array
    return pd.DataFrame(
        {
            column.name: pd.Series(make(values, dtype=column.dtype), dtype=column.dtype)
            for column, values in zip(schema, columns, strict=True)
        }
    )
