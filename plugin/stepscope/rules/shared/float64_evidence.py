"""What the rule on double precision shows: words, numbers and the operators."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core.window import window
from stepscope.analyses.operators.double_precision import (
    DoublePrecision,
    by_operator,
    slow_convolutions,
)
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.findings import Evidence, EvidenceTable, Link
from stepscope.base.formatting import share
from stepscope.model.trace import Trace
from stepscope.rules.shared import facts, phrases, product_evidence
from stepscope.rules.shared.kernel_time import Work

NAMED_OPERATORS = 2


def work(found: DoublePrecision) -> Work:
    """Return the device's part of it; on hosts there is none."""
    return Work(rows=found.device_rows, time_ns=found.total_ns, whole_ns=found.whole_ns)


def costliest(trace: Trace, found: DoublePrecision) -> list[str]:
    """Return the names of the operators that cost most."""
    names = by_operator(trace, found)["name"].drop_duplicates()
    return [str(name) for name in names.head(NAMED_OPERATORS)]


def message(trace: Trace, found: DoublePrecision, *, is_default: bool) -> str:
    """Say how much works in float64, which operators, and whether that is the default dtype."""
    what, of = ("Kernels", "the kernels' time") if _on_device(found) else ("Operators", "the time")
    lasting = phrases.time(trace, found.total_ns)
    part = share(found.total_ns / found.whole_ns)
    names = costliest(trace, found)
    listed = f", most of it {' and '.join(names)}" if names else ""
    text = f"{what} work in float64 for {lasting} ({part} of {of}){listed}."
    slow = [] if _on_device(found) else slow_convolutions(trace)
    if slow:
        text += (
            f" Convolutions run as {slow[0]}: oneDNN, which does them in float32, knows no float64."
        )
    floating = share(found.floating_share)
    if is_default:
        cause = _cause(trace)
        return f"{text} {floating} of all floating-point work is float64: {cause}."
    return f"{text} It is {floating} of all floating-point work: a part, not the default dtype."


def _cause(trace: Trace) -> str:
    """Say where float64 comes from, where nearly all is float64."""
    default = recorded_settings(trace).precision.default_dtype
    if default is None:
        return "it is the default dtype, or the model's"
    if default == "float64":
        return f"it is the default dtype ({RECORDED})"
    return f"the default dtype is {default} ({RECORDED}), so it is the model's or the data's"


def _on_device(found: DoublePrecision) -> bool:
    return len(found.device_rows) > 0


def evidence(trace: Trace, found: DoublePrecision) -> Iterator[Evidence]:
    """Yield the numbers behind it."""
    label = "Kernels in float64" if _on_device(found) else "Operators in float64"
    link = Link(view="kernels" if _on_device(found) else "operators")
    part = found.total_ns / found.whole_ns
    yield facts.fraction(label, part, link)
    yield facts.fraction("Of all floating-point work", found.floating_share, link)
    has_twin = ~np.isnan(found.twin_ns)
    if has_twin.any():
        value = int(found.cost_ns[has_twin].sum()) / found.total_ns
        yield facts.fraction("With twins in float32", value, link)
    if _on_device(found):
        yield from product_evidence.limit(trace)


def tables(trace: Trace, found: DoublePrecision) -> tuple[EvidenceTable, ...]:
    """Return the operators, beside what they cost in float32 where that is known, and kernels."""
    listed = [_operators(trace, found)]
    if _on_device(found):
        listed.append(product_evidence.kernels(trace, work(found)))
    return tuple(table for table in listed if table.rows)


def _operators(trace: Trace, found: DoublePrecision) -> EvidenceTable:
    worst = by_operator(trace, found).head(product_evidence.MOST_ROWS)
    return facts.table(
        "Operators in float64",
        {
            "Operator": "text",
            "Shapes": "code",
            "Calls": "count",
            f"Time {phrases.per_step(trace)}": "ns",
            "A call's mean": "ns",
            "The same in float32": "ns",
        },
        (
            (
                name,
                dims if isinstance(dims, str) else None,
                calls,
                window(trace).per_step(total_ns),
                round(total_ns / calls),
                None if np.isnan(twin_ns) else round(twin_ns),
            )
            for name, dims, calls, total_ns, twin_ns in zip(
                *(worst[column].tolist() for column in worst), strict=True
            )
        ),
    )
