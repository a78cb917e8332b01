"""Operator, module and Python functions in which memory was allocated or freed, and their names.

Memory events carry no operator: each belongs to the innermost call on its thread at its time, from
the call's start up to, not including, its end, as in torch-tb-profiler (`memory_parser.py`).
torch's `key_averages()` instead counts an event for every call at that time, on any thread, ends
included (`profiler_util.MemRecordsAcc.in_interval`).
"""

import re

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.call_paths import python_calls_at, python_nesting, python_paths
from stepscope.analyses.core.links import enclosing_call
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

MODULE_NAME = re.compile(r"^nn\.Module: ")
"""Prefix of modules' calls by torch's Python tracer (`torch/csrc/profiler/collection.cpp`)."""


@computed
def calls_around(trace: Trace) -> Ints:
    """Return, for each row of `memory`, the innermost operator's or annotation's row, or -1."""
    return enclosing_call(trace, trace.memory)


@computed
def operators_around(trace: Trace) -> Ints:
    """Return, for each row of `memory`, the innermost operator's `host_calls` row, or -1."""
    return _nearest_operators(trace, calls_around(trace))


@computed
def callers_of_operators(trace: Trace) -> Ints:
    """Return, for each row of `host_calls`, the calling operator's row, or -1."""
    return _nearest_operators(trace, trace.host_calls["parent"].to_numpy())


@computed
def modules_around(trace: Trace) -> Ints:
    """Return, for each row of `memory`, the innermost `nn.Module` call: a `python_calls` row."""
    is_module = name_mask(trace.python_calls["name"], MODULE_NAME.match)
    parent = python_nesting(trace).parent
    return ancestry.nearest_of(parent, python_calls_around(trace), is_module)


@computed
def python_calls_around(trace: Trace) -> Ints:
    """Return, for each row of `memory`, the innermost Python call's row, or -1."""
    memory = trace.memory
    moments = memory["thread"].cat.codes.to_numpy(), memory["start_ns"].to_numpy()
    return python_calls_at(trace, moments)


def _nearest_operators(trace: Trace, rows: Ints) -> Ints:
    """Return, for rows of `host_calls`, the nearest operator, itself included, or -1."""
    calls = trace.host_calls
    return ancestry.nearest_of(calls["parent"].to_numpy(), rows, calls["is_operator"].to_numpy())


BARE_ALLOCATION = "aten::empty"
"""Prefix of torch's plain allocations, which are shown with their caller."""
USERS_FUNCTION = re.compile(r"^(?!torch/|threading\.py|multiprocessing/|<).*\.py\(\d+\): ")
"""A Python function of neither torch nor the interpreter."""
MOST_FRAMES = 24
"""Innermost functions of a stack that are shown."""


@computed
def operator_names(trace: Trace) -> pd.Categorical:
    """Return, for each row of `memory`, the innermost operator's name.

    `aten::empty` is shown with its caller, `aten::conv2d (aten::empty)`, as in torch-tb-profiler
    (`run.py`).
    """
    calls, owner = trace.host_calls, operators_around(trace)
    codes = np.append(calls["name"].cat.codes.to_numpy().astype(np.int64), NONE)
    names = [str(name) for name in calls["name"].cat.categories]
    is_bare = np.array([*(name.startswith(BARE_ALLOCATION) for name in names), False])
    operator = codes[owner]
    caller = codes[np.append(callers_of_operators(trace), NONE)[owner]]
    key = np.where(is_bare[operator], caller + 1, 0) * (len(names) + 1) + operator + 1
    index, keys = pd.factorize(key)
    texts = [_operator_text(names, *divmod(int(of), len(names) + 1)) for of in keys]
    return _labelled(index, texts)


def _operator_text(names: list[str], caller: int, operator: int) -> str | None:
    """Return the name of an operator and its caller; both are numbered from 1, 0 is none."""
    if operator == 0:
        return None
    return f"{names[caller - 1]} ({names[operator - 1]})" if caller else names[operator - 1]


@computed
def module_names(trace: Trace) -> pd.Categorical:
    """Return, for each row of `memory`, the innermost module: `nn.Module: Linear_0`."""
    names = trace.python_calls["name"].cat
    codes = np.append(names.codes.to_numpy(), NONE)[modules_around(trace)]
    return pd.Categorical.from_codes(codes, categories=names.categories)


@computed
def user_stacks(trace: Trace) -> pd.Categorical:
    """Return, for each row of `memory`, the user's functions around it: `outer;inner`.

    Without recorded Python functions, the operator's `Call stack` of the file.
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
    index, used = pd.factorize(np.append(nearest, NONE)[node])
    above, name = np.append(nearest, NONE)[paths.parent].tolist(), paths.name.tolist()
    texts: list[str | None] = []
    for innermost in used.tolist():
        frames, at = list[str](), innermost
        while at != NONE and len(frames) < MOST_FRAMES:
            frames.append(names[name[at]])
            at = above[at]
        texts.append(";".join(reversed(frames)) or None)
    return _labelled(index, texts)


def _labelled(index: Ints, texts: list[str | None]) -> pd.Categorical:
    """Return texts by index as a categorical; None is missing, equal texts are merged."""
    distinct = sorted({text for text in texts if text is not None})
    code = {text: number for number, text in enumerate(distinct)}
    codes = np.array([NONE if text is None else code[text] for text in texts], dtype=np.int64)
    return pd.Categorical.from_codes(codes[index], categories=pd.Index(distinct, dtype=object))
