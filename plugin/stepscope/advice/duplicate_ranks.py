"""Traces of a run with the same rank: one file twice, or two jobs in one folder."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

from stepscope.analyses.health import severity_order, with_effect
from stepscope.base.report import FileHealth, HealthItem, WorkerReport
from stepscope.model.trace import Trace, computed

Report = TypeVar("Report", WorkerReport, FileHealth)
SAMPLES = 4096
NAMES_SHOWN = 3


@computed
def fingerprint(trace: Trace) -> str:
    """Return a hash of the events: of every n-th event of a long trace, and of the sum of all."""
    columns = trace.columns
    every = max(1, len(trace) // SAMPLES)
    digest = hashlib.blake2b(digest_size=8)
    for column in (columns.start_ns, columns.duration_ns, columns.name):
        digest.update(column[::every].tobytes())
        digest.update(int(column.sum(dtype="uint64")).to_bytes(8, "little"))
    digest.update(f"{len(trace)} {columns.origin_ns} {columns.base_time_ns}".encode())
    return digest.hexdigest()


def with_duplicates(workers: Iterable[Report]) -> tuple[Report, ...]:
    """Return a run's reports, with a health item for each duplicate."""
    workers = tuple(workers)
    same_file = _groups(workers, lambda worker: worker.fingerprint or None)
    same_rank = _groups(
        workers, lambda worker: None if worker.rank is None else (worker.rank, worker.span)
    )
    return tuple(
        _with_item(worker, files, ranks)
        for worker, files, ranks in zip(workers, same_file, same_rank, strict=True)
    )


def _groups(
    workers: Sequence[Report], key: Callable[[Report], object]
) -> tuple[Sequence[Report], ...]:
    """Return, for each report, all with its key; empty where it has none, or is the only one."""
    keys = [key(worker) for worker in workers]
    sharing: dict[object, list[Report]] = {}
    for value, worker in zip(keys, workers, strict=True):
        if value is not None:
            sharing.setdefault(value, []).append(worker)
    groups = (sharing.get(value, []) for value in keys)
    return tuple(group if len(group) > 1 else () for group in groups)


def _with_item(worker: Report, same_file: Sequence[Report], same_rank: Sequence[Report]) -> Report:
    item: HealthItem
    if same_file:
        item = _duplicate_file(worker, same_file)
    elif same_rank:
        item = _duplicate_rank(worker, same_rank)
    else:
        return worker
    items = [item, *(other for other in worker.health if other.kind != item.kind)]
    return msgspec.structs.replace(worker, health=tuple(sorted(items, key=severity_order)))


def _duplicate_file(worker: Report, group: Sequence[Report]) -> HealthItem:
    return with_effect(
        HealthItem(
            kind="duplicate-file",
            severity="warning",
            count=len(group) - 1,
            nature="damage",
            message=f"this trace holds the same events as {_names(worker, group)}",
            action="each is shown separately; in the run's figures the rank counts more than once",
            remedy="Remove one of the files from the folder.",
        )
    )


def _duplicate_rank(worker: Report, group: Sequence[Report]) -> HealthItem:
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
            action="each is shown separately; in the run's figures the rank counts more than once",
            remedy="Write each job to a separate folder.",
        )
    )


def _names(worker: Report, group: Sequence[Report]) -> str:
    names = [f"{other.name}, span {other.span}" for other in group if other is not worker]
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return f"{'; '.join(names[:NAMES_SHOWN])}{more}"
