"""Critical path of each step, from its end back to its start.

The backward walk of Schulz ("Extracting critical path graphs from MPI applications", Cluster 2005)
and Böhme et al. ("Scalable critical-path based performance analysis", IPDPS 2012): it starts at the
activity that ends last, and goes from each activity to the last of its predecessors to end
(`device_waits`, `host_waits`). The path covers every moment of the step, so its segments sum to the
step exactly.

HTA (`critical_path_analysis.py`) searches the longest path in a graph of the same edges. There
waits for another thread, for Python and for a synchronization weigh nothing: its path is shorter
than the step, and may contain work that nothing waited for.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.idle import device_waits, host_waits
from stepscope.analyses.idle.device_waits import DeviceWaits
from stepscope.analyses.idle.host_waits import HostWaits
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.trace import Trace, computed

BOUNDS: dict[str, tuple[str, str]] = {
    "cpu": ("CPU", "The host runs operators, runtime calls, or Python between them."),
    "data_loading": ("Data loading", "The host waits for the next batch."),
    "compute": ("Compute", "A kernel other than a collective's runs."),
    "communication": ("Communication", "A collective's kernel runs."),
    "copy": ("Copy", "The device copies."),
    "memory_set": ("Memory set", "The device sets memory."),
    "launch": ("Launch overhead", "From the launching call's start to the work's start."),
    "kernel_gap": ("Kernel-kernel overhead", "From one device activity to the next."),
    "sync_wait": ("Sync wait", "From the end of device work to the return of the waiting call."),
}
"""Resource that bounds a part of the path, to label and meaning."""
NAMES = tuple(BOUNDS)
CPU, DATA_LOADING, COMPUTE, COMMUNICATION, COPY, MEMORY_SET, LAUNCH, KERNEL_GAP, SYNC_WAIT = range(
    len(NAMES)
)


@dataclass(frozen=True, kw_only=True, eq=False)
class CriticalPath:
    """Segments of all steps, by time, none empty; all arrays are parallel.

    A step's segments cover it from start to end without a gap.
    """

    step: Ints
    """The step's index in `step_breakdown`."""
    start_ns: Ints
    end_ns: Ints
    bound: NDArray[np.int8]
    """Index into `NAMES`."""
    device_event: Ints
    """The `device_events` row that ran, or waited to run; -1 on the host."""
    stretch: Ints
    """The `host_waits` row that ran, or waited to run; -1 on the device."""
    is_running: Mask
    """False where it waited to run: overhead, or Python between operators."""
    is_inferred: Mask
    """Whether a wait between streams is inferred from times, not recorded."""

    @property
    def duration_ns(self) -> Ints:
        """Duration of each segment."""
        return self.end_ns - self.start_ns


@computed
def critical_path(trace: Trace) -> CriticalPath:
    """Return the critical path of each step."""
    device, host = device_waits.device_waits(trace), host_waits.host_waits(trace)
    graph = _graph(trace, device, host)
    steps = step_breakdown(trace)
    begin, end = steps.start_ns, steps.start_ns + steps.duration_ns
    hops = _walk(graph, _ends(trace, host, end), (begin, end))
    parts = _parts(graph, hops, begin)
    return _split_by_loading(trace, _path(graph, device, parts))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Graph:
    device_count: int
    start_ns: Ints
    before: Ints
    """The awaited node, or -1."""
    left_ns: Ints
    """End of the wait for it: no later than the node's start."""
    end_ns: Ints
    runs: NDArray[np.int8]
    """The path's bound while the node runs."""
    waits: NDArray[np.int8]
    """The path's bound between the awaited node and the node's start."""


def _graph(trace: Trace, device: DeviceWaits, host: HostWaits) -> _Graph:
    count = len(device.edge)
    end = trace.device_events["end_ns"].to_numpy()
    launched = device.edge == device_waits.LAUNCH
    calls = np.append(trace.runtime_calls["thread"].cat.codes.to_numpy(), NONE)
    stretch = np.full(count, NONE, dtype=np.int64)
    thread = calls[device.awaited[launched]].astype(np.int64)
    stretch[launched] = host.at((thread, device.ready_ns[launched]))
    before = np.where(launched, np.where(stretch >= 0, stretch + count, NONE), device.awaited)
    synced = host.edge == host_waits.SYNC
    follows = host.edge == host_waits.BETWEEN
    host_before = np.where(follows, host.awaited + count, host.awaited)
    released_ns = np.where(follows | synced, host.start_ns, np.iinfo(np.int64).min)
    released_ns[synced] = np.minimum(end[host.awaited[synced]], released_ns[synced])
    released_ns[follows] = host.end_ns[host.awaited[follows]]
    on_host = np.full(len(host.edge), CPU, dtype=np.int8)
    return _Graph(
        device_count=count,
        start_ns=np.concatenate((trace.device_events["start_ns"].to_numpy(), host.start_ns)),
        before=np.concatenate((before, host_before)),
        left_ns=np.concatenate((device.ready_ns, released_ns)),
        end_ns=np.concatenate((end, host.end_ns)),
        runs=np.concatenate((_device_bounds(trace), on_host)),
        waits=np.concatenate(
            (np.where(launched, LAUNCH, KERNEL_GAP), np.where(synced, SYNC_WAIT, CPU))
        ).astype(np.int8),
    )


def _device_bounds(trace: Trace) -> NDArray[np.int8]:
    events = trace.device_events
    kind = events["kind"].to_numpy()
    bound = np.where(events["is_collective"].to_numpy(), COMMUNICATION, COMPUTE)
    bound = np.where(kind == int(Kind.COPY), COPY, bound)
    return np.where(kind == int(Kind.MEMORY_SET), MEMORY_SET, bound).astype(np.int8)


def _ends(trace: Trace, host: HostWaits, end_ns: Ints) -> Ints:
    """Return the last node of each step: device work that ends with it, else the host."""
    events = trace.device_events
    end = events["end_ns"].to_numpy()
    by_end = np.argsort(end, kind="stable")
    index = np.searchsorted(end[by_end], end_ns, side="right") - 1
    device = np.append(by_end, NONE)[index]
    ends_with_it = np.append(end, NONE)[device] == end_ns
    codes = trace.host_calls["thread"].cat
    thread = list(codes.categories).index(main_thread(trace)) if len(trace.host_calls) else NONE
    stretch = host.at((np.full(len(end_ns), thread, dtype=np.int64), end_ns))
    on_host = np.where(stretch >= 0, stretch + len(end), NONE)
    return np.where(ends_with_it, device, on_host)


Hops = tuple[Ints, Ints, Ints]
"""Parallel arrays, backwards: the step, the path's next node, and the time of the hop."""


def _walk(graph: _Graph, ends: Ints, steps: tuple[Ints, Ints]) -> Hops:
    """Follow the awaited nodes back to the step's start, or to a node without predecessor."""
    before, left = graph.before.tolist(), graph.left_ns.tolist()
    seen = bytearray(len(before))
    path: list[int] = []
    first: list[int] = []
    for last, begin, end in zip(ends.tolist(), steps[0].tolist(), steps[1].tolist(), strict=True):
        count, node, at = len(path), last, end
        first.append(count)
        while node >= 0 and at > begin and not seen[node]:
            seen[node] = 1  # nodes without duration may form a circle
            path.append(node)
            at = left[node]
            node = before[node]
        for visited in path[count:]:
            seen[visited] = 0
        if at > begin or len(path) == count:  # the step's start has no node
            path.append(NONE)
    nodes = np.array(path, dtype=np.int64)
    until = np.append(graph.left_ns, 0)[np.append(NONE, nodes[:-1])[: len(nodes)]]
    until[first] = steps[1]
    step = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(path))))
    return step, nodes, until


@dataclass(frozen=True, kw_only=True, eq=False)
class _Parts:
    step: Ints
    start_ns: Ints
    end_ns: Ints
    node: Ints
    bound: NDArray[np.int8]
    is_running: Mask


def _parts(graph: _Graph, hops: Hops, begin_ns: Ints) -> _Parts:
    """Return each hop's parts: its run, the time until the next node, and its wait."""
    step, node, until = hops
    has_node = node >= 0
    at = np.where(has_node, node, 0)
    begin = begin_ns[step]
    none = not len(graph.start_ns)
    start, end, left = (
        begin if none else np.where(has_node, of[at], begin)
        for of in (graph.start_ns, graph.end_ns, graph.left_ns)
    )
    ran_until = np.maximum(np.minimum(end, until), start)
    runs, waits = (
        np.full(len(at), CPU, dtype=np.int8) if none else np.where(has_node, of[at], CPU)
        for of in (graph.runs, graph.waits)
    )
    afterwards = np.full(len(at), CPU, dtype=np.int8)
    starts = np.maximum(np.concatenate((start, ran_until, left)), np.tile(begin, 3))
    ends = np.concatenate((ran_until, until, start))
    bound = np.concatenate((runs, afterwards, waits)).astype(np.int8)
    is_running = np.repeat((True, False, False), len(at))
    full = np.flatnonzero(ends > starts)
    order = full[np.argsort(starts[full], kind="stable")]
    which = order % max(1, len(at))
    return _Parts(
        step=step[which],
        start_ns=starts[order],
        end_ns=ends[order],
        node=node[which],
        bound=bound[order],
        is_running=is_running[order],
    )


def _path(graph: _Graph, device: DeviceWaits, parts: _Parts) -> CriticalPath:
    on_device = (parts.node >= 0) & (parts.node < graph.device_count)
    row = np.where(on_device, parts.node, NONE)
    inferred = np.append(device.edge == device_waits.INFERRED, False)[row]
    stretch = np.where(on_device | (parts.node < 0), NONE, parts.node - graph.device_count)
    return CriticalPath(
        step=parts.step,
        start_ns=parts.start_ns,
        end_ns=parts.end_ns,
        bound=parts.bound,
        device_event=row,
        stretch=stretch,
        is_running=parts.is_running,
        is_inferred=inferred & ~parts.is_running,
    )


def _split_by_loading(trace: Trace, path: CriticalPath) -> CriticalPath:
    on_host = path.bound == CPU
    times = np.stack((path.start_ns, path.end_ns), axis=1)[on_host]
    loading = intervals.intersection(times, data_loading(trace).times)
    rest = intervals.difference(times, data_loading(trace).times)
    host_rows = np.flatnonzero(on_host)
    pieces = np.concatenate((loading, rest))
    owner = host_rows[np.searchsorted(times[:, 0], pieces[:, 0], side="right") - 1]
    others = np.flatnonzero(~on_host)
    rows = np.concatenate((others, owner))
    start = np.concatenate((path.start_ns[others], pieces[:, 0]))
    end = np.concatenate((path.end_ns[others], pieces[:, 1]))
    bound = path.bound[rows]
    bound[len(others) : len(others) + len(loading)] = DATA_LOADING
    order = np.argsort(start, kind="stable")
    rows = rows[order]
    return CriticalPath(
        step=path.step[rows],
        start_ns=start[order],
        end_ns=end[order],
        bound=bound[order],
        device_event=path.device_event[rows],
        stretch=path.stretch[rows],
        is_running=path.is_running[rows],
        is_inferred=path.is_inferred[rows],
    )
