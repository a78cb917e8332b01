"""Checkpoints that are written while the device waits."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, Fix
from stepscope.base.formatting import count, duration
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Priority, Rule, option

LABEL = "save_checkpoint"
"""Our training loop wraps checkpoints in `record_function("save_checkpoint")`."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """When checkpoints are worth a word."""

    least_share: float = option(
        0.02, "Idle time during checkpoints, of the window.", origin="ours: less is rare enough"
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report the time in which a checkpoint is written and the device does nothing."""
    device = main_device(trace)
    calls = trace.annotations[trace.annotations["name"] == LABEL]
    if device is None or not len(calls):
        msg = f"no checkpoint was recorded ({LABEL})"
        raise NotApplicableError(msg)
    saving = intervals.union(calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy())
    within = window(trace)
    idle = intervals.clip(
        intervals.difference(saving, device.busy), within.start_ns, within.device_end_ns
    )
    idle_ns = intervals.duration_ns(idle)
    if idle_ns < options.least_share * within.reference_ns:
        return
    yield Finding(
        message=(
            f"{count(len(calls), 'checkpoint is', 'checkpoints are')} written while the "
            f"{trace.dialect.device} waits: {duration(within.per_step(idle_ns))} a step."
        ),
        evidence=(Evidence(label="Idle while saving", value=idle_ns, unit="ns"),),
        claims=(
            Claim(
                intervals=idle,
                factor=HALF_TO_ALL,
                method="Idle time while a checkpoint is written.",
            ),
        ),
    )


RULE = Rule(
    id="acme/checkpoint-in-step",
    title="Checkpoints are written while the device waits",
    category="input and output",
    why="Writing a checkpoint takes seconds, in which the host launches nothing.",
    detects=f"Ranges named {LABEL}: it speaks where the device is idle in them for `least_share`.",
    saving="The idle time in those ranges: at least half of it.",
    fix=Fix(
        summary="Write checkpoints in the background.",
        code="torch.distributed.checkpoint.async_save(state, checkpoint_id=path)",
        verify="The range becomes short in the next recording.",
    ),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    priority=Priority.LOADING,
    culprit="writing checkpoints",
    links=("https://docs.pytorch.org/docs/stable/distributed.checkpoint.html",),
    origin="an incident of ours",
    since="0.1.0",
)
