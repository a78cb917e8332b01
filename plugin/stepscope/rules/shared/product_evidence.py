"""Evidence about matrix products: the operators and kernels that take most of the time."""

from collections.abc import Iterator

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
from stepscope.base.findings import Evidence, EvidenceTable, SourceLine
from stepscope.model.trace import Trace
from stepscope.rules.shared import facts, phrases
from stepscope.rules.shared.kernel_time import Work

MOST_ROWS = 10
MOST_EVENTS = 5
Mask = NDArray[np.bool_]


def times(factor: Factor) -> str:
    """Return the speed-up of a factor as text: `2 to 6` times as fast."""
    return f"{1 / (1 - factor.low):.2g} to {1 / (1 - factor.high):.2g}"


def work(products: ProductKernels, mask: Mask) -> Work:
    """Return the selected kernels as a part of all of the device's."""
    return Work(
        rows=products.rows[mask], time_ns=products.total_ns(mask), whole_ns=products.kernel_ns
    )


def limit(trace: Trace) -> Iterator[Evidence]:
    """Yield the fraction of the device's work that decides the step's length, where known."""
    device = main_device(trace)
    share = gpu_bound_share(trace, device) if device else None
    if share is not None:
        label = f"{trace.dialect.device} work that the host launches early enough"
        yield facts.fraction(label, share, "overview")


def tables(trace: Trace, products: ProductKernels, mask: Mask) -> tuple[EvidenceTable, ...]:
    """Return the operators and the kernels that take most of the time."""
    return operators(trace, products, mask), kernels(trace, work(products, mask))


def operators(trace: Trace, products: ProductKernels, mask: Mask) -> EvidenceTable:
    """Return the operators with their shapes and types."""
    has_call = mask & (products.calls >= 0)
    call, duration_ns = products.calls[has_call], products.duration_ns[has_call]
    name, dims = (trace.host_calls[column].cat for column in ("name", "input_dims"))
    frame = pd.DataFrame(
        {
            "name": name.codes.to_numpy()[call],
            "dims": dims.codes.to_numpy()[call],
            "type": np.asarray(products.data_type.codes)[has_call],
        }
    )
    group, first = group_statistics.group_rows(frame, frame.columns)
    total_ns = group_statistics.sums(duration_ns, group, len(first))
    call_count = np.bincount(group[np.unique(call, return_index=True)[1]], minlength=len(first))
    worst = np.argsort(-total_ns, kind="stable")[:MOST_ROWS]
    names, shapes, types = (
        [*map(str, texts), None]
        for texts in (name.categories, dims.categories, products.data_type.categories)
    )
    return facts.table(
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
                names[of_name],
                shapes[of_shape],
                types[of_type],
                call_count[row],
                window(trace).per_step(total_ns[row]),
                int(total_ns[row]) / products.kernel_ns,
            )
            for row, (of_name, of_shape, of_type) in zip(
                worst.tolist(), frame.to_numpy()[first[worst]].tolist(), strict=True
            )
        ),
        "operators",
    )


def kernels(trace: Trace, work: Work) -> EvidenceTable:
    """Return the kernels of some work by name, the costliest first."""
    names = trace.device_events["name"].cat
    code = names.codes.to_numpy()[work.rows].astype(np.int64)
    count = len(names.categories) + 1  # the last is of kernels without a name
    duration_ns = trace.device_events["duration_ns"].to_numpy()[work.rows]
    total_ns = group_statistics.sums(duration_ns, code % count, count)
    launches = np.bincount(code % count, minlength=count)
    worst = np.argsort(-total_ns, kind="stable")[:MOST_ROWS]
    texts = [*(short(str(name)) for name in names.categories), "?"]
    return facts.table(
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
                launches[row],
                window(trace).per_step(total_ns[row]),
                int(total_ns[row]) / work.whole_ns,
            )
            for row in worst[launches[worst] > 0].tolist()
        ),
        "kernels",
    )


def locations(
    trace: Trace, calls: NDArray[np.int64], weight_ns: NDArray[np.int64]
) -> tuple[SourceLine, ...]:
    """Return the user's lines behind the costliest of some rows of `host_calls`; -1 is none."""
    is_call = calls >= 0
    total_ns = np.bincount(calls[is_call], weights=weight_ns[is_call])
    worst = np.argsort(-total_ns, kind="stable")[:MOST_EVENTS]
    rows = worst[total_ns[worst] > 0].tolist()
    return event_references.source_lines(
        event_references.line_of_host_call(trace, row) for row in rows
    )
