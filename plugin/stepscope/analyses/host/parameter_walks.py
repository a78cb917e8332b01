"""Loops in Python that go through a model's parameters one by one, outside of optimizers.

The parameters are those whose gradients a backward pass accumulates. An operator walks through them
where Python calls it on nearly as many tensors of each shape as there are parameters, in every
step. With two models each backward pass has its set of parameters, and several backward passes of
one set accumulate it. Tensors of one dimension count as flattened parameters.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import optimizer_updates
from stepscope.analyses.operators.product_shapes import distinct, shape
from stepscope.analyses.operators.python_operators import python_operators
from stepscope.base.errors import NotApplicableError
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

ACCUMULATES = "torch::autograd::AccumulateGrad"
LEAST_SHARE = 0.8
"""Part of the parameters that an operator has to be called on: some may be shared, or of a frozen
network whose gradients nobody switched off."""
LEAST_STEPS = 0.9
"""Part of the steps in which a backward pass has a set of parameters, at least."""
BETWEEN = 12
"""Operators from one parameter to the next that belong to the walk; `deepcopy` has ten."""
REGULARLY_BETWEEN = 64
"""The same, if so many follow most parameters; PyTorch Lightning's `log` has 17 for each value."""
PER_PARAMETER = 4
"""Operators between two parameters for each parameter of the set, at most: some loops call
`state_dict` for each one."""
AVERAGES = (
    frozenset({"aten::lerp_"}),
    frozenset({"aten::lerp"}),
    frozenset({"aten::mul_", "aten::add_"}),
    frozenset({"aten::mul", "aten::add"}),
)
"""Operators of moving averages: `average += (1 - decay) * (parameter - average)` and the like."""
UPDATES = frozenset({"aten::addcdiv_", "aten::sqrt", "aten::sub_"})
"""Operators of optimizers that are written by hand."""
Shape = tuple[int, ...]
Shapes = Counter[Shape]


@dataclass(frozen=True, kw_only=True, eq=False)
class ParameterWalks:
    """Operators that Python calls on each parameter of a set in each step."""

    parameter_count: int
    """Parameters of the set."""
    is_whole: bool
    """Whether it has all parameters of a backward pass, not only those of two dimensions."""
    mean_size: float
    """Mean number of values of a parameter."""
    rows_of: dict[str, Ints]
    """Name of an operator to its calls (rows of `host_calls`) on tensors of parameters' shapes."""


@computed
def parameter_walks(trace: Trace) -> tuple[ParameterWalks, ...]:
    """Return the walks through each set of parameters, the largest set first.

    None where no step or no gradient was recorded.
    """
    step_count = window(trace).step_count
    if not step_count:
        return ()
    rows = _outside_optimizers(trace)
    group, calls = distinct(trace, rows)
    shapes = [shape(dims, 0) for _, dims in calls]
    called = np.bincount(group, minlength=len(calls))
    names = np.array([name for name, _ in calls], dtype=object)[group]
    walks = []
    for parameters, is_whole in _parameter_sets(_passes(trace), step_count):
        sizes = _by_size(parameters)
        is_parameter = [_is_of(sizes_of_call, parameters, sizes) for sizes_of_call in shapes]
        reached = _calls_by_name_and_size(
            (name, math.prod(dims), number)
            for (name, _), dims, number, counts in zip(
                calls, shapes, called.tolist(), is_parameter, strict=True
            )
            if counts and dims
        )
        mask = np.array(is_parameter, dtype=bool)[group]
        total = parameters.total()
        walks.append(
            ParameterWalks(
                parameter_count=total,
                is_whole=is_whole,
                mean_size=sum(math.prod(dims) * count for dims, count in parameters.items())
                / total,
                rows_of={
                    name: rows[mask & (names == name)]
                    for name, numbers in sorted(reached.items())
                    if _is_walk(numbers, sizes, step_count)
                },
            )
        )
    return tuple(walks)


def averages(walks: ParameterWalks) -> Set[str]:
    """Return the operators of a moving average of the parameters; none of other walks."""
    names = walks.rows_of.keys()
    averaging = next((pair for pair in AVERAGES if pair <= names), frozenset[str]())
    added = len(walks.rows_of.get("aten::add_", ()))
    is_update = bool(UPDATES & names) or added > len(walks.rows_of.get("aten::mul_", ())) > 0
    return frozenset() if is_update else averaging


def _is_of(dims: Shape, parameters: Shapes, sizes: Counter[int]) -> bool:
    """Return whether a tensor may be a parameter, or a flattened one."""
    return bool(dims) and (dims in parameters or (len(dims) == 1 and dims[0] in sizes))


def _by_size(parameters: Shapes) -> Counter[int]:
    """Return the number of parameters by their number of values."""
    sizes = Counter[int]()
    for dims, count in parameters.items():
        sizes[math.prod(dims)] += count
    return sizes


def _calls_by_name_and_size(calls: Iterable[tuple[str, int, int]]) -> dict[str, Counter[int]]:
    """Sum numbers of calls, given with their name and their tensor's number of values."""
    sums: dict[str, Counter[int]] = {}
    for name, size, number in calls:
        sums.setdefault(name, Counter())[size] += number
    return sums


def _is_walk(numbers: Counter[int], sizes: Counter[int], step_count: int) -> bool:
    """Return whether calls reach nearly all parameters in each step."""
    reached = sum(min(numbers[size], count * step_count) for size, count in sizes.items())
    return reached >= LEAST_SHARE * sizes.total() * step_count


def walk_times(trace: Trace, walks: ParameterWalks, names: Set[str]) -> Intervals:
    """Return the times of some walks, with what is between a parameter and the next."""
    calls, operators = trace.host_calls, python_operators(trace)
    rows = np.unique(np.concatenate([walks.rows_of[name] for name in sorted(names)]))
    index = np.searchsorted(operators.rows, rows)
    start, end = (calls[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    distance = np.diff(index)
    least = walks.parameter_count * window(trace).step_count / 2
    most = max(REGULARLY_BETWEEN, PER_PARAMETER * walks.parameter_count)
    distances, numbers = np.unique(distance[distance <= most], return_counts=True)
    is_near = (distance <= BETWEEN) | np.isin(distance, distances[numbers >= least])
    is_near &= np.diff(operators.step[index]) == 0
    until = np.where(np.append(is_near, False)[: len(rows)], np.append(start[1:], 0), end)
    return intervals.union(start, until)


def _passes(trace: Trace) -> list[Shapes]:
    """Return the parameters whose gradients each backward pass accumulates in the window."""
    calls, span = trace.host_calls, window(trace)
    start = calls["start_ns"].to_numpy()
    rows = np.flatnonzero(name_mask(calls["name"], ACCUMULATES.__eq__))
    rows = rows[(start[rows] >= span.start_ns) & (start[rows] < span.end_ns)]
    group, gradients = distinct(trace, rows)
    shapes = [shape(dims, 0) for _, dims in gradients]
    number = np.searchsorted(start[np.setdiff1d(python_operators(trace).rows, rows)], start[rows])
    passes: dict[int, Shapes] = {}
    for at, of_call in zip(number.tolist(), group.tolist(), strict=True):
        if dims := shapes[of_call]:
            passes.setdefault(at, Counter())[dims] += 1
    return list(passes.values())


def _parameter_sets(passes: list[Shapes], step_count: int) -> list[tuple[Shapes, bool]]:
    """Return the sets of parameters that a loop may go through, the largest first.

    They are those of the backward passes of each step, those that one pass has beyond another, and
    of each set those of two dimensions and more, for which the second value is False.
    """
    number_of = Counter(frozenset(parameters.items()) for parameters in passes)
    sets = [
        Counter(dict(items))
        for items, number in number_of.items()
        if number >= LEAST_STEPS * step_count
    ]
    if not sets and passes:
        sets = [_union(passes)]
    sets += [one - other for one in sets for other in sets if other < one]
    is_whole = {frozenset(one.items()): True for one in sets}
    for one in map(_matrices, sets):
        is_whole.setdefault(frozenset(one.items()), False)
    distinct_sets = [(Counter(dict(items)), whole) for items, whole in is_whole.items() if items]
    return sorted(distinct_sets, key=lambda one: one[0].total(), reverse=True)


def _union(passes: list[Shapes]) -> Shapes:
    """Return what any of several passes has."""
    union: Shapes = Counter()
    for parameters in passes:
        union |= parameters
    return union


def _matrices(parameters: Shapes) -> Shapes:
    return Counter({dims: count for dims, count in parameters.items() if len(dims) > 1})


def _outside_optimizers(trace: Trace) -> Ints:
    """Return operators of Python outside of updates and `zero_grad`; closures are outside."""
    calls, rows = trace.host_calls, python_operators(trace).rows
    is_optimizer = name_mask(calls["name"], lambda name: name.startswith("Optimizer."))
    inside = ancestry.nearest_of(calls["parent"].to_numpy(), rows, is_optimizer)
    begin = np.zeros(len(calls) + 1, dtype=np.int64)
    for row, begin_ns in _updates(trace):
        begin[row] = begin_ns
    outside: Ints = rows[(inside == NONE) | (calls["start_ns"].to_numpy()[rows] < begin[inside])]
    return outside


def _updates(trace: Trace) -> Iterator[tuple[int, int]]:
    """Yield the row and the start of each update."""
    try:
        updates = optimizer_updates(trace)
    except NotApplicableError:
        return
    yield from zip(updates.rows.tolist(), updates.begin_ns.tolist(), strict=True)
