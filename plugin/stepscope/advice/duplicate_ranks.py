"""Recordings of a run that stand for the same rank: one file twice, or two jobs in one folder."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from stepscope.analyses.health import severity_order, with_effect
from stepscope.base.report import FileHealth, HealthItem, WorkerReport
from stepscope.model.trace import Trace, computed

Recording = TypeVar("Recording", WorkerReport, FileHealth)
SAMPLES = 4096
NAMES_SHOWN = 3


@computed
def fingerprint(trace: Trace) -> str:
    """Return what two recordings have in common only where their events are the same.

    Of a long one every n-th event is looked at, and the sum of all.
    """
    columns = trace.columns
    every = max(1, len(trace) // SAMPLES)
    digest = hashlib.blake2b(digest_size=8)
    for column in (columns.start_ns, columns.duration_ns, columns.name):
        digest.update(column[::every].tobytes())
        digest.update(int(column.sum(dtype="uint64")).to_bytes(8, "little"))
    digest.update(f"{len(trace)} {columns.origin_ns} {columns.base_time_ns}".encode())
    return digest.hexdigest()


def with_duplicates(workers: Iterable[Recording]) -> tuple[Recording, ...]:
    """Return a run's recordings; those that another doubles say so among their health."""
    workers = tuple(workers)
    same_file = _groups(workers, lambda worker: worker.fingerprint or None)
    same_rank = _groups(
        workers, lambda worker: None if worker.rank is None else (worker.rank, worker.span)
    )
    return tuple(
        _told(worker, same_file[place], same_rank[place]) for place, worker in enumerate(workers)
    )


def _groups(
    workers: Sequence[Recording], key: Callable[[Recording], object]
) -> tuple[Sequence[Recording], ...]:
    """Return, for each recording, all that have its key; where it has none, or alone, nothing."""
    keys = [key(worker) for worker in workers]
    sharing: dict[object, list[Recording]] = {}
    for own, worker in zip(keys, workers, strict=True):
        if own is not None:
            sharing.setdefault(own, []).append(worker)
    groups = (sharing.get(own, []) for own in keys)
    return tuple(group if len(group) > 1 else () for group in groups)


def _told(
    worker: Recording, same_file: Sequence[Recording], same_rank: Sequence[Recording]
) -> Recording:
    item: HealthItem
    if same_file:
        item = _duplicate_file(worker, same_file)
    elif same_rank:
        item = _duplicate_rank(worker, same_rank)
    else:
        return worker
    items = [item, *(each for each in worker.health if each.kind != item.kind)]
    return msgspec.structs.replace(worker, health=tuple(sorted(items, key=severity_order)))


def _duplicate_file(worker: Recording, group: Sequence[Recording]) -> HealthItem:
    return with_effect(
        HealthItem(
            kind="duplicate-file",
            severity="warning",
            count=len(group) - 1,
            nature="damage",
            message=f"this recording holds the same events as {_names(worker, group)}",
            action="each is shown for itself; taken together, the rank counts more than once",
            remedy="Remove one of them from the folder.",
        )
    )


def _duplicate_rank(worker: Recording, group: Sequence[Recording]) -> HealthItem:
    return with_effect(
        HealthItem(
            kind="duplicate-rank",
            severity="warning",
            count=len(group) - 1,
            nature="damage",
            message=(
                f"rank {worker.rank} was recorded in {_names(worker, group)}, too: two jobs wrote "
                "to one folder"
            ),
            action="each is shown for itself; taken together, the rank counts more than once",
            remedy="Give each job a folder of its own.",
        )
    )


def _names(worker: Recording, group: Sequence[Recording]) -> str:
    names = [f"{each.name}, span {each.span}" for each in group if each is not worker]
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{'; '.join(names[:NAMES_SHOWN])}{more}"
