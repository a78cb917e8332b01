"""Flame graph of a device's memory at its peak: allocations by the calls that made them.

Its total is all memory allocated then, as in `analyses/memory/at_peak.py`: memory allocated before
the trace, and memory without any record, have nodes of their own.
"""

from dataclasses import replace

import numpy as np

from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.links import enclosing_call
from stepscope.analyses.flames.call_flame_graphs import host_calls_tree
from stepscope.analyses.flames.flame_tree import CODES, NONE, FlameTree, Nodes
from stepscope.analyses.host.host_call_tree import host_tree
from stepscope.analyses.host.host_flame import host_flame
from stepscope.analyses.memory.at_peak import NOT_TOLD, Peak, memory_at_peak
from stepscope.analyses.memory.owners import python_calls_around
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.model.trace import Trace, computed

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
        raise MissingDataError(NOT_TOLD)
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
    at = peak.pairs.allocated_at[peak.held]
    earlier = peak.is_earlier
    node = np.append(_nodes(trace), NONE)[at]
    node = np.where(earlier, len(host) + 1, np.where(node == NONE, len(host), node))
    size = peak.pairs.bytes[peak.held]
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
    unrecorded = peak.untold_bytes
    if np.isnan(unrecorded) and not len(peak.held):  # no totals, and nothing could be paired
        unrecorded = float(peak.curve.change_bytes[peak.at])
    return int(unrecorded) if unrecorded > 0 else 0


def _total_bytes(peak: Peak) -> int:
    return int(peak.pairs.bytes[peak.held].sum()) + unrecorded_bytes(peak)


@computed
def _nodes(trace: Trace) -> Nodes:
    """Return, for each row of `memory`, the node of the innermost call around it, or -1."""
    tree, node = host_tree(trace), host_flame(trace).paths.node
    host, python = enclosing_call(trace, trace.memory), python_calls_around(trace)
    row = np.where(host != NONE, host + tree.host_offset, NONE)
    depth = np.append(tree.nesting.depth, NONE)
    innermost = np.where(depth[python] > depth[row], python, row)
    return np.append(node, NONE)[innermost]
