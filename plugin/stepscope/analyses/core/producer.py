"""What wrote the file, by what stands in it, and what such a file lacks for advice.

Chrome's trace format is spoken by many tools. Theirs open as torch's do; this says in clear words
what cannot be told of them, and what to record instead.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.dialects import BARE_EXPORT_PROCESS, Kind
from stepscope.model.trace import Trace, computed

RECORD = (
    "Record the training with torch.profiler.profile(activities=[...], on_trace_ready="
    'torch.profiler.tensorboard_trace_handler("log/run")), and call prof.step() at the end of '
    "each iteration."
)
KINETO = "torch.profiler"
UNKNOWN = "an unknown tool"
DEVICE_KINDS = (Kind.KERNEL, Kind.COPY, Kind.MEMORY_SET)


@dataclass(frozen=True, kw_only=True)
class Producer:
    """What wrote a file."""

    name: str
    """To go after "written by"."""
    is_torch: bool
    """Whether torch's operators, or a device's work that kineto recorded, are in it."""
    missing: tuple[str, ...]
    """What advice needs that such a file never holds: sentences; empty for torch's own traces."""
    remedy: str
    """What to record or give instead: a sentence; empty where nothing is missing."""


@dataclass(frozen=True, kw_only=True)
class _Tool:
    """How a tool's files are told: a pattern over their signs (see `_signs`)."""

    name: str
    sign: re.Pattern[str]
    remedy: str = RECORD
    runs_torch: bool = False
    """Whether it can run torch's profiler and write both into one file."""


_TOOLS = (
    _Tool(
        name="VizTracer",
        sign=re.compile(r"^metadata/viztracer_metadata$"),
        remedy=f"Let VizTracer run torch's profiler too: VizTracer(log_torch=True). Or: {RECORD}",
        runs_torch=True,
    ),
    _Tool(name="py-spy", sign=re.compile(r"^category/py-spy$")),
    _Tool(name="Bazel", sign=re.compile(r"^other/(?:bazel_version|build_id)$")),
    _Tool(name="clang (-ftime-trace)", sign=re.compile(r"^metadata/beginningOfTime$")),
    _Tool(name="ninjatracing", sign=re.compile(r"^category/targets$")),
    _Tool(
        name="ONNX Runtime",
        sign=re.compile(r"^argument/(?:node_index|thread_scheduling_stats)$"),
    ),
    _Tool(
        name="TensorFlow or JAX (XLA)",
        sign=re.compile(r"^process/(?:/device:|/host:|/job:)"),
        remedy=f"Open it with xprof. For PyTorch: {RECORD}",
    ),
    _Tool(name="rocprof", sign=re.compile(r"^process/.*\b(?:HIP|HSA) API")),
    _Tool(
        name="Chrome's tracing",
        sign=re.compile(r"^category/(?:.*,)?(?:__metadata|blink|devtools\.timeline|toplevel|v8)\b"),
    ),
    _Tool(
        name="msprof (CANN)",
        sign=re.compile(r"^argument/(?:Physic Stream Id|connection_id)$"),
        remedy=(
            "Record the training with torch_npu.profiler.profile(activities=["
            "ProfilerActivity.CPU, ProfilerActivity.NPU]), and give its trace_view.json."
        ),
    ),
    _Tool(name="Perfetto", sign=re.compile(r"^metadata/systemTraceEvents$")),
)
_BARE_EXPORT = Producer(
    name="torch.autograd's EventList",
    is_torch=True,
    missing=(
        "This export holds names and times of the host only: no kernels and copies, no shapes, no "
        "allocations.",
    ),
    remedy=(
        "Call export_chrome_trace(path) of the profiler itself (torch.profiler.profile), not that "
        "of its events()."
    ),
)


@computed
def producer(trace: Trace) -> Producer:
    """Return what wrote this recording's file."""
    signs = set(_signs(trace))
    if f"process/{BARE_EXPORT_PROCESS}" in signs:
        return _BARE_EXPORT
    tool = next((tool for tool in _TOOLS if any(map(tool.sign.search, signs))), None)
    if not _is_torch(trace):
        return Producer(
            name=tool.name if tool else UNKNOWN,
            is_torch=False,
            missing=tuple(_missing(trace)),
            remedy=tool.remedy if tool else RECORD,
        )
    return Producer(name=_torch_name(trace, signs, tool), is_torch=True, missing=(), remedy="")


def _torch_name(trace: Trace, signs: set[str], tool: _Tool | None) -> str:
    around = tool.name if tool and tool.runs_torch else ""
    if trace.metadata.get("Framework") == "pytorch-lightning":
        around = "PyTorch Lightning"
    names = (
        (trace.is_synthetic, "stepscope's synthesiser"),
        (bool(signs & {"category/async_npu", "argument/Physic Stream Id"}), "torch_npu.profiler"),
        (bool(around), f"{around} with {KINETO}"),
        (True, KINETO),
    )
    return next(name for applies, name in names if applies)


def _signs(trace: Trace) -> Iterator[str]:
    """Yield what tells tools apart: the keys, categories, arguments and processes of the file."""
    columns = trace.columns
    strings = columns.strings
    yield from (f"metadata/{key}" for key in columns.metadata)
    other = columns.metadata.get("otherData")
    yield from (f"other/{key}" for key in (other if isinstance(other, dict) else ()))
    yield from (f"argument/{key}" for key in columns.arguments)
    for kind, codes in (("category", columns.category), ("process", columns.pid)):
        occurs = np.zeros(len(strings) + 1, dtype=bool)
        occurs[codes] = True  # -1, none, is the last
        yield from (f"{kind}/{strings[code]}" for code in np.flatnonzero(occurs[:-1]).tolist())
    yield from (f"process/{name}" for name in _process_names(trace))


def _process_names(trace: Trace) -> tuple[str, ...]:
    """Return the names that metadata events give processes, among those of threads."""
    named = trace.columns.arguments.get("name")
    return (named.texts if named else None) or ()


def _holds(trace: Trace, *kinds: Kind) -> bool:
    return any(bool((trace.source.kinds == int(kind)).any()) for kind in kinds)


def _is_torch(trace: Trace) -> bool:
    """Tell whether torch's profiler had a hand in it, however little it recorded."""
    if _holds(trace, Kind.OPERATOR, Kind.DEVICE_ANNOTATION) or len(trace.steps):
        return True
    return "schemaVersion" in trace.metadata


def _missing(trace: Trace) -> Iterator[str]:
    yield "No torch operator was recorded: advice cannot name what the time is spent on."
    if not _holds(trace, *DEVICE_KINDS):
        yield "No work of a device was recorded: how busy it is cannot be told."
    yield "No step is marked: figures are of the whole recording."
