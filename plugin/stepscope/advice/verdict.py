"""One plain sentence for a recording, which ends with what the rules found."""

from collections.abc import Sequence

from stepscope.advice.overall_status import SERIOUS
from stepscope.advice.savings import ResolvedFinding
from stepscope.advice.step_summary import (
    is_device_bound,
    is_processor_bound,
    step_summary,
    summary_with_ending,
)
from stepscope.analyses.devices.kernel_table import kernel_table
from stepscope.analyses.health._check import shorten
from stepscope.analyses.host.cpu_compute_time import host_computing
from stepscope.base.formatting import duration, share
from stepscope.model.trace import Trace

NAMED = 2
"""Operators that the sentence names."""


def advised_verdict(trace: Trace, found: Sequence[ResolvedFinding]) -> str:
    """Return the sentence that stands above all advice.

    It names what costs most of what could be won. Where nothing serious was found and the device,
    or on a machine without one the processor, is the limit, it says that the loop is fine, and what
    would still help or takes most.
    """
    costly = [each for each in found if _saved_ns(each) and each.rule.culprit]
    serious = [each for each in costly if each.outcome.severity in SERIOUS]
    is_fed = is_device_bound(trace) and all(_is_device_work(each) for each in serious)
    if serious and not is_fed:
        worst = max(serious, key=_least_and_most)
        return summary_with_ending(trace, f"{worst.rule.culprit} alone costs {_cost(worst)} of it")
    if is_fed:
        loop = "the loop keeps it fed, and only its own work can be made faster"
        return summary_with_ending(trace, f"{loop}: {_work(trace, costly)}")
    if is_processor_bound(trace):
        limit = "computing on the CPU is the limit and the loop is fine"
        return summary_with_ending(trace, f"{limit}: {_operators(trace)}")
    return step_summary(trace)


def _operators(trace: Trace) -> str:
    """Name the operators that compute most, and their part of the time."""
    (name, part), *more = list(host_computing(trace).shares.items())[:NAMED]
    others = "".join(f", {shorten(other)} {share(its)}" for other, its in more)
    return f"{shorten(name)} takes {share(part)} of it{others}"


def _cost(worst: ResolvedFinding) -> str:
    """Say what it costs: idle time for sure; work, and what may be needed, at most."""
    is_sure = not any(each.is_device_work for each in worst.shares) and _least_and_most(worst)[0]
    return f"{'' if is_sure else 'up to '}{duration(_saved_ns(worst))}"


def _is_device_work(each: ResolvedFinding) -> bool:
    return all(share.is_device_work for share in each.shares if share.high_ns)


def _least_and_most(each: ResolvedFinding) -> tuple[int, int]:
    """Return by what findings are compared: what is won at least, then at most."""
    claim = each.outcome.claim
    return (claim.net_low_ns, claim.net_high_ns) if claim is not None else (0, 0)


def _saved_ns(each: ResolvedFinding) -> int:
    claim = each.outcome.claim
    return claim.net_high_ns if claim is not None else 0


def _work(trace: Trace, hints: Sequence[ResolvedFinding]) -> str:
    """Name what would still help the device, else its largest kernel."""
    if hints:
        best = max(hints, key=_saved_ns)
        return f"{best.rule.culprit} costs up to {duration(_saved_ns(best))}"
    table = kernel_table(trace, "name")
    top = table.iloc[int(table["total_ns"].to_numpy().argmax())]
    name, fraction = shorten(str(top["name"])), share(float(top["kernel_share"]))
    return f"{name} takes {fraction} of its kernels' time"
