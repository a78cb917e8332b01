"""Simulated times of a trace's events."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from stepscope.model.arrays import Ints
from stepscope.model.trace import Trace
from stepscope.replay.points import Point, chain_of_thread
from stepscope.replay.simulation import Simulation


class Span(NamedTuple):
    """Starts and ends of events; arrays of shape (n,), nanoseconds on the trace's clock."""

    start_ns: Ints
    end_ns: Ints


def simulated_device_events(trace: Trace, simulation: Simulation) -> Span:
    """Return the simulated times of each row of `device_events`."""
    return Span(
        *(
            _of_rows(simulation, kind, len(trace.device_events))
            for kind in (Point.DEVICE_START, Point.DEVICE_END)
        )
    )


def simulated_host_events(trace: Trace, simulation: Simulation, frame: pd.DataFrame) -> Span:
    """Return the simulated times of a frame of host events of the trace.

    Between two points of its chain, the host's time is stretched evenly. Threads without points
    follow the chain of the training loop.
    """
    graph = simulation.graph
    chain = np.maximum(chain_of_thread(trace)[frame["thread"].cat.codes.to_numpy()], 0)
    times = [frame[name].to_numpy().copy() for name in ("start_ns", "end_ns")]
    for number in np.unique(chain):
        points = np.flatnonzero(graph.chain == number)
        order = np.lexsort((simulation.time_ns[points], graph.time_ns[points]))
        recorded, simulated = (of[points][order] for of in (graph.time_ns, simulation.time_ns))
        rows = chain == number
        for of_events in times:
            of_events[rows] = _moved(of_events[rows], recorded, simulated)
    return Span(*times)


def _of_rows(simulation: Simulation, kind: Point, count: int) -> Ints:
    graph = simulation.graph
    points = np.flatnonzero(graph.kind == kind)
    times = np.zeros(count, dtype=np.int64)
    times[graph.row[points]] = simulation.time_ns[points]
    return times


def _moved(at_ns: Ints, recorded_ns: Ints, simulated_ns: Ints) -> Ints:
    """Return times moved as the points around them; beyond all points, as the nearest one."""
    if not len(recorded_ns):
        return at_ns
    inside = np.clip(at_ns, recorded_ns[0], recorded_ns[-1])
    moved = np.rint(np.interp(inside, recorded_ns, simulated_ns)).astype(np.int64)
    return moved + at_ns - inside
