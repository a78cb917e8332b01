"""Reading of files by commands: parallelism, memory, progress."""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from stepscope.base.plain_text import plain
from stepscope.cli.options import with_options
from stepscope.cli.output import write_message

if TYPE_CHECKING:
    from stepscope.base.config import Settings
    from stepscope.model.trace import Trace
    from stepscope.readers.batch import OnResult, Outcome, ProgressMonitor
    from stepscope.readers.cluster import Cluster
    from stepscope.readers.requests import ReadRequest, ReadResult, Step
    from stepscope.readers.tasks import ResultWithDamage
    from stepscope.storage.discover import TraceFile

WORTH_PROCESSES_BYTES = 256 * 2**20
"""JSON size from which reading in processes is worthwhile: with less, reading here ends before
processes have started, unless there are many files, since each has a fixed cost.
"""
MANY_COUNT = 16


@dataclass(frozen=True, kw_only=True)
class Effort:
    """The user's limits for reading: processes, memory, caches, cluster."""

    jobs: int | None
    memory: str | None
    is_cached: bool | None
    scheduler: str | None = None
    summaries: str | None = None

    def settings(self, response_seconds: int | None = None) -> "Settings":
        """Return the settings, completed from the environment and the machine.

        `response_seconds` is the time limit of a server's answers.

        Raises:
            UsageError: A value is invalid or too small.
        """
        from stepscope.base.config import settings

        cache = None if self.is_cached is None else str(int(self.is_cached))
        return settings(
            jobs=self.jobs,
            memory=self.memory,
            cache=cache,
            scheduler=self.scheduler,
            summaries=self.summaries,
            response_seconds=response_seconds,
        )


_LOCAL_OPTIONS = (
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        help="Number of files to read at once.  [default: number of cores]",
    ),
    click.option(
        "--memory",
        metavar="SIZE",
        help="Memory limit for traces, such as 8G.  [default: half of the free memory]",
    ),
    click.option(
        "--cache/--no-cache",
        "is_cached",
        default=None,
        help="Cache large traces on disk after reading.  [default: no-cache]",
    ),
)
with_local_effort = with_options("effort", Effort, *_LOCAL_OPTIONS, scheduler="")
"""Add the options of `Effort` for reading on this machine, as `effort`."""
with_effort = with_options(
    "effort",
    Effort,
    *_LOCAL_OPTIONS,
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Read on a Dask cluster: tcp://HOST:8786, or a scheduler file."
        "  [default: this machine]",
    ),
)
"""Add the options of `Effort`, including the cluster, as `effort`."""
with_summaries = click.option(
    "--summaries",
    metavar="LOCATION",
    help="Save summaries of traces in this location, to skip reading the files again: a folder, "
    "s3://…, 1 for your cache folder, 0 for nowhere.  [default: 1 for runs of 16 or more]",
)
"""Add the option of `Effort` for summaries; to be applied before `with_effort`."""


def request_for(
    file: "TraceFile", steps: "tuple[Step, ...]", settings: "Settings"
) -> "ReadRequest":
    """Return a request that runs steps on a file and returns only their result."""
    from stepscope import storage
    from stepscope.base.errors import UnreadableError
    from stepscope.readers.requests import ReadRequest

    stamp = file.listed
    if stamp is None:
        with suppress(OSError, UnreadableError):  # the reader reports the problem
            stamp = storage.stamp(file.path)
    return ReadRequest(
        file=file, stamp=stamp, steps=steps, returns_trace=False, cache=settings.cache
    )


def request_to(
    task: "Callable[[Trace], Any]", file: "TraceFile", settings: "Settings"
) -> "ReadRequest":
    """Return a request that runs a task on a file; `result_of` takes its result."""
    from stepscope.readers.tasks import with_damage

    return request_for(file, (("analysing", functools.partial(with_damage, task=task)),), settings)


def result_of(file: "TraceFile", outcome: "ReadResult") -> Any:  # noqa: ANN401
    """Return a task's result, and print the file's damage to standard error."""
    return result_in(file, outcome.prepared)


def result_in(file: "TraceFile", outcome: "ResultWithDamage") -> Any:  # noqa: ANN401
    """Return a task's result, and print the file's damage to standard error."""
    from stepscope.render import phrases

    for item in outcome.damage:
        write_message(f"{plain(file.path)}: {phrases.health(item)}")
    return outcome.result


def read(
    requests: "Sequence[ReadRequest]", settings: "Settings", on_result: "OnResult | None" = None
) -> "tuple[Outcome, ...]":
    """Return the outcomes of requests, with progress on standard error; Ctrl-C stops at once.

    One file or few small files are read in this process, others in child processes, or all on the
    cluster. `on_result` receives the results as they arrive.

    Raises:
        NoClusterError: The cluster does not respond, or cannot be used.
    """
    from stepscope.readers.batch import read_all
    from stepscope.readers.memory_budget import MemoryBudget
    from stepscope.readers.pool import InProcessReader, ReaderPool

    with _progress(requests, "a worker" if settings.scheduler else "memory") as monitor:
        if settings.scheduler:
            with closing(cluster(settings)) as workers:
                if not requests:
                    return ()
                return workers.read_all(requests, monitor=monitor, on_result=on_result)
        if not _is_worth_processes(requests):
            return read_all(
                requests,
                InProcessReader(settings.memory_bytes),
                jobs=1,
                monitor=monitor,
                on_result=on_result,
            )
        with closing(ReaderPool(MemoryBudget(settings.memory_bytes), small_bytes=-1)) as readers:
            return read_all(
                requests, readers, jobs=settings.jobs, monitor=monitor, on_result=on_result
            )


def cluster(settings: "Settings") -> "Cluster":
    """Return the user's cluster, which reports waiting on standard error."""
    from stepscope.readers.cluster import Cluster

    return Cluster(settings.scheduler, say=write_message)


def _is_worth_processes(requests: "Sequence[ReadRequest]") -> bool:
    is_much = len(requests) > 1 and _inflated_bytes(requests) > WORTH_PROCESSES_BYTES
    return is_much or len(requests) >= MANY_COUNT


def _inflated_bytes(requests: "Sequence[ReadRequest]") -> int:
    from stepscope.readers import memory_estimate

    return sum(
        memory_estimate.inflated_bytes(request.file.path, request.stamp)
        for request in requests
        if request.stamp
    )


@contextmanager
def _progress(requests: "Sequence[ReadRequest]", awaited: str) -> "Iterator[ProgressMonitor]":
    from stepscope.readers.batch import no_monitor

    if not sys.stderr.isatty():
        yield no_monitor
        return
    from stepscope.cli.progress_board import board

    with board(requests, awaited=awaited) as monitor:
        yield monitor
