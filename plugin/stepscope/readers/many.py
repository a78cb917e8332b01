"""Many files for one who waits for all of them: the command line, a script."""

from collections.abc import Callable, Sequence
from queue import SimpleQueue

from stepscope.errors import UnreadableError, unforeseen
from stepscope.readers.orders import Answer, Order, Stop, Tell
from stepscope.readers.pool import Reader
from stepscope.readers.threads import DaemonThreads

Outcome = Answer | UnreadableError
Watch = Callable[[Order], Tell]
"""Called when the reading of a file begins; what it returns is told how far that has come."""


def read_all(
    orders: Sequence[Order], reader: Reader, *, jobs: int, watch: Watch
) -> tuple[Outcome, ...]:
    """Carry out every order, `jobs` at once; return what each gave, in the orders' order."""
    outcomes: SimpleQueue[tuple[int, Outcome]] = SimpleQueue()

    def job(place: int) -> Callable[[], None]:
        return lambda: outcomes.put((place, _outcome(orders[place], reader, watch)))

    if jobs == 1 or len(orders) == 1:
        return tuple(_outcome(order, reader, watch) for order in orders)
    threads = DaemonThreads(min(jobs, len(orders)))
    for place in range(len(orders)):
        threads.submit(job(place))
    found = dict(outcomes.get() for _ in orders)
    return tuple(found[place] for place in range(len(orders)))


def _outcome(order: Order, reader: Reader, watch: Watch) -> Outcome:
    try:
        return reader.read(order, watch(order), Stop())
    except Exception as error:  # whatever is wrong with one file, the others go on
        return unforeseen(order.file.path, error)
