"""Stacks as text, one line a call: what torch's `export_stacks` writes, for flame graph tools.

`train.py(7):_step;model.py(3):_forward 12`: outermost function first, then whole microseconds of
the call's own time, as `EventList.export_stacks` (`torch/autograd/profiler_util.py`) has it.
torch reckons in floats and cuts them: of exactly 12 µs it may write 11.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from stepscope.analyses.host.call_stacks import CallStacks, Metric
from stepscope.analyses.operators.operator_stacks import is_shown

US = 1000
AS_TORCH = str.maketrans(" ;\t\n", "____")
KEPT_TEXTS = 4096
"""Calls that follow each other often have the same stack."""


def written(frames: list[str]) -> list[str]:
    """Return the functions of a stack that torch writes, outermost first, as it writes them."""
    return [frame.translate(AS_TORCH) for frame in reversed(frames) if is_shown(frame)]


def lines(stacks: CallStacks, metric: Metric) -> Iterator[str]:
    """Yield the lines of a file; calls of less than a microsecond have none."""

    @lru_cache(KEPT_TEXTS)
    def text(stack: int) -> str:
        return ";".join(written(stacks.frames(stack)))

    whole_us = stacks.self_ns(metric) // US
    for row in np.flatnonzero(whole_us > 0).tolist():
        if functions := text(int(stacks.stack[row])):
            yield f"{functions} {whole_us[row]}\n"
