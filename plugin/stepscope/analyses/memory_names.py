"""How the owners of memory are called: operator, module, and the user's Python functions."""

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope import call_tree
from stepscope.analyses.memory_owners import (
    callers_of_operators,
    modules_around,
    operators_around,
    python_calls_around,
)
from stepscope.frames.naming import named
from stepscope.trace import Trace, computed

NONE = -1
BARE_ALLOCATION = "aten::empty"
"""The operators of these names are torch's malloc: who called them says more."""
USERS_FUNCTION = re.compile(r"^(?!torch/|threading\.py|multiprocessing/|<).*\.py\(\d+\): ")
"""A Python function that is neither torch's nor the interpreter's: what a user can change."""
MOST_DEPTH = 256
"""Functions nested deeper count as called from nowhere."""
MOST_FRAMES = 24
"""So many innermost functions of a stack are shown."""


@computed
def operator_names(trace: Trace) -> pd.Categorical:
    """Return, for each row of `memory`, the innermost operator, with its caller where it is bare.

    `aten::empty` is shown as `aten::conv2d (aten::empty)`, as in torch-tb-profiler (`run.py`).
    """
    calls, owner = trace.host_calls, operators_around(trace)
    codes = np.append(calls["name"].cat.codes.to_numpy().astype(np.int64), NONE)
    names = [str(name) for name in calls["name"].cat.categories]
    is_bare = np.array([*(name.startswith(BARE_ALLOCATION) for name in names), False])
    own = codes[owner]
    caller = codes[np.append(callers_of_operators(trace), NONE)[owner]]
    key = np.where(is_bare[own], caller + 1, 0) * (len(names) + 1) + own + 1
    place, keys = pd.factorize(key)
    texts = [_operator_text(names, *divmod(int(of), len(names) + 1)) for of in keys]
    return _labelled(place, texts)


def _operator_text(names: list[str], caller: int, own: int) -> str | None:
    """Return the name of an operator and its caller; both are numbered from 1, 0 is none."""
    if own == 0:
        return None
    return f"{names[caller - 1]} ({names[own - 1]})" if caller else names[own - 1]


@computed
def module_names(trace: Trace) -> pd.Categorical:
    """Return, for each row of `memory`, the innermost module: `nn.Module: Linear_0`."""
    names = trace.python_calls["name"].cat
    codes = np.append(names.codes.to_numpy(), NONE)[modules_around(trace)]
    return pd.Categorical.from_codes(codes, categories=names.categories)


@computed
def stacks(trace: Trace) -> pd.Categorical:
    """Return, for each row of `memory`, the user's functions around it: `outer;inner`.

    Where no Python function was recorded, it is the operator's `Call stack` as the file has it.
    """
    calls = trace.python_calls
    if not len(calls):
        written = trace.host_calls["call_stack"].cat
        codes = np.append(written.codes.to_numpy(), NONE)[operators_around(trace)]
        return pd.Categorical.from_codes(codes, categories=written.categories)
    chosen = named(calls["name"], USERS_FUNCTION.match)
    rows = np.flatnonzero(chosen)
    thread = calls["thread"].cat.codes.to_numpy()[rows]
    start_ns, duration_ns = (calls[c].to_numpy()[rows] for c in ("start_ns", "duration_ns"))
    nesting = call_tree.nest(thread, start_ns, duration_ns)
    name = calls["name"].cat.codes.to_numpy()[rows].astype(np.int64)
    path = _paths(nesting, name)
    row_of_call = np.full(len(calls) + 1, NONE, dtype=np.int64)
    row_of_call[rows] = np.arange(len(rows))
    innermost = row_of_call[python_calls_around(trace, chosen)]
    place, used = pd.factorize(np.append(path, NONE)[innermost])
    example = np.zeros(int(path.max()) + 1 if len(path) else 0, dtype=np.int64)
    example[path] = np.arange(len(path))
    names = [str(text) for text in calls["name"].cat.categories]
    parent = nesting.parent
    texts = [_stack_text(int(example[of]), parent, name, names) if of >= 0 else None for of in used]
    return _labelled(place, texts)


def _paths(nesting: call_tree.Nesting, name: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for each call that is the same for calls of one name from one path."""
    depth = np.where(nesting.depth < MOST_DEPTH, nesting.depth, 0)
    parent = np.where(depth > 0, nesting.parent, NONE)
    width = int(name.max()) + 1 if len(name) else 1
    path = np.full(len(name) + 1, NONE, dtype=np.int64)  # the last is no call's
    order = np.argsort(depth, kind="stable")
    count = 0
    for rows in np.split(order, np.flatnonzero(np.diff(depth[order])) + 1):
        codes, distinct = pd.factorize((path[parent[rows]] + 1) * width + name[rows])
        path[rows] = count + codes
        count += len(distinct)
    return path[:-1]


def _stack_text(
    row: int, parent: NDArray[np.int64], name: NDArray[np.int64], names: list[str]
) -> str:
    frames: list[str] = []
    while row != NONE and len(frames) < MOST_FRAMES:
        frames.append(names[name[row]])
        row = int(parent[row])
    return ";".join(reversed(frames))


def _labelled(place: NDArray[np.int64], texts: list[str | None]) -> pd.Categorical:
    """Return texts by their places as a categorical; None is missing, equal texts are one."""
    distinct = sorted({text for text in texts if text is not None})
    code = {text: number for number, text in enumerate(distinct)}
    codes = np.array([NONE if text is None else code[text] for text in texts], dtype=np.int64)
    return pd.Categorical.from_codes(codes[place], categories=pd.Index(distinct, dtype=object))
