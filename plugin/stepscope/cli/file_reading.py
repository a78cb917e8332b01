"""How commands read files: how many at once, in how much memory, and how far they have come."""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from stepscope.base.config import Settings
    from stepscope.model.trace import Trace
    from stepscope.readers.batch import OnResult, Outcome, ProgressMonitor
    from stepscope.readers.cluster import Cluster
    from stepscope.readers.requests import ReadRequest, ReadResult, Step
    from stepscope.readers.tasks import ResultWithDamage
    from stepscope.storage.discover import TraceFile

WORTH_PROCESSES_BYTES = 256 * 2**20
"""Several files of less JSON than this together are read sooner than processes are started,
unless they are many: what is worked out of each takes its time, however small it is."""
MANY_COUNT = 16


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What reading may take, as the user said it."""

    jobs: int | None
    memory: str | None
    is_cached: bool | None
    scheduler: str | None = None
    summaries: str | None = None

    def settings(self) -> "Settings":
        """Return it with what the environment says, and the machine.

        Raises:
            UsageError: it is no number, no size, or too small.
        """
        from stepscope.base.config import settings

        cache = None if self.is_cached is None else str(int(self.is_cached))
        return settings(
            jobs=self.jobs,
            memory=self.memory,
            cache=cache,
            scheduler=self.scheduler,
            summaries=self.summaries,
        )


def with_effort(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what reading may take, and where it is done, as `effort`."""

    @click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Read on a Dask cluster: tcp://HOST:8786, or a scheduler file.  [default: here]",
    )
    @functools.wraps(command)
    def with_place(*, effort: Effort, scheduler: str | None, **given: object) -> None:
        command(effort=replace(effort, scheduler=scheduler), **given)

    return with_own_effort(with_place)


def with_own_effort(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what reading on this machine may take, as `effort`."""
    options = (
        click.option(
            "--jobs", type=click.IntRange(min=1), help="Files read at once.  [default: cores]"
        ),
        click.option(
            "--memory",
            metavar="SIZE",
            help="Memory that traces may take, such as 8G.  [default: half of what is free]",
        ),
        click.option(
            "--cache/--no-cache",
            "is_cached",
            default=None,
            help="Keep what was read of large traces on disk.  [default: no-cache]",
        ),
    )

    @functools.wraps(command)
    def with_one(
        *, jobs: int | None, memory: str | None, is_cached: bool | None, **given: object
    ) -> None:
        effort = Effort(jobs=jobs, memory=memory, is_cached=is_cached, scheduler="")
        command(effort=effort, **given)

    return functools.reduce(lambda inner, option: option(inner), reversed(options), with_one)


def order_for(file: "TraceFile", steps: "tuple[Step, ...]", settings: "Settings") -> "ReadRequest":
    """Return the order to do this with a file, and to keep nothing but what comes out."""
    from stepscope import storage
    from stepscope.base.errors import UnreadableError
    from stepscope.readers.requests import ReadRequest

    stamp = file.listed
    if stamp is None:
        with suppress(OSError, UnreadableError):  # whoever reads it will say what is wrong
            stamp = storage.stamp(file.path)
    return ReadRequest(
        file=file, stamp=stamp, steps=steps, returns_trace=False, cache=settings.cache
    )


def order_to(
    task: "Callable[[Trace], Any]", file: "TraceFile", settings: "Settings"
) -> "ReadRequest":
    """Return the order to do this with a file; what comes of it is for `answer_of`."""
    from stepscope.readers.tasks import with_damage

    return order_for(file, (("analysing", functools.partial(with_damage, task=task)),), settings)


def answer_of(file: "TraceFile", outcome: "ReadResult") -> Any:  # noqa: ANN401
    """Return what came of a file; on standard error, say how it is damaged."""
    return answer_in(file, outcome.prepared)


def answer_in(file: "TraceFile", outcome: "ResultWithDamage") -> Any:  # noqa: ANN401
    """Return what came of a file; on standard error, say how it is damaged."""
    from stepscope.render import phrases

    for item in outcome.damage:
        click.echo(f"stepscope: {phrases.plain(file.path)}: {phrases.health(item)}", err=True)
    return outcome.result


def read(
    orders: "Sequence[ReadRequest]", settings: "Settings", on_result: "OnResult | None" = None
) -> "tuple[Outcome, ...]":
    """Carry out orders, and show on standard error how far they have come; Ctrl-C ends it at once.

    One file, or few small ones, are read here; others in processes of their own; all of them on a
    cluster where there is to be one. Answers are given to `on_result` as they come.

    Raises:
        NoClusterError: the cluster does not answer, or cannot be used.
    """
    from stepscope.readers.batch import read_all
    from stepscope.readers.memory_budget import MemoryBudget
    from stepscope.readers.pool import InProcessReader, ReaderPool

    with _progress(orders, "a worker" if settings.scheduler else "memory") as monitor:
        if settings.scheduler:
            with closing(cluster(settings)) as there:
                return (
                    there.read_all(orders, monitor=monitor, on_result=on_result) if orders else ()
                )
        if not _is_worth_processes(orders):
            return read_all(
                orders,
                InProcessReader(settings.memory_bytes),
                jobs=1,
                monitor=monitor,
                on_result=on_result,
            )
        with closing(ReaderPool(MemoryBudget(settings.memory_bytes), small_bytes=-1)) as readers:
            return read_all(
                orders, readers, jobs=settings.jobs, monitor=monitor, on_result=on_result
            )


def cluster(settings: "Settings") -> "Cluster":
    """Return the cluster that the user named; it says on standard error what it waits for."""
    from stepscope.readers.cluster import Cluster

    return Cluster(settings.scheduler, say=lambda text: click.echo(f"stepscope: {text}", err=True))


def _is_worth_processes(orders: "Sequence[ReadRequest]") -> bool:
    is_much = len(orders) > 1 and _inflated_bytes(orders) > WORTH_PROCESSES_BYTES
    return is_much or len(orders) >= MANY_COUNT


def _inflated_bytes(orders: "Sequence[ReadRequest]") -> int:
    from stepscope.readers import memory_estimate

    return sum(
        memory_estimate.inflated_bytes(order.file.path, order.stamp)
        for order in orders
        if order.stamp
    )


@contextmanager
def _progress(orders: "Sequence[ReadRequest]", awaited: str) -> "Iterator[ProgressMonitor]":
    from stepscope.readers.batch import no_monitor

    if not sys.stderr.isatty():
        yield no_monitor
        return
    from stepscope.cli.progress_board import board

    with board(orders, awaited=awaited) as monitor:
        yield monitor
