"""Recording of some seconds of a script without steps.

It begins at the first `eval()` of a model, at the fourth call of one, or some seconds after the
import of torch, unless an optimizer was created or a batch requested. If the script then goes on,
as many seconds are left out, and others recorded, which replace the first ones: they contain its
start. The trace is written when the script ends, and dropped at the first sign of steps, or when
the process forks: its children may take steps. If calls of a model turn out to be steps
(`inference_steps.py`), it is written only if the script ends before some of them are recorded.
"""

import time
from collections.abc import Callable

from stepscope.recording.handler import TraceHandler
from stepscope.recording.main_thread import (
    LATER_SECONDS,
    MainThreadTimer,
    is_in_main_thread,
    let_signals_wake,
)
from stepscope.recording.profiler_cycle import Profiled, is_profiler_running
from stepscope.recording.record_request import RecordedTrace, RecordRequest
from stepscope.recording.step_times import is_graph_captured

LEAST_SECONDS = 1.0
"""A later recording that is shorter replaces nothing."""
SETTLED_SECONDS = 3.0
"""A script without a step this long after importing torch may have no steps."""


class WholeRun:
    """The only recording of a time, in the main thread of a process."""

    def __init__(self, request: RecordRequest, handler: TraceHandler) -> None:
        self._request = request
        self._handler = handler
        self._profiled: Profiled | None = None
        self._first: tuple[Profiled, int] | None = None
        """The first recording, and its calls of models, once another one follows."""
        self._import_s = time.monotonic()
        self._begin_s = 0.0
        self._is_cut = False
        self._is_suspended = self._is_resumed = False
        self._call_count = 0
        self._is_off = request.steps_from not in ("auto", "none")
        self._timers: list[MainThreadTimer] = []

    @property
    def is_requested(self) -> bool:
        """Whether the request specifies a time instead of steps."""
        return self._request.steps_from == "none"

    @property
    def is_possible(self) -> bool:
        """Whether there was no sign of steps, and no time is requested instead of them."""
        return not self._is_off and not self.is_requested

    @property
    def is_recording(self) -> bool:
        """Whether the profiler was started and nothing has been written yet."""
        return self._profiled is not None

    def await_end_of_start(self, call: Callable[[], None]) -> None:
        """Begin now if requested; otherwise schedule the call for the end of the start."""
        if not self._is_off:
            let_signals_wake()
        if self.is_requested:
            self.begin()
        elif not self._is_off:
            self._later(SETTLED_SECONDS, call)

    def begin(self) -> None:
        """Begin to record, unless already begun, or after a sign of steps."""
        if not is_in_main_thread():
            self._later(0.0, self.begin)
            return
        if self._is_off or self._profiled is not None or is_profiler_running():
            return
        if is_graph_captured():
            self._later(LATER_SECONDS, self.begin)
            return
        self._start()

    def _start(self) -> None:
        self._begin_s = time.monotonic()
        self._call_count = 0
        profiled = Profiled(self._request, self._handler, None)
        self._profiled = profiled

        def ended() -> None:
            profiled.stop()
            if not self.is_requested and not self._is_off and self._first is None:
                self._later(self._request.seconds, self._begin_again)

        self._later(self._request.seconds, ended)

    def _begin_again(self) -> None:
        """Record some later seconds, which replace the first ones."""
        if self._is_off or self._profiled is None or is_profiler_running():
            return
        self._first = self._profiled, self._call_count
        self._start()

    def forget(self) -> None:
        """Drop the recording for good: there is a sign of steps."""
        if not self.is_requested:
            self._is_off = True
            profiled, self._profiled, self._first = self._profiled, None, None
            if profiled is not None and is_in_main_thread():
                profiled.drop()
            elif profiled is not None:  # in another thread, torch would silently fail to stop it
                self._later(0.0, profiled.drop)

    def model_called(self) -> None:
        """Count an outermost call of a model."""
        if self._profiled is not None and not self._profiled.is_stopped:
            self._call_count += 1

    def suspend(self) -> None:
        """Stop recording; the time so far is written only if nothing else is recorded."""
        self._is_off = self._is_suspended = True
        if self._profiled is not None:
            self._is_cut = True
            self._profiled.stop()

    def resume(self) -> None:
        """Record some later seconds: calls of a model are no steps any more."""
        if self._is_suspended:
            self._is_off = self._is_suspended = self._is_cut = False
            self._is_resumed = True
            if self._first is None:
                self._later(0.0, self._begin_again if self._profiled is not None else self.begin)

    def finish(self) -> RecordedTrace | None:
        """Write and return the file; None if there was nothing to record."""
        profiled, self._profiled = self._profiled, None
        self._is_off = True
        if profiled is None:
            return None
        profiled.stop()
        since_s = self._begin_s - self._import_s
        if self._first is not None and self._is_short:
            profiled, self._call_count = self._first
        is_first = self._first[0] is profiled if self._first else not self._is_resumed
        self._handler.whole_run = {"model_calls": self._call_count}
        written = profiled.written()
        if written is not None:
            written.is_whole = not self._is_cut
            written.since_s = 0.0 if is_first else since_s
        return written

    @property
    def _is_short(self) -> bool:
        """Whether the later recording has hardly begun, or has no calls though the first has."""
        has_calls = self._call_count or not (self._first and self._first[1])
        return time.monotonic() - self._begin_s < LEAST_SECONDS or not has_calls

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        """Schedule a call in the main thread."""
        timer = MainThreadTimer(call)
        self._timers.append(timer)  # must stay referenced until it is called
        timer.start(seconds)
