"""Documents in which every event is at the worst: the time of an analysis must not depend on it."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

Event = dict[str, Any]
Change = Callable[[int, Event], None]


def _event(name: str, category: str, ts: float, dur: float, **args: Any) -> Event:
    return {"ph": "X", "name": name, "cat": category, "ts": ts, "dur": dur, "pid": 1, "tid": 1,
            "args": args}  # fmt: skip


def loop(count: int) -> list[Event]:
    """Return operators, each with its launch and kernel, in steps, and some allocations."""
    length_us = max(200, count * 20)
    events = [
        _event(f"ProfilerStep#{number}", "user_annotation", number * length_us, length_us)
        for number in range(10)
    ]
    for number in range(count):
        at = number * 200
        kernel = {"correlation": number, "device": 0, "stream": 7}
        memory = {"Device Type": 1, "Device Id": 0, "Addr": number, "Bytes": 512}
        memory |= {"Total Allocated": 512 * number, "Total Reserved": 2**30}
        events += [
            _event("aten::mm", "cpu_op", at, 100, **{"External id": number}),
            _event("cudaLaunchKernel", "cuda_runtime", at + 10, 20, correlation=number),
            _event(f"gemm{number % 50}", "kernel", at + 50, 150, **kernel) | {"pid": 0, "tid": 7},
            _event("[memory]", "cpu_instant_event", at + 5, 0, **memory) | {"ph": "i", "s": "t"},
        ]
    return events


def _fields(category: str, **fields: Any) -> Change:
    """Return a change of the fields of all events of a category, by their numbers."""

    def change(number: int, event: Event) -> None:
        if category in ("", event["cat"]):
            event.update(
                {key: value(number) if callable(value) else value for key, value in fields.items()}
            )

    return change


def _arguments(category: str, arguments: Callable[[int], dict[str, Any]]) -> Change:
    def change(number: int, event: Event) -> None:
        if event["cat"] == category:
            event["args"].update(arguments(number))

    return change


def _collectives(arguments: Callable[[int], dict[str, Any]]) -> Change:
    """Return a change that makes collectives of all kernels."""

    def change(number: int, event: Event) -> None:
        if event["cat"] == "kernel":
            event["name"] = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
            event["args"] |= {"Collective name": "allreduce", "Group size": 2, "dtype": "Float"}
            event["args"] |= arguments(number)

    return change


def _deep(category: str, name: str) -> Change:
    """Return a change that puts all operators into each other."""

    def change(number: int, event: Event) -> None:
        if event["cat"] == "cpu_op":
            ids = {"Python id": number, "Python parent id": number - 1, "Python module id": number}
            event.update(cat=category, name=f"{name}{number}", ts=number, dur=10**7 - 2 * number)
            event["args"] = ids

    return change


CHANGES: MappingProxyType[str, Change] = MappingProxyType(
    {
        "kernels of days": _fields("kernel", dur=1e12),
        "operators of days": _fields("cpu_op", dur=1e11),
        "launches of days": _fields("cuda_runtime", dur=1e11),
        "negative durations": _fields("kernel", dur=-5),
        "all at once": _fields("", ts=0),
        "over centuries": _fields("", ts=lambda number: number * 1e10),
        "a thread each": _fields("", tid=lambda number: number),
        "a name each": _fields("", name=lambda number: f"name{number}"),
        "a step each": _fields(
            "cpu_op", cat="user_annotation", name=lambda number: f"ProfilerStep#{number}"
        ),
        "steps in each other": _fields(
            "cpu_op", cat="user_annotation", name=lambda n: f"ProfilerStep#{n}", dur=1e7
        ),
        "negative steps": _fields(
            "user_annotation", name=lambda number: f"ProfilerStep#{number - 20}"
        ),
        "no names": _fields("cpu_op", name=None),
        "only synchronizations": _fields("cuda_runtime", name="cudaDeviceSynchronize"),
        "only loading": _fields(
            "cpu_op", name="enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
        ),
        "a device each": _arguments("kernel", lambda number: {"device": number}),
        "a stream each": _arguments("kernel", lambda number: {"stream": number}),
        "one correlation": _arguments("kernel", lambda _: {"correlation": 1}),
        "an allocator each": _arguments("cpu_instant_event", lambda n: {"Device Id": n}),
        "one address": _arguments("cpu_instant_event", lambda _: {"Addr": 1}),
        "memory at its limits": _arguments(
            "cpu_instant_event",
            lambda number: {"Bytes": 2**62, "Total Allocated": (-1) ** number * 2**62},
        ),
        "one sequence number": _arguments(
            "cpu_op", lambda _: {"Sequence number": 1, "Fwd thread id": 1}
        ),
        "a group each": _collectives(lambda number: {"Process Group Name": str(number)}),
        "a message each": _collectives(lambda number: {"In msg nelems": number}),
        "deep operators": _deep("cpu_op", "op"),
        "deep Python": _deep("python_function", "train.py(3): f"),
        "deep modules": _deep("python_function", "nn.Module: M_"),
    }
)


def document(name: str, count: int) -> dict[str, Any]:
    """Return a document of 4 * `count` events with one change to all of them."""
    events = loop(count)
    for number, event in enumerate(events):
        CHANGES[name](number, event)
    return {"deviceProperties": [{"id": 0, "name": "NVIDIA A100"}], "traceEvents": events}
