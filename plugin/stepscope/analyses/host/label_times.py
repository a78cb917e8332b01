"""Time in the user's labels (`record_function`) outside of torch operators.

A moment belongs to the innermost label around it. Torch's own labels are left out: those of the
loop, of DataLoaders, optimizers, collectives and of compiled code.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.compile_events import BACKWARD, GRAPH, LOOKUP, REGION, TIMED
from stepscope.analyses.core.host_activity import main_thread, main_thread_stacks
from stepscope.analyses.core.window import window
from stepscope.analyses.host.library_detection import without_operators
from stepscope.dialects import ANNOTATION_NAME
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace

BACKEND = re.compile(r"^(?:nccl|rccl|xccl|hccl|gloo|mpi|ucc|c10d|FSDP|torch)(?::|::)|^\[param\|")
TORCHS = (ANNOTATION_NAME, BACKEND, REGION, GRAPH, TIMED, BACKWARD, re.compile(re.escape(LOOKUP)))


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTime:
    """One label's time on the main thread in the window."""

    label: str
    total_ns: int
    without_operators: Intervals

    @property
    def empty_share(self) -> float:
        """Fraction of its time in which no operator runs."""
        return intervals.duration_ns(self.without_operators) / max(1, self.total_ns)


def label_times(trace: Trace, most: int = 10) -> tuple[LabelTime, ...]:
    """Return the user's labels with the most time without operators, in descending order."""
    calls, span = trace.host_calls, window(trace)
    on_main = (calls["thread"] == main_thread(trace)).to_numpy()
    codes = np.where(on_main & ~calls["is_operator"].to_numpy(), calls["name"].cat.codes, NONE)
    names = [str(name) for name in calls["name"].cat.categories]
    is_users = np.array([is_user_label(name) for name in names], dtype=bool)
    start, end, innermost = _without_operators(trace)
    empty_ns = np.bincount(innermost, weights=end - start, minlength=len(names)) * is_users
    labels = []
    for code in np.argsort(-empty_ns, kind="stable")[:most].tolist():
        label_time = intervals.clip(
            frame_times.times(calls, codes == code), span.start_ns, span.end_ns
        )
        empty = intervals.union(start[innermost == code], end[innermost == code])
        if len(empty):
            total_ns = intervals.duration_ns(label_time)
            labels.append(LabelTime(label=names[code], total_ns=total_ns, without_operators=empty))
    return tuple(label for label in labels if is_user_label(label.label))


def is_user_label(name: str) -> bool:
    """Return whether a label is the user's own, not torch's."""
    return not any(pattern.search(name) for pattern in TORCHS)


def _without_operators(
    trace: Trace,
) -> tuple[Ints, Ints, Ints]:
    """Return starts, ends and innermost label of the labelled times without operators."""
    free, places = without_operators(trace), main_thread_stacks(trace)
    owner, stretch, length_ns = places.cut(free[:, 0], free[:, 1])
    start = np.maximum(places.start_ns[stretch], free[owner, 0])
    label = places.annotation[stretch]
    is_labelled = label != NONE
    return start[is_labelled], (start + length_ns)[is_labelled], label[is_labelled]
