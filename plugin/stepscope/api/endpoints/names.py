"""Names in a recording that may be looked for: operators, kernels, modules, source lines."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import pandas as pd

from stepscope.analyses.devices.kernel_table import kernel_table
from stepscope.analyses.host.function_costs import function_costs
from stepscope.analyses.host.module_table import module_table
from stepscope.analyses.operators.operator_table import operator_table
from stepscope.api.endpoint import Query, TraceEndpoint
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.model.trace import Trace

Kind = Literal["operator", "annotation", "kernel", "module", "source-line"]
MOST_NAMES = 20_000
DEFAULT_LIMIT = 4_000


class NamesQuery(Query, frozen=True, kw_only=True):
    """How many."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_NAMES)] = DEFAULT_LIMIT
    """Names of each kind at the most; those that take longest come first."""


class NamesOfKind(msgspec.Struct, frozen=True):
    """Names of one kind, what takes longest first; the columns have the same length."""

    kind: Kind
    names: tuple[str, ...]
    """A module's is its path, a source line's `file:line function`."""
    times_ns: tuple[int, ...]
    """Total time: of kernels on the device, of all others on the host."""
    all_count: int
    """How many names of this kind there are, with those that were left out."""


class Names(msgspec.Struct, frozen=True):
    """What in a recording has a name."""

    schema: int
    kinds: tuple[NamesOfKind, ...]
    """Kinds that were recorded; one that was not is left out."""


@dataclass(frozen=True, kw_only=True)
class _Columns:
    """Where a table has names and times."""

    build: Callable[[Trace], pd.DataFrame]
    name: str
    time: str


SOURCES = {
    "kernel": _Columns(build=kernel_table, name="name", time="total_ns"),
    "module": _Columns(build=module_table, name="path", time="forward_host_total_ns"),
}


def ask(trace: Trace, query: NamesQuery) -> Names:
    """Answer with all names."""
    calls = operator_table(trace)
    is_operator = calls["kind"] == "operator"
    found = (
        _of_kind("operator", calls.loc[is_operator], ("name", "host_total_ns"), query.limit),
        _of_kind("annotation", calls.loc[~is_operator], ("name", "host_total_ns"), query.limit),
        _of_table("kernel", trace, query.limit),
        _of_table("module", trace, query.limit),
        _source_lines(trace, query.limit),
    )
    return Names(
        schema=SCHEMA_VERSION, kinds=tuple(each for each in found if each and each.all_count)
    )


def _built(build: Callable[[Trace], pd.DataFrame], trace: Trace) -> pd.DataFrame | None:
    try:
        return build(trace)
    except (MissingDataError, NotApplicableError):
        return None


def _of_table(kind: Kind, trace: Trace, limit: int) -> NamesOfKind | None:
    source = SOURCES[kind]
    frame = _built(source.build, trace)
    return None if frame is None else _of_kind(kind, frame, (source.name, source.time), limit)


def _source_lines(trace: Trace, limit: int) -> NamesOfKind | None:
    frame = _built(function_costs, trace)
    if frame is None:
        return None
    places = frame["file"].astype(str) + ":" + frame["line"].astype(str)
    named = pd.DataFrame(
        {
            "name": places + " " + frame["function"].astype(str),
            "host_total_ns": frame["host_total_ns"],
        }
    )
    return _of_kind("source-line", named, ("name", "host_total_ns"), limit)


def _of_kind(kind: Kind, frame: pd.DataFrame, columns: tuple[str, str], limit: int) -> NamesOfKind:
    name, time = columns
    total = frame.groupby(frame[name].astype(str), sort=False)[time].sum()
    longest = total.sort_values(ascending=False, kind="stable").head(limit)
    return NamesOfKind(
        kind=kind,
        names=tuple(longest.index),
        times_ns=tuple(int(each) for each in longest.fillna(0)),
        all_count=len(total),
    )


ENDPOINTS = (
    TraceEndpoint(
        path="names",
        meaning="What has a name: operators, annotations, kernels, modules, source lines.",
        query=NamesQuery,
        response=Names,
        handler=ask,
    ),
)
