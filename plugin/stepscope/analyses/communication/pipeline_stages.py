"""Pipeline parallelism, from one stage's trace: number of stages and of micro-batches.

A stage receives each micro-batch from a neighbour: activations from the stage before, gradients
from the stage after. So their number is that of the receives from one of them per step.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.exposed_communication import exposed_times
from stepscope.analyses.core.window import window
from stepscope.model.arrays import Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

RECEIVE, SEND = "recv", "send"


@dataclass(frozen=True, kw_only=True, eq=False)
class Pipeline:
    """A pipeline, from the trace of one stage."""

    stage_count: int
    part_count: float
    """Micro-batches per step."""
    waiting: Intervals
    """Times of waiting for a neighbour without computing."""
    bubble_share: float
    """Least idle fraction of a step with p stages and m micro-batches: (p - 1) / (m + p - 1), for
    GPipe (Huang et al. 2019) and 1F1B (PipeDream-Flush)."""


@computed
def pipeline(trace: Trace) -> Pipeline | None:
    """Return the pipeline that this process is a stage of; None: no pipeline is recorded."""
    frame = trace.collectives
    kind = frame["kind"].astype(object).to_numpy()
    received = (kind == RECEIVE) & (frame["source_rank"].to_numpy() >= 0)
    sizes = frame["group_size"].to_numpy()[received]
    if not len(sizes) or np.isnan(sizes).all():
        return None
    stages = int(np.nanmax(sizes))
    parts = _most_from_one(frame["source_rank"].to_numpy()[received])
    parts /= max(1, window(trace).step_count)
    if stages < 2 or parts < 1:
        return None
    return Pipeline(
        stage_count=stages,
        part_count=parts,
        waiting=exposed_times(trace, (kind == RECEIVE) | (kind == SEND)),
        bubble_share=(stages - 1) / (parts + stages - 1),
    )


def _most_from_one(sources: Ints) -> float:
    return float(np.bincount(np.unique(sources, return_inverse=True)[1]).max())
