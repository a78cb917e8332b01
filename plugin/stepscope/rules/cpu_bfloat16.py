"""A machine without a device multiplies large matrices in float32."""

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
from stepscope.base.calibration import BFLOAT16_IN_VECTORS_ON_CPU, BFLOAT16_ON_CPU
from stepscope.base.findings import Link
from stepscope.base.formatting import share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases, product_evidence

UNITS = frozenset({"amx_bf16", "avx512_bf16", "bf16"})
"""Instructions that multiply bfloat16, by their names in `torch.cpu.get_capabilities()`."""
VECTORS = frozenset({"avx512_bf16"})
RECORD_SETTINGS = "on_trace_ready=stepscope.trace_handler(log_dir)"


class Options(Thresholds):
    """Thresholds from which products in float32 are worth reporting."""

    least_share: float = option(
        0.50,
        "Fraction of the window in large matrix products in float32.",
        origin="ours: converting has a price, so that products must be most of the time",
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
    rows = _large_products(trace, options)
    span = window(trace)
    products = intervals.clip(times(trace.host_calls, rows), span.start_ns, span.end_ns)
    busy_ns = intervals.duration_ns(products)
    fraction = busy_ns / max(1, span.duration_ns)
    if not busy_ns or fraction < options.least_share:
        return
    units = _units(trace)
    if not units:
        yield RuledOut(
            message=f"Large matrix products in float32 take {share(fraction)} of the time, but the "
            f"processor has no instructions for bfloat16 ({RECORDED})."
        )
        return
    flops = float(operator_work(trace).flops[rows].sum())
    factor = BFLOAT16_ON_CPU if units != VECTORS else BFLOAT16_IN_VECTORS_ON_CPU
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
        claims=(
            Claim(
                products,
                factor,
                f"Products in bfloat16 are {product_evidence.times(factor)} times as fast, "
                "including the conversion.",
            ),
        ),
        fix=_fix(trace),
    )


def _units(trace: Trace) -> frozenset[str]:
    """Return the processor's instructions for bfloat16.

    Raises:
        MissingDataError: the processor's capabilities were not recorded.
    """
    capabilities = recorded_settings(trace).host.cpu_capabilities
    requirements.conclusive_if(
        capabilities is not None,
        "whether the processor has instructions for bfloat16 was not recorded",
        RECORD_SETTINGS,
    )
    return UNITS & frozenset(capabilities or ())


def _large_products(trace: Trace, options: Options) -> NDArray[np.int64]:
    work = operator_work(trace)
    is_large = np.nan_to_num(work.flops) >= options.least_flops
    is_large &= name_mask(work.data_type, "float32".__eq__)
    return np.flatnonzero(is_large & name_mask(trace.host_calls["name"], LEFT_OPERAND.__contains__))


def _fix(trace: Trace) -> Fix:
    if not is_training(trace):
        return RULE.fix
    context = RULE.fix.code.partition("\n")[0]
    code = f"{context}\n    loss = criterion(model(x), y)\nloss.backward()"
    return replace(RULE.fix, code=code)


RULE = Rule(
    id="cpu-bfloat16",
    title="Large matrix products run in float32 on the CPU",
    passed="Large matrix products on the CPU run in bfloat16, or would not gain from it",
    category="precision",
    why="Recent server processors multiply bfloat16 with special instructions (AMX, AVX512-BF16, "
    "Arm's BF16): twice as many numbers at a time and half the bytes, or more.",
    detects="On a machine without a device, matrix products in float32 of `least_flops` operations "
    "and more each, by their shapes, that are `least_share` of the window.",
    silent=(
        "Convolutions do not count: small ones became slower in measurements.",
        "Where a device did the work, the host's products do not matter.",
        "The trace handler recorded that the processor has no such instructions: it is ruled out.",
    ),
    saving="A part of the products' time, as measured. Where the processor's instructions were not "
    "recorded it is inconclusive: without them bfloat16 is slower.",
    fix=Fix(
        "Use autocast in bfloat16.",
        'with torch.autocast("cpu", dtype=torch.bfloat16):\n    out = model(x)',
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
)
