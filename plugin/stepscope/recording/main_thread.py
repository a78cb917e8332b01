"""Calls in the main thread after a time, between two instructions of the script."""

import ctypes
import os
import selectors
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType

from stepscope.recording.host_sampler import NUMBER, woken
from stepscope.recording.step_times import is_graph_captured

LATER_SECONDS = 0.2
"""Time after which an import or a capture may have ended."""
PROMPT_SECONDS = 0.05
"""A main thread that executes Python makes a pending call sooner."""


class MainThreadTimer:
    """Schedules a call in the main thread of this process; must stay referenced until then.

    A main thread that waits for another one executes no instruction before a signal comes. While it
    imports a module of torch, which may be needed for the call, or captures a CUDA graph, which
    waiting for the device would break, the call waits.
    """

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._process = os.getpid()
        self._is_due = False
        self._is_called = threading.Event()
        self._timer: threading.Timer | None = None
        self._pending = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._called)

    def start(self, seconds: float) -> None:
        """Schedule the call, instead of an earlier one."""
        self.cancel()
        self._is_called.clear()
        self._is_due = True
        self._timer = threading.Timer(seconds, self._wake)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        """Do not make the call."""
        self._is_due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _called(self, _: object) -> int:
        self._is_called.set()
        if not self._is_due or os.getpid() != self._process:
            return 0
        if _is_importing_torch() or is_graph_captured():
            self.start(LATER_SECONDS)
            return 0
        self._is_due = False
        self._call()
        return 0

    def _wake(self) -> None:
        ctypes.pythonapi.Py_AddPendingCall(self._pending, None)
        if not self._is_called.wait(PROMPT_SECONDS):
            _wake_main_thread()


def is_in_main_thread() -> bool:
    """Return whether this is the main thread, where recording begins and ends."""
    return threading.current_thread() is threading.main_thread()


def _is_importing_torch() -> bool:
    frame: FrameType | None = sys._getframe()  # noqa: SLF001
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if frame.f_code.co_name == "<module>" and str(name).partition(".")[0] == "torch":
            return True
        frame = frame.f_back
    return False


def let_signals_wake() -> None:
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
