"""What each rank does by itself, beside those that do the same: who holds the others up.

A rank's own work is its step less the time in which it communicates and computes nothing. All ranks
of a job have steps of one length, since they wait for each other; their own work differs. It needs
no match: a rank whose neighbours were not recorded has its own work all the same.
Stages of a pipeline hold different layers, so a rank is compared with those of its stage, where
these are enough to be compared with.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.communication.ranked_run import RankRun, computed_per_run
from stepscope.analyses.communication.robust_zscore import modified_zscores
from stepscope.analyses.communication.run_steps import RunSteps, run_steps
from stepscope.analyses.core import group_statistics as statistics

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
ENOUGH_PEERS = 8
"""With fewer in a stage, all ranks are compared."""
LEAST_SCALE_SHARE = 0.01
"""Of a step: ranks of the same work differ by so much for reasons that nobody looks for."""
STAGES = "PP"


@dataclass(frozen=True, kw_only=True, eq=False)
class ComputeTime:
    """One entry a recording."""

    peers: Ints
    """The group of recordings that it is compared with, from 0."""
    work_ns: Floats
    """Mean step less communication that nothing hides; NaN: no collective is on another rank."""
    excess_ns: Floats
    """Mean over its steps of what is beyond the median of its peers in the same step."""
    score: Floats
    """Modified z-score of that among its peers, of a scale of 1 % of a step at least; NaN: few."""
    is_short: NDArray[np.bool_]
    """Whether it has less than half as many steps as most peers have: cut off, it says less."""


@computed_per_run
def compute_time(run: RankRun) -> ComputeTime:
    """Compare what each rank does by itself with the other ranks'."""
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


def _is_short(run: RankRun, peers: Ints) -> NDArray[np.bool_]:
    counts = pd.Series([part.totals.step_count for part in run.parts], dtype=np.float64)
    return np.asarray(counts < counts.groupby(peers).transform("median") / 2)


def compute_of_steps(steps: RunSteps) -> Floats:
    """Return the own work in each row of `run_steps`; NaN where nothing is on another rank."""
    sent = steps.of("transfer") + steps.of("waiting")
    return np.where(steps.is_matched, steps.duration_ns - sent, np.nan)


@computed_per_run
def step_excess_ns(run: RankRun) -> Floats:
    """Return, for each row of `run_steps`, how much longer its own work is than its peers' then."""
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
    """Return the group of each recording: its span, and its stage if that has enough ranks."""
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
    """Return a rank's place in its pipeline; -1 where there is none."""
    for group in part.groups:
        if group.role == STAGES and group.ranks:
            text = f",{group.ranks.strip('[]')},"
            offset = text.find(f",{rank},")
            if offset >= 0:
                return text.count(",", 0, offset)
    return -1
