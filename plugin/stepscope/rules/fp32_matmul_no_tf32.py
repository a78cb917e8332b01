"""Float32 products run one multiplication at a time, where matrix units would take them."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core.device_specs import compute_major, peak_ratio
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.product_kernels import TF32, ProductKernels, product_kernels
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import TF32_PRODUCTS, at_most
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import Evidence, Fix, Link
from stepscope.base.formatting import duration, share
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence, recorded_facts

FIRST_MAJOR = 8
"""Compute capability from which matrix units round float32 to TF32."""
LEAST_RATIO = 1.5
"""How many times as fast TF32 has to be by the data sheet: 8 on an A100, 7.4 on an H100, 2 on an
A10, but 1 on a GeForce RTX 3090 or 4090."""
CONVOLUTION = "conv"
NONE = -1
ROUNDING = ("high", "medium")
"""What `torch.get_float32_matmul_precision()` says where products may round."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """When it is worth a word."""

    least_share: float = option(
        0.05,
        "Float32 products off the matrix units, of all kernels' time.",
        origin="ours: real traces with TF32 on have up to 2.5 %, those without 24 % and more",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report float32 products whose kernels' names tell that they use no matrix unit."""
    products = product_kernels(trace)
    _insist_on_telling_names(trace)
    major = compute_major(trace)
    if major is not None and major < FIRST_MAJOR:
        msg = f"{trace.dialect.matrix_unit}s of compute capability {major} do not take float32"
        raise NotApplicableError(msg)
    is_matrix = _not_rounded(trace, products)
    plain = products.of_type("float32") & products.multiplies & ~products.on_matrix_unit & is_matrix
    part = products.share(plain)
    if part < options.least_share or not part:
        return
    if major is None:
        msg = "the device's compute capability is not in the file"
        raise MissingDataError(msg, "prof.export_chrome_trace(path)  # and keep `deviceProperties`")
    ratio = peak_ratio(trace, TF32, "float32")
    finding = _finding(trace, products, plain, ratio)
    if _is_allowed(trace, products, plain):
        yield _acquitted(
            finding, f"TF32 is allowed ({RECORDED}): the libraries chose these kernels by shape."
        )
    elif products.total_ns(products.of_type(TF32) & is_matrix) >= products.total_ns(plain):
        yield _acquitted(finding, "TF32 is allowed: the libraries chose these kernels by shape.")
    elif ratio is not None and ratio < LEAST_RATIO:
        yield _acquitted(finding, f"This device has TF32 only {ratio:.2g} times as fast.")
    else:
        yield kernel_time.result(trace, finding)


def _is_allowed(trace: Trace, products: ProductKernels, plain: NDArray[np.bool_]) -> bool:
    """Tell whether TF32 was recorded as allowed for what most of the time is spent on."""
    said = recorded_settings(trace).precision
    convolving = plain & _is_convolution(trace, products)
    if 2 * products.total_ns(convolving) > products.total_ns(plain):
        return bool(said.tf32_cudnn)
    return bool(said.tf32_matmul) or said.float32_matmul in ROUNDING


def _insist_on_telling_names(trace: Trace) -> None:
    dialect = trace.dialect
    if dialect.matrix_unit_kernel is not None and dialect.float32_on_matrix_unit == "float32":
        msg = f"{dialect.matrix_unit}s multiply float32 as it is"
        raise NotApplicableError(msg)
    if dialect.plain_product is None:
        msg = "kernels' names do not tell here how float32 is multiplied"
        raise NotApplicableError(msg)


def _not_rounded(trace: Trace, products: ProductKernels) -> NDArray[np.bool_]:
    """Tell which products may be kept from TF32: none of convolutions, unless it was recorded.

    Convolutions round unless they are told not to.
    """
    is_convolution = _is_convolution(trace, products)
    if recorded_settings(trace).precision.tf32_cudnn is False:
        return np.ones_like(is_convolution)
    return ~is_convolution


def _is_convolution(trace: Trace, products: ProductKernels) -> NDArray[np.bool_]:
    is_convolution = name_mask(trace.host_calls["name"], lambda name: CONVOLUTION in name.lower())
    return np.asarray(np.append(is_convolution, False)[products.calls])


def _finding(
    trace: Trace, products: ProductKernels, plain: NDArray[np.bool_], ratio: float | None
) -> Finding:
    lasting = duration(window(trace).per_step(products.total_ns(plain)))
    part = products.share(plain)
    unit, found = trace.dialect.matrix_unit, product_evidence.work(products, plain)
    factor = TF32_PRODUCTS if ratio is None else at_most(TF32_PRODUCTS, ratio)
    return Finding(
        message=f"Float32 matrix products run without {unit}s for {lasting} "
        f"{phrases.per_step(trace)} ({share(part)} of the kernels' time): TF32 is not allowed for "
        "them.",
        evidence=(
            facts.fraction(
                f"Float32 products without {unit}s", part, Link(view="kernels", search="gemm")
            ),
            facts.fraction("Products in TF32", products.share(products.of_type(TF32)), "kernels"),
            *_ratio(ratio),
            *_recorded_flags(trace),
            *product_evidence.limit(trace),
        ),
        tables=product_evidence.tables(trace, products, plain),
        events=kernel_time.longest(trace, found),
        locations=kernel_time.lines(trace, found),
        claims=(
            kernel_time.claim(
                trace, found, factor, f"{product_evidence.times(factor)} times as fast in TF32."
            ),
        ),
        fix=_fix(trace),
    )


def _recorded_flags(trace: Trace) -> Iterator[Evidence]:
    said = recorded_settings(trace).precision
    if said.float32_matmul is not None:
        yield recorded_facts.evidence("float32_matmul_precision", said.float32_matmul, "code")
    if said.tf32_cudnn is not None:
        yield recorded_facts.evidence("cudnn.allow_tf32", str(said.tf32_cudnn), "code")


def _fix(trace: Trace) -> Fix:
    """Return the line that allows TF32; two where convolutions were told not to round."""
    if recorded_settings(trace).precision.tf32_cudnn is not False:
        return RULE.fix
    code = f"{RULE.fix.code}\ntorch.backends.cudnn.allow_tf32 = True  # it was switched off"
    return replace(RULE.fix, code=code)


def _ratio(ratio: float | None) -> Iterator[Evidence]:
    if ratio is not None:
        yield facts.count("TF32 over float32, by the data sheet", ratio)


def _acquitted(finding: Finding, reason: str) -> RuledOut:
    return RuledOut(
        message=f"{finding.message.partition(':')[0]}. {reason}",
        evidence=finding.evidence,
        tables=finding.tables,
        events=finding.events,
    )


RULE = Rule(
    id="fp32-matmul-no-tf32",
    title="Float32 matrix products do not use the matrix units (TF32)",
    category="precision",
    why="From compute capability 8 (NVIDIA's A100) on, matrix units multiply float32 that is "
    "rounded to 10 bits of mantissa (TF32), and add in float32. torch allows that for "
    "convolutions; for matrix products it has to be told.",
    detects="Kernels of mm, addmm, bmm and the like, whose names say float32 and no matrix unit "
    "(`sgemm`, `simt`). It speaks from `least_share` of all kernels' time on, where the device's "
    "data sheet has TF32 1.5 times as fast or more, or is not known.",
    silent=(
        "NVIDIA's devices before compute capability 8 have no TF32; those of other vendors "
        "multiply float32 as it is.",
        "Where more products run in TF32 than without, it is allowed already.",
        "Products with a vector (`gemv`) are limited by memory: TF32 has the same bytes.",
        "Convolutions are not counted, unless the trace handler recorded that TF32 is off for "
        "them: torch rounds for them unless it is told not to.",
        "The trace handler recorded that TF32 is allowed: it is rejected.",
    ),
    saving="The products' time on the device, 2 to 6 times as fast, at most as many times as the "
    "device's data sheet says; only where the host is early enough.",
    fix=Fix(
        "Allow TF32 for matrix products: one line, at the program's beginning.",
        'torch.set_float32_matmul_precision("high")',
        verify="In Kernels, `sgemm` has become `tf32` or `s1688gemm`.",
        caveats=(
            "Products then have 10 bits of mantissa instead of 23. Training rarely minds; solvers "
            "and some physics do.",
            "With autocast in bfloat16 more is won, and this is of no use there.",
        ),
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority=350,
    links=(
        "https://docs.pytorch.org/docs/stable/generated/torch.set_float32_matmul_precision.html",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices",
    ),
    origin="torch.profiler's FP32MatMulPattern; PyTorch tuning guide; by kernels' names instead",
    culprit="float32 without TF32",
)
