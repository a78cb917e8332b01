"""The host's calls that fetch the next batch."""

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
