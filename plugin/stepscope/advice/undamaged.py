"""Which recordings speak for a run: those whose files are whole."""

from collections.abc import Iterable

from stepscope.base.report import WorkerReport

WHOLE = frozenset({"duplicate-file", "duplicate-rank"})
"""Kinds of damage to a run that leave each recording as it is."""


def undamaged(workers: Iterable[WorkerReport]) -> tuple[WorkerReport, ...]:
    """Return recordings without the damaged ones; all where that would leave none."""
    known = tuple(workers)
    return tuple(worker for worker in known if not _is_damaged(worker)) or known


def _is_damaged(worker: WorkerReport) -> bool:
    return any(
        item.nature == "damage" and item.effect != "none" and item.kind not in WHOLE
        for item in worker.health
    )
