"""The current format (torch 2.3 and later): three decimals, `cpu_op`, `ac2g` flows."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from synthesis.machines import Machine
from synthesis.recording import DEVICE_KINDS, HOST_KINDS, Record, Recording

Event = dict[str, Any]
PROCESS_ID = 4242
CATEGORIES = {
    "operator": "cpu_op",
    "annotation": "user_annotation",
    "memory": "cpu_instant_event",
    "python": "python_function",
    "runtime": "cuda_runtime",  # HIP's calls too
    "driver": "cuda_driver",
    "kernel": "kernel",
    "copy": "gpu_memcpy",
    "memset": "gpu_memset",
    "mirror": "gpu_user_annotation",
}
METADATA = {
    "trace_id": "00000000000000000000000000000000",
    "displayTimeUnit": "ms",
    "baseTimeNanoseconds": 1767189312000000000,
}
# The profiler writes the events of PyTorch before those of the driver.
ORDER = (("operator", "annotation"), ("memory",), ("python",), ("runtime", "driver", *DEVICE_KINDS))
INDEXED = ("operator", "annotation", "memory", "python")  # these carry an `Ev Idx`


def trace_events(recording: Recording, machine: Machine) -> list[Event]:
    """Return every event of a recording."""
    events = list(_names(recording, machine))
    flows = _flow_partners(recording.records)
    index = 0
    for kinds in ORDER:
        for record in recording.records:
            if record.kind not in kinds:
                continue
            events.append(_event(record, index))
            index += record.kind in INDEXED
            events.extend(flows.get(id(record), ()))
    events.extend(_frame(recording))
    return events


def _event(record: Record, index: int) -> Event:
    event: Event = {"ph": "X", "cat": CATEGORIES[record.kind], "name": record.name}
    if record.kind == "memory":
        event = {"ph": "i", "cat": CATEGORIES[record.kind], "s": "t", "name": record.name}
    event |= _location(record) | {"ts": record.start_ns / 1000}
    if record.kind != "memory":
        event["dur"] = record.dur_ns / 1000
    event["args"] = _arguments(record, index)
    return event


def _location(record: Record) -> Event:
    if record.kind in HOST_KINDS:
        return {"pid": PROCESS_ID, "tid": PROCESS_ID + record.lane}
    return {"pid": 0, "tid": record.lane}


def _arguments(record: Record, index: int) -> Event:
    ids = {} if record.external_id is None else {"External id": record.external_id}
    details = dict(record.details)
    if record.kind in ("operator", "annotation"):
        return ids | {"Record function id": 0} | details | {"Ev Idx": index}
    if record.kind in INDEXED:
        return details | {"Ev Idx": index}
    correlation = {} if record.correlation is None else {"correlation": record.correlation}
    if record.kind in ("runtime", "driver"):
        return ids | details | correlation
    return ids | _device_arguments(record) | correlation | details


def _device_arguments(record: Record) -> Event:
    if record.kind == "mirror":
        return {}
    if "kind" in record.details:  # roctracer
        return {"device": 0, "stream": record.lane}
    queued = {"queued": 0} if record.kind == "kernel" else {}
    return queued | {"device": 0, "context": 1, "stream": record.lane}


def _flow_partners(records: Sequence[Record]) -> dict[int, list[Event]]:
    """Return the ends of the arrows between events, by the record that they follow."""
    flows: defaultdict[int, list[Event]] = defaultdict(list)
    for name, pairs in (("ac2g", _launches(records)), ("fwdbwd", _backwards(records))):
        for flow_id, (source, target) in pairs:
            shared = {"cat": name, "name": name}
            start = {"ph": "s", "id": flow_id, **_location(source), "ts": source.start_ns / 1000}
            end = {"ph": "f", "id": flow_id, **_location(target), "ts": target.start_ns / 1000}
            flows[id(source)].append(start | shared)
            flows[id(target)].append(end | shared | {"bp": "e"})
    return flows


def _launches(records: Sequence[Record]) -> Iterator[tuple[int, tuple[Record, Record]]]:
    """Yield each call with the first device event that it caused."""
    calls = {call.correlation: call for call in records if call.kind in ("runtime", "driver")}
    for record in records:
        if record.kind in DEVICE_KINDS and record.correlation is not None:
            call = calls.pop(record.correlation, None)
            if call is not None:
                yield record.correlation, (call, record)


def _backwards(records: Sequence[Record]) -> Iterator[tuple[int, tuple[Record, Record]]]:
    """Yield each forward operator with its backward, which has the same sequence number."""
    forwards: dict[int, Record] = {}
    linked = 0
    for record in records:
        sequence = record.details.get("Sequence number")
        if record.kind != "operator" or sequence is None:
            continue
        if "Fwd thread id" not in record.details:
            forwards.setdefault(sequence, record)
        elif sequence in forwards:
            linked += 1
            yield linked, (forwards.pop(sequence), record)


def _names(recording: Recording, machine: Machine) -> Iterator[Event]:
    """Yield the rows that name processes and threads."""
    start_us = recording.start_ns / 1000
    processes = [(PROCESS_ID, "CPU", PROCESS_ID)]
    lanes = [(PROCESS_ID, PROCESS_ID + number, "thread") for number in recording.threads]
    if machine.has_device:
        processes.append((0, "GPU 0", 5_000_000))
        lanes += [(0, stream, "stream") for stream in recording.streams]
    for pid, label, order in processes:
        at = {"ts": start_us, "pid": pid, "tid": 0}
        yield {"ph": "M", "name": "process_name", **at, "args": {"name": "python"}}
        yield {"ph": "M", "name": "process_labels", **at, "args": {"labels": label}}
        yield {"ph": "M", "name": "process_sort_index", **at, "args": {"sort_index": order}}
    for pid, tid, word in lanes:
        at = {"ts": start_us, "pid": pid, "tid": tid}
        name = f"thread {tid} (python)" if word == "thread" else f"stream {tid} "
        yield {"ph": "M", "name": "thread_name", **at, "args": {"name": name}}
        yield {"ph": "M", "name": "thread_sort_index", **at, "args": {"sort_index": tid}}


def _frame(recording: Recording) -> Iterator[Event]:
    """Yield the begin and the end of the recording."""
    start_us, end_us = recording.start_ns / 1000, recording.end_ns / 1000
    yield {
        "ph": "X",
        "cat": "Trace",
        "name": "PyTorch Profiler (0)",
        "pid": "Spans",
        "tid": "PyTorch Profiler",
        "ts": start_us,
        "dur": (recording.end_ns - recording.start_ns) / 1000,
        "args": {"Op count": 0},
    }
    yield {
        "ph": "i",
        "s": "g",
        "name": "Iteration Start: PyTorch Profiler",
        "pid": "Traces",
        "tid": "Trace PyTorch Profiler",
        "ts": start_us,
    }
    yield {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": end_us}
