"""Sizes of matrices keep matrix units from loading whole rows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from stepscope.analyses.core.window import window
from stepscope.analyses.operators.misaligned_products import MisalignedProducts, misaligned_products
from stepscope.base.calibration import ALIGNED_PRODUCTS, ALIGNED_PRODUCTS_ON_OLDER_UNITS
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, EvidenceTable, Fix, Link
from stepscope.base.formatting import duration, share
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuleResult, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence

MISFIT = re.compile(r"(?P<what>.+?) (?P<size>\d+) → (?P<padded>\d+)")
"""A size as the analysis writes it: `K 2798 → 2800`."""
PAD = "size = -(-size // 8) * 8   # the next multiple of 8, in 16-bit types"
WORDS = {"K": "the inner dimension", "N": "the right one's columns", "M": "the left one's rows"}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Threshold of misaligned products."""

    least_share: float = option(
        0.02,
        "Kernels of misaligned products, of all kernels' time.",
        origin="ours: real traces have 0, or 5 % and more; padding is a change of a line",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report products that are misaligned by their kernels' names or their operands' shapes."""
    misaligned = misaligned_products(trace)
    if trace.dialect.alignment is None:
        msg = "kernels' names do not tell here how operands are loaded"
        raise NotApplicableError(msg)
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
    products = misaligned.products
    total_ns = products.total_ns(misaligned.is_misaligned)
    lasting = duration(window(trace).per_step(total_ns))
    worst = _worst(misaligned)
    because = f", such as {worst}" if worst else ""
    return (
        f"Matrices whose rows {trace.dialect.matrix_unit}s cannot load at once are multiplied for "
        f"{lasting} {phrases.per_step(trace)} ({share(total_ns / products.kernel_ns)} of the "
        f"kernels' time){because}."
    )


def _by_size(misaligned: MisalignedProducts) -> pd.DataFrame:
    """Return one row a product and misfit, the costliest first."""
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
    """Return the size that costs most, or "" where no shape tells."""
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
            value = misaligned.products.share(rows)
            yield facts.fraction(label, value, link)
    yield from product_evidence.limit(trace)


def _sizes(trace: Trace, misaligned: MisalignedProducts) -> EvidenceTable:
    frame = _by_size(misaligned)
    calls = trace.host_calls[["name", "input_dims"]].astype(object).reindex(frame["call"])
    frame["name"] = calls["name"].fillna("?").to_numpy()
    frame["dims"] = calls["input_dims"].to_numpy()
    keys = ["name", "dims", "type", "sizes"]
    worst = frame.groupby(keys, dropna=False, sort=False)["ns"].sum().reset_index()
    worst = worst.sort_values("ns", ascending=False, kind="stable").head(product_evidence.MOST_ROWS)
    return facts.table(
        "Misaligned products",
        {
            "Operator": "text",
            "Shapes": "code",
            "Type": "text",
            "What does not fit": "text",
            f"Kernel time {phrases.per_step(trace)}": "ns",
        },
        (
            (
                name,
                shapes if isinstance(shapes, str) else None,
                of_type if isinstance(of_type, str) else None,
                sizes or None,
                window(trace).per_step(total_ns),
            )
            for name, shapes, of_type, sizes, total_ns in zip(
                *(worst[column].tolist() for column in worst), strict=True
            )
        ),
        "operators",
    )


def _claims(trace: Trace, misaligned: MisalignedProducts) -> Iterator[Claim]:
    older = misaligned.is_misaligned & misaligned.on_older_unit
    for rows, factor, what in (
        (older, ALIGNED_PRODUCTS_ON_OLDER_UNITS, "on kernels of an earlier generation"),
        (misaligned.is_misaligned & ~older, ALIGNED_PRODUCTS, "misaligned"),
    ):
        if rows.any():
            method = f"Aligned, what is {what} is {product_evidence.times(factor)} times as fast."
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
        verify="In Kernels, `align1` and `align2` have become `align8`, or the names are others.",
        caveats=(
            "Padding must be masked or cut off where it would count: in a softmax, in a loss.",
            "A batch's last, smaller part has other sizes: drop_last=True keeps them.",
        ),
    )


RULE = Rule(
    id="tensor-core-misaligned",
    title="Sizes of matrices keep the matrix units from loading whole rows",
    category="precision",
    why="Matrix units are fed by loads of 16 bytes: 8 elements of 16 bits, 4 of TF32. Where rows "
    "do not begin at a multiple of that, libraries take kernels that load element by element, some "
    "of them made for earlier devices.",
    detects="Kernels on matrix units whose names say that they load less than 16 bytes at a time "
    "(`align1`, `align2`); where the names do not tell, products in 16-bit types of which a row's "
    "length, or the distance of rows, is no multiple of 8. It reports from `least_share` of all "
    "kernels' time on.",
    silent=(
        "Dimensions that are not the length of a row in memory, such as tokens or batches, do not "
        "matter.",
        "Products with a vector are limited by memory.",
        "Without recorded strides, products of the backward pass are left out: which of their "
        "operands are transposed is not known.",
    ),
    saving="The products' time on the device, 1.1 to 2 times as fast, to 3 times where they run on "
    "kernels of an earlier generation; only where the host is early enough. Attention that is "
    "written out goes first: fused, it has no such product.",
    fix=Fix("Pad sizes to a multiple of 8.", PAD),
    effort="hour",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority=330,
    links=(
        "https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/"
        "index.html#requirements-tc",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    origin="torch.profiler's MatMulDimInFP16Pattern; by kernels' names and by strides as well",
    culprit="multiplying sizes that are no multiple of 8",
)
