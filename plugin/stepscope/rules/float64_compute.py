"""Operators work in double precision."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.device_specs import peak_ratio
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.operators.double_precision import (
    Convolution,
    DoublePrecision,
    by_operator,
    convolution_kinds,
    on_device,
    on_host,
    slow_convolutions,
)
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import (
    DOUBLE_PRECISION,
    DOUBLE_PRECISION_NARROW_CONVOLUTIONS_ON_CPU,
    DOUBLE_PRECISION_ON_CPU,
    DOUBLE_PRECISION_PRODUCTS_ON_CPU,
    DOUBLE_PRECISION_SMALL_CONVOLUTIONS_ON_CPU,
    DOUBLE_PRECISION_WIDE_CONVOLUTIONS_ON_CPU,
    Factor,
    at_most,
    either,
)
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, EvidenceTable, Link
from stepscope.base.formatting import count, share
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence
from stepscope.rules.shared.kernel_time import Work

MEMORY_TIMES = 2
"""float64 has twice the bytes: work limited by memory is twice as fast in float32 anywhere."""
NAMED_OPERATORS = 2
WHOLE = """\
torch.set_default_dtype(torch.float32)   # or leave set_default_dtype out
model = model.float()
inputs = inputs.float()   # NumPy makes float64: torch.from_numpy(a).float()"""
PRODUCTS, OTHERS = "products and convolutions", "other operators"
MATRIX_PRODUCTS = "matrix products"
CONVOLUTIONS = {
    Convolution.SMALL: ("small convolutions", DOUBLE_PRECISION_SMALL_CONVOLUTIONS_ON_CPU),
    Convolution.NARROW: (
        "convolutions to few channels",
        DOUBLE_PRECISION_NARROW_CONVOLUTIONS_ON_CPU,
    ),
    Convolution.WIDE: (
        "convolutions to many channels",
        DOUBLE_PRECISION_WIDE_CONVOLUTIONS_ON_CPU,
    ),
    Convolution.UNKNOWN: (
        "convolutions",
        either(
            DOUBLE_PRECISION_SMALL_CONVOLUTIONS_ON_CPU,
            DOUBLE_PRECISION_NARROW_CONVOLUTIONS_ON_CPU,
            DOUBLE_PRECISION_WIDE_CONVOLUTIONS_ON_CPU,
        ),
    ),
}
"""Texts and factors on CPUs."""
Mask = NDArray[np.bool_]


class Options(Thresholds):
    """Thresholds from which work in float64 is worth reporting, and when it is all of it."""

    least_share: float = option(
        0.01,
        "Fraction of the window's operators, or of the device's kernels, in float64.",
        origin="ours: real traces have up to 0.4 %, one with metrics in float64 has 1.4 %",
    )
    default_share: float = option(
        0.90,
        "Fraction of all floating-point work from which float64 is the default dtype, not a part.",
        origin="ours: a model made in float64 has 100 %, one with a part in it 64 % at most",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report work in float64, on the device, or on a machine without one on the host."""
    try:
        requirements.main_device(trace)
    except NotApplicableError:
        requirements.shapes(trace)
        double = on_host(trace)
    else:
        double = on_device(trace)
    if double.total_ns < options.least_share * double.whole_ns or not double.total_ns:
        return
    is_default = double.floating_share >= options.default_share
    by_name = by_operator(trace, double)
    names = [str(name) for name in by_name["name"].drop_duplicates().head(NAMED_OPERATORS)]
    work = Work(rows=double.device_rows, time_ns=double.total_ns, whole_ns=double.whole_ns)
    tables = [_operators(trace, by_name)]
    if len(work.rows):
        tables.append(product_evidence.kernels(trace, work))
    finding = Finding(
        message=_message(trace, double, names, is_default=is_default),
        evidence=tuple(_evidence(trace, double)),
        tables=tuple(tables),
        events=kernel_time.longest(trace, work),
        locations=product_evidence.locations(trace, double.calls, double.cost_ns),
        claims=tuple(_claims(trace, double)),
        fix=_fix(trace, names, is_default=is_default),
        subject="default dtype" if is_default else "a part",
    )
    yield kernel_time.result(trace, finding)


def _message(trace: Trace, double: DoublePrecision, names: list[str], *, is_default: bool) -> str:
    on_host = not len(double.device_rows)
    subject, whole = ("Operators", "the time") if on_host else ("Kernels", "the kernels' time")
    fraction = share(double.total_ns / double.whole_ns)
    listed = f", most of it {' and '.join(names)}" if names else ""
    text = (
        f"{subject} work in float64 for {phrases.time(trace, double.total_ns)} ({fraction} of "
        f"{whole}){listed}."
    )
    if slow := slow_convolutions(trace) if on_host else []:
        text += f" Convolutions run as {slow[0]}: oneDNN has them in float32, not in float64."
    floating = share(double.floating_share)
    if is_default:
        return f"{text} {floating} of all floating-point work is float64: {_cause(trace)}."
    return f"{text} It is {floating} of all floating-point work: a part, not the default dtype."


def _cause(trace: Trace) -> str:
    """Return the cause of float64 where nearly all work is float64."""
    default = recorded_settings(trace).precision.default_dtype
    if default is None:
        return "it is the default dtype, or the model's"
    if default == "float64":
        return f"it is the default dtype ({RECORDED})"
    return f"the default dtype is {default} ({RECORDED}), so it is the model's or the data's"


def _evidence(trace: Trace, double: DoublePrecision) -> Iterator[Evidence]:
    is_device_work = len(double.device_rows) > 0
    label = "Kernels in float64" if is_device_work else "Operators in float64"
    link = Link(view="kernels" if is_device_work else "operators")
    yield facts.fraction(label, double.total_ns / double.whole_ns, link)
    yield facts.fraction("Of all floating-point work", double.floating_share, link)
    has_twin = ~np.isnan(double.float32_ns)
    if has_twin.any():
        value = int(double.cost_ns[has_twin].sum()) / double.total_ns
        yield facts.fraction("With twins in float32", value, link)
    if is_device_work:
        yield from product_evidence.limit(trace)


def _operators(trace: Trace, by_name: pd.DataFrame) -> EvidenceTable:
    """Return the operators with the duration of the same calls in float32, where known."""
    worst = by_name.head(product_evidence.MOST_ROWS)
    return facts.table(
        "Operators in float64",
        {
            "Operator": "text",
            "Shapes": "code",
            "Calls": "count",
            f"Time {phrases.per_step(trace)}": "ns",
            "Mean call": "ns",
            "Mean call in float32": "ns",
        },
        (
            (
                name,
                dims,
                calls,
                window(trace).per_step(total_ns),
                round(total_ns / calls),
                twin_ns if np.isnan(twin_ns) else round(twin_ns),
            )
            for name, dims, calls, total_ns, twin_ns in worst.itertuples(index=False, name=None)
        ),
        "operators",
    )


def _claims(trace: Trace, double: DoublePrecision) -> Iterator[Claim]:
    """Claim the measured difference to twins, and for other work the factors of its kind."""
    has_twin = ~np.isnan(double.float32_ns)
    if has_twin.any():
        cost, twins = double.cost_ns[has_twin].sum(), double.float32_ns[has_twin].sum()
        saved = max(0.0, 1 - float(twins) / max(1, int(cost)))
        yield _claim(
            trace,
            double,
            has_twin,
            Factor(low=saved, high=saved, source="this recording"),
            f"The same operators with the same shapes take {share(saved)} less in float32 here "
            f"({count(int(has_twin.sum()), 'call')}).",
        )
    for kind, mask, factor in _without_twin(trace, double, ~has_twin):
        if mask.any():
            part = share(int(double.cost_ns[mask].sum()) / double.total_ns)
            method = (
                f"In float32 {kind} ({part} of it) are {product_evidence.times(factor)} times as "
                "fast."
            )
            yield _claim(trace, double, mask, factor, method)


def _without_twin(
    trace: Trace, double: DoublePrecision, mask: Mask
) -> tuple[tuple[str, Mask, Factor], ...]:
    if main_device(trace) is None:
        return _on_host_without_twin(trace, double, mask)
    ratio = peak_ratio(trace, "float32", "float64")
    products, others = DOUBLE_PRECISION, at_most(DOUBLE_PRECISION, MEMORY_TIMES)
    if ratio:
        products = at_most(DOUBLE_PRECISION, max(MEMORY_TIMES, ratio))
    return (
        (PRODUCTS, mask & double.is_product, products),
        (OTHERS, mask & ~double.is_product, others),
    )


def _on_host_without_twin(
    trace: Trace, double: DoublePrecision, mask: Mask
) -> tuple[tuple[str, Mask, Factor], ...]:
    kinds = convolution_kinds(trace, double.calls)
    is_convolution = double.is_product & (kinds >= 0)
    return (
        *(
            (text, mask & is_convolution & (kinds == kind), factor)
            for kind, (text, factor) in CONVOLUTIONS.items()
        ),
        (
            MATRIX_PRODUCTS,
            mask & double.is_product & ~is_convolution,
            DOUBLE_PRECISION_PRODUCTS_ON_CPU,
        ),
        (OTHERS, mask & ~double.is_product, DOUBLE_PRECISION_ON_CPU),
    )


def _claim(trace: Trace, double: DoublePrecision, mask: Mask, factor: Factor, method: str) -> Claim:
    rows = double.device_rows
    if not len(rows):
        return Claim(times(trace.host_calls, double.calls[mask]), factor, method)
    work = exclusive_device_time(trace, rows[np.isin(double.owners, double.calls[mask])])
    return Claim(work, factor, method, is_device_work=True)


def _fix(trace: Trace, names: list[str], *, is_default: bool) -> Fix:
    verify = f"In Operators, {names[0]} has the type float32." if names else "This check passes."
    if is_default:
        default = recorded_settings(trace).precision.default_dtype
        code = WHOLE if default in (None, "float64") else WHOLE.partition("\n")[2]
        return replace(
            RULE.fix, summary="Work in float32, torch's default dtype.", code=code, verify=verify
        )
    where = f"   # before {names[0]}" if names else ""
    return replace(
        RULE.fix,
        summary="Convert to float32 at the source of the float64 tensors.",
        code=f"x = x.float(){where}\n"
        "x = torch.from_numpy(a).float()   # NumPy makes float64\n"
        "x = torch.tensor(values, dtype=torch.float32)",
        verify=verify,
    )


RULE = Rule(
    id="float64-compute",
    title="Work is done in double precision (float64)",
    passed="Little or no work runs in double precision",
    category="precision",
    why="Double precision moves twice the bytes, and most devices compute it at a half to a 64th "
    "of the speed, without matrix units. On a CPU, torch's fast convolutions (oneDNN) support only "
    "float32 and below: in float64 it uses slow ones.",
    detects="Kernels whose names, or whose operators' recorded operands, are float64; on a machine "
    "without a device, operators with such operands. It reports from `least_share` on. Where they "
    "are `default_share` of all floating-point work, it names the default dtype.",
    silent=(
        "Python numbers (a learning rate) are float64 tensors without dimensions: they cost "
        "nothing and do not count.",
        "On a machine with a device, float64 on the host does not count.",
    ),
    saving="Where the same operator with the same shapes also runs in float32, the difference of "
    "the two. Otherwise a range: on a device by the ratio of its two peaks, at least twice for "
    "memory; on a CPU as measured, by kind: convolutions by size and channels, matrix products, "
    "others. Of device work only the part that the host launches early enough.",
    fix=Fix(
        "Work in float32.",
        WHOLE,
        verify="In Operators by shapes, no operator has the type double any more.",
        caveats=("Work that needs 15 digits (solvers, some metrics) may keep float64.",),
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority="device work",
    after=("model-on-cpu",),
    links=("generated/torch.set_default_dtype.html", "notes/numerical_accuracy.html"),
    origin="ours; Ascend's advisor lists operators in double",
    aliases=("fp64-compute",),
    culprit="double precision",
)
