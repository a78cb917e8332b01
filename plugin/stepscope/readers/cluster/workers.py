"""The workers of a cluster, and the selection of those that may read a file."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from stepscope.readers.cluster.replies import CannotOpen

AHEAD = 2
"""Requests in flight per thread, so that a worker that finishes one can start the next."""
MOST_SLOTS = 2048
MOST_REFUSED = 2
"""Number of files that only this worker could not open, after which it is excluded."""


@dataclass(kw_only=True)
class Workers:
    """The connected workers, by address."""

    threads: dict[str, int] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    """Unusable workers, with the reason: no stepscope, or another version."""
    _refused: Counter[str] = field(default_factory=Counter)

    @property
    def slots(self) -> int:
        """Number of requests to have in flight."""
        threads = sum(self.threads[worker] for worker in self._fit())
        return min(MOST_SLOTS, max(1, AHEAD * threads))

    @property
    def is_ready(self) -> bool:
        """True if any worker is usable."""
        return bool(self._fit())

    def update(self, threads: Mapping[str, int]) -> list[str]:
        """Set the connected workers; return new ones."""
        fresh = [worker for worker in threads if worker not in self.threads]
        self.threads = dict(threads)
        self.unfit = {worker: why for worker, why in self.unfit.items() if worker in threads}
        return fresh

    def forget(self, workers: Collection[str]) -> None:
        """Remove workers, so that the next update returns them as new."""
        self.threads = {
            worker: count for worker, count in self.threads.items() if worker not in workers
        }

    def candidates(self, refusals: Collection[str]) -> list[str] | None:
        """Return the workers that may read a file which some refused; None if all may."""
        left = [worker for worker in self._fit() if worker not in refusals]
        best = [worker for worker in left if self._refused[worker] < MOST_REFUSED] or left
        return None if len(best) == len(self.threads) else _on_other_hosts(best, refusals)

    def count_refusals(self, refusals: Iterable[CannotOpen]) -> list[CannotOpen]:
        """Count refusals of a file that others could open; return those of excluded workers."""
        refusals = tuple(refusals)
        self._refused.update(refusal.worker for refusal in refusals)
        return [refusal for refusal in refusals if self._refused[refusal.worker] == MOST_REFUSED]

    def _fit(self) -> list[str]:
        return [worker for worker in self.threads if worker not in self.unfit]


def _on_other_hosts(workers: list[str], refusals: Collection[str]) -> list[str]:
    """Return the workers on hosts without a refusal, if any."""
    hosts = {_host(worker) for worker in refusals}
    return [worker for worker in workers if _host(worker) not in hosts] or workers


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def unfit_reason(version: str | None, local_version: str) -> str | None:
    """Return the reason why a worker with a version is unusable; None if it is usable."""
    if version == local_version:
        return None
    return f"stepscope {version}, not {local_version}" if version else "no stepscope"
