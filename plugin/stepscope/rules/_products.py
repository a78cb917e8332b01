"""What the rules on types of numbers show of the products that they are about."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope import intervals
from stepscope.analyses import references
from stepscope.analyses.devices.activity import main_device
from stepscope.analyses.devices.claimable import alone
from stepscope.analyses.devices.gpu_bound import gpu_bound_share, gpu_bound_times
from stepscope.analyses.devices.kernel_names import short
from stepscope.analyses.operators.product_kernels import ProductKernels
from stepscope.analyses.steps.window import window
from stepscope.calibration import Factor
from stepscope.report import (
    EventReference,
    Evidence,
    EvidenceColumn,
    EvidenceRow,
    EvidenceTable,
    Link,
    SourceLine,
)
from stepscope.rules import INFO_SHARE, Claim, Finding, Rejected
from stepscope.trace import Trace

HOST_IS_THE_LIMIT = (
    "Faster kernels would save nothing now: the host launches too late, and is the limit."
)
MOST_ROWS = 10
MOST_EVENTS = 5
Chosen = NDArray[np.bool_]


def each(trace: Trace) -> str:
    """Return what figures are of: ` a step`, or nothing where there are no steps."""
    return " a step" if window(trace).has_steps else ""


def times(factor: Factor) -> str:
    """Return how many times as fast a factor makes work: `2 to 6`."""
    return f"{1 / (1 - factor.low):.2g} to {1 / (1 - factor.high):.2g}"


def claim(
    trace: Trace, products: ProductKernels, chosen: Chosen, factor: Factor, method: str
) -> Claim:
    """Claim the times in which the device runs these kernels and nothing else."""
    return Claim(
        intervals=alone(trace, products.rows[chosen]),
        factor=factor,
        method=method,
        is_device_work=True,
    )


def judged(trace: Trace, finding: Finding) -> Finding | Rejected:
    """Return a finding about device work, or that it costs nothing because the host is the limit.

    What would save little in any case stays a note: it passed the rule's own threshold.
    """
    bound = gpu_bound_times(trace)
    in_time = intervals.merged(bound.sure, bound.unknown)
    won = gross = 0.0
    for each_claim in finding.claims:
        mine = whole = each_claim.intervals
        if each_claim.is_device_work:
            mine = intervals.intersection(whole, in_time)
        gross += each_claim.factor.high * intervals.duration_ns(whole)
        won += each_claim.factor.high * intervals.duration_ns(mine)
    least = INFO_SHARE * window(trace).reference_ns
    if won >= least:
        return finding
    if won and gross < least:
        return replace(finding, severity="info")
    return Rejected(
        message=f"{finding.message} {HOST_IS_THE_LIMIT}",
        evidence=finding.evidence,
        tables=finding.tables,
        events=finding.events,
    )


def limit(trace: Trace) -> Iterator[Evidence]:
    """Yield how much of the device's work decides how long a step lasts, where that is known."""
    device = main_device(trace)
    share = gpu_bound_share(trace, device) if device else None
    if share is not None:
        label = f"{trace.dialect.device} work for which the host is early enough"
        yield Evidence(label=label, value=share, unit="share", link=Link(view="overview"))


def tables(trace: Trace, products: ProductKernels, chosen: Chosen) -> tuple[EvidenceTable, ...]:
    """Return the operators and the kernels that take most of the time."""
    both = (operators(trace, products, chosen), kernels(trace, products, chosen))
    return tuple(table for table in both if table.rows)


def operators(trace: Trace, products: ProductKernels, chosen: Chosen) -> EvidenceTable:
    """Return the operators with their shapes and types."""
    known = chosen & (products.calls >= 0)
    calls = trace.host_calls.iloc[products.calls[known]]
    frame = pd.DataFrame(
        {
            "name": calls["name"].astype(object).to_numpy(),
            "dims": calls["input_dims"].astype(object).to_numpy(),
            "type": products.data_type[known].astype(object),
            "call": products.calls[known],
            "ns": products.duration_ns[known],
        }
    )
    grouped = frame.groupby(["name", "dims", "type"], dropna=False, sort=False)
    worst = grouped.agg(calls=("call", "nunique"), ns=("ns", "sum")).reset_index()
    worst = worst.sort_values("ns", ascending=False, kind="stable").head(MOST_ROWS)
    return EvidenceTable(
        label="Operators",
        columns=(
            EvidenceColumn(label="Operator", unit="text"),
            EvidenceColumn(label="Shapes", unit="code"),
            EvidenceColumn(label="Type", unit="text"),
            EvidenceColumn(label="Calls", unit="count"),
            EvidenceColumn(label="Kernel time", unit="ns"),
            EvidenceColumn(label="Of all kernels", unit="share"),
        ),
        rows=tuple(
            EvidenceRow(
                cells=(
                    name,
                    _known(dims),
                    _known(of_type),
                    calls,
                    window(trace).per_step(total_ns),
                    total_ns / products.kernel_ns,
                ),
                link=Link(view="operators", search=name),
            )
            for name, dims, of_type, calls, total_ns in zip(
                *(worst[column].tolist() for column in worst), strict=True
            )
        ),
    )


def kernels(trace: Trace, products: ProductKernels, chosen: Chosen) -> EvidenceTable:
    """Return the kernels by name."""
    return kernel_table(trace, products.rows[chosen], products.kernel_ns)


def kernel_table(trace: Trace, rows: NDArray[np.int64], kernel_ns: int) -> EvidenceTable:
    """Return the kernels of some rows of `device_events` by name, the costliest first."""
    events = trace.device_events.iloc[rows]
    by_name = events.groupby(events["name"].astype(object), sort=False)["duration_ns"]
    worst = by_name.agg(["size", "sum"]).sort_values("sum", ascending=False, kind="stable")
    worst = worst.head(MOST_ROWS).reset_index()
    return EvidenceTable(
        label="Kernels",
        columns=(
            EvidenceColumn(label="Kernel", unit="code"),
            EvidenceColumn(label="Launches", unit="count"),
            EvidenceColumn(label="Time", unit="ns"),
            EvidenceColumn(label="Of all kernels", unit="share"),
        ),
        rows=tuple(
            EvidenceRow(
                cells=(
                    short(name),
                    launches,
                    window(trace).per_step(total_ns),
                    total_ns / kernel_ns,
                ),
                link=Link(view="kernels", search=short(name)),
            )
            for name, launches, total_ns in zip(
                *(worst[column].tolist() for column in worst), strict=True
            )
        ),
    )


def _known(value: object) -> str | None:
    return value if isinstance(value, str) else None


def longest(trace: Trace, rows: NDArray[np.int64]) -> tuple[EventReference, ...]:
    """Return the longest of some rows of `device_events`."""
    duration = trace.device_events["duration_ns"].to_numpy()[rows]
    order = np.argsort(-duration, kind="stable")[:MOST_EVENTS]
    return tuple(references.device_event(trace, int(row)) for row in rows[order])


def locations(
    trace: Trace, calls: NDArray[np.int64], weight_ns: NDArray[np.int64]
) -> tuple[SourceLine, ...]:
    """Return the user's lines behind the costliest of some rows of `host_calls`; -1 is none."""
    totals = pd.Series(weight_ns).groupby(calls).sum()
    totals = totals[totals.index >= 0].sort_values(ascending=False, kind="stable")
    worst = totals.head(MOST_EVENTS).index
    lines = (references.line_of_host_call(trace, int(row)) for row in worst)
    return references.source_lines(line for line in lines if line)
