"""The tool that wrote the file, the data that advice misses in it, and the remedy.

Many tools write Chrome's trace format. Their files open as torch's do, with fewer analyses.
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
    """The tool that wrote a file."""

    name: str
    """As it follows "written by"."""
    is_torch: bool
    """Whether the file holds torch's operators, or device work that kineto recorded."""
    missing: tuple[str, ...]
    """Sentences on the data that advice needs and the file lacks; empty for torch's traces."""
    remedy: str
    """A sentence on the trace to record instead; empty where nothing is missing."""


@dataclass(frozen=True, kw_only=True)
class _Tool:
    """A tool, identified by a pattern over its files' signs (see `_signs`)."""

    name: str
    sign: re.Pattern[str]
    remedy: str = RECORD
    runs_torch: bool = False
    """Whether it can run torch's profiler and write both traces into one file."""


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
    """Return the tool that wrote the trace's file."""
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
    """Yield the file's keys, categories, arguments and processes, by which tools are identified."""
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
    named = trace.columns.arguments.get("name")
    return (named.texts if named else None) or ()


def _holds(trace: Trace, *kinds: Kind) -> bool:
    return any(bool((trace.source.kinds == int(kind)).any()) for kind in kinds)


def _is_torch(trace: Trace) -> bool:
    """Return whether torch's profiler wrote any of the file."""
    if _holds(trace, Kind.OPERATOR, Kind.DEVICE_ANNOTATION) or len(trace.steps):
        return True
    return "schemaVersion" in trace.metadata


def _missing(trace: Trace) -> Iterator[str]:
    yield "No torch operator was recorded: advice cannot name the code that takes the time."
    if not _holds(trace, *DEVICE_KINDS):
        yield "No device work was recorded: device utilization is unknown."
    yield "No step is marked: figures cover the whole trace."
