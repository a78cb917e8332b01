"""Cores and memory of this machine, or of its container, from `/proc` and `/sys/fs/cgroup`."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path, PurePosixPath

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

ROOT = Path("/")
UNKNOWN_BYTES = 4 * 2**30
"""Assumed memory of platforms that do not report it."""
FREE_SHARE = 0.5
"""Assumed free fraction of the memory on platforms that report only its size."""
CGROUPS = Path("sys/fs/cgroup")


def core_count(root: Path = ROOT) -> int:
    """Return the number of cores that this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min([count, *_core_quotas(root)]))


def available_bytes(root: Path = ROOT) -> int:
    """Return the memory that the machine, or the process's cgroup, has left for this process.

    On platforms that do not report it (Windows, macOS), it is a guess.
    """
    return max(0, min([_machine_bytes(root), *_cgroup_bytes(root)]))


def private_bytes() -> int | None:
    """Return the private memory of this process (the size of RLIMIT_DATA); None if unknown."""
    return _kilobytes(_text(ROOT / "proc/self/status"), "VmData")


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 if unknown."""
    return _kilobytes(_text(ROOT / "proc/self/status"), "VmRSS") or 0


def release_freed_memory() -> None:
    """Make the C library return freed memory to the system, if it can."""
    import ctypes  # noqa: PLC0415 (only reader processes need it)

    trim = None if os.name == "nt" else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextmanager
def data_limit(more_bytes: int | None) -> Iterator[None]:
    """Let this process allocate `more_bytes` more memory before it raises `MemoryError`.

    It has no effect on platforms without such a limit (Windows, macOS).
    """
    private = private_bytes()
    if more_bytes is None or private is None or os.name == "nt":
        yield
        return
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = [private + more_bytes, *(bound for bound in (before, most) if bound >= 0)]
    resource.setrlimit(resource.RLIMIT_DATA, (min(allowed), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


def _machine_bytes(root: Path) -> int:
    available = _kilobytes(_text(root / "proc/meminfo"), "MemAvailable")
    if available is not None:
        return available
    try:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * FREE_SHARE)
    except (AttributeError, OSError, ValueError):
        return UNKNOWN_BYTES


def _cgroup_bytes(root: Path) -> Iterator[int]:
    """Yield the free memory of each cgroup of this process."""
    for folder in _cgroups(root, "", "memory"):
        limit = _number(folder, "memory.max", "memory.limit_in_bytes")
        used = _number(folder, "memory.current", "memory.usage_in_bytes")
        if limit is not None and used is not None:
            yield limit - used + _file_cache_bytes(folder)


def _file_cache_bytes(folder: Path) -> int:
    """Return the file cache of a cgroup, which is freed when memory is short."""
    for line in _text(folder / "memory.stat").splitlines():
        name, _, number = line.partition(" ")
        if name in {"inactive_file", "total_inactive_file"} and number.isdecimal():
            return int(number)
    return 0


def _core_quotas(root: Path) -> Iterator[int]:
    for folder in _cgroups(root, "", "cpu"):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        quota = quota or _text(folder / "cpu.cfs_quota_us")
        period = period or _text(folder / "cpu.cfs_period_us")
        if quota.strip().isdecimal() and period.strip().isdecimal() and int(period):
            yield max(1, ceil(int(quota) / int(period)))


def _cgroups(root: Path, *controllers: str) -> Iterator[Path]:
    """Yield the folders of the cgroups that limit this process, and their parents.

    `""` is the hierarchy of version 2. In a container the path may be the host's; then the folder
    of the mount is the container's.
    """
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for controller in set(controllers).intersection(names.split(",")):
            cgroup = PurePosixPath(path)
            for folder in (cgroup, *cgroup.parents):
                yield root / CGROUPS / controller / str(folder).lstrip("/")


def _number(folder: Path, *names: str) -> int | None:
    for name in names:
        text = _text(folder / name).strip()
        if text.isdecimal():
            return int(text)
    return None


def _kilobytes(table: str, name: str) -> int | None:
    for line in table.splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * 1024
    return None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
