"""Flame graphs for the page: selection of the tree, its drawing, and its functions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.analyses.core.window import window
from stepscope.analyses.flames.flame_graphs import (
    Phase,
    device_calls_tree,
    host_calls_tree,
    memory_tree,
    modules_tree,
    peak_of,
    thread_calls_tree,
    thread_times,
)
from stepscope.analyses.flames.flame_tree import (
    CODES,
    KINDS,
    FlameTree,
    Unit,
    callees,
    functions,
    select_nodes,
    weights,
    without_instances,
)
from stepscope.analyses.flames.inverted_tree import invert
from stepscope.analyses.flames.pruning import MOST_NODES, PIECES, PrunedTree, Viewport, prune
from stepscope.analyses.flames.tree_diff import combine, moved_names
from stepscope.analyses.flames.waiting_frames import waiting_nodes, without_waits
from stepscope.analyses.memory.at_peak import memory_at_peak
from stepscope.analyses.timeline.tracks import thread_names
from stepscope.api.endpoint import TimeRangeQuery
from stepscope.api.messages import Response
from stepscope.model.trace import Trace


class FlameKind(msgspec.Struct, frozen=True):
    """A kind of frames."""

    id: str
    label: str


class FlameThread(msgspec.Struct, frozen=True):
    """A thread with calls."""

    name: str
    """As `pid/tid`, for the parameter `thread`."""
    label: str
    total_ns: int
    """Time of its calls, or of the device work that they launched."""


class FlameValues(Response, frozen=True, kw_only=True):
    """Self time, total time and calls by columns; a comparison has a second side, the baseline."""

    unit: Unit
    """`ns` or `bytes`: the unit of `own`, `total` and `whole`."""
    kinds: tuple[FlameKind, ...]
    names: tuple[str, ...]
    name_kinds: tuple[int, ...]
    """The kind of each of `names`, as an index of `kinds`."""
    own: tuple[int, ...]
    """Value without children, in `unit`."""
    total: tuple[int, ...]
    """Value with descendants (recursive calls count once), in `unit`."""
    calls: tuple[int, ...]
    """Number of calls, counted as in the view Operators; of memory, the allocations without
    children's."""
    whole: int
    """The sum of all `own` values, in `unit`; of functions, also of those left out."""
    steps: int
    """Number of steps covered; 0: unknown, or outside of steps."""
    waiting: int = 0
    """Own time of frames in which the host waits, in `unit`, shown or not."""
    before_waiting: int = 0
    """`waiting` of the baseline."""
    before_own: tuple[int, ...] = ()
    """`own` of the baseline; empty without a comparison, like the following fields."""
    before_total: tuple[int, ...] = ()
    """`total` of the baseline."""
    before_calls: tuple[int, ...] = ()
    """`calls` of the baseline."""
    before_whole: int = 0
    """`whole` of the baseline."""
    before_steps: int = 0
    """`steps` of the baseline."""
    is_per_step: bool = False
    """Whether the page divides the values by the number of steps."""


class FlameGraph(FlameValues, frozen=True, kw_only=True):
    """A flame graph by columns: nodes by depth, siblings adjacent, heaviest first.

    `own` values of a node and its descendants sum to its total, and the totals of the roots to
    `whole`, `smaller` frames included.
    """

    parent: tuple[int, ...]
    """The parent of each node; -1 at the top."""
    name: tuple[int, ...]
    """The name of each node, as an index of `names`."""
    merged_count: tuple[int, ...]
    """Number of frames in a node of the kind `smaller`; 0 for other nodes."""
    root: int = -1
    """The node that fills the picture: the end of the requested `root`; -1: all nodes."""
    node_count: int = 0
    """Number of nodes before pruning."""
    threads: tuple[FlameThread, ...] = ()
    """Of calls of one trace: the threads, longest first."""
    devices: tuple[str, ...] = ()
    """Of memory: labels of the available devices."""
    device: str = ""
    """Of memory: the device's label."""
    at_ns: int | None = None
    """Of memory: time of the peak."""
    note: str = ""
    """A limitation of the graph."""
    remedy: str = ""
    """The code that records more."""
    empty: str = ""
    """Why the graph is empty."""


class FlameFunctions(FlameValues, frozen=True, kw_only=True):
    """The functions of a flame graph, largest `own` value first."""

    all_count: int
    """Number of functions before the limit."""


Subject = Literal["calls", "modules", "memory"]
Measure = Literal["host", "device"]
Shown = Literal["all", "user", "python", "modules", "operators"]
Direction = Literal["callees", "callers"]
MOST_FUNCTIONS = 5000
FINEST = 1_000_000
FILE_PIECES = 20_000
MOST_FILE_NODES = 100_000
PATH = r"^([0-9a-z]{1,7}(\.[0-9a-z]{1,7})*)?$"
NOT_SHOWN = "outside these frames"
ALWAYS = ("rest", "smaller")
KINDS_SHOWN: dict[Shown, tuple[str, ...]] = {
    "user": ("user",),
    "python": ("user", "python", "module"),
    "modules": ("module",),
    "operators": (
        "operator",
        "annotation",
        "dataloader",
        "runtime",
        "kernel",
        "communication",
        "memcpy",
        "memset",
    ),
}
RECORD_STACKS = "profile(with_stack=True)"
RECORD: dict[Measure, str] = {
    "host": "profile(activities=[ProfilerActivity.CPU])",
    "device": "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
}
WHOLE = "Whole traces are compared, because one side has no complete steps."
RECORD_STEPS = "profiler.step()"
NO_PYTHON = "No Python functions were recorded, so operators are at the top."
NOTHING = {
    "host": "No host work was recorded here.",
    "device": "No device work was recorded here.",
    "memory": "No memory was allocated here.",
}


class FlameView(TimeRangeQuery, frozen=True, kw_only=True):
    """Display of a flame graph."""

    frames: Shown = "all"
    """Shown frames; values of others go to the frames around them. Not for modules."""
    by_class: bool = False
    """Whether the instances of a module class are merged: `Linear_3` becomes `Linear`."""
    without_waits: bool = False
    """Whether the time is left out in which the host waits: for a lock, another process, time, or a
    device. Not for memory."""
    direction: Direction = "callees"
    """From the outermost call to its callees, or from each function to its callers."""
    name: str | None = None
    """A function: only its callees, or its callers, from all of its calls."""
    root: Annotated[str, Meta(pattern=PATH, max_length=4000)] = ""
    """The node that fills the picture, as the path of names to it: CRC-32 of each name's UTF-8 in
    base 36, joined by dots. Missing nodes at the end of the path are ignored."""
    pieces: Annotated[int, Meta(ge=1, le=FINEST)] = PIECES
    """Nodes smaller than the root divided by this number are merged into `smaller` frames."""


class FlameQuery(FlameView, frozen=True, kw_only=True):
    """A flame graph, and its display."""

    subject: Subject = "calls"
    """`calls`: Python functions, operators, runtime calls; `modules`: forward and backward passes
    by module; `memory`: memory of a device at its peak, by allocating function."""
    measure: Measure = "host"
    """Of calls and modules: host time, or device time by launching call."""
    thread: str | None = None
    """Of calls: one thread, as `pid/tid`; by default, all."""
    phase: Phase = "all"
    """Of modules: all passes, or one; `rerun`: forward calls that checkpointing repeated."""
    device: str | None = None
    """Of memory: the device's label; by default, the device with the highest peak."""
    per_step: bool = False
    """Only the complete steps, divided by `steps`. Not for memory or a time range."""
    before_start_ns: int | None = None
    """Start of a time range of the same trace as the baseline; both bounds, or neither."""
    before_end_ns: int | None = None
    """End of the baseline's time range, exclusive."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Flame:
    """A tree with its number of steps and further response fields."""

    tree: FlameTree
    steps: tuple[int, ...]
    """Number of steps of each side."""
    is_per_step: bool = False
    about: dict[str, Any]
    """Further fields of the response."""

    @property
    def scale(self) -> tuple[int, ...]:
        """Divisors of the sides in a comparison."""
        return self.steps if self.is_per_step else (1,) * len(self.steps)


def flame_in_time(trace: Trace, query: FlameQuery) -> Flame:
    """Return the flame graph of a time range, compared with another range where requested.

    Raises:
        MissingDataError: the trace lacks the required data.
    """
    flame = flame_of(slice_trace(trace, query.start_ns, query.end_ns), query)
    if query.before_start_ns is None and query.before_end_ns is None:
        return flame
    before = slice_trace(trace, query.before_start_ns, query.before_end_ns)
    other = flame_of(before, query)
    tree = combine(flame.tree, other.tree)
    return replace(flame, tree=tree, steps=(*flame.steps, *other.steps), is_per_step=False)


def flame_of(trace: Trace, query: FlameQuery) -> Flame:
    """Return a flame graph of a trace that is clipped to the time range.

    Raises:
        MissingDataError: the trace lacks the required data.
    """
    if query.subject == "memory":
        return memory_flame(trace, query.device)
    if query.per_step and query.start_ns is None:
        trace = in_steps(trace)
    steps = window(trace).step_count
    flame = (
        Flame(tree=modules_tree(trace, query.measure, query.phase), steps=(steps,), about={})
        if query.subject == "modules"
        else calls_flame(trace, query.measure, query.thread)
    )
    is_per_step = query.per_step and query.start_ns is None and steps > 0
    return replace(flame, is_per_step=is_per_step)


def in_steps(trace: Trace) -> Trace:
    """Return the trace clipped to its complete steps; unchanged without steps."""
    whole = window(trace)
    return slice_trace(trace, whole.start_ns, whole.end_ns) if whole.has_steps else trace


def calls_flame(trace: Trace, measure: Measure, thread: str | None = None) -> Flame:
    """Return the flame graph of a trace's calls, or of one thread's."""
    if thread is not None:
        tree = thread_calls_tree(trace, measure, thread)
    else:
        tree = host_calls_tree(trace) if measure == "host" else device_calls_tree(trace)
    has_python = bool({CODES["user"], CODES["python"]} & set(tree.kinds[tree.name].tolist()))
    about = {} if has_python or not len(tree) else {"note": NO_PYTHON, "remedy": RECORD_STACKS}
    if not tree.self_values.any():
        about = {"empty": NOTHING[measure], "remedy": RECORD[measure] if thread is None else ""}
    return Flame(
        tree=tree,
        steps=(window(trace).step_count,),
        about={**about, "threads": _threads(trace, measure)},
    )


def _threads(trace: Trace, measure: Measure) -> tuple[FlameThread, ...]:
    """Return the threads with any time, the longest first."""
    names, total_ns = thread_names(trace), thread_times(trace, measure)
    order = np.argsort(-total_ns, kind="stable")
    return tuple(
        FlameThread(names.names[thread], names.label(thread), int(total_ns[thread]))
        for thread in order[total_ns[order] > 0].tolist()
    )


def memory_flame(trace: Trace, device: str | None) -> Flame:
    """Return the flame graph of a device's memory at its peak.

    Raises:
        MissingDataError: no memory was recorded.
    """
    peak = peak_of(trace, device)
    tree = memory_tree(trace, peak)
    return Flame(
        tree=tree,
        steps=(0,),
        about={
            "devices": tuple(device.curve.device.label for device in memory_at_peak(trace)),
            "device": peak.curve.device.label,
            "at_ns": int(peak.curve.time_ns[peak.at]),
            "empty": "" if tree.self_values.any() else NOTHING["memory"],
        },
    )


def compared(after: Flame, before: Flame) -> Flame:
    """Return a comparison of two flame graphs, per step where both have steps."""
    steps = (*after.steps, *before.steps)
    moved = moved_names(after.tree.names, before.tree.names)
    tree = combine(after.tree, before.tree, moved)
    is_per_step = min(steps) > 0
    is_uneven = not is_per_step and tree.unit == "ns"
    return Flame(
        tree=tree,
        steps=steps,
        is_per_step=is_per_step,
        about={**after.about, **({"note": WHOLE, "remedy": RECORD_STEPS} if is_uneven else {})},
    )


def graph(flame: Flame, view: FlameView) -> FlameGraph:
    """Return the drawn nodes of a flame graph."""
    tree = _shown(flame.tree, view)
    frame = Viewport(
        scale=flame.scale,
        path=tuple(key for key in view.root.split(".") if key),
        pieces=view.pieces,
        most=MOST_NODES,
    )
    if view.direction == "callers":
        drawing = invert(tree, frame, view.name)
    else:
        drawing = prune(tree if view.name is None else callees(tree, view.name), frame)
    return _graph(flame, drawing, int(tree.totals().any(axis=0).sum()))


def _waiting(tree: FlameTree) -> list[int]:
    """Return the time of frames that wait, of each side."""
    if tree.unit != "ns":
        return [0] * len(tree.self_values)
    return [int(side.sum()) for side in tree.self_values[:, waiting_nodes(tree)]]


def _shown(tree: FlameTree, view: FlameView) -> FlameTree:
    if view.without_waits and tree.unit == "ns":
        tree = without_waits(tree)
    if view.by_class:
        tree = without_instances(tree)
    if view.frames == "all":
        return tree
    kinds = [CODES[kind] for kind in (*KINDS_SHOWN[view.frames], *ALWAYS)]
    return select_nodes(tree, np.isin(tree.kind, kinds), NOT_SHOWN)


def bounded(flame: Flame, view: FlameView) -> FlameTree:
    """Return a flame graph's tree for a file, without nodes far smaller than a pixel."""
    frame = Viewport(scale=flame.scale, pieces=FILE_PIECES, most=MOST_FILE_NODES)
    return prune(_shown(flame.tree, view), frame).tree


def _graph(flame: Flame, drawing: PrunedTree, node_count: int) -> FlameGraph:
    tree = drawing.tree
    used, name = np.unique(tree.name, return_inverse=True)
    return FlameGraph(
        **_common(flame, tree, used.tolist()),
        **_sides({"own": tree.self_values, "total": tree.totals(), "calls": tree.calls}),
        **_per_side("whole", tree.whole()),
        parent=tuple(tree.parent.tolist()),
        name=tuple(name.tolist()),
        merged_count=tuple(tree.merged_count.tolist()),
        root=drawing.root,
        node_count=node_count,
        **flame.about,
    )


def function_list(flame: Flame, view: FlameView) -> FlameFunctions:
    """Return the functions of a flame graph, largest self values first."""
    tree = _shown(flame.tree, view)
    table = functions(tree)
    weight = weights(table.self_values, flame.scale)
    total = weights(table.total, flame.scale)
    rows = np.lexsort((table.name, -total, -weight))[:MOST_FUNCTIONS]
    rows = rows[total[rows] > 0]
    sides = {"own": table.self_values, "total": table.total, "calls": table.calls}
    return FlameFunctions(
        **_common(flame, tree, table.name[rows].tolist()),
        **_sides({name: values[:, rows] for name, values in sides.items()}),
        **_per_side("whole", tree.whole()),
        all_count=int((total > 0).sum()),
    )


def _common(flame: Flame, tree: FlameTree, names: Sequence[int]) -> dict[str, Any]:
    """Return the fields of `FlameValues` that do not depend on nodes."""
    return {
        "unit": tree.unit,
        "kinds": tuple(FlameKind(id=kind, label=label) for kind, label in KINDS.items()),
        "names": tuple(tree.names[code] for code in names),
        "name_kinds": tuple(int(tree.kinds[code]) for code in names),
        **_per_side("steps", flame.steps),
        **_per_side("waiting", _waiting(flame.tree)),
        "is_per_step": flame.is_per_step,
    }


def _sides(columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns of all sides by response field."""
    return {
        field: tuple(side.tolist())
        for name, values in columns.items()
        for field, side in _per_side(name, values).items()
    }


def _per_side(name: str, values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((name, f"before_{name}"), values, strict=False))
