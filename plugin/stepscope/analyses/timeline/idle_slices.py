"""A device's idle times as slices, each named after its cause."""

import numpy as np

from stepscope.analyses.idle.ledger import CAUSES, idle_ledger
from stepscope.analyses.timeline.slice_categories import CODES
from stepscope.analyses.timeline.slices import (
    NO_EVENT,
    Slices,
    UnsortedSlices,
    clipped,
    sort_slices,
)
from stepscope.analyses.timeline.timeline import timeline
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import NONE
from stepscope.model.trace import Trace, computed


@computed
def idle_slices(trace: Trace) -> Slices:
    """Return the idle times of every device, on their tracks of the timeline."""
    layout = timeline(trace)
    tracks = {
        track.subject.device: track.id
        for track in layout.tracks
        if track.kind == "idle" and track.subject
    }
    try:
        ledgers = idle_ledger(trace)
    except MissingDataError:
        return sort_slices([])
    first_name = len(layout.names) - len(CAUSES)
    return sort_slices(
        [
            _placed(ledger.times, tracks[device], first_name)
            for device, ledger in ledgers.items()
            if device in tracks
        ]
    )


def _placed(times: dict, track: int, first_name: int) -> UnsortedSlices:  # type: ignore[type-arg]
    pairs = [
        (number, cause, times[cause]) for number, cause in enumerate(CAUSES) if len(times[cause])
    ]
    bounds = np.concatenate(
        [np.zeros((0, 2), dtype=np.int64), *(times_of_cause for _, _, times_of_cause in pairs)]
    )
    lengths = [len(times_of_cause) for _, _, times_of_cause in pairs]
    name = np.repeat(
        np.array([first_name + number for number, _, _ in pairs], dtype=np.int32), lengths
    )
    category = np.repeat(
        np.array([CODES[f"idle-{cause}"] for _, cause, _ in pairs], dtype=np.uint8), lengths
    )
    order = np.argsort(bounds[:, 0], kind="stable")
    start_ns, end_ns = clipped(bounds[order, 0], (bounds[:, 1] - bounds[:, 0])[order])
    return UnsortedSlices(
        track=np.full(len(order), track, dtype=np.int32),
        row=np.zeros(len(order), dtype=np.int32),
        parent=np.full(len(order), NONE, dtype=np.int64),
        event=np.full(len(order), NO_EVENT, dtype=np.uint32),
        start_ns=start_ns,
        end_ns=end_ns,
        name=name[order],
        category=category[order],
    )
