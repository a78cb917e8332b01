"""Environment variables that affect speed: a fixed list, so that no secret is ever written."""

import os
from collections.abc import Mapping
from typing import Any

from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects._fields import fields

RECORDED = (
    "CUBLAS_WORKSPACE_CONFIG",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_VISIBLE_DEVICES",
    "GOMP_CPU_AFFINITY",
    "HIP_VISIBLE_DEVICES",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "MALLOC_ARENA_MAX",
    "MKL_NUM_THREADS",
    "NCCL_ALGO",
    "NCCL_BUFFSIZE",
    "NCCL_CROSS_NIC",
    "NCCL_DEBUG",
    "NCCL_IB_DISABLE",
    "NCCL_LAUNCH_MODE",
    "NCCL_MAX_CTAS",
    "NCCL_MAX_NCHANNELS",
    "NCCL_MIN_CTAS",
    "NCCL_MIN_NCHANNELS",
    "NCCL_NET_GDR_LEVEL",
    "NCCL_NTHREADS",
    "NCCL_NVLS_ENABLE",
    "NCCL_P2P_DISABLE",
    "NCCL_P2P_LEVEL",
    "NCCL_PROTO",
    "NCCL_SHM_DISABLE",
    "NUMEXPR_NUM_THREADS",
    "NVIDIA_TF32_OVERRIDE",
    "OMP_NUM_THREADS",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OPENBLAS_NUM_THREADS",
    "PYTORCH_ALLOC_CONF",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_HIP_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "RANK",
    "ROCR_VISIBLE_DEVICES",
    "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE",
    "TORCH_CUDNN_V8_API_DISABLED",
    "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_AVOID_RECORD_STREAMS",
    "TORCH_NCCL_BLOCKING_WAIT",
    "TORCHDYNAMO_DISABLE",
    "TORCHINDUCTOR_MAX_AUTOTUNE",
    "WORLD_SIZE",
)
"""Names whose values are numbers, words and options, never paths, addresses or keys."""
ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF")


def environment(_: Scene) -> dict[str, str]:
    """Return the listed variables that are set."""
    return {name: os.environ[name] for name in RECORDED if name in os.environ}


def allocator(_: Scene) -> dict[str, Any]:
    """Return the settings of the device memory allocator."""
    return fields(
        conf=lambda: _allocator_conf(os.environ),
        backend=_backend,
        expandable_segments=lambda: _is_expandable(_allocator_conf(os.environ)),
    )


def _allocator_conf(variables: Mapping[str, str]) -> str | None:
    return next((variables[name] for name in ALLOCATOR if variables.get(name)), None)


def _is_expandable(conf: str | None) -> bool | None:
    """Return the configuration's setting of expandable segments; None if it has none."""
    pairs = (pair.partition(":") for pair in (conf or "").split(","))
    options = {name.strip(): value.strip().lower() for name, _, value in pairs}
    return {"true": True, "false": False}.get(options.get("expandable_segments", ""))


def _backend() -> str | None:
    import torch

    is_in_use = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.cuda.get_allocator_backend() if is_in_use else None
