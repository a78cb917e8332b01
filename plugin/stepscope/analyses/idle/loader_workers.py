"""Worker processes of the DataLoader."""

from stepscope.analyses.idle.loader_restarts import loader_restarts
from stepscope.analyses.settings.recorded_settings import (
    common_value,
    recorded_settings,
    used_loaders,
)
from stepscope.analyses.settings.user_metadata import hints
from stepscope.model.trace import Trace


def worker_count(trace: Trace) -> int:
    """Return the number of loading workers: given, recorded, or as they started; 0: unknown."""
    if (given := hints(trace).num_workers) is not None:
        return given
    recorded = common_value(
        loader.worker_count
        for loader in used_loaders(recorded_settings(trace))
        if loader.worker_count
    )
    if recorded is not None:
        return recorded
    return max(loader_restarts(trace).worker_counts, default=0)
