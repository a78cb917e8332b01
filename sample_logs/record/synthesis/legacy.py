"""The format of 2021 (torch 1.8 and 1.9): whole microseconds, `Operator`, `Kernel`, text lanes."""

from collections.abc import Iterator, Set
from typing import Any

from synthesis.machines import Machine
from synthesis.modern import PROCESS_ID
from synthesis.recording import DEVICE_KINDS, HOST_KINDS, Record, Recording

Event = dict[str, Any]
EPOCH_US = 1623143089000000  # timestamps were microseconds since 1970
CATEGORIES = {
    "operator": "Operator",
    "annotation": "Operator",
    "runtime": "Runtime",
    "driver": "Runtime",
    "kernel": "Kernel",
    "copy": "Memcpy",
    "memset": "Memset",
}
METADATA: dict[str, Any] = {}
# Arguments that this profiler did not record yet.
UNKNOWN_DETAILS = (
    "Concrete Inputs",
    "Input Strides",
    "Sequence number",
    "Fwd thread id",
    "Total Reserved",
    "Total Allocated",
    "Addr",
)


def trace_events(recording: Recording, machine: Machine) -> list[Event]:
    """Return every event of a recording; the format has no mirrors and no Python frames."""
    del machine  # the names are the same for all machines
    events = list(_names(recording))
    working = {event.correlation for event in recording.records if event.kind in DEVICE_KINDS}
    for kinds in (("operator", "annotation"), ("memory",), ("runtime", "driver", *DEVICE_KINDS)):
        for record in recording.records:
            if record.kind in kinds and record.kind != "mirror":
                events.append(_event(record))
                events.extend(_flow(record, working))
    start_us, end_us = _us(recording.start_ns), _us(recording.end_ns)
    events.append(
        {
            "ph": "X",
            "cat": "Trace",
            "ts": start_us,
            "dur": end_us - start_us,
            "pid": "Traces",
            "tid": "PyTorch Profiler",
            "name": "PyTorch Profiler (0)",
            "args": {"Op count": 0},
        }
    )
    return events


def _us(time_ns: int) -> int:
    return EPOCH_US + round(time_ns / 1000)


def _event(record: Record) -> Event:
    if record.kind == "memory":  # without a category
        event: Event = {"ph": "i", "s": "t", "name": record.name}
        return event | _location(record) | {"ts": _us(record.start_ns), "args": _details(record)}
    event = {"ph": "X", "cat": CATEGORIES[record.kind], "name": record.name}
    # Ends are rounded, not lengths: nested events stay nested.
    span = {"ts": _us(record.start_ns), "dur": _us(record.end_ns) - _us(record.start_ns)}
    return event | _location(record) | span | {"args": _arguments(record)}


def _location(record: Record) -> Event:
    if record.kind == "memory":
        return {"pid": PROCESS_ID, "tid": PROCESS_ID + record.lane}
    if record.kind in HOST_KINDS:
        return {"pid": PROCESS_ID, "tid": str(PROCESS_ID + record.lane)}
    return {"pid": 0, "tid": f"stream {record.lane}"}


def _details(record: Record) -> Event:
    return {key: value for key, value in record.details.items() if key not in UNKNOWN_DETAILS}


def _arguments(record: Record) -> Event:
    details, external_id = _details(record), record.external_id or 0
    if record.kind in ("operator", "annotation"):
        named = {"Device": PROCESS_ID, "External id": external_id}
        return named | {"Trace name": "PyTorch Profiler", "Trace iteration": 0} | details
    ids = {"correlation": record.correlation, "external id": external_id}
    if record.kind in ("runtime", "driver"):
        return details | ids
    queued = {"queued": 0} if record.kind == "kernel" else {}
    return queued | {"device": 0, "context": 1, "stream": record.lane} | ids | details


def _flow(record: Record, working: Set[int | None]) -> Iterator[Event]:
    """Yield this event's end of the arrow from a launch to its kernel."""
    is_call = record.kind in ("runtime", "driver")
    if record.correlation is None or record.correlation not in working:
        return
    at = {"ph": "s" if is_call else "f", "id": record.correlation, **_location(record)}
    yield (
        at
        | {"ts": _us(record.start_ns), "cat": "async", "name": "launch"}
        | ({} if is_call else {"bp": "e"})
    )


def _names(recording: Recording) -> Iterator[Event]:
    start_us = _us(recording.start_ns)
    for pid, label in ((PROCESS_ID, "CPU"), (0, "GPU 0")):
        at = {"ph": "M", "ts": start_us, "pid": pid, "tid": 0}
        yield at | {"name": "process_name", "args": {"name": "python"}}
        yield at | {"name": "process_labels", "args": {"labels": label}}
    for number in recording.threads:
        lane = PROCESS_ID + number
        at = {"ph": "M", "ts": start_us, "pid": PROCESS_ID, "tid": str(lane)}
        yield at | {"name": "thread_name", "args": {"name": f"thread {lane} (python)"}}
    for stream in recording.streams:
        at = {"ph": "M", "ts": start_us, "pid": 0, "tid": f"stream {stream}"}
        yield at | {"name": "thread_name", "args": {"name": f"stream {stream} "}}
