"""One plain sentence for a recording: how long a step is, how busy the device, what costs most.

`stepscope.advice.verdict` ends it otherwise: with what the rules found.
"""

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.device_presence import presence
from stepscope.analyses.health import Part, doubts
from stepscope.analyses.host.cpu_compute_time import host_computing
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.trace import Trace, computed

WORDS = {
    "communication": "communication that nothing hides",
    "memcpy": "copies that nothing hides",
    "memset": "memory sets",
    "runtime": "runtime calls (launches and waits) while the device stands still",
    "dataloader": "waiting for data",
    "cpu": "operators on the host while the device stands still",
    "other": "host code that is no torch operator",
    "kernel": "computing",
}
RESTS_ON: tuple[Part, ...] = ("host calls", "device times", "steps")
MOSTLY_BUSY = 0.9
MOSTLY_COMPUTING = 0.8
"""Of the window, in a processor's long operators: healthy loops in sample_logs have 0.79 to 0.98, a
loop of too small batches 0.49, one that waits for data 0.58."""
WORTH_NAMING = 0.01


@computed
def step_summary(trace: Trace) -> str:
    """Return the sentence, which ends with the category that costs most."""
    return summary_with_ending(trace, _most(trace))


def summary_with_ending(trace: Trace, ending: str) -> str:
    """Return the sentence with another ending, a clause; where nothing can be told, without it."""
    if not step_breakdown(trace).mean_ns:
        return "The recording holds nothing that takes time."
    if damage := doubts(trace, ("device times",), "withheld"):
        return f"{_step(trace)}; where the time goes cannot be told: {damage[0].message}."
    clauses = "; ".join(clause for clause in (_step(trace), _busy(trace), ending) if clause)
    return f"{_doubt(trace)} {clauses}.".lstrip()


def _doubt(trace: Trace) -> str:
    """Say of which damage the figures that follow should be read with care."""
    if trace.is_truncated:
        return "The file was cut off; of what it still holds:"
    damage = [item for item in doubts(trace, RESTS_ON, "low") if item.nature == "damage"]
    return f"With care, since {damage[0].message}:" if damage else ""


def _step(trace: Trace) -> str:
    steps = step_breakdown(trace)
    if not steps.step_count:
        return f"No steps are marked; the recording is {duration(steps.mean_ns)} long"
    if steps.step_count == 1:
        return f"Step {duration(steps.mean_ns)} (one step)"
    spread = steps.standard_deviation_ns / steps.mean_ns
    return f"Step {duration(steps.mean_ns)} (± {share(spread)}, {count(steps.step_count, 'step')})"


def _busy(trace: Trace) -> str:
    device = main_device(trace)
    within = window(trace)
    if device is None or within.device_duration_ns <= 0:
        return ""
    busy = intervals.duration_ns(device.busy) / within.device_duration_ns
    limit = " and is the limit" if is_device_bound(trace) else ""
    return f"the {trace.dialect.device} is busy {share(busy)}{limit}"


@computed
def is_device_bound(trace: Trace) -> bool:
    """Tell whether the main device computes nearly all the time.

    One that copies or waits for others is busy, but no limit.
    """
    device, within = main_device(trace), window(trace)
    if device is None or within.device_duration_ns <= 0:
        return False
    computing = intervals.duration_ns(device.computation) / within.device_duration_ns
    return computing >= MOSTLY_BUSY


@computed
def is_processor_bound(trace: Trace) -> bool:
    """Tell whether, without a device, the processor computes nearly all the time.

    What it calls, loads and waits for is then the small rest. Where a device is at hand and was not
    recorded, operators may be waiting for it, unless the model is known to be on the CPU.
    """
    at_hand = presence(trace)
    if main_device(trace) is not None or (at_hand and not at_hand.is_model_on_host):
        return False
    return host_computing(trace).share >= MOSTLY_COMPUTING


def _most(trace: Trace) -> str:
    """Name the category that costs most beside the work itself."""
    steps = step_breakdown(trace)
    if not steps.mean_ns:
        return ""
    parts = dict(steps.mean_parts_ns)
    work = "kernel" if main_device(trace) else "cpu"
    doing = "computing" if work == "kernel" else "operators on the CPU"
    losses = {name: time for name, time in parts.items() if name != work}
    if sum(losses.values()) < WORTH_NAMING * steps.mean_ns:
        return f"nearly all of it is {doing}"
    worst = max(losses, key=lambda name: losses[name])
    is_untold = worst == "other" and not len(trace.host_calls)
    words = "time in which the host was not recorded" if is_untold else WORDS[worst]
    return (
        f"beside {doing}, most goes to {words}: "
        f"{duration(losses[worst])}, {share(losses[worst] / steps.mean_ns)}"
    )
