"""What a vendor's traces call things: data, not code, one vendor a file.

A dialect says which events are what kind, how collectives, launches, waits and allocator calls
are named, and which words a user of that vendor expects. Nothing outside this package names a
vendor. `detect` picks the dialect by its signature over `category/name`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType


class Kind(IntEnum):
    """What an event is."""

    OTHER = 0
    OPERATOR = 1
    ANNOTATION = 2
    RUNTIME_CALL = 3
    KERNEL = 4
    COPY = 5
    MEMORY_SET = 6
    PYTHON_CALL = 7
    MEMORY = 8
    DEVICE_ANNOTATION = 9
    OVERHEAD = 10
    SYNCHRONIZATION = 11
    FLOW = 12


CATEGORIES: Mapping[str, Kind] = MappingProxyType(
    {
        # kineto today (libkineto/src/output_json.cpp, ActivityType.cpp)
        "cpu_op": Kind.OPERATOR,
        "user_annotation": Kind.ANNOTATION,
        "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
        "kernel": Kind.KERNEL,
        "gpu_memcpy": Kind.COPY,
        "gpu_memset": Kind.MEMORY_SET,
        "cuda_runtime": Kind.RUNTIME_CALL,
        "cuda_driver": Kind.RUNTIME_CALL,
        "xpu_runtime": Kind.RUNTIME_CALL,
        "xpu_driver": Kind.RUNTIME_CALL,
        "mtia_runtime": Kind.RUNTIME_CALL,
        "glow_runtime": Kind.RUNTIME_CALL,
        "privateuse1_runtime": Kind.RUNTIME_CALL,
        "privateuse1_driver": Kind.RUNTIME_CALL,
        "mtia_ccp_events": Kind.KERNEL,
        "hpu_op": Kind.KERNEL,
        "python_function": Kind.PYTHON_CALL,
        "overhead": Kind.OVERHEAD,
        "cuda_sync": Kind.SYNCHRONIZATION,
        "xpu_sync": Kind.SYNCHRONIZATION,
        "ac2g": Kind.FLOW,
        "fwdbwd": Kind.FLOW,
        "async_cpu_to_gpu": Kind.FLOW,
        # torch 1.8 and 1.9
        "operator": Kind.OPERATOR,
        "runtime": Kind.RUNTIME_CALL,
        "memcpy": Kind.COPY,
        "memset": Kind.MEMORY_SET,
        "python": Kind.PYTHON_CALL,
        "async": Kind.FLOW,
    }
)
ANNOTATION_NAME = re.compile(
    r"ProfilerStep\s*#|enumerate\(Data(?:Loader|Pipe)\)#|Optimizer\.(?:step|zero_grad)#"
    r"|DataParallel\.forward|DistributedDataParallel\.forward|\[pl\]\["
)
"""Names that torch 1.8 filed under `Operator` and later versions file as annotations."""
LAUNCH_NAME = re.compile(r"LaunchKernel|GraphLaunch|LaunchCooperative")
GRAPH_LAUNCH_NAME = re.compile(r"GraphLaunch")
GRAPH_CAPTURE_NAME = re.compile(r"StreamBeginCapture")
COLLECTIVE_NAME = (
    r"^nccl|ncclDevKernel|ncclKernel|rccl|oneccl|hccl|cross_device_reduce|multimem_all"
    r"|(?:one|two)_shot_all_reduce|symm_mem"
)
SYNCHRONIZE_NAME = r"(?:Stream|Device|Event|Ctx)Synchronize$"
MEMORY_DEVICES: Mapping[int, str] = MappingProxyType(
    # c10::DeviceType (c10/core/DeviceType.h); 2021 traces use 0 and 1 alike
    {0: "CPU", 1: "CUDA", 6: "HIP", 12: "XPU", 13: "MPS", 19: "MTIA", 20: "PrivateUse1"}
)


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One vendor's vocabulary. A field is None where the vendor's traces cannot tell."""

    name: str
    device: str
    """What the vendor's users call the device: `GPU`, `XPU`."""
    vendor: str
    signature: re.Pattern[str]
    """Matched against `category/name` of the host's calls and against `metadata/key`."""
    collective: re.Pattern[str] = re.compile(COLLECTIVE_NAME, re.IGNORECASE)
    blocking_call: re.Pattern[str] = re.compile(SYNCHRONIZE_NAME)
    """Calls that return only when the device has caught up, whatever they copy."""
    staged_copy_call: re.Pattern[str] | None = None
    """Calls that block when the copy's host side is pageable."""
    allocator_call: re.Pattern[str] = re.compile(r"(?!)")
    matrix_unit_kernel: re.Pattern[str] | None = None
    """Kernels that run on matrix units (tensor cores, matrix cores)."""
    matrix_unit: str = "matrix unit"
    tells_pageable: bool = False
    """Whether copies are labelled `Pageable` and `Pinned`."""
    tells_occupancy: bool = False
    """Whether kernels carry `blocks per SM` and `est. achieved occupancy %`."""
    memory_device_types: frozenset[int] = frozenset()
    terms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Named things that advice mentions: `devices` is what makes a device visible, and so on."""


def kind_of(category: str, name: str) -> Kind:
    """Return what an event of this category and name is."""
    lowered = category.lower()
    kind = CATEGORIES.get(lowered, Kind.OTHER)
    if kind is Kind.OTHER and lowered.endswith(("_runtime", "_driver")):
        return Kind.RUNTIME_CALL  # a vendor that is not known yet
    if kind is Kind.OPERATOR and ANNOTATION_NAME.match(name):
        return Kind.ANNOTATION
    if kind is Kind.OTHER and name == "[memory]":
        return Kind.MEMORY
    return kind


def all_dialects() -> dict[str, Dialect]:
    """Return every dialect in this folder by its name."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").DIALECT for name in names}


def detect(signs: Iterable[str], *, has_device: bool) -> Dialect:
    """Return the dialect that most of `signs` (`category/name`, `metadata/key`) speak.

    Without a sign, a trace with device events is read with generic names, one without as CPU.
    """
    dialects = all_dialects()
    votes = dict.fromkeys(dialects, 0)
    for sign in signs:
        for name, dialect in dialects.items():
            votes[name] += bool(dialect.signature.search(sign))
    best = max(votes, key=lambda name: votes[name])
    if votes[best] and has_device:
        return dialects[best]
    return dialects["generic" if has_device else "cpu"]
