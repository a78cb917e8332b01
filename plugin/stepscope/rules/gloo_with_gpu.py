"""Gloo carries what devices compute."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.communication.collective_events import collective_events
from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, Fix
from stepscope.base.formatting import count, duration, share
from stepscope.model.frames.collective_names import HOST_BACKENDS
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import collective_costs, facts, phrases, recorded_facts

GLOO = "gloo"


@dataclass(frozen=True, kw_only=True)
class Options:
    """When gloo beside a device is worth a word."""

    least_share: float = option(
        0.01,
        "Share of the window in which gloo's collectives run.",
        origin="ours: a barrier or a few numbers on the host take less",
    )
    least_bytes: int = option(
        65_536,
        "Largest message below which gloo carries counts and flags, not what devices compute.",
        origin="ours: serving's replicas agree on some hundred bytes a step, and wait for each "
        "other in that; one layer's gradients are more",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report gloo where devices compute and no library of theirs communicates."""
    device = requirements.main_device(trace)
    events = collective_events(trace)
    backend = events["backend"].to_numpy()
    is_gloo = np.asarray(backend == GLOO)
    if not is_gloo.any():
        msg = "no collective went through gloo"
        raise NotApplicableError(msg)
    if any(each not in HOST_BACKENDS for each in set(backend)):
        return  # for the host's tensors and barriers, beside the device's own library
    chosen = is_gloo & collective_costs.in_window(trace) & (events["kind"] != "barrier").to_numpy()
    if not chosen.any():
        return
    running_ns = collective_costs.running(trace, chosen)
    running = running_ns / window(trace).reference_ns
    sent = collective_costs.message_size(events[chosen])
    lasting = duration(window(trace).per_step(running_ns))
    text = (
        f"{count(int(chosen.sum()), 'collective')}{f' of {sent}' if sent else ''} went through "
        f"gloo, for {lasting} {phrases.per_step(trace)} ({share(running)}), though "
        f"{trace.dialect.device} {device.device} computes."
    )
    evidence = tuple(_evidence(trace, int(chosen.sum()), running))
    tables = (collective_costs.table(events, chosen),)
    is_control = events["message_bytes"][chosen].max() < options.least_bytes  # not where unknown
    if running < options.least_share or is_control:
        yield RuledOut(message=text, evidence=evidence, tables=tables)
        return
    yield Finding(
        severity="warning",
        message=text,
        evidence=evidence,
        tables=tables,
        events=collective_costs.longest(trace, events, chosen),
        fix=_fix(trace),
    )


def _evidence(trace: Trace, number: int, running: float) -> Iterator[Evidence]:
    yield facts.count("Collectives through gloo", number)
    yield facts.fraction("Their time, of the window", running)
    info = trace.metadata.get("distributedInfo")
    if isinstance(info, Mapping) and isinstance(info.get("backend"), str):
        yield facts.text("Backend in the header", str(info["backend"]))
    elif (backend := recorded_settings(trace).distributed.backend) is not None:
        yield recorded_facts.evidence("Backend", backend)


def _fix(trace: Trace) -> Fix | None:
    """Return the rule's own fix in the words of the device's vendor; None where it has none."""
    terms = trace.dialect.terms
    if (group := terms.get("process_group")) is None:
        return None
    code = (
        f'dist.init_process_group("{group}")\n'
        "# or both, where tensors of the host are sent too:\n"
        f'dist.init_process_group("cpu:gloo,{terms["module"]}:{group}")'
    )
    return _through(terms["collectives"], code)


def _through(library: str, code: str) -> Fix:
    return Fix(
        f"Let {library} communicate between the devices.",
        code,
        verify="The next recording holds collectives as kernels of the device, and no copies of "
        "gradients to the host.",
        caveats=(
            "It needs a device of its own for every rank: two ranks on one device, as in some "
            "tests, can only use gloo.",
        ),
    )


RULE = Rule(
    id="gloo-with-gpu",
    title="Gloo carries what devices compute",
    category="communication",
    why="Gloo sends from the host's memory: gradients are copied off the device, sent over the "
    "network's ordinary stack, reduced by the CPU and copied back. The device's own library sends "
    "from device to device, and reduces there.",
    detects="Collectives of gloo in a recording in which a device computes and no collective of "
    "another library was recorded, where gloo's take `least_share` of the window or more and the "
    "largest sends `least_bytes` or more (or no size was recorded).",
    silent=(
        "With no device, or no collective through gloo, it does not apply.",
        "Gloo for the host's tensors and barriers beside the device's own library is usual.",
        (
            "Barriers, messages of less than `least_bytes` (counts and flags of the host), and "
            "what takes next to no time are listed as harmless."
        ),
    ),
    saving="None is claimed here: the time in which the device waits for gloo is counted under "
    "exposed-communication.",
    fix=_through(
        "the device's own library",
        "dist.init_process_group()  # without a name: gloo for the host, the device's for it",
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority=535,
    links=("https://docs.pytorch.org/docs/stable/distributed.html#which-backend-to-use",),
    origin="torch-tb-profiler (NCCL is recommended); torch's distributed documentation",
)
