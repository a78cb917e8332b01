"""Tree of a trace's modules, and their cost: forward, backward and recomputed.

A node is a module by the path of its callers, usually one instance. Its forward pass is the work in
its calls outside of a backward pass; its backward pass is the work that autograd runs for its
operators (`core.forward_backward`), on any thread. Activation checkpointing's recomputation in the
backward pass counts separately.

torch links gradient accumulation (`AccumulateGrad`) to no operator: it runs as soon as the gradient
is there, so it belongs to the module of the backward call before it on the thread, as in
torch-tb-profiler (`op_tree.py`).

torch's Python tracer names calls `nn.Module: Linear_3`: the class, and the number of the instance
(`torch/csrc/profiler/collection.cpp`). Lightning's profiler names ranges
`[pl][module]torch.nn.modules.linear.Linear: model.head` and
`[pl][profile][Strategy]DDPStrategy.training_step` (`lightning/pytorch/profilers/pytorch.py`).
Without these, the user's own ranges of `record_function` count.
"""

import re
from collections.abc import Set
from dataclasses import dataclass
from typing import Literal

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import Paths, merge_calls
from stepscope.analyses.core.forward_backward import WRAPPER, forward_backward
from stepscope.analyses.core.group_statistics import sums_where
from stepscope.analyses.host.host_call_tree import Flame, HostTree, host_flame, host_tree
from stepscope.base.errors import MissingDataError
from stepscope.dialects import ANNOTATION_NAME
from stepscope.model import call_tree
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.trace import Trace, computed

Origin = Literal["nn.Module", "Lightning", "record_function"]
TORCH_MODULE = re.compile(r"^nn\.Module: (?P<name>(?P<class>.*?)(?:_\d+)?)$", re.DOTALL)
LIGHTNING_MODULE = re.compile(r"^\[pl\]\[module\](?P<class>[^:]*): (?P<name>.*)$", re.DOTALL)
LIGHTNING_RANGE = re.compile(
    r"^\[pl\]\[profile\](?P<name>(?:\[(?P<class>[^\]]*)\])?.*)$", re.DOTALL
)
OWN_RANGES = re.compile(
    # what torch itself files as annotations
    r"^(?:PyTorch Profiler|ProfilerStep|Torch-Compiled Region|TorchDynamo|AOTDispatcher"
    r"|Pregraph bytecode|## Call Compiled|autograd::|c10d::|gloo:|CompiledFx|inductor::)"
)
RECORD = "profile(with_stack=True)"


@dataclass(frozen=True, kw_only=True)
class ModuleName:
    """A module: one instance of a class, or a range named like one."""

    name: str
    class_name: str


@dataclass(frozen=True, kw_only=True)
class ModuleNames:
    """Names of module calls."""

    origin: Origin
    of_call: dict[str, ModuleName]
    """By the name of the Python call or annotation."""


@computed
def module_names(trace: Trace) -> ModuleNames:
    """Return the trace's modules by the names of their calls.

    Raises:
        MissingDataError: nothing in the recording is a module.
    """
    python = [str(name) for name in trace.python_calls["name"].cat.categories]
    ranges = [
        str(name)
        for name in trace.annotations["name"].cat.remove_unused_categories().cat.categories
    ]
    candidates: list[tuple[Origin, dict[str, ModuleName]]] = [
        ("nn.Module", _matching(python, TORCH_MODULE)),
        ("Lightning", _matching(ranges, LIGHTNING_MODULE)),
        ("Lightning", _matching(ranges, LIGHTNING_RANGE)),
        ("record_function", _named_by_user(trace, ranges)),
    ]
    for origin, names in candidates:
        if names:
            return ModuleNames(origin=origin, of_call=names)
    msg = "the trace has neither module calls nor ranges of record_function"
    raise MissingDataError(msg, RECORD)


def _matching(names: list[str], pattern: re.Pattern[str]) -> dict[str, ModuleName]:
    matches = {name: match for name in names if (match := pattern.match(name))}
    return {
        name: ModuleName(name=match["name"], class_name=_class(match["class"] or match["name"]))
        for name, match in matches.items()
    }


def _class(path: str) -> str:
    """Return a class without its package: `Linear` of `torch.nn.modules.linear.Linear`."""
    return path.rpartition(".")[2] or path


def _named_by_user(trace: Trace, names: list[str]) -> dict[str, ModuleName]:
    return {
        name: ModuleName(name=name, class_name=name)
        for name in names
        if not ANNOTATION_NAME.match(name)
        and not OWN_RANGES.match(name)
        and not trace.dialect.collective.search(name)
    }


BACKWARD_PASS = re.compile(
    rf"^(?:{re.escape(WRAPPER)}|<built-in method run_backward of |torch/autograd/graph\.py\(\d+\): "
    r"_engine_run_backward)"
)
"""Calls of autograd: the engine's own, and its callers."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Cost:
    """Self time of each node, without nested modules."""

    host_ns: Ints
    device_ns: Ints
    """Of kernels, copies and memory sets launched meanwhile."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Engine:
    """Calls in which autograd's engine runs a backward function, in the tree's order."""

    row: Ints
    """Row of `host_tree`."""
    forward: Ints
    """Forward operator (a row of `host_tree`), or -1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Modules:
    """Modules by path, and their nodes in the flame graph."""

    paths: Paths
    marked: Mask
    """Nodes of the flame graph that are calls of modules."""
    in_backward: Mask
    module_of_node: Ints


@dataclass(frozen=True, kw_only=True, eq=False)
class ModuleTree:
    """One row per module path; a parent's row is lower than its children's."""

    origin: Origin
    modules: tuple[ModuleName, ...]
    """Module of each node."""
    parent: Ints
    depth: Ints
    call_count: Ints
    """Calls of the forward pass."""
    rerun_count: Ints
    """Calls in the backward pass: recomputed activations."""
    operator_count: Ints
    """Operators that the forward pass called directly, without nested operators."""
    forward: Cost
    outside_operators_ns: Ints
    """The part of `forward.host_ns` in no operator: Python."""
    backward: Cost
    rerun: Cost
    module_of_node: Ints
    """Innermost module around each node of `host_flame`, or -1; in a backward pass only for
    recomputation."""
    is_rerun: Mask
    """Mask of the nodes of `host_flame` that recompute a forward pass in a backward pass."""
    backward_module: Ints
    """Module of each row of `host_tree` in a backward pass, or -1."""
    unassigned_backward_ns: tuple[int, int]
    """Host and device time of backward calls of unknown modules."""

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.parent)


@computed
def module_tree(trace: Trace) -> ModuleTree:
    """Return the modules and their cost.

    Raises:
        MissingDataError: the recording holds no modules.
    """
    names = module_names(trace)
    graph, tree, engine = host_flame(trace), host_tree(trace), _engine(trace)
    modules = _modules(graph, names.of_call.keys(), engine.row)
    paths, of_flame, count = modules.paths, modules.module_of_node, len(modules.paths)
    operators = np.zeros(len(graph), dtype=bool)
    operators[graph.paths.node[tree.is_operator]] = True
    # Operators may call modules (`CheckpointFunction`), so what counts is what is nearer.
    nearest = ancestry.nearest(graph.paths.parent, operators | modules.marked)
    is_python = ~np.append(operators, False)[nearest]
    is_direct = operators & np.append(is_python, True)[graph.paths.parent]
    forward = ~modules.in_backward
    is_rerun = modules.in_backward & (of_flame != NONE)
    of_backward, is_backward = _backward(trace, modules, engine)
    is_unassigned = is_backward & (of_backward == NONE)
    calls, python = graph.call_count, forward & is_python
    return ModuleTree(
        origin=names.origin,
        modules=tuple(names.of_call[graph.names[name]] for name in paths.name.tolist()),
        parent=paths.parent,
        depth=paths.depth,
        call_count=sums_where(calls, of_flame, count, modules.marked & forward),
        rerun_count=sums_where(calls, of_flame, count, modules.marked & is_rerun),
        operator_count=sums_where(calls, of_flame, count, is_direct & forward),
        forward=_cost(graph, of_flame, forward, count),
        outside_operators_ns=sums_where(graph.host_self_ns, of_flame, count, python),
        backward=Cost(
            host_ns=sums_where(tree.self_ns, of_backward, count),
            device_ns=sums_where(tree.device_ns, of_backward, count),
        ),
        rerun=_cost(graph, of_flame, is_rerun, count),
        module_of_node=of_flame,
        is_rerun=is_rerun,
        backward_module=of_backward,
        unassigned_backward_ns=(
            int(tree.self_ns[is_unassigned].sum()),
            int(tree.device_ns[is_unassigned].sum()),
        ),
    )


def _engine(trace: Trace) -> _Engine:
    tree, linked = host_tree(trace), forward_backward(trace)
    nodes = np.flatnonzero((linked.wrapper != NONE) | (linked.forward != NONE))
    wrapper, forward = linked.wrapper[nodes], linked.forward[nodes]
    row, first = np.unique(np.where(wrapper != NONE, wrapper, nodes), return_index=True)
    made = forward[first]
    return _Engine(
        row=row + tree.host_offset, forward=np.where(made != NONE, made + tree.host_offset, NONE)
    )


def _above(parent: Ints, is_selected: Mask) -> Ints:
    """Return each node's nearest selected ancestor, or -1."""
    return np.append(ancestry.nearest(parent, is_selected), NONE)[parent]


def _modules(graph: Flame, names: Set[str], engine: Ints) -> _Modules:
    """Return the modules' paths, and the module of each node of the flame graph."""
    parent, name = graph.paths.parent, graph.paths.name
    marked = np.array([text in names for text in graph.names], dtype=bool)[name]
    begins = np.array([bool(BACKWARD_PASS.match(text)) for text in graph.names], dtype=bool)[name]
    begins[graph.paths.node[engine]] = True
    in_backward = ancestry.nearest(parent, begins) != NONE
    is_forward = marked & ~in_backward
    nodes = np.flatnonzero(is_forward)
    index = np.full(len(graph) + 1, NONE, dtype=np.int64)
    index[nodes] = np.arange(len(nodes))
    above = index[_above(parent, is_forward)[nodes]]
    paths = merge_calls(above, call_tree.depth_of(above), name[nodes], len(graph.names))
    first = np.full(len(graph.names), NONE, dtype=np.int64)
    first[paths.name[::-1]] = np.arange(len(paths))[::-1]  # what is set last stays
    again = np.append(np.where(marked, first[name], NONE), NONE)
    return _Modules(
        paths=paths,
        marked=marked,
        in_backward=in_backward,
        module_of_node=np.where(
            in_backward,
            again[ancestry.nearest(parent, marked & in_backward)],
            np.append(paths.node, NONE)[index[ancestry.nearest(parent, is_forward)]],
        ),
    )


def _cost(graph: Flame, of_flame: Ints, mask: Mask, count: int) -> Cost:
    return Cost(
        host_ns=sums_where(graph.host_self_ns, of_flame, count, mask),
        device_ns=sums_where(graph.device_self_ns, of_flame, count, mask),
    )


def _backward(trace: Trace, modules: _Modules, engine: _Engine) -> tuple[Ints, Mask]:
    """Return the module of each row of `host_tree` that autograd ran, and a mask of those rows."""
    tree, node = host_tree(trace), host_flame(trace).paths.node
    module = _module_of_engine_call(tree, engine, modules.module_of_node[node])
    # What is run again in there is counted apart.
    is_backward = (modules.in_backward & (modules.module_of_node == NONE))[node]
    rows = np.flatnonzero(is_backward)
    end_ns = tree.start_ns + tree.duration_ns
    outer, inner = (
        (tree.thread[which], tree.start_ns[which], end_ns[which]) for which in (engine.row, rows)
    )
    of_row = np.full(len(tree), NONE, dtype=np.int64)
    of_row[rows] = np.append(module, NONE)[call_tree.enclosing(outer, inner)]
    return of_row, is_backward


def _module_of_engine_call(tree: HostTree, engine: _Engine, of_row: Ints) -> Ints:
    """Return the module of each of the engine's calls, or -1."""
    is_linked = engine.forward != NONE
    linked_module = np.where(is_linked, np.append(of_row, NONE)[engine.forward], NONE)
    # Accumulation of a gradient follows what made it: the last linked one on the thread.
    order = np.argsort(tree.thread[engine.row], kind="stable")
    thread = np.append(tree.thread[engine.row][order], NONE)
    last = np.maximum.accumulate(np.where(is_linked[order], np.arange(len(order)), NONE))
    fits = thread[last] == thread[:-1]
    module = np.full(len(linked_module), NONE, dtype=np.int64)
    module[order] = np.where(fits, np.append(linked_module[order], NONE)[last], NONE)
    return module
