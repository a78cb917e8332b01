"""Names in a vendor's traces: data, not code, one vendor per file.

A dialect maps events to kinds, and defines the names of collectives, launches, waits and allocator
calls, and the terms of that vendor's users. No other package names a vendor. `detect` selects the
dialect by its signature over `category/name`, `argument/key` and `metadata/key`.
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
    """Kind of an event."""

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


_CATEGORIES: Mapping[Kind, str] = {
    # kineto today (libkineto/src/output_json.cpp, ActivityType.cpp), then torch 1.8 and 1.9
    Kind.OPERATOR: "cpu_op operator",
    Kind.ANNOTATION: "user_annotation",
    Kind.DEVICE_ANNOTATION: "gpu_user_annotation",
    Kind.KERNEL: "kernel mtia_ccp_events hpu_op",
    Kind.COPY: "gpu_memcpy memcpy",
    Kind.MEMORY_SET: "gpu_memset memset",
    Kind.RUNTIME_CALL: "cuda_runtime cuda_driver xpu_runtime xpu_driver mtia_runtime glow_runtime"
    " privateuse1_runtime privateuse1_driver runtime",
    Kind.PYTHON_CALL: "python_function python",
    Kind.OVERHEAD: "overhead",
    Kind.SYNCHRONIZATION: "cuda_sync xpu_sync",
    Kind.FLOW: "ac2g fwdbwd async_cpu_to_gpu async",
}
CATEGORIES: Mapping[str, Kind] = MappingProxyType(
    {category: kind for kind, categories in _CATEGORIES.items() for category in categories.split()}
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
"""Categories of other vendors."""
NO_CATEGORY: tuple[tuple[re.Pattern[str], Kind], ...] = (
    # what torch.autograd.profiler_util.EventList.export_chrome_trace writes
    (
        re.compile(r"^(?:aten|prims?|c10d|torch|autograd|profiler|quantized|mkldnn)::"),
        Kind.OPERATOR,
    ),
    (re.compile(r"^\w+Backward\d*$"), Kind.OPERATOR),
    (re.compile(r"^nn\.Module: |^<built-in |^\S.*\(\d+\): \S"), Kind.PYTHON_CALL),
)
"""Names of events without a category."""
BARE_EXPORT_PROCESS = "CPU functions"
"""The process of every event in such an export; events of unknown names are annotations."""
RECORDING_SPAN = "Trace"
"""Category of kineto's span from the start to the stop of the profiler, which is no work."""
ANNOTATION_NAME = re.compile(
    r"ProfilerStep\s*#|enumerate\(Data(?:Loader|Pipe)\)#|Optimizer\.(?:step|zero_grad)#"
    r"|DataParallel\.forward|DistributedDataParallel\.forward|\[pl\]\["
)
"""Names that torch 1.8 recorded as `Operator` and later versions as annotations."""
LAUNCH_NAME = re.compile(
    # each counts as one launch, excluding the calls of the layers below
    r"(?<!Append)(?<!aclrt)LaunchKernel|GraphLaunch|LaunchCooperative"
    r"|^(?:ur|pi|piext)Enqueue(?:Cooperative)?KernelLaunch|^urCommandBufferEnqueue"
    r"|^Node@launch|^runFunction\b|^AscendCL@aclmdlRIExecute"
)
GRAPH_LAUNCH_NAME = re.compile(r"GraphLaunch|^urCommandBufferEnqueue|aclmdlRIExecute")
FIRST_USE_NAME = re.compile(
    r"(?:Module|Library|Kernel)(?:Load|GetFunction)|StreamCreate|Func[GS]etAttr"
)
"""Calls that load code or create objects for later calls."""
GRAPH_CAPTURE_NAME = re.compile(r"StreamBeginCapture|aclmdlRICaptureBegin")
GRAPH_CAPTURE_END_NAME = re.compile(r"EndCapture|CaptureEnd")
COLLECTIVE_NAME = (
    r"^nccl|ncclDevKernel|ncclKernel|rccl|oneccl|xccl|hccl|^hcom|cross_device_reduce|multimem_all"
    r"|(?:one|two)_shot_all_reduce|symm_mem"
)
ORDINARY_KERNEL = (
    # torch's own kernels, and the libraries of sorts and scans: the only matrix products among them
    # are those that `Dialect.matrix_unit_kernel` matches first
    r"^(?:void |std::enable_if<.*?>::type )?(?:\(anonymous namespace\)::)?"
    r"(?:at|at_cuda_detail|c10|cub|thrust|rocprim|hipcub|fbgemm_gpu|apex)(?:_\w+)?::"
    r"|^_ZN(?:2at6native|3cub|6thrust|7rocprim)"
    r"|^(?:void )?(?:\(anonymous namespace\)::)?(?:\w+::)*(?:softmax_warp_|layer_norm_|rms_norm_"
    r"|multi_tensor_apply|multimem_|elementwise_kernel|split_embedding_|rotary_embedding_"
    r"|reshape_and_cache|act_and_mul|fused_add_rms_norm|cunn_|permute_|bounds_check_indices"
    r"|linearize_index)"
)
"""Kernels that use no vendor's matrix units."""
DEVICE_COUNTERS = re.compile(r"^(?:hardware|mtia|xpu|cuda|gpu|privateuse1)_\w*counters?$")
"""Categories of counters whose process is the device's number, written by kineto."""
RANGE_COUNTERS = re.compile(r"^\w+_profiler_range$")
"""Categories of ranges with hardware counters as arguments: CUPTI's range profiler."""
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
    # only on a device: libraries of its vendor, and torch's operators for them; a recurrent layer
    # asks on the CPU, too, whether cuDNN would take its weights
    r"cudnn(?!_is_acceptable)|miopen|cusparselt|^(?:nccl|rccl|xccl|hccl):"
    r"|_(?:scaled_dot_product_)?(?:efficient|cudnn)_attention(?:_backward)?$"
)
HOST_OPERATOR_NAME = re.compile(
    # only on the CPU: operators of oneDNN, and others by their names
    r"mkldnn|onednn|_for_cpu(?:_backward)?$|_nnpack_"
)
NEVER_RECORDED_DEVICE = re.compile(r"\bmps\b")
"""Devices that torch's profiler cannot record, by their names in settings: Apple's have a separate
profiler (torch.mps.profiler).
"""
NO_DEVICE = "meta"
"""Device of parameters without memory."""
TRITON_NAME = re.compile(r"^triton_")
"""Kernels that torch.compile generated (torch/_inductor/codegen/triton.py)."""
TRITON_BACKEND = "triton"
"""`kernel_backend` of an operator that launched a Triton kernel."""
NameKinds = Sequence[tuple[re.Pattern[str], Kind]]
"""Kind of an event whose name or value matches a pattern; the first match applies."""


TERMS: Mapping[str, str] = MappingProxyType(
    {
        "module": "torch's module for the device, and the argument of `.to()`: `cuda`",
        "activity": "the profiler's activity that records it: `ProfilerActivity.CUDA`",
        "collectives": "the library of its collectives: `NCCL`",
        "process_group": "the name of that library in `init_process_group()`: `nccl`",
        "graph": "the replay of recorded launches: `CUDA graph`",
        "multiprocessor": "the unit that runs blocks: `SM`",
        "sync_warning": "the call that makes torch name every line that waits for the device",
    }
)
"""Meaning of each term of a dialect. A vendor without an equivalent omits it."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One vendor's vocabulary. A field is None if the vendor's traces have no such names."""

    name: str
    device: str
    """The users' word for the device: `GPU`, `XPU`."""
    vendor: str
    signature: re.Pattern[str]
    """Matched against `category/name` of the host's calls, `argument/key` and `metadata/key`."""
    kinds: Mapping[str, NameKinds] = field(default_factory=lambda: MappingProxyType({}))
    """Kinds by the vendor's names, by category in lower case; `""` for no category."""
    argument_kinds: Mapping[str, NameKinds] = field(default_factory=lambda: MappingProxyType({}))
    """Kinds by argument values, for events without a kind by category and name."""
    layer_bits: int = 0
    """Shift of a process id that numbers a layer of that process and its device."""
    device_bits: int = 0
    """The lowest of these bits are the device's number, if no argument and no label has it."""
    operator_flow: str = ""
    """Category of the flows from operators to their launches on another thread."""
    device_name: re.Pattern[str] = re.compile(r"(?!)")
    """Names of the vendor's devices in the file's header."""
    collective: re.Pattern[str] = re.compile(COLLECTIVE_NAME, re.IGNORECASE)
    blocking_call: re.Pattern[str] = re.compile(SYNCHRONIZE_NAME)
    """Calls that return only after the device has caught up."""
    staged_copy_call: re.Pattern[str] | None = None
    """Calls that block if the copy's host side is pageable."""
    allocator_call: re.Pattern[str] = re.compile(r"(?!)")
    matrix_unit_kernel: re.Pattern[str] | None = None
    """Kernels that run on matrix units (tensor cores, matrix cores)."""
    plain_arithmetic: re.Pattern[str] = re.compile(r"(?!)")
    """Kernels with scalar multiplications and additions, even if their names suggest otherwise."""
    plain_product: re.Pattern[str] | None = None
    """The subset of them that matrix units could compute, if rounding is allowed."""
    alignment: re.Pattern[str] | None = None
    """In names of kernels on matrix units: number of elements (group 1) per load."""
    aligned_bytes: int = 0
    """Matrix units load rows of a multiple of this many bytes fastest; 0: unknown."""
    older_matrix_unit_kernel: re.Pattern[str] | None = None
    """Kernels for matrix units of an earlier generation (before compute capability 8)."""
    other_kernel: re.Pattern[str] = re.compile(ORDINARY_KERNEL)
    """Kernels without matrix units, unless the patterns above match; others are unknown."""
    layout_kernel: re.Pattern[str] = re.compile(r"(?!)")
    """Kernels that reorder a tensor (channels first or last) for a convolution."""
    generic_convolution: re.Pattern[str] = re.compile(r"(?!)")
    """Convolutions for any shape: a library's choice without a benchmark."""
    operand_types: Sequence[tuple[re.Pattern[str], str]] = ()
    """Type of a library kernel's operands, by torch's name, for matching kernel names."""
    float32_on_matrix_unit: str = "float32"
    """Type in which matrix units multiply float32: `tf32` if they round the operands first."""
    matrix_unit: str = "matrix unit"
    records_pageable: bool = False
    """Whether copies are labelled `Pageable` and `Pinned`."""
    records_occupancy: bool = False
    """Whether kernels carry `blocks per SM` and `est. achieved occupancy %`."""
    memory_device_types: frozenset[int] = frozenset()
    terms: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Terms in advice: see `TERMS`."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Environment variables for advice: `devices` makes a device visible, with `blocking` every
    launch waits for its kernel, `allocator` configures the caching allocator, and without
    `channels_last` convolutions convert channels-last tensors.
    """

    def uses_matrix_unit(self, kernel: str) -> bool | None:
        """Return whether a kernel uses matrix units, by its name; None: unknown.

        Only names of library kernels are informative. Triton's kernels are named after Python
        functions, which do not reveal calls of `tl.dot`.
        """
        if self.matrix_unit_kernel is None:
            return None
        if _is_in(kernel, self.plain_arithmetic):
            return False
        if _is_in(kernel, self.matrix_unit_kernel):
            return True
        is_other = _is_in(kernel, self.other_kernel) or _is_in(kernel, self.collective)
        return False if is_other else None


@lru_cache(maxsize=16384)
def _is_in(name: str, pattern: re.Pattern[str]) -> bool:
    """Return whether a pattern matches a kernel's name, cached since names are long and repeat."""
    return pattern.search(name) is not None


def kind_of(category: str, name: str) -> Kind:
    """Return the kind of an event of this category and name."""
    if name == "[memory]":
        return Kind.MEMORY  # in any category, with or without a duration
    lowered = category.lower()
    kind = _first_match(_kinds_by_name().get(lowered, ()), name) or CATEGORIES.get(lowered)
    if (kind is Kind.OPERATOR or not lowered) and ANNOTATION_NAME.match(name):
        return Kind.ANNOTATION
    if kind is None:
        kind = _first_match(UNKNOWN_VENDOR, lowered) if lowered else _first_match(NO_CATEGORY, name)
    return kind or Kind.OTHER


def kind_of_argument(key: str, value: str) -> Kind:
    """Return the kind of an event with this argument, if no other property determines it."""
    return _first_match(_kinds_by_argument()[key], value) or Kind.OTHER


def kind_arguments() -> Iterable[str]:
    """Return the arguments whose values determine an event's kind."""
    return _kinds_by_argument().keys()


def _first_match(patterns: NameKinds, text: str) -> Kind | None:
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
    """Return the dialect of the vendor of a device of this name."""
    dialects = all_dialects()
    matches = (dialect for dialect in dialects.values() if dialect.device_name.search(name))
    return next(matches, dialects["generic"])


def detect(signs: Iterable[str], *, has_device: bool) -> Dialect:
    """Return the dialect that most of `signs` match (see `Dialect.signature`).

    Without a match, a trace with device events is read with generic names, and others as CPU
    traces.
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
