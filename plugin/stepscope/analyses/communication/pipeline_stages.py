"""A pipeline's stages as one of them sees them: how many there are, and in how many parts a batch.

A stage gets each part of the batch (micro-batch) from a neighbour: activations from the one before,
gradients from the one behind. So the parts are as many as what it gets from one of them in a step.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.exposed_collectives import exposed_times
from stepscope.analyses.core.window import window
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

RECEIVE, SEND = "recv", "send"


@dataclass(frozen=True, kw_only=True, eq=False)
class Pipeline:
    """What one stage sees."""

    stage_count: int
    part_count: float
    """Micro-batches a step."""
    waiting: Intervals
    """When it waits for a neighbour and computes nothing."""
    bubble_share: float
    """What of a step is idle in a schedule of `stage_count` and `part_count` at best:
    (p - 1) / (m + p - 1), GPipe (Huang et al. 2019); 1F1B has the same (PipeDream-Flush)."""


@computed
def pipeline(trace: Trace) -> Pipeline | None:
    """Return the pipeline that this process is a stage of; None: it is none that can be told."""
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


def _most_from_one(sources: NDArray[np.int64]) -> float:
    return float(np.bincount(np.unique(sources, return_inverse=True)[1]).max())
