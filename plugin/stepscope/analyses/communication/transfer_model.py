"""Part of collectives' time that grows with their size, by Hockney's model.

A message takes a latency plus its size over the bandwidth (Hockney 1994, "The communication
challenge for MPP"). Both are estimated from the shortest of the largest and of the smallest
messages of a kind: the others may include waiting for late ranks.
"""

import numpy as np
import pandas as pd

LEAST_RANGE = 2.0
"""Least ratio of the largest to the smallest message, for an estimate of the bandwidth."""


def transfer_share(events: pd.DataFrame) -> float:
    """Return the fraction of the time of `collective_events` rows that is transfer, not latency.

    NaN where message sizes are unknown, or nearly equal in a kind.
    """
    sized = events[events["message_bytes"].notna() & events["duration_ns"].notna()]
    if len(sized) < len(events):
        return float("nan")
    parts = [_transfer_ns(same) for _, same in sized.groupby("kind", sort=False)]
    total_ns = float(sized["duration_ns"].sum())
    if not parts or not total_ns:
        return float("nan")
    return float(np.minimum(1.0, np.sum(parts) / total_ns))  # NaN stays NaN


def _transfer_ns(same: pd.DataFrame) -> float:
    shortest = same.groupby("message_bytes")["duration_ns"].min()
    least, most = float(shortest.index[0]), float(shortest.index[-1])
    if most <= 0 or most < LEAST_RANGE * least:
        return float("nan")
    rise_ns = float(shortest.iloc[-1]) - float(shortest.iloc[0])
    return max(0.0, rise_ns / (most - least)) * float(same["message_bytes"].sum())
