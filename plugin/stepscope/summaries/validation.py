"""Whether what was kept of a recording belongs together: analyses rely on it without looking."""

from collections.abc import Sized

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.rank_steps import RankSteps
from stepscope.analyses.communication.rank_summary import RankCollectives, RankSummary
from stepscope.analyses.steps.step_breakdown import CATEGORIES
from stepscope.comparison.samples import DEVICE_WORK_KEYS, OPERATOR_KEYS, Costs, Sample
from stepscope.comparison.trends import FIGURES
from stepscope.summaries.codec import DamagedError
from stepscope.summaries.summary import Summary

Whole = NDArray[np.int32] | NDArray[np.int64]


def require_consistent(summary: Summary) -> None:
    """Go on only where lists that belong together are of one length, and places are there.

    Raises:
        DamagedError: they are not.
    """
    if summary.advice.part is not None:
        _part(summary.advice.part)
    if summary.trend is not None:
        names = {each.name for each in FIGURES}
        _require(set(summary.trend.figures) == names, "figures of the trend")
    if summary.sample is not None:
        _sample(summary.sample)


def _part(part: RankSummary) -> None:
    _require(set(part.totals.parts_ns) == set(CATEGORIES), "categories of the step")
    _collectives(part.collectives)
    _steps(part.steps)


def _collectives(of: RankCollectives) -> None:
    _parallel(
        "collectives",
        of.key,
        of.sequence,
        of.start_ns,
        of.duration_ns,
        of.message_bytes,
        of.step,
        of.hidden_ns,
        of.event,
    )
    _within("keys of collectives", of.key, len(of.keys))


def _steps(of: RankSteps) -> None:
    _parallel(
        "steps",
        of.number,
        of.start_ns,
        of.duration_ns,
        of.computing_ns,
        of.overlapped_ns,
        of.exposed_ns,
        of.copies_ns,
        of.loading_ns,
        of.idle_ns,
    )
    at_ns = of.exposed.at_ns
    _parallel("the curve of what was exposed", at_ns, of.exposed.until_ns)
    _require(bool(np.all(at_ns[1:] > at_ns[:-1])), "order of the curve of what was exposed")


def _sample(of: Sample) -> None:
    _parallel("the sample's steps", of.step_numbers, of.duration_ns, of.loop_ns, of.parts_ns)
    _require(of.parts_ns.shape[1:] == (len(CATEGORIES),), "categories of the sample's steps")
    for costs, names in ((of.operators, OPERATOR_KEYS), (of.device_work, DEVICE_WORK_KEYS)):
        _require(tuple(costs.keys) == names, "columns of the keys of costs")
        _costs(costs, len(of.step_numbers))


def _costs(of: Costs, step_count: int) -> None:
    _parallel(
        "costs",
        of.key,
        of.step,
        of.call_count,
        of.host_ns,
        of.device_ns,
        of.host_total_ns,
        of.device_total_ns,
    )
    _within("keys of costs", of.key, len(of.keys))
    _within("steps of costs", of.step, step_count)


def _parallel(what: str, *lists: Sized) -> None:
    _require(len({len(each) for each in lists}) == 1, f"lengths of {what}")


def _within(what: str, places: Whole, count: int) -> None:
    is_within = not len(places) or (int(places.min()) >= 0 and int(places.max()) < count)
    _require(is_within, what)


def _require(condition: bool, what: str) -> None:  # noqa: FBT001 (reads as an assertion)
    if not condition:
        msg = f"{what}: they do not belong together"
        raise DamagedError(msg)
