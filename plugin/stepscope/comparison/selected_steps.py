"""Comparison of selected steps instead of all steps of the traces."""

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np

from stepscope.base.errors import UsageError
from stepscope.base.formatting import number_ranges
from stepscope.base.step_range import StepRange
from stepscope.comparison.samples import Costs, Sample
from stepscope.model.arrays import Ints

NOTE = (
    "Advice, causes of idle time and figures of devices are of whole traces, and are left out for"
    " selected steps."
)


def select_steps(traces: Sequence[Sample], steps: StepRange | None) -> list[Sample]:
    """Return the traces with only these steps, without traces that have none of them.

    Raises:
        UsageError: No trace has one of the steps.
    """
    if steps is None:
        return list(traces)
    selected = [_of_steps(trace, steps) for trace in traces if trace.has_steps]
    if parts := [trace for trace in selected if len(trace.step_numbers)]:
        return parts
    numbers = [number for trace in traces if trace.has_steps for number in trace.step_numbers]
    existing = (
        f"the complete steps are {number_ranges(numbers)}" if numbers else "no step is marked"
    )
    noun = "is no" if steps.first == steps.last else "are no"
    msg = f"there {noun} {steps}: {existing}"
    raise UsageError(msg)


def step_label(name: str, steps: StepRange | None) -> str:
    """Return the name of a side with its selected steps."""
    return name if steps is None else f"{name}, {steps}"


def _of_steps(trace: Sample, steps: StepRange) -> Sample:
    numbers = np.array(trace.step_numbers, dtype=np.int64)
    rows = np.flatnonzero((steps.first <= numbers) & (numbers <= steps.last))
    return replace(
        trace,
        step_numbers=tuple(numbers[rows].tolist()),
        duration_ns=trace.duration_ns[rows],
        loop_ns=trace.loop_ns[rows],
        parts_ns=trace.parts_ns[rows],
        operators=_costs_of(trace.operators, rows),
        device_work=_costs_of(trace.device_work, rows),
    )


def _costs_of(costs: Costs, rows: Ints) -> Costs:
    """Return the costs in some steps, without operators and kernels that have none there."""
    cells = np.flatnonzero(np.isin(costs.step, rows))
    keys, key = np.unique(costs.key[cells], return_inverse=True)
    figures = {
        field.name: getattr(costs, field.name)[cells]
        for field in fields(costs)
        if field.name not in {"keys", "key", "step"}
    }
    return Costs(
        keys=costs.keys.iloc[keys].reset_index(drop=True),
        key=key,
        step=np.searchsorted(rows, costs.step[cells]),
        **figures,
    )
