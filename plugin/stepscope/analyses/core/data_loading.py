"""The host's calls that fetch the next batch, and the cost of taking one from a worker."""

import math
import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import frame_times
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

LOADING = re.compile(
    r"^enumerate\(Data(?:Loader|Pipe)\)#"
    # Lightning's profiler (pytorch_lightning/loops): train_dataloader_next, val_next; before 1.5
    # get_train_batch
    r"|^\[pl\]\[profile\].*(?:_next$|_next_data|get_\w+_batch$)"
)
SINGLE_PROCESS = re.compile(r"_SingleProcessDataLoaderIter")
MULTI_PROCESS = re.compile(r"_MultiProcessingDataLoaderIter")
HANDOVER_OF_BATCH_NS = 300_000
"""The loop's time to take a batch that is ready from a worker, in steps of `SHORT_STEP_NS`."""
HANDOVER_OF_TENSOR_NS = 200_000
"""Each tensor of the batch: the worker sends the file descriptor of its memory over a socket."""
SHORT_STEP_NS = 3_000_000
LONG_STEP_NS = 24_000_000
"""Of steps as long as this or longer, both times are twice as long: each message wakes a process,
from a deeper sleep, whose code has left the caches.

The numbers were fitted on a micro-benchmark (torch 2.13, two cores that other processes used too, 1
to 8 tensors every 3 to 24 ms) and on recorded calls: medians are 0.7 times the formula for two
tensors every 5 ms (`tabular`), 1.0 to 1.25 every 9 ms (`super_resolution`), 0.9 every 15 ms
(`cifar_resnet18/thin_workers`), 1.1 to 1.2 every 24 ms (`image_classifier`), 1.1 and 1.0 every 60
ms (`dataloader`, `lightning_fetch`), 1.0 every 124 ms (Kineto's traces with four workers); for four
tensors every 9 ms 1.2 (`multi_task_vision`)."""
USUAL_TENSORS = 2
"""Inputs and targets."""
MOST_TENSORS = 8
"""More stacked tensors per batch than this belong to single samples."""
TAKEN_TENSOR = "aten::set_"
"""torch/_utils.py `_rebuild_tensor` gives a tensor from a worker its memory."""
COLLATED_TENSOR = "aten::stack"
"""torch/utils/data/_utils/collate.py makes a tensor of all samples."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DataLoading:
    """The host's calls for the next batch."""

    times: Intervals
    """All times inside such a call."""
    rows: np.ndarray[tuple[int], np.dtype[np.int64]]
    """The calls, as `host_calls` rows."""
    single_process_count: int
    """Calls of a DataLoader with `num_workers=0`: they load the batch themselves."""
    multi_process_count: int
    """Calls of a DataLoader with workers: they wait for a batch."""

    @property
    def call_count(self) -> int:
        """Number of calls."""
        return len(self.rows)


@computed
def data_loading(trace: Trace) -> DataLoading:
    """Return the calls of torch's DataLoader and DataPipe, and of Lightning's loops."""
    calls = trace.host_calls
    names = calls["name"]
    is_loading = name_mask(names, LOADING.search)
    rows = np.flatnonzero(is_loading)
    return DataLoading(
        times=frame_times.times(calls, rows),
        rows=rows,
        single_process_count=int((is_loading & name_mask(names, SINGLE_PROCESS.search)).sum()),
        multi_process_count=int((is_loading & name_mask(names, MULTI_PROCESS.search)).sum()),
    )


def handover_ns(between_ns: float, tensor_count: int) -> int:
    """Return the loop's typical time to take a batch that is ready from a worker.

    Args:
        between_ns: Time from one batch's arrival to the next call.
        tensor_count: Tensors of a batch.
    """
    bounded_ns = min(max(between_ns, SHORT_STEP_NS), LONG_STEP_NS)
    slowdown = 1 + math.log(bounded_ns / SHORT_STEP_NS, LONG_STEP_NS / SHORT_STEP_NS)
    return round(slowdown * (HANDOVER_OF_BATCH_NS + HANDOVER_OF_TENSOR_NS * tensor_count))


@computed
def tensor_count(trace: Trace) -> int:
    """Return the number of tensors of a batch: taken from workers, or collated by the loop."""
    calls, loading = trace.host_calls, data_loading(trace)
    has_workers = loading.multi_process_count > 0
    is_made = name_mask(calls["name"], (TAKEN_TENSOR if has_workers else COLLATED_TENSOR).__eq__)
    start_ns = calls["start_ns"].to_numpy()[is_made]
    call = np.searchsorted(loading.times[:, 0], start_ns, side="right") - 1
    is_inside = (
        (call >= 0) & (start_ns < loading.times[call, 1]) if len(loading.times) else call > 0
    )
    counts = np.bincount(call[is_inside])
    typical = round(float(np.median(counts[counts > 0]))) if is_inside.any() else 0
    if has_workers:
        return typical or USUAL_TENSORS
    return typical if USUAL_TENSORS <= typical <= MOST_TENSORS else USUAL_TENSORS
