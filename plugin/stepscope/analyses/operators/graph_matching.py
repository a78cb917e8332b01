"""Operators of a replayed graph's nodes, by the recordings that match it.

A graph is compared with recordings of its trace, then of all traces of the run, in this order:

- *names*: a capture with as many launches as nodes, of the same kinds, and with the same names in
  the same order, where launches carry the kernel's name (ROCm's `kernel` argument);
- *order*: the same without names, where nodes have CUPTI's ids, which number them as captured, or
  run one after the other, and equal calls of an operator get equal kernels;
- *eager*: launches outside captures with the same kernels, grids and blocks in the same order;
- *occurrences*: otherwise kernels of a capture whose name occurs as often in both, by their order.

Serving engines capture one graph per batch size, often with equal sequences of kernels. The sizes
of the graph's grids decide between their captures. Two grids are known: those of eager launches of
an operator with the same shapes, and those of PyTorch's `elementwise_kernel<threads, elements>`,
which covers as many elements as an operand has. What the remaining captures disagree on is left
out, and shapes are left out where no capture fits the grids.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np
import pandas as pd

from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.operators.graph_captures import GraphPart, Launches, ReplayedGraph, where
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Floats, Ints, Objects

MatchedBy = Literal["names", "order", "eager", "occurrences"]
LEAST_CONSISTENT = 0.9
"""Fraction of nodes whose kernel is the usual one of such calls: a library may choose another.

Also the fraction of nodes with a known grid that a capture must fit."""
LEAST_REPEATED = 0.25
"""Fraction of launches like another one of the capture: an equal number of nodes is no proof."""
LEAST_EAGER = 10
"""Nodes of a graph that is matched with eager launches: a short one may look like another."""
ELEMENTWISE = re.compile(r"\b(?:index_)?elementwise_kernel<(\d{1,9}), (\d{1,9}),")
"""Threads per block and elements per thread (PyTorch's `Loops.cuh`, `IndexKernel.cu`)."""
Match = tuple[Launches, Ints]
"""A recording, and the launch of each node in it, or -1."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NodeMatch:
    """The operators of a graph's nodes, by the recordings that match."""

    operator: Objects
    module: Objects
    input_dims: Objects
    call: Ints
    """Number of the operator's call in the first recording that matches; -1: none."""
    call_size: Ints
    """Launches of that call."""
    flops: Floats
    owner: Ints
    """Row of the call in `host_calls` of the trace of that recording, or -1."""
    matched_by: Objects
    capture_count: int
    fits_grids: bool
    """Whether the shapes of a recording fit the grids, as far as these show."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Recordings:
    """Captures and eager launches of some traces."""

    captures: Sequence[Launches]
    eager: Sequence[Launches]
    grids: "GridsOfShapes"
    """Of the eager launches of all traces."""


Geometry = tuple[str | None, str | None]
"""Grid and block of a kernel."""
GridsOfShapes = Mapping[tuple[str | None, str | None], Mapping[str, set[Geometry]]]
"""The geometries of each operator and shapes, by the kernel's name."""


def matches(parts: Sequence[GraphPart]) -> Iterator[tuple[GraphPart, ReplayedGraph, NodeMatch]]:
    """Yield each graph with its match: by its trace, else by all traces."""
    grids = grids_of_shapes(part.eager for part in parts)
    everywhere = Recordings(
        captures=[capture for part in parts for capture in part.captures],
        eager=[part.eager for part in parts],
        grids=grids,
    )
    for part in parts:
        here = Recordings(captures=part.captures, eager=(part.eager,), grids=grids)
        for graph in part.graphs:
            match = match_nodes(graph, here)
            if not match.capture_count or not match.fits_grids:
                other = match_nodes(graph, everywhere)
                is_better = other.fits_grids or not match.capture_count
                match = other if other.capture_count and is_better else match
            yield part, graph, match


def grids_of_shapes(eager: Iterable[Launches]) -> GridsOfShapes:
    """Return the geometries of kernels by the operator and shapes that launched them."""
    grids: dict[tuple[str, str], dict[str, set[Geometry]]] = defaultdict(lambda: defaultdict(set))
    columns = ("operator", "input_dims", "name", "grid", "block")
    for of in eager:
        rows = pd.DataFrame({name: getattr(of, name) for name in columns}, dtype=object)
        for operator, dims, name, grid, block in (
            rows.dropna().drop_duplicates().itertuples(index=False, name=None)
        ):
            grids[operator, dims][name].add((grid, block))
    return {key: dict(of) for key, of in grids.items()}


def match_nodes(graph: ReplayedGraph, recordings: Recordings) -> NodeMatch:
    """Return the operators of a graph's nodes, by the recordings that match it."""
    every = np.arange(len(graph.kind))
    captures = [of for of in recordings.captures if np.array_equal(of.kind, graph.kind)]
    by_names = [of for of in captures if _has_names(of) and _names_agree(of, graph)]
    if by_names:
        return _fitting(graph, [(of, every) for of in by_names], recordings, "names")
    unnamed = [of for of in captures if graph.is_ordered and not _has_names(of)]
    by_order = [of for of in unnamed if _is_consistent(of, graph)]
    if by_order:
        return _fitting(graph, [(of, every) for of in by_order], recordings, "order")
    passes = [of for eager in recordings.eager for of in _passes(eager, graph)]
    if passes:
        return _agreed(graph, passes, "eager")
    by_occurrence = [(of, _occurrences(of, graph)) for of in recordings.captures if _has_names(of)]
    most = max((int((at >= 0).sum()) for _, at in by_occurrence), default=0)
    best = [(of, at) for of, at in by_occurrence if most and (at >= 0).sum() == most]
    return _fitting(graph, best, recordings, "occurrences")


def _has_names(capture: Launches) -> bool:
    is_kernel = capture.kind == int(Kind.KERNEL)
    return bool(is_kernel.any()) and all(name is not None for name in capture.name[is_kernel])


def _names_agree(capture: Launches, graph: ReplayedGraph) -> bool:
    is_kernel = graph.kind == int(Kind.KERNEL)
    return bool((capture.name[is_kernel] == graph.name[is_kernel]).all())


def _is_consistent(capture: Launches, graph: ReplayedGraph) -> bool:
    """Return whether launches that are alike would have run equal kernels, and many are alike."""
    keys = pd.DataFrame(
        {
            "operator": capture.operator,
            "dims": capture.input_dims,
            "number": pd.Series(capture.call).groupby(capture.call).cumcount(),
        },
        dtype=object,
    )
    alike, _ = statistics.group_rows(keys, keys.columns)
    size = np.bincount(alike)
    if (size[alike] > 1).mean() < LEAST_REPEATED:
        return False
    names, distinct = pd.factorize(graph.name)
    pairs, number = np.unique(alike * (len(distinct) + 1) + names + 1, return_counts=True)
    most = np.zeros(len(size), dtype=np.int64)
    np.maximum.at(most, pairs // (len(distinct) + 1), number)
    return bool(most.sum() >= LEAST_CONSISTENT * len(alike))


def _passes(eager: Launches, graph: ReplayedGraph) -> Iterator[Match]:
    """Yield each stretch of eager launches that ran the graph's kernels, grids and blocks."""
    count = len(graph.kind)
    if not graph.is_ordered or count < LEAST_EAGER:
        return
    at = np.arange(len(eager) - count + 1)
    for name in ("kind", "name", "grid", "block"):
        launched, replayed = getattr(eager, name), getattr(graph, name)
        for node in range(count):
            at = at[launched[at + node] == replayed[node]]
            if not len(at):
                return
    for begin in at.tolist():
        yield eager, begin + np.arange(count)


def _occurrences(capture: Launches, graph: ReplayedGraph) -> Ints:
    """Return the launch of each node whose name occurs as often in both, or -1."""
    launches = pd.Series(capture.name)
    nodes = pd.Series(where(graph.kind == int(Kind.KERNEL), graph.name))
    captured, replayed = Counter(launches.dropna()), Counter(nodes.dropna())
    equal = {name for name, number in replayed.items() if captured[name] == number}
    at = np.full(len(nodes), NONE, dtype=np.int64)
    numbered = zip(launches, launches.groupby(launches).cumcount(), strict=True)
    launch_of = {of: index for index, of in enumerate(numbered)}
    for index, of in enumerate(zip(nodes, nodes.groupby(nodes).cumcount(), strict=True)):
        if of[0] in equal:
            at[index] = launch_of[of]
    return at


def _fitting(
    graph: ReplayedGraph, candidates: Sequence[Match], recordings: Recordings, matched_by: MatchedBy
) -> NodeMatch:
    """Return the match of the captures whose shapes fit the grids best; without shapes if none."""
    of_nodes = [_fits(graph, match, recordings.grids) for match in candidates]
    misfits = [fits.count(False) for fits in of_nodes]
    fitting = [
        (match, misfit)
        for match, misfit, fits in zip(candidates, misfits, of_nodes, strict=True)
        if misfit <= (1 - LEAST_CONSISTENT) * (misfit + fits.count(True))
    ]
    least = min((misfit for _, misfit in fitting), default=0)
    best = [match for match, misfit in fitting if misfit == least]
    if best or not candidates:
        return _agreed(graph, best, matched_by)
    match = _agreed(graph, candidates, matched_by)
    nothing: Objects = np.full(len(graph.kind), None, dtype=object)
    return replace(match, input_dims=nothing, flops=np.full(len(nothing), np.nan), fits_grids=False)


def _fits(graph: ReplayedGraph, match: Match, grids: GridsOfShapes) -> list[bool | None]:
    """Return whether the launch of each node fits the node's grid; None: it is not known."""
    capture, at = match
    operators, dims = (_taken(of, at).tolist() for of in (capture.operator, capture.input_dims))
    nodes = zip(graph.name.tolist(), graph.grid.tolist(), graph.block.tolist(), strict=True)
    fits: list[bool | None] = []
    for (name, grid, block), operator, shapes in zip(nodes, operators, dims, strict=True):
        expected = grids.get((operator, shapes), {}).get(name)
        if grid is None or name is None or shapes is None:
            fits.append(None)
        elif expected is not None:
            fits.append((grid, block) in expected)
        else:
            elements = _elements(name, grid, block)
            fits.append(_has_size(shapes, elements) if elements else None)
    return fits


@lru_cache(maxsize=4096)
def _elements(name: str, grid: str, block: str | None) -> range | None:
    """Return the numbers of elements that such a grid covers; None where the name has none."""
    stated = ELEMENTWISE.search(name)
    threads = math.prod(_numbers(block)) if block else 0
    if stated is None or int(stated[1]) != threads:
        return None
    per_block = threads * int(stated[2])
    most = math.prod(_numbers(grid)) * per_block
    return range(most - per_block + 1, most + 1)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,19}", text)]


@lru_cache(maxsize=4096)
def _has_size(shapes: str, elements: range) -> bool:
    """Return whether an operand, or all operands broadcast, have such a number of elements."""
    tensors = list(_tensors(json.loads(shapes)))
    sizes = {math.prod(shape) for shape in tensors}
    with suppress(ValueError):  # raised where they do not broadcast
        sizes.add(math.prod(np.broadcast_shapes(*tensors)))
    return any(size in elements for size in sizes)


def _tensors(shapes: object) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of recorded inputs; inputs may be lists of tensors."""
    if isinstance(shapes, list) and all(isinstance(size, int) for size in shapes):
        yield tuple(shapes)
    elif isinstance(shapes, list):
        for shape in shapes:
            yield from _tensors(shape)


def _taken(texts: Objects, rows: Ints) -> Objects:
    """Return the texts of some rows; None for -1."""
    return np.asarray(np.array([*texts, None], dtype=object)[rows])


def _agreed(graph: ReplayedGraph, candidates: Sequence[Match], matched_by: MatchedBy) -> NodeMatch:
    """Return what all of the matches agree on."""
    count = len(graph.kind)
    if not candidates:
        nothing: Objects = np.full(count, None, dtype=object)
        return NodeMatch(
            operator=nothing,
            module=nothing,
            input_dims=nothing,
            call=np.full(count, NONE),
            call_size=np.zeros(count, dtype=np.int64),
            flops=np.full(count, np.nan),
            owner=np.full(count, NONE),
            matched_by=nothing,
            capture_count=0,
            fits_grids=True,
        )
    (first, at), *others = candidates
    texts = {}
    for name in ("operator", "module", "input_dims"):
        values = _taken(getattr(first, name), at)
        for capture, rows in others:
            values = where(_taken(getattr(capture, name), rows) == values, values)
        texts[name] = values
    flops = np.append(first.flops, np.nan)[at]
    for capture, rows in others:
        flops = np.where(np.append(capture.flops, np.nan)[rows] == flops, flops, np.nan)
    return NodeMatch(
        **texts,
        call=np.append(first.call, NONE)[at],
        call_size=np.append(first.call_size, 0)[at],
        flops=flops,
        owner=np.append(first.owner, NONE)[at],
        matched_by=np.array(
            [matched_by if row >= 0 else None for row in at.tolist()], dtype=object
        ),
        capture_count=len(candidates),
        fits_grids=True,
    )
