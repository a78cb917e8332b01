"""Compute time of each rank, compared with its peers: the ranks that delay the others.

A rank's compute time is its step less exposed communication. All ranks of a job have steps of equal
length, since they wait for each other; their compute times differ. A rank is compared with those of
its pipeline stage (stages hold different layers) where that has `ENOUGH_PEERS` ranks.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run
from stepscope.analyses.communication.robust_zscore import modified_zscores
from stepscope.analyses.communication.run_steps import RunSteps, run_steps
from stepscope.analyses.core import group_statistics as statistics
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
    stages = [
        _stage(part, of.rank) if of.rank is not None else -1
        for part, of in zip(run.parts, run.ranks, strict=True)
    ]
    sizes = Counter(zip(spans, stages, strict=True))
    sparse = {span for (span, stage), size in sizes.items() if size < ENOUGH_PEERS}
    named = [(span, 0 if span in sparse else at) for span, at in zip(spans, stages, strict=True)]
    number = {name: at for at, name in enumerate(dict.fromkeys(named))}
    return np.array([number[name] for name in named], dtype=np.int64)


def _stage(part: RankSummary, rank: int) -> int:
    for group in part.groups:
        if group.role == STAGES and group.ranks:
            text = f",{group.ranks.strip('[]')},"
            offset = text.find(f",{rank},")
            if offset >= 0:
                return text.count(",", 0, offset)
    return -1
