"""Checkpoints that are written while the device is idle."""

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
from stepscope.rules import Claim, Finding, Rule, option

LABEL = "save_checkpoint"
"""The training loop wraps checkpoints in `record_function("save_checkpoint")`."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """Threshold of the rule."""

    least_share: float = option(
        0.02, "Idle time during checkpoints, of the window.", origin="ours: less is negligible"
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report the time in which a checkpoint is written and the device is idle."""
    device = main_device(trace)
    calls = trace.annotations[trace.annotations["name"] == LABEL]
    if device is None or not len(calls):
        msg = f"no checkpoint was recorded ({LABEL})"
        raise NotApplicableError(msg)
    saving = intervals.union(calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy())
    steps = window(trace)
    idle = intervals.clip(
        intervals.difference(saving, device.busy), steps.start_ns, steps.device_end_ns
    )
    idle_ns = intervals.duration_ns(idle)
    if idle_ns < options.least_share * steps.reference_ns:
        return
    yield Finding(
        message=(
            f"{count(len(calls), 'checkpoint is', 'checkpoints are')} written while the "
            f"{trace.dialect.device} is idle: {duration(steps.per_step(idle_ns))} per step."
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
    title="Checkpoints are written while the device is idle",
    category="input and output",
    why="Writing a checkpoint takes seconds, during which the host launches no kernels.",
    detects=f"Ranges named {LABEL} during which the device is idle for `least_share` or more.",
    saving="The idle time in those ranges: at least half of it.",
    fix=Fix(
        summary="Write checkpoints in the background.",
        code="torch.distributed.checkpoint.async_save(state, checkpoint_id=path)",
        verify="The range is short in the next trace.",
    ),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    priority="loading",
    culprit="writing checkpoints",
    links=("https://docs.pytorch.org/docs/stable/distributed.checkpoint.html",),
    origin="an incident at acme",
    since="0.1.0",
)
