"""Handling of SIGTERM during recording: the trace is written before the process ends.

This applies only if SIGTERM would kill the process; a script's own handler stays in place. Python
runs handlers in the main thread between two instructions, so a process waiting in a collective
would no longer end: a separate thread receives the signal at once, and kills the process after a
timeout.
"""

import ctypes
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

REACTION_SECONDS = 5.0
"""Time for the main thread to react to the signal."""
WRITING_SECONDS = 20.0
"""Time for writing after that; launchers send SIGKILL after 30 s."""
_END = b"\0"


class Termination:
    """Handles SIGTERM between `arm` and `disarm`, for one process."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._write = write
        self._pipe: tuple[int, int] | None = None
        self._is_heard = threading.Event()
        self._is_written = threading.Event()

    def arm(self) -> None:
        """Install the handler, unless SIGTERM or signal wake-ups are already handled.

        In Windows nobody receives SIGTERM: it ends a process at once.
        """
        if os.name == "nt":
            return
        is_main = threading.current_thread() is threading.main_thread()
        if self._pipe or not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return
        reading, writing = os.pipe()
        os.set_blocking(writing, False)
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        if before != -1:  # asyncio's: leave it alone
            signal.set_wakeup_fd(before)
            os.close(reading)
            os.close(writing)
            return
        self._pipe = reading, writing
        self._is_heard.clear()
        self._is_written.clear()
        signal.signal(signal.SIGTERM, self._terminated)
        threading.Thread(target=self._watch, args=(reading,), daemon=True).start()

    def disarm(self) -> None:
        """Restore the previous state."""
        if self._pipe is None:
            return
        _, writing = self._pipe
        self._pipe = None
        self._leave_signals(writing)
        os.write(writing, _END)
        os.close(writing)

    def forget(self) -> None:
        """Disable signal handling in a forked child, which lacks the thread."""
        if self._pipe is not None:
            self._leave_signals(self._pipe[1])
            self._pipe = None

    def _leave_signals(self, writing: int) -> None:
        """Restore the signal handlers, except those that the script has set since."""
        if signal.getsignal(signal.SIGTERM) == self._terminated:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        previous = signal.set_wakeup_fd(-1)
        if previous not in (-1, writing):
            signal.set_wakeup_fd(previous)

    def _terminated(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._is_heard.set()
        try:
            self._write()
        finally:
            self._is_written.set()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def _watch(self, reading: int) -> None:
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while (seen := pipe.read(1)) and seen != _END:
                if seen[0] == signal.SIGTERM and not self._is_in_time():
                    # Python's `signal.signal` works only in the main thread, which is blocked.
                    ctypes.CDLL(None).signal(int(signal.SIGTERM), None)
                    os.kill(os.getpid(), signal.SIGTERM)

    def _is_in_time(self) -> bool:
        return self._is_heard.wait(REACTION_SECONDS) and self._is_written.wait(WRITING_SECONDS)
