"""Small trace documents, cut from real ones, and changed by their structure."""

import gzip
import json
import random
import zipfile
from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from fuzz import worst

Document = dict[str, Any]
Mutation = Callable[[random.Random, Document], None]

ROOT = Path(__file__).resolve().parents[2]
MOST_FILE_BYTES = 400_000
MOST_CUT_EVENTS = 500
CUTS = 3
"""Of each trace, in a row; as many of the beginnings of steps."""
CUT_STEPS = 6
SIZES = (30, 60, 60, 150, 150, 500)
"""Most events of a document before its changes."""
MUTATION_COUNTS = (1, 1, 2, 3, 6, 12)
OF_A_PRODUCER = 0.2
"""Fraction of the documents that begin as a loop in a vendor's names, not as a cut of a trace."""
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
    *("12", "1.5", " 7", "0x10", "NaN", "nan", "null", "\ud800", "a\u0000b", "\u202e<script>"),
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
KINDS = {
    "user_annotation": "annotation",
    "cpu_op": "operator",
    "cuda_runtime": "runtime_call",
    "kernel": "kernel",
    "cpu_instant_event": "memory",
}
"""Categories of the loop, as the dialects' cases name them."""
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
def cuts(path: Path) -> tuple[bytes, ...]:
    """Return documents of some events in a row of a trace, and of the beginnings of its steps."""
    whole = json.loads(gzip.decompress(path.read_bytes()))
    events = [event for event in whole["traceEvents"] if isinstance(event, dict)]
    names = [event for event in events if event.get("ph") == "M"][:20]
    timed = sorted(
        (each for each in events if isinstance(each.get("ts"), int | float)),
        key=lambda each: float(each["ts"]),
    )
    rng = random.Random(path.name)  # noqa: S311 (to be repeated)
    starts = [rng.randrange(max(1, len(timed) - MOST_CUT_EVENTS)) for _ in range(CUTS)]
    rows = [timed[start : start + MOST_CUT_EVENTS] for start in starts]
    rows += [_beginnings(rng, timed) for _ in range(CUTS)]
    return tuple(json.dumps({**whole, "traceEvents": names + of}).encode() for of in rows)


def _beginnings(rng: random.Random, timed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return steps, some events of each, and those that these launched."""
    steps = [each for each in timed if str(each.get("name")).startswith("ProfilerStep")]
    first = rng.randrange(max(1, len(steps) - CUT_STEPS))
    times = [each["ts"] for each in timed]
    chosen = {id(each): each for each in steps[first : first + CUT_STEPS]}
    for step in steps[first : first + CUT_STEPS]:
        start = bisect_left(times, step["ts"]) + rng.randrange(30)
        chosen |= {id(each): each for each in timed[start : start + 25]}
    links = {_link(each) for each in chosen.values()} - {None}
    linked = [each for each in timed if _link(each) in links]
    chosen |= {id(each): each for each in linked[:MOST_CUT_EVENTS]}
    return [each for each in timed if id(each) in chosen]


def _link(event: dict[str, Any]) -> Any:
    args = event.get("args")
    link = args.get("correlation") if isinstance(args, dict) else None
    return link if isinstance(link, int) else None


def excerpt(rng: random.Random, most: int, paths: Sequence[Path]) -> Document:
    """Return a trace's header and some of its events."""
    made: Document = json.loads(rng.choice(cuts(rng.choice(paths))))
    events = made["traceEvents"]
    first = rng.randrange(max(1, len(events) - most))
    if rng.random() < 0.5 or len(events) > MOST_CUT_EVENTS:
        made["traceEvents"] = events[first : first + most]
    return made


@cache
def _dialects() -> tuple[dict[str, Any], ...]:
    paths = sorted((ROOT / "tests" / "dialects").glob("*.yml"))
    return tuple(yaml.safe_load(path.read_text()) for path in paths)


def producer(rng: random.Random, most: int) -> Document:
    """Return a loop whose events have the names of a vendor."""
    dialect = rng.choice(_dialects())
    kinds: dict[str, list[Any]] = {}
    for of in dialect["events"]:
        kinds.setdefault(of[2], []).append(of)
    made = worst.loop(max(2, most // 4))
    for event in made:
        kind = KINDS[event["cat"]]
        if kind in kinds and not str(event["name"]).startswith("ProfilerStep"):
            category, name, _, *more = rng.choice(kinds[kind])
            event.update(cat=category, name=name)
            event["args"] |= more[0] if more else {}
    made += [_other(rng, rng.choice(dialect["events"]), rng.choice(made)) for _ in range(most // 8)]
    header = dict.fromkeys(dialect["metadata"], 1)
    return header | {"deviceProperties": [{"id": 0, "name": "x"}], "traceEvents": made}


def _other(rng: random.Random, of: list[Any], near: dict[str, Any]) -> dict[str, Any]:
    """Return an event of a vendor at the time of another."""
    category, name, _, *more = of
    args = near["args"] | (more[0] if more else {}) | _collective(rng)
    return near | {"ph": "X", "cat": category, "name": name, "args": args}


def _collective(rng: random.Random) -> dict[str, Any]:
    """Return the arguments of a collective, of a node of a graph, or none."""
    kind = rng.randrange(4)
    if kind == 0:
        return {
            "Collective name": rng.choice(("allreduce", "_allgather_base", "send", "alltoallv")),
            "Process Group Name": rng.choice(("0", "1", "")),
            "Process Group Description": "default_pg",
            "Process Group Ranks": rng.choice(("[0, 1]", "[0, 1, 2, ..., 7]", "[]")),
            "Group size": rng.choice((0, 1, 2, 8)),
            "In msg nelems": rng.choice((0, 1000, 2**40)),
            "Out msg nelems": rng.choice((0, 1000)),
            "dtype": rng.choice(("Float", "BFloat16", "x")),
            "In split size": rng.choice(("[]", "[1, 2]", "[1, ...]")),
            "Out split size": "[2, 1]",
            "Seq": rng.randrange(3),
        }
    if kind == 1:
        return {"graph id": rng.randrange(2), "graph node id": rng.randrange(5)}
    return {}


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


def as_text(rng: random.Random, document: Document) -> None:
    """Write numbers as texts."""
    for event in _some(rng, document):
        of = event if rng.random() < 0.5 else _arguments(event)
        for name, value in of.items():
            if isinstance(value, int | float):
                of[name] = str(value)


def recorder(rng: random.Random, document: Document) -> None:
    """Set flags and settings of the recorder, right or wrong."""
    names = ("record_shapes", "with_stack", "profile_memory", "with_flops", "with_modules")
    for name in rng.sample(names, 2):
        document[name] = rng.choice((0, 1, rng.choice(ODD_VALUES)))
    document["distributedInfo"] = {
        "backend": rng.choice(("nccl", "gloo", 5)),
        "rank": rng.choice((0, 1, "1", -1, rng.choice(ODD_VALUES))),
        "world_size": rng.choice((0, 1, 2, 2**40, rng.choice(ODD_VALUES))),
        "pg_config": rng.choice(([], [{"pg_name": "0", "ranks": [0, 1]}], [5], {}, "x")),
    }


MUTATIONS: tuple[Mutation, ...] = (
    *(field, drop_field, argument, argument, small_argument, time, time, shift, nesting),
    *(threads, rename, steps, cycles, counters, order, header, header, as_text, recorder),
)
DAMAGED = 0.1


def document(seed: int, more: Sequence[Path] = ()) -> tuple[str, bytes]:
    """Return the name and the bytes of a changed document; the same for a seed and more traces."""
    rng = random.Random(seed)  # noqa: S311 (to be repeated)
    most = rng.choice(SIZES)
    if rng.random() < OF_A_PRODUCER:
        made = producer(rng, most)
    else:
        made = excerpt(rng, most, [*sources(), *more])
    for _ in range(rng.choice(MUTATION_COUNTS)):
        rng.choice(MUTATIONS)(rng, made)
    data = json.dumps(made).encode()
    if rng.random() < DAMAGED:
        data = _odd_text(rng, data)
    is_packed = rng.random() < DAMAGED
    if is_packed:
        data = _packed(rng, data)
    if rng.random() < DAMAGED:
        data = damaged(rng, data)
    return f"worker0.{seed}.pt.trace.json{'.gz' if is_packed else ''}", data


def _odd_text(rng: random.Random, data: bytes) -> bytes:
    """Return a document with a key twice, deep lists, long numbers, or in another encoding."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice((b"\xef\xbb\xbf", b"\n" * 70, b"[]", b"\0")) + data
    if kind == 1:
        return data.decode().encode(rng.choice(("utf-16", "utf-16-le", "utf-32")))
    depth = rng.choice((65, 1_000, 100_000))
    piece = rng.choice(
        (
            b'"ts": 5, "ts": 7, "dur": NaN, "name": "twice", "name": ',
            b'"x": ' + b"[" * depth + b"]" * depth + b", ",
            b'"args": {' + b'"a": {' * depth + b"}" * depth + b"}, ",
            b'"dur": 1' + b"0" * depth + b', "pid": -0.' + b"0" * depth + b"1, ",
            b'"args": {"x": ' + b"9" * 400 + b', "x": "y", "\\u0078": 1e999}, ',
        )
    )
    at = data.find(b'"ts"', rng.randrange(len(data)))
    return data[:at] + piece + data[at:] if at > 0 else data


def _packed(rng: random.Random, data: bytes) -> bytes:
    kind = rng.randrange(6)
    if kind == 0:
        packed = BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            for number in range(rng.choice((0, 1, 2))):
                archive.writestr(f"{number}.json", data)
        return packed.getvalue()
    packed_once = gzip.compress(data, 1, mtime=0)
    if kind == 1:
        return gzip.compress(packed_once, 1, mtime=0)
    return packed_once + (rng.choice((packed_once, b"\0" * 100, b"x")) if kind == 2 else b"")


def damaged(rng: random.Random, data: bytes) -> bytes:
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
