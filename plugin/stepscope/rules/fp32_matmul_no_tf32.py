"""Float32 products run without the matrix units that could multiply them."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_specs import compute_major, peak_ratio
from stepscope.analyses.operators.product_kernels import TF32, ProductKernels, product_kernels
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import TF32_PRODUCTS, at_most
from stepscope.base.findings import Evidence, Link
from stepscope.base.formatting import share
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence, recorded_facts

FIRST_MAJOR = 8
"""Compute capability from which matrix units round float32 to TF32."""
LEAST_RATIO = 1.5
"""The least speed-up of TF32 by the data sheet: it is 8 on an A100, 7.4 on an H100, 2 on an A10,
but 1 on a GeForce RTX 3090 or 4090."""
CONVOLUTION = "conv"
ROUNDING = ("high", "medium")
"""Values of `torch.get_float32_matmul_precision()` with which products may round."""


class Options(Thresholds):
    """Thresholds from which products without matrix units are worth reporting."""

    least_share: float = option(
        0.05,
        "Fraction of all kernels' time in float32 products without the matrix units.",
        origin="ours: real traces with TF32 on have up to 2.5 %, those without 24 % and more",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report float32 products whose kernels' names show that they use no matrix unit."""
    products = product_kernels(trace)
    _require_distinct_names(trace)
    major = compute_major(trace)
    requirements.applies_if(
        major is None or major >= FIRST_MAJOR,
        f"{trace.dialect.matrix_unit}s of compute capability {major} do not accept float32",
    )
    may_round = _may_round(trace, products)
    plain = products.of_type("float32") & products.multiplies & ~products.on_matrix_unit & may_round
    if not plain.any() or products.share(plain) < options.least_share:
        return
    requirements.conclusive_if(
        major is not None,
        "the device's compute capability is not in the file",
        "prof.export_chrome_trace(path)  # and keep `deviceProperties`",
    )
    ratio = peak_ratio(trace, TF32, "float32")
    finding = _finding(trace, products, plain, ratio)
    short = finding.message.partition(":")[0]
    by_shape = "the libraries chose these kernels by shape."
    if _is_allowed(trace, products, plain):
        yield finding.ruled_out(f"{short}. TF32 is allowed ({RECORDED}): {by_shape}")
    elif products.total_ns(products.of_type(TF32) & may_round) >= products.total_ns(plain):
        yield finding.ruled_out(f"{short}. TF32 is allowed: {by_shape}")
    elif ratio is not None and ratio < LEAST_RATIO:
        yield finding.ruled_out(f"{short}. On this device TF32 is only {ratio:.2g} times as fast.")
    else:
        yield kernel_time.result(trace, finding)


def _require_distinct_names(trace: Trace) -> None:
    dialect = trace.dialect
    requirements.applies_if(
        dialect.matrix_unit_kernel is None or dialect.float32_on_matrix_unit != "float32",
        f"{dialect.matrix_unit}s multiply float32 without rounding",
    )
    requirements.applies_if(
        dialect.plain_product is not None,
        "kernels' names do not show how this device multiplies float32",
    )


def _is_allowed(trace: Trace, products: ProductKernels, plain: NDArray[np.bool_]) -> bool:
    """Return whether TF32 was recorded as allowed for most of the time."""
    precision = recorded_settings(trace).precision
    convolving = plain & _is_convolution(trace, products)
    if 2 * products.total_ns(convolving) > products.total_ns(plain):
        return bool(precision.tf32_cudnn)
    return bool(precision.tf32_matmul) or precision.float32_matmul in ROUNDING


def _may_round(trace: Trace, products: ProductKernels) -> NDArray[np.bool_]:
    """Return a mask: all but convolutions, which round unless a recorded setting forbids it."""
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
    unit, work = trace.dialect.matrix_unit, product_evidence.work(products, plain)
    factor = TF32_PRODUCTS if ratio is None else at_most(TF32_PRODUCTS, ratio)
    return Finding(
        message=f"Float32 matrix products run without {unit}s for "
        f"{phrases.time(trace, work.time_ns)} ({share(work.share)} of the kernels' time): TF32 is "
        "not allowed for them.",
        evidence=(
            facts.fraction(
                f"Float32 products without {unit}s", work.share, Link(view="kernels", search="gemm")
            ),
            facts.fraction("Products in TF32", products.share(products.of_type(TF32)), "kernels"),
            *(
                []
                if ratio is None
                else [facts.count("TF32 over float32, by the data sheet", ratio)]
            ),
            *_settings(trace),
            *product_evidence.limit(trace),
        ),
        tables=product_evidence.tables(trace, products, plain),
        events=kernel_time.longest(trace, work),
        locations=kernel_time.lines(trace, work),
        claims=(
            kernel_time.claim(
                trace, work, factor, f"{product_evidence.times(factor)} times as fast in TF32."
            ),
        ),
        fix=_fix(trace),
    )


def _settings(trace: Trace) -> Iterator[Evidence]:
    precision = recorded_settings(trace).precision
    if precision.float32_matmul is not None:
        yield recorded_facts.evidence("float32_matmul_precision", precision.float32_matmul, "code")
    if precision.tf32_cudnn is not None:
        yield recorded_facts.evidence("cudnn.allow_tf32", str(precision.tf32_cudnn), "code")


def _fix(trace: Trace) -> Fix:
    """Return the line that allows TF32; two lines where a setting forbids it to convolutions."""
    if recorded_settings(trace).precision.tf32_cudnn is not False:
        return RULE.fix
    code = f"{RULE.fix.code}\ntorch.backends.cudnn.allow_tf32 = True  # it was switched off"
    return replace(RULE.fix, code=code)


RULE = Rule(
    id="fp32-matmul-no-tf32",
    title="Float32 matrix products do not use the matrix units (TF32)",
    passed="Float32 matrix products use the matrix units, or are short",
    category="precision",
    why="From compute capability 8 (NVIDIA's A100) on, matrix units multiply float32 that is "
    "rounded to 10 bits of mantissa (TF32), and add in float32. torch allows that for convolutions "
    "by default; for matrix products it must be enabled.",
    detects="Kernels of mm, addmm, bmm and the like, whose names contain float32 and no matrix "
    "unit (`sgemm`, `simt`). It reports from `least_share` of all kernels' time on, where TF32 is "
    "1.5 times as fast or more by the device's data sheet, or where that is unknown.",
    silent=(
        "NVIDIA's devices before compute capability 8 have no TF32; those of other vendors "
        "multiply float32 without rounding.",
        "Where more products run in TF32 than without, it is allowed already.",
        "Products with a vector (`gemv`) are limited by memory: TF32 has the same bytes.",
        "Convolutions do not count, unless the trace handler recorded that TF32 is off for them: "
        "torch rounds for them by default.",
        "The trace handler recorded that TF32 is allowed: it is ruled out.",
    ),
    saving="The products' time on the device, 2 to 6 times as fast, at most by the ratio in the "
    "device's data sheet; only where the host launches early enough.",
    fix=Fix(
        "Allow TF32 for matrix products: one line at the beginning of the program.",
        'torch.set_float32_matmul_precision("high")',
        verify="In Kernels, `sgemm` has become `tf32` or `s1688gemm`.",
        caveats=(
            "Products then have 10 bits of mantissa instead of 23. Training rarely needs more; "
            "solvers and some physics do.",
            "Autocast in bfloat16 saves more, and TF32 does not help there.",
        ),
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority="device work",
    after=("layout-transpose",),
    links=(
        "generated/torch.set_float32_matmul_precision.html",
        "notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices",
    ),
    origin="torch.profiler's FP32MatMulPattern; PyTorch tuning guide; by kernels' names instead",
    culprit="float32 without TF32",
)
