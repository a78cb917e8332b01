"""Gradient accumulation: forward passes per optimizer step, and reductions after each pass."""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.communication.collective_events import requested_in_calls, requested_ns
from stepscope.analyses.core.window import window
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

WRAPPERS: dict[str, re.Pattern[str]] = {
    # recorded once per forward pass of the whole model
    "DDP": re.compile(r"^DistributedDataParallel\.forward$"),
    "FSDP": re.compile(r"^FullyShardedDataParallel\._to_kwargs$"),
    "FSDP2": re.compile(r"^FSDP::root_pre_forward\b"),
}
OPTIMIZER_STEP = re.compile(r"^Optimizer\.step#")
REDUCTIONS = frozenset({"all_reduce", "reduce_scatter"})
IN_BATCH_NORM = re.compile(r"^SyncBatchNorm")
"""Its reductions are of statistics, and needed in every pass."""
SAME_SHARE = 0.1
"""Passes that reduce the same gradients differ by less than this fraction of their bytes."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Accumulation:
    """Forward passes of the wrapped model in the window."""

    wrapper: str
    """Key of `WRAPPERS`."""
    forward_count: int
    update_count: int
    """Forward passes after which the optimizer stepped."""
    early_count: int
    """Forward passes after which it did not step before the next pass."""
    reduced_count: int
    """Early passes after which as much was reduced as before an optimizer's step."""
    early: Mask
    """Mask over `collectives`: the reductions after reduced early passes."""
    early_passes: Intervals
    """Reduced early passes, each from its forward pass to the next one."""


@computed
def accumulation(trace: Trace) -> Accumulation | None:
    """Return the gradient accumulation; None without a wrapped model or an optimizer."""
    for wrapper, pattern in WRAPPERS.items():
        forwards, updates = _starts(trace, pattern), _starts(trace, OPTIMIZER_STEP)
        if len(forwards) and len(updates):
            return _accumulation(trace, wrapper, forwards, updates)
    return None


def _starts(trace: Trace, name: re.Pattern[str]) -> Ints:
    span, calls = window(trace), trace.host_calls
    start = calls["start_ns"].to_numpy()[name_mask(calls["name"], name.search)]
    return np.sort(start[(start >= span.start_ns) & (start < span.end_ns)])


def _accumulation(trace: Trace, wrapper: str, forwards: Ints, updates: Ints) -> Accumulation:
    """Classify each forward pass by the updates and reductions before the next pass."""
    count = len(forwards)
    stepped = np.bincount(_pass_of(forwards, updates) + 1, minlength=count + 1)[1:] > 0
    is_early = ~stepped
    is_early[-1] = False  # the optimizer's step may follow the trace's end
    is_reduction = trace.collectives["kind"].isin(REDUCTIONS).to_numpy()
    is_reduction = is_reduction & ~requested_in_calls(trace, IN_BATCH_NORM)
    owner = np.where(is_reduction, _pass_of(forwards, requested_ns(trace)), -1)
    sent = _sent(trace, owner, count)
    usual = float(np.median(sent[stepped])) if stepped.any() else 0.0
    is_reduced = is_early & (usual > 0) & (np.abs(sent - usual) < SAME_SHARE * usual)
    return Accumulation(
        wrapper=wrapper,
        forward_count=count,
        update_count=int(stepped.sum()),
        early_count=int(is_early.sum()),
        reduced_count=int(is_reduced.sum()),
        early=np.append(is_reduced, False)[owner],
        early_passes=np.column_stack((forwards[:-1], forwards[1:]))[is_reduced[:-1]],
    )


def _pass_of(forwards: Ints, moments: Ints | Floats) -> Ints:
    return np.searchsorted(forwards, moments, side="right") - 1


def _sent(trace: Trace, owner: Ints, count: int) -> Floats:
    """Return the bytes reduced after each pass; the number of messages where sizes are unknown."""
    has_owner = owner >= 0
    size = trace.collectives["message_bytes"].to_numpy()
    weight = size if has_owner.any() and not np.isnan(size[has_owner]).any() else np.ones(len(size))
    return np.bincount(owner[has_owner], weights=weight[has_owner], minlength=count).astype(
        np.float64
    )
