"""One side of a comparison: its recordings' steps, each once however many ranks it has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.steps.step_breakdown import whole_parts
from stepscope.comparison.samples import Costs, Sample

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
PARTS_OF_NS = 1000
MOST_SCALED_NS = 10**15
"""More is no step; in parts of a nanosecond it would not fit 64 bits."""
MOST_KEPT = 2000
"""Of more steps, neighbours are one sample, so that a long recording costs no more than that."""
MOST_SAMPLES = 100
"""Of more, neighbours are averaged for tests: they resemble each other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Together:
    """A side's recordings as samples: a sample is a step of a span, the mean over its ranks."""

    name: str
    recordings: tuple[Sample, ...]
    place: tuple[Numbers, ...]
    """For each recording, the sample that each of its steps is part of."""
    ranks: Floats
    """How many steps of recordings each sample is the mean of."""
    span: Numbers
    """The span that each sample is of, from 0."""
    step_total: int
    """Steps, however many ranks each has, and however many were merged into a sample."""

    @property
    def step_count(self) -> int:
        """How many steps there are; 0 where the recordings have none."""
        return self.step_total if all(each.has_steps for each in self.recordings) else 0

    def durations(self) -> Floats:
        """Return each sample's step time."""
        return self._mean([each.duration_ns for each in self.recordings])

    def loops(self) -> Floats:
        """Return how long the host's loop took for each sample."""
        return self._mean([each.loop_ns for each in self.recordings])

    def parts(self) -> Floats:
        """Return each category's time (rows) in each sample (columns)."""
        columns = [each.parts_ns for each in self.recordings]
        count = columns[0].shape[1]
        return np.stack([self._mean([part[:, row] for part in columns]) for row in range(count)])

    def whole_parts(self) -> tuple[int, tuple[int, ...]]:
        """Return the mean step and its categories, in whole nanoseconds that sum to it."""
        mean_ns = round(float(self.durations().mean()))
        means = self.parts().mean(axis=1)
        scale = PARTS_OF_NS if mean_ns < MOST_SCALED_NS else 1
        weights = np.rint(means * scale).astype(np.int64)
        return mean_ns, tuple(whole_parts(weights, mean_ns))

    def _mean(self, values: Sequence[Numbers]) -> Floats:
        sums = np.zeros(len(self.ranks))
        for place, own in zip(self.place, values, strict=True):
            np.add.at(sums, place, own)
        return sums / self.ranks


def together(name: str, recordings: Sequence[Sample]) -> Together:
    """Return recordings as one side."""
    units: dict[tuple[str, int], int] = {}
    spans: dict[str, int] = {}
    place = []
    span_of: list[int] = []
    for each in recordings:
        spans.setdefault(each.span, len(spans))
        own = []
        for number in _numbers(each):
            unit = units.setdefault((each.span, number), len(units))
            if unit == len(span_of):
                span_of.append(spans[each.span])
            own.append(unit)
        place.append(np.array(own, dtype=np.int64))
    step_total = len(span_of)
    merged = np.arange(step_total) // max(1, -(-step_total // MOST_KEPT))
    place = [merged[own] for own in place]
    return Together(
        name=name,
        recordings=tuple(recordings),
        place=tuple(place),
        ranks=np.bincount(np.concatenate(place)).astype(np.float64),
        span=np.array(span_of, dtype=np.int64)[np.unique(merged, return_index=True)[1]],
        step_total=step_total,
    )


def _numbers(recording: Sample) -> Sequence[int]:
    """Return what tells a recording's steps apart: their numbers, or else their places."""
    numbers = recording.step_numbers
    return numbers if len(set(numbers)) == len(numbers) else range(len(numbers))


@dataclass(frozen=True, kw_only=True, eq=False)
class Things:
    """What a side's things cost: `keys` names them; a row a thing, a column a sample."""

    keys: pd.DataFrame
    cells: pd.DataFrame
    """Rows of (key, sample, call_count, and times as in `Costs`), ranks not yet averaged."""


def things(side: Together, costs: Sequence[Costs]) -> Things:
    """Return the things of all recordings of a side."""
    keys, cells, offset = [], [], 0
    for place, each in zip(side.place, costs, strict=True):
        keys.append(each.keys)
        cells.append(
            pd.DataFrame(
                {
                    "key": each.key + offset,
                    "sample": place[each.step] if len(each.step) else each.step,
                    "call_count": each.call_count,
                    "host_ns": each.host_ns,
                    "device_ns": each.device_ns,
                    "host_total_ns": each.host_total_ns,
                    "device_total_ns": each.device_total_ns,
                }
            )
        )
        offset += len(each.keys)
    return Things(
        keys=pd.concat(keys, ignore_index=True), cells=pd.concat(cells, ignore_index=True)
    )


def totals(found: Things, group: Numbers, count: int) -> dict[str, Floats]:
    """Return each group's sums over all cells."""
    of = group[found.cells["key"].to_numpy()]
    return {
        name: _sums(of, found.cells[name].to_numpy(), count)
        for name in ("call_count", "host_ns", "device_ns")
    }


def _sums(of: Numbers, values: NDArray[Any], count: int) -> Floats:
    return np.bincount(of, weights=values, minlength=count).astype(np.float64)


def sampled(side: Together, found: Things, group: Numbers, figure: str, chosen: Numbers) -> Floats:
    """Return a figure of the chosen groups (rows) in each sample (columns)."""
    row_of = np.full(int(max(group.max(initial=-1), chosen.max(initial=-1))) + 1, -1)
    row_of[chosen] = np.arange(len(chosen))
    row = row_of[group[found.cells["key"].to_numpy()]]
    mine = row >= 0
    values = np.zeros((len(chosen), len(side.ranks)))
    at = (row[mine], found.cells["sample"].to_numpy()[mine])
    np.add.at(values, at, found.cells[figure].to_numpy()[mine])
    return values / side.ranks


def batched(values: Floats) -> Floats:
    """Return figures over `MOST_SAMPLES` samples, neighbours averaged, where there are more."""
    count = values.shape[1]
    if count <= MOST_SAMPLES:
        return values
    borders = np.linspace(0, count, MOST_SAMPLES + 1).astype(np.int64)
    sums = np.add.reduceat(values, borders[:-1], axis=1)
    return np.asarray(sums / np.diff(borders))


def between_spans(side: Together, values: Floats) -> Floats:
    """Return how far the means of a side's spans lie apart, for each figure; 0 for one span."""
    spans = [values[:, side.span == each].mean(axis=1) for each in np.unique(side.span)]
    return np.asarray(np.ptp(np.stack(spans), axis=0))
