"""Which workers a cluster has, and which of them are asked."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from stepscope.readers.cluster.replies import CannotOpen

AHEAD = 2
"""Orders in flight for each thread: the next one is there when a worker has finished one."""
MOST_SLOTS = 2048
MOST_REFUSED = 2
"""Files that a worker could not open and others could: it is asked for no more."""


@dataclass(kw_only=True)
class Workers:
    """The workers that are there, by address, and what is known of them."""

    threads: dict[str, int] = field(default_factory=dict)
    unfit: dict[str, str] = field(default_factory=dict)
    """Why a worker cannot be asked: no stepscope, or another version."""
    _refused: Counter[str] = field(default_factory=Counter)

    @property
    def slots(self) -> int:
        """How many orders to have in flight."""
        threads = sum(self.threads[each] for each in self._fit())
        return min(MOST_SLOTS, max(1, AHEAD * threads))

    @property
    def is_ready(self) -> bool:
        """Whether any worker can be asked."""
        return bool(self._fit())

    def now(self, threads: Mapping[str, int]) -> list[str]:
        """Take over who is there now; return who has come."""
        fresh = [each for each in threads if each not in self.threads]
        self.threads = dict(threads)
        self.unfit = {each: why for each, why in self.unfit.items() if each in threads}
        return fresh

    def forget(self, workers: Collection[str]) -> None:
        """Know nothing of some workers: they come anew with the next look."""
        self.threads = {each: count for each, count in self.threads.items() if each not in workers}

    def asked(self, refusals: Collection[str]) -> list[str] | None:
        """Return who may be asked for a file that some refused; None where anybody may be."""
        fit = self._fit()
        left = [each for each in fit if each not in refusals]
        best = [each for each in left if self._refused[each] < MOST_REFUSED] or left
        return None if len(best) == len(self.threads) else _elsewhere(best, refusals)

    def was_seen(self, refusals: Iterable[CannotOpen]) -> list[CannotOpen]:
        """Note that others could open a file; return who is passed over from now on."""
        refusals = tuple(refusals)
        self._refused.update(each.worker for each in refusals)
        return [each for each in refusals if self._refused[each.worker] == MOST_REFUSED]

    def _fit(self) -> list[str]:
        return [each for each in self.threads if each not in self.unfit]


def _elsewhere(workers: list[str], refusals: Collection[str]) -> list[str]:
    """Return the workers on other hosts than those that refused, where there are any."""
    hosts = {_host(each) for each in refusals}
    return [each for each in workers if _host(each) not in hosts] or workers


def _host(address: str) -> str:
    return address.rpartition(":")[0]


def why_unfit(version: str | None, own: str) -> str | None:
    """Return why a worker with that version cannot be asked; None where it can."""
    if version == own:
        return None
    return f"stepscope {version}, not {own}" if version else "no stepscope"
