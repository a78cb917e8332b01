"""Large products run in 16 bits on a device that multiplies 8-bit floats faster."""

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core.device_specs import peak_ratio
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.operators.product_kernels import ProductKernels, product_kernels
from stepscope.analyses.operators.product_shapes import distinct, operands
from stepscope.base.calibration import FLOAT8_PRODUCTS
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Link
from stepscope.base.formatting import share
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence

SIXTEEN_BITS = ("float16", "bfloat16")
EIGHT_BITS = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
LEAST_RATIO = 1.5
"""The least speed-up of 8-bit floats by the device's data sheet."""
MULTIPLE = 16
"""Sizes must be multiples of it (`torch._scaled_mm`)."""
MATRICES = frozenset({"aten::mm", "aten::addmm", "aten::_addmm_activation"})


class Options(Thresholds):
    """Thresholds from which large products are worth reporting."""

    least_share: float = option(
        0.40,
        "Fraction of all kernels' time in large products in 16 bits.",
        origin="ours: below that a change that touches every layer saves little",
    )
    least_size: int = option(
        2048,
        "The smallest of a large product's three sizes.",
        origin="torchao's float8: from about there on products save more than converting costs",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report large products of linear layers in 16 bits."""
    products = product_kernels(trace)
    ratio = peak_ratio(trace, "float8", "bfloat16")
    if ratio is None or ratio < LEAST_RATIO:
        msg = "no data sheet says that this device multiplies 8-bit floats faster"
        raise NotApplicableError(msg)
    large = products.of_type(*SIXTEEN_BITS) & _are_large(trace, products, options.least_size)
    work = product_evidence.work(products, large)
    if not large.any() or work.share < options.least_share or products.of_type(*EIGHT_BITS).any():
        return
    finding = Finding(
        severity="info",
        confidence="low",
        message=f"Large matrix products in 16 bits take {phrases.time(trace, work.time_ns)} "
        f"({share(work.share)} of the kernels' time); this device's peak in 8-bit floats is "
        f"{ratio:.2g} times as high.",
        evidence=(
            facts.fraction(
                "Large products in 16 bits", work.share, Link(view="operators", group="shape")
            ),
            facts.count("Peak in 8 bits over 16", ratio),
            *product_evidence.limit(trace),
        ),
        tables=product_evidence.tables(trace, products, large),
        fix=RULE.fix if is_training(trace) else replace(RULE.fix, code=INFERENCE),
    )
    yield kernel_time.result_of(
        trace,
        work,
        FLOAT8_PRODUCTS,
        f"In 8-bit floats {product_evidence.times(FLOAT8_PRODUCTS)} times as fast, with "
        "scaling and converting.",
        finding,
    )


def _are_large(trace: Trace, products: ProductKernels, least: int) -> NDArray[np.bool_]:
    """Return a mask of kernels of products of matrices all of whose sizes are large and fit."""
    group, texts = distinct(trace, products.calls)
    return np.array([_is_large(*text, least) for text in texts], dtype=bool)[group]


def _is_large(name: str, dims: str, least: int) -> bool:
    sizes = operands(name, dims) if name in MATRICES else None
    if sizes is None:
        return False
    (m, k), (_, n) = sizes
    return min(m, k, n) >= least and not (k % MULTIPLE or n % MULTIPLE)


INFERENCE = """\
from torchao import quantization
config = quantization.Float8DynamicActivationFloat8WeightConfig()
quantization.quantize_(model, config)
model = torch.compile(model)"""
RULE = Rule(
    id="fp8-candidate",
    title="Large products run in 16 bits where 8 would be faster",
    passed="No large 16-bit products would gain from 8 bits",
    category="precision",
    why="From compute capability 8.9 (NVIDIA's Ada and Hopper) and gfx942 (AMD's MI300) on, matrix "
    "units multiply 8-bit floats twice as fast as 16-bit types. For large linear layers that saves "
    "more than scaling costs.",
    detects="Products of linear layers in 16-bit types, all of whose sizes are `least_size` and "
    "more and fit; `least_share` of all kernels' time, on a device whose data sheet has 8-bit "
    "floats at least 1.5 times as fast.",
    silent=(
        "Programs that use 8-bit floats already.",
        "Small or odd products, attention and convolutions do not count.",
    ),
    saving="The products' time on the device, 1.2 to 1.8 times as fast; only where the host "
    "launches early enough. It comes after all other claims on the same kernels.",
    fix=Fix(
        "Try 8-bit floats for the large linear layers.",
        "from torchao.float8 import convert_to_float8_training\n"
        "convert_to_float8_training(model)   # before torch.compile, and compile is needed",
        verify="In Operators, aten::_scaled_mm replaces aten::mm.",
        caveats=(
            "Use torch.compile, which fuses the scaling: unfused it costs as much as it saves.",
            "Results have 2 or 3 bits of mantissa: measure the model, not only the loss.",
        ),
    ),
    effort="day",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority="device work",
    after=("cpu-bfloat16",),
    links=(
        "https://github.com/pytorch/ao/tree/main/torchao/float8",
        "https://docs.pytorch.org/ao/stable/",
    ),
    life_cycle="preview",
    origin="torchao's float8 training and its measured thresholds",
    culprit="multiplying in 16 bits",
)
