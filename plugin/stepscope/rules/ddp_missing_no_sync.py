"""Gradients are reduced in every accumulation step."""

import re

import numpy as np

from stepscope.analyses.communication.accumulation import Accumulation, accumulation
from stepscope.base.calibration import ALL_OF_IT, NEEDLESS_REDUCTIONS
from stepscope.base.errors import NotApplicableError
from stepscope.base.formatting import duration, share, significant
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import collective_costs, ddp, facts, phrases

VERIFY = (
    "In the next trace all-reduces (or reduce-scatters) follow only the last backward pass before "
    "each optimizer step."
)
MORE_MEMORY = "Gradients are not sharded until they are reduced: more memory."
DDP_CAVEATS = (
    "Put the forward pass into no_sync() too: DDP decides there.",
    "Two models that are trained one after the other and step together need both reductions.",
)
METHOD = (
    "Reductions that the next forward pass follows without an optimizer step, while nothing "
    "computed; at least 75 %: ranks that come late by chance then delay the last reduction."
)
CALLS = re.compile(rf"^c10d::|^{ddp.REDUCER}copy_bucket_to_grad$")
CALLS_METHOD = "The host's calls that request them and copy their results."


class Options(Thresholds):
    """Thresholds from which passes are an accumulation, and their reductions worth reporting."""

    least_forwards_per_update: float = option(
        1.5,
        "Forward passes per optimizer step from which gradients are accumulated.",
        origin="the catalogue's 2, less the passes that the window cuts off at its ends",
    )
    least_reduced_share: float = option(
        0.9,
        "Fraction of the passes without an optimizer step after which gradients are reduced.",
        origin="ours: no_sync() leaves out all of them; the rest is room for a cut trace",
    )
    least_share: float = option(
        0.01,
        "Fraction of the window in which those reductions run and nothing computes.",
        origin="the catalogue's least fraction that is worth reporting",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report reductions between the forward passes of one optimizer step."""
    passes = accumulation(trace)
    if passes is None:
        msg = "no wrapped model (DDP, FSDP) with an optimizer's step was recorded"
        raise NotApplicableError(msg)
    events = collective_costs.timed(trace)
    if not _is_needless(passes, options):
        return
    lost = collective_costs.exposed(trace, passes.early)
    passes_per_update = passes.forward_count / passes.update_count
    text = (
        f"Gradients are reduced after {passes.reduced_count} of {passes.early_count} passes "
        f"without an optimizer step ({significant(passes_per_update)} passes per optimizer step)"
    )
    evidence = (
        facts.count("Forward passes in total", passes.forward_count),
        facts.count("Passes with an optimizer step in total", passes.update_count),
        facts.count("Passes without, but reduced, in total", passes.reduced_count),
        facts.count("Needless reductions in total", int(passes.early.sum())),
        facts.fraction("Exposed, of the window", lost.share),
    )
    if lost.saved_share < options.least_share:
        text += f"; nothing waits for them: {share(lost.share)} of the time is exposed."
        text += collective_costs.host_is_late(trace, lost)
        yield RuledOut(message=text, evidence=evidence)
        return
    yield Finding(
        severity=collective_costs.severity(lost),
        message=f"{text}, which costs {duration(lost.a_step_ns)} {phrases.per_step(trace)} "
        f"({share(lost.share)}).",
        evidence=evidence,
        tables=(collective_costs.table(events, passes.early),),
        events=collective_costs.longest(trace, events, passes.early),
        claims=_claims(trace, passes, lost),
        fix=_fix(passes.wrapper, max(2, round(passes_per_update))),
        risk="none" if passes.wrapper == "DDP" else "memory",
        subject=passes.wrapper,
    )


def _claims(
    trace: Trace, passes: Accumulation, lost: collective_costs.Exposed
) -> tuple[Claim, ...]:
    """Claim the reductions, the host's calls for them, and the computing that they slow."""
    calls = trace.host_calls
    start_ns = calls["start_ns"].to_numpy()
    is_early = intervals.covered_ns(passes.early_passes, start_ns, start_ns + 1) > 0
    rows = np.flatnonzero(is_early & name_mask(calls["name"], CALLS.search))
    called = intervals.difference(ddp.host_loss(trace, rows), lost.times)
    return (
        collective_costs.claim(lost, NEEDLESS_REDUCTIONS, METHOD),
        Claim(called, ALL_OF_IT, CALLS_METHOD),
        *collective_costs.slowed(trace, passes.early, "gradients"),
    )


def _is_needless(passes: Accumulation, options: Options) -> bool:
    if not passes.early_count:
        return False
    updates = options.least_forwards_per_update * passes.update_count
    reduced = options.least_reduced_share * passes.early_count
    return passes.forward_count >= updates and passes.reduced_count >= reduced


def _fix(wrapper: str, number: int) -> Fix:
    """Return the fix for a wrapper and its number of passes per optimizer step."""
    if wrapper in ("DDP", "FSDP"):
        code = (
            "with contextlib.nullcontext() if is_last else model.no_sync():\n"
            f"    (loss_of(model(batch)) / {number}).backward()"
        )
    else:
        code = (
            "model.set_requires_gradient_sync(is_last)\n"
            f"(loss_of(model(batch)) / {number}).backward()"
        )
    return Fix(
        "Reduce gradients in the last of the accumulated passes only.",
        f"is_last = (index + 1) % {number} == 0\n{code}",
        verify=VERIFY,
        caveats=DDP_CAVEATS if wrapper == "DDP" else (MORE_MEMORY,),
    )


RULE = Rule(
    id="ddp-missing-no-sync",
    title="Gradients are reduced in every accumulation step",
    passed="Gradients are reduced once per optimizer step",
    category="communication",
    why="Where gradients are summed over several backward passes before the optimizer steps, only "
    "their sum is needed on all ranks. Without no_sync() every pass sends all of them.",
    detects="Forward passes of a wrapped model (DDP, FSDP) that another follows before the "
    "optimizer steps, at least `least_forwards_per_update` per optimizer step; after at least "
    "`least_reduced_share` of them as much is reduced as before an optimizer step. It reports "
    "where those reductions are exposed for `least_share` of the window.",
    silent=(
        "With no collective, no wrapped model or no optimizer step it does not apply.",
        "Several forward passes with one backward pass (a GAN, contrastive losses) reduce nothing "
        "in between.",
        "Small reductions in between, of a loss or of batch statistics, send less than the "
        "gradients.",
        "Reductions that are hidden behind computing are ruled out.",
    ),
    saving="75 to 100 % of the exposed time of the reductions that no optimizer step follows: "
    "ranks that come late by chance delay the last reduction instead. In addition, the host's "
    "calls that request them and copy their results; and where the process has no core to spare, "
    "30 to 70 % of the time in which it computes while they are sent.",
    fix=_fix("DDP", 4),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority="communication",
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html"
        "#skip-unnecessary-all-reduce-if-training-with-distributeddataparallel-and-gradient-accumulation",
        ddp.DOCUMENTATION,
    ),
    origin="PyTorch tuning guide",
    culprit="reducing gradients in every accumulation step",
)
