"""How step time, its parts and what advice could save went over spans, or over runs."""

from collections.abc import Mapping, Sequence
from typing import Literal

from stepscope.api.endpoint import Group, GroupsEndpoint, Query
from stepscope.api.trends import TraceTrend, Trends, figure_descriptions, points
from stepscope.base import urls
from stepscope.base.errors import UnknownNameError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.comparison.trends import Trend, trend

MOST_RECORDINGS = 500
"""More than can be told apart on a screen; each is read if it was not yet."""


class Followed(Query, frozen=True, kw_only=True):
    """What is followed: the spans of one run, or runs."""

    run: str
    """The run's id."""
    scope: Literal["spans", "folder", "all"] = "spans"
    """`spans` of the run, the runs of its `folder`, or `all` runs."""
    worker: str | None = None
    """Of `spans`, those of this worker; the mean over all workers where none is named."""
    most: int = MOST_RECORDINGS
    """How many recordings at most, those recorded last; 500 or fewer."""


def entries(catalog: Catalog, query: Followed) -> Mapping[str, tuple[Entry, ...]]:
    """Return the recordings that are followed, by run, in the order in which they were recorded."""
    most = max(1, min(query.most, MOST_RECORDINGS))
    latest = sorted(_in_scope(catalog, query), key=_recorded)[-most:]
    runs: dict[str, list[Entry]] = {}
    for entry in latest:
        runs.setdefault(entry.file.run_id, []).append(entry)
    return {run: tuple(own) for run, own in runs.items()}


def _in_scope(catalog: Catalog, query: Followed) -> Sequence[Entry]:
    own = catalog.run(query.run)
    if query.scope == "spans":
        return _of_worker(own, query.worker)
    folder = urls.parent(own[0].file.folder)
    return [
        entry
        for entry in catalog.entries()
        if query.scope == "all" or urls.parent(entry.file.folder) == folder
    ]


def _of_worker(own: Sequence[Entry], worker: str | None) -> Sequence[Entry]:
    found = [entry for entry in own if worker in {None, entry.file.worker}]
    if not found:
        msg = f"{own[0].file.run} has no worker {worker!r}"
        raise UnknownNameError(msg)
    return found


def _recorded(entry: Entry) -> tuple[int, str, str]:
    return entry.file.recorded_ns, entry.file.run, entry.file.span.zfill(9)


def ask(groups: Mapping[str, Group[Trend]], _: Followed) -> Trends:
    """Answer with a point a run and span."""
    found = [
        point
        for run, group in groups.items()
        for point in points(run, group.name, _recorded_ones(group))
    ]
    return Trends(
        schema=SCHEMA_VERSION,
        figures=figure_descriptions(),
        points=tuple(found),
        waiting_count=sum(group.waiting_count for group in groups.values()),
        unreadable_count=sum(len(group.problems) for group in groups.values()),
    )


def _recorded_ones(group: Group[Trend]) -> list[TraceTrend]:
    own = zip(group.traces, group.parts, strict=True)
    return [TraceTrend(trace=trace, trend=each) for trace, each in own]


ENDPOINTS = (
    GroupsEndpoint(
        path="trends",
        meaning="Step time, its parts, how busy devices were, memory and what advice could save,"
        " from span to span or from run to run.",
        query=Followed,
        part=trend,
        entries=entries,
        response=Trends,
        handler=ask,
        needs_all=False,
    ),
)
