"""What the rules on types of numbers show of the products that they are about."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, group_statistics
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import gpu_bound_share
from stepscope.analyses.operators.product_kernels import ProductKernels
from stepscope.base.calibration import Factor
from stepscope.base.findings import (
    Evidence,
    EvidenceColumn,
    EvidenceRow,
    EvidenceTable,
    Link,
    SourceLine,
    Unit,
    View,
)
from stepscope.model.trace import Trace
from stepscope.rules.shared import facts, phrases
from stepscope.rules.shared.kernel_time import Work

MOST_ROWS = 10
MOST_EVENTS = 5
Chosen = NDArray[np.bool_]
Cell = int | float | str | None


def times(factor: Factor) -> str:
    """Return how many times as fast a factor makes work: `2 to 6`."""
    return f"{1 / (1 - factor.low):.2g} to {1 / (1 - factor.high):.2g}"


def work(products: ProductKernels, chosen: Chosen) -> Work:
    """Return the chosen kernels as a part of all of the device's."""
    return Work(
        rows=products.rows[chosen],
        time_ns=products.total_ns(chosen),
        whole_ns=products.kernel_ns,
    )


def limit(trace: Trace) -> Iterator[Evidence]:
    """Yield how much of the device's work decides how long a step lasts, where that is known."""
    device = main_device(trace)
    share = gpu_bound_share(trace, device) if device else None
    if share is not None:
        label = f"{trace.dialect.device} work for which the host is early enough"
        yield facts.fraction(label, share, "overview")


def tables(trace: Trace, products: ProductKernels, chosen: Chosen) -> tuple[EvidenceTable, ...]:
    """Return the operators and the kernels that take most of the time."""
    both = (operators(trace, products, chosen), kernels(trace, work(products, chosen)))
    return tuple(table for table in both if table.rows)


def operators(trace: Trace, products: ProductKernels, chosen: Chosen) -> EvidenceTable:
    """Return the operators with their shapes and types."""
    known = chosen & (products.calls >= 0)
    call, took = products.calls[known], products.duration_ns[known]
    name, dims = (trace.host_calls[column].cat for column in ("name", "input_dims"))
    frame = pd.DataFrame(
        {
            "name": name.codes.to_numpy()[call],
            "dims": dims.codes.to_numpy()[call],
            "type": np.asarray(products.data_type.codes)[known],
        }
    )
    group, first = group_statistics.group_rows(frame, frame.columns)
    total_ns = group_statistics.sums(took, group, len(first))
    call_count = np.bincount(group[np.unique(call, return_index=True)[1]], minlength=len(first))
    worst = np.argsort(-total_ns, kind="stable")[:MOST_ROWS]
    names, shapes, types = (
        [*map(str, texts), None]
        for texts in (name.categories, dims.categories, products.data_type.categories)
    )
    return table(
        "Operators",
        {
            "Operator": "text",
            "Shapes": "code",
            "Type": "text",
            "Calls": "count",
            f"Kernel time {phrases.per_step(trace)}": "ns",
            "Of all kernels": "share",
        },
        (
            (
                names[one],
                shapes[of_shape],
                types[of_type],
                int(call_count[row]),
                window(trace).per_step(total_ns[row]),
                int(total_ns[row]) / products.kernel_ns,
            )
            for row, (one, of_shape, of_type) in zip(
                worst.tolist(), frame.to_numpy()[first[worst]].tolist(), strict=True
            )
        ),
    )


def kernels(trace: Trace, found: Work) -> EvidenceTable:
    """Return the kernels of some work by name, the costliest first."""
    names = trace.device_events["name"].cat
    code = names.codes.to_numpy()[found.rows].astype(np.int64)
    count = len(names.categories) + 1  # the last is of kernels without a name
    took = trace.device_events["duration_ns"].to_numpy()[found.rows]
    total_ns = group_statistics.sums(took, code % count, count)
    launches = np.bincount(code % count, minlength=count)
    worst = np.argsort(-total_ns, kind="stable")[:MOST_ROWS]
    texts = [*(short(str(name)) for name in names.categories), "?"]
    return table(
        "Kernels",
        {
            "Kernel": "code",
            "Launches": "count",
            f"Time {phrases.per_step(trace)}": "ns",
            "Of all kernels": "share",
        },
        (
            (
                texts[row],
                int(launches[row]),
                window(trace).per_step(total_ns[row]),
                int(total_ns[row]) / found.whole_ns,
            )
            for row in worst[launches[worst] > 0].tolist()
        ),
        view="kernels",
    )


def table(
    label: str,
    columns: Mapping[str, Unit],
    rows: Iterable[tuple[Cell, ...]],
    *,
    view: View = "operators",
    link: Link | None = None,
) -> EvidenceTable:
    """Return a table whose rows are found in a view by their first column, or all by one link."""
    return EvidenceTable(
        label=label,
        columns=tuple(EvidenceColumn(label=name, unit=unit) for name, unit in columns.items()),
        rows=tuple(
            EvidenceRow(cells=cells, link=link or Link(view=view, search=str(cells[0] or "")))
            for cells in rows
        ),
    )


def locations(
    trace: Trace, calls: NDArray[np.int64], weight_ns: NDArray[np.int64]
) -> tuple[SourceLine, ...]:
    """Return the user's lines behind the costliest of some rows of `host_calls`; -1 is none."""
    known = calls >= 0
    total_ns = np.bincount(calls[known], weights=weight_ns[known])
    worst = np.argsort(-total_ns, kind="stable")[:MOST_EVENTS]
    lines = (
        event_references.line_of_host_call(trace, row)
        for row in worst[total_ns[worst] > 0].tolist()
    )
    return event_references.source_lines(lines)
