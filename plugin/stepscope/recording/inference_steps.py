"""Detection of the steps of an inference: calls of a model, where nothing trains or loads batches.

A step begins with an outermost call of a model and ends with the next one, so that it includes the
work between them. Modules without parameters (transforms, losses) are no models, unless there are
no others. Of several models, one is selected like the optimizer of a training.

Calls are steps only

- in one thread: a pool of threads has no loop whose turns follow one another;
- after some calls;
- without the time for which a server waits for requests: such a pause ends a step early. In a
  thread that serves requests, a pause is a gap between two calls in which the thread hardly
  computes. If many gaps are pauses, no steps follow one another, and calls are no steps.
"""

import sys
import threading
import time
import weakref
from types import FrameType
from typing import Any

from stepscope.recording.step_detection import Leader, StepBoundary

LEAST_CALLS = 3
"""Later calls are steps."""
CALLS_OF_OTHER_THREAD = 20
"""As many calls of another thread, without one of the first, make it the thread of the steps: a
server calls its model some times before it serves.
"""
LEAST_PAUSE_NS = 20_000_000
MOST_BUSY = 0.2
"""A gap of `LEAST_PAUSE_NS` is a pause if the thread computes for less than this fraction of it."""
RARE = 4
"""Calls become steps only if fewer than one in this number follows a pause, and other threads make
fewer than this fraction of them.
"""


class CallState(threading.local):
    """State of a thread's calls of models."""

    def __init__(self) -> None:
        self.is_inside = False
        """Whether a model is being called."""
        self.ended_ns = 0
        """When the last outermost call ended; 0 before the first."""
        self.busy_ns = 0
        """Processor time of the thread then."""
        self.key = object()
        """Identifies the thread; the system reuses its numbers."""

    def call_ended(self) -> None:
        """Note the end of an outermost call."""
        self.is_inside = False
        self.ended_ns = time.perf_counter_ns()
        self.busy_ns = time.thread_time_ns()

    def is_after_pause(self) -> bool:
        """Return whether the thread serves requests, and waited for one since its last call."""
        gap_ns = time.perf_counter_ns() - self.ended_ns
        if not self.ended_ns or gap_ns < LEAST_PAUSE_NS:
            return False
        return time.thread_time_ns() - self.busy_ns < MOST_BUSY * gap_ns and _is_serving()


def _is_serving() -> bool:
    """Return whether this thread serves requests: none of them is the script's loop.

    It is not the main thread, or an event loop or a server's loop runs in it.
    """
    if threading.current_thread() is not threading.main_thread():
        return True
    events = sys.modules.get("asyncio.events")
    if events is not None and events._get_running_loop() is not None:  # noqa: SLF001
        return True
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    while frame is not None and frame.f_globals.get("__name__") != "socketserver":
        frame = frame.f_back
    return frame is not None


class InferenceSteps:
    """Receives the outermost calls of models, and returns the step boundaries."""

    def __init__(self) -> None:
        self._leader = Leader()
        self._has_model = False
        self._models: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        self._thread: object = None
        self._turns_of_others = 0
        """Calls in other threads since the last in this one."""
        self._call_count_of_others = 0
        self._call_count = 0
        self._pause_count = 0
        self.is_begun = False
        """Whether calls are steps: there were enough of them."""
        self.are_others = False
        """Whether the last call showed that the steps so far were others."""

    @property
    def has_moved(self) -> bool:
        """Whether another thread takes over once the step being recorded has ended."""
        calls = self._turns_of_others
        return calls >= CALLS_OF_OTHER_THREAD and calls % CALLS_OF_OTHER_THREAD == 0

    def called(
        self, model: Any, thread: object, *, is_after_pause: bool, is_recording: bool = False
    ) -> StepBoundary:
        """Handle an outermost call of a model that begins in a thread.

        Args:
            model: The module that is called.
            thread: Identifies the thread.
            is_after_pause: Whether the thread waited for a request before.
            is_recording: Whether a step is being recorded; only its thread can end that.

        Returns:
            `EVALUATION` if the step before contains a pause; the next begins with this call, too.
        """
        self.are_others = False
        is_turn = self._is_of_thread(thread, is_recording=is_recording) and self.is_model(model)
        leader = self._leader.leader
        is_turn = is_turn and self._leader.count_turn(model)
        self.are_others |= self.is_begun and is_turn and leader not in (None, model)
        if not is_turn or not self._is_step(is_after_pause=is_after_pause):
            return StepBoundary.NONE
        is_interrupted = self.is_begun and is_after_pause
        self.is_begun = True
        return StepBoundary.EVALUATION if is_interrupted else StepBoundary.STEP

    def _is_step(self, *, is_after_pause: bool) -> bool:
        """Count a call of the leader; return whether its calls are steps by now."""
        self._call_count += 1
        self._pause_count += is_after_pause
        is_enough = self._call_count > LEAST_CALLS
        is_loop = max(self._pause_count, self._call_count_of_others) * RARE < self._call_count
        return self.is_begun or (is_enough and is_loop)

    def _is_of_thread(self, thread: object, *, is_recording: bool) -> bool:
        """Return whether a call is of the thread whose calls count."""
        if self._thread is None or self._thread is thread:
            self._thread = thread
            self._turns_of_others = 0
            return True
        self._turns_of_others += 1
        self._call_count_of_others += 1
        if is_recording or self._turns_of_others < CALLS_OF_OTHER_THREAD:
            return False
        self.are_others = self.is_begun
        self.is_begun = False
        self._thread = thread
        self._leader = Leader()
        self._turns_of_others = self._call_count_of_others = 0
        self._call_count = self._pause_count = 0
        return True

    def is_model(self, module: Any) -> bool:
        """Return whether a module can define the step; the first with parameters overrides."""
        has_parameters = self._models.get(module)
        if has_parameters is None:
            has_parameters = next(iter(module.parameters()), None) is not None
            self._models[module] = has_parameters
        if has_parameters and not self._has_model:
            self._has_model = True
            self._leader = Leader()
            self.are_others |= self.is_begun
        return has_parameters or not self._has_model
