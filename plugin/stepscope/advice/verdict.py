"""One sentence on a trace that ends with the rules' findings."""

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
from stepscope.analyses.host.cpu_compute_time import cpu_compute_time
from stepscope.base.formatting import duration, share
from stepscope.model.trace import Trace

OPERATORS_NAMED = 2


def advised_verdict(trace: Trace, findings: Sequence[ResolvedFinding]) -> str:
    """Return the first sentence of the advice on a trace.

    It names the cause with the largest potential saving. Without a serious finding, where the
    device (or the processor) is the limit, it says so and names what takes most of its time.
    """
    costly = [finding for finding in findings if _saving_ns(finding) and finding.rule.culprit]
    serious = [finding for finding in costly if finding.outcome.severity in SERIOUS]
    if is_device_bound(trace) and all(_is_device_work(finding) for finding in serious):
        limit = "the loop keeps it busy, and only its own work can become faster"
        return summary_with_ending(trace, f"{limit}: {_device_work(trace, costly)}")
    if serious:
        worst = max(serious, key=_least_and_most)
        return summary_with_ending(trace, f"{worst.rule.culprit} alone costs {_cost(worst)} of it")
    if is_processor_bound(trace):
        limit = "computing on the CPU is the limit, and the loop is healthy"
        return summary_with_ending(trace, f"{limit}: {_operators(trace)}")
    return step_summary(trace)


def _operators(trace: Trace) -> str:
    """Return the operators that compute most, with their fraction of the time."""
    (name, part), *more = list(cpu_compute_time(trace).shares.items())[:OPERATORS_NAMED]
    others = "".join(f", {shorten(other)} {share(fraction)}" for other, fraction in more)
    return f"{shorten(name)} takes {share(part)} of it{others}"


def _cost(finding: ResolvedFinding) -> str:
    """Return a finding's cost; "up to" for device work, and for time that may be needed."""
    is_wait = not any(part.is_device_work for part in finding.shares)
    is_sure = is_wait and _least_and_most(finding)[0]
    return f"{'' if is_sure else 'up to '}{duration(_saving_ns(finding))}"


def _is_device_work(finding: ResolvedFinding) -> bool:
    return all(part.is_device_work for part in finding.shares if part.high_ns)


def _least_and_most(finding: ResolvedFinding) -> tuple[int, int]:
    claim = finding.outcome.claim
    return (claim.net_low_ns, claim.net_high_ns) if claim is not None else (0, 0)


def _saving_ns(finding: ResolvedFinding) -> int:
    return _least_and_most(finding)[1]


def _device_work(trace: Trace, hints: Sequence[ResolvedFinding]) -> str:
    """Return the largest hint's cost, or the device's largest kernel."""
    if hints:
        best = max(hints, key=_saving_ns)
        return f"{best.rule.culprit} costs up to {duration(_saving_ns(best))}"
    table = kernel_table(trace, "name")
    top = table.iloc[int(table["total_ns"].to_numpy().argmax())]
    name, fraction = shorten(str(top["name"])), share(float(top["kernel_share"]))
    return f"{name} takes {fraction} of its kernels' time"
