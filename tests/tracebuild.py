"""Write a trace in a few rows: the tests' vocabulary. It knows the Chrome format and no more.

A row is `[category, name, start_us, dur_us]`, or the same with a mapping behind it:

    - [user_annotation, "ProfilerStep#1", 0, 100]
    - [cpu_op, "aten::mm", 10, 20, {Input Dims: [[8, 8], [8, 8]], External id: 3}]
    - [cuda_runtime, cudaLaunchKernel, 12, 5, {correlation: 1}]
    - [kernel, gemm, 30, 40, {correlation: 1, stream: 20}]
    - [cpu_instant_event, "[memory]", 15, null, {Bytes: 512, Device Type: 1}]

Host rows stand on one process and thread, device rows on device 0 and stream 7. In the mapping
`pid`, `tid`, `ph`, `id`, `bp` and `s` are the event's own; `device` and `stream` place a device
row; everything is an argument. An empty category is none. The old categories (`Operator`,
`Kernel`, ...) are known too.

A whole trace is `document(rows=...)`, or `document(schedule=...)` for a simulated device (see
`synthesis`). A rule's case in YAML holds either, under `trace:` or `schedule:`.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import synthesis
from synthesis.machines import H100

Row = Sequence[Any]
Event = dict[str, Any]

PROCESS_ID = 100
DEVICE = 0
STREAM = 7
OLD_DEVICE_CATEGORIES = frozenset({"Kernel", "Memcpy", "Memset"})
OLD_CATEGORIES = OLD_DEVICE_CATEGORIES | {"Operator", "Runtime"}
DEVICE_CATEGORIES = OLD_DEVICE_CATEGORIES | {
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "gpu_user_annotation",
}
OWN_FIELDS = ("ph", "id", "pid", "tid", "bp", "s")


def chrome_events(rows: Sequence[Row]) -> list[Event]:
    """Return the rows as Chrome trace events."""
    return [_event(*row) for row in rows]


def document(
    *,
    rows: Sequence[Row] = (),
    schedule: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    metadata: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a whole trace, of rows, of a schedule, or of both; `metadata` adds top-level keys.

    `settings` are those of the run, as the trace handler would have recorded them.
    """
    if settings is not None:
        mark = {"schema": 1, "recorder": "0.2.0", "settings": settings}
        metadata = {**(metadata or {}), "stepscope_recorder": mark}
    if schedule is not None:
        trace = synthesis.synthesise(schedule)
        return {
            **trace,
            **(metadata or {}),
            "traceEvents": trace["traceEvents"] + chrome_events(rows),
        }
    has_device = any(_is_device(str(row[0])) for row in rows)
    return {
        "schemaVersion": 1,
        "deviceProperties": [dict(H100.properties or {})] if has_device else [],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1767189312000000000,
        **(metadata or {}),
        "traceEvents": chrome_events(rows),
    }


def write(trace: dict[str, Any], path: Path, *, layout: str = "kineto") -> Path:
    """Write a trace to `.json` or `.json.gz` (layout `kineto` or `compact`); return the path."""
    synthesis.write(trace, path, layout=layout)
    return path


def _event(
    category: str,
    name: str,
    start_us: float | Decimal | str,
    dur_us: float | Decimal | str | None = None,
    more: Mapping[str, Any] | None = None,
) -> Event:
    given = dict(more or {})
    own = {key: given.pop(key) for key in OWN_FIELDS if key in given}
    is_instant = dur_us is None
    event: Event = (
        {"ph": "i", "cat": category, "s": "t"} if is_instant else {"ph": "X", "cat": category}
    )
    if not category:
        del event["cat"]
    event |= {"name": name, **_place(category, given), "ts": _time(category, start_us)}
    if dur_us is not None:
        event["dur"] = _time(category, dur_us)
    if _is_device(category):
        given = {"device": DEVICE, "stream": STREAM, **given}
    return event | own | {"args": given}


def _place(category: str, given: Mapping[str, Any]) -> Event:
    """Return where an event stands when its row does not say so."""
    if not _is_device(category):
        return {"pid": PROCESS_ID, "tid": PROCESS_ID}
    stream = given.get("stream", STREAM)
    lane = f"stream {stream}" if category in OLD_DEVICE_CATEGORIES else stream
    return {"pid": given.get("device", DEVICE), "tid": lane}


def _is_device(category: str) -> bool:
    return category in DEVICE_CATEGORIES


def _time(category: str, us: float | Decimal | str) -> float | Decimal | str:
    """Return a time that will be written with three decimals, or whole where that was the format.

    A text and a decimal (for absolute stamps, which a float cannot hold) stay as they are.
    """
    if isinstance(us, str | Decimal) or category in OLD_CATEGORIES:
        return us
    return float(us)
