"""When calls ran that had to compile: that itself, what is around it, and the code's first run.

Around it are guards that are checked, dynamo's own work and autograd's call of a compiled backward,
which is compiled when it is first needed. Code that was just compiled runs cold the first time.
"""

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.compile_events import REGION, matching, outermost_named
from stepscope.model import intervals
from stepscope.model.frames.name_masks import named
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace

NONE = -1
AROUND = re.compile(r"^dynamo$|CompiledFunctionBackward$")
"""dynamo's call of a frame; the backward of compiled code, and autograd's call of it."""


def compiling_calls(trace: Trace, rows: NDArray[np.int64], ids: set[str]) -> Intervals:
    """Return when the calls ran that made some compilations, and when their code ran first.

    `rows` are the compilations' rows of `host_calls`, `ids` what is told of them.
    """
    outer = outermost_named(trace, AROUND)[rows]
    around = np.where(outer == NONE, rows, outer)
    return intervals.merged(
        frame_times.times(trace.host_calls, around),
        frame_times.times(trace.host_calls, _first_runs(trace, ids)),
    )


def _first_runs(trace: Trace, ids: set[str]) -> NDArray[np.int64]:
    """Return the rows of the first calls of what was compiled under some ids."""
    regions = np.flatnonzero(named(trace.host_calls["name"], REGION.search))
    called = pd.Series(matching(trace, regions, REGION, "id"))
    return regions[(called.isin(ids) & ~called.duplicated()).to_numpy()]
