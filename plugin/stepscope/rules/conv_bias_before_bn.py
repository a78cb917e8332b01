"""Convolutions add a bias that the next batch norm subtracts."""

from collections import Counter

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.biased_convolutions import bias_kernels, biased_convolutions
from stepscope.analyses.operators.product_shapes import shape
from stepscope.base.calibration import ALL_OF_IT
from stepscope.base.findings import Link
from stepscope.base.formatting import count
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time, phrases

MOST_ROWS = 10
NORM = "aten::batch_norm"
Layer = tuple[str, tuple[int, ...], tuple[int, ...]]
"""An operator, the shape of its input, and that of its weight."""


class Options(Thresholds):
    """Thresholds from which biased convolutions are a pattern."""

    least_a_step: float = option(
        1.0,
        "Biased convolutions before a batch norm per step from which they are reported.",
        origin="torch's Conv2dBiasFollowedByBatchNorm2dPattern: any",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report convolutions with a bias before a batch norm, in training.

    Raises:
        MissingDataError: arguments were not recorded.
        NotApplicableError: nothing is normalised over batches.
    """
    has_norm = name_mask(trace.host_calls["name"], NORM.__eq__).any()
    requirements.applies_if(has_norm, "no batch norm was recorded outside compiled code")
    requirements.shapes(trace)
    convolutions, span = biased_convolutions(trace), window(trace)
    followed = _in_window(trace, convolutions.followed)
    biased = _in_window(trace, convolutions.biased)
    if len(biased) < options.least_a_step * max(1, span.step_count):
        return
    layers = _layers(trace, biased)
    yield Finding(
        severity="info",
        message=f"{count(span.per_step(len(followed)), 'convolution')} {phrases.per_step(trace)} "
        f"right before a batch norm, {span.per_step(len(biased)):,} of them with a bias, which the "
        "norm subtracts again.",
        evidence=(
            facts.count(
                "With a bias in total", len(biased), Link(view="operators", search="aten::conv")
            ),
            facts.count("Convolutions before a batch norm in total", len(followed)),
        ),
        tables=(
            facts.table(
                "Convolutions with a bias before a batch norm",
                {"Operator": "text", "Input": "text", "Weight": "text", "Calls": "count"},
                (
                    (name, str(list(given)), str(list(weight)), number)
                    for (name, given, weight), number in layers.most_common(MOST_ROWS)
                ),
                "operators",
            ),
        ),
        events=tuple(event_references.host_call(trace, row) for row in biased[:MOST_ROWS].tolist()),
        locations=event_references.source_lines(
            event_references.line_of_host_call(trace, row) for row in biased[:MOST_ROWS].tolist()
        ),
        claims=_claims(trace, biased),
        fix=replace(RULE.fix, code=_code(*layers.most_common(1)[0][0])),
    )


def _in_window(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    start, span = trace.host_calls["start_ns"].to_numpy()[rows], window(trace)
    return rows[(start >= span.start_ns) & (start < span.end_ns)]


def _layers(trace: Trace, rows: NDArray[np.int64]) -> Counter[Layer]:
    """Return the convolutions and their numbers of calls."""
    calls = trace.host_calls.iloc[rows]
    shapes = Counter(zip(calls["name"].astype(str), calls["input_dims"].astype(str), strict=True))
    layers: Counter[Layer] = Counter()
    for (name, dims), number in shapes.items():
        layers[name, shape(dims, 0), shape(dims, 1)] += number
    return layers


def _claims(trace: Trace, rows: NDArray[np.int64]) -> tuple[Claim, ...]:
    if main_device(trace) is None:
        return ()
    everything = np.ones(len(trace.device_events), dtype=bool)
    work = kernel_time.work_of(trace, bias_kernels(trace, rows), everything)
    method = "The kernels that add the biases and sum their gradients: all of them are saved."
    return (kernel_time.claim(trace, work, ALL_OF_IT, method),)


def _code(name: str, given: tuple[int, ...], weight: tuple[int, ...]) -> str:
    """Return the layer with most calls, without its bias."""
    if "transpose" in name or len(given) < 2 or len(weight) < 3 or not weight[1]:
        return "nn.Conv2d(in_channels, out_channels, kernel_size, bias=False)  # then the norm"
    sizes = weight[2:]
    kernel = sizes[0] if len(set(sizes)) == 1 else sizes
    groups = given[1] // weight[1]
    grouped = f", groups={groups}" if groups > 1 else ""
    return (
        f"nn.Conv{len(sizes)}d({given[1]}, {weight[0]}, kernel_size={kernel}{grouped}, bias=False)"
        "  # then the norm"
    )


RULE = Rule(
    id="conv-bias-before-bn",
    title="Convolutions add a bias that the next batch norm removes",
    passed="Few or no convolutions add a bias before a batch norm",
    category="operators",
    why="A batch norm in training subtracts each channel's mean, and the bias with it: the "
    "additions of the bias and the sums of its gradient have no effect.",
    detects="Convolutions with a bias among their recorded arguments whose next operator on the "
    "same level is `aten::batch_norm` in training mode. It reports from `least_a_step` on.",
    silent=(
        "In evaluation the norm subtracts its learned mean, and the bias counts; there the two can "
        "be fused into one convolution.",
        "Compiled code shows no such operators.",
    ),
    saving="On a device, all the time of the kernels that add the biases and sum their gradients. "
    "On a CPU nothing is claimed: there the library adds the bias while it convolves.",
    fix=Fix(
        "Remove the bias of convolutions before a batch norm: the norm has a bias.",
        _code("aten::conv2d", (), ()),
        verify="aten::add_ below aten::_convolution is gone, and this check passes.",
        caveats=(
            "For an old checkpoint subtract each bias from the norm's running_mean, then drop it.",
        ),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    after=("python-loop-indexing",),
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html"
        "#disable-bias-for-convolutions-directly-followed-by-a-batch-norm",
    ),
    origin="torch.profiler's Conv2dBiasFollowedByBatchNorm2dPattern",
    culprit="adding biases before batch norms",
)
