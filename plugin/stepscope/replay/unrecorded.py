"""The step as it runs without the profiler: the recorded one without the cost of recording.

Recording slows the host: each event costs it some time (`base/recording_costs.py`). A part of the
cost is local: half of it is deducted where an event begins, half where it ends, from the host's
time between the two points around that moment. The rest, of caches and memory, is spread over all
of the host's time. Device work keeps its time, and the host waits for it as long as needed.

Where the recorder measured unrecorded steps, the spread part is such that the simulated step is the
measured one; where the local part alone is too much, it is multiplied by a factor.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.base import recording_costs as costs
from stepscope.base.formatting import count, duration
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
from stepscope.replay.graph import ReplayGraph, replay_graph
from stepscope.replay.points import chain_of_thread
from stepscope.replay.simulation import Simulation, simulate

HOST_KINDS = (Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON_CALL, Kind.MEMORY, Kind.RUNTIME_CALL)
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
    event_count: int
    """Events with a cost, in the whole trace."""
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
    recorded_ns: int
    predicted_ns: int
    fastest_ns: int
    """By the upper end of the costs' range; the prediction itself where steps were measured."""
    slowest_ns: int
    measured_ns: int | None
    """Mean of the measured unrecorded steps; None: not measured."""
    event_factor: float
    """Factor of the usual cost of recorded events that is deducted where they are."""
    host_factor: float
    """Factor of the host's remaining time."""
    event_count: int

    @property
    def origin(self) -> str:
        """The source of the prediction, as a clause."""
        if self.measured_ns is None:
            return f"estimated from the cost of {count(self.event_count, 'recorded event')}"
        measured = f"measured by the recorder: {duration(self.measured_ns)}"
        if not self.changes:
            return f"{measured}, no shorter than recorded steps"
        is_met = self.predicted_ns <= (1 + NEAR) * self.measured_ns
        return measured if is_met else f"{measured}, and the device still takes longer"


@dataclass(frozen=True, kw_only=True)
class _Costs:
    """Amounts by which recording slows the host."""

    event_factor: float = costs.LOCAL_PART
    host_factor: float = 1.0

    def changes(self, usual: WithoutProfiler) -> tuple[Change, ...]:
        """Return the changes that take them out of a trace."""
        events = replace(usual, factor=self.event_factor)
        host = ScaleAllHost(factor=self.host_factor)
        return (events, host) if self.host_factor < 1 else (events,)


@computed
def unrecorded_world(trace: Trace) -> UnrecordedWorld:
    """Return the step without the profiler: measured if possible, else estimated.

    Raises:
        MissingDataError: the replay does not describe this trace (see `simulate`).
    """
    recorded, usual = simulate(trace, []), without_profiler(trace)
    measured = measured_steps(trace)
    has_device = len(trace.device_events) > 0
    slowdown = costs.HOST_SLOWDOWN_WITH_DEVICE if has_device else costs.HOST_SLOWDOWN
    if measured is None or not recorded.step_count:
        return _estimated(recorded, usual, slowdown)
    target_ns = measured.step_ns * recorded.step_count
    if target_ns >= recorded.recorded_ns:
        unchanged = _world(recorded, usual, _Costs(event_factor=0.0))
        return replace(unchanged, changes=(), costs=NO_COSTS, measured_ns=measured.step_ns)
    calibrated = _calibrated(recorded, usual, slowdown, target_ns)
    return replace(_world(recorded, usual, calibrated), measured_ns=measured.step_ns)


@computed
def without_profiler(trace: Trace) -> WithoutProfiler:
    """Return the change that takes the usual cost of recording out of the host's time."""
    work, events = replay_graph(trace).host_work, _host_events(trace)
    costs_of = {
        chain: _chain_costs(events, np.flatnonzero(events.chain == chain))
        for chain in np.unique(work.chain).tolist()
    }
    stretches = Stretches(work.edges, work.start_ns, work.end_ns, work.chain)
    return WithoutProfiler(
        edges=work.edges,
        cost_ns=stretches.cost(costs_of),
        costs=costs_of,
        event_count=len(events.cost_ns),
    )


def _chain_costs(events: "_HostEvents", rows: Ints) -> ChainCosts:
    """Return the costs of a chain's events: half where each begins, half where it ends."""
    moment_ns = np.concatenate((events.start_ns[rows], events.end_ns[rows]))
    order = np.argsort(moment_ns, kind="stable")
    cost_ns = np.tile(events.cost_ns[rows] / 2, 2)[order]
    return ChainCosts(moment_ns=moment_ns[order], cost_ns=np.cumsum(cost_ns))


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


def _estimated(
    recorded: Simulation, usual: WithoutProfiler, slowdown: costs.Slowdown
) -> UnrecordedWorld:
    """Return the step by the usual costs, with a range."""
    typical, fastest, slowest = (
        _spread(recorded, usual, factor, part)
        for factor, part in (
            (1.0, slowdown.typical),
            (costs.MOST_FACTOR, slowdown.most),
            (costs.LEAST_FACTOR, slowdown.least),
        )
    )
    steps = max(1, recorded.step_count)
    return replace(
        _world(recorded, usual, typical),
        fastest_ns=round(_simulated_ns(recorded, fastest.changes(usual)) / steps),
        slowest_ns=round(_simulated_ns(recorded, slowest.changes(usual)) / steps),
    )


def _spread(recorded: Simulation, usual: WithoutProfiler, factor: float, slowdown: float) -> _Costs:
    """Return costs of `factor` times the usual ones, and a slowdown (0 to 1) of all host time."""
    event_factor = factor * costs.LOCAL_PART
    host_ns = np.maximum(0, recorded.graph.weight_ns[usual.edges]).astype(np.float64)
    left_ns = float(np.maximum(0.0, host_ns - event_factor * usual.cost_ns).sum())
    spread_ns = factor * (1 - costs.LOCAL_PART) * float(usual.cost_ns.sum())
    left = max(0.0, 1 - spread_ns / max(1.0, left_ns))
    return _Costs(event_factor=event_factor, host_factor=left * (1 - slowdown))


def _calibrated(
    recorded: Simulation, usual: WithoutProfiler, slowdown: costs.Slowdown, target_ns: int
) -> _Costs:
    """Return the costs without which the window takes the target's time.

    The usual ones, where they lead to it: where the device is the limit, many do.
    """

    def by_events(factor: float) -> _Costs:
        return _Costs(event_factor=factor * costs.LOCAL_PART)

    def by_host(part: float) -> _Costs:
        return _Costs(host_factor=1 - part)

    def simulated_ns(of: _Costs) -> int:
        return _simulated_ns(recorded, of.changes(usual))

    attainable_ns = max(target_ns, round(CLOSE * simulated_ns(by_host(1.0))))
    typical = _spread(recorded, usual, 1.0, slowdown.typical)
    if abs(simulated_ns(typical) - attainable_ns) <= NEAR * attainable_ns:
        return typical
    if simulated_ns(_Costs()) < target_ns:
        return by_events(_least(lambda factor: simulated_ns(by_events(factor)), target_ns))
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


def _world(recorded: Simulation, usual: WithoutProfiler, of: _Costs) -> UnrecordedWorld:
    steps, changes = max(1, recorded.step_count), of.changes(usual)
    predicted_ns = round(_simulated_ns(recorded, changes) / steps)
    costs_of = {
        chain: ChainCosts(moment_ns, of.event_factor * cost_ns)
        for chain, (moment_ns, cost_ns) in usual.costs.items()
    }
    return UnrecordedWorld(
        changes=changes,
        costs=costs_of,
        recorded_ns=round(recorded.recorded_ns / steps),
        predicted_ns=predicted_ns,
        fastest_ns=predicted_ns,
        slowest_ns=predicted_ns,
        measured_ns=None,
        event_factor=of.event_factor,
        host_factor=of.host_factor,
        event_count=usual.event_count,
    )
