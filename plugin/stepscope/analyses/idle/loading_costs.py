"""What the calls for the next batch spend their time in: the user's functions, and operators."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import event_references
from stepscope.analyses.core.group_statistics import sums
from stepscope.model import call_tree
from stepscope.model.frames.spans import spans
from stepscope.model.trace import Trace


@dataclass(frozen=True, kw_only=True)
class LoadingCost:
    """A function or an operator, in all calls for a batch together."""

    name: str
    """As the profiler wrote it: `data.py(8): __getitem__`, `aten::stack`."""
    time_ns: int
    """With what it calls, within the calls for a batch."""
    is_function: bool
    """The user's own Python function; else an operator, whoever called it."""


def loading_costs(trace: Trace, rows: NDArray[np.int64], most: int = 10) -> tuple[LoadingCost, ...]:
    """Return what cost most within some calls (`host_calls` rows, none within another).

    Functions count with what they call, operators where they stand directly in the call.
    """
    calls = trace.host_calls
    loading = spans(calls.iloc[rows])
    frames = event_references.users_calls(trace)
    in_loading = call_tree.enclosing(loading, spans(frames)) >= 0
    found = _costs(frames[in_loading], is_function=True)
    is_loading = np.zeros(len(calls) + 1, dtype=bool)  # the last is of row -1
    is_loading[rows] = True
    directly = is_loading[calls["parent"].to_numpy()] & calls["is_operator"].to_numpy()
    found += _costs(calls[directly], is_function=False)
    whole_ns = int((loading[2] - loading[1]).sum())
    costs = [
        LoadingCost(name=name, time_ns=min(time_ns, whole_ns), is_function=is_function)
        for name, time_ns, is_function in found
    ]
    return tuple(sorted(costs, key=lambda cost: (-cost.time_ns, cost.name))[:most])


def _costs(calls: pd.DataFrame, *, is_function: bool) -> list[tuple[str, int, bool]]:
    names = calls["name"].cat
    known = names.codes.to_numpy() >= 0
    lasting_ns = (calls["end_ns"] - calls["start_ns"]).to_numpy()[known]
    total_ns = sums(lasting_ns, names.codes.to_numpy()[known], len(names.categories))
    spent = np.flatnonzero(total_ns).tolist()
    return [(str(names.categories[code]), int(total_ns[code]), is_function) for code in spent]
