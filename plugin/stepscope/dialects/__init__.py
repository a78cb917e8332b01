"""What a vendor's traces call things: data, not code, one vendor a file.

A dialect says which events are what kind, how collectives, launches, waits and allocator calls
are named, and which words a user of that vendor expects. Nothing outside this package names a
vendor. `detect` picks the dialect by its signature over `category/name`, `argument/key` and
`metadata/key`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cache, lru_cache
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
UNKNOWN_VENDOR: tuple[tuple[re.Pattern[str], Kind], ...] = (
    # as kineto names what its plugins record: `<vendor>_runtime`, `<vendor>_op`, …
    (re.compile(r"_(?:runtime|driver)$"), Kind.RUNTIME_CALL),
    (re.compile(r"^(?!cpu_|host_|user_|torch_|py)\w+_(?:op|kernel)$"), Kind.KERNEL),
    (re.compile(r"_memcpy$"), Kind.COPY),
    (re.compile(r"_memset$"), Kind.MEMORY_SET),
    (re.compile(r"_sync$"), Kind.SYNCHRONIZATION),
    (re.compile(r"_user_annotation$"), Kind.DEVICE_ANNOTATION),
)
"""Categories of vendors that are not known yet."""
NO_CATEGORY: tuple[tuple[re.Pattern[str], Kind], ...] = (
    # what torch.autograd.profiler_util.EventList.export_chrome_trace writes
    (
        re.compile(r"^(?:aten|prims?|c10d|torch|autograd|profiler|quantized|mkldnn)::"),
        Kind.OPERATOR,
    ),
    (re.compile(r"^\w+Backward\d*$"), Kind.OPERATOR),
    (re.compile(r"^nn\.Module: |^<built-in |^\S.*\(\d+\): \S"), Kind.PYTHON_CALL),
)
"""Names of events that have no category."""
BARE_EXPORT_PROCESS = "CPU functions"
"""The process of every event in such an export; what its name does not tell is an annotation."""
ANNOTATION_NAME = re.compile(
    r"ProfilerStep\s*#|enumerate\(Data(?:Loader|Pipe)\)#|Optimizer\.(?:step|zero_grad)#"
    r"|DataParallel\.forward|DistributedDataParallel\.forward|\[pl\]\["
)
"""Names that torch 1.8 filed under `Operator` and later versions file as annotations."""
LAUNCH_NAME = re.compile(
    # one of them a launch: not the calls of the layers below it
    r"(?<!Append)(?<!aclrt)LaunchKernel|GraphLaunch|LaunchCooperative"
    r"|^(?:ur|pi|piext)Enqueue(?:Cooperative)?KernelLaunch|^urCommandBufferEnqueue"
    r"|^Node@launch|^runFunction\b|^AscendCL@aclmdlRIExecute"
)
GRAPH_LAUNCH_NAME = re.compile(r"GraphLaunch|^urCommandBufferEnqueue|aclmdlRIExecute")
FIRST_USE_NAME = re.compile(
    r"(?:Module|Library|Kernel)(?:Load|GetFunction)|StreamCreate|FuncGetAttr"
)
"""Calls that load code or make what later calls use."""
GRAPH_CAPTURE_NAME = re.compile(r"StreamBeginCapture|aclmdlRICaptureBegin")
COLLECTIVE_NAME = (
    r"^nccl|ncclDevKernel|ncclKernel|rccl|oneccl|xccl|hccl|^hcom|cross_device_reduce|multimem_all"
    r"|(?:one|two)_shot_all_reduce|symm_mem"
)
ORDINARY_KERNEL = (
    # torch's own kernels, and the libraries of sorts and scans: no matrix product among them but
    # those that `Dialect.matrix_unit_kernel` finds first
    r"^(?:void |std::enable_if<.*?>::type )?(?:\(anonymous namespace\)::)?"
    r"(?:at|at_cuda_detail|c10|cub|thrust|rocprim|hipcub|fbgemm_gpu|apex)(?:_\w+)?::"
    r"|^_ZN(?:2at6native|3cub|6thrust|7rocprim)"
    r"|^(?:void )?(?:\(anonymous namespace\)::)?(?:\w+::)*(?:softmax_warp_|layer_norm_|rms_norm_"
    r"|multi_tensor_apply|multimem_|elementwise_kernel|split_embedding_|rotary_embedding_"
    r"|reshape_and_cache|act_and_mul|fused_add_rms_norm|cunn_|permute_|bounds_check_indices"
    r"|linearize_index)"
)
"""Kernels that run on no vendor's matrix units."""
DEVICE_COUNTERS = re.compile(r"^(?:hardware|mtia|xpu|cuda|gpu|privateuse1)_\w*counters?$")
"""Categories of counters whose process is the device's number, as kineto writes them."""
SYNCHRONIZE_NAME = r"(?:Stream|Device|Event|Ctx)Synchronize$"
MEMORY_DEVICES: Mapping[int, str] = MappingProxyType(
    # c10::DeviceType (c10/core/DeviceType.h); 2021 traces use 0 and 1 alike
    {
        0: "CPU",
        1: "CUDA",
        2: "MKLDNN",
        3: "OpenGL",
        4: "OpenCL",
        5: "IDEEP",
        6: "HIP",
        7: "FPGA",
        8: "MAIA",
        9: "XLA",
        10: "Vulkan",
        11: "Metal",
        12: "XPU",
        13: "MPS",
        14: "Meta",
        15: "HPU",
        16: "VE",
        17: "Lazy",
        18: "IPU",
        19: "MTIA",
        20: "PrivateUse1",
    }
)
DEVICE_OPERATOR_NAME = re.compile(
    # what only runs where a device is: its vendor's libraries, and torch's operators for them
    r"cudnn|miopen|cusparselt|^(?:nccl|rccl|xccl|hccl):"
    r"|_(?:scaled_dot_product_)?(?:efficient|cudnn)_attention(?:_backward)?$"
)
HOST_OPERATOR_NAME = re.compile(
    # what only runs on the CPU: oneDNN's operators, and those that say so
    r"mkldnn|onednn|_for_cpu(?:_backward)?$|_nnpack_"
)
NEVER_RECORDED_DEVICE = re.compile(r"\bmps\b")
"""Devices of which torch's profiler records nothing, as settings name them: Apple's have their own
(torch.mps.profiler)."""
NO_DEVICE = "meta"
"""Where parameters are that have no memory yet."""
TRITON_NAME = re.compile(r"^triton_")
"""Kernels that torch.compile generated (torch/_inductor/codegen/triton.py)."""
TRITON_BACKEND = "triton"
"""What `kernel_backend` says of the operator that launched a Triton kernel."""
NameKinds = Sequence[tuple[re.Pattern[str], Kind]]
"""What an event is whose name or value a pattern finds; the first that does counts."""


TERMS: Mapping[str, str] = MappingProxyType(
    {
        "module": "torch's module for the device, and what `.to()` takes: `cuda`",
        "activity": "the profiler's activity that records it: `ProfilerActivity.CUDA`",
        "collectives": "the library of its collectives: `NCCL`",
        "process_group": "what `init_process_group()` calls that library: `nccl`",
        "graph": "what replays recorded launches: `CUDA graph`",
        "multiprocessor": "the unit that blocks run on: `SM`",
        "sync_warning": "the call that makes torch name every line that waits for the device",
    }
)
"""What each of a dialect's words is. A vendor that has no such thing leaves it out."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One vendor's vocabulary. A field is None where the vendor's traces cannot tell."""

    name: str
    device: str
    """What the vendor's users call the device: `GPU`, `XPU`."""
    vendor: str
    signature: re.Pattern[str]
    """Matched against `category/name` of the host's calls, `argument/key` and `metadata/key`."""
    kinds: Mapping[str, NameKinds] = field(default_factory=lambda: MappingProxyType({}))
    """By category in lower case, `""` for none: kinds that the vendor's names tell."""
    argument_kinds: Mapping[str, NameKinds] = field(default_factory=lambda: MappingProxyType({}))
    """By argument: kinds that its values tell, of events whose category and name tell none."""
    layer_bits: int = 0
    """Bits by which a process id is shifted to number a layer of that process and its device."""
    device_bits: int = 0
    """The lowest of them: the device's number, where no argument and no label has it."""
    operator_flow: str = ""
    """Category of the flows from operators to what they launched from another thread."""
    device_name: re.Pattern[str] = re.compile(r"(?!)")
    """Names of the vendor's devices, as the file's header has them."""
    collective: re.Pattern[str] = re.compile(COLLECTIVE_NAME, re.IGNORECASE)
    blocking_call: re.Pattern[str] = re.compile(SYNCHRONIZE_NAME)
    """Calls that return only when the device has caught up, whatever they copy."""
    staged_copy_call: re.Pattern[str] | None = None
    """Calls that block when the copy's host side is pageable."""
    allocator_call: re.Pattern[str] = re.compile(r"(?!)")
    matrix_unit_kernel: re.Pattern[str] | None = None
    """Kernels that run on matrix units (tensor cores, matrix cores)."""
    plain_arithmetic: re.Pattern[str] = re.compile(r"(?!)")
    """Kernels that multiply and add one by one, whatever else their names say."""
    plain_product: re.Pattern[str] | None = None
    """Those of them that multiply matrices which matrix units would take if they may round."""
    alignment: re.Pattern[str] | None = None
    """In names of kernels on matrix units: how many elements (group 1) they load at a time."""
    aligned_bytes: int = 0
    """Rows of so many bytes, or a multiple, are what matrix units load fastest; 0: not known."""
    older_matrix_unit_kernel: re.Pattern[str] | None = None
    """Kernels made for matrix units of an earlier generation (before compute capability 8)."""
    other_kernel: re.Pattern[str] = re.compile(ORDINARY_KERNEL)
    """Kernels that do not, if the patterns above find nothing; of others the name tells nothing."""
    layout_kernel: re.Pattern[str] = re.compile(r"(?!)")
    """Kernels that reorder a tensor (channels first or last) for a convolution that wants it so."""
    generic_convolution: re.Pattern[str] = re.compile(r"(?!)")
    """Convolutions that work for any shape: what a library takes where it has tried nothing."""
    operand_types: Sequence[tuple[re.Pattern[str], str]] = ()
    """Type of a library kernel's operands, by torch's name, whose name a pattern finds."""
    float32_on_matrix_unit: str = "float32"
    """As what matrix units multiply float32: `tf32` where they round it first."""
    matrix_unit: str = "matrix unit"
    records_pageable: bool = False
    """Whether copies are labelled `Pageable` and `Pinned`."""
    records_occupancy: bool = False
    """Whether kernels carry `blocks per SM` and `est. achieved occupancy %`."""
    memory_device_types: frozenset[int] = frozenset()
    terms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Words that advice mentions, by `TERMS`."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables that advice mentions: `devices` is what makes a device visible, `blocking` those
    with which every launch waits for its kernel, `allocator` that of torch's caching allocator,
    `channels_last` that without which convolutions convert channels-last tensors."""

    def uses_matrix_unit(self, kernel: str) -> bool | None:
        """Tell by its name whether a kernel runs on matrix units; None: the name does not tell.

        Whoever writes a kernel names it: what is known is how libraries name theirs. Triton's are
        named after Python functions, and nothing in that says whether they call `tl.dot`.
        """
        if self.matrix_unit_kernel is None:
            return None
        if _is_in(kernel, self.plain_arithmetic):
            return False
        if _is_in(kernel, self.matrix_unit_kernel):
            return True
        is_known = _is_in(kernel, self.other_kernel) or _is_in(kernel, self.collective)
        return False if is_known else None


@lru_cache(maxsize=16384)
def _is_in(name: str, pattern: re.Pattern[str]) -> bool:
    """Tell whether a name holds a pattern: names of kernels are long, and asked about often."""
    return pattern.search(name) is not None


def kind_of(category: str, name: str) -> Kind:
    """Return what an event of this category and name is."""
    if name == "[memory]":
        return Kind.MEMORY  # whatever it is filed under, and with a duration or without
    lowered = category.lower()
    kind = _found(_kinds_by_name().get(lowered, ()), name) or CATEGORIES.get(lowered)
    if (kind is Kind.OPERATOR or not lowered) and ANNOTATION_NAME.match(name):
        return Kind.ANNOTATION
    if kind is None:
        kind = _found(UNKNOWN_VENDOR, lowered) if lowered else _found(NO_CATEGORY, name)
    return kind or Kind.OTHER


def kind_of_argument(key: str, value: str) -> Kind:
    """Return what an event is that has this argument, where nothing else tells."""
    return _found(_kinds_by_argument()[key], value) or Kind.OTHER


def kind_arguments() -> Iterable[str]:
    """Return the arguments whose values tell what an event is."""
    return _kinds_by_argument().keys()


def _found(patterns: NameKinds, text: str) -> Kind | None:
    return next((kind for pattern, kind in patterns if pattern.search(text)), None)


@cache
def _kinds_by_name() -> Mapping[str, NameKinds]:
    return _joined(dialect.kinds for dialect in all_dialects().values())


@cache
def _kinds_by_argument() -> Mapping[str, NameKinds]:
    return _joined(dialect.argument_kinds for dialect in all_dialects().values())


def _joined(mappings: Iterable[Mapping[str, NameKinds]]) -> Mapping[str, NameKinds]:
    together: dict[str, list[tuple[re.Pattern[str], Kind]]] = {}
    for mapping in mappings:
        for key, patterns in mapping.items():
            together.setdefault(key, []).extend(patterns)
    return together


@cache
def all_dialects() -> Mapping[str, Dialect]:
    """Return every dialect in this folder by its name."""
    names = sorted(module.name for module in iter_modules(__path__))
    return {name: import_module(f"{__name__}.{name}").DIALECT for name in names}


def of_device(name: str) -> Dialect:
    """Return the dialect of the vendor who makes a device of this name."""
    dialects = all_dialects()
    found = (each for each in dialects.values() if each.device_name.search(name))
    return next(found, dialects["generic"])


def detect(signs: Iterable[str], *, has_device: bool) -> Dialect:
    """Return the dialect that most of `signs` (see `Dialect.signature`) speak.

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
