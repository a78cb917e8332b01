"""POST requests of the page: reading of files, and the scan of the log directories.

They return `Runs` and require a header that no page of another origin can send
(`http_errors.OWN_HEADER`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.catalog.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of the catalog; its route and its OpenAPI operation follow from it."""

    path: str
    """Path below `api/`, with at most one parameter in angle brackets."""
    meaning: str
    make: Callable[[Catalog, str], None]
    """Called with the parameter, or an empty text without one."""


def _cancel_run(catalog: Catalog, run: str) -> None:
    for entry in catalog.run(run):
        catalog.cancel(entry.file.id)


CHANGES = (
    Change(
        path="traces/<trace>/cancel",
        meaning="Cancel the reading of a file.",
        make=Catalog.cancel,
    ),
    Change(
        path="traces/<trace>/read",
        meaning="Read a file before others, also after a cancellation or failure.",
        make=Catalog.read_again,
    ),
    Change(
        path="runs/<run>/cancel",
        meaning="Cancel the reading of a run's files.",
        make=_cancel_run,
    ),
    Change(
        path="runs/<run>/read",
        meaning="Read a run's files whose reading was cancelled or failed, before others.",
        make=Catalog.read_run_again,
    ),
    Change(
        path="listing/cancel",
        meaning="Cancel the scan of the log directories.",
        make=lambda catalog, _: catalog.cancel_scan(),
    ),
    Change(
        path="listing/read",
        meaning="Scan the log directories again.",
        make=lambda catalog, _: catalog.rescan_now(),
    ),
)
