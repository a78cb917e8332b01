"""Launch order of work on each stream, and the last work before a time.

A stream runs its work in launch order. A CUDA event therefore stands for all work that was launched
into its stream before it was recorded: a wait for the event waits for the last of that work. HTA
(`critical_path_analysis.py`) reads it the same way.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core.links import links
from stepscope.model.arrays import NONE, Ints
from stepscope.model.call_tree import first_not_before, last_not_after
from stepscope.model.trace import Trace, computed


@dataclass(frozen=True, kw_only=True, eq=False)
class LaunchOrder:
    """Device work with recorded launches, by stream, then in launch order."""

    numbers: dict[tuple[int, int], int]
    """Each device's and stream's number."""
    stream: Ints
    """The number of each piece's stream."""
    launch_ns: Ints
    """When the call that launched it began."""
    rows: Ints
    """Rows of `device_events`."""

    def streams(self, device: Ints, stream: Ints) -> Ints:
        """Return the numbers of these streams, -1 for those without work."""
        pairs = zip(device.tolist(), stream.tolist(), strict=True)
        codes = [self.numbers.get(pair, NONE) for pair in pairs]
        return np.array(codes, dtype=np.int64)

    def last_before(self, stream: Ints, at_ns: Ints) -> Ints:
        """Return the last work put into these streams by then (`device_events` rows), or -1."""
        index = last_not_after((self.stream, self.launch_ns), (stream, at_ns))
        return np.append(self.rows, NONE)[index]

    def first_after(self, stream: Ints, at_ns: Ints) -> Ints:
        """Return the first work put into these streams from then on, or -1."""
        index = first_not_before((self.stream, self.launch_ns), (stream, at_ns))
        return np.append(self.rows, NONE)[index]


def stream_numbers(events: pd.DataFrame) -> tuple[Ints, dict[tuple[int, int], int]]:
    """Return each device event's stream as a number, from 0, and each stream's number."""
    devices, device_values = pd.factorize(events["device"].to_numpy(), sort=True)
    streams, stream_values = pd.factorize(events["stream"].to_numpy(), sort=True)
    number, pairs = pd.factorize(devices * max(1, len(stream_values)) + streams, sort=True)
    names: dict[tuple[int, int], int] = {}
    for index, pair in enumerate(pairs.tolist()):
        device, stream = divmod(pair, len(stream_values))
        names[int(device_values[device]), int(stream_values[stream])] = index
    return number.astype(np.int64), names


@computed
def launch_order(trace: Trace) -> LaunchOrder:
    """Return the order in which each stream was given its work."""
    number, names = stream_numbers(trace.device_events)
    call = links(trace).call_of_device_event
    rows = np.flatnonzero(call >= 0)
    launch_ns = trace.runtime_calls["start_ns"].to_numpy()[call[rows]]
    order = np.argsort(launch_ns, kind="stable")
    order = order[np.argsort(number[rows][order], kind="stable")]
    rows = rows[order]
    return LaunchOrder(numbers=names, stream=number[rows], launch_ns=launch_ns[order], rows=rows)
