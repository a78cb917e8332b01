"""Many files for one who waits for all of them: the command line, a script."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from queue import SimpleQueue

from stepscope.base.errors import UnreadableError, unforeseen
from stepscope.readers.daemon_threads import DaemonThreads
from stepscope.readers.pool import Reader
from stepscope.readers.requests import Answer, Order, Stop, Tell

Outcome = Answer | UnreadableError
Watch = Callable[[Order], AbstractContextManager[Tell]]
"""Entered when the reading of a file begins, told how far that is, and left when it is over."""
Arrived = Callable[[Answer], Answer]
"""Given an answer as soon as it is there, on any thread; what it returns goes in its place."""


def unwatched(_: Order) -> AbstractContextManager[Tell]:
    """Nobody looks on."""
    return nullcontext(lambda _: None)


def read_all(
    orders: Sequence[Order],
    reader: Reader,
    *,
    jobs: int,
    watch: Watch = unwatched,
    arrived: Arrived | None = None,
) -> tuple[Outcome, ...]:
    """Carry out every order, `jobs` at once; return what each gave, in the orders' order."""
    outcomes: SimpleQueue[tuple[int, Outcome]] = SimpleQueue()

    def outcome(order: Order) -> Outcome:
        return _outcome(order, reader, watch, arrived)

    def job(place: int) -> Callable[[], None]:
        return lambda: outcomes.put((place, outcome(orders[place])))

    if jobs == 1 or len(orders) == 1:
        return tuple(map(outcome, orders))
    threads = DaemonThreads(min(jobs, len(orders)))
    for place in range(len(orders)):
        threads.submit(job(place))
    found = dict(outcomes.get() for _ in orders)
    return tuple(found[place] for place in range(len(orders)))


def _outcome(order: Order, reader: Reader, watch: Watch, arrived: Arrived | None) -> Outcome:
    try:
        with watch(order) as tell:
            answer = reader.read(order, tell, Stop())
            return arrived(answer) if arrived else answer
    except Exception as error:  # whatever is wrong with one file, the others go on
        return unforeseen(order.file.path, error)
