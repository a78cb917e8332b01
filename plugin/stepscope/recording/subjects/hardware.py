"""Hardware and software of the process: torch build, host, devices; never initializes CUDA.

For a process that trains on the CPU of a host with a GPU, a CUDA context would cost time and
memory, and forked workers could not use the GPU. In that case the driver's files list the GPUs.
"""

import math
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects._fields import fields

NVIDIA_VERSION = Path("/proc/driver/nvidia/version")
NVIDIA_DEVICES = Path("/proc/driver/nvidia/gpus")
CGROUP = Path("/sys/fs/cgroup")
REPORTED_CAPABILITIES = (
    "amx_bf16",
    "amx_fp16",
    "amx_tile",
    "avx2",
    "avx512_bf16",
    "avx512_f",
    "bf16",
    "sve",
)


def torch_build(_: Scene) -> dict[str, Any]:
    """Return torch's version and those of the libraries it was built with."""
    import torch

    return fields(
        version=lambda: str(torch.__version__),
        git=lambda: str(torch.version.git_version),
        cuda=lambda: torch.version.cuda,
        hip=lambda: torch.version.hip,
        cudnn=torch.backends.cudnn.version,
        driver=_driver,
    )


def _driver() -> str | None:
    """Return NVIDIA's driver version from the kernel module."""
    if not NVIDIA_VERSION.exists():
        return None
    match = re.search(
        r"Kernel Module\D*?\s(\d+(?:\.\d+)+)", NVIDIA_VERSION.read_text(encoding="utf-8")
    )
    return match and match[1]


def host(_: Scene) -> dict[str, Any]:
    """Return the host's processors and memory, and torch's thread counts."""
    import torch

    return fields(
        cpu_count=os.cpu_count,
        usable_cpu_count=_usable_cpu_count,
        thread_count=torch.get_num_threads,
        interop_thread_count=torch.get_num_interop_threads,
        memory_bytes=lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        cpu_capabilities=_cpu_capabilities,
        platform=platform.platform,
        python=platform.python_version,
    )


def _cpu_capabilities() -> list[str] | None:
    """Return the processor's instruction sets that determine the speed of dtypes."""
    import torch

    capabilities: dict[str, bool] = getattr(
        torch.cpu, "get_capabilities", dict
    )()  # since torch 2.10
    return sorted(name for name in REPORTED_CAPABILITIES if capabilities.get(name)) or None


def _usable_cpu_count() -> int | None:
    """Return the number of usable processors: the process's affinity, or its container's quota."""
    affine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    quota = _quota_cpu_count(CGROUP)
    return min((count for count in (affine, quota) if count), default=None)


def _quota_cpu_count(cgroup: Path) -> int | None:
    """Return the CPU quota of a container's control group in whole processors, rounded up."""
    try:
        quota, period = (cgroup / "cpu.max").read_text(encoding="utf-8").split()
        return max(math.ceil(int(quota) / int(period)), 1)
    except (OSError, ValueError):  # missing, or "max"
        return None


def devices(_: Scene) -> list[dict[str, Any]]:
    """Return the accelerators visible to torch or the driver; the list may be empty."""
    import torch

    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return [_cuda_device(index) for index in range(torch.cuda.device_count())]
    if (xpu := getattr(torch, "xpu", None)) and xpu.is_available():
        return [_xpu_device(index) for index in range(xpu.device_count())]
    if sys.platform == "darwin" and torch.backends.mps.is_available():
        return [{"index": 0, "name": "Apple GPU (mps)"}]
    return _driver_devices()


def _cuda_device(index: int) -> dict[str, Any]:
    import torch

    properties = torch.cuda.get_device_properties(index)
    return fields(
        index=lambda: index,
        name=lambda: properties.name,
        memory_bytes=lambda: properties.total_memory,
        capability=lambda: f"{properties.major}.{properties.minor}",
    )


def _xpu_device(index: int) -> dict[str, Any]:
    import torch

    properties = torch.xpu.get_device_properties(index)
    return fields(
        index=lambda: index,
        name=lambda: properties.name,
        memory_bytes=lambda: properties.total_memory,
    )


def _driver_devices() -> list[dict[str, Any]]:
    """Return the GPUs that torch can use but has not initialized, with unambiguous names only.

    torch counts the GPUs of CUDA_VISIBLE_DEVICES; the driver's files list all: they can be matched
    only if the counts, or all names, are equal. A torch built without CUDA counts zero: then the
    driver's GPUs are returned, and torch's build shows why they are unused.
    """
    import torch

    names = _driver_names(NVIDIA_DEVICES)
    if torch.version.cuda or torch.version.hip:
        count = torch.cuda.device_count()
    else:
        count = len(names) if "CUDA_VISIBLE_DEVICES" not in os.environ else 0
    if len(set(names)) == 1:
        names = names[:1] * count
    if len(names) != count:
        return [{"index": index} for index in range(count)]
    return [{"index": index, "name": name} for index, name in enumerate(names)]


def _driver_names(folder: Path) -> list[str]:
    files = sorted(folder.glob("*/information"))
    matches = (
        re.search(r"^Model:\s*(.+?)\s*$", file.read_text(encoding="utf-8"), re.MULTILINE)
        for file in files
    )
    return [match[1] for match in matches if match]
