"""Flame graphs for the page: which tree is asked for, what is drawn of it, and its functions."""

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
from stepscope.analyses.memory.at_peak import memory_at_peak
from stepscope.api.endpoint import TimeRangeQuery
from stepscope.base.report import SCHEMA_VERSION
from stepscope.model.trace import Trace


class FlameKind(msgspec.Struct, frozen=True):
    """What a frame can be."""

    id: str
    label: str


class FlameGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A flame graph by columns: nodes by depth, those of one parent together, heaviest first.

    Own values of a node and all below it sum to its total, and the totals of the top to `whole`,
    `smaller` frames included. A comparison has a second side, the baseline.
    """

    schema: int
    unit: Unit
    """Of `own`, `total` and `whole`: ns, or bytes."""
    kinds: tuple[FlameKind, ...]
    names: tuple[str, ...]
    name_kinds: tuple[int, ...]
    """What each of `names` is: a place in `kinds`."""
    parent: tuple[int, ...]
    """Of each node; -1 at the top."""
    name: tuple[int, ...]
    """Of each node: a place in `names`."""
    own: tuple[int, ...]
    """Of each node without those below it, in `unit`."""
    total: tuple[int, ...]
    """Of each node with all below it, in `unit`."""
    calls: tuple[int, ...]
    """How often each was called; of memory, how many allocations it made itself."""
    merged_count: tuple[int, ...]
    """How many frames a node of the kind `smaller` stands for; 0 for all others."""
    whole: int
    """The sum of all, in `unit`."""
    steps: int
    """How many steps that is of; 0: it is not known, or of no steps."""
    before_own: tuple[int, ...] = ()
    """As `own`, of the baseline; empty where nothing is compared, as all that follow."""
    before_total: tuple[int, ...] = ()
    """As `total`, of the baseline."""
    before_calls: tuple[int, ...] = ()
    """As `calls`, of the baseline."""
    before_whole: int = 0
    """As `whole`, of the baseline."""
    before_steps: int = 0
    """As `steps`, of the baseline."""
    is_per_step: bool = False
    """Whether values are of whole steps, and are read divided by their number."""
    root: int = -1
    """The node that fills the picture, as far as `root` was found; -1: all do."""
    node_count: int = 0
    """How many nodes there are in full."""
    devices: tuple[str, ...] = ()
    """Of memory: the labels of devices that can be asked for."""
    device: str = ""
    """Of memory: whose it is."""
    at_ns: int | None = None
    """Of memory: when most was held."""
    note: str = ""
    """What to know about it."""
    remedy: str = ""
    """The code that would record more."""
    empty: str = ""
    """Where there is nothing: why."""


class FlameFunctions(msgspec.Struct, frozen=True, kw_only=True):
    """Each name of a flame graph once, the largest own value first."""

    schema: int
    unit: Unit
    kinds: tuple[FlameKind, ...]
    names: tuple[str, ...]
    name_kinds: tuple[int, ...]
    """What each of `names` is: a place in `kinds`."""
    own: tuple[int, ...]
    """Without what it calls, in `unit`."""
    total: tuple[int, ...]
    """With what it calls, once where it calls itself, in `unit`."""
    calls: tuple[int, ...]
    whole: int
    """The sum of all own values, in `unit`; also of names that are not listed."""
    steps: int
    """How many steps that is of; 0: it is not known, or of no steps."""
    all_count: int
    """How many names there are, of which the largest are listed."""
    before_own: tuple[int, ...] = ()
    """As `own`, of the baseline; empty where nothing is compared, as all that follow."""
    before_total: tuple[int, ...] = ()
    """As `total`, of the baseline."""
    before_calls: tuple[int, ...] = ()
    """As `calls`, of the baseline."""
    before_whole: int = 0
    """As `whole`, of the baseline."""
    before_steps: int = 0
    """As `steps`, of the baseline."""
    is_per_step: bool = False
    """Whether values are of whole steps, and are read divided by their number."""


Subject = Literal["calls", "modules", "memory"]
Measure = Literal["host", "device"]
Shown = Literal["all", "user", "python", "modules", "operators"]
Direction = Literal["callees", "callers"]
MOST_FUNCTIONS = 5000
FINEST = 1_000_000
FILE_PIECES = 20_000
MOST_FILE_NODES = 100_000
PATH = r"^([0-9a-z]{1,7}(\.[0-9a-z]{1,7})*)?$"
NOT_SHOWN = "outside of these frames"
ALWAYS = ("rest", "smaller")
KINDS_SHOWN: dict[Shown, tuple[str, ...]] = {
    "user": ("user",),
    "python": ("user", "python", "module"),
    "modules": ("module",),
    "operators": ("operator", "annotation", "runtime", "kernel"),
}
RECORD_STACKS = "profile(with_stack=True)"
RECORD: dict[Measure, str] = {
    "host": "profile(activities=[ProfilerActivity.CPU])",
    "device": "profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])",
}
WHOLE = "Without complete steps on both sides, the recordings are compared as wholes."
RECORD_STEPS = "profiler.step()"
NO_PYTHON = "No Python functions were recorded, so operators stand at the top."
NOTHING = {
    "host": "The host did nothing here that was recorded.",
    "device": "No work of a device was recorded here.",
    "memory": "No memory was held here.",
}


class FlameView(TimeRangeQuery, frozen=True, kw_only=True):
    """How a flame graph is read, whatever it is of."""

    frames: Shown = "all"
    """Which frames are shown; what others have goes to those around them. Not of modules."""
    by_class: bool = False
    """Whether all instances of a module's class are one frame: `Linear_3` is `Linear`."""
    direction: Direction = "callees"
    """From the outermost call inwards, or from each function's own value to its callers."""
    name: str | None = None
    """One function alone, wherever it is called: what it leads to, or what leads to it."""
    root: Annotated[str, Meta(pattern=PATH, max_length=4000)] = ""
    """The node that fills the picture: the path of names to it, each as the CRC-32 of its UTF-8
    in base 36, joined by dots; the end of it that is not there is passed over."""
    pieces: Annotated[int, Meta(ge=1, le=FINEST)] = PIECES
    """Nodes smaller than this part of the root are put together, as `smaller` frames."""


class FlameQuery(FlameView, frozen=True, kw_only=True):
    """Which flame graph is asked for, and how it is read."""

    subject: Subject = "calls"
    """`calls`: Python functions, operators, runtime calls; `modules`: forward and backward passes
    by module; `memory`: what a device held at its peak, by what allocated it."""
    measure: Measure = "host"
    """Of calls and modules: the host's own time, or the device's by what launched it."""
    phase: Phase = "all"
    """Of modules: the whole, or one pass; `rerun` is what checkpointing ran again."""
    device: str | None = None
    """Of memory: the device's label; without, the device that held most."""
    per_step: bool = False
    """Of the complete steps alone, to be divided by `steps`. Not of memory, nor of a time."""
    before_start_ns: int | None = None
    """Another time of the same recording to compare with: from when. Both bounds, or neither."""
    before_end_ns: int | None = None
    """Until when; not itself in it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Flame:
    """A tree, and what to know about it."""

    tree: FlameTree
    steps: tuple[int, ...]
    """Of each side, how many steps it is of."""
    is_per_step: bool = False
    about: dict[str, Any]
    """Fields of the answer."""

    @property
    def scale(self) -> tuple[int, ...]:
        """What sides are divided by before they are compared."""
        return self.steps if self.is_per_step else (1,) * len(self.steps)


def flame_in_time(trace: Trace, asked: FlameQuery) -> Flame:
    """Return the flame graph of the time that is asked for, compared with another where that is.

    Raises:
        MissingDataError: the recording does not hold it.
    """
    flame = flame_of(slice_trace(trace, asked.start_ns, asked.end_ns), asked)
    if asked.before_start_ns is None and asked.before_end_ns is None:
        return flame
    before = slice_trace(trace, asked.before_start_ns, asked.before_end_ns)
    other = flame_of(before, asked)
    tree = combine(flame.tree, other.tree)
    return replace(flame, tree=tree, steps=(*flame.steps, *other.steps), is_per_step=False)


def flame_of(trace: Trace, asked: FlameQuery) -> Flame:
    """Return the flame graph that is asked for, of a recording that is narrowed already.

    Raises:
        MissingDataError: the recording does not hold it.
    """
    if asked.subject == "memory":
        return memory_flame(trace, asked.device)
    if asked.per_step and asked.start_ns is None:
        trace = in_steps(trace)
    steps = window(trace).step_count
    flame = (
        Flame(tree=modules_tree(trace, asked.measure, asked.phase), steps=(steps,), about={})
        if asked.subject == "modules"
        else calls_flame(trace, asked.measure)
    )
    is_per_step = asked.per_step and asked.start_ns is None and steps > 0
    return replace(flame, is_per_step=is_per_step)


def in_steps(trace: Trace) -> Trace:
    """Return the recording of its complete steps alone; all of it where there are none."""
    whole = window(trace)
    return slice_trace(trace, whole.start_ns, whole.end_ns) if whole.has_steps else trace


def calls_flame(trace: Trace, measure: Measure) -> Flame:
    """Return the flame graph of a recording's calls."""
    tree = host_calls_tree(trace) if measure == "host" else device_calls_tree(trace)
    has_python = bool({CODES["user"], CODES["python"]} & set(tree.kinds[tree.name].tolist()))
    about = {} if has_python or not len(tree) else {"note": NO_PYTHON, "remedy": RECORD_STACKS}
    if not tree.self_values.any():
        about = {"empty": NOTHING[measure], "remedy": RECORD[measure]}
    return Flame(tree=tree, steps=(window(trace).step_count,), about=about)


def memory_flame(trace: Trace, device: str | None) -> Flame:
    """Return the flame graph of what a device held at its peak.

    Raises:
        MissingDataError: no memory was recorded.
    """
    peak = peak_of(trace, device)
    tree = memory_tree(trace, peak)
    return Flame(
        tree=tree,
        steps=(0,),
        about={
            "devices": tuple(each.curve.device.label for each in memory_at_peak(trace)),
            "device": peak.curve.device.label,
            "at_ns": int(peak.curve.time_ns[peak.at]),
            "empty": "" if tree.self_values.any() else NOTHING["memory"],
        },
    )


def compared(after: Flame, before: Flame) -> Flame:
    """Return the two as one, per step where both are of steps."""
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


def graph(flame: Flame, read: FlameView) -> FlameGraph:
    """Return what is drawn of a flame graph."""
    tree = _shown(flame.tree, read)
    frame = Viewport(
        scale=flame.scale,
        path=tuple(key for key in read.root.split(".") if key),
        pieces=read.pieces,
        most=MOST_NODES,
    )
    if read.direction == "callers":
        drawing = invert(tree, frame, read.name)
    else:
        drawing = prune(tree if read.name is None else callees(tree, read.name), frame)
    return _graph(flame, drawing, len(tree))


def _shown(tree: FlameTree, read: FlameView) -> FlameTree:
    if read.by_class:
        tree = without_instances(tree)
    if read.frames == "all":
        return tree
    kinds = [CODES[kind] for kind in (*KINDS_SHOWN[read.frames], *ALWAYS)]
    return select_nodes(tree, np.isin(tree.kind, kinds), NOT_SHOWN)


def bounded(flame: Flame, read: FlameView) -> FlameTree:
    """Return a flame graph's tree for a file: without what is far smaller than a pixel."""
    frame = Viewport(scale=flame.scale, pieces=FILE_PIECES, most=MOST_FILE_NODES)
    return prune(_shown(flame.tree, read), frame).tree


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


def listed(flame: Flame, read: FlameView) -> FlameFunctions:
    """Return the functions of a flame graph, the largest own values first."""
    tree = _shown(flame.tree, read)
    found = functions(tree)
    weight = weights(found.self_values, flame.scale)
    total = weights(found.total, flame.scale)
    kept = np.lexsort((found.name, -total, -weight))[:MOST_FUNCTIONS]
    kept = kept[total[kept] > 0]
    sides = {"own": found.self_values, "total": found.total, "calls": found.calls}
    return FlameFunctions(
        **_common(flame, tree, found.name[kept].tolist()),
        **_sides({name: values[:, kept] for name, values in sides.items()}),
        **_per_side("whole", tree.whole()),
        all_count=int((total > 0).sum()),
    )


def _common(flame: Flame, tree: FlameTree, names: Sequence[int]) -> dict[str, Any]:
    """Return the fields that both answers begin with."""
    return {
        "schema": SCHEMA_VERSION,
        "unit": tree.unit,
        "kinds": tuple(FlameKind(id=kind, label=label) for kind, label in KINDS.items()),
        "names": tuple(tree.names[code] for code in names),
        "name_kinds": tuple(int(tree.kinds[code]) for code in names),
        **_per_side("steps", flame.steps),
        "is_per_step": flame.is_per_step,
    }


def _sides(columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns of all sides, by the names of the answer's fields."""
    return {
        field: tuple(side.tolist())
        for name, values in columns.items()
        for field, side in _per_side(name, values).items()
    }


def _per_side(name: str, values: Sequence[Any]) -> dict[str, Any]:
    return dict(zip((name, f"before_{name}"), values, strict=False))
