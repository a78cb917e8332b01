"""A machine without a device multiplies large matrices in float32."""

import re
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.flops import operator_work
from stepscope.analyses.operators.product_shapes import LEFT_OPERAND
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import (
    BFLOAT16_IN_MATRIX_UNITS,
    BFLOAT16_IN_VECTORS_ON_CPU,
    BFLOAT16_ON_CPU,
    BFLOAT16_POINTWISE_ON_CPU,
    SMALL_BFLOAT16_IN_MATRIX_UNITS,
    Factor,
)
from stepscope.base.findings import Link
from stepscope.base.formatting import share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases, product_evidence

MATRIX_UNITS = "amx_bf16"
UNITS = frozenset({"amx_bf16", "avx512_bf16", "bf16"})
"""Instructions that multiply bfloat16, by their names in `torch.cpu.get_capabilities()`."""
VECTORS = frozenset({"avx512_bf16"})
LARGEST_FLOPS = 1e8
"""Operations of a product from which matrix units are used well."""
RECORD_SETTINGS = "on_trace_ready=stepscope.trace_handler(log_dir)"


class Options(Thresholds):
    """Thresholds from which products in float32 are worth reporting."""

    least_share: float = option(
        0.50,
        "Fraction of the window in large matrix products in float32.",
        origin="ours: converting has a price, so that products must be most of the time",
    )
    least_share_in_matrix_units: float = option(
        0.25,
        "The same in inference on a processor with matrix units (AMX), where the model is "
        "converted once.",
        origin="ours: half of that, the least that becomes shorter, is an eighth of the step",
    )
    least_flops_in_matrix_units: float = option(
        1.5e7,
        "Operations of a large product in inference, on a processor with matrix units (AMX).",
        origin="ours: with weights in bfloat16, products of 16 million operations and more became "
        "1.9 times as fast and more on a Xeon, those of 7 and less 0.2 to 1.2 times",
    )
    least_flops: float = option(
        1e8,
        "Operations of a large product.",
        origin="ours: on a processor with avx512_bf16, products of 256³ and more became 1.9 to 4 "
        "times as fast, a small convolutional network 0.8 times",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report large products in float32 that fill most of the time."""
    requirements.no_device(trace)
    requirements.shapes(trace)
    units = _recorded_units(trace)
    least_share, least_flops = options.least_share, options.least_flops
    if MATRIX_UNITS in units and not is_training(trace):
        least_share = options.least_share_in_matrix_units
        least_flops = options.least_flops_in_matrix_units
    rows = _large_products(trace, least_flops)
    span = window(trace)
    products = intervals.clip(times(trace.host_calls, rows), span.start_ns, span.end_ns)
    busy_ns = intervals.duration_ns(products)
    fraction = busy_ns / max(1, span.duration_ns)
    if not busy_ns or fraction < least_share:
        return
    _require_capabilities(trace)
    if not units:
        yield RuledOut(
            message=f"Large matrix products in float32 take {share(fraction)} of the time, but the "
            f"processor has no instructions for bfloat16 ({RECORDED})."
        )
        return
    flops = float(operator_work(trace).flops[rows].sum())
    duration_ns = trace.host_calls["duration_ns"].to_numpy()[rows]
    yield Finding(
        confidence="medium",
        message=f"Large matrix products in float32 take {phrases.time(trace, busy_ns)} "
        f"({share(fraction)}). The processor has instructions for bfloat16 "
        f"({', '.join(sorted(units))}, {RECORDED}).",
        evidence=(
            facts.fraction(
                "Large products in float32", fraction, Link(view="operators", search="mm")
            ),
            facts.count("Such products in total", len(rows)),
            facts.count("Billions of operations per second", flops / max(1, duration_ns.sum())),
        ),
        locations=product_evidence.locations(trace, rows, duration_ns),
        claims=tuple(_claims(trace, rows, units)),
        fix=_fix(trace),
    )


def _claims(trace: Trace, rows: NDArray[np.int64], units: frozenset[str]) -> Iterator[Claim]:
    """Claim products; in inference with matrix units by their size, and the other work, too."""
    span = window(trace)
    if MATRIX_UNITS not in units or is_training(trace):
        factor = BFLOAT16_ON_CPU if units != VECTORS else BFLOAT16_IN_VECTORS_ON_CPU
        yield _products_claim(trace, rows, factor, "including the conversion")
        return
    is_largest = operator_work(trace).flops[rows] >= LARGEST_FLOPS
    for mask, factor in (
        (is_largest, BFLOAT16_IN_MATRIX_UNITS),
        (~is_largest, SMALL_BFLOAT16_IN_MATRIX_UNITS),
    ):
        if mask.any():
            yield _products_claim(trace, rows[mask], factor, "with weights in bfloat16")
    others = intervals.difference(
        times(trace.host_calls, np.flatnonzero(_is_float32(trace))), times(trace.host_calls, rows)
    )
    yield Claim(
        intervals.clip(others, span.start_ns, span.end_ns),
        BFLOAT16_POINTWISE_ON_CPU,
        "Other operators on float32 move half of the bytes, or compute as long.",
    )


def _products_claim(trace: Trace, rows: NDArray[np.int64], factor: Factor, condition: str) -> Claim:
    span = window(trace)
    return Claim(
        intervals.clip(times(trace.host_calls, rows), span.start_ns, span.end_ns),
        factor,
        f"Products in bfloat16 are {product_evidence.times(factor)} times as fast, {condition}.",
    )


def _recorded_units(trace: Trace) -> frozenset[str]:
    """Return the processor's instructions for bfloat16; none where they were not recorded."""
    return UNITS & frozenset(recorded_settings(trace).host.cpu_capabilities or ())


def _require_capabilities(trace: Trace) -> None:
    requirements.conclusive_if(
        recorded_settings(trace).host.cpu_capabilities is not None,
        "whether the processor has instructions for bfloat16 was not recorded",
        RECORD_SETTINGS,
    )


def _large_products(trace: Trace, least_flops: float) -> NDArray[np.int64]:
    is_large = np.nan_to_num(operator_work(trace).flops) >= least_flops
    is_large &= name_mask(operator_work(trace).data_type, "float32".__eq__)
    return np.flatnonzero(is_large & name_mask(trace.host_calls["name"], LEFT_OPERAND.__contains__))


def _is_float32(trace: Trace) -> NDArray[np.bool_]:
    """Return a mask of operators whose first operand is of float32 and has a dimension."""
    calls = trace.host_calls
    is_float32 = name_mask(calls["input_types"], re.compile(r'^\["float"').search)
    has_dimensions = name_mask(calls["input_dims"], re.compile(r"^\[\[\d").search)
    return np.asarray(is_float32 & has_dimensions & calls["is_operator"].to_numpy())


def _fix(trace: Trace) -> Fix:
    if not is_training(trace):
        return RULE.fix
    return replace(
        RULE.fix,
        summary="Use autocast in bfloat16.",
        code='with torch.autocast("cpu", dtype=torch.bfloat16):\n'
        "    loss = criterion(model(x), y)\nloss.backward()",
    )


RULE = Rule(
    id="cpu-bfloat16",
    title="Large matrix products run in float32 on the CPU",
    passed="Large matrix products on the CPU run in bfloat16, or would not gain from it",
    category="precision",
    why="Recent server processors multiply bfloat16 with special instructions (AMX, AVX512-BF16, "
    "Arm's BF16): twice as many numbers at a time and half the bytes, or more.",
    detects="On a machine without a device, matrix products in float32 of `least_flops` operations "
    "and more each, by their shapes, that are `least_share` of the window; in inference on a "
    "processor with matrix units of `least_flops_in_matrix_units` and more, that are "
    "`least_share_in_matrix_units` of it.",
    silent=(
        "Convolutions do not count: small ones became slower in measurements.",
        "Where a device did the work, the host's products do not matter.",
        "The trace handler recorded that the processor has no such instructions: it is ruled out.",
    ),
    saving="A part of the products' time, as measured; in inference with matrix units, where the "
    "model itself is converted, also a part of the other operators' time. Where the processor's "
    "instructions were not recorded it is inconclusive: without them bfloat16 is slower.",
    fix=Fix(
        "Run the model in bfloat16.",
        "model = model.to(torch.bfloat16)   # autocast would convert the weights in each call\n"
        "out = model(x.to(torch.bfloat16))",
        verify="The step is shorter; in Operators by shapes, products have the type bfloat16.",
        caveats=(
            "On another processor check first: torch.cpu.get_capabilities() has amx_bf16, "
            "avx512_bf16 or, on Arm, bf16. Without them bfloat16 is slower than float32.",
            "Results have 8 bits of mantissa instead of 24: compare the loss.",
        ),
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    after=("unfused-elementwise",),
    links=(
        "https://pytorch.org/blog/empowering-pytorch-on-intel-xeon-scalable-processors-with-bfloat16/",
        "amp.html#cpu-op-specific-behavior",
    ),
    origin="PyTorch's blog: 1.4 to 1.6 times with AVX512-BF16; ours: the pair in "
    "sample_logs/mixed_precision",
    aliases=("cpu-bf16",),
    culprit="float32 without bfloat16",
)
