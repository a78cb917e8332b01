"""Convolutions add a bias that the batch norm behind them takes away."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.biased_convolutions import bias_work, biased_convolutions
from stepscope.analyses.operators.operator_arguments import shape
from stepscope.base.calibration import ALL_OF_IT
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import EvidenceColumn, EvidenceTable, Fix, Link, SourceLine
from stepscope.base.formatting import count
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, option
from stepscope.rules.shared import facts, kernel_time, phrases

MOST_ROWS = 10
NORM = "aten::batch_norm"
Layer = tuple[str, tuple[int, ...], tuple[int, ...]]
"""An operator, the shape of its input, and that of its weight."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """From how many on it is a pattern."""

    least_a_step: float = option(
        1.0,
        "Biased convolutions before a batch norm a step from which it speaks.",
        origin="torch's Conv2dBiasFollowedByBatchNorm2dPattern: any",
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report convolutions with a bias whose result a batch norm takes, in training.

    Raises:
        MissingDataError: arguments were not recorded.
        NotApplicableError: nothing is normalised over batches.
    """
    if not name_mask(trace.host_calls["name"], NORM.__eq__).any():
        msg = "no batch norm was recorded outside compiled code"
        raise NotApplicableError(msg)
    requirements.shapes(trace)
    found, within = biased_convolutions(trace), window(trace)
    followed, biased = _in_window(trace, found.followed), _in_window(trace, found.biased)
    if len(biased) < options.least_a_step * max(1, within.step_count):
        return
    layers = _layers(trace, biased)
    many = count(within.per_step(len(followed)), "convolution")
    yield Finding(
        severity="info",
        message=f"{many} {phrases.per_step(trace)} right before a batch norm, "
        f"{within.per_step(len(biased)):,} of them with a bias, which the norm subtracts again.",
        evidence=(
            facts.count("With a bias", len(biased), Link(view="operators", search="aten::conv")),
            facts.count("Convolutions before a batch norm", len(followed)),
        ),
        tables=(_table(layers),),
        events=tuple(event_references.host_call(trace, row) for row in biased[:MOST_ROWS].tolist()),
        locations=_lines(trace, biased),
        claims=_claims(trace, biased),
        fix=_fix(layers),
    )


def _in_window(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    start, within = trace.host_calls["start_ns"].to_numpy()[rows], window(trace)
    return rows[(start >= within.start_ns) & (start < within.end_ns)]


def _layers(trace: Trace, rows: NDArray[np.int64]) -> Counter[Layer]:
    """Return which convolutions these are, and how often each is called."""
    calls = trace.host_calls.iloc[rows]
    shapes = Counter(zip(calls["name"].astype(str), calls["input_dims"].astype(str), strict=True))
    found: Counter[Layer] = Counter()
    for (name, dims), times in shapes.items():
        found[name, shape(dims, 0), shape(dims, 1)] += times
    return found


def _table(layers: Counter[Layer]) -> EvidenceTable:
    columns = (("Operator", "text"), ("Input", "text"), ("Weight", "text"), ("Calls", "count"))
    return EvidenceTable(
        label="Convolutions with a bias before a batch norm",
        columns=tuple(EvidenceColumn(label=text, unit=unit) for text, unit in columns),  # type: ignore[arg-type]
        rows=tuple(
            facts.row(
                name,
                str(list(given)),
                str(list(weight)),
                times,
                link=Link(view="operators", search=name),
            )
            for (name, given, weight), times in layers.most_common(MOST_ROWS)
        ),
    )


def _lines(trace: Trace, rows: NDArray[np.int64]) -> tuple[SourceLine, ...]:
    texts = (event_references.line_of_host_call(trace, row) for row in rows[:MOST_ROWS].tolist())
    return event_references.source_lines(filter(None, texts))


def _claims(trace: Trace, rows: NDArray[np.int64]) -> tuple[Claim, ...]:
    if main_device(trace) is None:
        return ()
    work = kernel_time.work_of(
        trace, bias_work(trace, rows), np.ones(len(trace.device_events), dtype=bool)
    )
    method = "The kernels that add the biases and sum up their gradients: all of them vanish."
    return (kernel_time.claim(trace, work, ALL_OF_IT, method),)


def _fix(layers: Counter[Layer]) -> Fix:
    (layer, _), *_ = layers.most_common(1)
    return _fix_by(_code(*layer))


def _fix_by(code: str) -> Fix:
    return Fix(
        "Leave the bias of convolutions before a batch norm out; the norm has its own.",
        code,
        verify="aten::add_ below aten::_convolution is gone, and this rule is silent.",
        caveats=(
            "For an old checkpoint subtract each bias from the norm's running_mean, then drop it.",
        ),
    )


def _code(name: str, given: tuple[int, ...], weight: tuple[int, ...]) -> str:
    """Return the layer that is called most, without its bias."""
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
    title="Convolutions add a bias that the batch norm behind them removes",
    category="operators",
    why="A batch norm in training subtracts each channel's mean, and the bias with it: the bias is "
    "added, and its gradient summed up, for nothing.",
    detects="Convolutions with a bias among their recorded arguments whose next operator beside "
    "them is `aten::batch_norm` in training mode. It speaks from `least_a_step` on.",
    silent=(
        "In evaluation the norm subtracts what it learned, and the bias counts; there the two can "
        "be fused into one convolution.",
        "Compiled code shows no such operators.",
    ),
    saving="On a device, all the time of the kernels that add the biases and sum up their "
    "gradients. On a CPU nothing is claimed: there the library adds the bias while it convolves.",
    fix=_fix_by(_code("aten::conv2d", (), ())),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority=290,
    links=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html"
        "#disable-bias-for-convolutions-directly-followed-by-a-batch-norm",
    ),
    origin="torch.profiler's Conv2dBiasFollowedByBatchNorm2dPattern",
    culprit="adding biases before batch norms",
)
