"""Compute time and other figures of each rank, compared with its peers' in the same steps.

A rank's compute time is its step less exposed communication. All ranks of a job have steps of equal
length, since they wait for each other; their compute times differ. A rank is compared with those of
its pipeline stage (stages hold different layers) where that has `ENOUGH_PEERS` ranks.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run
from stepscope.analyses.communication.run_steps import RunSteps, run_steps
from stepscope.analyses.core import group_statistics as statistics
from stepscope.analyses.core.robust_slope import group_median, modified_zscores
from stepscope.base.findings import Unit
from stepscope.model.arrays import Floats, Ints, Mask

ENOUGH_PEERS = 8
"""With fewer in a stage, all ranks are compared."""
LEAST_SCALE_SHARE = 0.01
"""Usual difference between ranks of the same work, as a fraction of a step."""
STAGES = "PP"


@dataclass(frozen=True, kw_only=True, eq=False)
class ComputeTime:
    """Compute time of each trace; arrays have an entry per trace."""

    peers: Ints
    """Group of traces that it is compared with, from 0."""
    work_ns: Floats
    """Mean step less exposed communication; NaN: no collective matches another rank's."""
    excess_ns: Floats
    """Mean over its steps of the time beyond the median of its peers in the same step."""
    score: Floats
    """Modified z-score of the excess, with a scale of at least 1 % of a step; NaN: few peers."""
    is_short: Mask
    """Whether it has less than half as many steps as its peers' median: cut off."""


@computed_per_run
def compute_time(run: RankRun) -> ComputeTime:
    """Compare the compute times of a run's ranks."""
    steps, count = run_steps(run), len(run.parts)
    excess = statistics.nan_mean(step_excess_ns(run), steps.trace_index, count)
    step = statistics.mean(steps.duration_ns, steps.trace_index, count)
    peers = peer_groups(run)
    score = np.full(count, np.nan)
    for group in range(int(peers.max(initial=-1)) + 1):
        members = peers == group
        score[members] = modified_zscores(
            excess[members], LEAST_SCALE_SHARE * float(np.median(step[members]))
        )
    return ComputeTime(
        peers=peers,
        work_ns=statistics.nan_mean(compute_of_steps(steps), steps.trace_index, count),
        excess_ns=excess,
        score=score,
        is_short=_is_short(run, peers),
    )


def _is_short(run: RankRun, peers: Ints) -> Mask:
    counts = pd.Series([part.totals.step_count for part in run.parts], dtype=np.float64)
    return np.asarray(counts < counts.groupby(peers).transform("median") / 2)


def compute_of_steps(steps: RunSteps) -> Floats:
    """Return the compute time in each row of `run_steps`; NaN for traces without a match."""
    sent = steps.of("transfer") + steps.of("waiting")
    return np.where(steps.is_matched, steps.duration_ns - sent, np.nan)


@computed_per_run
def step_excess_ns(run: RankRun) -> Floats:
    """Return, for each row of `run_steps`, the compute time beyond its peers' median."""
    steps, peers = run_steps(run), peer_groups(run)
    computing = compute_of_steps(steps)
    excess, is_valid = np.full(len(computing), np.nan), ~np.isnan(computing)
    number, distinct = pd.factorize(steps.number[is_valid])
    together, of = pd.factorize(peers[steps.trace_index[is_valid]] * max(1, len(distinct)) + number)
    middle = statistics.quantile(computing[is_valid].astype(np.int64), together, len(of), 0.5)
    excess[is_valid] = computing[is_valid] - middle[together]
    return excess


@computed_per_run
def peer_groups(run: RankRun) -> Ints:
    """Return each trace's peer group: its span, and its stage if that has enough ranks."""
    spans = [part.evidence.span for part in run.parts]
    stages = stages_of(run).tolist()
    sizes = Counter(zip(spans, stages, strict=True))
    sparse = {span for (span, stage), size in sizes.items() if size < ENOUGH_PEERS}
    named = [(span, 0 if span in sparse else at) for span, at in zip(spans, stages, strict=True)]
    number = {name: at for at, name in enumerate(dict.fromkeys(named))}
    return np.array([number[name] for name in named], dtype=np.int64)


def stages_of(run: RankRun) -> Ints:
    """Return the pipeline stage of each trace, from 0; -1: no pipeline, or unknown."""
    stages = [
        _stage(part, of.rank) if of.rank is not None else -1
        for part, of in zip(run.parts, run.ranks, strict=True)
    ]
    return np.array(stages, dtype=np.int64)


def _stage(part: RankSummary, rank: int) -> int:
    for group in part.groups:
        if group.role == STAGES and group.ranks:
            text = f",{group.ranks.strip('[]')},"
            offset = text.find(f",{rank},")
            if offset >= 0:
                return text.count(",", 0, offset)
    return -1


@dataclass(frozen=True, kw_only=True)
class Figure:
    """Label and unit of a figure."""

    label: str
    """As it follows `its` in a sentence."""
    unit: Unit


FIGURES: Mapping[str, Figure] = {
    "own_work": Figure(label="compute time per step", unit="ns"),
    "step": Figure(label="step", unit="ns"),
    "computing": Figure(label="computing per step", unit="ns"),
    "transfer": Figure(label="exposed transfer per step", unit="ns"),
    "waiting": Figure(label="waiting for other ranks per step", unit="ns"),
    "loading": Figure(label="data loading per step", unit="ns"),
    "copies": Figure(label="copying per step", unit="ns"),
    "idle": Figure(label="device's idle time per step", unit="ns"),
    "kernels": Figure(label="number of kernels per step", unit="count"),
    "memory": Figure(label="memory peak", unit="bytes"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class RankFigures:
    """Figures with a row per trace and a column per entry of `FIGURES`."""

    value: Floats
    """NaN: unknown."""
    usual: Floats
    """The median of its peers, in the same steps."""
    score: Floats
    """Modified z-score among the peers; NaN with fewer than three."""
    peer_count: Ints
    """Number of its peers, including itself."""
    is_short: Mask
    """Whether it has less than half as many steps as its peers' median: cut off."""


@computed_per_run
def rank_figures(run: RankRun) -> RankFigures:
    """Return the figures of a run's ranks."""
    steps, peers = run_steps(run), peer_groups(run)
    step_ns = statistics.mean(steps.duration_ns, steps.trace_index, len(run.parts))
    is_whole = _unmatched_ns(run) <= LEAST_SCALE_SHARE * step_ns
    of_steps, of_rank = _of_steps(steps, is_whole[steps.trace_index]), _of_rank(run)
    columns = [
        _means_in_steps(steps, peers, of_steps[name])
        if name in of_steps
        else _with_median(peers, of_rank[name])
        for name in FIGURES
    ]
    value = np.stack([values for values, _ in columns], axis=1)
    usual = np.stack([medians for _, medians in columns], axis=1)
    scale = np.where(
        [figure.unit == "ns" for figure in FIGURES.values()],
        group_median(step_ns, peers)[:, None],
        usual,
    )
    return RankFigures(
        value=value,
        usual=usual,
        score=_scores(value - usual, np.nan_to_num(scale) * LEAST_SCALE_SHARE, peers),
        peer_count=np.bincount(peers)[peers] if len(peers) else peers,
        is_short=compute_time(run).is_short,
    )


def _unmatched_ns(run: RankRun) -> Floats:
    """Return each trace's time per step in unmatched collectives, whose waiting is unknown."""
    matches = run.matches
    is_alone = ~matches.is_matched
    trace_index = matches.trace_index[is_alone]
    total = np.bincount(trace_index, matches.duration_ns[is_alone], minlength=len(run.parts))
    steps = np.array([max(1, part.totals.step_count) for part in run.parts])
    return np.asarray(total / steps, dtype=np.float64)


def _of_steps(steps: RunSteps, is_whole: Mask) -> dict[str, Floats]:
    has_device = ~np.isnan(steps.idle_ns)
    figures = {
        "own_work": compute_of_steps(steps),
        "step": steps.duration_ns,
        "computing": steps.of("computing") + steps.of("overlapped"),
        "transfer": np.where(is_whole, steps.of("transfer"), np.nan),
        "waiting": np.where(is_whole, steps.of("waiting"), np.nan),
        "loading": steps.of("loading"),
        "copies": np.where(has_device, steps.of("copies"), np.nan),
        "idle": steps.idle_ns,
    }
    return {name: np.asarray(values, dtype=np.float64) for name, values in figures.items()}


def _of_rank(run: RankRun) -> dict[str, Floats]:
    totals = [part.totals for part in run.parts]
    return {
        "kernels": np.array([of.kernel_count for of in totals], dtype=np.float64),
        "memory": np.array([of.memory_peak_bytes for of in totals], dtype=np.float64),
    }


def _means_in_steps(steps: RunSteps, peers: Ints, values: Floats) -> tuple[Floats, Floats]:
    """Return each trace's mean over its steps, and the mean of its peers' medians in them."""
    step, _ = pd.factorize(steps.number)
    together = peers[steps.trace_index] * (int(step.max(initial=0)) + 1) + step
    middle = group_median(values, together)
    middle = np.where(np.isnan(values), np.nan, middle)
    count = len(peers)
    return (
        statistics.nan_mean(values, steps.trace_index, count),
        statistics.nan_mean(middle, steps.trace_index, count),
    )


def _with_median(peers: Ints, values: Floats) -> tuple[Floats, Floats]:
    return values, np.where(np.isnan(values), np.nan, group_median(values, peers))


def _scores(apart: Floats, least_scale: Floats, peers: Ints) -> Floats:
    score = np.full(apart.shape, np.nan)
    for group in range(int(peers.max(initial=-1)) + 1):
        members = np.flatnonzero(peers == group)
        for column in range(apart.shape[1]):
            least = float(least_scale[members, column].max(initial=0.0))
            score[members, column] = modified_zscores(apart[members, column], least)
    return score
