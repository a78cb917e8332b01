"""DDP copies reduced gradients back from its buckets."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.window import window
from stepscope.analyses.devices.exclusive_device_time import alone
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import ALL_OF_IT, HALF_TO_ALL
from stepscope.base.findings import Evidence, Fix, Link
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuledOut, RuleResult, option, severity_of
from stepscope.rules.shared import call_costs, ddp, facts, phrases

COPY = f"{ddp.REDUCER}copy_bucket_to_grad"


@dataclass(frozen=True, kw_only=True)
class Options:
    """When the copies are worth a word."""

    least_share: float = option(
        0.001,
        "Share of the window lost to them below which they are only listed as harmless.",
        origin="ours: below a thousandth no measurement of a step would show the change",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Copies:
    calls: NDArray[np.int64]
    """Rows of `host_calls`."""
    copied_bytes: int
    """What the device copied for them; 0 where there is no device."""
    host: Intervals
    """When the host was in them and no device worked."""
    device: Intervals
    """When the main device did nothing but these copies."""

    @property
    def lost_ns(self) -> int:
        return intervals.duration_ns(intervals.merged(self.host, self.device))


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report copies from DDP's buckets to the gradients."""
    ddp.require_ddp(trace)
    calls = ddp.calls(trace, COPY)
    if not len(calls):
        return
    found = _copies(trace, calls)
    lost = found.lost_ns / window(trace).reference_ns
    a_step = window(trace).per_step(len(calls))
    words = f"{count(a_step, 'gradient')} {phrases.per_step(trace)}"
    words += " is copied" if a_step == 1 else " are copied"
    words += " out of DDP's buckets"
    if lost < options.least_share:
        text = f"{words} in {share(lost)} of the time."
        yield RuledOut(message=text, evidence=tuple(_evidence(trace, found)))
        return
    cost = duration(window(trace).per_step(found.lost_ns))
    yield Finding(
        severity=severity_of(lost) or "info",
        message=f"{words}, which costs {cost} {phrases.per_step(trace)} ({share(lost)}).",
        evidence=tuple(_evidence(trace, found)),
        events=call_costs.longest(trace, calls),
        claims=(
            Claim(
                found.host,
                HALF_TO_ALL,
                "At least half of the host's time in the copies while no device worked.",
            ),
            Claim(
                found.device,
                ALL_OF_IT,
                "Where a device did nothing but these copies, all of that.",
                is_device_work=True,
            ),
        ),
        fix=_fix(trace),
    )


def _fix(trace: Trace) -> Fix | None:
    """Return what helps where the setting is on already; None: the rule's own fix."""
    if not recorded_settings(trace).distributed.gradient_as_bucket_view:
        return None
    return Fix(
        "Leave the gradients where they are: they are views of the buckets already.",
        "optimizer.zero_grad()  # set_to_none=True, the default: DDP makes them views again\n"
        "# and assign no other tensor: parameter.grad.copy_(new), not parameter.grad = new",
        verify=RULE.fix.verify,
        caveats=(f"gradient_as_bucket_view=True was {RECORDED}.",),
    )


def _copies(trace: Trace, calls: NDArray[np.int64]) -> _Copies:
    rows = ddp.launched_under(trace, calls)
    is_theirs = trace.copies["event"].isin(trace.device_events["event"].to_numpy()[rows])
    return _Copies(
        calls=calls,
        copied_bytes=int(trace.copies["bytes"][is_theirs].clip(lower=0).sum()),
        host=ddp.host_loss(trace, calls),
        device=alone(trace, rows),
    )


def _evidence(trace: Trace, found: _Copies) -> Iterator[Evidence]:
    link = Link(view="operators", search="copy_bucket_to_grad")
    yield facts.count("Copies", len(found.calls), link)
    if found.copied_bytes:
        a_step = window(trace).per_step(found.copied_bytes)
        yield facts.size(f"Copied {phrases.per_step(trace)}", a_step)
    host_ns = int(trace.host_calls["duration_ns"].to_numpy()[found.calls].sum())
    yield facts.duration("Host time in them", host_ns)
    yield facts.duration("With no device at work", intervals.duration_ns(found.host))
    if found.copied_bytes:
        yield facts.duration(
            "Device in nothing but these copies", intervals.duration_ns(found.device)
        )


RULE = Rule(
    id="ddp-bucket-copy",
    title="DDP copies every reduced gradient out of its bucket",
    category="communication",
    why="DistributedDataParallel reduces gradients in flat buckets. By default it then copies each "
    "parameter's part back into its own gradient, one small copy a parameter, behind which the "
    "optimizer waits; and the gradients lie in memory twice.",
    detects="The reducer's copies (copy_bucket_to_grad): the host's time in them while no device "
    "worked, and the device's time in nothing but their copies. It speaks where both together take "
    "`least_share` of the window or more.",
    silent=(
        "With no DistributedDataParallel it does not apply.",
        "Copies that take next to no time are listed as harmless.",
    ),
    saving="All of the device's time in them, where the device is the limit, and half to all of "
    "the host's: it still has to look at each bucket.",
    fix=Fix(
        "Let the gradients be views of the buckets.",
        "model = DDP(model, gradient_as_bucket_view=True)",
        verify="The next recording has no copy_bucket_to_grad in Operators, and its memory's peak "
        "is lower by up to the size of all gradients.",
        caveats=("detach_() cannot be called on such gradients.",),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority=200,
    links=(ddp.DOCUMENTATION,),
    origin="torch's DDP documentation; the copy is an event of the reducer",
    culprit="copying gradients out of buckets",
)
