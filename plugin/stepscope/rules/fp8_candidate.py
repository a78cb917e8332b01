"""Large products run in 16 bits on a device that multiplies 8-bit floats faster."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.device_specs import peak_ratio
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.product_kernels import ProductKernels, product_kernels
from stepscope.analyses.operators.product_shapes import distinct, operands
from stepscope.base.calibration import FLOAT8_PRODUCTS
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Fix, Link
from stepscope.base.formatting import duration, share
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuleResult, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence

SIXTEEN_BITS = ("float16", "bfloat16")
EIGHT_BITS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
LEAST_RATIO = 1.5
"""How many times as fast 8-bit floats have to be by the device's data sheet."""
MULTIPLE = 16
"""What sizes must be multiples of (`torch._scaled_mm`)."""
TRAINING = """\
from torchao.float8 import convert_to_float8_training
convert_to_float8_training(model)   # before torch.compile, and compile is needed"""
MATRICES = frozenset({"aten::mm", "aten::addmm", "aten::_addmm_activation"})


@dataclass(frozen=True, kw_only=True)
class Options:
    """When it is worth a word."""

    least_share: float = option(
        0.40,
        "Large products in 16 bits, of all kernels' time.",
        origin="ours: below that little is won for a change that touches every layer",
    )
    least_size: int = option(
        2048,
        "The smallest of a large product's three sizes.",
        origin="torchao's float8: from about there on products win more than converting costs",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report large products of linear layers in 16 bits."""
    products = product_kernels(trace)
    ratio = peak_ratio(trace, "float8", "bfloat16")
    if ratio is None or ratio < LEAST_RATIO:
        msg = "no data sheet says that this device multiplies 8-bit floats faster"
        raise NotApplicableError(msg)
    large = products.of_type(*SIXTEEN_BITS) & _are_large(trace, products, options.least_size)
    part = products.share(large)
    if part < options.least_share or not part or products.of_type(*EIGHT_BITS).any():
        return
    yield kernel_time.result(trace, _finding(trace, products, large, ratio))


def _are_large(trace: Trace, products: ProductKernels, least: int) -> NDArray[np.bool_]:
    """Tell which kernels belong to products of matrices all of whose sizes are large and fit."""
    group, texts = distinct(trace, products.calls)
    return np.array([_is_large(*each, least) for each in texts], dtype=bool)[group]


def _is_large(name: str, dims: str, least: int) -> bool:
    found = operands(name, dims) if name in MATRICES else None
    if found is None:
        return False
    (m, k), (_, n) = found
    return min(m, k, n) >= least and not (k % MULTIPLE or n % MULTIPLE)


def _finding(
    trace: Trace, products: ProductKernels, large: NDArray[np.bool_], ratio: float
) -> Finding:
    part, found = products.share(large), product_evidence.work(products, large)
    lasting = duration(window(trace).per_step(products.total_ns(large)))
    return Finding(
        severity="info",
        confidence="low",
        message=f"Large matrix products in 16 bits take {lasting} {phrases.per_step(trace)} "
        f"({share(part)} of the kernels' time); this device's peak in 8-bit floats is {ratio:.2g} "
        "times as high.",
        evidence=(
            facts.fraction(
                "Large products in 16 bits", part, Link(view="operators", group="shape")
            ),
            facts.count("Peak in 8 bits over 16", ratio),
            *product_evidence.limit(trace),
        ),
        tables=product_evidence.tables(trace, products, large),
        events=kernel_time.longest(trace, found),
        locations=kernel_time.lines(trace, found),
        claims=(
            kernel_time.claim(
                trace,
                found,
                FLOAT8_PRODUCTS,
                f"In 8-bit floats {product_evidence.times(FLOAT8_PRODUCTS)} times as fast, with "
                "scaling and converting.",
            ),
        ),
        fix=_fix(trace),
    )


def _fix(trace: Trace) -> Fix:
    code = TRAINING
    if not is_training(trace):
        code = (
            "from torchao import quantization\n"
            "config = quantization.Float8DynamicActivationFloat8WeightConfig()\n"
            "quantization.quantize_(model, config)\n"
            "model = torch.compile(model)"
        )
    return Fix(
        "Try 8-bit floats for the large linear layers.",
        code,
        verify="In Operators, aten::_scaled_mm has taken the place of aten::mm.",
        caveats=(
            "Only with torch.compile, which fuses the scaling: alone it costs what is won.",
            "Results have 2 or 3 bits of mantissa: measure the model, not only the loss.",
        ),
    )


RULE = Rule(
    id="fp8-candidate",
    title="Large products run in 16 bits where 8 would be faster",
    category="precision",
    why="From compute capability 8.9 (NVIDIA's Ada and Hopper) and gfx942 (AMD's MI300) on, matrix "
    "units multiply 8-bit floats twice as fast as 16-bit types. Large linear layers win more by "
    "that than scaling costs.",
    detects="Products of linear layers in 16-bit types, all of whose sizes are `least_size` and "
    "more and fit; `least_share` of all kernels' time, on a device whose data sheet has 8-bit "
    "floats at least 1.5 times as fast.",
    silent=(
        "Programs that use 8-bit floats already.",
        "Small or odd products, attention and convolutions do not count.",
    ),
    saving="The products' time on the device, 1.2 to 1.8 times as fast; only where the host is "
    "early enough. It comes after all other claims on the same kernels.",
    fix=Fix(
        "Try 8-bit floats for the large linear layers.",
        TRAINING,
        verify="In Operators, aten::_scaled_mm has taken the place of aten::mm.",
    ),
    effort="day",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority=425,
    links=(
        "https://github.com/pytorch/ao/tree/main/torchao/float8",
        "https://docs.pytorch.org/ao/stable/",
    ),
    life_cycle="preview",
    origin="torchao's float8 training and its measured thresholds",
    culprit="multiplying in 16 bits",
)
