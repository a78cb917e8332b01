"""How the owners of memory are called: operator, module, and the user's Python functions."""

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import python_paths
from stepscope.analyses.memory.owners import (
    callers_of_operators,
    modules_around,
    operators_around,
    python_calls_around,
)
from stepscope.model.trace import Trace, computed

NONE = -1
BARE_ALLOCATION = "aten::empty"
"""The operators of these names are torch's malloc: who called them says more."""
USERS_FUNCTION = re.compile(r"^(?!torch/|threading\.py|multiprocessing/|<).*\.py\(\d+\): ")
"""A Python function that is neither torch's nor the interpreter's: what a user can change."""
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
    paths, names = python_paths(trace), [str(text) for text in calls["name"].cat.categories]
    is_users = np.array([*(bool(USERS_FUNCTION.match(name)) for name in names), False])
    nearest = ancestry.nearest(paths.parent, is_users[paths.name])
    node = np.append(paths.node, NONE)[python_calls_around(trace)]
    place, used = pd.factorize(np.append(nearest, NONE)[node])
    above, name = np.append(nearest, NONE)[paths.parent].tolist(), paths.name.tolist()
    texts: list[str | None] = []
    for innermost in used.tolist():
        frames, at = list[str](), innermost
        while at != NONE and len(frames) < MOST_FRAMES:
            frames.append(names[name[at]])
            at = above[at]
        texts.append(";".join(reversed(frames)) or None)
    return _labelled(place, texts)


def _labelled(place: NDArray[np.int64], texts: list[str | None]) -> pd.Categorical:
    """Return texts by their places as a categorical; None is missing, equal texts are one."""
    distinct = sorted({text for text in texts if text is not None})
    code = {text: number for number, text in enumerate(distinct)}
    codes = np.array([NONE if text is None else code[text] for text in texts], dtype=np.int64)
    return pd.Categorical.from_codes(codes[place], categories=pd.Index(distinct, dtype=object))
