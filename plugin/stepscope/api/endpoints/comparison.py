"""What changed between two runs, or workers, or spans."""

from collections.abc import Mapping

from stepscope.api.comparison import ComparisonAnswer, compare_sides
from stepscope.api.endpoint import Group, GroupsEndpoint, Query
from stepscope.base.errors import UnknownNameError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry
from stepscope.comparison.samples import Sample, sample

BEFORE, AFTER = "before", "after"


class TwoSides(Query, frozen=True, kw_only=True):
    """What is compared with what: whole runs, or one worker of each, or one span."""

    run: str
    """The run's id, of the side that is looked at: *after*."""
    worker: str | None = None
    """One of its workers, by name; all where none is named."""
    span: str | None = None
    """One of their spans; all where none is named."""
    base_run: str
    """The run's id of the side that it is held against: *before*."""
    base_worker: str | None = None
    """One of its workers, by name; all where none is named."""
    base_span: str | None = None
    """One of their spans; all where none is named."""


Choice = tuple[str, str | None, str | None]


def _choices(query: TwoSides) -> dict[str, Choice]:
    return {
        BEFORE: (query.base_run, query.base_worker, query.base_span),
        AFTER: (query.run, query.worker, query.span),
    }


def entries(catalog: Catalog, query: TwoSides) -> Mapping[str, tuple[Entry, ...]]:
    """Return both sides' recordings."""
    return {side: _chosen(catalog, choice) for side, choice in _choices(query).items()}


def _chosen(catalog: Catalog, choice: Choice) -> tuple[Entry, ...]:
    run, worker, span = choice
    known = catalog.run(run)
    found = tuple(
        entry
        for entry in known
        if worker in {None, entry.file.worker} and span in {None, entry.file.span}
    )
    if not found:
        msg = f"there is no such recording: {_called(known[0].file.run, choice)}"
        raise UnknownNameError(msg)
    return found


def _called(name: str, choice: Choice) -> str:
    _, worker, span = choice
    return ", ".join(filter(None, (name, worker, f"span {span}" if span else "")))


def ask(groups: Mapping[str, Group[Sample]], query: TwoSides) -> ComparisonAnswer:
    """Answer with what changed."""
    chosen = _choices(query)
    before, after = (
        (_called(groups[key].name, choice), groups[key]) for key, choice in chosen.items()
    )
    return compare_sides(before, after, is_same=chosen[BEFORE] == chosen[AFTER])


ENDPOINTS = (
    GroupsEndpoint(
        path="comparison",
        meaning="What changed between two runs, workers or spans, and which of it is more than"
        " noise.",
        query=TwoSides,
        part=sample,
        entries=entries,
        response=ComparisonAnswer,
        handler=ask,
    ),
)
