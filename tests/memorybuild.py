"""Memory events in a few words, for tests: `+512@1` allocates 512 bytes at address 1."""

import re
from collections.abc import Sequence
from typing import Any

from tracebuild import Row

EVENT = re.compile(r"([+-]\d+)(?:@(\d+))?")


def memory(
    start_us: float, event: str, *, device: int = 0, type_code: int = 1, **fields: Any
) -> Row:
    """One `[memory]` event on `CUDA 0` unless said otherwise; `fields` are further arguments."""
    match = EVENT.fullmatch(event)
    assert match, event
    arguments: dict[str, Any] = {
        "Bytes": int(match[1]),
        "Device Type": type_code,
        "Device Id": device,
    }
    if match[2]:
        arguments["Addr"] = int(match[2])
    return ["cpu_instant_event", "[memory]", start_us, None, {**arguments, **fields}]


def in_turn(events: Sequence[str], *, every_us: float = 1, **fields: Any) -> list[Row]:
    """Memory events one after the other, from 0 on."""
    return [memory(n * every_us, event, **fields) for n, event in enumerate(events)]


def with_totals(
    events: Sequence[str], *, reserved: int | None = None, before: int = 0, **fields: Any
) -> list[Row]:
    """The same with the totals that the allocator would write, having held `before` bytes."""
    rows, total = [], before
    for place, event in enumerate(events):
        match = EVENT.fullmatch(event)
        assert match, event
        total += int(match[1])
        totals = {"Total Allocated": total, "Total Reserved": 0 if reserved is None else reserved}
        rows.append(memory(place, event, **totals, **fields))
    return rows
