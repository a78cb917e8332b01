"""The ranks of a run together: who waits for whom, where each rank's steps go, collectives."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.api import distributed_ranks as answers
from stepscope.api import distributed_tables as tables
from stepscope.api.distributed_messages import (
    By,
    CollectiveRanks,
    Collectives,
    Distributed,
    Metric,
    RankBreakdown,
    RankSteps,
)
from stepscope.api.endpoint import Group, GroupsEndpoint, ResponseType, RunQuery
from stepscope.api.messages import Table
from stepscope.api.run_ranks import LOCK, SharedRun, shared_run
from stepscope.base.errors import UnknownNameError
from stepscope.base.report import SCHEMA_VERSION
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry

DEFAULT_LIMIT, MOST_ROWS = 2_000, 50_000
Groups = Mapping[str, Group[RankSummary]]


class OfSpan(RunQuery, frozen=True, kw_only=True):
    """The parameters of what is asked of all ranks of one recording."""

    span: str = ""
    """The n-th recording of each worker; empty: the first that there is."""


class OfMetric(OfSpan, frozen=True, kw_only=True):
    """Which figure of every rank and step."""

    metric: Metric = "late"
    """Lateness, step time, computing, and so on."""


class OfStep(OfSpan, frozen=True, kw_only=True):
    """Which step."""

    step: int | None = None
    """Its number; without one, the mean step."""


class OfCollectives(OfStep, frozen=True, kw_only=True):
    """Which collectives, and how they are put together."""

    by: By = "kind"
    """Alike ones together, or each by itself."""
    worker: str = ""
    """What one worker has of them; empty: all."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)] = DEFAULT_LIMIT
    """How many rows at most: those that cost most."""


class OfCollective(OfSpan, frozen=True, kw_only=True):
    """Which collective: by any of its members."""

    worker: str
    """A worker that takes part in it."""
    event: int
    """The place in that worker's file of its first kernel, or of its annotation on the host."""


def _of_span(catalog: Catalog, query: OfSpan) -> Mapping[str, tuple[Entry, ...]]:
    """Return the recordings of a run that were made together."""
    entries = catalog.run(query.run)
    span = query.span or entries[0].file.span
    chosen = tuple(entry for entry in entries if entry.file.span == span)
    if not chosen:
        msg = f"the run has no recording {span!r}"
        raise UnknownNameError(msg)
    return {query.run: chosen}


def _locked(
    handler: Callable[[SharedRun, Group[RankSummary], Any], msgspec.Struct],
) -> Callable[[Groups, Any], msgspec.Struct]:
    """Return what is asked of the one group of recordings, put together once for all endpoints."""

    def ask(groups: Groups, query: OfSpan) -> msgspec.Struct:
        group = groups[query.run]
        with LOCK:
            return handler(shared_run(group.parts), group, query)

    return ask


def _summary(shared: SharedRun, group: Group[RankSummary], _: OfSpan) -> Distributed:
    return answers.distributed(shared, group)


def _heat(shared: SharedRun, group: Group[RankSummary], query: OfMetric) -> RankSteps:
    return answers.heat(shared, query.metric, group)


def _ranks(shared: SharedRun, group: Group[RankSummary], query: OfStep) -> RankBreakdown:
    return answers.breakdown(shared, query.step, group)


def _collectives(shared: SharedRun, group: Group[RankSummary], query: OfCollectives) -> Collectives:
    chosen = tables.select_members(shared, query.step, query.worker)
    table, opens = tables.collectives(shared, query.by, chosen, query.limit)
    return Collectives(
        schema=SCHEMA_VERSION,
        table=table,
        opens=opens,
        step=query.step,
        worker=query.worker,
        waiting_count=group.waiting_count,
    )


def _collective(shared: SharedRun, _: Group[RankSummary], query: OfCollective) -> CollectiveRanks:
    return tables.one_collective(shared, query.worker, query.event)


def _groups(shared: SharedRun, _: Group[RankSummary], __: OfSpan) -> Table:
    return tables.group_table(shared)


def _devices(shared: SharedRun, _: Group[RankSummary], __: OfSpan) -> Table:
    return tables.device_table(shared.run)


def _endpoint(
    *,
    path: str,
    meaning: str,
    query: type[OfSpan],
    response: ResponseType,
    handler: Callable[[SharedRun, Group[RankSummary], Any], msgspec.Struct],
) -> GroupsEndpoint[RankSummary, Any]:
    """Return an endpoint of a run's ranks: what is asked of the same parts, put together once."""
    return GroupsEndpoint(
        path=path,
        meaning=meaning,
        query=query,
        response=response,
        part=rank_summary,
        entries=_of_span,
        handler=_locked(handler),
    )


ENDPOINTS = (
    _endpoint(
        path="distributed",
        meaning="What a run of several ranks is: ranks, what is missing, clocks, stragglers.",
        query=OfSpan,
        response=Distributed,
        handler=_summary,
    ),
    _endpoint(
        path="distributed/steps",
        meaning="One figure of every rank and step.",
        query=OfMetric,
        response=RankSteps,
        handler=_heat,
    ),
    _endpoint(
        path="distributed/ranks",
        meaning="Where a step of each rank goes, waiting for other ranks told from transfer.",
        query=OfStep,
        response=RankBreakdown,
        handler=_ranks,
    ),
    _endpoint(
        path="distributed/collectives",
        meaning="Collectives over all ranks, or on one, by kind or one by one.",
        query=OfCollectives,
        response=Collectives,
        handler=_collectives,
    ),
    _endpoint(
        path="distributed/collective",
        meaning="One collective on all its ranks, on one clock.",
        query=OfCollective,
        response=CollectiveRanks,
        handler=_collective,
    ),
    _endpoint(
        path="distributed/groups",
        meaning="The process groups of a run: their ranks, roles and traffic.",
        query=OfSpan,
        response=Table,
        handler=_groups,
    ),
    _endpoint(
        path="distributed/devices",
        meaning="The devices of a run, by node and process.",
        query=OfSpan,
        response=Table,
        handler=_devices,
    ),
)
