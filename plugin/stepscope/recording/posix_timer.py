"""A timer of Linux whose signal reaches one thread, through libc: Python has only process timers.

`timer_create(2)` with `SIGEV_THREAD_ID`. A timer does not survive a fork, so that no child receives
its signals.
"""

import ctypes
import sys
import threading

MONOTONIC = 1
THREAD_ID = 4
"""`SIGEV_THREAD_ID` of the kernel's headers."""
SECOND_NS = 1_000_000_000


class _Event(ctypes.Structure):
    """`struct sigevent` of 64-bit Linux."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("padding", ctypes.c_char * 44),
    )


class _Times(ctypes.Structure):
    """`struct itimerspec`: the interval, and the time until the first signal."""

    _fields_ = (
        ("interval_s", ctypes.c_long),
        ("interval_ns", ctypes.c_long),
        ("first_s", ctypes.c_long),
        ("first_ns", ctypes.c_long),
    )


class PosixTimer:
    """A timer that sends a signal to the thread that created it, once each time it is set.

    Raises:
        OSError: this system has no such timer.
    """

    def __init__(self, signal_number: int) -> None:
        if not sys.platform.startswith("linux") or ctypes.sizeof(ctypes.c_void_p) != 8:
            message = "timers of one thread require 64-bit Linux"
            raise OSError(message)
        self._libc = _library()
        event = _Event(signal=signal_number, notify=THREAD_ID, thread=threading.get_native_id())
        self._timer = ctypes.c_void_p()
        if self._libc.timer_create(MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)):
            message = "timer_create failed"
            raise OSError(ctypes.get_errno(), message)
        self._times = _Times()
        self._arguments = self._timer, 0, ctypes.byref(self._times), None

    def set(self, after_ns: int) -> None:
        """Send the signal after a time; 0: never."""
        self._times.first_s, self._times.first_ns = divmod(after_ns, SECOND_NS)
        self._libc.timer_settime(*self._arguments)

    def delete(self) -> None:
        """Send no more signals."""
        self.set(0)
        self._libc.timer_delete(self._timer)


def _library() -> ctypes.PyDLL:
    """Return libc, or librt, which has the timers before glibc 2.34.

    Its calls keep the GIL: another thread that took it would hold it for up to 5 ms.
    """
    libc = ctypes.PyDLL(None, use_errno=True)
    return libc if hasattr(libc, "timer_create") else ctypes.PyDLL("librt.so.1", use_errno=True)
