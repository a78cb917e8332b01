"""Products run in float32 or TF32, where 16-bit types would do."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_specs import compute_major, peak_ratio
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.call_metrics import FITTING_TYPES
from stepscope.analyses.operators.product_kernels import TF32, ProductKernels, product_kernels
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import SIXTEEN_BIT_FROM_FLOAT32, SIXTEEN_BIT_FROM_TF32, at_most
from stepscope.base.findings import Link
from stepscope.base.formatting import duration, share
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence

FLOAT16_MAJOR, BFLOAT16_MAJOR = 7, 8
"""Compute capability from which matrix units take these types."""
LEAST_GAIN = 2
"""By memory: 16 bits are half the bytes on any device."""
TYPE_NAMES = {"TF32": TF32, "float32": "float32"}


class Options(Thresholds):
    """Thresholds from which products in float32 are worth reporting."""

    least_share: float = option(
        0.20,
        "Products in float32 and TF32, as a fraction of all kernels' time.",
        origin="ours: xprof reports below 10 % of 16-bit work; recommenders that need float32 for "
        "their tables have 11 and 19 % in real traces, models without autocast 33 % and more",
    )
    least_ratio: float = option(
        3.0,
        "Their time, as a multiple of that of products in 16 bits and less.",
        origin="ours: with autocast some products stay in float32, very few in real traces",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report products in float32 by their operands' types and their kernels' names."""
    products = product_kernels(trace)
    _require_small_types(trace)
    wide = products.of_type("float32", TF32)
    small_ns = products.total_ns(products.of_type(*FITTING_TYPES))
    is_mixed = products.total_ns(wide) <= options.least_ratio * small_ns
    if not is_mixed and products.share(wide) >= options.least_share:
        yield kernel_time.result(trace, _finding(trace, products, wide, small_ns))


def _require_small_types(trace: Trace) -> None:
    dialect, major = trace.dialect, compute_major(trace)
    requirements.applies_if(
        dialect.matrix_unit_kernel is not None,
        "whether this device multiplies 16-bit types faster is unknown",
    )
    requirements.applies_if(
        dialect.plain_product is None or major is None or major >= FLOAT16_MAJOR,
        f"devices of compute capability {major} have no {dialect.matrix_unit}s",
    )


def _finding(
    trace: Trace, products: ProductKernels, wide: NDArray[np.bool_], small_ns: int
) -> Finding:
    link, work = Link(view="operators", group="shape"), product_evidence.work(products, wide)
    types = [text for text, name in TYPE_NAMES.items() if (wide & products.of_type(name)).any()]
    small = duration(window(trace).per_step(small_ns)) if small_ns else "none"
    return Finding(
        message=f"Matrix products and convolutions in {' and '.join(types)} take "
        f"{phrases.time(trace, work.time_ns)} ({share(work.share)} of the kernels' time), those in "
        f"16 bits and less {small}.",
        evidence=(
            facts.fraction("Products in float32 and TF32", work.share, link),
            facts.fraction("Products in 16 bits and less", small_ns / products.kernel_ns, link),
            *product_evidence.limit(trace),
        ),
        tables=product_evidence.tables(trace, products, wide),
        events=kernel_time.longest(trace, work),
        locations=kernel_time.lines(trace, work),
        claims=tuple(_claims(trace, products, wide)),
        fix=_fix(trace),
    )


def _claims(trace: Trace, products: ProductKernels, wide: NDArray[np.bool_]) -> Iterator[Claim]:
    """Claim float32 and TF32 apart: kernels that prepare for TF32 gain by memory only."""
    rounded = wide & products.of_type(TF32)
    if rounded.any():
        rounded |= wide & ~rounded & ~products.multiplies
    parts = (
        (wide & ~rounded, "float32", SIXTEEN_BIT_FROM_FLOAT32),
        (rounded, "TF32", SIXTEEN_BIT_FROM_TF32),
    )
    for mask, name, factor in parts:
        if mask.any():
            ratio = peak_ratio(trace, _small_type(trace), TYPE_NAMES[name])
            limited = factor if ratio is None else at_most(factor, max(LEAST_GAIN, ratio))
            times = product_evidence.times(limited)
            method = f"In 16 bits {times} times as fast as in {name}."
            yield kernel_time.claim(trace, product_evidence.work(products, mask), limited, method)


def _small_type(trace: Trace) -> str:
    major = compute_major(trace)
    has_bfloat16 = trace.dialect.plain_product is None or major is None or major >= BFLOAT16_MAJOR
    return "bfloat16" if has_bfloat16 else "float16"


def _fix(trace: Trace) -> Fix:
    small, module = _small_type(trace), trace.dialect.terms.get("module", "cuda")
    autocast = recorded_settings(trace).precision.autocast
    if autocast.enabled and autocast.device in (None, module):
        return _extend_autocast(module, autocast.dtype or small)
    context = f'with torch.autocast("{module}", dtype=torch.{small}):'
    forward = (
        f"{context}\n    loss = criterion(model(x), y)   # the forward pass and the loss only\n"
    )
    caveats = ["Results have fewer digits: compare the loss of a few hundred steps."]
    if not is_training(trace):
        code = f"with torch.inference_mode(), {context.removeprefix('with ')}\n    out = model(x)"
    elif small == "bfloat16":
        code = f"{forward}loss.backward()"
    else:
        caveats.append(f"This device has no bfloat16 in its {trace.dialect.matrix_unit}s.")
        code = (
            f'scaler = torch.amp.GradScaler("{module}")\n'
            f"{forward}"
            "scaler.scale(loss).backward()\n"
            "scaler.step(optimizer)\n"
            "scaler.update()"
        )
    return Fix(
        f"Multiply in {small} with autocast.",
        code,
        verify=f"In Operators by shapes, products have the type {small}.",
        caveats=tuple(caveats),
    )


def _extend_autocast(module: str, dtype: str) -> Fix:
    """Return the fix where autocast is on, and does not cover these products."""
    return Fix(
        "Autocast is on, but not for these products: extend it to them.",
        f'with torch.autocast("{module}", dtype=torch.{dtype}):\n'
        "    loss = criterion(model(x), y)   # all of the model, and no .float() in it",
        verify=f"In Operators by shapes, products have the type {dtype}.",
        caveats=(
            f"That autocast is on was {RECORDED}.",
            "A custom autograd.Function needs torch.amp.custom_fwd; torch.autocast(enabled=False) "
            "and .float() in a layer switch it off there.",
        ),
    )


RULE = Rule(
    id="no-mixed-precision",
    title="Matrix products run in float32 where 16 bits would do",
    passed="Large matrix products run in 16 bits, or are not the bottleneck",
    category="precision",
    why="Matrix units multiply 16-bit types several times as fast as float32, which they take "
    "rounded at half the speed or not at all, and 16-bit tensors are half the bytes. Autocast "
    "keeps in float32 what needs it: the weights, the loss, reductions.",
    detects="Kernels of matrix products, convolutions and attention, forward and backward, by "
    "their names and by the recorded types of the operands. It reports where float32 and TF32 are "
    "`least_share` of all kernels' time and `least_ratio` times that of 16-bit types.",
    silent=(
        "Normalizations, losses and optimizers stay in float32 under autocast and do not count.",
        "Devices before compute capability 7 have no matrix units.",
        "Kernels whose name and operands show no type do not count.",
    ),
    saving="The products' time on the device: 1.5 to 4 times as fast from float32, 1.2 to 2 times "
    "from TF32, limited by the ratio of the data sheet's peaks, and by two for memory; only "
    "where the host launches early enough.",
    fix=Fix(
        "Multiply in bfloat16 with autocast.",
        'with torch.autocast("cuda", dtype=torch.bfloat16):\n    out = model(x)',
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority="device work",
    after=("fp32-matmul-no-tf32",),
    links=("amp.html", "/tutorials/recipes/recipes/amp_recipe.html"),
    origin="torch-tb-profiler's tensor core rule, by types instead of a list of kernels; xprof",
    aliases=("tensor-cores-unused",),
    culprit="multiplying in float32",
)
