"""Recording of some seconds of a script without steps.

It begins at the first `eval()` of a model, at the third call of one, or some seconds after the
import of torch, unless an optimizer was created or a batch requested. The trace is written when the
script ends, and dropped at the first sign of steps, or when the process forks: its children may
take steps. If calls of a model turn out to be steps (`inference_steps.py`), it is written only if
the script ends before some of them are recorded.
"""

import ctypes
import os
import selectors
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from stepscope.recording.handler import TraceHandler
from stepscope.recording.host_sampler import NUMBER, woken
from stepscope.recording.profiler_cycle import Profiled, is_profiler_running
from stepscope.recording.record_request import RecordedTrace, RecordRequest

PROMPT_SECONDS = 0.05
"""A main thread that executes Python makes a pending call sooner."""
SETTLED_SECONDS = 3.0
"""A script without a step this long after importing torch may have no steps."""


class WholeRun:
    """The only recording of a time, in the main thread of a process."""

    def __init__(self, request: RecordRequest, handler: TraceHandler) -> None:
        self._request = request
        self._handler = handler
        self._profiled: Profiled | None = None
        self._is_cut = False
        self._call_count = 0
        self._is_off = request.steps_from not in ("auto", "none")
        self._process = os.getpid()
        self._pending: list[object] = []

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
            _let_signals_wake()
        if self.is_requested:
            self.begin()
        elif not self._is_off:
            self._later(SETTLED_SECONDS, call)

    def begin(self) -> None:
        """Begin to record, unless already begun, or after a sign of steps."""
        if not _is_in_main_thread():
            self._later(0.0, self.begin)
            return
        if self._is_off or self._profiled is not None or is_profiler_running():
            return
        self._profiled = Profiled(self._request, self._handler, None)
        self._later(self._request.seconds, self._profiled.stop)

    def forget(self) -> None:
        """Drop the recording for good: there is a sign of steps."""
        if not self.is_requested:
            self._is_off = True
            profiled, self._profiled = self._profiled, None
            if profiled is not None and _is_in_main_thread():
                profiled.drop()
            elif profiled is not None:  # in another thread, torch would silently fail to stop it
                self._later(0.0, profiled.drop)

    def model_called(self) -> None:
        """Count an outermost call of a model."""
        if self._profiled is not None and not self._profiled.is_stopped:
            self._call_count += 1

    def suspend(self) -> None:
        """Stop recording; the time so far is written only if nothing else is recorded."""
        self._is_off = True
        if self._profiled is not None:
            self._is_cut = True
            self._profiled.stop()

    def finish(self) -> RecordedTrace | None:
        """Write and return the file; None if there was nothing to record."""
        profiled, self._profiled = self._profiled, None
        self._is_off = True
        if profiled is None:
            return None
        profiled.stop()
        self._handler.whole_run = {"model_calls": self._call_count}
        written = profiled.written()
        if written is not None and self._is_cut:
            written.is_whole = False
        return written

    def _later(self, seconds: float, call: Callable[[], None]) -> None:
        """Schedule a call in the main thread, between two instructions, after a time.

        A main thread that waits for another one executes no instruction before a signal comes.
        """
        is_called = threading.Event()

        def called(_: object) -> int:
            is_called.set()
            if os.getpid() == self._process:
                call()
            return 0

        pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(called)
        self._pending.append(pending)  # must stay referenced until it is called

        def due() -> None:
            ctypes.pythonapi.Py_AddPendingCall(pending, None)
            if not is_called.wait(PROMPT_SECONDS):
                _wake_main_thread()

        timer = threading.Timer(seconds, due)
        timer.daemon = True
        timer.start()


def _is_in_main_thread() -> bool:
    """Return whether this is the main thread, where recording begins and ends."""
    return threading.current_thread() is threading.main_thread()


def _let_signals_wake() -> None:
    """Handle the recorder's signal, if nobody does: one that is ignored wakes no thread."""
    with suppress(Exception):  # another thread, or a system without it
        if signal.getsignal(NUMBER) == signal.SIG_DFL:
            signal.signal(NUMBER, woken)


def _wake_main_thread() -> None:
    """Interrupt the main thread where Python waits again afterwards: for a thread or a socket.

    Elsewhere a signal could end what the script waits for (`signal.pause`), or a call in C.
    """
    with suppress(Exception):
        main = threading.main_thread().ident or 0
        file = sys._current_frames()[main].f_code.co_filename  # noqa: SLF001 (the only way to ask)
        if file in (threading.__file__, selectors.__file__) and signal.getsignal(NUMBER) is woken:
            signal.pthread_kill(main, NUMBER)
