"""Flame graphs of a trace: of the host's and the device's calls, of modules, and of memory.

The memory graph shows a device at its peak, with all memory as in `analyses/memory/at_peak.py`:
memory allocated before the trace, and memory without any record, have nodes of their own.
"""

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.data_loading import LOADING
from stepscope.analyses.core.event_references import is_users_file
from stepscope.analyses.core.group_statistics import sums, sums_where
from stepscope.analyses.core.links import enclosing_call, links
from stepscope.analyses.flames.flame_tree import CODES, FlameTree
from stepscope.analyses.host.host_call_tree import host_flame, host_tree
from stepscope.analyses.host.module_tree import (
    LIGHTNING_MODULE,
    TORCH_MODULE,
    ModuleTree,
    module_tree,
)
from stepscope.analyses.memory.at_peak import ABSURD_SIZES, Peak, memory_at_peak
from stepscope.analyses.memory.owners import python_calls_around
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.trace import Trace, computed

NOT_LAUNCHED = "launched by no recorded call"


@computed
def host_calls_tree(trace: Trace) -> FlameTree:
    """Return the flame graph of the host's time."""
    flame = host_flame(trace)
    return FlameTree(
        parent=flame.paths.parent,
        name=flame.paths.name,
        names=flame.names,
        kinds=_kinds(trace, flame.names),
        self_values=flame.host_self_ns[None],
        calls=flame.call_count[None].astype(np.int64),
        merged_count=np.zeros(len(flame), dtype=np.int64),
        unit="ns",
    )


@computed
def device_calls_tree(trace: Trace) -> FlameTree:
    """Return the device's time: kernels, copies and memory sets below their launching calls.

    Work without a recorded launch is at the top, below a node of its own.
    """
    return _device_tree(trace, np.ones(len(trace.device_events), dtype=bool))


def _device_tree(trace: Trace, selected: Mask) -> FlameTree:
    """Return the tree of some rows of `device_events`."""
    host = host_calls_tree(trace)
    events = trace.device_events[selected]
    above = np.append(host_flame(trace).paths.node, NONE)[_launching_calls(trace)[selected]]
    kernel = events["name"].cat
    texts = [str(name) for name in kernel.categories]
    codes = np.where(kernel.codes >= 0, kernel.codes, len(texts)).astype(np.int64)
    count = len(texts) + 1
    of_event, distinct = pd.factorize((above + 1) * count + codes)
    parent, name = np.divmod(distinct, count)
    parent -= 1
    lost = len(host)  # the node of what no recorded call launched
    parent[parent == NONE] = lost
    self_values = sums(events["duration_ns"].to_numpy(), of_event, len(distinct))
    kinds = np.full(count + 1, CODES["kernel"], dtype=np.int8)
    kinds[codes] = _device_kinds(events)
    kinds[-1] = CODES["rest"]
    return FlameTree(
        parent=np.concatenate((host.parent, [NONE], np.where(parent >= lost, lost, parent))),
        name=np.concatenate((host.name, [len(host.names) + count], name + len(host.names))),
        names=(*host.names, *texts, "", NOT_LAUNCHED),
        kinds=np.concatenate((host.kinds, kinds)),
        self_values=np.concatenate((np.zeros(lost + 1, dtype=np.int64), self_values))[None],
        calls=np.concatenate(
            (host.calls[0], [0], np.bincount(of_event, minlength=len(distinct)))
        ).astype(np.int64)[None],
        merged_count=np.zeros(lost + 1 + len(distinct), dtype=np.int64),
        unit="ns",
    )


def _launching_calls(trace: Trace) -> Ints:
    """Return the row of `host_tree` that launched each device event, or -1."""
    tree, of_trace = host_tree(trace), links(trace)
    call, owner = of_trace.call_of_device_event, of_trace.owner_of_device_event
    by_owner = np.where(owner >= 0, owner + tree.host_offset, NONE)
    return np.where(call >= 0, call + tree.runtime_offset, by_owner)


def _launching_threads(trace: Trace) -> Ints:
    """Return the thread that launched each device event, as in `host_tree`, or -1."""
    return np.append(host_tree(trace).thread.astype(np.int64), NONE)[_launching_calls(trace)]


Measure = Literal["host", "device"]


def thread_times(trace: Trace, measure: Measure) -> Ints:
    """Return the time of each of `Source.threads`: of its calls, or of the work they launched."""
    tree, events = host_tree(trace), trace.device_events
    thread, time_ns = (
        (tree.thread, tree.self_ns)
        if measure == "host"
        else (_launching_threads(trace), events["duration_ns"].to_numpy())
    )
    return sums_where(time_ns, thread, len(trace.source.threads[1]))


def thread_calls_tree(trace: Trace, measure: Measure, name: str) -> FlameTree:
    """Return the flame graph of one thread: its time, or that of the device work it launched.

    The name is one of `Source.threads`; in a part of a trace, the thread may have no calls.
    """
    names = trace.source.threads[1]
    thread = names.index(name) if name in names else len(names)
    if measure == "device":
        return _device_tree(trace, _launching_threads(trace) == thread)
    host, tree, paths = host_calls_tree(trace), host_tree(trace), host_flame(trace).paths
    is_selected = tree.thread == thread
    calls = np.bincount(paths.node[is_selected], minlength=len(host)).astype(np.int64)
    self_ns = paths.sums(np.where(is_selected, tree.self_ns, 0))
    return replace(host, self_values=self_ns[None], calls=calls[None])


def _kinds(trace: Trace, names: tuple[str, ...]) -> NDArray[np.int8]:
    """Return the kind of each name of the host's tree."""
    tree = host_tree(trace)
    kinds = np.array([_python_kind(name) for name in names], dtype=np.int8)
    host = slice(tree.host_offset, tree.runtime_offset)
    kinds[tree.name[host]] = np.where(
        tree.is_operator[host], CODES["operator"], CODES["annotation"]
    )
    kinds[tree.name[tree.runtime_offset :]] = CODES["runtime"]
    lightning = [code for code, name in enumerate(names) if LIGHTNING_MODULE.match(name)]
    kinds[lightning] = CODES["module"]
    loading = [code for code, name in enumerate(names) if LOADING.search(name)]
    kinds[[code for code in loading if kinds[code] == CODES["annotation"]]] = CODES["dataloader"]
    return kinds


def _device_kinds(events: pd.DataFrame) -> NDArray[np.int8]:
    """Return the kind of the frame of each device event."""
    kinds = np.full(max(Kind) + 1, CODES["kernel"], dtype=np.int8)
    kinds[[Kind.COPY, Kind.MEMORY_SET]] = CODES["memcpy"], CODES["memset"]
    of_kind = kinds[events["kind"].to_numpy()]
    return np.where(events["is_collective"], np.int8(CODES["communication"]), of_kind)


def _python_kind(name: str) -> int:
    if TORCH_MODULE.match(name):
        return CODES["module"]
    return CODES["user" if is_users_file(name) else "python"]


Phase = Literal["all", "forward", "backward", "rerun"]
OUTSIDE_MODULES = "outside of modules"
UNASSIGNED = "backward pass of no known module"


def modules_tree(trace: Trace, measure: Literal["host", "device"], phase: Phase) -> FlameTree:
    """Return the modules' time; with all phases, and the time outside of modules, it is all time.

    Raises:
        MissingDataError: the trace holds no modules.
    """
    modules = module_tree(trace)
    self_ns = _self_ns(modules, measure, phase)
    rest = {
        UNASSIGNED: modules.unassigned_backward_ns[measure == "device"]
        if phase in {"all", "backward"}
        else 0
    }
    if phase == "all":
        flame = host_flame(trace)
        total_ns = flame.host_self_ns if measure == "host" else flame.device_self_ns
        rest[OUTSIDE_MODULES] = int(total_ns.sum()) - int(self_ns.sum()) - rest[UNASSIGNED]
    rest = {name: value for name, value in rest.items() if value}
    count = len(modules)
    texts = [module.name for module in modules.modules]
    code_of = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    names = (*code_of, *rest)
    kinds = np.full(len(names), CODES["module"], dtype=np.int8)
    kinds[len(code_of) :] = CODES["rest"]
    codes = [*(code_of[text] for text in texts), *range(len(code_of), len(names))]
    calls = modules.rerun_count if phase == "rerun" else modules.call_count
    added = len(rest)
    return FlameTree(
        parent=np.concatenate((modules.parent, np.full(added, NONE, dtype=np.int64))),
        name=np.array(codes, dtype=np.int64),
        names=names,
        kinds=kinds,
        self_values=np.concatenate((self_ns, np.array(list(rest.values()), dtype=np.int64)))[None],
        calls=np.concatenate((calls, np.zeros(added, dtype=np.int64)))[None],
        merged_count=np.zeros(count + added, dtype=np.int64),
        unit="ns",
    )


def _self_ns(modules: ModuleTree, measure: Literal["host", "device"], phase: Phase) -> Ints:
    costs = {"forward": modules.forward, "backward": modules.backward, "rerun": modules.rerun}
    selected = costs.values() if phase == "all" else (costs[phase],)
    self_ns = np.zeros(len(modules), dtype=np.int64)
    for cost in selected:
        self_ns += cost.host_ns if measure == "host" else cost.device_ns
    return self_ns


EARLIER = "allocated before the trace, freed in it"
UNRECORDED = "not recorded: allocated before the trace and never freed"
OUTSIDE = "in no recorded call"
REST = (OUTSIDE, EARLIER, UNRECORDED)


def peak_of(trace: Trace, label: str | None) -> Peak:
    """Return the peak of the device with this label; without one, the highest of all devices.

    Raises:
        MissingDataError: the trace has no memory events, or no usable ones.
        UsageError: there is no such device.
    """
    peaks = memory_at_peak(trace)
    if not peaks:
        raise MissingDataError(ABSURD_SIZES)
    if label is None:
        return max(peaks, key=lambda peak: (peak.curve.device.number >= 0, _total_bytes(peak)))
    for peak in peaks:
        if peak.curve.device.label == label:
            return peak
    labels = ", ".join(peak.curve.device.label for peak in peaks)
    msg = f"no memory of {label!r} was recorded; there is {labels}"
    raise UsageError(msg)


def memory_tree(trace: Trace, peak: Peak) -> FlameTree:
    """Return the memory of a device at its peak."""
    host = host_calls_tree(trace)
    at = peak.pairs.allocated_at[peak.live]
    earlier = peak.is_earlier
    node = np.append(_nodes(trace), NONE)[at]
    node = np.where(earlier, len(host) + 1, np.where(node == NONE, len(host), node))
    size = peak.pairs.bytes[peak.live]
    count = len(host) + len(REST)
    self_values = sums(size, node, count)
    calls = np.bincount(node, minlength=count).astype(np.int64)
    self_values[-1] = unrecorded_bytes(peak)
    kinds = np.full(len(REST), CODES["rest"], dtype=np.int8)
    return replace(
        host,
        parent=np.concatenate((host.parent, np.full(len(REST), NONE))),
        name=np.concatenate((host.name, len(host.names) + np.arange(len(REST)))),
        names=(*host.names, *REST),
        kinds=np.concatenate((host.kinds, kinds)),
        self_values=self_values[None],
        calls=calls[None],
        merged_count=np.zeros(count, dtype=np.int64),
        unit="bytes",
    )


def unrecorded_bytes(peak: Peak) -> int:
    """Return the memory without any record; 0 if unknown, or if records are missing."""
    unrecorded = peak.unrecorded_bytes
    if np.isnan(unrecorded) and not len(peak.live):  # no totals, and nothing could be paired
        unrecorded = float(peak.curve.change_bytes[peak.at])
    return int(unrecorded) if unrecorded > 0 else 0


def _total_bytes(peak: Peak) -> int:
    return int(peak.pairs.bytes[peak.live].sum()) + unrecorded_bytes(peak)


@computed
def _nodes(trace: Trace) -> Ints:
    """Return, for each row of `memory`, the node of the innermost call around it, or -1."""
    tree, node = host_tree(trace), host_flame(trace).paths.node
    host, python = enclosing_call(trace, trace.memory), python_calls_around(trace)
    row = np.where(host != NONE, host + tree.host_offset, NONE)
    depth = np.append(tree.nesting.depth, NONE)
    innermost = np.where(depth[python] > depth[row], python, row)
    return np.append(node, NONE)[innermost]
