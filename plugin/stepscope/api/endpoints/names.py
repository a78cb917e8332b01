"""Searchable names of a trace: operators, annotations, kernels, modules, source lines."""

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec
import pandas as pd

from stepscope.analyses.devices.kernel_table import kernel_table
from stepscope.analyses.host.function_costs import function_costs
from stepscope.analyses.host.module_table import module_table
from stepscope.analyses.operators.operator_table import operator_table
from stepscope.api.endpoint import Query, trace_endpoint
from stepscope.api.messages import Response
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.model.trace import Trace

Kind = Literal["operator", "annotation", "kernel", "module", "source-line"]
MOST_NAMES = 20_000
DEFAULT_LIMIT = 4_000


class NamesQuery(Query, frozen=True, kw_only=True):
    """Number of names."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_NAMES)] = DEFAULT_LIMIT
    """Maximum number of names per kind, longest total time first."""


class NamesOfKind(msgspec.Struct, frozen=True):
    """Names of one kind, longest total time first; the columns are parallel."""

    kind: Kind
    names: tuple[str, ...]
    """A module's path, a source line's `file:line function`."""
    times_ns: tuple[int, ...]
    """Total time: on the device for kernels, on the host for other kinds."""
    all_count: int
    """Number of all names of this kind."""


class Names(Response, frozen=True, kw_only=True):
    """Names of a trace by kind."""

    kinds: tuple[NamesOfKind, ...]
    """The recorded kinds."""


def names(trace: Trace, query: NamesQuery) -> Names:
    """Return the names of operators, annotations, kernels, modules and source lines."""
    calls = operator_table(trace)
    is_operator, is_annotation = (calls["kind"] == kind for kind in ("operator", "annotation"))
    totals: dict[Kind, pd.Series | None] = {
        "operator": _totals(calls.loc[is_operator], "name", "host_total_ns"),
        "annotation": _totals(calls.loc[is_annotation], "name", "host_total_ns"),
        "kernel": _totals(_built(kernel_table, trace), "name", "total_ns"),
        "module": _totals(_built(module_table, trace), "path", "forward_host_total_ns"),
        "source-line": _totals(_source_lines(trace), "name", "host_total_ns"),
    }
    return Names(
        kinds=tuple(
            _of_kind(kind, total, query.limit)
            for kind, total in totals.items()
            if total is not None and len(total)
        ),
    )


def _built(table: Callable[[Trace], pd.DataFrame], trace: Trace) -> pd.DataFrame | None:
    try:
        return table(trace)
    except (MissingDataError, NotApplicableError):
        return None


def _source_lines(trace: Trace) -> pd.DataFrame | None:
    frame = _built(function_costs, trace)
    if frame is None:
        return None
    location, function, line = (frame[key].astype(str) for key in ("file", "function", "line"))
    return frame.assign(name=location + ":" + line + " " + function)


def _totals(frame: pd.DataFrame | None, name: str, time: str) -> pd.Series | None:
    if frame is None:
        return None
    return frame.groupby(frame[name].astype(str), sort=False)[time].sum()


def _of_kind(kind: Kind, total: pd.Series, limit: int) -> NamesOfKind:
    longest = total.sort_values(ascending=False, kind="stable").head(limit)
    return NamesOfKind(
        kind=kind,
        names=tuple(longest.index),
        times_ns=tuple(map(int, longest.fillna(0))),
        all_count=len(total),
    )


ENDPOINTS = (trace_endpoint("names", names),)
