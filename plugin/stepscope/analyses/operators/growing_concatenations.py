"""Tensors that grow by concatenation: each call copies all that the call before had copied.

The largest input of a call of `aten::cat` has the size of an earlier call's output, which no other
call has taken yet, and the appended part is of the same shape in both: then the second appends to
the tensor of the first. `LEAST_CALLS` such calls in a row are a growing tensor. Of several that
grow alike, such as the keys and values of a model's layers, each call takes the output that has
waited longest.

The features of a dense network grow as well, from layer to layer, and each layer needs its copy:
they are inputs of convolutions, normalizations or linear layers along the dimension in which they
grow, and are left out.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.window import window
from stepscope.analyses.operators.product_shapes import argument, distinct, list_of_shapes, shape
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

CONCATENATION = "aten::cat"
INTEGER = re.compile(r"-?\d{1,3}")
LEAST_CALLS = 4
"""Calls in a row on one tensor; a window may hold a part of its growth."""
OF_CHANNELS = frozenset(
    f"aten::{name}"
    for name in (
        *("batch_norm", "conv1d", "conv2d", "conv3d", "convolution", "_convolution"),
        *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "group_norm"),
        "instance_norm",
    )
)
"""Layers over dimension 1 of their input."""
OF_FEATURES = frozenset({"aten::linear", "aten::addmm", "aten::layer_norm", "aten::mm"})
"""Layers over the last dimension."""
Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class GrowingConcatenations:
    """Calls that append to growing tensors; arrays are parallel."""

    rows: Ints
    """Rows of `host_calls`, in the order they began."""
    tensor: Ints
    """Number of the tensor that each appends to."""
    old_size: Ints
    """Size of the copied tensor in the dimension in which it grows."""
    new_size: Ints
    """Size of the appended part."""
    shapes: tuple[Shape, ...]
    """Shape of each tensor after its last call."""
    dimensions: tuple[int, ...]
    """Dimension in which each grows."""

    @property
    def tensor_count(self) -> int:
        """Number of growing tensors."""
        return len(self.shapes)

    @property
    def old_share(self) -> float:
        """Fraction of the copied elements that earlier calls had copied, from 0 to 1."""
        total = int((self.old_size + self.new_size).sum())
        return float(self.old_size.sum()) / total if total else 0.0


@dataclass(frozen=True, kw_only=True)
class _Append:
    """Shapes of a call that appends to its largest input."""

    old: Shape
    new: tuple[Shape, ...]
    dimension: int

    @property
    def new_size(self) -> int:
        return sum(sizes[self.dimension] for sizes in self.new)

    @property
    def result(self) -> Shape:
        return _resized(self.old, self.dimension, self.old[self.dimension] + self.new_size)

    @property
    def kind(self) -> tuple[Shape, tuple[Shape, ...], int]:
        """Equal in all calls on a tensor."""
        return _resized(self.old, self.dimension, 0), self.new, self.dimension


def _resized(sizes: Shape, dimension: int, size: int) -> Shape:
    return (*sizes[:dimension], size, *sizes[dimension + 1 :])


@computed
def growing_concatenations(trace: Trace) -> GrowingConcatenations:
    """Return the calls in the window that append to growing tensors; needs recorded shapes."""
    calls, span = trace.host_calls, window(trace)
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    rows = np.flatnonzero(name_mask(calls["name"], CONCATENATION.__eq__))
    rows = rows[(end[rows] > span.start_ns) & (start[rows] < span.end_ns)]
    rows = rows[np.argsort(start[rows], kind="stable")]
    appends = _appends(trace, rows)
    threads = calls["thread"].cat.codes.to_numpy()[rows].tolist()
    grown = [chain for chain in _chains(appends, threads) if len(chain) >= LEAST_CALLS]
    layers = _layer_inputs(trace)
    grown = [chain for chain in grown if not _are_features([appends[at] for at in chain], layers)]
    index = np.array([at for chain in grown for at in chain], dtype=np.int64)
    tensor = np.repeat(np.arange(len(grown)), [len(chain) for chain in grown])
    order = np.argsort(index, kind="stable")
    ordered = [appends[at] for at in index[order].tolist()]
    last = [appends[chain[-1]] for chain in grown]
    return GrowingConcatenations(
        rows=rows[index[order]],
        tensor=tensor[order],
        old_size=np.array([one.old[one.dimension] for one in ordered], dtype=np.int64),
        new_size=np.array([one.new_size for one in ordered], dtype=np.int64),
        shapes=tuple(one.result for one in last),
        dimensions=tuple(one.dimension for one in last),
    )


def _appends(trace: Trace, rows: Ints) -> dict[int, _Append]:
    """Return the shapes of the calls that append, by their index in `rows`."""
    group, texts = distinct(trace, rows)
    concrete = trace.host_calls["concrete_inputs"].cat
    codes = concrete.codes.to_numpy()[rows].tolist()
    arguments = [*map(str, concrete.categories), ""]
    parsed: dict[tuple[int, int], _Append | None] = {}
    for kind, code in zip(group.tolist(), codes, strict=True):
        if (kind, code) not in parsed:
            parsed[kind, code] = _append(texts[kind][1], arguments[code])
    by_call = enumerate(parsed[key] for key in zip(group.tolist(), codes, strict=True))
    return {index: append for index, append in by_call if append is not None}


def _append(dims: str, arguments: str) -> _Append | None:
    """Return the shapes of a call, of its recorded shapes and arguments (JSON)."""
    shapes = [sizes for sizes in list_of_shapes(dims, 0) if 0 not in sizes]
    if len(shapes) < 2 or not shapes[0] or len(set(map(len, shapes))) != 1:
        return None
    dimension = _dimension(shapes, arguments)
    if dimension is None or len({_resized(sizes, dimension, 0) for sizes in shapes}) != 1:
        return None
    largest = max(range(len(shapes)), key=lambda at: shapes[at][dimension])
    rest = (*shapes[:largest], *shapes[largest + 1 :])
    return _Append(old=shapes[largest], new=rest, dimension=dimension)


def _dimension(shapes: list[Shape], arguments: str) -> int | None:
    """Return the dimension of a concatenation; where it was not recorded, the one that differs."""
    rank = len(shapes[0])
    if text := argument(arguments, 1):
        dimension = int(text) if INTEGER.fullmatch(text) else rank
        return dimension % rank if -rank <= dimension < rank else None
    differing = [at for at in range(rank) if len({sizes[at] for sizes in shapes}) > 1]
    return differing[0] if len(differing) == 1 else None


def _chains(appends: dict[int, _Append], threads: list[int]) -> Iterator[list[int]]:
    """Yield the calls on each tensor, as indices; most take no earlier call's output."""
    waiting: dict[tuple[object, ...], deque[list[int]]] = defaultdict(deque)
    for index, append in appends.items():
        key = (threads[index], *append.kind)
        size = append.old[append.dimension]
        ready = waiting[*key, size]
        chain = ready.popleft() if ready else []
        chain.append(index)
        waiting[*key, size + append.new_size].append(chain)
    for chains in waiting.values():
        yield from chains


def _layer_inputs(trace: Trace) -> tuple[set[Shape], set[Shape]]:
    """Return the shapes of inputs of layers over dimension 1, and over the last."""
    calls = trace.host_calls

    def inputs(names: frozenset[str], at: dict[str, int]) -> set[Shape]:
        _, texts = distinct(trace, np.flatnonzero(name_mask(calls["name"], names.__contains__)))
        return {shape(dims, at.get(name, 0)) for name, dims in texts}

    return inputs(OF_CHANNELS, {}), inputs(OF_FEATURES, {"aten::addmm": 1})


def _are_features(chain: list[_Append], layers: tuple[set[Shape], set[Shape]]) -> bool:
    """Return whether layers take most of a tensor's states along the dimension of growth."""
    of_channels, of_features = layers
    dimension, rank = chain[0].dimension, len(chain[0].old)
    inputs: set[Shape] = set()
    if dimension == 1 and rank > 2:
        inputs |= of_channels
    if dimension == rank - 1:
        inputs |= of_features
    taken = sum(append.result in inputs for append in chain)
    return 2 * taken >= len(chain)
