"""One side of a comparison: the steps of its traces, each step once for all ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.steps.step_breakdown import whole_parts
from stepscope.comparison.samples import Costs, Sample
from stepscope.model.arrays import Floats, Ints

PARTS_OF_NS = 1000
MOST_SCALED_NS = 10**15
"""Longest step; in thousandths of a nanosecond more would not fit 64 bits."""
MOST_STEPS = 2000
"""Of more steps, neighbours are merged into one sample, to bound the cost of long traces."""
MOST_SAMPLES = 100
"""Of more samples, neighbours are averaged for tests: they resemble each other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class SideSamples:
    """A side's traces as samples: a sample is a step of a span, the mean over its ranks."""

    name: str
    traces: tuple[Sample, ...]
    sample_of: tuple[Ints, ...]
    """For each trace, the sample of each of its steps."""
    ranks: Floats
    """Number of steps of traces in each sample."""
    span: Ints
    """The span of each sample, from 0."""
    step_total: int
    """Number of steps before merging, each once for all ranks."""

    @property
    def step_count(self) -> int:
        """The number of steps; 0 where the traces have none."""
        return self.step_total if all(trace.has_steps for trace in self.traces) else 0

    def durations(self) -> Floats:
        """Return each sample's step time."""
        return self._mean([trace.duration_ns for trace in self.traces])

    def loops(self) -> Floats:
        """Return the duration of the host's loop for each sample."""
        return self._mean([trace.loop_ns for trace in self.traces])

    def parts(self) -> Floats:
        """Return each category's time (rows) in each sample (columns)."""
        columns = [trace.parts_ns for trace in self.traces]
        count = columns[0].shape[1]
        return np.stack([self._mean([part[:, row] for part in columns]) for row in range(count)])

    def whole_parts(self) -> tuple[int, tuple[int, ...]]:
        """Return the mean step and its categories, in whole nanoseconds that sum to it."""
        mean_ns = round(float(self.durations().mean()))
        means = self.parts().mean(axis=1)
        scale = PARTS_OF_NS if mean_ns < MOST_SCALED_NS else 1
        weights = np.rint(means * scale).astype(np.int64)
        return mean_ns, tuple(whole_parts(weights, mean_ns))

    def _mean(self, values: Sequence[Ints]) -> Floats:
        sums = np.zeros(len(self.ranks))
        for samples, of_trace in zip(self.sample_of, values, strict=True):
            np.add.at(sums, samples, of_trace)
        return sums / self.ranks


def side_samples(name: str, traces: Sequence[Sample]) -> SideSamples:
    """Return traces as one side."""
    units: dict[tuple[str, int], int] = {}
    spans: dict[str, int] = {}
    step_of = []
    span_of: list[int] = []
    for trace in traces:
        spans.setdefault(trace.span, len(spans))
        steps = []
        for number in _numbers(trace):
            unit = units.setdefault((trace.span, number), len(units))
            if unit == len(span_of):
                span_of.append(spans[trace.span])
            steps.append(unit)
        step_of.append(np.array(steps, dtype=np.int64))
    step_total = len(span_of)
    merged = np.arange(step_total) // max(1, -(-step_total // MOST_STEPS))
    sample_of = tuple(merged[steps] for steps in step_of)
    return SideSamples(
        name=name,
        traces=tuple(traces),
        sample_of=sample_of,
        ranks=np.bincount(np.concatenate(sample_of)).astype(np.float64),
        span=np.array(span_of, dtype=np.int64)[np.unique(merged, return_index=True)[1]],
        step_total=step_total,
    )


def _numbers(trace: Sample) -> Sequence[int]:
    """Return the step numbers, or indices where numbers repeat."""
    numbers = trace.step_numbers
    return numbers if len(set(numbers)) == len(numbers) else range(len(numbers))


@dataclass(frozen=True, kw_only=True, eq=False)
class CostTable:
    """Costs of a side's operators or device work, by key and sample."""

    keys: pd.DataFrame
    cells: pd.DataFrame
    """Rows of (key, sample, call_count, and times as in `Costs`), ranks not yet averaged."""


def cost_table(side: SideSamples, costs: Sequence[Costs]) -> CostTable:
    """Return the costs of all traces of a side."""
    keys, cells, offset = [], [], 0
    for samples, of_trace in zip(side.sample_of, costs, strict=True):
        keys.append(of_trace.keys)
        cells.append(
            pd.DataFrame(
                {
                    "key": of_trace.key + offset,
                    "sample": samples[of_trace.step] if len(of_trace.step) else of_trace.step,
                    "call_count": of_trace.call_count,
                    "host_ns": of_trace.host_ns,
                    "device_ns": of_trace.device_ns,
                    "host_total_ns": of_trace.host_total_ns,
                    "device_total_ns": of_trace.device_total_ns,
                }
            )
        )
        offset += len(of_trace.keys)
    return CostTable(
        keys=pd.concat(keys, ignore_index=True), cells=pd.concat(cells, ignore_index=True)
    )


def totals(costs: CostTable, group: Ints, count: int) -> dict[str, Floats]:
    """Return each group's sums over all cells."""
    of = group[costs.cells["key"].to_numpy()]
    return {
        name: _sums(of, costs.cells[name].to_numpy(), count)
        for name in ("call_count", "host_ns", "device_ns")
    }


def _sums(of: Ints, values: NDArray[Any], count: int) -> Floats:
    return np.bincount(of, weights=values, minlength=count).astype(np.float64)


def sampled(side: SideSamples, costs: CostTable, group: Ints, figure: str, count: int) -> Floats:
    """Return a figure of each group (rows) in each sample (columns)."""
    values = np.zeros((count, len(side.ranks)))
    at = (group[costs.cells["key"].to_numpy()], costs.cells["sample"].to_numpy())
    np.add.at(values, at, costs.cells[figure].to_numpy())
    return values / side.ranks


def batched(values: Floats) -> Floats:
    """Return figures over at most `MOST_SAMPLES` samples, neighbours averaged."""
    count = values.shape[1]
    if count <= MOST_SAMPLES:
        return values
    borders = np.linspace(0, count, MOST_SAMPLES + 1).astype(np.int64)
    sums = np.add.reduceat(values, borders[:-1], axis=1)
    return np.asarray(sums / np.diff(borders))


def between_spans(side: SideSamples, values: Floats) -> Floats:
    """Return the range of the means of a side's spans, for each figure; 0 for one span."""
    spans = [values[:, side.span == span].mean(axis=1) for span in np.unique(side.span)]
    return np.asarray(np.ptp(np.stack(spans), axis=0))
