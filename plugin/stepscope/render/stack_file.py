"""Call stacks as a file: collapsed, as torch's `export_stacks` writes them, or for speedscope.

A collapsed line is `train.py(7):_step;model.py(3):_forward 12`: outermost function first, then the
call's self time in whole microseconds (`EventList.export_stacks` in `torch/autograd/
profiler_util.py`). torch computes in floats and truncates: of exactly 12 µs it may write 11.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from stepscope.analyses.host.call_stacks import CallStacks, Metric, call_stacks
from stepscope.analyses.host.host_call_tree import host_flame
from stepscope.analyses.operators.grouping import is_shown
from stepscope.model.trace import Trace
from stepscope.render import speedscope
from stepscope.storage.output_files import atomic_output

Form = Literal["collapsed", "speedscope"]
US = 1000
AS_TORCH = str.maketrans(" ;\t\n", "____")
CACHED_STACKS = 4096
"""Calls that follow each other often have the same stack."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The stacks to write, their form and their file."""

    metric: Metric
    form: Form
    path: str


def write(trace: Trace, request: Request) -> None:
    """Write a trace's stacks.

    Raises:
        MissingDataError: the trace holds no stacks.
        OSError: the file cannot be written.
    """
    if request.form == "collapsed":
        texts = collapsed_lines(call_stacks(trace), request.metric)
    else:
        texts = speedscope.parts(host_flame(trace), request.metric, trace.worker)
    with atomic_output(request.path) as sink:
        for text in texts:
            sink.write(text.encode("utf-8", "replace"))


def collapsed_frames(frames: list[str]) -> list[str]:
    """Return the functions of a stack that torch writes, in its order and spelling."""
    return [frame.translate(AS_TORCH) for frame in reversed(frames) if is_shown(frame)]


def collapsed_lines(stacks: CallStacks, metric: Metric) -> Iterator[str]:
    """Yield a line per call; calls of less than a microsecond have none."""

    @lru_cache(CACHED_STACKS)
    def text(stack: int) -> str:
        return ";".join(collapsed_frames(stacks.frames(stack)))

    whole_us = stacks.self_ns(metric) // US
    for row in np.flatnonzero(whole_us > 0).tolist():
        if functions := text(int(stacks.stack[row])):
            yield f"{functions} {whole_us[row]}\n"
