"""Operators work in double precision."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.device_specs import peak_ratio
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.devices.exclusive_device_time import alone
from stepscope.analyses.operators.double_precision import DoublePrecision, on_device, on_host
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import (
    DOUBLE_PRECISION,
    DOUBLE_PRECISION_ON_CPU,
    DOUBLE_PRECISION_PRODUCTS_ON_CPU,
    Factor,
    at_most,
)
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Fix
from stepscope.base.formatting import count, share
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuleResult, option
from stepscope.rules.shared import float64_evidence, kernel_time, product_evidence

MEMORY_TIMES = 2
"""float64 has twice the bytes: what memory limits becomes twice as fast on any device."""
WHOLE = """\
torch.set_default_dtype(torch.float32)   # or leave set_default_dtype out
model = model.float()
inputs = inputs.float()   # NumPy makes float64: torch.from_numpy(a).float()"""
PRODUCTS, OTHERS = "products and convolutions", "other operators"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How much work in float64 is worth a word, and how much is all of it."""

    least_share: float = option(
        0.01,
        "Work in float64, of the window's operators or of the device's kernels.",
        origin="ours: real traces have up to 0.4 %, one with metrics in float64 has 1.4 %",
    )
    default_share: float = option(
        0.90,
        "Of all floating-point work: from there on float64 is the default dtype, not a part.",
        origin="ours: a model made in float64 has 100 %, one with a part in it 64 % at most",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report what works in float64, on the device, or on a machine without one on the host."""
    try:
        requirements.main_device(trace)
    except NotApplicableError:
        requirements.shapes(trace)
        found = on_host(trace)
    else:
        found = on_device(trace)
    if found.total_ns < options.least_share * found.whole_ns or not found.total_ns:
        return
    is_default = found.floating_share >= options.default_share
    finding = Finding(
        message=float64_evidence.message(trace, found, is_default=is_default),
        evidence=tuple(float64_evidence.evidence(trace, found)),
        tables=float64_evidence.tables(trace, found),
        events=kernel_time.longest(trace, float64_evidence.work(found)),
        locations=product_evidence.locations(trace, found.calls, found.cost_ns),
        claims=tuple(_claims(trace, found)),
        fix=_fix(trace, found, is_default=is_default),
        subject="default dtype" if is_default else "a part",
    )
    yield kernel_time.result(trace, finding)


def _claims(trace: Trace, found: DoublePrecision) -> Iterator[Claim]:
    """Claim what twins show; of the rest what is known of products and of other work."""
    has_twin = ~np.isnan(found.twin_ns)
    if has_twin.any():
        cost, twins = found.cost_ns[has_twin].sum(), found.twin_ns[has_twin].sum()
        won = max(0.0, 1 - float(twins) / max(1, int(cost)))
        calls = count(int(has_twin.sum()), "call")
        yield _claim(
            trace,
            found,
            has_twin,
            Factor(low=won, high=won, source="this recording"),
            f"The same operators with the same shapes take {share(won)} less in float32 here "
            f"({calls}).",
        )
    for what, chosen, factor in _without_twin(trace, found, ~has_twin):
        if chosen.any():
            part = share(int(found.cost_ns[chosen].sum()) / found.total_ns)
            method = (
                f"In float32 {what} ({part} of it) are {product_evidence.times(factor)} "
                "times as fast."
            )
            yield _claim(trace, found, chosen, factor, method)


def _without_twin(
    trace: Trace, found: DoublePrecision, chosen: NDArray[np.bool_]
) -> tuple[tuple[str, NDArray[np.bool_], Factor], ...]:
    if main_device(trace) is None:
        return (
            (PRODUCTS, chosen & found.is_product, DOUBLE_PRECISION_PRODUCTS_ON_CPU),
            (OTHERS, chosen & ~found.is_product, DOUBLE_PRECISION_ON_CPU),
        )
    ratio = peak_ratio(trace, "float32", "float64")
    of_products = at_most(DOUBLE_PRECISION, max(MEMORY_TIMES, ratio)) if ratio else DOUBLE_PRECISION
    return (
        (PRODUCTS, chosen & found.is_product, of_products),
        (OTHERS, chosen & ~found.is_product, at_most(DOUBLE_PRECISION, MEMORY_TIMES)),
    )


def _claim(
    trace: Trace,
    found: DoublePrecision,
    chosen: NDArray[np.bool_],
    factor: Factor,
    method: str,
) -> Claim:
    is_device_work = len(found.device_rows) > 0
    return Claim(_when(trace, found, chosen), factor, method, is_device_work=is_device_work)


def _when(trace: Trace, found: DoublePrecision, chosen: NDArray[np.bool_]) -> Intervals:
    if not len(found.device_rows):
        return times(trace.host_calls, found.calls[chosen])
    return alone(trace, found.device_rows[np.isin(found.owners, found.calls[chosen])])


def _whole(trace: Trace) -> str:
    """Return what makes all of it float32; only what was not so already, where that is known."""
    default = recorded_settings(trace).precision.default_dtype
    is_default = default in (None, "float64")
    return WHOLE if is_default else WHOLE.partition("\n")[2]


def _fix(trace: Trace, found: DoublePrecision, *, is_default: bool) -> Fix:
    names = float64_evidence.costliest(trace, found)
    verify = f"In Operators, {names[0]} has the type float32." if names else "This rule is silent."
    caveats = ("What needs 15 digits (solvers, some metrics) may keep float64.",)
    if is_default:
        return Fix(
            "Work in float32, torch's own default dtype.",
            _whole(trace),
            verify=verify,
            caveats=caveats,
        )
    where = f"   # before {names[0]}" if names else ""
    return Fix(
        "Convert to float32 where the float64 tensors come from.",
        f"x = x.float(){where}\n"
        "x = torch.from_numpy(a).float()   # NumPy makes float64\n"
        "x = torch.tensor(values, dtype=torch.float32)",
        verify=verify,
        caveats=caveats,
    )


RULE = Rule(
    id="float64-compute",
    title="Work is done in double precision (float64)",
    category="precision",
    why="Double precision moves twice the bytes, and most devices compute it at a half to a 64th "
    "of the speed, without matrix units. On a CPU, torch's fast convolutions (oneDNN) know only "
    "float32 and below: in float64 it takes slow ones.",
    detects="Kernels whose names, or whose operators' recorded operands, are float64; on a machine "
    "without a device, operators with such operands. It speaks from `least_share` on. Where they "
    "are `default_share` of all floating-point work, it names the default dtype.",
    silent=(
        "Numbers that Python computes with (a learning rate) are float64 tensors without "
        "dimensions: they cost nothing and do not count.",
        "On a machine with a device, float64 on the host does not count.",
    ),
    saving="Where the same operator with the same shapes also runs in float32, the difference of "
    "the two. Else a range: on a device by the ratio of its two peaks, at least twice for memory; "
    "on a CPU what the recordings in sample_logs/precision and a published case show. Of a "
    "device's work only the part in which the host is early enough.",
    fix=Fix(
        "Work in float32.",
        WHOLE,
        verify="In Operators by shapes, no operator has the type double any more.",
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority=310,
    links=(
        "https://docs.pytorch.org/docs/stable/generated/torch.set_default_dtype.html",
        "https://docs.pytorch.org/docs/stable/notes/numerical_accuracy.html",
    ),
    origin="ours; Ascend's advisor lists operators in double",
    aliases=("fp64-compute",),
    culprit="double precision",
)
