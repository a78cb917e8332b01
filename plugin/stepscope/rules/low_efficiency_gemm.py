"""Matrix products run far below what the device can do with their shapes."""

import re

import numpy as np
import pandas as pd

from stepscope.analyses.core.device_specs import measured_source
from stepscope.analyses.devices.roofline import MEASURED, roofline, roofline_kernels
from stepscope.analyses.operators.product_shapes import shape
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import TUNED_PRODUCTS_SHARE, up_to_roofline
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import EvidenceRow, EvidenceTable, Link
from stepscope.base.formatting import share
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time

PRODUCT = re.compile(r"^aten::(?:mm|addmm|bmm|baddbmm|addbmm|linear|matmul|_scaled_mm|_addmm\w+)$")
SHORT_NS = 20_000
"""Of a product: below that a device of today has hardly begun when the product ends."""
MOST_ROWS = 10


TUNING = ("max-autotune", "max-autotune-no-cudagraphs")
"""Modes of torch.compile that measure tiles."""
TUNE = 'model = torch.compile(model, mode="max-autotune")  # measures tiles for each shape\n'
TUNED = f"# tiles are measured already: the compile mode says so ({RECORDED})\n"


class Options(Thresholds):
    """Thresholds of slow matrix products."""

    most_roofline_share: float = option(
        0.30,
        "Fraction of the device's peak for the product's shapes up to which it is too slow.",
        origin="ours: large products reach 0.70 to 0.88 in real traces of MI300X and H100",
    )
    least_share: float = option(
        0.10,
        "Fraction of all kernels' time in such products from which it reports.",
        origin="ours: below that, at the target, less than 6 % is saved",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report products by the roofline of their shapes and of the device.

    Raises:
        MissingDataError: shapes were not recorded, or the device's peak is not known.
    """
    rows = kernel_time.rows_in_window(trace)
    table = roofline(trace)
    products = table[name_mask(table["name"].astype("category"), PRODUCT.search)]
    if not len(products):
        return
    rated = products[products["roofline_share"].notna().to_numpy()]
    if not len(rated):
        raise MissingDataError(_reason(products), "")
    low = rated[(rated["roofline_share"] <= options.most_roofline_share).to_numpy()]
    slow_work = kernel_time.work_of(trace, rows, roofline_kernels(trace, low))
    if not len(low) or slow_work.share < options.least_share:
        return
    reached = float(np.average(low["roofline_share"], weights=low["kernel_ns"]))
    worst = low.iloc[0]
    finding = Finding(
        severity="info",
        confidence="medium",
        message=f"Matrix products that reach {share(reached)} of what the device can do with their "
        f"shapes take {kernel_time.time_and_fraction(trace, slow_work)}.",
        evidence=(
            facts.fraction("Of the kernels' time", slow_work.share, "kernels"),
            facts.fraction("Of the roofline, on average", reached),
            facts.text("Peak from", _peak_source(trace, worst)),
        ),
        tables=(_table(low),),
        fix=_fix(trace, worst),
    )
    yield kernel_time.result_of(
        trace,
        slow_work,
        up_to_roofline(reached),
        f"At most the time saved at {share(TUNED_PRODUCTS_SHARE)} of the roofline, possibly none.",
        finding,
    )


def _reason(products: pd.DataFrame) -> str:
    note = str(next(iter(products["note"].dropna()), "The device's peak is not known."))
    return note[0].lower() + note[1:].rstrip(".")


def _table(low: pd.DataFrame) -> EvidenceTable:
    columns = ["name", "input_dims", "data_type", "call_count", "kernel_ns", "roofline_share"]
    cells = low[[*columns, "bound"]].head(MOST_ROWS).astype(object).to_numpy().tolist()
    return facts.table(
        "Products",
        {
            "Operator": "text",
            "Shapes": "text",
            "Type": "text",
            "Calls": "count",
            "Time": "ns",
            "Of the roofline": "share",
            "Limit": "text",
        },
        (
            EvidenceRow(cells=tuple(row), link=Link(view="operators", search=str(row[0])))
            for row in cells
        ),
    )


def _fix(trace: Trace, worst: "pd.Series[float]") -> Fix:
    case = f"# {worst['name']} of {_shapes(str(worst['input_dims']))}\n"
    is_short = bool(worst["kernel_ns"] < SHORT_NS * worst["call_count"])
    is_tuned = recorded_settings(trace).compile.mode in TUNING
    return _fix_of(case, is_short=is_short, is_tuned=is_tuned)


def _fix_of(case: str, *, is_short: bool, is_tuned: bool = False) -> Fix:
    verify = "Of the roofline, the same products reach more in the next trace."
    if is_short:
        return Fix(
            "Make fewer and larger products: these end before the device is full.",
            f"{case}"
            "qkv = nn.Linear(width, 3 * width)  # one product in place of three of one input\n"
            "loader = DataLoader(dataset, batch_size=2 * batch_size)",
            verify=verify,
            caveats=("A larger batch needs more memory, and may want another learning rate.",),
        )
    return Fix(
        "Let other tiles be tried for these shapes, or choose shapes that fill them.",
        f"{case}{TUNED if is_tuned else TUNE}# and sizes in multiples of 128: the last tiles of a "
        "row are filled, not padded",
        verify=verify,
        caveats=("Under a power limit no product reaches the device's peak.",),
    )


def _peak_source(trace: Trace, worst: "pd.Series[float]") -> str:
    if str(worst["peak_source"]) == MEASURED:
        source = measured_source(trace, str(worst["data_type"]))
        return f"measured (the sheet's is higher): {source}"
    return f"the data sheet: {worst['source']}"


def _shapes(dims: str) -> str:
    """Return the two matrices' shapes: `[788, 768] and [768, 768]`."""
    inputs = [list(shape(dims, position)) for position in range(3)]
    return " and ".join(str(dims) for dims in inputs if len(dims) > 1)


RULE = Rule(
    id="low-efficiency-gemm",
    title="Matrix products run far below what the device can do",
    passed="Matrix products far below the device's peak take little time",
    category="operators",
    why="A product of given shapes can be no faster than the device's arithmetic or its memory "
    "allows. Products that are small, or whose sizes do not fill the tiles that they are cut into, "
    "leave most of the device idle.",
    detects="Matrix products whose operations and bytes, by their shapes, over their kernels' "
    "time reach `most_roofline_share` of the device's peak or less. It reports where they take "
    "`least_share` of all kernels' time.",
    silent=(
        "Convolutions and attention are left to other rules.",
        "Where the device is not in the table of peaks, it is inconclusive.",
        "Where the host is the limit it is ruled out.",
    ),
    saving="At most the time saved at 75 % of the roofline, where the device is the limit; "
    "nothing at least: only a trial shows whether such shapes allow it.",
    fix=_fix_of("", is_short=True),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority="device work",
    after=("fp8-candidate",),
    links=(
        "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html",
    ),
    life_cycle="preview",
    origin="TraceLens, share of the roofline",
    culprit="multiplying far below the roofline",
    aliases=("roofline-low-gemm",),
)
