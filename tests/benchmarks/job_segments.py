"""Pieces of a synthetic job's steps: the launches of a host between two collectives.

A piece is generated once; its host times count from its begin, its device times from the start of
its first kernel. It ends with a collective, whose times are determined later.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import synthesis
import synthetic_kernels as names
import synthetic_language as language
from synthesis.build import Action, copy, event, kernel, op, python, to_cuda, wait
from synthetic_training import classifier_loss, fetch, optimizer, run_backward, work

Event = dict[str, Any]
COMM_STREAM = 20
SLOWER = 3.0
"""Factor by which kernels run longer than in the sample, so that the host stays ahead."""
LATENCY_NS = 5000.0
VARIES = 0.03
"""Upper bound of the variation of times between ranks."""
KERNELS = {
    "allreduce": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL",
    "_reduce_scatter_base": "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL",
    "all_to_allv": "ncclDevKernel_SendRecv",
}


@dataclass(frozen=True, kw_only=True)
class Collective:
    """Collective at the end of a piece."""

    group: str
    """The kind of its group."""
    name: str
    element_count: int
    transfer_us: float
    is_waited_for: bool = True
    """Whether the compute stream waits for it."""


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One piece; times are in nanoseconds."""

    events: Sequence[Event]
    """`ts` and `dur` are integers."""
    host_ns: int
    device_ns: int = 0
    lead_ns: float = 0.0
    """Minimum delay of the device after the host's begin, so that no kernel starts before its
    launch."""
    called_ns: float = 0.0
    """Time of the collective's launch."""
    collective: Collective | None = None


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A piece at its position in a step."""

    segment: Segment
    kind: str = "work"
    """`load` is the DataLoader, `ask` copies the loss, `wait` waits for that copy."""
    layer: int = 0


@dataclass
class Model:
    """Pieces of one model, each generated once."""

    layer_count: int
    _made: dict[str, Segment] = field(default_factory=dict)

    def step(self) -> Iterator[Turn]:
        """Yield the pieces of one step."""
        yield self._turn("load", fetch(4, 300, []), kind="load")
        yield self._turn(
            "batch", to_cuda(2 * 8 * 512 * 8, [8, 512], pinned=True, non_blocking=True)
        )
        for layer in range(self.layer_count):
            block = python("nn.Module: Block_0", *_slower(language.forward(0, [])))
            yield self._turn("forward", block, layer=layer, then=_tensor())
            if layer % 4 == 0:
                yield self._turn("dispatch", *_router(), layer=layer, then=_experts())
                yield self._turn("context", *_router(), layer=layer, then=_context())
        loss, loss_backward = classifier_loss(language.ROWS, language.WORDS, 420, 900)
        yield self._turn("loss", loss, then=_sum("tp_dp", 1))
        yield self._turn("loss backward", *run_backward(loss_backward))
        for layer in reversed(range(self.layer_count)):
            nodes = run_backward(_slower(language.backwards(0)))
            yield self._turn("backward", *nodes, layer=layer, then=_tensor())
            if layer % 4 == 0:
                yield self._turn("bucket", *_router(), layer=layer, then=_gradients())
        norm = op("aten::_foreach_norm", work(names.MULTI_TENSOR, 70), us=30, dims=[[]])
        yield self._turn("embedding", norm, then=_sum("pp", 12_000_000, 900))
        yield self._turn("found inf", *_router(), then=_sum("mp", 1))
        yield self._turn("norm", norm, then=_sum("world", 1))
        yield self._turn("ask", copy("DtoH", 4), event("loss"), kind="ask")
        yield self._turn("optimizer", *optimizer(8, 110), then=_parameters())
        yield self._turn("take", {"call": "cudaEventSynchronize", "us": 2}, kind="wait")

    def _turn(
        self,
        name: str,
        *actions: Action,
        kind: str = "work",
        layer: int = 0,
        then: Collective | None = None,
    ) -> Turn:
        if name not in self._made:
            self._made[name] = _segment(actions, then)
        return Turn(segment=self._made[name], kind=kind, layer=layer)


def _tensor() -> Collective:
    return Collective(group="tp", name="allreduce", element_count=3_145_728, transfer_us=60)


def _experts() -> Collective:
    return Collective(group="ep", name="all_to_allv", element_count=3_145_728, transfer_us=150)


def _context() -> Collective:
    return Collective(group="cp", name="_allgather_base", element_count=786_432, transfer_us=40)


def _gradients() -> Collective:
    return Collective(
        group="dp",
        name="_reduce_scatter_base",
        element_count=25_000_000,
        transfer_us=700,
        is_waited_for=False,
    )


def _parameters() -> Collective:
    return Collective(group="dp", name="_allgather_base", element_count=6_000_000, transfer_us=300)


def _sum(group: str, element_count: int, transfer_us: float = 25) -> Collective:
    return Collective(
        group=group, name="allreduce", element_count=element_count, transfer_us=transfer_us
    )


def _router() -> list[Action]:
    softmax = op("aten::_softmax", work(names.SOFTMAX, 60), us=8, dims=[[4096, 64]])
    return [op("aten::softmax", softmax, us=4, dims=[[4096, 64]])]


def _slower(actions: Sequence[Mapping[str, Any]]) -> list[Action]:
    """Return actions with longer kernels and without memory events."""
    slower = []
    for action in actions:
        if action.keys() & {"alloc", "free"}:
            continue
        changed = dict(action)
        if "kernel" in action:
            changed["us"] = SLOWER * action["us"]
        if "body" in action:
            changed["body"] = _slower(action["body"])
        slower.append(changed)
    return slower


def _call(collective: Collective) -> list[Action]:
    launch = kernel(
        KERNELS[collective.name], 10, stream=COMM_STREAM, grid=24, block=544, registers=96,
        by="cuLaunchKernelEx",
    )  # fmt: skip
    params = op(
        "record_param_comms", event("ready"), wait("ready", stream=COMM_STREAM), launch, us=6
    )
    called = op(f"c10d::{collective.name.lstrip('_')}_", params, us=5, after_us=2)
    return [called, event("done", stream=COMM_STREAM)]


def _segment(actions: Sequence[Action], collective: Collective | None) -> Segment:
    played = [*actions, *(_call(collective) if collective else ())]
    document = synthesis.synthesise(
        {"actions": played, "record": ["shapes", "stacks"], "profiler_sync": False}
    )
    events = [_timed(row) for row in document["traceEvents"] if "cat" in row]
    events = [row for row in events if row["cat"] != "Trace"]
    host = [row for row in events if row["pid"] != 0]
    device = [row for row in events if row["pid"] == 0 and row["tid"] != COMM_STREAM]
    host_ns = max(row["ts"] + row.get("dur", 0) for row in host)
    first_ns = min((row["ts"] for row in device), default=0)
    for row in device:
        row["ts"] -= first_ns
    called_ns = {
        row["args"]["correlation"]: row["ts"] + row["dur"]
        for row in host
        if "correlation" in row.get("args", {})
    }
    leads = [
        called_ns[row["args"]["correlation"]] * (1 + VARIES) - row["ts"] * (1 - VARIES)
        for row in device
        if "correlation" in row.get("args", {})
    ]
    launched = [
        called_ns[row["args"]["correlation"]]
        for row in events
        if row["pid"] == 0 and row["tid"] == COMM_STREAM and "args" in row
    ]
    return Segment(
        events=events,
        host_ns=host_ns,
        device_ns=max((row["ts"] + row.get("dur", 0) for row in device), default=0),
        lead_ns=max(leads, default=0.0) + LATENCY_NS,
        called_ns=max(launched, default=0.0) + LATENCY_NS,
        collective=collective,
    )


def _timed(event: Mapping[str, Any]) -> Event:
    times = {key: round(event[key] * 1000) for key in ("ts", "dur") if key in event}
    return {**event, **times}
