"""How commands read files: how many at once, in how much memory, and how far they have come."""

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from stepscope.config import Settings
    from stepscope.discover import TraceFile
    from stepscope.readers.many import Outcome, Watch
    from stepscope.readers.orders import Answer, Order, Step
    from stepscope.trace import Trace

WORTH_PROCESSES_BYTES = 256 * 2**20
"""Several files of less JSON than this together are read sooner than processes are started."""


@dataclass(frozen=True, kw_only=True)
class Effort:
    """What reading may take, as the user said it."""

    jobs: int | None
    memory: str | None
    is_cached: bool | None

    def settings(self) -> "Settings":
        """Return it with what the environment says, and the machine.

        Raises:
            UsageError: it is no number, no size, or too small.
        """
        from stepscope.config import settings

        cache = None if self.is_cached is None else str(int(self.is_cached))
        return settings(jobs=self.jobs, memory=self.memory, cache=cache)


def with_effort(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say what reading may take, as `effort`."""
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
        command(effort=Effort(jobs=jobs, memory=memory, is_cached=is_cached), **given)

    return functools.reduce(lambda inner, option: option(inner), reversed(options), with_one)


def order_for(file: "TraceFile", steps: "tuple[Step, ...]", settings: "Settings") -> "Order":
    """Return the order to do this with a file, and to keep nothing but what comes out."""
    from stepscope import storage
    from stepscope.errors import UnreadableError
    from stepscope.readers.orders import Order

    stamp = file.listed
    if stamp is None:
        with suppress(OSError, UnreadableError):  # whoever reads it will say what is wrong
            stamp = storage.stamp(file.path)
    return Order(file=file, stamp=stamp, steps=steps, is_kept=False, cache=settings.cache)


def order_to(task: "Callable[[Trace], Any]", file: "TraceFile", settings: "Settings") -> "Order":
    """Return the order to do this with a file; what comes of it is for `answer_of`."""
    from stepscope.readers.tasks import warned

    return order_for(file, (("analysing", functools.partial(warned, task=task)),), settings)


def answer_of(file: "TraceFile", outcome: "Answer") -> Any:  # noqa: ANN401
    """Return what came of a file; on standard error, say how it is damaged."""
    from stepscope.render import words

    for item in outcome.prepared.damage:
        click.echo(f"stepscope: {words.plain(file.path)}: {words.health(item)}", err=True)
    return outcome.prepared.answer


def read(orders: "Sequence[Order]", settings: "Settings") -> "tuple[Outcome, ...]":
    """Carry out orders, and show on standard error how far they have come; Ctrl-C ends it at once.

    One file, or few small ones, are read here; others in processes of their own.
    """
    from stepscope.readers.many import read_all
    from stepscope.readers.pool import Here, Readers
    from stepscope.readers.room import Room

    with _progress(orders) as watch:
        if len(orders) == 1 or _inflated_bytes(orders) <= WORTH_PROCESSES_BYTES:
            return read_all(orders, Here(settings.memory_bytes), jobs=1, watch=watch)
        with closing(Readers(Room(settings.memory_bytes), small_bytes=-1)) as readers:
            return read_all(orders, readers, jobs=settings.jobs, watch=watch)


def _inflated_bytes(orders: "Sequence[Order]") -> int:
    from stepscope.readers import need

    return sum(need.inflated_bytes(order.file.path, order.stamp) for order in orders if order.stamp)


@contextmanager
def _progress(orders: "Sequence[Order]") -> "Iterator[Watch]":
    from stepscope.readers.many import unwatched

    if not sys.stderr.isatty():
        yield unwatched
        return
    from stepscope.cli.board import board

    with board(orders) as watch:
        yield watch
