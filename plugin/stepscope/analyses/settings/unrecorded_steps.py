"""Times of steps that ran without the profiler, as stepscope's recorder measured them.

    "stepscope_recorder": {…, "unrecorded_steps": {"count": 47, "median_ns": 98_200_000, …}}

The steps are those before the window, without warm-up (`recording/step_times.py`). A count of 0
means that the recorder had too few. Traces are untrusted: figures that contradict each other count
as absent.
"""

from dataclasses import dataclass

from stepscope.analyses.settings.recorded_settings import KEY
from stepscope.analyses.settings.setting_kinds import as_count
from stepscope.analyses.settings.user_metadata import metadata_mapping
from stepscope.base.errors import MissingDataError
from stepscope.model.trace import Trace, computed

SUBJECT = "unrecorded_steps"
MOST_BACKLOG = 0.05
"""With more device work queued at the end, as a fraction of all the steps' time, the host's
intervals are not the device's steps."""
QUARTILES = ("first_quartile_ns", "median_ns", "third_quartile_ns")
USE_RECORDER = 'on_trace_ready=stepscope.trace_handler("log/run")'
WAIT_COUNT = 10
"""Steps to wait before the window: nine are measured, since the first is left out."""
WAIT_LONGER = f"schedule=torch.profiler.schedule(wait={WAIT_COUNT}, warmup=1, active=3)"


@dataclass(frozen=True, kw_only=True)
class UnrecordedSteps:
    """Steady steps before the window that were not recorded."""

    count: int
    median_ns: int
    """Typical step: the median interval between steps on the host; if the device was behind, the
    mean time per step until its work had ended."""
    first_quartile_ns: int | None
    """None if the device was behind: the host's intervals do not show the spread."""
    third_quartile_ns: int | None
    mean_ns: int | None = None
    """Mean time per step, until the device's work has ended. Rare slow steps, such as those that
    restart workers, are in it, and not in the median. None: not recorded."""
    is_after_profiler: bool = False
    """Whether the profiler had run before: on a device, launches then take longer."""

    @property
    def step_ns(self) -> int:
        """The mean, like that of recorded steps; the median where there is none."""
        return self.mean_ns or self.median_ns


@computed
def measured_steps(trace: Trace) -> UnrecordedSteps | None:
    """Return the measured steps; None without the recorder, or if it had too few."""
    figures = metadata_mapping(trace, KEY).get(SUBJECT)
    if not isinstance(figures, dict):
        return None
    count, mean, backlog = (
        as_count(figures.get(name)) or 0 for name in ("count", "mean_ns", "backlog_ns")
    )
    first, median, third = (as_count(figures.get(name)) or 0 for name in QUARTILES)
    if not count or not 0 < first <= median <= third:
        return None
    is_behind = mean and backlog > MOST_BACKLOG * count * mean
    return UnrecordedSteps(
        count=count,
        median_ns=mean if is_behind else median,
        first_quartile_ns=None if is_behind else first,
        third_quartile_ns=None if is_behind else third,
        mean_ns=mean or None,
        is_after_profiler=as_count(figures.get("after_profiler")) == 1,
    )


def unrecorded_steps(trace: Trace) -> UnrecordedSteps:
    """Return the measured steps.

    Raises:
        MissingDataError: no unrecorded step was measured.
    """
    steps = measured_steps(trace)
    if steps is not None:
        return steps
    if has_recorder(trace):
        msg = "fewer than 3 steps ran without the profiler before the window"
        raise MissingDataError(msg, WAIT_LONGER)
    msg = "the time of steps without the profiler was not measured"
    raise MissingDataError(msg, USE_RECORDER)


def has_recorder(trace: Trace) -> bool:
    """Return whether a recorder that measures unrecorded steps wrote the file."""
    return SUBJECT in metadata_mapping(trace, KEY)
