"""Bounds of savings: the replayed window with all of a finding's claimed work at zero time.

It uses the graph and its times alone, not the changes with which savings are simulated: an edge
loses the whole part of it that is claimed, whatever the claim's factor. No finding may promise more
than that, neither as recorded nor without the profiler.

    PYTHONPATH=tests python -m replay.bounds [NAME]

prints the findings of all traces at hand, the largest overestimate of a sum of times first.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from loading import SAMPLE_LOGS, SHARED_TRACES, shared_trace_names, trace_at
from stepscope.advice.savings import resolve_savings
from stepscope.advice.trace_rules import findings_of
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.device_waits import LAUNCH_OUTLIER_NS
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.replay.changes import NO_COSTS, Costs
from stepscope.replay.edges import NEVER_NS, Edge
from stepscope.replay.graph import ReplayGraph, replay_graph
from stepscope.replay.points import Point, chain_of_calls
from stepscope.replay.unrecorded import unrecorded_world
from stepscope.rules import Claim, all_rules, claim_order
from stepscope.rules.shared.claimable_time import claimed_ns, unchanged, unrecorded_ns

ROUNDING_NS = 1
"""Of figures per step."""


@dataclass(frozen=True, kw_only=True)
class World:
    """A finding's savings in one world, in nanoseconds per step."""

    net_high_ns: float
    alone_ns: float
    bound_ns: float

    @property
    def is_kept(self) -> bool:
        """Whether the finding promises no more than it saves alone, and that is in the bound."""
        return (
            self.net_high_ns <= self.alone_ns + ROUNDING_NS
            and self.alone_ns <= self.bound_ns + ROUNDING_NS
        )


@dataclass(frozen=True, kw_only=True)
class BoundedFinding:
    """A finding with its bounds."""

    trace: str
    rule: str
    interval_sum_ns: float
    """Sum of the claimed times, multiplied by their factors: the method before the replay."""
    recorded: World
    unrecorded: World

    @property
    def is_kept(self) -> bool:
        """Whether it is in the bounds of both worlds."""
        return self.recorded.is_kept and self.unrecorded.is_kept

    @property
    def overestimate(self) -> float:
        """Sum of times as a multiple of the bound; at least 1 microsecond of it."""
        return self.interval_sum_ns / max(1_000, self.recorded.bound_ns)


def bounded_findings(name: str, trace: Trace) -> Iterator[BoundedFinding]:
    """Yield the findings of all rules on a trace that save time; none where it is not replayed."""
    if unchanged(trace).simulation is None:
        return
    rules, span = all_rules(), window(trace)
    order = claim_order(rules)
    findings = sorted(findings_of(trace, rules), key=lambda item: order[item.rule.id])
    worlds = weights_of_worlds(trace)
    for finding, resolved in zip(findings, resolve_savings(trace, findings), strict=True):
        claims, report = finding.finding.claims, resolved.outcome.claim
        if not claims or report is None:
            continue
        recorded, unrecorded = (span.per_step(bound_ns(trace, claims, *each)) for each in worlds)
        yield BoundedFinding(
            trace=name,
            rule=finding.rule.id,
            interval_sum_ns=span.per_step(interval_sum_ns(trace, claims)),
            recorded=World(
                net_high_ns=report.net_high_ns,
                alone_ns=span.per_step(claimed_ns(trace, claims)),
                bound_ns=recorded,
            ),
            unrecorded=World(
                net_high_ns=report.unrecorded_net_high_ns or 0,
                alone_ns=span.per_step(unrecorded_ns(trace, claims) or 0.0),
                bound_ns=unrecorded,
            ),
        )


def interval_sum_ns(trace: Trace, claims: Iterable[Claim]) -> float:
    """Return the sum of the claimed times in the window, multiplied by their factors."""
    span, taken, total = window(trace), intervals.EMPTY, 0.0
    for claim in claims:
        times = intervals.clip(claim.intervals, span.start_ns, span.device_end_ns)
        total += claim.factor.high * intervals.duration_ns(intervals.difference(times, taken))
        taken = intervals.merged(taken, times)
    return total


def bound_ns(
    trace: Trace, claims: Sequence[Claim], weight_ns: Ints, costs: Costs = NO_COSTS
) -> int:
    """Return the time by which the window ends sooner without the claims' work.

    `costs` of recording are those that the weights do not contain.
    """
    without = _without(trace, claims, weight_ns, costs)
    return _window_ns(trace, weight_ns) - _window_ns(trace, without)


def weights_of_worlds(trace: Trace) -> tuple[tuple[Ints, Costs], tuple[Ints, Costs]]:
    """Return weights, and the costs that they lack: as recorded, and without the profiler."""
    world = unrecorded_world(trace)
    return (_recorded_weights(trace), NO_COSTS), (_unrecorded_weights(trace), world.costs)


def _recorded_weights(trace: Trace) -> Ints:
    return replay_graph(trace).weight_ns


def _unrecorded_weights(trace: Trace) -> Ints:
    graph = replay_graph(trace)
    weight_ns = graph.weight_ns
    for change in unrecorded_world(trace).changes:
        weight_ns = change.apply(graph, weight_ns)
    return weight_ns


def _window_ns(trace: Trace, weight_ns: Ints) -> int:
    """Return the time from the window's start to its last end, if edges have these weights."""
    graph, span = replay_graph(trace), window(trace)
    is_before = graph.time_ns[graph.target] <= span.start_ns
    time_ns = graph.times(np.where(is_before, graph.weight_ns, weight_ns))
    is_inside = (graph.time_ns >= span.start_ns) & (graph.time_ns <= span.device_end_ns)
    is_end = ~np.isin(graph.kind, (Point.DEVICE_START, Point.READY))
    ends = time_ns[is_inside & is_end]
    return max(0, int(ends.max()) - span.start_ns) if len(ends) else 0


def _without(trace: Trace, claims: Sequence[Claim], weight_ns: Ints, costs: Costs) -> Ints:
    """Return the weights without the claims' waits and calls; of others, without their times.

    A claim with changes of its own moves the calls for batches: it saves all of them at most.
    """
    graph = replay_graph(trace)
    is_wait, row = graph.edge == Edge.WAITED, graph.row[graph.target]
    timed = [
        claim
        for claim in claims
        if claim.waits is None and claim.calls is None and claim.changes is None
    ]
    without = _without_times(trace, timed, weight_ns, costs)
    for claim in claims:
        if claim.waits is not None:
            without[is_wait & np.isin(row, claim.waits)] = NEVER_NS
        if claim.calls is not None:
            without = _without_calls(trace, claim.calls, without, costs)
        if claim.changes is not None:
            fetches = graph.row[graph.kind == Point.FETCH]
            without = _without_calls(trace, fetches, without, costs)
    return without


def _without_times(trace: Trace, claims: Sequence[Claim], weight_ns: Ints, costs: Costs) -> Ints:
    graph = replay_graph(trace)
    of_host = [claim for claim in claims if not claim.is_device_work]
    of_both = _claimed_part(trace, [claim for claim in of_host if not claim.is_unslowed], costs)
    world = unrecorded_world(trace)
    event_costs, factor = (world.event_costs, world.host_factor) if costs else (NO_COSTS, 1.0)
    of_events = [claim for claim in of_host if claim.is_unslowed]
    unslowed = _claimed_part(trace, of_events, costs, event_costs)
    of_both = np.minimum(1.0, of_both + unslowed / factor)
    of_device = _claimed_part(trace, claims, NO_COSTS)
    is_device = graph.edge == Edge.RUNS
    is_late = (graph.edge == Edge.LAUNCHED) & (graph.weight_ns > LAUNCH_OUTLIER_NS)
    is_host = (graph.edge == Edge.HOST) | is_late
    part = np.where(is_device, of_device, np.where(is_host, of_both, 0))
    return _without_delays(graph, is_device & (part >= 1), _less(weight_ns, part))


def _without_calls(trace: Trace, calls: Ints, weight_ns: Ints, costs: Costs) -> Ints:
    """Return the weights without calls, the device work that they launch, and their waits."""
    graph = replay_graph(trace)
    frame, linked = trace.host_calls, links(trace)
    is_removed = np.isin(np.arange(len(frame)), calls)
    parent = frame["parent"].to_numpy()
    count = -1
    while count != is_removed.sum():
        count = int(is_removed.sum())
        is_removed |= (parent >= 0) & is_removed[parent]
    chain, start, end = (
        of[calls]
        for of in (chain_of_calls(trace), frame["start_ns"].to_numpy(), frame["end_ns"].to_numpy())
    )
    without = weight_ns.copy()
    for number in np.unique(chain):
        times = intervals.union(start[chain == number], end[chain == number])
        is_host = (graph.edge == Edge.HOST) & (graph.chain[graph.target] == number)
        without = np.where(is_host, _less(without, _part(graph, times, costs)), without)
    row, kind = graph.row[graph.target], graph.kind[graph.target]
    waits = synchronizations(trace).calls
    waits = waits[_has(is_removed, linked.owner_of_call[waits])]
    without[(graph.edge == Edge.WAITED) & np.isin(row, waits)] = NEVER_NS
    rows = np.flatnonzero(_has(is_removed, linked.owner_of_device_event))
    is_device = np.isin(kind, (Point.DEVICE_START, Point.DEVICE_END))
    gone = is_device & np.isin(row, rows)
    return np.where(gone, np.minimum(without, 0), without)


def _without_delays(graph: ReplayGraph, is_gone: Mask, weight_ns: Ints) -> Ints:
    """Return the weights without delays on the stream before events that go as a whole."""
    rows = graph.row[graph.target[is_gone]]
    is_delay = (graph.edge == Edge.STREAM) & np.isin(graph.row[graph.target], rows)
    return np.where(is_delay, np.minimum(weight_ns, 0), weight_ns)


def _claimed_part(
    trace: Trace, claims: Sequence[Claim], costs: Costs, claimed_costs: Costs | None = None
) -> Floats:
    """Return the fraction of each edge's time that is claimed."""
    span = window(trace)
    times = intervals.merged(intervals.EMPTY, *(claim.intervals for claim in claims))
    times = intervals.clip(times, span.start_ns, span.device_end_ns)
    return _part(replay_graph(trace), times, costs, claimed_costs)


def _part(
    graph: ReplayGraph, times: Intervals, costs: Costs, claimed_costs: Costs | None = None
) -> Floats:
    """Return the fraction of each edge's time, up to its target, that lies in `times`.

    Of host work, both without the costs of recording; `times` without `claimed_costs`, if given.
    """
    end = graph.time_ns[graph.target]
    length = np.maximum(graph.weight_ns, 0)
    edges = np.append(0, np.cumsum(times[:, 1] - times[:, 0]))

    def claimed_before(moment: Ints) -> Ints:
        index = np.searchsorted(times[:, 0], moment, side="right")
        last = np.append(0, times[:, 1])[index]
        return np.asarray(edges[index] - np.maximum(0, np.where(index > 0, last - moment, 0)))

    claimed = (claimed_before(end) - claimed_before(end - length)).astype(float)
    whole = length.astype(float)
    for chain, (moment_ns, cost_ns) in costs.items():
        of_chain, at, inside = _edges_at(graph, chain, moment_ns)
        np.subtract.at(whole, of_chain[at[inside]], np.diff(cost_ns, prepend=0.0)[inside])
    for chain, (moment_ns, cost_ns) in (costs if claimed_costs is None else claimed_costs).items():
        of_chain, at, inside = _edges_at(graph, chain, moment_ns)
        index = np.searchsorted(times[:, 0], moment_ns, side="right") - 1
        is_claimed = inside & (index >= 0)
        is_claimed[is_claimed] &= moment_ns[is_claimed] <= times[index[is_claimed], 1]
        each_ns = np.diff(cost_ns, prepend=0.0)[is_claimed]
        np.subtract.at(claimed, of_chain[at[is_claimed]], each_ns)
    return np.asarray(np.clip(claimed / np.maximum(1.0, whole), 0.0, 1.0))


def _edges_at(graph: ReplayGraph, chain: int, moment_ns: Ints) -> tuple[Ints, Ints, Mask]:
    """Return a chain's edges of host work, the index of that at each moment, and if one is."""
    edges = graph.host_work.edges[graph.host_work.chain == chain]
    end = graph.time_ns[graph.target[edges]]
    at = np.searchsorted(end, moment_ns)
    inside = at < len(edges)
    start = end - np.maximum(graph.weight_ns[edges], 0)
    inside[inside] &= moment_ns[inside] > start[at[inside]]
    return edges, at, inside


def _less(weight_ns: Ints, part: Floats) -> Ints:
    left = np.floor(np.maximum(0, weight_ns) * (1 - part)).astype(np.int64)
    return np.where(weight_ns > 0, left, weight_ns)


def _has(mask: Mask, rows: Ints) -> Mask:
    return np.asarray((rows >= 0) & np.append(mask, False)[rows])


# The table


def traces_at_hand() -> dict[str, Path]:
    """Return the paths of samples and shared traces, by name."""
    paths = {name: SHARED_TRACES / name for name in shared_trace_names()}
    samples = sorted(SAMPLE_LOGS.rglob("*.json.gz"))
    return paths | {f"sample_logs/{path.relative_to(SAMPLE_LOGS)}": path for path in samples}


def table(findings: Iterable[BoundedFinding]) -> str:
    """Return a line per finding, in milliseconds per step."""
    heads = ("net", "alone", "bound") * 2
    lines = ["".join(f"{head:>10}" for head in ("sum", *heads)) + "  finding"]
    for one in findings:
        worlds = one.recorded, one.unrecorded
        figures = [each for it in worlds for each in (it.net_high_ns, it.alone_ns, it.bound_ns)]
        cells = "".join(f"{each / 1e6:10.3f}" for each in (one.interval_sum_ns, *figures))
        mark = "" if one.is_kept else "  (!)"
        lines.append(f"{cells}  {one.rule}, {one.trace}{mark}")
    return "\n".join(lines)


def main(selections: Sequence[str]) -> None:
    """Print the findings of the traces whose name contains one of the texts; of all without."""
    findings = [
        finding
        for name, path in traces_at_hand().items()
        if not selections or any(text in name for text in selections)
        for finding in bounded_findings(name, trace_at(path))
    ]
    findings.sort(key=lambda one: -one.overestimate)
    broken = sum(not one.is_kept for one in findings)
    sys.stdout.write(f"{table(findings)}\n{len(findings)} findings, {broken} above a bound\n")


if __name__ == "__main__":
    main(sys.argv[1:])
