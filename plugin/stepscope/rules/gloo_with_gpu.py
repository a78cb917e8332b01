"""Gloo sends the devices' results."""

from collections.abc import Iterator, Mapping

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.communication.collective_events import collective_events
from stepscope.analyses.core import requirements
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.findings import Evidence
from stepscope.base.formatting import count
from stepscope.model.frames.collective_names import HOST_BACKENDS
from stepscope.rules import Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import collective_costs, facts, phrases, recorded_facts

GLOO = "gloo"


class Options(Thresholds):
    """Thresholds from which gloo on a machine with devices is worth reporting."""

    least_share: float = option(
        0.01,
        "Fraction of the window in which gloo's collectives run.",
        origin="ours: a barrier or a few numbers on the host take less",
    )
    least_bytes: int = option(
        65_536,
        "Largest message below which gloo sends counts and flags, not the devices' results.",
        origin="ours: serving's replicas agree on some hundred bytes per step, and wait for each "
        "other in that; one layer's gradients are more",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report gloo where devices compute and their own library does not communicate."""
    device = requirements.main_device(trace)
    events = collective_events(trace)
    backend = events["backend"].to_numpy()
    is_gloo = np.asarray(backend == GLOO)
    requirements.applies_if(is_gloo.any(), "no collective went through gloo")
    if not HOST_BACKENDS.issuperset(backend):
        return  # gloo for the host's tensors and barriers, alongside the device's own library
    mask = is_gloo & collective_costs.in_window(trace) & (events["kind"] != "barrier").to_numpy()
    if not mask.any():
        return
    running_ns, number = collective_costs.running(trace, mask), int(mask.sum())
    running = phrases.fraction_of_window(trace, running_ns)
    sent = collective_costs.message_size(events[mask])
    text = (
        f"{count(number, 'collective')}{f' of {sent}' if sent else ''} went through gloo, for "
        f"{phrases.time_and_fraction(trace, running_ns)}, though {trace.dialect.device} "
        f"{device.device} computes."
    )
    evidence = tuple(_evidence(trace, number, running))
    tables = (collective_costs.table(events, mask),)
    is_control = events["message_bytes"][mask].max() < options.least_bytes  # not where unknown
    if running < options.least_share or is_control:
        yield RuledOut(message=text, evidence=evidence, tables=tables)
        return
    yield Finding(
        severity="warning",
        message=text,
        evidence=evidence,
        tables=tables,
        events=collective_costs.longest(trace, events, mask),
        fix=_fix(trace),
    )


def _evidence(trace: Trace, number: int, running: float) -> Iterator[Evidence]:
    yield facts.count("Collectives through gloo in total", number)
    yield facts.fraction("Their time, of the window", running)
    info = trace.metadata.get("distributedInfo")
    if isinstance(info, Mapping) and isinstance(info.get("backend"), str):
        yield facts.text("Backend in the header", str(info["backend"]))
    elif (backend := recorded_settings(trace).distributed.backend) is not None:
        yield recorded_facts.evidence("Backend", backend)


def _fix(trace: Trace) -> Fix | None:
    """Return the rule's fix for the device's vendor; None where the vendor has no library."""
    terms = trace.dialect.terms
    if (group := terms.get("process_group")) is None:
        return None
    return replace(
        RULE.fix,
        summary=f"Communicate between the devices with {terms['collectives']}.",
        code=f'dist.init_process_group("{group}")\n'
        "# or both, where tensors of the host are sent too:\n"
        f'dist.init_process_group("cpu:gloo,{terms["module"]}:{group}")',
    )


RULE = Rule(
    id="gloo-with-gpu",
    title="Gloo sends the devices' results",
    passed="Device tensors do not pass through Gloo",
    category="communication",
    why="Gloo sends from the host's memory: gradients are copied off the device, sent over the "
    "ordinary network stack, reduced by the CPU and copied back. The device's own library sends "
    "from device to device, and reduces there.",
    detects="Collectives of gloo in a trace in which a device computes and no collective of "
    "another library was recorded, where gloo's take `least_share` of the window or more and the "
    "largest sends `least_bytes` or more (or no size was recorded).",
    silent=(
        "With no device, or no collective through gloo, it does not apply.",
        "Gloo for the host's tensors and barriers alongside the device's own library is usual.",
        "Barriers, messages of less than `least_bytes` (counts and flags of the host), and "
        "collectives that take next to no time are ruled out.",
    ),
    saving="None is claimed here: the time in which the device waits for gloo is counted under "
    "exposed-communication.",
    fix=Fix(
        "Communicate between the devices with the device's own library.",
        "dist.init_process_group()  # without a name: gloo for the host, the device's for it",
        verify="The next trace contains collectives as kernels of the device, and no copies of "
        "gradients to the host.",
        caveats=(
            "Every rank needs a separate device: two ranks on one device, as in some tests, can "
            "only use gloo.",
        ),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority="program",
    links=("distributed.html#which-backend-to-use",),
    origin="torch-tb-profiler (NCCL is recommended); torch's distributed documentation",
)
