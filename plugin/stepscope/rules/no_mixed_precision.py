"""Products run in float32 or TF32, where 16-bit types would do."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.device_specs import compute_major, peak_ratio
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.matrix_unit_types import FITTING_TYPES
from stepscope.analyses.operators.product_kernels import TF32, ProductKernels, product_kernels
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import (
    SIXTEEN_BIT_FROM_FLOAT32,
    SIXTEEN_BIT_FROM_TF32,
    Factor,
    at_most,
)
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Fix, Link
from stepscope.base.formatting import duration, share
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuleResult, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence

FLOAT16_MAJOR, BFLOAT16_MAJOR = 7, 8
"""Compute capability from which matrix units take these types."""
LEAST_GAIN = 2
"""By memory: 16 bits are half the bytes on any device."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """When it is worth a word."""

    least_share: float = option(
        0.20,
        "Products in float32 and TF32, of all kernels' time.",
        origin="ours: xprof speaks below 10 % of 16-bit work; recommenders that need float32 for "
        "their tables have 11 and 19 % in real traces, models without autocast 33 % and more",
    )
    least_ratio: float = option(
        3.0,
        "How many times as much time as products in 16 bits and less take.",
        origin="ours: with autocast some products stay in float32, next to none in real traces",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report products in float32 by their operands' types and their kernels' names."""
    products = product_kernels(trace)
    _insist_on_small_types(trace)
    wide = products.of_type("float32", TF32)
    wide_ns = products.total_ns(wide)
    small_ns = products.total_ns(products.of_type(*FITTING_TYPES))
    if wide_ns <= options.least_ratio * small_ns:
        return
    if products.share(wide) < options.least_share:
        return
    yield kernel_time.answer(trace, _finding(trace, products, wide, small_ns))


def _insist_on_small_types(trace: Trace) -> None:
    dialect = trace.dialect
    if dialect.matrix_unit_kernel is None:
        msg = "it is not known whether this device multiplies 16-bit types faster"
        raise NotApplicableError(msg)
    major = compute_major(trace)
    rounds = dialect.plain_product is not None
    if rounds and major is not None and major < FLOAT16_MAJOR:
        msg = f"devices of compute capability {major} have no {dialect.matrix_unit}s"
        raise NotApplicableError(msg)


def _finding(
    trace: Trace, products: ProductKernels, wide: NDArray[np.bool_], small_ns: int
) -> Finding:
    link = Link(view="operators", group="shape")
    types = " and ".join(_types(products, wide))
    return Finding(
        message=f"Matrix products and convolutions in {types} take "
        f"{phrases.time(trace, products.total_ns(wide))} ({share(products.share(wide))} of the "
        f"kernels' time), those in 16 bits and less {_none_or(trace, small_ns)}.",
        evidence=(
            facts.fraction("Products in float32 and TF32", products.share(wide), link),
            facts.fraction("Products in 16 bits and less", small_ns / products.kernel_ns, link),
            *product_evidence.limit(trace),
        ),
        tables=product_evidence.tables(trace, products, wide),
        events=kernel_time.longest(trace, product_evidence.work(products, wide)),
        locations=kernel_time.lines(trace, product_evidence.work(products, wide)),
        claims=tuple(_claims(trace, products, wide)),
        fix=_fix(trace),
    )


def _types(products: ProductKernels, wide: NDArray[np.bool_]) -> list[str]:
    found = (TF32, "float32")
    return [name.replace(TF32, "TF32") for name in found if (wide & products.of_type(name)).any()]


def _none_or(trace: Trace, total_ns: int) -> str:
    return duration(window(trace).per_step(total_ns)) if total_ns else "none"


def _claims(trace: Trace, products: ProductKernels, wide: NDArray[np.bool_]) -> Iterator[Claim]:
    """Claim float32 and TF32 apart: what prepares for TF32's kernels gains by memory only."""
    rounded = wide & products.of_type(TF32)
    full = wide & ~rounded
    if rounded.any():
        rounded |= full & ~products.multiplies
        full = wide & ~rounded
    parts = (
        (full, "float32", SIXTEEN_BIT_FROM_FLOAT32),
        (rounded, TF32, SIXTEEN_BIT_FROM_TF32),
    )
    for chosen, name, factor in parts:
        if chosen.any():
            known = _limited(trace, factor, name)
            method = (
                f"In 16 bits {product_evidence.times(known)} times as fast as in "
                f"{name.replace(TF32, 'TF32')}."
            )
            yield kernel_time.claim(trace, product_evidence.work(products, chosen), known, method)


def _limited(trace: Trace, factor: Factor, name: str) -> Factor:
    ratio = peak_ratio(trace, _small_type(trace), name)
    return factor if ratio is None else at_most(factor, max(LEAST_GAIN, ratio))


def _small_type(trace: Trace) -> str:
    major = compute_major(trace)
    has_bfloat16 = trace.dialect.plain_product is None or major is None or major >= BFLOAT16_MAJOR
    return "bfloat16" if has_bfloat16 else "float16"


def _fix(trace: Trace) -> Fix:
    small, module = _small_type(trace), trace.dialect.terms.get("module", "cuda")
    autocast = recorded_settings(trace).precision.autocast
    if autocast.enabled and autocast.device in (None, module):
        return _within_autocast(module, autocast.dtype or small)
    context = f'with torch.autocast("{module}", dtype=torch.{small}):'
    caveats = ["Results have fewer digits: compare the loss of a few hundred steps."]
    if not is_training(trace):
        code = f"with torch.inference_mode(), {context.removeprefix('with ')}\n    out = model(x)"
    elif small == "bfloat16":
        code = (
            f"{context}\n"
            "    loss = criterion(model(x), y)   # the forward pass and the loss only\n"
            "loss.backward()"
        )
    else:
        caveats.append(f"This device has no bfloat16 in its {trace.dialect.matrix_unit}s.")
        code = (
            f'scaler = torch.amp.GradScaler("{module}")\n'
            f"{context}\n"
            "    loss = criterion(model(x), y)   # the forward pass and the loss only\n"
            "scaler.scale(loss).backward()\n"
            "scaler.step(optimizer)\n"
            "scaler.update()"
        )
    return Fix(
        f"Let autocast multiply in {small}.",
        code,
        verify=f"In Operators by shapes, products have the type {small}.",
        caveats=tuple(caveats),
    )


def _within_autocast(module: str, dtype: str) -> Fix:
    """Return what helps where autocast is on, and these products are not under it."""
    return Fix(
        "Autocast is on, but not for these products: bring them under it.",
        f'with torch.autocast("{module}", dtype=torch.{dtype}):\n'
        "    loss = criterion(model(x), y)   # all of the model, and no .float() within it",
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
    category="precision",
    why="Matrix units multiply 16-bit types several times as fast as float32, which they take "
    "rounded at half the speed or not at all, and 16-bit tensors are half the bytes. Autocast "
    "keeps in float32 what needs it: the weights, the loss, reductions.",
    detects="Kernels of matrix products, convolutions and attention, forward and backward, by "
    "their names and by the recorded types of the operands. It speaks where float32 and TF32 are "
    "`least_share` of all kernels' time and `least_ratio` times that of 16-bit types.",
    silent=(
        "Normalisations, losses and optimizers stay in float32 under autocast and do not count.",
        "Devices before compute capability 7 have no matrix units.",
        "A kernel whose name and operands tell no type counts on neither side.",
    ),
    saving="The products' time on the device: 1.5 to 4 times as fast from float32, 1.2 to 2 times "
    "from TF32, at most as many times as the data sheet's peaks differ, and twice for memory; only "
    "where the host is early enough.",
    fix=Fix(
        "Let autocast multiply in bfloat16.",
        'with torch.autocast("cuda", dtype=torch.bfloat16):\n    out = model(x)',
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority=360,
    links=(
        "https://docs.pytorch.org/docs/stable/amp.html",
        "https://docs.pytorch.org/tutorials/recipes/recipes/amp_recipe.html",
    ),
    origin="torch-tb-profiler's tensor core rule, by types instead of a list of kernels; xprof",
    aliases=("tensor-cores-unused",),
    culprit="multiplying in float32",
)
