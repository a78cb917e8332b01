"""What tests have a reader's process do with a recording; it finds these functions by name."""

import logging
import os
import time

import numpy as np

from stepscope.readers.tasks import advise
from stepscope.report import RunReport
from stepscope.trace import Trace

log = logging.getLogger(__name__)


def slow(trace: Trace) -> RunReport:
    """Take a while."""
    time.sleep(0.1)
    return advise(trace)


def endless(_: Trace) -> RunReport:
    """Never come back."""
    time.sleep(1000)
    raise AssertionError


def greedy(trace: Trace) -> RunReport:
    """Need 600 MB more than reading does."""
    len(np.ones(600_000_000, dtype=np.uint8))
    return advise(trace)


def talkative(trace: Trace) -> RunReport:
    """Print, and say something to the log."""
    os.write(1, b"printed by a library")
    log.warning("said of %s", trace.worker)
    return advise(trace)


def crashing(_: Trace) -> RunReport:
    """End the process as a broken extension would."""
    os.abort()


def failing(_: Trace) -> RunReport:
    """Raise what nobody foresaw."""
    return RunReport(name=str(1 // 0), workers=(), outcomes=())
