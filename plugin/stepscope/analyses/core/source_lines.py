"""The user's own line of Python that led to each of many device events, with `with_stack=True`."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.event_references import users_calls, users_line
from stepscope.analyses.core.links import links
from stepscope.model import call_tree
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace

NONE = -1


def lines_of_device_events(trace: Trace, rows: NDArray[np.int64]) -> pd.Categorical:
    """Return, for rows of `device_events`, the user's innermost function that launched them.

    That is the one around the launching call, or the first of the user's own in the operator's
    `Call stack` where the file holds that as text; missing where neither is known.
    """
    around, functions = _around_launch(trace, rows)
    listed, stacks = _in_call_stack(trace, rows)
    texts = pd.Index([*functions, *stacks], dtype=object)
    place = np.where(listed != NONE, listed + len(functions), around)
    codes, distinct = pd.factorize(texts)
    return pd.Categorical.from_codes(np.append(codes, NONE)[place], categories=distinct)


def _around_launch(trace: Trace, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
    call = links(trace).call_of_device_event[rows]
    functions = users_calls(trace)
    found = np.full(len(rows), NONE, dtype=np.int64)
    known = call != NONE
    launches = trace.runtime_calls.iloc[call[known]]
    found[known] = call_tree.enclosing(spans(functions), spans(launches))
    codes = np.append(functions["name"].cat.codes.to_numpy(), NONE)[found]
    return codes, [str(name) for name in functions["name"].cat.categories]


def _in_call_stack(trace: Trace, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], list[str]]:
    stacks = trace.host_calls["call_stack"].cat
    lines = [users_line(str(stack).split(";")) for stack in stacks.categories]
    place = np.array([at if line else NONE for at, line in enumerate(lines)] + [NONE])
    owner = links(trace).owner_of_device_event[rows]
    return place[np.append(stacks.codes.to_numpy(), NONE)[owner]], lines
