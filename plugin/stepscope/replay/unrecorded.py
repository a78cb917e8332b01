"""The step as it runs without the profiler: the recorded one without the cost of recording.

Recording slows the host: each event costs it some time (`base/recording_costs.py`). A part of the
cost is local: half of it is deducted where an event begins, half where it ends, from the host's
time between the two points around that moment. The rest, of caches and memory, is deducted from
operators that write fresh memory (`replay/fresh_memory.py`), and where that is not enough, from all
of the host's time. Device work keeps its time, and the host waits for it as long as needed.

Where the recorder measured unrecorded steps, the rest is such that the simulated step is the
measured one; where the local part alone is too much, it is multiplied by a factor.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.base import recording_costs as costs
from stepscope.dialects import Kind
from stepscope.model.arrays import Floats, Ints
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import (
    NO_COSTS,
    ChainCosts,
    Change,
    Costs,
    ScaleAllHost,
    Stretches,
)
from stepscope.replay.fresh_memory import most_lost_ns
from stepscope.replay.graph import ReplayGraph, replay_graph
from stepscope.replay.points import chain_of_calls, chain_of_thread
from stepscope.replay.simulation import Simulation, simulate

HOST_KINDS = (Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON_CALL, Kind.MEMORY, Kind.RUNTIME_CALL)
NO_ROWS: Ints = np.zeros(0, dtype=np.int64)
HALVINGS = 20
CLOSE = 1.001
"""Time of the shortest attainable step, as a multiple: where the measured step is shorter still."""
NEAR = 0.005
"""Relative difference to the measured step up to which the usual costs remain."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WithoutProfiler(Change):
    """Host time without the cost of the events recorded in it."""

    edges: Ints
    """Edges of the graph; shape (n,)."""
    cost_ns: Floats
    """Cost of the events that begin or end between each edge's two points; shape (n,)."""
    costs: Costs
    """The same by moment, for parts of an edge."""
    factor: float = 1.0
    """Factor of all costs."""

    def apply(self, graph: ReplayGraph, weight_ns: Ints) -> Ints:
        """Deduct the costs; no weight falls below 0."""
        del graph
        shortened = weight_ns.copy()
        before = weight_ns[self.edges]
        after = before - np.rint(self.factor * self.cost_ns).astype(np.int64)
        shortened[self.edges] = np.maximum(after, np.minimum(before, 0))
        return shortened


@dataclass(frozen=True, kw_only=True, eq=False)
class UnrecordedWorld:
    """The simulated step without the profiler, and the changes that lead to it.

    Times are per step; without steps, of the window.
    """

    changes: tuple[Change, ...]
    """To apply before all others."""
    costs: Costs
    """Cost of recording that they take out of the host's time."""
    event_costs: Costs
    """The part of it that recorded events cost, where they are."""
    recorded_ns: int
    predicted_ns: int
    measured_ns: int | None
    """Mean of the measured unrecorded steps; None: not measured."""
    event_factor: float
    """Factor of the usual cost of recorded events that is deducted where they are."""
    memory_factor: float
    """Factor of the most that operators may lose to fresh memory."""
    host_factor: float
    """Factor of the host's remaining time."""


@dataclass(frozen=True, kw_only=True)
class _Costs:
    """Amounts by which recording slows the host."""

    event_factor: float = costs.LOCAL_PART
    memory_factor: float = 0.0
    host_factor: float = 1.0

    def changes(self, usual: "_Usual") -> tuple[Change, ...]:
        """Return the changes that take them out of a trace."""
        events = replace(usual.events, factor=self.event_factor)
        memory = replace(usual.memory, factor=self.memory_factor)
        host = ScaleAllHost(factor=self.host_factor)
        return (
            events,
            *((memory,) if self.memory_factor else ()),
            *((host,) if self.host_factor < 1 else ()),
        )


class _Usual(NamedTuple):
    """Changes that take out the usual cost of events, and the most that fresh memory takes."""

    events: WithoutProfiler
    memory: WithoutProfiler


@computed
def unrecorded_world(trace: Trace) -> UnrecordedWorld:
    """Return the step without the profiler: measured if possible, else estimated.

    Raises:
        MissingDataError: the replay does not describe this trace (see `simulate`).
    """
    recorded = simulate(trace, [])
    usual = _Usual(without_profiler(trace), without_fresh_memory(trace))
    measured = measured_steps(trace)
    has_device = len(trace.device_events) > 0
    slowdown = costs.HOST_SLOWDOWN_WITH_DEVICE if has_device else costs.HOST_SLOWDOWN
    typical = _spread(recorded, usual, slowdown)
    if measured is None or not recorded.step_count:
        return _world(recorded, usual, typical)
    target_ns = measured.step_ns * recorded.step_count
    if target_ns >= recorded.recorded_ns:
        unchanged = _world(recorded, usual, _Costs(event_factor=0.0))
        return replace(
            unchanged,
            changes=(),
            costs=NO_COSTS,
            event_costs=NO_COSTS,
            measured_ns=measured.step_ns,
        )
    calibrated = _calibrated(recorded, usual, typical, target_ns)
    return replace(_world(recorded, usual, calibrated), measured_ns=measured.step_ns)


@computed
def without_profiler(trace: Trace) -> WithoutProfiler:
    """Return the change that takes the usual cost of recording out of the host's time."""
    events = _host_events(trace)
    half_ns = np.tile(events.cost_ns / 2, 2)  # where it begins, and where it ends
    moment_ns = np.concatenate((events.start_ns, events.end_ns))
    return _without(trace, np.tile(events.chain, 2), moment_ns, half_ns)


@computed
def without_fresh_memory(trace: Trace) -> WithoutProfiler:
    """Return the change that takes the most out of it that operators may lose to fresh memory.

    Nothing on a device: its tensors are not in the host's memory.
    """
    lost_ns, calls = most_lost_ns(trace), trace.host_calls
    rows = np.flatnonzero(lost_ns) if not len(trace.device_events) else NO_ROWS
    start_ns, end_ns = (calls[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    chain = chain_of_calls(trace)[rows]
    return _without(trace, chain, (start_ns + end_ns) // 2, lost_ns[rows])


def _without(trace: Trace, chain: Ints, moment_ns: Ints, cost_ns: Floats) -> WithoutProfiler:
    """Return the change that takes costs at some moments of chains out of the host's time."""
    work = replay_graph(trace).host_work
    costs_of = {}
    for number in np.unique(work.chain).tolist():
        rows = np.flatnonzero(chain == number)
        rows = rows[np.argsort(moment_ns[rows], kind="stable")]
        costs_of[number] = ChainCosts(moment_ns[rows], np.cumsum(cost_ns[rows]))
    stretches = Stretches(work.edges, work.start_ns, work.end_ns, work.chain)
    return WithoutProfiler(edges=work.edges, cost_ns=stretches.cost(costs_of), costs=costs_of)


@dataclass(frozen=True, kw_only=True, eq=False)
class _HostEvents:
    """Recorded events of the host; all arrays have shape (n,)."""

    start_ns: Ints
    end_ns: Ints
    chain: Ints
    """Chain of the event's thread; -1: none."""
    cost_ns: Floats


def _host_events(trace: Trace) -> _HostEvents:
    source = trace.source
    rows = np.concatenate([source.rows(kind) for kind in HOST_KINDS])
    kind = source.kinds[rows]
    start_ns = source.columns.start_ns[rows]
    length_ns = np.where(kind == Kind.MEMORY, 0, source.columns.duration_ns[rows])
    return _HostEvents(
        start_ns=start_ns,
        end_ns=start_ns + np.maximum(length_ns, 0),
        chain=chain_of_thread(trace)[np.asarray(source.thread(rows).codes)],
        cost_ns=_cost_of_kinds(trace)[kind],
    )


def _cost_of_kinds(trace: Trace) -> Floats:
    """Return the cost of an event of each kind, by the options of the recording."""
    has_shapes = bool((trace.host_calls["input_dims"].cat.codes >= 0).any())
    has_stacks = bool(len(trace.source.rows(Kind.PYTHON_CALL)))
    result = np.zeros(max(Kind) + 1)
    result[Kind.ANNOTATION] = costs.OPERATOR.ns
    result[Kind.OPERATOR] = (
        costs.OPERATOR.ns
        + costs.OPERATOR_SHAPES.ns * has_shapes
        + costs.OPERATOR_STACKS.ns * has_stacks
    )
    result[Kind.PYTHON_CALL] = costs.PYTHON_CALL.ns
    result[Kind.MEMORY] = costs.MEMORY.ns
    result[Kind.RUNTIME_CALL] = costs.RUNTIME_CALL.ns
    return result


def _spread(recorded: Simulation, usual: _Usual, slowdown: float) -> _Costs:
    """Return the usual costs, and a slowdown (0 to 1) of all host time.

    The slowdown is of fresh memory as far as that may take it; the rest is of all host time.
    """
    event_ns, memory_ns = usual.events.cost_ns, float(usual.memory.cost_ns.sum())
    host_ns = np.maximum(0, recorded.graph.weight_ns[usual.events.edges]).astype(np.float64)
    left_ns = float(np.maximum(0.0, host_ns - costs.LOCAL_PART * event_ns).sum())
    spread_ns = (1 - costs.LOCAL_PART) * float(event_ns.sum())
    left = max(0.0, 1 - spread_ns / max(1.0, left_ns)) * (1 - slowdown)
    lost_ns = (1 - left) * left_ns
    if lost_ns <= memory_ns:
        return _Costs(memory_factor=lost_ns / max(1.0, memory_ns))
    factor = (left_ns - lost_ns) / max(1.0, left_ns - memory_ns)
    return _Costs(memory_factor=1.0 if memory_ns else 0.0, host_factor=factor)


def _calibrated(recorded: Simulation, usual: _Usual, typical: _Costs, target_ns: int) -> _Costs:
    """Return the costs without which the window takes the target's time.

    The typical ones, where they lead to it: where the device is the limit, many do.
    """

    def by_events(factor: float) -> _Costs:
        return _Costs(event_factor=factor * costs.LOCAL_PART)

    def by_memory(part: float) -> _Costs:
        return _Costs(memory_factor=part)

    def by_host(part: float) -> _Costs:
        return _Costs(memory_factor=1.0 if has_memory else 0.0, host_factor=1 - part)

    def simulated_ns(of: _Costs) -> int:
        return _simulated_ns(recorded, of.changes(usual))

    has_memory = bool(usual.memory.cost_ns.any())
    attainable_ns = max(target_ns, round(CLOSE * simulated_ns(by_host(1.0))))
    if abs(simulated_ns(typical) - attainable_ns) <= NEAR * attainable_ns:
        return typical
    if simulated_ns(_Costs()) < target_ns:
        return by_events(_least(lambda factor: simulated_ns(by_events(factor)), target_ns))
    if has_memory and simulated_ns(by_memory(1.0)) <= attainable_ns:
        return by_memory(_least(lambda part: simulated_ns(by_memory(part)), attainable_ns))
    return by_host(_least(lambda part: simulated_ns(by_host(part)), attainable_ns))


def _least(simulated_ns: Callable[[float], int], target_ns: int) -> float:
    """Return the least amount from 0 to 1 with which the simulated time is at most the target."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_met = simulated_ns(middle) <= target_ns
        low, high = (low, middle) if is_met else (middle, high)
    return high


def _simulated_ns(recorded: Simulation, changes: Sequence[Change]) -> int:
    return recorded.with_changes(changes).simulated_ns


def _world(recorded: Simulation, usual: _Usual, of: _Costs) -> UnrecordedWorld:
    steps, changes = max(1, recorded.step_count), of.changes(usual)
    event_costs = {
        chain: ChainCosts(costs_of.moment_ns, of.event_factor * costs_of.cost_ns)
        for chain, costs_of in usual.events.costs.items()
    }
    return UnrecordedWorld(
        changes=changes,
        costs={
            chain: _sum(costs_of, usual.memory.costs[chain], of.memory_factor)
            for chain, costs_of in event_costs.items()
        },
        event_costs=event_costs,
        recorded_ns=round(recorded.recorded_ns / steps),
        predicted_ns=round(_simulated_ns(recorded, changes) / steps),
        measured_ns=None,
        event_factor=of.event_factor,
        memory_factor=of.memory_factor,
        host_factor=of.host_factor,
    )


def _sum(costs_of: ChainCosts, others: ChainCosts, factor: float) -> ChainCosts:
    """Return costs of a chain plus others times a factor; without others the same object."""
    if not factor or not len(others.moment_ns):
        return costs_of
    moment_ns = np.concatenate((costs_of.moment_ns, others.moment_ns))
    parts_ns = [costs_of.cost_ns, factor * others.cost_ns]
    cost_ns = np.concatenate([np.diff(part_ns, prepend=0) for part_ns in parts_ns])
    order = np.argsort(moment_ns, kind="stable")
    return ChainCosts(moment_ns[order], np.cumsum(cost_ns[order]))
