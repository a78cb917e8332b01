"""Validation of stored summaries, which analyses use without further checks."""

from collections.abc import Sized
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.steps.step_breakdown import CATEGORIES
from stepscope.comparison.samples import DEVICE_WORK_KEYS, OPERATOR_KEYS, Costs, Sample
from stepscope.comparison.trends import FIGURES
from stepscope.storage.cache_folder import require
from stepscope.summaries.summary import Summary

Integers = NDArray[np.int32] | NDArray[np.int64]


def require_consistent(summary: Summary) -> None:
    """Check that parallel lists have equal lengths, and that indexes exist.

    Raises:
        DamagedError: A check fails.
    """
    if summary.advice.part is not None:
        _check_rank(summary.advice.part)
    if summary.trend is not None:
        names = {figure.name for figure in FIGURES}
        _require(set(summary.trend.figures) == names, "figures of the trend")
    if summary.sample is not None:
        _check_sample(summary.sample)


def _check_rank(rank: RankSummary) -> None:
    _require(set(rank.totals.parts_ns) == set(CATEGORIES), "categories of the step")
    _parallel("collectives", *_arrays(rank.collectives))
    _inside("keys of collectives", rank.collectives.key, len(rank.collectives.keys))
    _parallel("steps", *_arrays(rank.steps))
    curve = rank.steps.exposed
    _parallel("the curve of exposed communication", curve.at_ns, curve.until_ns)
    is_sorted = bool(np.all(curve.at_ns[1:] > curve.at_ns[:-1]))
    _require(is_sorted, "order of the curve of exposed communication")


def _check_sample(sample: Sample) -> None:
    _parallel("the sample's steps", sample.step_numbers, *_arrays(sample))
    _require(sample.parts_ns.shape[1:] == (len(CATEGORIES),), "categories of the sample's steps")
    for costs, names in ((sample.operators, OPERATOR_KEYS), (sample.device_work, DEVICE_WORK_KEYS)):
        _require(tuple(costs.keys) == names, "columns of the keys of costs")
        _check_costs(costs, len(sample.step_numbers))


def _check_costs(costs: Costs, step_count: int) -> None:
    _parallel("costs", *_arrays(costs))
    _inside("keys of costs", costs.key, len(costs.keys))
    _inside("steps of costs", costs.step, step_count)


def _arrays(instance: object) -> list[Sized]:
    """Return the array fields of a dataclass, which are parallel."""
    values = (getattr(instance, field.name) for field in fields(instance))  # type: ignore[arg-type]
    return [value for value in values if isinstance(value, np.ndarray)]


def _parallel(label: str, *lists: Sized) -> None:
    _require(len({len(values) for values in lists}) == 1, f"lengths of {label}")


def _inside(label: str, indexes: Integers, count: int) -> None:
    exist = not len(indexes) or (int(indexes.min()) >= 0 and int(indexes.max()) < count)
    _require(exist, label)


def _require(condition: bool, label: str) -> None:  # noqa: FBT001 (reads as an assertion)
    require(condition, f"{label}: inconsistent")
