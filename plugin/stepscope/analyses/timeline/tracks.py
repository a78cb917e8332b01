"""The tracks of a trace, their order, and the names of threads, processes and devices."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stepscope.base.formatting import capitalized
from stepscope.dialects import Kind
from stepscope.model.frames.steps import STEP_NAME
from stepscope.model.trace import Trace, computed, whole_number

TrackKind = Literal["group", "steps", "stream", "annotations", "idle", "counter", "thread", "other"]
BACKWARD = re.compile(r"^autograd::engine::|^\w+Backward\d*$")
"""Calls of the backward pass only; torch 1.8 does not record the engine's own calls."""
DEVICES_FIRST, PROCESSES_NEXT = 0, 1
MAIN, BACKWARD_ROLE, ANOTHER, OTHERS = range(4)
LABELS = {MAIN: "Main thread", BACKWARD_ROLE: "Backward thread"}


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A process or device, whose tracks are shown under its name."""

    label: str
    detail: str = ""
    order: tuple[int, int, str] = (0, 0, "")
    """Sort key of owners."""


@dataclass(frozen=True, kw_only=True)
class TrackSubject:
    """Subject of a track without slices of its own: a counter, or idle times."""

    kind: str
    device: int = -1
    part: int = -1
    """Number of the counter, if there are several."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """One track, or the header of a group of tracks."""

    kind: TrackKind
    label: str
    detail: str = ""
    owner: Owner | None = None
    order: tuple[int, int, str] = (0, 0, "")
    """Sort key among the tracks of an owner; of equal ones those with most slices come first."""
    device: int = -1
    """Device of a stream."""
    unit: str = ""
    """Unit of a counter."""
    is_open: bool = True
    subject: TrackSubject | None = None
    id: int = -1
    """Index among the tracks."""
    parent: int | None = None
    row_count: int = 0
    event_count: int | None = None
    """None if its slices are computed on request."""
    busy_ns: int | None = None
    """Time in the window in which any of its slices ran."""


def numbered(tracks: Sequence[Track]) -> tuple[tuple[Track, ...], list[int]]:
    """Return the tracks in display order below their owners, and the number of each given one."""
    shown: list[Track] = []
    numbers = [-1] * len(tracks)
    owner, parent = None, None
    for index in sorted(range(len(tracks)), key=lambda index: _sort_key(tracks[index])):
        track = tracks[index]
        if track.owner != owner and track.owner is not None:
            parent = len(shown)
            header = track.owner
            shown.append(Track(kind="group", label=header.label, detail=header.detail, id=parent))
        owner = track.owner
        numbers[index] = len(shown)
        shown.append(replace(track, id=len(shown), parent=parent if owner else None))
    return tuple(shown), numbers


def _sort_key(track: Track) -> tuple[object, ...]:
    owner = (-1, 0, "") if track.owner is None else track.owner.order
    return owner, track.order, -(track.event_count or 0)


@dataclass(frozen=True, kw_only=True, eq=False)
class ThreadNames:
    """Names of the threads of a trace, by their index in `Source.threads`."""

    names: tuple[str, ...]
    """As `pid/tid`."""
    recorded: Mapping[int, str]
    """Names of threads in the trace."""
    processes: Mapping[str, str]
    """Names of processes in the trace, by their number."""
    main: int
    """The thread with the steps, else the busiest; -1: there is none."""
    backward: frozenset[int]
    rank: int | None
    """Rank of the trace, if recorded."""

    def track(self, thread: int) -> Track:
        """Return the track of a thread's calls."""
        process, number = self.parted(thread)
        role = MAIN if thread == self.main else ANOTHER
        if role != MAIN and thread in self.backward:
            role = BACKWARD_ROLE
        name = capitalized(self.recorded.get(thread, ""))
        label = LABELS.get(role) or name or f"Thread {number}"
        details = [] if label == name or not name else [name]
        details += [number] if number and number not in label + name else []
        return Track(
            kind="thread",
            label=label,
            detail=", ".join(details),
            owner=self.owner(process),
            order=(role, 0, ""),
            is_open=role != ANOTHER,
        )

    def label(self, thread: int) -> str:
        """Return a thread's name with that of its process."""
        process, _ = self.parted(thread)
        return f"{self.owner(process).label}, {self.track(thread).label}"

    def other(self, thread: int) -> Track:
        """Return the track of all other events on a thread."""
        process, number = self.parted(thread)
        return Track(
            kind="other",
            label=self.recorded.get(thread) or number or "Other",
            detail="the profiler's own, and other records",
            owner=self.owner(process),
            order=(OTHERS, 0, ""),
            is_open=False,
        )

    def owner(self, process: str) -> Owner:
        """Return a process as the owner of its threads; the main thread's is the first."""
        is_main = self.main >= 0 and self.parted(self.main)[0] == process
        is_other = not re.fullmatch(r"\d+", process)
        label = f"Process {process}" if not is_other else process or "Process not recorded"
        return Owner(
            label=_of_rank(self.rank, label) if is_main else label,
            detail=self.processes.get(process, ""),
            order=(PROCESSES_NEXT, 0 if is_main else 2 if is_other else 1, process),
        )

    def main_owner(self) -> Owner:
        """Return the main thread's process."""
        return self.owner(self.parted(self.main)[0] if self.main >= 0 else "")

    def parted(self, thread: int) -> tuple[str, str]:
        """Return a thread's process and its number there, as texts."""
        process, _, number = self.names[thread].partition("/")
        return process, number


@computed
def thread_names(trace: Trace) -> ThreadNames:
    """Return the names and roles of the trace's threads."""
    index, names = trace.source.threads
    processes = _metadata(trace, "process_name").items()
    return ThreadNames(
        names=names,
        recorded=_metadata(trace, "thread_name"),
        processes={names[thread].partition("/")[0]: text for thread, text in processes},
        main=_main_thread(trace, index, len(names)),
        backward=frozenset(_threads_calling(trace, index, BACKWARD)),
        rank=trace.rank,
    )


def _metadata(trace: Trace, event_name: str) -> dict[int, str]:
    """Return the texts of metadata events of this name, by thread; the last one counts."""
    column, strings = trace.columns.arguments.get("name"), trace.columns.strings
    if event_name not in strings or column is None or column.texts is None:
        return {}
    is_named = trace.columns.name[column.rows] == strings.index(event_name)
    threads = trace.source.threads[0][column.rows[is_named]].tolist()
    texts = [column.texts[code] for code in column.values[is_named].tolist()]
    return {thread: text for thread, text in zip(threads, texts, strict=True) if text}


def _main_thread(trace: Trace, index: NDArray[np.int32], count: int) -> int:
    stepping = _threads_calling(trace, index, STEP_NAME)
    if stepping:
        return max(stepping, key=lambda thread: stepping[thread])
    calls = (Kind.OPERATOR, Kind.PYTHON_CALL, Kind.RUNTIME_CALL, Kind.ANNOTATION)
    is_host = np.isin(trace.source.kinds, calls)
    return int(np.bincount(index[is_host], minlength=count).argmax()) if is_host.any() else -1


def _threads_calling(
    trace: Trace, index: NDArray[np.int32], pattern: re.Pattern[str]
) -> dict[int, int]:
    """Return the number of operators and annotations of such a name by thread."""
    kinds, names = trace.source.kinds, trace.columns.name
    rows = np.flatnonzero((kinds == int(Kind.ANNOTATION)) | (kinds == int(Kind.OPERATOR)))
    strings = trace.columns.strings
    is_match = np.zeros(len(strings) + 1, dtype=bool)  # the last is of events without a name
    present = np.bincount(names[rows] + 1, minlength=1)[1:]
    for code in np.flatnonzero(present).tolist():
        is_match[code] = bool(pattern.match(strings[code]))
    threads, counts = np.unique(index[rows[is_match[names[rows]]]], return_counts=True)
    return dict(zip(threads.tolist(), counts.tolist(), strict=True))


def _of_rank(rank: int | None, label: str) -> str:
    """Return the label with the rank: each rank has a GPU 0 and a main thread."""
    return label if rank is None else f"Rank {rank}, {label}"


def device_owner(trace: Trace, device: int) -> Owner:
    """Return a device as the owner of its streams."""
    label = f"{trace.dialect.device} {device}" if device >= 0 else trace.dialect.device
    return Owner(
        label=_of_rank(trace.rank, label),
        detail=_device_names(trace).get(device, ""),
        order=(DEVICES_FIRST, device, ""),
    )


def _device_names(trace: Trace) -> dict[int, str]:
    """Return the names of the devices in the trace's header."""
    listed = trace.metadata.get("deviceProperties")
    names: dict[int, str] = {}
    for device in listed if isinstance(listed, list) else ():
        if isinstance(device, Mapping) and isinstance(device.get("name"), str):
            number = whole_number(device.get("id"))
            if number is not None:
                names[number] = device["name"]
    return names
