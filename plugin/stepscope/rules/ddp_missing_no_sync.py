"""Gradients are reduced in every accumulation step."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.communication.accumulation import Accumulation, accumulation
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, Fix, Risk
from stepscope.base.formatting import duration, share, significant
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import collective_costs, ddp, facts, phrases

VERIFY = (
    "In the next recording all-reduces (or reduce-scatters) follow only the last backward pass "
    "before each optimizer step."
)
HELD_WHOLE = "Until they are reduced, gradients are held whole: more memory."
DDP_CAVEATS = (
    "The forward pass belongs into no_sync() too: DDP decides there.",
    "Two models that are trained one behind the other and step together need both reductions.",
)
METHOD = (
    "Reductions that the next forward pass follows without an optimizer step, while nothing "
    "computed; at least half: late ranks are then waited for in the last reduction."
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """What is an accumulation, and when its reductions are worth a word."""

    least_forwards_per_update: float = option(
        1.5,
        "Forward passes per optimizer step from which gradients are taken to be accumulated.",
        origin="the catalogue's 2, less the passes that the window cuts off at its ends",
    )
    least_reduced_share: float = option(
        0.9,
        "Share of the passes with no optimizer step behind them after which gradients are reduced.",
        origin="ours: no_sync() leaves out all of them; the rest is room for a cut recording",
    )
    least_share: float = option(
        0.01,
        "Share of the window in which those reductions run and nothing computes.",
        origin="the catalogue's least share that is worth a word",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report reductions between the forward passes of one optimizer step."""
    found = accumulation(trace)
    if found is None:
        msg = "no wrapped model (DDP, FSDP) with an optimizer's step was recorded"
        raise NotApplicableError(msg)
    events = collective_costs.timed(trace)
    if not _is_needless(found, options):
        return
    lost = collective_costs.exposed(trace, found.early)
    k = max(2, round(found.forward_count / found.update_count))
    words = (
        f"Gradients are reduced after {found.reduced_count} of {found.early_count} passes that no "
        f"optimizer step follows ({significant(found.forward_count / found.update_count)} passes "
        "an optimizer step)"
    )
    evidence = tuple(_evidence(found, lost))
    if lost.won_share < options.least_share:
        text = f"{words}; nothing waits for them: {share(lost.share)} of the time is exposed."
        text += collective_costs.host_is_late(trace, lost)
        yield RuledOut(message=text, evidence=evidence)
        return
    yield Finding(
        severity=collective_costs.severity(lost),
        message=f"{words}, which costs {duration(lost.a_step_ns)} {phrases.per_step(trace)} "
        f"({share(lost.share)}).",
        evidence=evidence,
        tables=(collective_costs.table(events, found.early),),
        events=collective_costs.longest(trace, events, found.early),
        claims=(collective_costs.claim(lost, HALF_TO_ALL, METHOD),),
        fix=_fix(found, k),
        risk=_risk(found),
        subject=found.wrapper,
    )


def _is_needless(found: Accumulation, options: Options) -> bool:
    if not found.early_count:
        return False
    is_accumulated = found.forward_count >= options.least_forwards_per_update * found.update_count
    return is_accumulated and (
        found.reduced_count >= options.least_reduced_share * found.early_count
    )


def _evidence(found: Accumulation, lost: collective_costs.Exposed) -> Iterator[Evidence]:
    yield facts.count("Forward passes", found.forward_count)
    yield facts.count("With an optimizer step behind", found.update_count)
    yield facts.count("Without one, but reduced", found.reduced_count)
    yield facts.count("Needless reductions", int(found.early.sum()))
    yield facts.fraction("Exposed, of the window", lost.share)


def _risk(found: Accumulation) -> Risk:
    return "none" if found.wrapper == "DDP" else "memory"


def _with_no_sync(k: int, caveats: tuple[str, ...]) -> Fix:
    return Fix(
        "Reduce gradients in the last of the accumulated passes only.",
        f"is_last = (index + 1) % {k} == 0\n"
        "with contextlib.nullcontext() if is_last else model.no_sync():\n"
        f"    (loss_of(model(batch)) / {k}).backward()",
        verify=VERIFY,
        caveats=caveats,
    )


def _fix(found: Accumulation, k: int) -> Fix:
    if found.wrapper == "DDP":
        return _with_no_sync(k, DDP_CAVEATS)
    if found.wrapper == "FSDP":
        return _with_no_sync(k, (HELD_WHOLE,))
    return Fix(
        "Reduce gradients in the last of the accumulated passes only.",
        f"is_last = (index + 1) % {k} == 0\n"
        "model.set_requires_gradient_sync(is_last)\n"
        f"(loss_of(model(batch)) / {k}).backward()",
        verify=VERIFY,
        caveats=(HELD_WHOLE,),
    )


RULE = Rule(
    id="ddp-missing-no-sync",
    title="Gradients are reduced in every accumulation step",
    category="communication",
    why="Where gradients are summed over several backward passes before the optimizer steps, only "
    "their sum is needed on all ranks. Without no_sync() every pass sends all of them.",
    detects="Forward passes of a wrapped model (DDP, FSDP) that another follows before the "
    "optimizer steps, at least `least_forwards_per_update` an optimizer step; after at least "
    "`least_reduced_share` of them as much is reduced as before an optimizer step. It speaks where "
    "those reductions are exposed for `least_share` of the window.",
    silent=(
        "With no collective, no wrapped model or no optimizer step it does not apply.",
        "Several forward passes with one backward pass (a GAN, contrastive losses) reduce nothing "
        "in between.",
        "Small reductions in between, of a loss or of batch statistics, send less than the "
        "gradients do.",
        "Reductions that are hidden behind computing are listed as harmless.",
    ),
    saving="Half to all of the exposed time of the reductions that no optimizer step follows: "
    "where a rank comes late, the others wait for it in the last reduction instead.",
    fix=_with_no_sync(4, DDP_CAVEATS),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority=180,
    links=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
        "#skip-unnecessary-all-reduce-if-training-with-distributeddataparallel-and-gradient-accumulation",
        ddp.DOCUMENTATION,
    ),
    origin="PyTorch tuning guide",
    culprit="reducing gradients in every accumulation step",
)
