"""Loops in Python that call the same part of a model for one sample after the other.

A loop repeats the same layers (linear, convolution) on inputs of the same shapes, with a batch of
one that the loop made (`x[i]`, `unsqueeze`, a new tensor); or on inputs of sizes that go up and
down (graphs, sentences). Layers that follow each other repeat as well: there an iteration's last
layer has the shape of the next one's first input. In training the trace also counts how many
weights there are, by the gradients that are accumulated.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.operators.product_shapes import distinct, shape
from stepscope.analyses.operators.python_operators import PythonOperators, python_operators
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

LAYER = re.compile(r"^aten::(?:linear|conv[123]d|conv_transpose[123]d)$")
LINEAR = "aten::linear"
MAKES_SAMPLE = re.compile(
    r"^aten::(?:select|slice|narrow|unsqueeze|lift_fresh|index|stack|view|reshape|to)$"
)
"""Operators that take one sample out of a batch or give it a dimension, or make it a tensor."""
TOKENS = re.compile(r"^aten::(?:embedding|\w*(?:lstm|gru|rnn)\w*)$")
"""Operators of sequences, whose next input may be the last output."""
JOINS = re.compile(r"^aten::(?:cat|concat)$")
ADDS = re.compile(r"^aten::add_?$")
READ = "aten::item"
ACCUMULATES = "torch::autograd::AccumulateGrad"
LONGEST = 128
"""Layers of one iteration."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SampleLoops:
    """Loops in the window; all arrays are parallel."""

    first: Ints
    """First layer of the loop (row of `host_calls`)."""
    second: Ints
    """First layer of the second iteration."""
    last: Ints
    """Last layer of the last iteration."""
    repeats: Ints
    layers: Ints
    """Layers of one iteration."""
    has_varying_sizes: Mask
    reads_results: Mask
    """Whether Python reads a value in each iteration: the next input may depend on it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class _Layers:
    """Layers that Python called, in order; all arrays are parallel."""

    operators: PythonOperators
    index: Ints
    """Index of each layer among `operators.rows`."""
    segment: Ints
    """Number that changes with the step, at a backward pass and at an optimizer's update."""
    exact: Ints
    """Code of name and all shapes."""
    weight: Ints
    """Code of name and the weight's shape."""
    dims: list[tuple[str, str]]
    """Name and shapes (JSON) of each group of equal layers."""
    group: Ints
    has_gradient: Mask
    """Whether each layer is recorded for a backward pass."""
    samples_before: Ints
    """Number of operators in front of each layer that make a sample."""
    joins_before: Ints
    """The same of operators that join tensors."""
    tokens_before: Ints
    sums_after_layers: Ints
    """Number of sums in front of each layer that follow two layers at once."""


class _Loop(NamedTuple):
    """A loop by index among the layers: `begin` to `until`, `length` layers an iteration."""

    begin: int
    until: int
    length: int
    has_varying_sizes: bool


def sample_loops(trace: Trace, least_repeats: int) -> SampleLoops:
    """Return disjoint loops of at least `least_repeats` iterations (2 or more)."""
    layers = _layers(trace)
    is_reused = _is_reused(trace, layers)
    loops: list[_Loop] = []
    is_taken = np.zeros(len(layers.index), dtype=bool)
    for length in range(1, min(LONGEST, len(layers.index) // 2) + 1):
        for code, is_varying in ((layers.exact, False), (layers.weight, True)):
            for begin, until in _repeated(layers, code, length, least_repeats):
                loop = _Loop(begin, until, length, is_varying)
                if is_taken[begin:until].any() or not is_reused[begin:until].all():
                    continue
                if _is_over_samples(layers, loop):
                    is_taken[begin:until] = True
                    loops.append(loop)
    return _loops(trace, layers, sorted(loops))


def _layers(trace: Trace) -> _Layers:
    calls, operators = trace.host_calls, python_operators(trace)
    rows = operators.rows
    index = np.flatnonzero(name_mask(calls["name"], LAYER.match)[rows])
    group, dims = distinct(trace, rows[index])
    weights = pd.factorize(np.array([f"{name} {shape(text, 1)}" for name, text in dims]))[0]
    nodes = forward_backward(trace).node != NONE
    updates = name_mask(calls["name"], lambda name: name.startswith("Optimizer.step"))
    breaks = calls["start_ns"].to_numpy()[np.flatnonzero(nodes | updates)]
    start = calls["start_ns"].to_numpy()[rows[index]]
    before = np.searchsorted(np.sort(breaks), start)
    has_name = {
        pattern: np.append(0, np.cumsum(name_mask(calls["name"], pattern.match)[rows]))
        for pattern in (MAKES_SAMPLE, JOINS, TOKENS)
    }
    is_layer = name_mask(calls["name"], LAYER.match)[rows]
    is_sum = name_mask(calls["name"], ADDS.match)[rows]
    is_sum[2:] &= is_layer[:-2] & is_layer[1:-1]
    segment = pd.factorize(before * (len(trace.steps) + 2) + operators.step[index])[0]
    return _Layers(
        operators=operators,
        index=index,
        segment=segment.astype(np.int64),
        exact=group,
        weight=weights.astype(np.int64)[group] if len(dims) else group,
        dims=dims,
        group=group,
        has_gradient=calls["sequence_number"].to_numpy()[rows[index]] >= 0,
        samples_before=has_name[MAKES_SAMPLE][index],
        joins_before=has_name[JOINS][index],
        tokens_before=has_name[TOKENS][index],
        sums_after_layers=np.append(0, np.cumsum(is_sum))[index],
    )


def _is_reused(trace: Trace, layers: _Layers) -> Mask:
    """Return which layers share their weight with others, as far as gradients show it.

    Of a layer in a forward pass with gradients, fewer weights of its shape get gradients in the
    step than there are layers. Without gradients nothing is known: then it may be shared.
    """
    calls = trace.host_calls
    rows = np.flatnonzero(name_mask(calls["name"], ACCUMULATES.__eq__))
    group, accumulated = distinct(trace, rows)
    weights = [shape(text, 0) for _, text in accumulated]
    counts: dict[tuple[int, ...], int] = {}
    for number, total in zip(*np.unique(group, return_counts=True), strict=True):
        counts[weights[number]] = counts.get(weights[number], 0) + int(total)
    has_gradient = layers.has_gradient & (len(rows) > 0)
    used = np.bincount(layers.weight[has_gradient], minlength=layers.weight.max(initial=-1) + 1)
    shapes = [shape(text, 1) for _, text in layers.dims]
    gradients = np.array([counts.get(sizes, 0) for sizes in shapes], dtype=np.int64)
    in_step = gradients[layers.group] if shapes else layers.group
    is_shared = (in_step > 0) & (used[layers.weight] >= 2 * in_step)
    return np.asarray(~has_gradient | is_shared)


def _repeated(
    layers: _Layers, code: Ints, length: int, least_repeats: int
) -> list[tuple[int, int]]:
    """Return the bounds of stretches of one segment in which `length` layers repeat."""
    same = (code[length:] == code[:-length]) & (layers.segment[length:] == layers.segment[:-length])
    edges = np.flatnonzero(np.diff(np.concatenate(([False], same, [False])).astype(np.int8)))
    begin, until = edges[0::2], edges[1::2] + length
    until = begin + (until - begin) // length * length
    is_long = until - begin >= length * least_repeats
    return list(zip(begin[is_long].tolist(), until[is_long].tolist(), strict=True))


def _is_over_samples(layers: _Layers, loop: _Loop) -> bool:
    firsts = np.arange(loop.begin, loop.until, loop.length)
    calls = [layers.dims[layers.group[number]] for number in firsts.tolist()]
    if loop.has_varying_sizes:
        change = np.diff(np.array([(shape(dims, 0) or (0,))[0] for _, dims in calls]))
        return bool(layers.has_gradient[loop.begin] and (change > 0).any() and (change < 0).any())
    if not all(_is_one_sample(*call) for call in calls):
        return False
    later = firsts[1:]
    makes_samples = layers.samples_before[later] > layers.samples_before[later - 1]
    is_chain = _is_chain(layers, loop.begin, loop.begin + loop.length - 1)
    return bool(makes_samples.all()) and not is_chain and not _is_sequence(layers, loop)


def _is_one_sample(name: str, dims: str) -> bool:
    """Return whether a layer's input is one sample, with or without a batch dimension."""
    taken = shape(dims, 0)
    rank = 1 if name == LINEAR else len(shape(dims, 1)) - 1
    return bool(taken) and (taken[0] == 1 or len(taken) == rank)


def _is_chain(layers: _Layers, first: int, last: int) -> bool:
    """Return whether the last layer's output may be the first one's input: so layers follow."""
    first_name, first_dims = layers.dims[layers.group[first]]
    last_name, last_dims = layers.dims[layers.group[last]]
    last_weight, weight = shape(last_dims, 1), shape(first_dims, 1)
    if not last_weight or len(weight) < 2:
        return True
    gives = last_weight[1 if "transpose" in last_name else 0]
    takes = weight[0 if "transpose" in first_name else 1]
    return gives == takes and (last_name == LINEAR) == (first_name == LINEAR)


def _is_sequence(layers: _Layers, loop: _Loop) -> bool:
    """Return whether an iteration looks like a time step, whose input may be the last output."""
    begin, second = loop.begin, loop.begin + loop.length
    has_tokens = layers.tokens_before[second] > layers.tokens_before[begin]
    joins = layers.joins_before[second] > layers.joins_before[second - 1]
    adds = layers.sums_after_layers[second] > layers.sums_after_layers[begin]
    return bool(has_tokens or joins or adds)


def _loops(trace: Trace, layers: _Layers, loops: list[_Loop]) -> SampleLoops:
    table = np.array(loops, dtype=np.int64).reshape(-1, 4)
    begin, until, length, is_varying = table.T
    rows = layers.operators.rows[layers.index]
    read = np.cumsum(name_mask(trace.host_calls["name"], READ.__eq__))
    reads: Ints = read[rows[until - 1]] - read[rows[begin]]
    repeats = (until - begin) // np.maximum(1, length)
    return SampleLoops(
        first=rows[begin],
        second=rows[begin + length],
        last=rows[until - 1],
        repeats=repeats,
        layers=length,
        has_varying_sizes=is_varying > 0,
        reads_results=reads >= repeats - 1,
    )
