"""How fast collectives were, as nccl-tests reckons it.

Algorithm bandwidth is size over time, where size is that of the whole array: what a rank of an
all-gather gets out, what one of a reduce-scatter puts in. Bus bandwidth multiplies it by a factor
that makes it comparable with the link, whatever the number of ranks
(https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md). A rank that waits for another
has a long collective: only the shortest over all ranks, or over many calls, is near the link's.
"""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.group_statistics import ratio

Floats = NDArray[np.float64]
ROUND_TRIP = frozenset({"all_reduce"})
SHARED = frozenset(
    # gather and scatter as in nccl-tests' src/gather.cu and scatter.cu
    {"all_gather", "reduce_scatter", "all_to_all", "all_to_allv", "gather", "scatter"}
)
DIRECT = frozenset({"broadcast", "reduce", "send", "recv", "send_recv"})


def bus_factor(kind: NDArray[np.object_], group_size: Floats) -> Floats:
    """Return bus over algorithm bandwidth; NaN where kind or number of ranks do not tell."""
    size = np.where(group_size >= 1, group_size, np.nan)
    shared = (size - 1) / size
    is_direct = np.isin(kind, list(DIRECT))
    factor = np.where(np.isin(kind, list(SHARED)), shared, np.where(is_direct, 1.0, np.nan))
    return np.where(np.isin(kind, list(ROUND_TRIP)), 2 * shared, factor)


def bytes_per_second(message_bytes: Floats, duration_ns: Floats) -> Floats:
    """Return size over time; NaN where either is unknown or there was no time."""
    return ratio(message_bytes * 1e9, duration_ns)
