"""Parts of the advice that may fail alone: a failed part is left out, and a health item says so."""

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from stepscope.analyses.health import failed_item, severity_order
from stepscope.base.errors import UsageError, in_one_line
from stepscope.base.report import HealthItem, WorkerReport

T = TypeVar("T")
U = TypeVar("U")

log = logging.getLogger(__name__)


class Parts:
    """Computes the parts of one advice, and collects those that failed."""

    def __init__(self, subject: str) -> None:
        self._subject = subject
        self._failures: list[HealthItem] = []

    def of(self, name: str, compute: Callable[[], T], otherwise: U) -> T | U:
        """Return a part, or `otherwise` where computing it fails.

        Raises:
            MemoryError: The machine has too little memory; the caller reports it.
            UsageError: The settings are invalid.
        """
        try:
            return compute()
        except (MemoryError, UsageError):
            raise
        except Exception as error:  # a bug in one part must not hide the others
            reason = in_one_line(error)
            log.warning("%s of %s failed: %s", name, self._subject, reason)
            self._failures.append(failed_item(f"{name} is left out: stepscope failed ({reason})"))
            return otherwise

    def with_failures(self, worker: WorkerReport) -> WorkerReport:
        """Return a trace's report with a health item that names the failed parts."""
        return with_items(worker, self._failures)


def with_items(worker: WorkerReport, items: Iterable[HealthItem]) -> WorkerReport:
    """Return a trace's report with further health items, each once."""
    new = [item for item in items if item not in worker.health]
    if not new:
        return worker
    health = tuple(sorted((*worker.health, *new), key=severity_order))
    return msgspec.structs.replace(worker, health=health)
