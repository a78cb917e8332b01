"""Small trace documents, cut from real ones, and changed by their structure."""

import gzip
import json
import random
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

Document = dict[str, Any]
Mutation = Callable[[random.Random, Document], None]

ROOT = Path(__file__).resolve().parents[2]
MOST_FILE_BYTES = 400_000
SIZES = (150, 600, 600, 3_000)
"""Events of a document before its changes."""
FIELDS = ("ph", "cat", "name", "pid", "tid", "id", "ts", "dur", "args", "s", "bp")
EDGES = tuple(
    sign * (2**power + more)
    for power in (31, 53, 62, 63, 64)
    for more in (-1, 0, 1)
    for sign in (1, -1)
)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 0.5, -0.0, 1e300, 1e-300, float("inf"), float("nan")),
    *("", "0", "-1", "x", "1e400", "²", "--5", "9" * 30, "a/b", "\u00e9\U0001f600", "n" * 5000),
    *([], {}, [[]], [None], [1, "a", {}], {"a": {"b": []}}, [[2**62, 2**62]], [-1], "[]", "{}"),
    *EDGES,
)
TIMES_US: tuple[Any, ...] = (
    *(0, -1, 0.001, -0.001, 1e6, -1e6, 1e9, 1e12, 1e15, -1e15, 9.2e15, 1e18, -1e18, 1e30),
    *(2**53, 2**62, "12.5", "x", None, 3e13, 3e14),
)
STEPS = ("-5", "0", "1", "99999999999999999999", "²", "", "1.5", "-0", str(2**63), "7#8")
ARGUMENTS = (
    *("External id", "correlation", "device", "stream", "context", "Sequence number"),
    *("Fwd thread id", "Ev Idx", "Python id", "Python parent id", "Python module id"),
    *("Input Dims", "Input type", "Concrete Inputs", "Input Strides", "bytes", "kind", "grid"),
    *("block", "Bytes", "Addr", "Total Allocated", "Total Reserved", "Device Id", "Device Type"),
    *("queued", "graph id", "graph node id", "wait_on_stream", "wait_on_cuda_event_record_corr_id"),
    *("Collective name", "Process Group Ranks", "Group size", "In msg nelems", "dtype", "Rank"),
    *(
        "blocks per SM",
        "warps per SM",
        "est. achieved occupancy %",
        "Call stack",
        "memory bandwidth",
    ),
)
NAMES = (
    *(
        "",
        "ProfilerStep#1",
        "aten::mm",
        "aten::copy_",
        "aten::item",
        "cudaLaunchKernel",
        "[memory]",
    ),
    *("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "cudaDeviceSynchronize"),
    *("Optimizer.step#SGD.step", "nccl:all_reduce", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"),
    *("cudaGraphLaunch", "Memcpy HtoD (Pageable -> Device)", "nn.Module: Linear_0", "a" * 3000),
    *("autograd::engine::evaluate_function: MmBackward0", "train.py(3): main", "cudaMalloc"),
    "## Call CompiledFxGraph abc ##",
)
CATEGORIES = (
    *("cpu_op", "user_annotation", "kernel", "cuda_runtime", "gpu_memcpy", "gpu_memset", "ac2g"),
    *("python_function", "cpu_instant_event", "gpu_user_annotation", "fwdbwd", "cuda_driver"),
    *("overhead", "Trace", "cuda_sync", "", "odd"),
)


@cache
def sources() -> tuple[Path, ...]:
    """Return small real and synthetic traces, in the order of their names."""
    paths = sorted((ROOT / "sample_logs").rglob("*.json.gz"))
    return tuple(path for path in paths if path.stat().st_size < MOST_FILE_BYTES)


@cache
def _source(path: Path) -> Document:
    document: Document = json.loads(gzip.decompress(path.read_bytes()))
    return document


def excerpt(rng: random.Random, most: int) -> Document:
    """Return a trace's header and its events of some time."""
    whole = _source(rng.choice(sources()))
    events = whole["traceEvents"]
    timed = sorted(
        (event for event in events if event.get("ph") != "M"), key=lambda event: float(event["ts"])
    )
    first = rng.randrange(max(1, len(timed) - most))
    names = [event for event in events if event.get("ph") == "M"][:40]
    made: Document = json.loads(
        json.dumps({**whole, "traceEvents": names + timed[first : first + most]})
    )
    return made


def _events(document: Document) -> list[dict[str, Any]]:
    return [event for event in document["traceEvents"] if isinstance(event, dict)]


def _some(rng: random.Random, document: Document) -> list[dict[str, Any]]:
    """Return one event, a few, or all of a category."""
    events = _events(document)
    if not events:
        return []
    kind = rng.random()
    if kind < 0.5:
        return [rng.choice(events)]
    if kind < 0.8:
        return rng.sample(events, min(len(events), rng.choice((3, 20, 100))))
    category = rng.choice(events).get("cat")
    return [event for event in events if event.get("cat") == category]


def _arguments(event: dict[str, Any]) -> dict[str, Any]:
    args = event.get("args")
    if not isinstance(args, dict):
        args = event["args"] = {}
    return args


def field(rng: random.Random, document: Document) -> None:
    """Give a field another value or type, the same everywhere or not."""
    name, value = rng.choice(FIELDS), rng.choice(ODD_VALUES)
    is_same = rng.random() < 0.5
    for event in _some(rng, document):
        event[name] = value if is_same else rng.choice(ODD_VALUES)


def drop_field(rng: random.Random, document: Document) -> None:
    """Remove a field."""
    name = rng.choice(FIELDS)
    for event in _some(rng, document):
        event.pop(name, None)


def argument(rng: random.Random, document: Document) -> None:
    """Give an argument another value; it may be one that the event did not have."""
    events = _some(rng, document)
    names = [key for event in events[:1] for key in _arguments(event)] or [*ARGUMENTS]
    name = rng.choice(names if rng.random() < 0.7 else ARGUMENTS)
    value, is_same = rng.choice(ODD_VALUES), rng.random() < 0.5
    for event in events:
        _arguments(event)[name] = value if is_same else rng.choice(ODD_VALUES)


def small_argument(rng: random.Random, document: Document) -> None:
    """Give an argument small numbers, so that events meet."""
    name, most = rng.choice(ARGUMENTS), rng.choice((1, 2, 5, 50))
    for event in _some(rng, document):
        _arguments(event)[name] = rng.randrange(most)


def time(rng: random.Random, document: Document) -> None:
    """Move events, or give them other durations."""
    name, value = rng.choice(("ts", "dur", "dur")), rng.choice(TIMES_US)
    is_same = rng.random() < 0.5
    for event in _some(rng, document):
        event[name] = value if is_same else rng.choice(TIMES_US)


def shift(rng: random.Random, document: Document) -> None:
    """Shift events by a time."""
    by = rng.choice([float(each) for each in TIMES_US if isinstance(each, int | float)])
    for event in _some(rng, document):
        if isinstance(event.get("ts"), int | float):
            event["ts"] += by


def nesting(rng: random.Random, document: Document) -> None:
    """Let events of a thread cross, or lie in each other."""
    events = [event for event in _some(rng, document) if isinstance(event.get("ts"), int | float)]
    for event, other in pairwise(events):
        event["ts"] = other["ts"] + rng.choice((-1, 0, 0.001, 1))
        event["dur"] = rng.choice((0, 0.001, 5, 1e3, 1e5))


def threads(rng: random.Random, document: Document) -> None:
    """Give events many threads, processes, streams or devices, or one."""
    name, count = rng.choice(("tid", "pid", "stream", "device")), rng.choice((1, 2, 50, 10**6))
    for event in _some(rng, document):
        of = event if name in ("tid", "pid") else _arguments(event)
        of[name] = rng.randrange(count)


def rename(rng: random.Random, document: Document) -> None:
    """Give events another name or category."""
    name, values = rng.choice((("name", NAMES), ("cat", CATEGORIES)))
    value = rng.choice(values)
    for event in _some(rng, document):
        event[name] = value


def steps(rng: random.Random, document: Document) -> None:
    """Give steps odd numbers."""
    is_same, number = rng.random() < 0.3, rng.choice(STEPS)
    for event in _events(document):
        if str(event.get("name")).startswith("ProfilerStep") and rng.random() < 0.7:
            event["name"] = f"ProfilerStep#{number if is_same else rng.choice(STEPS)}"


def cycles(rng: random.Random, document: Document) -> None:
    """Let events name each other, or themselves, as parent or cause."""
    pairs = (
        ("Python id", "Python parent id"),
        ("External id", "correlation"),
        ("Ev Idx", "External id"),
        ("correlation", "wait_on_cuda_event_record_corr_id"),
    )
    of, parent = rng.choice(pairs)
    count = rng.choice((1, 2, 7))
    for number, event in enumerate(_some(rng, document)):
        _arguments(event).update({of: number % count, parent: (number + 1) % count})


def counters(rng: random.Random, document: Document) -> None:
    """Add allocations and counters with odd numbers."""
    events = _events(document)
    for _ in range(rng.choice((1, 20, 300))):
        near = rng.choice(events) if events else {}
        values = {
            "Device Type": rng.choice((0, 1)),
            "Device Id": rng.choice((-1, 0, 0, 1)),
            "Addr": rng.choice((1, 2, 3, *EDGES[:4])),
            "Bytes": rng.choice((512, -512, *EDGES)),
            "Total Allocated": rng.choice((0, 512, *EDGES)),
            "Total Reserved": rng.choice((0, 2**20, *EDGES)),
        }
        new = {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "pid": 1, "tid": 1}
        if rng.random() < 0.3:
            new |= {"ph": "C", "name": "GPU 0 Power", "cat": "counter"}
            values = {"value": rng.choice(ODD_VALUES)}
        document["traceEvents"].append(new | {"ts": near.get("ts"), "args": values, "s": "t"})


def order(rng: random.Random, document: Document) -> None:
    """Shuffle, repeat or drop events."""
    events, kind = document["traceEvents"], rng.randrange(4)
    if kind == 0:
        rng.shuffle(events)
    elif kind == 1:
        events += json.loads(json.dumps(_some(rng, document)))
    elif kind == 2:
        gone = {id(event) for event in _some(rng, document)}
        document["traceEvents"] = [event for event in events if id(event) not in gone]
    else:
        events.insert(rng.randrange(len(events) + 1), rng.choice(ODD_VALUES))


def header(rng: random.Random, document: Document) -> None:
    """Change a value of the header, such as the recorder's settings, at any depth."""
    keys = [key for key in document if key != "traceEvents"]
    at: Any = document
    key: Any = rng.choice(keys) if keys else "schemaVersion"
    while isinstance(at.get(key), dict | list) and at[key] and rng.random() < 0.8:
        inner = at[key]
        if isinstance(inner, list):
            position = rng.randrange(len(inner))
            if not isinstance(inner[position], dict | list):
                inner[position] = rng.choice(ODD_VALUES)
                return
            at, key = {0: inner[position]}, 0
        else:
            at, key = inner, rng.choice([*inner])
    at[key] = rng.choice(ODD_VALUES)


MUTATIONS: tuple[Mutation, ...] = (
    *(field, drop_field, argument, argument, small_argument, time, time, shift, nesting),
    *(threads, rename, steps, cycles, counters, order, header, header),
)
DAMAGED = 0.1


def document(seed: int) -> tuple[str, bytes]:
    """Return the name and the bytes of a changed document; the same for a seed."""
    rng = random.Random(seed)  # noqa: S311 (to be repeated)
    made = excerpt(rng, rng.choice(SIZES))
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        rng.choice(MUTATIONS)(rng, made)
    data = json.dumps(made).encode()
    is_packed = rng.random() < DAMAGED
    if is_packed:
        data = gzip.compress(data, 1, mtime=0)
    if rng.random() < DAMAGED:
        data = _damaged(rng, data)
    return f"worker0.{seed}.pt.trace.json{'.gz' if is_packed else ''}", data


def _damaged(rng: random.Random, data: bytes) -> bytes:
    """Return the bytes of a file that was cut off, or changed somewhere."""
    kind = rng.randrange(4)
    if kind == 0:
        return data[: rng.randrange(len(data))]
    changed = bytearray(data)
    for _ in range(rng.choice((1, 5, 50))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    if kind == 1:
        return bytes(changed)
    start = rng.randrange(len(data))
    gap = rng.choice((1, 30, 5000))
    return data[:start] + (b"\0" * gap if kind == 2 else b"") + data[start + gap :]
