"""Binary encoding of a tile: a JSON header, then little-endian arrays.

`TLT2`, the header's length (u32), the header, zeros up to a multiple of 8, then for all items
u32 name, u32 event, u32 count, u16 x, u16 width, u8 category, u8 busy. `x` and `width` are in
sixteenths of a pixel, clipped to the tile; busy is the fraction of the item's time, of 255.
"""

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline.slices import Slices
from stepscope.analyses.timeline.tiles import TILE_PIXELS, Tile

MAGIC = b"TLT2"
ALIGNMENT = 8
COLUMNS = ("<u4", "<u4", "<u4", "<u2", "<u2", "u1", "u1")
"""Types of the arrays."""
DIFFERENCES = (1, 3)
"""Arrays whose differences are smaller than their values: event and x."""
COUNT = 2
"""Which array has the counts."""
SIXTEENTHS = 16
WHOLLY_BUSY = 255


class TileRow(msgspec.Struct, frozen=True):
    """A row with its items."""

    track: int
    row: int
    count: int


class TileHeader(msgspec.Struct, frozen=True):
    """Header of a tile's arrays."""

    level: int
    tile: int
    rows: tuple[TileRow, ...]
    slice_count: int
    is_truncated: bool
    """Whether rows are left out because of the response's size."""
    left_out_row_count: int


def encoded(tiles: Sequence[tuple[Slices, Tile]]) -> bytes:
    """Return tiles of the same level and number from several sources as one."""
    first = tiles[0][1]
    header = msgspec.json.encode(
        TileHeader(
            level=first.level,
            tile=first.number,
            rows=tuple(TileRow(*row) for _, tile in tiles for row in tile.rows),
            slice_count=sum(len(tile.start_ns) for _, tile in tiles),
            is_truncated=any(tile.left_out_row_count for _, tile in tiles),
            left_out_row_count=sum(tile.left_out_row_count for _, tile in tiles),
        )
    )
    head = MAGIC + len(header).to_bytes(4, "little") + header
    parts = [_arrays(slices, tile) for slices, tile in tiles]
    columns = (np.concatenate(column).tobytes() for column in zip(*parts, strict=True))
    return head + bytes(-len(head) % ALIGNMENT) + b"".join(columns)


def _arrays(slices: Slices, tile: Tile) -> tuple[NDArray[np.generic], ...]:
    at = _sixteenths(tile.start_ns, tile)
    width = _sixteenths(tile.end_ns, tile) - at
    return (
        slices.name[tile.longest].astype("<u4"),
        slices.event[tile.longest].astype("<u4"),
        tile.count.astype("<u4"),
        at.astype("<u2"),
        width.astype("<u2"),
        slices.category[tile.longest].astype("u1"),
        _busy(tile).astype("u1"),
    )


def _sixteenths(time_ns: NDArray[np.int64], tile: Tile) -> NDArray[np.int64]:
    """Return times as sixteenths of a pixel from the tile's start, clipped to the tile."""
    inside_ns = np.clip(time_ns - tile.first_ns, 0, TILE_PIXELS << tile.level)
    positions: NDArray[np.int64] = (inside_ns * SIXTEENTHS) >> tile.level
    return positions


def _busy(tile: Tile) -> NDArray[np.int64]:
    """Return the fraction of each item's time with a running slice, of 255."""
    length_ns = tile.end_ns - tile.start_ns
    share = tile.busy_ns / np.maximum(length_ns, 1)
    busy: NDArray[np.int64] = np.where(
        tile.busy_ns >= length_ns, WHOLLY_BUSY, np.floor(share * WHOLLY_BUSY)
    ).astype(np.int64)
    return busy


def compressible(tile: bytes) -> bytes:
    """Return an encoded tile with its arrays by bytes of equal weight, which deflate well.

    `unpackedTile` of the page reverses it. Arrays of `DIFFERENCES` hold these.
    """
    head, columns = _parts(tile)
    texts = []
    for number, column in enumerate(columns):
        values = np.diff(column, prepend=column.dtype.type(0)) if number in DIFFERENCES else column
        by_byte = values.astype(column.dtype).view("u1").reshape(-1, column.itemsize)
        texts.append(by_byte.T.tobytes())
    return head + b"".join(texts)


def merged_count(tile: bytes) -> tuple[int, int]:
    """Return the numbers of an encoded tile's items that merge slices, and of all its items."""
    counts = _parts(tile)[1][COUNT].astype(np.int64)
    return int((counts > 1).sum()), len(counts)


def _header(tile: bytes) -> TileHeader:
    start = len(MAGIC) + 4
    length = int.from_bytes(tile[len(MAGIC) : start], "little")
    return msgspec.json.decode(tile[start : start + length], type=TileHeader)


def _parts(tile: bytes) -> tuple[bytes, list[NDArray[np.generic]]]:
    """Return the part of an encoded tile before its arrays, and the arrays."""
    count = _header(tile).slice_count
    length = int.from_bytes(tile[len(MAGIC) : len(MAGIC) + 4], "little")
    at = math.ceil((len(MAGIC) + 4 + length) / ALIGNMENT) * ALIGNMENT
    head, columns = tile[:at], []
    for dtype in map(np.dtype, COLUMNS):
        columns.append(np.frombuffer(tile, dtype=dtype, count=count, offset=at))
        at += dtype.itemsize * count
    return head, columns
