"""What the user can set, by an option or in the environment, read once and frozen."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from stepscope.base import host_limits
from stepscope.base.errors import UsageError

MEMORY_SHARE = 0.5
"""Of the memory that is free at the start, what is ours where the user does not say it."""
LEAST_MEMORY_BYTES = 256 * 2**20
"""With less than this not even a small recording can be read."""
MOST_JOBS = 16
"""Unless the user says more: by then it is the disk that is slow."""
SIZE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[KMGT]?)(?:i?B)?", re.IGNORECASE)
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
MANY_RECORDINGS = 16
"""A run of so many is worth being remembered, whether or not the user said so."""
OFF = frozenset({"", "0", "no", "off", "false"})
ON = frozenset({"1", "yes", "on", "true"})


@dataclass(frozen=True, kw_only=True)
class CacheSettings:
    """Whether what was read is kept on disk, and how much of it."""

    folder: str | None = None
    """Where; the user's own cache folder where it is empty, nowhere where it is None.
    `STEPSCOPE_CACHE` is a folder, or `1`."""
    worth_bytes: int = 200_000_000
    """JSON from which keeping it pays: less is read anew as fast. `STEPSCOPE_CACHE_FROM`."""
    bound_bytes: int = 10 * 2**30
    """Beyond that, what was used least lately is removed. `STEPSCOPE_CACHE_SIZE`."""


@dataclass(frozen=True, kw_only=True)
class SummarySettings:
    """Whether summaries of recordings are kept, so that these need not be read again."""

    location: str | None = None
    """A folder or an address; the user's own cache folder where it is empty, nowhere where it is
    None. `STEPSCOPE_SUMMARIES` is a place, `1` or `0`."""
    least_count: int = 1
    """Recordings of a run from which on theirs are kept."""
    bound_bytes: int = 10 * 2**30
    """Beyond that, of a local place, what was used least lately is removed.
    `STEPSCOPE_SUMMARIES_SIZE`."""

    def is_for(self, count: int) -> bool:
        """Tell whether the recordings of a run of so many are kept."""
        return self.location is not None and count >= self.least_count


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How much memory and how many cores reading may take, and what is kept of what was read."""

    memory_bytes: int = 4 * 2**30
    """For the files being read and the recordings that are kept, together. `STEPSCOPE_MEMORY`."""
    jobs: int = 2
    """Files read at once. `STEPSCOPE_JOBS`."""
    rescan_seconds: int = 10
    """Pause between two looks for new files. `STEPSCOPE_RESCAN_SECONDS`."""
    cache: CacheSettings = field(default_factory=CacheSettings)
    summaries: SummarySettings = field(default_factory=SummarySettings)
    scheduler: str = ""
    """The Dask scheduler whose workers read the files, or the file that tells its address; where it
    is empty, this machine reads them. `STEPSCOPE_SCHEDULER`, or else `DASK_SCHEDULER_ADDRESS`."""


def settings(  # noqa: PLR0913 (each is something a user may say)
    environment: Mapping[str, str] = os.environ,
    *,
    jobs: int | None = None,
    memory: str | None = None,
    cache: str | None = None,
    summaries: str | None = None,
    scheduler: str | None = None,
) -> Settings:
    """Return the user's settings; what is given here goes before the environment.

    Without a word of the user, memory is a share of what is free now, and there are as many jobs
    as cores.

    Raises:
        UsageError: a value is no number, no size, or too small.
    """
    default = Settings()
    return Settings(
        memory_bytes=_memory_bytes(environment, memory),
        jobs=_jobs(environment, jobs),
        rescan_seconds=_whole(environment, "STEPSCOPE_RESCAN_SECONDS", default.rescan_seconds),
        cache=_cache(environment, cache),
        summaries=_summaries(
            environment, summaries, is_cache_refused=_is_cache_refused(environment, cache)
        ),
        scheduler=_scheduler(environment, scheduler),
    )


def size_bytes(text: str, name: str) -> int:
    """Return a size like `8G`, `512M` or `1.5GiB` in bytes; units are powers of 1024.

    Raises:
        UsageError: it is no size; `name` says what was set to it.
    """
    match = SIZE.fullmatch(text.strip())
    if match is None:
        msg = f"{name} is {text!r}: it must be a size, such as 8G or 512M"
        raise UsageError(msg)
    return int(float(match["number"]) * UNITS[match["unit"].upper()])


def _jobs(environment: Mapping[str, str], given: int | None) -> int:
    if given is None:
        return _whole(environment, "STEPSCOPE_JOBS", min(host_limits.core_count(), MOST_JOBS))
    return _whole({"jobs": str(given)}, "jobs", 1)


def _memory_bytes(environment: Mapping[str, str], given: str | None) -> int:
    name = "--memory" if given else "STEPSCOPE_MEMORY"
    text = given or environment.get(name, "").strip()
    if not text:
        return max(LEAST_MEMORY_BYTES, int(host_limits.available_bytes() * MEMORY_SHARE))
    if (wanted := size_bytes(text, name)) >= LEAST_MEMORY_BYTES:
        return wanted
    msg = f"{name} is {text!r}: less than {LEAST_MEMORY_BYTES // 2**20}M reads nothing"
    raise UsageError(msg)


def _scheduler(environment: Mapping[str, str], given: str | None) -> str:
    if given is not None:
        return given.strip()
    said = environment.get("STEPSCOPE_SCHEDULER", "").strip()
    return said or environment.get("DASK_SCHEDULER_ADDRESS", "").strip()


def _cache(environment: Mapping[str, str], given: str | None) -> CacheSettings:
    default = CacheSettings()
    text = (environment.get("STEPSCOPE_CACHE", "") if given is None else given).strip()
    is_on = text.lower() not in OFF
    if is_on and find_spec("pyarrow") is None:
        msg = "to keep traces on disk needs pyarrow: pip install 'stepscope[cache]'"
        raise UsageError(msg)
    folder = "" if text.lower() in ON else text
    return CacheSettings(
        folder=folder if is_on else None,
        worth_bytes=_size(environment, "STEPSCOPE_CACHE_FROM", default.worth_bytes),
        bound_bytes=_size(environment, "STEPSCOPE_CACHE_SIZE", default.bound_bytes),
    )


def _is_cache_refused(environment: Mapping[str, str], given: str | None) -> bool:
    """Tell whether the user said that nothing is to be kept; without a word, nobody did."""
    said = environment.get("STEPSCOPE_CACHE", "").strip() or None if given is None else given
    return said is not None and said.strip().lower() in OFF


def _summaries(
    environment: Mapping[str, str], given: str | None, *, is_cache_refused: bool
) -> SummarySettings:
    """Return where summaries are kept; without a word of the user, those of large runs are."""
    said = (environment.get("STEPSCOPE_SUMMARIES", "") if given is None else given).strip()
    bound_bytes = _size(environment, "STEPSCOPE_SUMMARIES_SIZE", SummarySettings().bound_bytes)
    can_keep = find_spec("pyarrow") and find_spec("platformdirs")
    if not said and can_keep and not is_cache_refused:
        return SummarySettings(location="", least_count=MANY_RECORDINGS, bound_bytes=bound_bytes)
    if not said or said.lower() in OFF:
        return SummarySettings(bound_bytes=bound_bytes)
    place = "" if said.lower() in ON else said
    missing = [each for each in ("pyarrow", "platformdirs") if find_spec(each) is None]
    if "pyarrow" in missing or (missing and not place):
        msg = f"to keep summaries needs {missing[0]}: pip install 'stepscope[cache]'"
        raise UsageError(msg)
    return SummarySettings(location=place, bound_bytes=bound_bytes)


def _size(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    return size_bytes(text, name) if text else default


def _whole(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip().replace("_", "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        msg = f"{name} is {text!r}: it must be a whole number above zero"
        raise UsageError(msg)
    return int(text)
