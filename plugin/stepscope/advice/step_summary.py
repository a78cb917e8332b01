"""One sentence on a trace: duration of a step, busy time of the device, largest cost.

`trace_advice.advised_verdict` ends it with the rules' findings instead.
"""

from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.device_presence import device_presence
from stepscope.analyses.health import Part, doubts
from stepscope.analyses.host.breakdown import cpu_compute_time
from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.analyses.settings.whole_run import whole_run
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.trace import Trace, computed

LABELS = {
    "communication": "exposed communication",
    "memcpy": "exposed copies",
    "memset": "memory sets",
    "runtime": "runtime calls (launches and waits) while the device is idle",
    "dataloader": "waiting for data",
    "cpu": "operators on the host while the device is idle",
    "other": "host code outside torch operators",
    "kernel": "computing",
}
RESTS_ON: tuple[Part, ...] = ("host calls", "device times", "steps")
MOSTLY_BUSY = 0.9
MOSTLY_COMPUTING = 0.8
"""Of the window, in a processor's long operators: healthy loops in sample_logs have 0.79 to 0.98, a
loop with too small batches 0.49, a loop that waits for data 0.58."""
WORTH_NAMING = 0.01


@computed
def step_summary(trace: Trace) -> str:
    """Return the sentence, ending with the most costly category."""
    return summary_with_ending(trace, _most_costly(trace))


def summary_with_ending(trace: Trace, ending: str) -> str:
    """Return the sentence with another ending (a clause), or without it where times are unknown."""
    if not step_breakdown(trace).mean_ns:
        return "The trace contains no timed events."
    if damage := doubts(trace, ("device times",), "withheld"):
        return f"{_step(trace)}; where the time goes is unknown: {damage[0].message}."
    clauses = "; ".join(clause for clause in (_step(trace), _busy(trace), ending) if clause)
    return f"{_damage(trace)} {clauses}.".lstrip()


def _damage(trace: Trace) -> str:
    """Return the damage that puts the figures in doubt; empty where there is none."""
    if trace.is_truncated:
        return "The file was cut off; of the remaining part:"
    damage = [item for item in doubts(trace, RESTS_ON, "low") if item.nature == "damage"]
    return f"Figures are in doubt, since {damage[0].message}:" if damage else ""


def _step(trace: Trace) -> str:
    steps = step_breakdown(trace)
    if not steps.step_count:
        whole = whole_run(trace)
        calls = f", with {count(whole.model_calls, 'call')} of a model" if whole else ""
        return f"No steps are marked; the window is {duration(steps.mean_ns)} long{calls}"
    if steps.step_count == 1:
        recorded = f"{duration(steps.mean_ns)} (one step)"
    else:
        spread = share(steps.standard_deviation_ns / steps.mean_ns)
        recorded = f"{duration(steps.mean_ns)} (± {spread}, {count(steps.step_count, 'step')})"
    if unrecorded := measured_steps(trace):
        return f"Recorded steps take {recorded}, unrecorded steps {duration(unrecorded.step_ns)}"
    return f"Step {recorded}"


def _busy(trace: Trace) -> str:
    device, span = main_device(trace), window(trace)
    if device is None or span.duration_ns <= 0:
        return ""
    busy = intervals.duration_ns(device.busy) / span.duration_ns
    limit = " and is the limit" if is_device_bound(trace) else ""
    return f"the {trace.dialect.device} is busy {share(busy)}{limit}"


@computed
def is_device_bound(trace: Trace) -> bool:
    """Return whether the main device computes nearly all the time; copying does not count."""
    device, span = main_device(trace), window(trace)
    if device is None or span.duration_ns <= 0:
        return False
    computing = intervals.duration_ns(device.computation) / span.duration_ns
    return computing >= MOSTLY_BUSY


@computed
def is_processor_bound(trace: Trace) -> bool:
    """Return whether the model runs on the processor and computes nearly all the time.

    Where a device is present but was not recorded, operators may be waiting for it, unless the
    model is known to be on the CPU.
    """
    device = device_presence(trace)
    if main_device(trace) is not None or (device and not device.is_model_on_host):
        return False
    return cpu_compute_time(trace).share >= MOSTLY_COMPUTING


def _most_costly(trace: Trace) -> str:
    """Return the category that costs most besides computing."""
    steps = step_breakdown(trace)
    if not steps.mean_ns:
        return ""
    work = "kernel" if main_device(trace) else "cpu"
    computing = "computing" if work == "kernel" else "operators on the CPU"
    losses = {name: time for name, time in steps.mean_parts_ns.items() if name != work}
    if sum(losses.values()) < WORTH_NAMING * steps.mean_ns:
        return f"nearly all of it is {computing}"
    worst = max(losses, key=lambda name: losses[name])
    is_unrecorded = worst == "other" and not len(trace.host_calls)
    label = "time in which the host was not recorded" if is_unrecorded else LABELS[worst]
    return (
        f"besides {computing}, the largest part is {label}: "
        f"{duration(losses[worst])} ({share(losses[worst] / steps.mean_ns)})"
    )
