"""Machines of synthetic traces: the names in their traces, and their copy rates."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Machine:
    """One accelerator (or none), the names in its traces, and its copy rates."""

    name: str
    properties: Mapping[str, Any] | None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    memory_words: Mapping[str, str] = field(default_factory=dict)
    bytes_per_us: Mapping[str, float] = field(default_factory=dict)
    default_stream: int = 7
    memory_type: int = 1  # c10::DeviceType: 1 is CUDA, 6 is HIP
    is_nvidia: bool = True
    is_2021: bool = False
    item_copy: tuple[str, str] = ("DtoH", "pinned")

    @property
    def has_device(self) -> bool:
        """Whether kernels can run here."""
        return self.properties is not None


CUDA_CALLS = {
    "kernel": "cudaLaunchKernel",
    "graph": "cudaGraphLaunch",
    "copy": "cudaMemcpyAsync",
    "blocking_copy": "cudaMemcpyAsync",
    "memset": "cudaMemsetAsync",
    "sync_stream": "cudaStreamSynchronize",
    "sync_device": "cudaDeviceSynchronize",
    "sync_event": "cudaEventSynchronize",
    "event": "cudaEventRecord",
    "wait": "cudaStreamWaitEvent",
    "malloc": "cudaMalloc",
    "release": "cudaFree",
}
# CUPTI's callback ids, as in real traces.
CALLBACK_IDS = {
    "cudaFuncGetAttributes": 15,
    "cudaMalloc": 20,
    "cudaFree": 22,
    "cudaMemcpyAsync": 41,
    "cudaMemsetAsync": 51,
    "cudaEventRecord": 135,
    "cudaEventSynchronize": 137,
    "cudaStreamSynchronize": 131,
    "cudaStreamWaitEvent": 147,
    "cudaDeviceSynchronize": 165,
    "cudaLaunchKernel": 211,
    "cudaFuncSetAttribute": 273,
    "cuLaunchKernel": 307,
    "cudaGraphLaunch": 311,
    "cudaLaunchKernelExC": 430,
    "cuLaunchKernelEx": 652,
    "hipDeviceSynchronize": 48,
    "hipExtModuleLaunchKernel": 65,
    "hipLaunchKernel": 107,
    "hipMemcpyWithStream": 153,
}
CUDA_MEMORY = {"pageable": "Pageable", "pinned": "Pinned"}

H100 = Machine(
    name="h100",
    properties={
        "id": 0,
        "name": "NVIDIA H100 80GB HBM3",
        "totalGlobalMem": 85018279936,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": 132,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerBlockOptin": 232448,
        "sharedMemPerMultiprocessor": 233472,
    },
    metadata={"cupti_version": 26, "cuda_runtime_version": 12080, "cuda_driver_version": 12080},
    calls=CUDA_CALLS,
    memory_words=CUDA_MEMORY,
    # Copies of a PCIe 5 machine; pageable memory is staged through a small pinned buffer.
    bytes_per_us={"pinned": 50_000, "pageable": 8_000, "DtoD": 1_500_000, "memset": 1_500_000},
)
A100 = replace(
    H100,
    name="a100",
    properties={
        **(H100.properties or {}),
        "name": "NVIDIA A100-SXM4-80GB",
        "totalGlobalMem": 84974239744,
        "computeMajor": 8,
        "numSms": 108,
        "sharedMemPerBlockOptin": 166912,
        "sharedMemPerMultiprocessor": 167936,
    },
    bytes_per_us={"pinned": 24_000, "pageable": 6_000, "DtoD": 800_000, "memset": 800_000},
)
V100_2021 = replace(
    H100,
    name="v100-2021",
    is_2021=True,
    properties={
        **(H100.properties or {}),
        "name": "Tesla V100-DGXS-32GB",
        "totalGlobalMem": 34084028416,
        "computeMajor": 7,
        "numSms": 80,
        "sharedMemPerBlockOptin": 98304,
        "sharedMemPerMultiprocessor": 98304,
    },
    metadata={},
    bytes_per_us={"pinned": 12_000, "pageable": 6_000, "DtoD": 400_000, "memset": 400_000},
    item_copy=("DtoH", "pageable"),
)
MI250 = Machine(
    name="mi250",
    properties={
        "id": 0,
        "name": "AMD Instinct MI250X",
        "totalGlobalMem": 68702699520,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 64,
        "sharedMemPerBlock": 65536,
        "numSms": 104,
        "maxSharedMemoryPerMultiProcessor": 65536,
    },
    metadata={
        "roctracer_version": 4.1,
        "hip_runtime_version": 60240134,
        "hip_driver_version": 60240134,
    },
    calls={name: call.replace("cuda", "hip") for name, call in CUDA_CALLS.items()}
    | {"kernel": "hipLaunchKernel", "blocking_copy": "hipMemcpyWithStream"},
    memory_words={"pageable": "Host", "pinned": "Host"},
    bytes_per_us={"pinned": 26_000, "pageable": 8_000, "DtoD": 600_000, "memset": 600_000},
    default_stream=0,
    memory_type=6,
    is_nvidia=False,
    item_copy=("DtoD", "pageable"),  # roctracer labels .item() so; the call blocks all the same
)
CPU = Machine(name="cpu", properties=None)

MACHINES = {machine.name: machine for machine in (H100, A100, V100_2021, MI250, CPU)}


def copy_name(machine: Machine, direction: str, memory: str) -> str:
    """Return the profiler's name of a copy, such as "Memcpy HtoD (Pageable -> Device)"."""
    host = machine.memory_words[memory]
    source = host if direction == "HtoD" else "Device"
    target = host if direction == "DtoH" else "Device"
    return f"Memcpy {direction} ({source} -> {target})"
