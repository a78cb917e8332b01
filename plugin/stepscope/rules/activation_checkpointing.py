"""Activations are computed again in the backward pass, though memory is left."""

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.memory_peak import memory_peak
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.host.optimizer_updates import launched_work
from stepscope.analyses.host.recomputed_forward import recomputed_forward
from stepscope.analyses.idle.call_cost import call_cost
from stepscope.base.calibration import KEPT_ACTIVATIONS
from stepscope.base.findings import Link
from stepscope.base.formatting import count, share
from stepscope.rules import (
    Finding,
    Fix,
    Results,
    Rule,
    Thresholds,
    Trace,
    option,
)
from stepscope.rules.shared import call_costs, facts, phrases


class Options(Thresholds):
    """Thresholds of the time that recomputation takes, and of the device's memory."""

    least_share: float = option(
        0.02,
        "Fraction of the window in recomputed operators.",
        origin="ours: steps of a loop differ by as much",
    )
    memory_below_share: float = option(
        0.4,
        "Fraction of a device's memory in use at the peak, below which more fits.",
        origin="ours: activations of a checkpointed model take some times its own memory",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report forward operators in the backward pass, where memory is left."""
    requirements.applies_if(is_training(trace), "nothing trains here")
    recomputed = recomputed_forward(trace)
    cost = call_cost(trace, recomputed.times, launched_work(trace, recomputed.rows).events)
    lost_ns = cost.idle_ns + cost.work_ns
    if (
        not recomputed.region_count
        or phrases.fraction_of_window(trace, lost_ns) < options.least_share
    ):
        return
    regions = window(trace).per_step(recomputed.region_count) or recomputed.region_count
    finding = Finding(
        message=f"{count(regions, 'part')} of the model {phrases.per_step(trace)} "
        f"{'runs' if regions == 1 else 'run'} again in the backward pass (activation "
        f"checkpointing), for {phrases.time_and_fraction(trace, lost_ns)}.",
        evidence=(
            facts.count("Recomputed parts in total", recomputed.region_count),
            facts.count(
                f"Recomputed operators {phrases.per_step(trace)}",
                window(trace).per_step(len(recomputed.rows)),
                Link(view="operators", search="linear"),
            ),
            *call_costs.evidence(trace, cost),
        ),
        tables=(call_costs.by_name(trace.host_calls, recomputed.rows, "Recomputed operators"),),
        locations=call_costs.lines(trace, recomputed.rows),
        claims=call_costs.claims(
            cost,
            KEPT_ACTIVATIONS,
            KEPT_ACTIVATIONS,
            "The recomputed operators; four fifths at least, since activations then stay in "
            "memory.",
        ),
    )
    device = main_device(trace)
    if device is None:
        yield finding
        return
    peak = memory_peak(trace).get(device.device)
    memory = peak.capacity_share if peak else None
    requirements.conclusive_if(
        memory is not None,
        "activations are computed again, but the device's memory in use was not recorded",
        "profile(profile_memory=True, ...)",
    )
    if (memory or 0.0) < options.memory_below_share:
        yield finding
        return
    yield finding.ruled_out(
        f"{finding.message} But {share(memory or 0.0)} of the device's memory is in use: all "
        "activations may not fit."
    )


RULE = Rule(
    id="activation-checkpointing",
    title="Activations are computed again though memory is left",
    passed="The backward pass does not compute activations again, or memory is short",
    category="memory",
    why="Activation checkpointing saves memory by running the forward pass once more. Where the "
    "activations fit in memory, that is a third more work for nothing.",
    detects="Operators of modules (linear layers, convolutions, norms, attention) with a sequence "
    "number of autograd inside nodes of the backward pass, from `least_share` of the window on. On "
    "a device it reports only where less than `memory_below_share` of the memory is in use at the "
    "peak.",
    silent=(
        "Where more of the device's memory is in use: ruled out.",
        "Recomputation that torch.compile plans: it fuses what it computes again.",
    ),
    saving="The time of the recomputed operators; four fifths of it at least.",
    fix=Fix(
        "Keep the activations, or checkpoint only some of the layers.",
        "model.gradient_checkpointing_disable()    # transformers; Trainer: "
        "gradient_checkpointing=False\n"
        "x = block(x)    # instead of checkpoint(block, x)",
        verify="In the next trace no linear layer runs inside the backward pass, and the peak of "
        "the memory is below the capacity.",
        caveats=(
            "Activations of all layers must fit: compare the peak of memory before and after.",
        ),
    ),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="runtime",
    links=("checkpoint.html",),
    origin="ours: torch.utils.checkpoint of models that fit",
    culprit="activation checkpointing",
    since="0.1.0",
)
