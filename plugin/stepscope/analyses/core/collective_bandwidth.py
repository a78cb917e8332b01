"""Algorithm and bus bandwidth of collectives, as defined by nccl-tests.

Algorithm bandwidth is the size of the whole array (an all-gather's output, a reduce-scatter's
input) over the duration. Bus bandwidth multiplies it by a factor that makes it comparable with the
link's for any number of ranks
(https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md). Durations include waiting for
other ranks: only the shortest over ranks or calls comes close to the link's bandwidth.
"""

import numpy as np

from stepscope.analyses.core.group_statistics import ratio
from stepscope.model.arrays import Floats, Objects

ROUND_TRIP = frozenset({"all_reduce"})
SHARED = frozenset(
    # gather and scatter as in nccl-tests' src/gather.cu and scatter.cu
    {"all_gather", "reduce_scatter", "all_to_all", "all_to_allv", "gather", "scatter"}
)
DIRECT = frozenset({"broadcast", "reduce", "send", "recv", "send_recv"})


def bus_factor(kind: Objects, group_size: Floats) -> Floats:
    """Return bus over algorithm bandwidth; NaN for other kinds and unknown numbers of ranks."""
    size = np.where(group_size >= 1, group_size, np.nan)
    shared = (size - 1) / size
    is_direct = np.isin(kind, list(DIRECT))
    factor = np.where(np.isin(kind, list(SHARED)), shared, np.where(is_direct, 1.0, np.nan))
    return np.where(np.isin(kind, list(ROUND_TRIP)), 2 * shared, factor)


def bytes_per_second(message_bytes: Floats, duration_ns: Floats) -> Floats:
    """Return size over time; NaN where either is unknown or the time is 0."""
    return ratio(message_bytes * 1e9, duration_ns)
