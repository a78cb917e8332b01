"""Host calls that torch.compile records, by the names that torch gives them.

As of torch 2.13 (`torch/_dynamo/convert_frame.py`, `torch/_dynamo/utils.py`,
`torch/_inductor/output_code.py`); earlier versions write some of them:

- `Torch-Compiled Region: 0/1`: a call of compiled code; 0 is the frame, 1 its second compilation;
- `… (dynamo_timed)`: a phase of compiling, with `…_data: …, compile_id=0/1` since 2.12;
- `TorchDynamo Cache Lookup`: the guard check;
- `## Call CompiledFxGraph <hash> ##`: a call of a graph that Inductor compiled.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.ancestry import nearest
from stepscope.analyses.core.group_statistics import sums_where
from stepscope.analyses.core.links import links
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Ints, Objects
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

COMPILE_ID = re.compile(
    # torch/_guards.py, CompileId: `!` is compiled autograd's, `_1` a second attempt
    r"(?:!(?P<autograd>\d{1,9})/?)?(?:(?P<frame>\d{1,9})/(?P<number>\d{1,9})(?:_\d+)?)?"
)
REGION = re.compile(r"^Torch-Compiled Region: (?P<id>\S+)$")
GRAPH = re.compile(r"^## Call CompiledFxGraph (?P<hash>\S+) ##$")
TIMED = re.compile(r"^(?P<phase>.+) \(dynamo_timed\)$")
ID_ARGUMENT = re.compile(r"_data: .*\bcompile_id=(?P<id>[^,\s]+)")
LOOKUP = "TorchDynamo Cache Lookup"
BACKWARD = re.compile(r"^CompiledFunctionBackward$")


@dataclass(frozen=True, kw_only=True, eq=False)
class CompileEvents:
    """For each row of `host_calls`: such a call, itself or around it, or -1."""

    region: Ints
    """The nearest call of compiled code."""
    graph: Ints
    """The nearest call of a graph that Inductor compiled."""
    phase: Ints
    """The outermost phase of compiling."""


@computed
def compile_events(trace: Trace) -> CompileEvents:
    """Return the compiled region, graph and phase around each host call."""
    return CompileEvents(
        region=nearest_named(trace, REGION),
        graph=nearest_named(trace, GRAPH),
        phase=outermost_named(trace, TIMED),
    )


def nearest_named(trace: Trace, pattern: re.Pattern[str]) -> Ints:
    """Return, for each row of `host_calls`, the nearest call whose name matches, or -1.

    That is the call itself, or one around it.
    """
    calls = trace.host_calls
    if not any(pattern.search(str(name)) for name in calls["name"].cat.categories):
        return np.full(len(calls), NONE, dtype=np.int64)
    return nearest(calls["parent"].to_numpy(), name_mask(calls["name"], pattern.search))


def outermost_named(trace: Trace, pattern: re.Pattern[str]) -> Ints:
    """Return, for each row of `host_calls`, the outermost call whose name matches, or -1."""
    top = nearest_named(trace, pattern)
    if not (top >= 0).any():
        return top
    above = np.append(np.append(top, NONE)[trace.host_calls["parent"].to_numpy()], NONE)
    while (climbing := above[top] != NONE).any():
        top[climbing] = above[top[climbing]]
    return top


@dataclass(frozen=True, kw_only=True, eq=False)
class DeviceWork:
    """For each row of `host_calls`: the device work that it launched directly."""

    kernel_count: Ints
    device_ns: Ints
    """Kernels, copies and memory sets."""


@computed
def device_work(trace: Trace) -> DeviceWork:
    """Return the device work of each host call: of the innermost operator around each launch."""
    events, owner = trace.device_events, links(trace).owner_of_device_event
    count, is_kernel = len(trace.host_calls), (events["kind"] == int(Kind.KERNEL)).to_numpy()
    return DeviceWork(
        kernel_count=np.bincount(owner[is_kernel & (owner != NONE)], minlength=count),
        device_ns=sums_where(events["duration_ns"].to_numpy(), owner, count),
    )


def name_parts(trace: Trace, rows: Ints, pattern: re.Pattern[str], group: str) -> Objects:
    """Return a pattern's group in the names of host calls; None for row -1 and without a match."""
    names = trace.host_calls["name"].cat
    matches = [pattern.search(str(name)) for name in names.categories]
    texts = np.array([*(match[group] if match else None for match in matches), None], dtype=object)
    return np.asarray(texts[np.append(names.codes.to_numpy(), NONE)[rows]])
