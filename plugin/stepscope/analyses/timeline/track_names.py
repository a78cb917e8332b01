"""What threads, processes and devices are called on the timeline."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.timeline.tracks import Owner, Track
from stepscope.dialects import Kind
from stepscope.model.frames.steps import STEP_NAME
from stepscope.model.trace import Trace, computed, whole_number

BACKWARD = re.compile(r"^autograd::engine::|^\w+Backward\d*$")
"""What only the backward pass calls; torch 1.8 does not record the engine's own calls."""
DEVICES_FIRST, PROCESSES_NEXT = 0, 1
MAIN, BACKWARD_ROLE, ANOTHER, OTHERS = range(4)
LABELS = {MAIN: "Main thread", BACKWARD_ROLE: "Backward thread"}


@dataclass(frozen=True, kw_only=True, eq=False)
class ThreadNames:
    """Names of the threads of a recording, by the number that `Source.threads` gives them."""

    names: tuple[str, ...]
    """As `pid/tid`."""
    told: Mapping[int, str]
    """What the trace calls them."""
    processes: Mapping[str, str]
    """What the trace calls processes, by their number."""
    main: int
    """The thread that steps are on, else the busiest; -1: there is none."""
    backward: frozenset[int]
    rank: int | None
    """Whose recording it is, where that was recorded."""

    def track(self, thread: int) -> Track:
        """Return the track of a thread's calls."""
        process, number = self.parted(thread)
        role = self._role(thread)
        told = self.told.get(thread, "")
        told = told[:1].upper() + told[1:]
        label = LABELS.get(role) or told or f"Thread {number}"
        details = [] if label == told or not told else [told]
        details += [number] if number and number not in label + told else []
        return Track(
            kind="thread",
            label=label,
            detail=", ".join(details),
            owner=self.owner(process),
            order=(role, 0, ""),
            is_open=role != ANOTHER,
        )

    def other(self, thread: int) -> Track:
        """Return the track of what else is said to be on a thread."""
        process, number = self.parted(thread)
        return Track(
            kind="other",
            label=self.told.get(thread) or number or "Other",
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
        """Return a thread's process and its number in that, as texts."""
        process, _, number = self.names[thread].partition("/")
        return process, number

    def _role(self, thread: int) -> int:
        if thread == self.main:
            return MAIN
        return BACKWARD_ROLE if thread in self.backward else ANOTHER


@computed
def thread_names(trace: Trace) -> ThreadNames:
    """Find out what the trace's threads are called, and what for they are."""
    index, names = trace.source.threads
    told = _Told(trace)
    return ThreadNames(
        names=names,
        told=told.by_thread("thread_name"),
        processes={
            names[thread].partition("/")[0]: text
            for thread, text in told.by_thread("process_name").items()
        },
        main=_main_thread(trace, index, len(names)),
        backward=frozenset(_of_names(trace, index, BACKWARD)),
        rank=trace.rank,
    )


@dataclass(frozen=True)
class _Told:
    """What metadata events say."""

    trace: Trace

    @cached_property
    def _named(self) -> tuple[NDArray[np.int64], list[str]]:
        column = self.trace.columns.arguments.get("name")
        if column is None or column.texts is None:
            return np.zeros(0, dtype=np.int64), []
        return column.rows.astype(np.int64), [column.texts[code] for code in column.values.tolist()]

    def by_thread(self, name: str) -> dict[int, str]:
        """Return what events of this name say, by thread; the last one counts."""
        strings = self.trace.columns.strings
        if name not in strings:
            return {}
        code = strings.index(name)
        rows, texts = self._named
        index = self.trace.source.threads[0]
        is_named = self.trace.columns.name[rows] == code
        pairs = zip(index[rows].tolist(), texts, is_named.tolist(), strict=True)
        return {thread: text for thread, text, is_wanted in pairs if is_wanted and text}


def _main_thread(trace: Trace, index: NDArray[np.int32], count: int) -> int:
    stepping = _of_names(trace, index, STEP_NAME)
    if stepping:
        return max(stepping, key=lambda thread: stepping[thread])
    kinds = trace.source.kinds
    host = (kinds == int(Kind.OPERATOR)) | (kinds == int(Kind.PYTHON_CALL))
    host |= (kinds == int(Kind.RUNTIME_CALL)) | (kinds == int(Kind.ANNOTATION))
    counts = np.bincount(index[host], minlength=count)
    return int(counts.argmax()) if host.any() else -1


def _of_names(trace: Trace, index: NDArray[np.int32], pattern: re.Pattern[str]) -> dict[int, int]:
    """Return how many operators and annotations of such a name are on each thread that has any."""
    kinds, names = trace.source.kinds, trace.columns.name
    rows = np.flatnonzero((kinds == int(Kind.ANNOTATION)) | (kinds == int(Kind.OPERATOR)))
    strings = trace.columns.strings
    is_wanted = np.zeros(len(strings) + 1, dtype=bool)  # the last is of events without a name
    present = np.bincount(names[rows] + 1, minlength=1)[1:]
    for code in np.flatnonzero(present).tolist():
        is_wanted[code] = bool(pattern.match(strings[code]))
    threads = index[rows[is_wanted[names[rows]]]]
    counts = np.bincount(threads) if len(threads) else np.zeros(0, dtype=np.int64)
    return {int(thread): int(counts[thread]) for thread in np.flatnonzero(counts)}


def _of_rank(rank: int | None, label: str) -> str:
    """Say whose it is: each rank has a GPU 0 and a main thread."""
    return label if rank is None else f"Rank {rank}, {label}"


def device_owner(trace: Trace, device: int) -> Owner:
    """Return a device as the owner of its streams."""
    label = f"{trace.dialect.device} {device}" if device >= 0 else trace.dialect.device
    return Owner(
        label=_of_rank(trace.rank, label),
        detail=device_names(trace).get(device, ""),
        order=(DEVICES_FIRST, device, ""),
    )


def device_names(trace: Trace) -> dict[int, str]:
    """Return what the trace calls its devices."""
    listed = trace.metadata.get("deviceProperties")
    found: dict[int, str] = {}
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, Mapping) and isinstance(each.get("name"), str):
            number = whole_number(each.get("id"))
            if number is not None:
                found[number] = each["name"]
    return found
