"""DDP copies reduced gradients back from its buckets."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import ALL_OF_IT, HALF_TO_ALL
from stepscope.base.findings import Evidence, Link, severity_of
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, ddp, facts, phrases

Rows = NDArray[np.int64]
COPY = f"{ddp.REDUCER}copy_bucket_to_grad"


class Options(Thresholds):
    """Thresholds from which the copies are worth reporting."""

    least_share: float = option(
        0.001,
        "Fraction of the window lost to them below which they are ruled out.",
        origin="ours: below a thousandth no measurement of a step would show the change",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report copies from DDP's buckets to the gradients."""
    ddp.require_ddp(trace)
    calls = ddp.calls(trace, COPY)
    if not len(calls):
        return
    rows = ddp.launched_under(trace, calls)
    host, device = ddp.host_loss(trace, calls), exclusive_device_time(trace, rows)
    lost_ns = intervals.duration_ns(intervals.merged(host, device))
    lost = phrases.fraction_of_window(trace, lost_ns)
    number = window(trace).per_step(len(calls))
    text = (
        f"{count(number, 'gradient')} {phrases.per_step(trace)} "
        f"{'is' if number == 1 else 'are'} copied out of DDP's buckets"
    )
    finding = Finding(
        severity=severity_of(lost) or "info",
        message=f"{text}, which costs {phrases.time_and_fraction(trace, lost_ns)}.",
        evidence=tuple(_evidence(trace, calls, rows, host, device)),
        events=call_costs.longest(trace, calls),
        claims=(
            Claim(
                host,
                HALF_TO_ALL,
                "At least half of the host's time in the copies while no device worked.",
                calls=calls,
            ),
            Claim(
                device,
                ALL_OF_IT,
                "Where a device did nothing but these copies, all of that.",
                is_device_work=True,
            ),
        ),
        fix=_fix(trace),
    )
    if lost >= options.least_share:
        yield finding
    else:
        yield RuledOut(message=f"{text} in {share(lost)} of the time.", evidence=finding.evidence)


def _fix(trace: Trace) -> Fix | None:
    """Return the fix where the setting is on already; None: the rule's own fix."""
    if not recorded_settings(trace).distributed.gradient_as_bucket_view:
        return None
    return Fix(
        "Keep the gradients as they are: they are views of the buckets already.",
        "optimizer.zero_grad()  # set_to_none=True, the default: DDP makes them views again\n"
        "# and assign no other tensor: parameter.grad.copy_(new), not parameter.grad = new",
        verify=RULE.fix.verify,
        caveats=(f"gradient_as_bucket_view=True was {RECORDED}.",),
    )


def _evidence(
    trace: Trace, calls: Rows, rows: Rows, host: Intervals, device: Intervals
) -> Iterator[Evidence]:
    copies = trace.copies
    is_copy = copies["event"].isin(trace.device_events["event"].to_numpy()[rows])
    copied_bytes = int(copies["bytes"][is_copy].clip(lower=0).sum())
    link = Link(view="operators", search="copy_bucket_to_grad")
    yield facts.count("Copies in total", len(calls), link)
    if copied_bytes:
        yield facts.size(f"Copied {phrases.per_step(trace)}", window(trace).per_step(copied_bytes))
    host_ns = int(trace.host_calls["duration_ns"].to_numpy()[calls].sum())
    yield facts.duration("Host time in them in total", host_ns)
    yield facts.duration("While no device works, in total", intervals.duration_ns(host))
    if copied_bytes:
        device_ns = intervals.duration_ns(device)
        yield facts.duration("Device in nothing but these copies, in total", device_ns)


RULE = Rule(
    id="ddp-bucket-copy",
    title="DDP copies every reduced gradient out of its bucket",
    passed="Gradients are views of DDP's buckets",
    category="communication",
    why="DistributedDataParallel reduces gradients in flat buckets. By default it then copies each "
    "parameter's part back into its gradient, one small copy per parameter, for which the "
    "optimizer waits; and the gradients occupy memory twice.",
    detects="The reducer's copies (copy_bucket_to_grad): the host's time in them while no device "
    "worked, and the device's time in nothing but their copies. It reports where both together "
    "take `least_share` of the window or more.",
    silent=(
        "With no DistributedDataParallel it does not apply.",
        "Copies that take next to no time are ruled out.",
    ),
    saving="All of the device's time in them, where the device is the limit, and half to all of "
    "the host's time: it still has to handle each bucket.",
    fix=Fix(
        "Make the gradients views of the buckets.",
        "model = DDP(model, gradient_as_bucket_view=True)",
        verify="The next trace has no copy_bucket_to_grad in Operators, and its memory peak is "
        "lower by up to the size of all gradients.",
        caveats=("detach_() cannot be called on such gradients.",),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority="communication",
    after=("ddp-find-unused-parameters",),
    links=(ddp.DOCUMENTATION,),
    origin="torch's DDP documentation; the copy is an event of the reducer",
    culprit="copying gradients out of buckets",
)
