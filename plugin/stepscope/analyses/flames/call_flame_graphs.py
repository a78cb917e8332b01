"""Flame graphs of calls: the host's time by caller, the device's time by launching call."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.event_references import is_user_code
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.links import links
from stepscope.analyses.flames.flame_tree import CODES, NONE, FlameTree, Nodes
from stepscope.analyses.host.host_call_tree import host_tree
from stepscope.analyses.host.host_flame import host_flame
from stepscope.analyses.host.module_names import LIGHTNING_MODULE, TORCH_MODULE
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
    host = host_calls_tree(trace)
    events = trace.device_events
    above = _launching_nodes(trace)
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


def _launching_nodes(trace: Trace) -> Nodes:
    """Return the node of the call that launched each device event, or -1."""
    tree, of_trace, node = host_tree(trace), links(trace), host_flame(trace).paths.node
    call, owner = of_trace.call_of_device_event, of_trace.owner_of_device_event
    by_owner = np.where(owner >= 0, owner + tree.host_offset, NONE)
    row = np.where(call >= 0, call + tree.runtime_offset, by_owner)
    return np.append(node, NONE)[row]


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
    return kinds


def _python_kind(name: str) -> int:
    if TORCH_MODULE.match(name):
        return CODES["module"]
    return CODES["user" if is_user_code(name) else "python"]
