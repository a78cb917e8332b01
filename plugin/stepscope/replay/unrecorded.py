"""The step as it runs without the profiler: the recorded one without the cost of recording.

Recording slows the host: each event costs it some time (`base/recording_costs.py`). Half of the
cost is deducted where an event begins, half where it ends, from the host's time between the two
points around that moment. Device work keeps its time, and the host waits for it as long as needed.

Where the recorder measured unrecorded steps, all costs are multiplied by one factor such that the
simulated step is the measured one; a factor of 1 remains where that step is within 0.5 % of it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.analyses.steps.step_statistics import is_steady
from stepscope.base import recording_costs as costs
from stepscope.base.formatting import count, duration, share, significant
from stepscope.dialects import Kind
from stepscope.model.arrays import Floats, Ints
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import Change, ScaleAllHost
from stepscope.replay.graph import HostWork, ReplayGraph, replay_graph
from stepscope.replay.points import chain_of_thread
from stepscope.replay.simulation import Simulation, simulate

Method = Literal["events", "host", "none"]
HOST_KINDS = (Kind.OPERATOR, Kind.ANNOTATION, Kind.PYTHON_CALL, Kind.MEMORY, Kind.RUNTIME_CALL)
GREATEST_FACTOR = 4.0
"""Events that would have to cost more than this do not explain the difference."""
HALVINGS = 20
CLOSE = 1.001
"""Time of the shortest attainable step, as a multiple: where the measured step is shorter still."""
NEAR = 0.005
"""Relative difference to the measured step up to which the usual costs remain: where the device is
the limit, many factors give the same step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WithoutProfiler(Change):
    """Host time without the cost of the events recorded in it."""

    edges: Ints
    """Edges of the graph; shape (n,)."""
    cost_ns: Floats
    """Cost of the events that begin or end between each edge's two points; shape (n,)."""
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
    recorded_ns: int
    predicted_ns: int
    fastest_ns: int
    """By the upper end of the costs' range; the prediction itself where steps were measured."""
    slowest_ns: int
    measured_ns: int | None
    """Median of the measured unrecorded steps; None: not measured."""
    method: Method
    """`events`: each event costs `factor` times its usual cost; `host`: all of the host's time is
    multiplied by `factor`; `none`: unrecorded steps are no shorter."""
    factor: float
    event_count: int

    @property
    def origin(self) -> str:
        """The source of the prediction, as a clause."""
        if self.measured_ns is None:
            return f"estimated from the cost of {count(self.event_count, 'recorded event')}"
        measured = f"measured by the recorder: {duration(self.measured_ns)}"
        if self.method == "none":
            return f"{measured}, no shorter than recorded steps"
        if self.method == "host":
            cause = f"recorded events cost less: all host time is {share(self.factor)}"
        elif self.factor == 1:
            cause = "recorded events have their usual cost"
        else:
            cause = f"each recorded event costs {significant(self.factor)} times its usual cost"
        is_met = self.predicted_ns <= (1 + NEAR) * self.measured_ns
        return f"{measured}; {cause}{'' if is_met else ', and the device still takes longer'}"


@computed
def unrecorded_world(trace: Trace) -> UnrecordedWorld:
    """Return the step without the profiler: measured if possible, else estimated.

    Raises:
        MissingDataError: the replay does not describe this trace (see `simulate`).
    """
    recorded, change = simulate(trace, []), without_profiler(trace)
    measured, recorded_step_ns = measured_steps(trace), _median_step_ns(trace)
    if measured is None or not recorded_step_ns:
        return _world(recorded, change, "events", None)
    target_ns = round(recorded.recorded_ns * measured.median_ns / recorded_step_ns)
    calibrated, method = _calibrated(recorded, change, target_ns)
    return _world(recorded, calibrated, method, measured.median_ns)


@computed
def without_profiler(trace: Trace) -> WithoutProfiler:
    """Return the change that takes the usual cost of recording out of the host's time."""
    work, events = replay_graph(trace).host_work, _host_events(trace)
    cost_ns = np.zeros(len(work.edges))
    for chain in np.unique(work.chain):
        edges = np.flatnonzero(work.chain == chain)
        of_chain = np.flatnonzero(events.chain == chain)
        half = events.cost_ns[of_chain] / 2
        for moment_ns in (events.start_ns[of_chain], events.end_ns[of_chain]):
            cost_ns[edges] += _sums_by_edge(work, edges, moment_ns, half)
    return WithoutProfiler(edges=work.edges, cost_ns=cost_ns, event_count=len(events.cost_ns))


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


def _sums_by_edge(work: HostWork, edges: Ints, moment_ns: Ints, cost_ns: Floats) -> Floats:
    """Return the sum of the costs at moments between the ends of each edge of one chain."""
    index = np.searchsorted(work.end_ns[edges], moment_ns)
    inside = index < len(edges)
    inside[inside] = work.start_ns[edges[index[inside]]] <= moment_ns[inside]
    sums = np.bincount(index[inside], cost_ns[inside], minlength=len(edges))
    return sums.astype(np.float64)


def _median_step_ns(trace: Trace) -> int:
    """Return the median of the steady recorded steps; 0 without steps."""
    steady = is_steady(trace)
    durations_ns = step_breakdown(trace).duration_ns[: len(steady)][steady]
    return round(float(np.median(durations_ns))) if len(durations_ns) else 0


def _calibrated(
    recorded: Simulation, change: WithoutProfiler, target_ns: int
) -> tuple[Change, Method]:
    """Return the change under which the window takes the target's time, and its method."""
    if target_ns >= recorded.recorded_ns:
        return replace(change, factor=0.0), "none"

    def by_events(factor: float) -> Change:
        return replace(change, factor=factor)

    def by_host(part: float) -> Change:
        return ScaleAllHost(factor=1 - part)

    attainable_ns = max(target_ns, round(CLOSE * _simulated_ns(recorded, by_host(1.0))))
    if abs(_simulated_ns(recorded, change) - attainable_ns) <= NEAR * attainable_ns:
        return change, "events"
    if _simulated_ns(recorded, by_events(GREATEST_FACTOR)) <= target_ns:
        return by_events(_least(recorded, by_events, GREATEST_FACTOR, target_ns)), "events"
    return by_host(_least(recorded, by_host, 1.0, attainable_ns)), "host"


def _least(
    recorded: Simulation, change: Callable[[float], Change], most: float, target_ns: int
) -> float:
    """Return the least amount of a change, up to `most`, with which the target is met."""
    low, high = 0.0, most
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        is_met = _simulated_ns(recorded, change(middle)) <= target_ns
        low, high = (low, middle) if is_met else (middle, high)
    return high


def _simulated_ns(recorded: Simulation, change: Change) -> int:
    return recorded.with_changes([change]).simulated_ns


def _world(
    recorded: Simulation, change: Change, method: Method, measured_ns: int | None
) -> UnrecordedWorld:
    steps = max(1, recorded.step_count)
    predicted_ns = _simulated_ns(recorded, change)
    fastest_ns = slowest_ns = predicted_ns
    if measured_ns is None and isinstance(change, WithoutProfiler):
        fastest_ns, slowest_ns = (
            _simulated_ns(recorded, replace(change, factor=factor))
            for factor in (costs.MOST_FACTOR, costs.LEAST_FACTOR)
        )
    return UnrecordedWorld(
        changes=() if method == "none" else (change,),
        recorded_ns=round(recorded.recorded_ns / steps),
        predicted_ns=round(predicted_ns / steps),
        fastest_ns=round(fastest_ns / steps),
        slowest_ns=round(slowest_ns / steps),
        measured_ns=measured_ns,
        method=method,
        factor=change.factor if isinstance(change, WithoutProfiler | ScaleAllHost) else 1.0,
        event_count=change.event_count if isinstance(change, WithoutProfiler) else 0,
    )
