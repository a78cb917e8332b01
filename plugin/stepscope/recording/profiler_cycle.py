"""A cycle of torch's profiler in a script, from its warm-up to the file."""

import mmap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from stepscope.recording.handler import TraceHandler
from stepscope.recording.record_request import RecordedTrace, RecordRequest
from stepscope.recording.schedules import Schedule
from stepscope.recording.step_times import StepTimes

STEP = "ProfilerStep#"
CUT_STEP = "Cut-off step#"
"""Replaces `STEP` with a text of equal length, so that no reader counts the event as a step."""
DEVICES = {"CUDA": "cuda", "XPU": "xpu", "MTIA": "mtia", "HPU": "hpu"}


def is_profiler_running() -> bool:
    """Return whether another profiler records this thread; torch supports one."""
    return bool(torch._C._autograd._profiler_enabled())  # noqa: SLF001 (the only way to ask)


class Profiled:
    """A running profiler; started at a step boundary, or, without steps, at any time."""

    is_being_made = False
    """Whether the profiler under construction is an instance of this class."""

    def __init__(
        self,
        request: RecordRequest,
        handler: TraceHandler,
        first_step: int | None,
        *,
        is_of_all_threads: bool = False,
    ) -> None:
        self._handler = handler
        self._warmup = request.warmup
        self._active = request.active
        self._first = first_step
        self._step = first_step or 0
        """Number of the current step."""
        self._saved_before = len(handler.saved)
        self._is_saved = True
        self._is_cut = False
        self._is_stopped = False
        is_all = is_of_all_threads or first_step is None
        with _silent(), _marked():
            self._profiler = profile(
                activities=_activities(is_early=first_step is None),
                schedule=_schedule(request, first_step),
                on_trace_ready=self._export,
                record_shapes=request.shapes,
                with_stack=request.stacks,
                profile_memory=request.memory,
                experimental_config=all_threads() if is_all else None,
            )
            self._profiler.start()
            StepTimes.has_profiled = True
            if first_step is not None:
                self._profiler.step_num = first_step - 1
                self._profiler.step()

    @property
    def step_number(self) -> int:
        """Number of the current step; 0 without steps."""
        return self._step

    @property
    def first_active(self) -> int:
        """Number of the first recorded step; 0 without steps."""
        return 0 if self._first is None else self._first + self._warmup

    @property
    def active_steps(self) -> tuple[int, int]:
        """The first and last step to record; 0 without steps."""
        return self.first_active, max(self.first_active + self._active - 1, 0)

    @property
    def step_count(self) -> int:
        """Number of complete recorded steps."""
        return 0 if self._first is None else max(self._step - self.first_active, 0)

    @property
    def is_active(self) -> bool:
        """Whether the profiler is in its active phase."""
        return self._step >= self.first_active

    @property
    def is_over(self) -> bool:
        """Whether the cycle has ended and its file was written."""
        return self._first is not None and self.step_count >= self._active

    @property
    def is_stopped(self) -> bool:
        """Whether the profiler no longer runs."""
        return self._is_stopped

    def step(self) -> None:
        """End the step and begin the next."""
        self._step += 1
        if self._step in (self.first_active, self.first_active + self._active):
            with _silent():
                self._profiler.step()
        else:
            self._profiler.step()

    def stop(self) -> None:
        """Stop recording; without steps, the recorded time waits to be written or dropped."""
        if not self._is_stopped:
            self._is_stopped = True
            self._is_saved = self._first is not None and self._is_saved
            self._is_cut = not self.is_over
            self._leave_unused_device()
            with _silent():
                self._profiler.stop()

    def _leave_unused_device(self) -> None:
        """Keep torch from synchronizing with an unused device, which would initialize it.

        The script could then no longer fork processes that use the device, and would hold a context
        on it.
        """
        for profiler in (self._profiler, getattr(self._profiler, "profiler", None)):
            if not _is_initialized(getattr(profiler, "use_device", None) or ""):
                profiler.use_device = None  # type: ignore[union-attr]

    def written(self) -> RecordedTrace | None:
        """Return the file after recording has ended; None if it could not be saved."""
        if self._first is None:
            self._handler(self._profiler)
        if len(self._handler.saved) == self._saved_before:
            return None
        return RecordedTrace(
            path=str(self._handler.saved[-1]),
            first_step=self.first_active,
            step_count=self.step_count,
            is_whole=self._first is None or not self._is_cut,
        )

    def drop(self) -> None:
        """Stop recording without writing a file."""
        self._is_saved = False
        self.stop()

    def _export(self, profiler: Any) -> None:
        if self._is_saved:
            self._handler(_WithoutLastStep(profiler, self._step) if self._is_cut else profiler)


class _WithoutLastStep:
    """A profiler whose last step was cut off, as passed to its handler; the file marks the step."""

    def __init__(self, profiler: Any, step: int) -> None:
        self._profiler = profiler
        self._number = step

    def __getattr__(self, name: str) -> Any:
        return getattr(self._profiler, name)

    def export_chrome_trace(self, path: str) -> None:
        self._profiler.export_chrome_trace(path)
        if Path(path).stat().st_size:
            rename(Path(path), f'"{STEP}{self._number}"', f'"{CUT_STEP}{self._number}"')


def rename(path: Path, name: str, other: str) -> None:
    """Rename events in a trace in place; both names have the same length."""
    old, new = name.encode(), other.encode()
    if len(old) != len(new):
        message = f"{other} and {name} differ in length"
        raise ValueError(message)
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        at = content.find(old)
        while at >= 0:
            content[at : at + len(old)] = new
            at = content.find(old, at + len(old))


def _schedule(request: RecordRequest, first_step: int | None) -> Schedule | None:
    if first_step is None:
        return None
    return Schedule(
        skip_first=first_step, wait=0, warmup=request.warmup, active=request.active, repeat=1
    )


def all_threads() -> Any:
    """Return torch's option to record the operators of all threads: servers compute in several.

    None: a torch without it (before 2.6) records the thread that starts the profiler.
    """
    with suppress(Exception):
        return torch._C._profiler._ExperimentalConfig(profile_all_threads=True)  # noqa: SLF001
    return None


def _activities(*, is_early: bool) -> list[Any]:
    """Return the activities to record: the host, and the devices that the script uses.

    A device that is not in use is left out, because profiling would initialize it. Only when
    recording begins before the first work is its use unknown.
    """
    return [
        activity
        for activity in torch.profiler.supported_activities()  # type: ignore[no-untyped-call]
        if activity == ProfilerActivity.CPU or is_early or _is_used(activity)
    ]


def _is_used(activity: Any) -> bool:
    return _is_initialized(DEVICES.get(activity.name, ""))


def _is_initialized(name: str) -> bool:
    device = getattr(torch, name, None)
    is_initialized = getattr(device, "is_initialized", None)
    return True if is_initialized is None else bool(is_initialized())


@contextmanager
def _silent() -> Iterator[None]:
    """Suppress the profiler's warnings, which could become errors or output of the script."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _marked() -> Iterator[None]:
    Profiled.is_being_made = True
    try:
        yield
    finally:
        Profiled.is_being_made = False
