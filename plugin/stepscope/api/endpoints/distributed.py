"""Endpoints of the Distributed view: ranks, steps, collectives, groups and devices of a run."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from stepscope.analyses.communication.all_to_all import (
    ExchangePart,
    exchange_part,
    group_traffic,
)
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.api import distributed_ranks as ranks
from stepscope.api import distributed_tables as tables
from stepscope.api.distributed_messages import (
    AllToAll,
    By,
    CollectiveRanks,
    Collectives,
    Distributed,
    Metric,
    RankBreakdown,
    RankSteps,
)
from stepscope.api.endpoint import Group, GroupsEndpoint, RunQuery, signature
from stepscope.api.messages import Table
from stepscope.api.run_ranks import LOCK, SharedRun, shared_run
from stepscope.base.errors import UnknownNameError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry

DEFAULT_LIMIT, MOST_ROWS = 2_000, 50_000


class SpanQuery(RunQuery, frozen=True, kw_only=True):
    """The traces of all ranks with the same span."""

    span: str = ""
    """The n-th trace of each worker; empty: the first available."""


class MetricQuery(SpanQuery, frozen=True, kw_only=True):
    """A metric of every rank and step."""

    metric: Metric = "late"
    """The metric: lateness, step time, computing, and so on."""


class StepQuery(SpanQuery, frozen=True, kw_only=True):
    """A step."""

    step: int | None = None
    """Number of the step; without it, the mean step."""


class CollectivesQuery(StepQuery, frozen=True, kw_only=True):
    """Collectives and their grouping."""

    by: By = "kind"
    """One row per kind, or one row per collective."""
    worker: str = ""
    """Only the part of one worker; empty: all workers."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)] = DEFAULT_LIMIT
    """Maximum number of rows, longest time first."""


class CollectiveQuery(SpanQuery, frozen=True, kw_only=True):
    """A collective, identified by any of its members."""

    worker: str
    """A worker that takes part in it."""
    event: int
    """Index in the worker's file of its first kernel, or of its annotation on the host."""


def _of_span(catalog: Catalog, query: SpanQuery) -> Mapping[str, tuple[Entry, ...]]:
    """Return the traces of a run that were recorded together."""
    entries = catalog.run(query.run)
    span = query.span or entries[0].file.span
    of_span = tuple(entry for entry in entries if entry.file.span == span)
    if not of_span:
        msg = f"the run has no span {span!r}"
        raise UnknownNameError(msg)
    return {query.run: of_span}


def _summary(shared: SharedRun, group: Group[RankSummary], _: SpanQuery) -> Distributed:
    """Return a run's ranks, missing ranks, clocks, stragglers, outliers and groups."""
    return ranks.distributed(shared, group)


def _heat(shared: SharedRun, group: Group[RankSummary], query: MetricQuery) -> RankSteps:
    """Return one metric of every rank and step."""
    return ranks.heat(shared, query.metric, group)


def _ranks(shared: SharedRun, group: Group[RankSummary], query: StepQuery) -> RankBreakdown:
    """Return the step time of each rank by category, with waiting apart from transfer."""
    return ranks.breakdown(shared, query.step, group)


def _collectives(
    shared: SharedRun, group: Group[RankSummary], query: CollectivesQuery
) -> Collectives:
    """Return collectives of all ranks or of one worker, by kind or one by one."""
    members = tables.select_members(shared, query.step, query.worker)
    table, opens = tables.collectives(shared, query.by, members, query.limit)
    return Collectives(
        table=table,
        opens=opens,
        step=query.step,
        worker=query.worker,
        waiting_count=group.waiting_count,
    )


def _collective(
    shared: SharedRun, _: Group[RankSummary], query: CollectiveQuery
) -> CollectiveRanks:
    """Return one collective on all its ranks, on one clock."""
    return tables.one_collective(shared, query.worker, query.event)


def _groups(shared: SharedRun, _: Group[RankSummary], __: SpanQuery) -> Table:
    """Return the process groups of a run: ranks, roles and traffic."""
    return tables.group_table(shared)


def _devices(shared: SharedRun, _: Group[RankSummary], __: SpanQuery) -> Table:
    """Return the devices of a run, by node and process."""
    return tables.device_table(shared.run)


def all_to_all(groups: Mapping[str, Group[ExchangePart]], query: SpanQuery) -> AllToAll:
    """Return the bytes that ranks send to each other in all-to-all exchanges."""
    group = groups[query.run]
    return AllToAll(
        groups=tuple(map(tables.exchange_group, group_traffic(group.parts))),
        waiting_count=group.waiting_count,
    )


def _endpoint(
    path: str, handler: Callable[[SharedRun, Group[RankSummary], Any], msgspec.Struct]
) -> GroupsEndpoint[RankSummary, Any]:
    """Return an endpoint of a run's ranks, described by its handler."""

    def locked(groups: Mapping[str, Group[RankSummary]], query: SpanQuery) -> msgspec.Struct:
        group = groups[query.run]
        with LOCK:
            return handler(shared_run(group.parts), group, query)

    meaning, query, response = signature(handler)
    return GroupsEndpoint(
        path=path,
        meaning=meaning,
        query=query,
        response=response,
        part=rank_summary,
        entries=_of_span,
        handler=locked,
    )


ENDPOINTS = (
    _endpoint("distributed", _summary),
    _endpoint("distributed/steps", _heat),
    _endpoint("distributed/ranks", _ranks),
    _endpoint("distributed/collectives", _collectives),
    _endpoint("distributed/collective", _collective),
    _endpoint("distributed/groups", _groups),
    _endpoint("distributed/devices", _devices),
    GroupsEndpoint(
        path="distributed/all-to-all",
        meaning=signature(all_to_all)[0],
        query=SpanQuery,
        response=AllToAll,
        part=exchange_part,
        entries=_of_span,
        handler=all_to_all,
    ),
)
