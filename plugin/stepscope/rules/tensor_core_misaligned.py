"""Sizes of matrices prevent matrix units from loading whole rows."""

import re
from collections.abc import Iterator

import pandas as pd

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.misaligned_products import MisalignedProducts, misaligned_products
from stepscope.base.calibration import ALIGNED_PRODUCTS, ALIGNED_PRODUCTS_ON_OLDER_UNITS
from stepscope.base.findings import Evidence, EvidenceTable, Link, Unit
from stepscope.base.formatting import share
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence

MISFIT = re.compile(r"(?P<what>.+?) (?P<size>\d+) → (?P<padded>\d+)")
"""A size as the analysis writes it: `K 2798 → 2800`."""
PAD = "size = -(-size // 8) * 8   # the next multiple of 8, in 16-bit types"
WORDS = {"K": "the inner dimension", "N": "the right one's columns", "M": "the left one's rows"}


class Options(Thresholds):
    """Threshold of misaligned products."""

    least_share: float = option(
        0.02,
        "Fraction of all kernels' time in misaligned products.",
        origin="ours: real traces have 0, or 5 % and more; padding is a change of one line",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report products that are misaligned by their kernels' names or their operands' shapes."""
    misaligned = misaligned_products(trace)
    requirements.applies_if(
        trace.dialect.alignment is not None,
        "kernels' names do not show how operands are loaded on this device",
    )
    part = misaligned.products.share(misaligned.is_misaligned)
    if part < options.least_share or not part:
        return
    work = product_evidence.work(misaligned.products, misaligned.is_misaligned)
    finding = Finding(
        confidence="high" if misaligned.by_name.any() else "medium",
        message=_message(trace, misaligned),
        evidence=tuple(_evidence(trace, misaligned)),
        tables=(_sizes(trace, misaligned), product_evidence.kernels(trace, work)),
        events=kernel_time.longest(trace, work),
        locations=kernel_time.lines(trace, work),
        claims=tuple(_claims(trace, misaligned)),
        fix=_fix(misaligned),
    )
    yield kernel_time.result(trace, finding)


def _message(trace: Trace, misaligned: MisalignedProducts) -> str:
    worst, products = _worst(misaligned), misaligned.products
    return (
        f"Products of matrices whose rows {trace.dialect.matrix_unit}s cannot load at once take "
        f"{phrases.time(trace, products.total_ns(misaligned.is_misaligned))} "
        f"({share(products.share(misaligned.is_misaligned))} of the kernels' time)"
        f"{f', such as {worst}' if worst else ''}."
    )


def _by_size(misaligned: MisalignedProducts) -> pd.DataFrame:
    """Return one row per product and misaligned size, the costliest first."""
    rows, products = misaligned.is_misaligned, misaligned.products
    frame = pd.DataFrame(
        {
            "call": products.calls[rows],
            "type": products.data_type[rows].astype(object),
            "sizes": misaligned.sizes[rows],
            "ns": products.duration_ns[rows],
        }
    )
    return frame.sort_values("ns", ascending=False, kind="stable")


def _worst(misaligned: MisalignedProducts) -> str:
    """Return the size that costs most, or "" where no shape was recorded."""
    frame = _by_size(misaligned)
    totals = frame[frame["sizes"] != ""].groupby("sizes", sort=False)["ns"].sum()
    return str(totals.idxmax()) if len(totals) else ""


def _evidence(trace: Trace, misaligned: MisalignedProducts) -> Iterator[Evidence]:
    link = Link(view="kernels", search="align")
    parts = (
        ("Misaligned products", misaligned.is_misaligned),
        ("By the kernels' names", misaligned.by_name),
        ("By shapes and strides", misaligned.by_shape),
        (
            "On kernels of an earlier generation",
            misaligned.is_misaligned & misaligned.on_older_unit,
        ),
    )
    for label, rows in parts:
        if rows.any():
            yield facts.fraction(label, misaligned.products.share(rows), link)
    yield from product_evidence.limit(trace)


def _sizes(trace: Trace, misaligned: MisalignedProducts) -> EvidenceTable:
    frame = _by_size(misaligned)
    calls = trace.host_calls[["name", "input_dims"]].astype(object).reindex(frame["call"])
    frame["name"] = calls["name"].fillna("?").to_numpy()
    frame["dims"] = calls["input_dims"].to_numpy()
    keys = ["name", "dims", "type", "sizes"]
    worst = frame.groupby(keys, dropna=False, sort=False)["ns"].sum().reset_index()
    worst = worst.sort_values("ns", ascending=False, kind="stable").head(product_evidence.MOST_ROWS)
    worst["ns"] = [window(trace).per_step(time_ns) for time_ns in worst["ns"].tolist()]
    columns: dict[str, Unit] = {
        "Operator": "text",
        "Shapes": "code",
        "Type": "text",
        "Misaligned size": "text",
        f"Kernel time {phrases.per_step(trace)}": "ns",
    }
    return facts.table("Misaligned products", columns, worst, "operators")


def _claims(trace: Trace, misaligned: MisalignedProducts) -> Iterator[Claim]:
    older = misaligned.is_misaligned & misaligned.on_older_unit
    for rows, factor, kind in (
        (older, ALIGNED_PRODUCTS_ON_OLDER_UNITS, "products on kernels of an earlier generation"),
        (misaligned.is_misaligned & ~older, ALIGNED_PRODUCTS, "products"),
    ):
        if rows.any():
            method = f"Aligned, {kind} are {product_evidence.times(factor)} times as fast."
            yield kernel_time.claim(
                trace, product_evidence.work(misaligned.products, rows), factor, method
            )


def _fix(misaligned: MisalignedProducts) -> Fix:
    fits = MISFIT.match(_worst(misaligned))
    code = PAD
    if fits:
        what = WORDS.get(fits["what"], "the distance of rows")
        padded = fits["padded"]
        layer = f"{padded}, outputs" if fits["what"] == "K" else f"inputs, {padded}"
        code = (
            f"# {what}: {fits['size']} becomes {padded}\n"
            f"layer = nn.Linear({layer})   # or pad the vocabulary, the sequence"
        )
    return Fix(
        "Pad sizes to a multiple of 8 elements (4 in TF32, 16 in 8-bit types).",
        code,
        verify="In Kernels, no name of a product contains `align1` or `align2`.",
        caveats=(
            "Padding must be masked or cut off where it would count: in a softmax, in a loss.",
            "A batch's last, smaller part has other sizes: drop_last=True keeps them.",
        ),
    )


RULE = Rule(
    id="tensor-core-misaligned",
    title="Matrix sizes prevent matrix units from loading whole rows",
    passed="Matrix sizes suit the matrix units, or the products take little time",
    category="precision",
    why="Matrix units are fed by loads of 16 bytes: 8 elements of 16 bits, 4 of TF32. Where rows "
    "do not begin at a multiple of that, libraries use kernels that load element by element, "
    "some of them made for earlier devices.",
    detects="Kernels on matrix units whose names show that they load less than 16 bytes at a time "
    "(`align1`, `align2`); where the names do not show it, products in 16-bit types of which a "
    "row's length, or the distance of rows, is no multiple of 8. It reports from `least_share` "
    "of all kernels' time on.",
    silent=(
        "Dimensions that are not the length of a row in memory, such as tokens or batches, do "
        "not matter.",
        "Products with a vector are limited by memory.",
        "Without recorded strides, products of the backward pass are left out: it is not known "
        "which of their operands are transposed.",
    ),
    saving="The products' time on the device, 1.1 to 2 times as fast, up to 3 times for kernels "
    "of an earlier generation; only where the host launches early enough. Unfused attention "
    "claims its products first: fused, it has none.",
    fix=Fix("Pad sizes to a multiple of 8.", PAD),
    effort="hour",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority="device work",
    after=("unfused-attention",),
    links=(
        "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/"
        "index.html#requirements-tc",
        "/tutorials/recipes/recipes/tuning_guide.html",
    ),
    origin="torch.profiler's MatMulDimInFP16Pattern; by kernels' names and by strides as well",
    culprit="multiplying sizes that are no multiple of 8",
)
