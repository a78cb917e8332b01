"""On a machine without a device the optimizer's update is not the fused one."""

import math
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import OptimizerUpdates, optimizer_updates
from stepscope.analyses.operators.product_shapes import distinct, shape
from stepscope.base.calibration import (
    FUSED_ADAGRAD_LISTS_ON_CPU,
    FUSED_ADAGRAD_ON_CPU,
    FUSED_LONG_ADAGRAD_ON_CPU,
    FUSED_LONG_MOMENTS_ON_CPU,
    FUSED_LONG_MOMENTUM_ON_CPU,
    FUSED_MOMENT_LISTS_ON_CPU,
    FUSED_MOMENTS_ON_CPU,
    FUSED_MOMENTUM_LISTS_ON_CPU,
    FUSED_MOMENTUM_ON_CPU,
    FUSED_SHORT_ADAGRAD_ON_CPU,
    FUSED_SHORT_MOMENTS_ON_CPU,
    FUSED_SHORT_MOMENTUM_ON_CPU,
    either,
)
from stepscope.base.findings import Link
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases, product_evidence

LISTS, SHORT, MEDIUM, LONG, UNKNOWN = range(5)
"""Kinds of updates: of lists of parameters, of parameters by their size, or of an unknown size."""
LONGER_THAN = (4 * 1024, 128 * 1024)
"""Numbers of a parameter up to which it is short, and medium. Of the first, calls are the limit;
beyond the second the temporary results get fresh memory each time."""
KIND_TEXTS = (
    "lists of parameters",
    f"parameters of up to {LONGER_THAN[0]:,} numbers",
    f"parameters of up to {LONGER_THAN[1]:,} numbers",
    "longer parameters",
    "parameters of an unknown size",
)
MOMENTS = (
    FUSED_MOMENT_LISTS_ON_CPU,
    FUSED_SHORT_MOMENTS_ON_CPU,
    FUSED_MOMENTS_ON_CPU,
    FUSED_LONG_MOMENTS_ON_CPU,
)
FACTORS = {
    "Adagrad": (
        FUSED_ADAGRAD_LISTS_ON_CPU,
        FUSED_SHORT_ADAGRAD_ON_CPU,
        FUSED_ADAGRAD_ON_CPU,
        FUSED_LONG_ADAGRAD_ON_CPU,
    ),
    "Adam": MOMENTS,
    "AdamW": MOMENTS,
    "SGD": (
        FUSED_MOMENTUM_LISTS_ON_CPU,
        FUSED_SHORT_MOMENTUM_ON_CPU,
        FUSED_MOMENTUM_ON_CPU,
        FUSED_LONG_MOMENTUM_ON_CPU,
    ),
}
"""Factors of the kinds. torch.optim: these optimizers accept `fused=True` on CPUs."""
PLAIN, MOMENTUM = "SGD", frozenset({"aten::mul_", "aten::_foreach_mul_"})
"""SGD without momentum is one addition per parameter: there is nothing to fuse."""
SPARSE = frozenset({"aten::_indices", "aten::_values", "aten::coalesce", "aten::sparse_mask"})
"""Operators on sparse gradients, which no fused update accepts."""


class Options(Thresholds):
    """Thresholds from which updates take long."""

    least_share: float = option(
        0.02,
        "Fraction of the window that the host spends in the updates.",
        origin="ours: of less than 2 %, the certain saving is not even 1 % of the step",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report each optimizer whose updates take long and could be fused."""
    requirements.no_device(trace)
    updates, span = optimizer_updates(trace), window(trace)
    for name in dict.fromkeys(updates.optimizer.tolist()):
        index = updates.of(name)
        times = intervals.union(updates.begin_ns[index], updates.end_ns[index])
        times = intervals.clip(times, span.start_ns, span.end_ns)
        lost = phrases.fraction_of_window(trace, intervals.duration_ns(times))
        if lost >= options.least_share and _can_be_fused(trace, updates, index):
            yield _finding(trace, name, updates, index, times)


def _can_be_fused(trace: Trace, updates: OptimizerUpdates, index: NDArray[np.int64]) -> bool:
    name = updates.optimizer[index[0]]
    if name not in FACTORS or (updates.is_fused | updates.is_compiled)[index].any():
        return False
    names, operators = trace.host_calls["name"], _operators(trace, updates, index)
    if name_mask(names, SPARSE.__contains__)[operators].any():
        return False
    return name != PLAIN or bool(name_mask(names, MOMENTUM.__contains__)[operators].any())


def _finding(
    trace: Trace,
    name: str,
    updates: OptimizerUpdates,
    index: NDArray[np.int64],
    times: Intervals,
) -> Finding:
    rows = updates.rows[index]
    operators = _operators(trace, updates, index)
    number = round(len(operators) / len(rows))
    lost_ns = intervals.duration_ns(times)
    return Finding(
        message=f"{name}'s updates take {phrases.time_and_fraction(trace, lost_ns)}, in "
        f"{count(number, 'operator')} each; a fused update is one operator.",
        evidence=(
            facts.fraction(
                "Host time in them",
                phrases.fraction_of_window(trace, lost_ns),
                Link(view="operators", search=f"Optimizer.step#{name}"),
            ),
            facts.count("Updates in total", len(rows)),
            facts.count("Operators per update", number),
        ),
        tables=(call_costs.by_name(trace.host_calls, operators, "Operators of the updates"),),
        events=call_costs.longest(trace, rows),
        locations=call_costs.lines(trace, rows),
        claims=tuple(_claims(trace, name, operators, times)),
        fix=_fix(name),
        subject=name,
    )


def _claims(
    trace: Trace, name: str, operators: NDArray[np.int64], times: Intervals
) -> Iterator[Claim]:
    """Claim the updates from the first operator to the last, by the parameters' sizes."""
    start_ns, end_ns = _until_next(trace, operators)
    kinds = _kinds(trace, operators)
    for kind in np.unique(kinds).tolist():
        of_kind = intervals.union(start_ns[kinds == kind], end_ns[kinds == kind])
        factor = either(*FACTORS[name][SHORT:]) if kind == UNKNOWN else FACTORS[name][kind]
        yield Claim(
            intervals.intersection(of_kind, times),
            factor,
            f"From the first operator to the last, updates of {KIND_TEXTS[kind]} are "
            f"{product_evidence.times(factor)} times as fast in one operator.",
        )


def _until_next(
    trace: Trace, operators: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each operator's start, and the start of the next one in its update, or its end."""
    start_ns, end_ns, update = (
        trace.host_calls[column].to_numpy()[operators]
        for column in ("start_ns", "end_ns", "parent")
    )
    has_next = np.append(update[1:] == update[:-1], False)[: len(operators)]
    return start_ns, np.where(has_next, np.append(start_ns[1:], 0), end_ns)


def _kinds(trace: Trace, operators: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the kind of each operator; one on a number is of the next parameter's kind."""
    group, calls = distinct(trace, operators)
    kinds = np.array([_kind(name, dims) for name, dims in calls], dtype=np.float64)[group]
    update = trace.host_calls["parent"].to_numpy()[operators]
    filled = pd.Series(kinds).groupby(update).bfill().to_numpy()
    return np.nan_to_num(filled, nan=UNKNOWN).astype(np.int64)


def _kind(name: str, dims: str) -> float:
    if name.startswith("aten::_foreach_"):
        return LISTS
    sizes = shape(dims, 0)
    return SHORT + bisect_left(LONGER_THAN, math.prod(sizes)) if sizes else math.nan


def _operators(
    trace: Trace, updates: OptimizerUpdates, index: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the operators that the updates called directly, without those of closures."""
    calls = trace.host_calls
    begin = np.full(len(calls) + 1, np.iinfo(np.int64).max)
    begin[updates.rows[index]] = updates.begin_ns[index]
    is_child = calls["start_ns"].to_numpy() >= begin[calls["parent"].to_numpy()]
    return np.flatnonzero(is_child & calls["is_operator"].to_numpy())


def _fix(optimizer: str) -> Fix:
    return Fix(
        "Use the fused update: one operator, which goes through memory once.",
        f"optimizer = torch.optim.{optimizer}(params, fused=True)",
        verify="aten::_fused_* runs inside Optimizer.step, and the fraction of the step falls.",
        caveats=(
            "On a CPU torch 2.4 or newer has it, and uses the loop unless you request it.",
            "Results differ in the last digits.",
        ),
    )


RULE = Rule(
    id="cpu-optimizer-not-fused",
    title="The optimizer's update is not fused on the CPU",
    passed="The optimizer's update on the CPU is fused or short",
    category="optimizer",
    why="Each parameter takes up to a dozen small operators, each of which costs some microseconds "
    "before it begins, and reads and writes the parameter again. A fused update is one operator "
    "for all parameters. By default torch updates them one by one on a CPU.",
    detects="On a machine without a device, the updates of Adam, AdamW, SGD and Adagrad that call "
    "no aten::_fused_* operator. It reports where they are `least_share` of the window or more.",
    silent=(
        "Optimizers without a fused update for CPUs in torch.",
        "SGD without momentum, which is one addition per parameter.",
        "Updates with sparse gradients, which fused ones do not accept.",
        "Updates that torch.compile compiled: compiled code goes through memory once, too.",
        "Forward and backward passes of a closure inside Optimizer.step are not counted.",
    ),
    saving="The part of the updates' time that a fused one saves, as measured for parameters of "
    "their sizes: more where there are many small ones, less where large ones fill the memory's "
    "bandwidth. What comes before the first operator and after the last remains.",
    fix=_fix("AdamW"),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="optimizer",
    after=("optimizer-not-fused",),
    links=("optim.html#algorithms",),
    origin="ours: the traces in sample_logs/optimizer, and each form measured with 2 to 400 "
    "parameters",
    culprit="the optimizer's update",
)
