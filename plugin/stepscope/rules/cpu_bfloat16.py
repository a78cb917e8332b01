"""A machine without a device multiplies large matrices in float32."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.flops import operator_work
from stepscope.analyses.operators.product_shapes import LEFT_OPERAND
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import BFLOAT16_ON_CPU
from stepscope.base.errors import MissingDataError, NotApplicableError
from stepscope.base.findings import Fix, Link
from stepscope.base.formatting import share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import facts, phrases, product_evidence

UNITS = frozenset({"amx_bf16", "avx512_bf16", "bf16"})
"""What `torch.cpu.get_capabilities()` calls instructions that multiply bfloat16."""
RECORD_SETTINGS = "on_trace_ready=stepscope.trace_handler(log_dir)"


@dataclass(frozen=True, kw_only=True)
class Options:
    """When it is worth a word."""

    least_share: float = option(
        0.50,
        "Large matrix products in float32, of the window.",
        origin="ours: converting has a price, so that products must be most of the time",
    )
    least_flops: float = option(
        1e8,
        "Operations of a product that counts as large.",
        origin="ours: on a processor with avx512_bf16, products of 256³ and more became 1.9 to 4 "
        "times as fast, a small convolutional network 0.8 times",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report large products in float32 that fill most of the time."""
    _insist_on_no_device(trace)
    requirements.shapes(trace)
    rows = _large_products(trace, options)
    span = window(trace)
    ran = intervals.clip(times(trace.host_calls, rows), span.start_ns, span.end_ns)
    busy_ns = intervals.duration_ns(ran)
    if not busy_ns or busy_ns < options.least_share * span.duration_ns:
        return
    units = _units(trace)
    if not units:
        yield RuledOut(
            message=f"Large matrix products in float32 take {share(busy_ns / span.duration_ns)}, "
            f"but the processor has no instructions for bfloat16 ({RECORDED})."
        )
        return
    flops = float(operator_work(trace).flops[rows].sum())
    lasting = trace.host_calls["duration_ns"].to_numpy()[rows]
    yield Finding(
        confidence="medium",
        message=f"Large matrix products in float32 take {phrases.time(trace, busy_ns)} "
        f"({share(busy_ns / span.duration_ns)}). The processor has instructions for bfloat16 "
        f"({', '.join(sorted(units))}, {RECORDED}).",
        evidence=(
            facts.fraction(
                "Large products in float32",
                busy_ns / span.duration_ns,
                Link(view="operators", search="mm"),
            ),
            facts.count("Such products", len(rows)),
            facts.count("Billions of operations a second", flops / max(1, int(lasting.sum()))),
        ),
        locations=product_evidence.locations(trace, rows, lasting),
        claims=(
            Claim(
                ran,
                BFLOAT16_ON_CPU,
                f"Products in bfloat16 are {product_evidence.times(BFLOAT16_ON_CPU)} times as "
                "fast, converting included.",
            ),
        ),
        fix=_fix(trace),
    )


def _insist_on_no_device(trace: Trace) -> None:
    try:
        requirements.main_device(trace)
    except NotApplicableError:
        return
    msg = "the program ran on a machine with a device"
    raise NotApplicableError(msg)


def _units(trace: Trace) -> frozenset[str]:
    """Return the processor's instructions for bfloat16.

    Raises:
        MissingDataError: what the processor has was not recorded.
    """
    known = recorded_settings(trace).host.cpu_capabilities
    if known is None:
        msg = "whether the processor has instructions for bfloat16 was not recorded"
        raise MissingDataError(msg, RECORD_SETTINGS)
    return UNITS & frozenset(known)


def _large_products(trace: Trace, options: Options) -> NDArray[np.int64]:
    work = operator_work(trace)
    is_large = np.nan_to_num(work.flops) >= options.least_flops
    is_large &= name_mask(work.data_type, "float32".__eq__)
    return np.flatnonzero(is_large & name_mask(trace.host_calls["name"], LEFT_OPERAND.__contains__))


def _fix(trace: Trace) -> Fix:
    code = "    loss = criterion(model(x), y)\nloss.backward()"
    if not is_training(trace):
        code = "    out = model(x)"
    return Fix(
        "Use autocast in bfloat16.",
        'with torch.autocast("cpu", dtype=torch.bfloat16):\n' + code,
        verify="The step is shorter; in Operators by shapes, products have the type bfloat16.",
        caveats=(
            "On another processor look first: torch.cpu.get_capabilities() has amx_bf16, "
            "avx512_bf16 or, on Arm, bf16. Without them bfloat16 is slower than float32.",
            "Results have 8 bits of mantissa instead of 24: compare the loss.",
        ),
    )


RULE = Rule(
    id="cpu-bfloat16",
    title="Large matrix products run in float32 on the CPU",
    category="precision",
    why="Recent server processors multiply bfloat16 with instructions made for it (AMX, "
    "AVX512-BF16, Arm's BF16): twice as many numbers at a time and half the bytes, or more.",
    detects="On a machine without a device, matrix products in float32 of `least_flops` operations "
    "and more each, by their shapes, that are `least_share` of the window.",
    silent=(
        "Convolutions do not count: small ones became slower where it was measured.",
        "Where a device did the work, the host's products do not matter.",
        "The trace handler recorded that the processor has no such instructions: it is rejected.",
    ),
    saving="A part of the products' time, as measured. Where the processor's instructions were not "
    "recorded it cannot be told: without them bfloat16 is slower.",
    fix=Fix(
        "Use autocast in bfloat16.",
        'with torch.autocast("cpu", dtype=torch.bfloat16):\n    out = model(x)',
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority=420,
    links=(
        "https://pytorch.org/blog/empowering-pytorch-on-intel-xeon-scalable-processors-with-bfloat16/",
        "https://docs.pytorch.org/docs/stable/amp.html#cpu-op-specific-behavior",
    ),
    origin="PyTorch's blog: 1.4 to 1.6 times with AVX512-BF16; ours: the pair in "
    "sample_logs/mixed_precision",
    aliases=("cpu-bf16",),
)
