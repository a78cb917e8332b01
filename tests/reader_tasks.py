"""What tests have a reader's process do with a recording; it finds these functions by name."""

import logging
import os
import resource
import signal
import time
from pathlib import Path

import numpy as np

from stepscope.advice import TraceAdvice
from stepscope.model.trace import Trace
from stepscope.readers.tasks import advise
from stepscope.summaries.summary import Summary

log = logging.getLogger(__name__)

ENOUGH_BYTES = 1 << 30
"""Of memory, for a task that crashes with less."""


def slow(trace: Trace) -> TraceAdvice:
    """Take a while."""
    time.sleep(0.1)
    return advise(trace)


def awaiting(trace: Trace, *, path: str) -> TraceAdvice:
    """Wait for a word that it may end."""
    while not Path(path).exists():
        time.sleep(0.01)
    return advise(trace)


def endless(_: Trace) -> Summary:
    """Never come back."""
    time.sleep(10_000)
    raise AssertionError


def greedy(trace: Trace) -> TraceAdvice:
    """Need 600 MB more than reading does."""
    len(np.ones(600_000_000, dtype=np.uint8))
    return advise(trace)


def talkative(trace: Trace) -> TraceAdvice:
    """Print, and say something to the log."""
    os.write(1, b"printed by a library")
    log.warning("said of %s", trace.worker)
    return advise(trace)


def crashing(_: Trace) -> TraceAdvice:
    """End the process as a broken extension would."""
    os.abort()


def killing(_: Trace) -> TraceAdvice:
    """Have the process killed, as a system without memory does."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def crashing_without_memory(trace: Trace) -> TraceAdvice:
    """Dies of a signal where little memory is allowed, as pandas' hash tables do."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_DATA)
    if allowed != resource.RLIM_INFINITY and allowed < ENOUGH_BYTES:
        os.kill(os.getpid(), signal.SIGSEGV)
    return advise(trace)


def failing(_: Trace) -> TraceAdvice:
    """Raise what nobody foresaw."""
    return advise(1 // 0)  # type: ignore[arg-type] # it never gets so far
