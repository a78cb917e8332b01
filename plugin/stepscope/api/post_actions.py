"""What the page may change, by POST: which files are read, and the look for more of them.

Each answers with `Runs`, how things stand then, and wants a header that no page of another origin
can send (`refusals.OWN_HEADER`).
"""

from collections.abc import Callable
from dataclasses import dataclass

from stepscope.catalog.catalog import Catalog


@dataclass(frozen=True, kw_only=True)
class Change:
    """Something that can be asked of the catalog; its route and its part of the document follow."""

    path: str
    """Below `api/`, with the name of its parameter in brackets; none, or one."""
    meaning: str
    make: Callable[[Catalog, str], None]
    """Is given the parameter; an empty one where there is none."""


def _cancel_run(catalog: Catalog, run: str) -> None:
    for entry in catalog.run(run):
        catalog.cancel(entry.file.id)


CHANGES = (
    Change(
        path="traces/<trace>/cancel",
        meaning="The file is not read, or no longer.",
        make=Catalog.cancel,
    ),
    Change(
        path="traces/<trace>/read",
        meaning="The file is read before others, also where that was cancelled or failed.",
        make=Catalog.read_again,
    ),
    Change(
        path="runs/<run>/cancel",
        meaning="None of the run's files is read, or no longer.",
        make=_cancel_run,
    ),
    Change(
        path="runs/<run>/read",
        meaning="The run's files whose reading was cancelled or failed are read before others.",
        make=Catalog.read_run_again,
    ),
    Change(
        path="listing/cancel",
        meaning="The look through the log directories ends.",
        make=lambda catalog, _: catalog.cancel_scan(),
    ),
    Change(
        path="listing/read",
        meaning="The log directories are looked through again.",
        make=lambda catalog, _: catalog.rescan_now(),
    ),
)
