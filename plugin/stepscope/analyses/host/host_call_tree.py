"""Tree of all host calls: Python functions, operators, annotations, runtime calls.

Calls nest by time on each thread, as in torch's own tree (`EventList._populate_cpu_children`). The
profiler's `Python parent id` agrees where it is present, but lacks callers that started before the
trace.

An annotation starts inside the Python frame that opens it and outlives that frame: it is the child
of the call that contains it completely, and the parent of the calls in it.
"""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.group_statistics import sums_where
from stepscope.analyses.core.links import links
from stepscope.model import call_tree
from stepscope.model.arrays import Ints, Mask
from stepscope.model.frames.steps import without_number
from stepscope.model.trace import Trace, computed

ADDRESS = re.compile(r" (?:object )?at 0x[0-9a-fA-F]+")
"""Address of the object of a built-in method, different each time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class HostTree:
    """Rows are those of `python_calls`, then of `host_calls`, then of `runtime_calls`."""

    host_offset: int
    """Row of the first host call."""
    runtime_offset: int
    """Row of the first runtime call."""
    name: Ints
    """Index into `names`."""
    names: tuple[str, ...]
    """Distinct names, without addresses of objects, and with one name for all steps."""
    thread: NDArray[np.integer]
    start_ns: Ints
    duration_ns: Ints
    nesting: call_tree.Nesting
    until_ns: Ints
    """End of the call, or the start of a call that crosses it. Annotations cross the functions that
    open and close them."""
    self_ns: Ints
    """Time in which this was the latest started of the running calls; sums to the thread's time."""
    device_ns: Ints
    """Of kernels, copies and memory sets that the call launched directly."""
    is_operator: Mask
    """Operators and runtime calls; not Python functions and annotations."""

    def __len__(self) -> int:
        """Return the number of calls."""
        return len(self.name)


@computed
def host_tree(trace: Trace) -> HostTree:
    """Return every host event in one tree."""
    frames = trace.python_calls, trace.host_calls, trace.runtime_calls
    thread = np.concatenate([frame["thread"].cat.codes.to_numpy() for frame in frames])
    start_ns, duration_ns = (
        np.concatenate([frame[column].to_numpy() for frame in frames])
        for column in ("start_ns", "duration_ns")
    )
    name, names = _names([frame["name"] for frame in frames])
    nesting = call_tree.nest(thread, start_ns, duration_ns)
    until_ns = call_tree.until_ns(nesting, thread, start_ns, duration_ns)
    host_offset = len(frames[0])
    runtime_offset = host_offset + len(frames[1])
    return HostTree(
        host_offset=host_offset,
        runtime_offset=runtime_offset,
        name=name,
        names=names,
        thread=thread,
        start_ns=start_ns,
        duration_ns=duration_ns,
        nesting=nesting,
        until_ns=until_ns,
        self_ns=call_tree.self_ns(nesting.parent, until_ns - start_ns),
        device_ns=_device_ns(trace, host_offset, runtime_offset, len(name)),
        is_operator=np.concatenate(
            [
                np.zeros(host_offset, dtype=bool),
                trace.host_calls["is_operator"].to_numpy(),
                np.ones(len(name) - runtime_offset, dtype=bool),
            ]
        ),
    )


def shown_name(name: str) -> str:
    """Return a call's name without the parts that differ from call to call."""
    return without_number(ADDRESS.sub("", name))


def _names(columns: "list[pd.Series]") -> tuple[Ints, tuple[str, ...]]:
    index: dict[str, int] = {}
    codes = []
    for column in columns:
        texts = [shown_name(str(text)) for text in column.cat.categories]
        translated = [index.setdefault(text, len(index)) for text in (*texts, "")]
        # The last is of events without a name, whose code is -1.
        codes.append(np.array(translated, dtype=np.int64)[column.cat.codes.to_numpy()])
    return np.concatenate(codes), tuple(index)


def _device_ns(trace: Trace, host_offset: int, runtime_offset: int, count: int) -> Ints:
    """Return the device time that each row launched directly, by `core.links`."""
    linked = links(trace)
    call, owner = linked.call_of_device_event, linked.owner_of_device_event
    row = np.where(call >= 0, call + runtime_offset, np.where(owner >= 0, owner + host_offset, -1))
    return sums_where(trace.device_events["duration_ns"].to_numpy(), row, count)
