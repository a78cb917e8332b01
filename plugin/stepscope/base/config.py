"""User settings from options and the environment, read once and frozen."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from stepscope.base import host_limits
from stepscope.base.errors import UsageError

MEMORY_SHARE = 0.5
"""Default fraction of the memory that is free at the start."""
LEAST_MEMORY_BYTES = 256 * 2**20
"""Minimum memory to read a small trace."""
MOST_JOBS = 16
"""Default limit: with more, the disk is the bottleneck."""
SIZE = re.compile(r"(?P<number>[0-9]+(?:\.[0-9]+)?)\s*(?P<unit>[KMGT]?)(?:i?B)?", re.IGNORECASE)
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
MOST_BYTES = 2**60
"""A larger size means the same: no limit."""
MOST_NUMBER = 9 * 10**9
"""A larger number means the same; timers do not take seconds of more than three centuries."""
MOST_DIGITS = 1_000
"""Digits of a number that are read: Python refuses to read thousands."""
MANY_RECORDINGS = 16
"""Runs with at least this number of traces get summaries by default."""
OFF = frozenset({"", "0", "no", "off", "false"})
ON = frozenset({"1", "yes", "on", "true"})


@dataclass(frozen=True, kw_only=True)
class FileLimits:
    """Limits per file: one beyond them is refused with an error that names the setting."""

    json_bytes: int = 64 * 2**30
    """Size of the JSON: 64 GiB far exceeds memory, even as columns. `STEPSCOPE_MAX_JSON`."""
    events: int = 500_000_000
    """Small events reach this limit long before the bytes reach theirs. `STEPSCOPE_MAX_EVENTS`."""
    ratio: int = 250
    """Bytes of JSON per compressed byte, beyond the first GiB: traces have 10 to 30, zeros 1000.
    `STEPSCOPE_MAX_RATIO`."""


@dataclass(frozen=True, kw_only=True)
class CacheSettings:
    """Location and size of the cache of parsed traces."""

    folder: str | None = None
    """The user's cache folder if empty, no cache if None. `STEPSCOPE_CACHE` is a folder, or `1`."""
    worth_bytes: int = 200_000_000
    """Minimum JSON size of cached files: smaller ones are read again as fast.
    `STEPSCOPE_CACHE_FROM`.
    """
    bound_bytes: int = 10 * 2**30
    """Size limit; the least recently used files are removed. `STEPSCOPE_CACHE_SIZE`."""


@dataclass(frozen=True, kw_only=True)
class SummarySettings:
    """Location and size of the stored summaries of traces."""

    location: str | None = None
    """A folder or URL; the user's cache folder if empty; nothing is stored if None.
    `STEPSCOPE_SUMMARIES` is a location, `1` or `0`.
    """
    least_count: int = 1
    """Minimum number of traces of a run to store its summaries."""
    bound_bytes: int = 10 * 2**30
    """Size limit of a local folder; the least recently used files are removed.
    `STEPSCOPE_SUMMARIES_SIZE`."""

    def is_for(self, count: int) -> bool:
        """Return whether the summaries of a run with `count` traces are stored."""
        return self.location is not None and count >= self.least_count


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Memory and cores for reading, and the caches."""

    memory_bytes: int = 4 * 2**30
    """Shared by the files being read and the cached traces. `STEPSCOPE_MEMORY`."""
    jobs: int = 2
    """Number of files to read in parallel. `STEPSCOPE_JOBS`."""
    rescan_seconds: int = 10
    """Pause between two scans for new files. `STEPSCOPE_RESCAN_SECONDS`."""
    response_seconds: int = 60
    """Time limit of a response that a server computes from traces. `STEPSCOPE_RESPONSE_SECONDS`."""
    cache: CacheSettings = field(default_factory=CacheSettings)
    summaries: SummarySettings = field(default_factory=SummarySettings)
    scheduler: str = ""
    """Address of the Dask scheduler whose workers read the files, or a file with its address; if
    empty, this machine reads them. `STEPSCOPE_SCHEDULER`, with `DASK_SCHEDULER_ADDRESS` as
    fallback.
    """


def file_limits(environment: Mapping[str, str] = os.environ) -> FileLimits:
    """Return the limits per file from the environment, which child processes inherit.

    Raises:
        UsageError: A value is not a number or size.
    """
    default = FileLimits()
    return FileLimits(
        json_bytes=_size(environment, "STEPSCOPE_MAX_JSON", default.json_bytes),
        events=_whole(environment, "STEPSCOPE_MAX_EVENTS", default.events),
        ratio=_whole(environment, "STEPSCOPE_MAX_RATIO", default.ratio),
    )


def settings(  # noqa: PLR0913 (one argument a setting)
    environment: Mapping[str, str] = os.environ,
    *,
    jobs: int | None = None,
    memory: str | None = None,
    cache: str | None = None,
    summaries: str | None = None,
    scheduler: str | None = None,
    response_seconds: int | None = None,
) -> Settings:
    """Return the user's settings; arguments take precedence over the environment.

    By default, memory is a fraction of the free memory, and the number of jobs is that of cores.

    Raises:
        UsageError: A value is not a number or size, or is too small.
    """
    default = Settings()
    file_limits(environment)  # reports invalid values before a file is read
    return Settings(
        memory_bytes=_memory_bytes(environment, memory),
        jobs=_jobs(environment, jobs),
        rescan_seconds=_whole(environment, "STEPSCOPE_RESCAN_SECONDS", default.rescan_seconds),
        response_seconds=_response_seconds(environment, response_seconds),
        cache=_cache(environment, cache),
        summaries=_summaries(
            environment, summaries, is_cache_refused=_is_cache_refused(environment, cache)
        ),
        scheduler=_scheduler(environment, scheduler),
    )


def size_bytes(text: str, name: str) -> int:
    """Return a size like `8G`, `512M` or `1.5GiB` in bytes; units are powers of 1024.

    Raises:
        UsageError: The text is not a size; `name` is the setting for the message.
    """
    match = SIZE.fullmatch(text.strip())
    if match is None:
        msg = f"{name} is {text!r}: it must be a size, such as 8G or 512M"
        raise UsageError(msg)
    return int(min(float(match["number"]) * UNITS[match["unit"].upper()], MOST_BYTES))


def _jobs(environment: Mapping[str, str], option: int | None) -> int:
    if option is None:
        return _whole(environment, "STEPSCOPE_JOBS", min(host_limits.core_count(), MOST_JOBS))
    return _whole({"jobs": str(option)}, "jobs", 1)


def _response_seconds(environment: Mapping[str, str], option: int | None) -> int:
    if option is None:
        return _whole(environment, "STEPSCOPE_RESPONSE_SECONDS", Settings().response_seconds)
    return _whole({"response-seconds": str(option)}, "response-seconds", 1)


def _memory_bytes(environment: Mapping[str, str], option: str | None) -> int:
    name = "--memory" if option else "STEPSCOPE_MEMORY"
    text = option or environment.get(name, "").strip()
    if not text:
        return max(LEAST_MEMORY_BYTES, int(host_limits.available_bytes() * MEMORY_SHARE))
    if (size := size_bytes(text, name)) >= LEAST_MEMORY_BYTES:
        return size
    msg = f"{name} is {text!r}: less than {LEAST_MEMORY_BYTES // 2**20}M is too little"
    raise UsageError(msg)


def _scheduler(environment: Mapping[str, str], option: str | None) -> str:
    if option is not None:
        return option.strip()
    setting = environment.get("STEPSCOPE_SCHEDULER", "").strip()
    return setting or environment.get("DASK_SCHEDULER_ADDRESS", "").strip()


def _cache(environment: Mapping[str, str], option: str | None) -> CacheSettings:
    default = CacheSettings()
    text = (environment.get("STEPSCOPE_CACHE", "") if option is None else option).strip()
    is_on = text.lower() not in OFF
    if is_on and find_spec("pyarrow") is None:
        msg = "caching traces on disk needs pyarrow: pip install 'stepscope[cache]'"
        raise UsageError(msg)
    folder = "" if text.lower() in ON else text
    return CacheSettings(
        folder=folder if is_on else None,
        worth_bytes=_size(environment, "STEPSCOPE_CACHE_FROM", default.worth_bytes),
        bound_bytes=_size(environment, "STEPSCOPE_CACHE_SIZE", default.bound_bytes),
    )


def _is_cache_refused(environment: Mapping[str, str], option: str | None) -> bool:
    """Return whether the user disabled the cache."""
    setting = environment.get("STEPSCOPE_CACHE", "").strip() or None if option is None else option
    return setting is not None and setting.strip().lower() in OFF


def _summaries(
    environment: Mapping[str, str], option: str | None, *, is_cache_refused: bool
) -> SummarySettings:
    """Return the summary settings; by default, only large runs get summaries."""
    setting = (environment.get("STEPSCOPE_SUMMARIES", "") if option is None else option).strip()
    bound_bytes = _size(environment, "STEPSCOPE_SUMMARIES_SIZE", SummarySettings().bound_bytes)
    can_keep = find_spec("pyarrow") and find_spec("platformdirs")
    if not setting and can_keep and not is_cache_refused:
        return SummarySettings(location="", least_count=MANY_RECORDINGS, bound_bytes=bound_bytes)
    if not setting or setting.lower() in OFF:
        return SummarySettings(bound_bytes=bound_bytes)
    location = "" if setting.lower() in ON else setting
    missing = [package for package in ("pyarrow", "platformdirs") if find_spec(package) is None]
    if "pyarrow" in missing or (missing and not location):
        msg = f"storing summaries needs {missing[0]}: pip install 'stepscope[cache]'"
        raise UsageError(msg)
    return SummarySettings(location=location, bound_bytes=bound_bytes)


def _size(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    return size_bytes(text, name) if text else default


def _whole(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip().replace("_", "")
    if not text:
        return default
    digits = text.lstrip("0")
    if not digits.isascii() or not digits.isdecimal():
        msg = f"{name} is {text!r}: it must be a whole number above zero"
        raise UsageError(msg)
    return min(int(digits[:MOST_DIGITS]), MOST_NUMBER)
