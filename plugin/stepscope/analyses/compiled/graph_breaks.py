"""Graph breaks of compiled code: calls of a region from another region.

Between the two regions Python runs: code outside the graph, and the next region's guards. Stacks
give the source lines: dynamo names the rest of a frame `torch_dynamo_resume_in_forward_at_13`.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.compile_events import LOOKUP, compile_events
from stepscope.analyses.core.window import window
from stepscope.base.findings import SourceLine
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

RESUMED = re.compile(
    r"^(?P<path>.+?)\(\d{1,9}\): torch_dynamo_resume_in_(?P<function>.+)_at_(?P<line>\d{1,9})$"
)
OWN = re.compile(
    # recorded by dynamo and its backends around a graph
    r"^(?:CompiledFunction|## Call CompiledFxGraph|Pregraph bytecode|AOTDispatcher|TorchDynamo"
    r"|Torch-Compiled Region)|dynamo_timed|^dynamo"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class GraphBreaks:
    """Breaks in the window; the arrays are parallel, rows are of `host_calls`."""

    left: Ints
    """The region that was left."""
    entered: Ints
    """The region that was called from it."""
    start_ns: Ints
    """End of the last call of the region before the break: the start of Python."""
    between: tuple[str, ...]
    """Operators that ran between graphs, the most frequent first."""
    lines: tuple[SourceLine, ...]
    """Source lines of the breaks; empty without stacks."""

    def times(self, trace: Trace) -> Intervals:
        """Return the times of Python between two regions."""
        entered_ns = trace.host_calls["start_ns"].to_numpy()[self.entered]
        return intervals.union(self.start_ns, entered_ns)


@computed
def graph_breaks(trace: Trace) -> GraphBreaks:
    """Return every break of a compiled frame's graph."""
    calls, region = trace.host_calls, compile_events(trace).region
    span = window(trace)
    start = calls["start_ns"].to_numpy()
    inner = np.flatnonzero(region == np.arange(len(region)))
    inner = inner[(start[inner] >= span.start_ns) & (start[inner] < span.end_ns)]
    outer = np.append(region, NONE)[calls["parent"].to_numpy()[inner]]
    inner, outer = inner[outer >= 0], outer[outer >= 0]
    return GraphBreaks(
        left=outer,
        entered=inner,
        start_ns=_left_ns(trace, inner),
        between=_between(trace, inner),
        lines=_lines(trace) if len(inner) else (),
    )


def _left_ns(trace: Trace, inner: Ints) -> Ints:
    """Return the end of the previous call of each call's parent, without guard lookups."""
    calls = trace.host_calls
    parent, end = calls["parent"].to_numpy(), calls["end_ns"].to_numpy()
    around = parent[inner]
    is_lookup = name_mask(calls["name"], LOOKUP.__eq__)
    children = np.flatnonzero(np.isin(parent, around) & ~is_lookup)
    order = children[np.argsort(parent[children], kind="stable")]
    width = len(calls) + 1
    index = np.searchsorted(parent[order] * width + order, around * width + inner) - 1
    before = np.append(order, NONE)[index]
    has = (index >= 0) & (np.append(parent, NONE)[before] == around)
    began = calls["start_ns"].to_numpy()[around]
    return np.asarray(np.where(has, np.append(end, 0)[before], began))


def _between(trace: Trace, inner: Ints) -> tuple[str, ...]:
    calls = trace.host_calls
    parent = calls["parent"].to_numpy()
    is_theirs = np.isin(parent, parent[inner]) & calls["is_operator"].to_numpy()
    codes = calls["name"].cat.codes.to_numpy()[is_theirs & ~name_mask(calls["name"], OWN.search)]
    if not len(codes):
        return ()
    count = np.bincount(codes)
    most = np.argsort(-count, kind="stable")[: int((count > 0).sum())]
    return tuple(str(calls["name"].cat.categories[code]) for code in most.tolist())


def _lines(trace: Trace) -> tuple[SourceLine, ...]:
    names = trace.python_calls["name"].cat.categories
    matches = (RESUMED.match(str(name)) for name in names)
    lines = {
        SourceLine(path=match["path"], line=int(match["line"]), function=match["function"])
        for match in matches
        if match
    }
    return tuple(sorted(lines, key=lambda line: (line.path, line.line)))
