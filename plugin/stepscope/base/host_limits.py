"""What this machine, or the container around us, gives: cores, memory, and a limit of our own.

What is read here of `/proc` and `/sys/fs/cgroup` are the kernel's answers, nobody's files.
"""

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
"""Where a platform does not tell how much memory it has."""
FREE_SHARE = 0.5
"""Of all memory, what counts as free where a platform tells no more than that."""
CGROUPS = Path("sys/fs/cgroup")


def core_count(root: Path = ROOT) -> int:
    """Return how many cores this process may use, at least 1."""
    if hasattr(os, "sched_getaffinity"):
        count = len(os.sched_getaffinity(0))
    else:
        count = os.cpu_count() or 1
    return max(1, min([count, *_core_quotas(root)]))


def available_bytes(root: Path = ROOT) -> int:
    """Return how much more memory this process may take before the machine, or its cgroup, is full.

    Where the platform does not say that (Windows, macOS), it is a guess.
    """
    return max(0, min([_machine_bytes(root), *_cgroup_bytes(root)]))


def private_bytes() -> int | None:
    """Return how much memory this process has of its own; None where the platform does not tell.

    It is what RLIMIT_DATA counts.
    """
    return _kilobytes(_text(ROOT / "proc/self/status"), "VmData")


def resident_bytes() -> int:
    """Return how much of the machine's memory this process takes; 0 where that is not told."""
    return _kilobytes(_text(ROOT / "proc/self/status"), "VmRSS") or 0


def release_freed_memory() -> None:
    """Have the C library give the system what this process has freed, where it can."""
    import ctypes  # noqa: PLC0415 (only reader processes need it)

    trim = None if os.name == "nt" else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@contextmanager
def data_limit(more_bytes: int | None) -> Iterator[None]:
    """Let this process take so much memory on top of what it holds, then raise `MemoryError`.

    It does nothing where the platform has no such limit (Windows, macOS).
    """
    held = private_bytes()
    if more_bytes is None or held is None or os.name == "nt":
        yield
        return
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    allowed = [held + more_bytes, *(bound for bound in (before, most) if bound >= 0)]
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
    """Yield what is left of the memory of each cgroup that this process is in."""
    for folder in _cgroups(root, "", "memory"):
        limit = _number(folder, "memory.max", "memory.limit_in_bytes")
        used = _number(folder, "memory.current", "memory.usage_in_bytes")
        if limit is not None and used is not None:
            yield limit - used + _file_cache_bytes(folder)


def _file_cache_bytes(folder: Path) -> int:
    """Return what a cgroup holds of files and gives back when memory is short."""
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
    """Yield the folder of each cgroup that limits us, and of those around it.

    `""` is the one hierarchy of version 2. Inside a container the path may be the host's; then the
    mount's own folder is the container's.
    """
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for controller in set(controllers).intersection(names.split(",")):
            own = PurePosixPath(path)
            for folder in (own, *own.parents):
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
