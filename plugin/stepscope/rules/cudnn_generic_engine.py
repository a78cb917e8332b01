"""Convolutions run on the library's engines for any shape."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import complete_steps
from stepscope.analyses.operators.product_shapes import argument
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import CONVOLUTION_ENGINES
from stepscope.base.findings import Evidence
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time, recorded_facts
from stepscope.rules.shared.kernel_time import Work

NAMED_COUNT = 3
CONVOLUTION = "aten::_convolution"
BENCHMARK = 9
"""The index of `benchmark` in its arguments (aten/src/ATen/native/native_functions.yaml)."""
RECORD_ARGUMENTS = "torch.profiler.profile(..., record_shapes=True)  # with torch 2.1 or later"


class Options(Thresholds):
    """The time of such convolutions, and how often their shapes recur."""

    least_share: float = option(
        0.10,
        "Fraction of all kernels' time in such convolutions from which they are reported.",
        origin="ours: below that, another engine saves less than 3 %",
    )
    least_static_share: float = option(
        0.90,
        "Fraction of these convolutions whose shapes recur in every step: with less, trying the "
        "engines for each new shape would cost more than it saves.",
        origin="ours: a last, smaller batch of an epoch is no reason against it",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report convolutions that the library might do faster if it measured its engines.

    Raises:
        MissingDataError: whether the library measures them was not recorded.
    """
    rows = kernel_time.rows_in_window(trace)
    is_generic = kernel_time.kernels_named(trace, trace.dialect.generic_convolution.search)
    work = kernel_time.work_of(trace, rows, is_generic)
    if work.share < options.least_share:
        return
    message = (
        f"Convolutions on engines for any shape ({_names(trace, work)}) take "
        f"{kernel_time.time_and_fraction(trace, work)}."
    )
    if _is_measured(trace):
        yield RuledOut(message=f"{message} cudnn.benchmark is on: they were measured as fastest.")
        return
    static = _static_share(trace, work)
    if static < options.least_static_share:
        return
    finding = Finding(
        severity="info",
        confidence="medium",
        message=message,
        evidence=(
            facts.fraction("Of the kernels' time", work.share, "kernels"),
            facts.code("torch.backends.cudnn.benchmark", "False"),
            facts.fraction("Shapes that recur in every step", static),
            *_deterministic(trace),
        ),
        tables=(kernel_time.by_operator(trace, work, "Convolutions"),),
    )
    yield kernel_time.result_of(
        trace,
        work,
        CONVOLUTION_ENGINES,
        "Another engine may be no faster, or half as fast again.",
        finding,
    )


def _deterministic(trace: Trace) -> Iterator[Evidence]:
    """Yield the setting that allows only engines with reproducible results, where it is on."""
    if recorded_settings(trace).cudnn.deterministic:
        yield recorded_facts.evidence("torch.backends.cudnn.deterministic", "True", "code")


def _is_measured(trace: Trace) -> bool:
    """Return whether `cudnn.benchmark` was on, by the convolutions' arguments or the settings.

    Raises:
        MissingDataError: neither was recorded.
    """
    calls = trace.host_calls
    is_convolution = name_mask(calls["name"], CONVOLUTION.__eq__)
    texts = calls["concrete_inputs"][is_convolution].dropna().unique()
    flags = {argument(str(text), BENCHMARK) for text in texts} & {"True", "False"}
    if not flags and (recorded := recorded_settings(trace).cudnn.benchmark) is not None:
        return recorded
    requirements.conclusive_if(
        flags,
        "whether the library may measure its engines (cudnn.benchmark) was not recorded",
        RECORD_ARGUMENTS,
    )
    return "True" in flags


def _names(trace: Trace, work: Work) -> str:
    """Return the kernels' names, the longest in total first."""
    events = trace.device_events.iloc[work.rows]
    total = events.groupby(events["name"].map(lambda name: short(str(name))), observed=True)
    longest = total["duration_ns"].sum().sort_values(ascending=False, kind="stable")
    return ", ".join(str(name) for name in longest.index[:NAMED_COUNT])


def _static_share(trace: Trace, work: Work) -> float:
    """Return the fraction of convolutions whose shapes recur in every step; 1 without steps."""
    starts = complete_steps(trace).steps["start_ns"].to_numpy()
    owner = np.unique(links(trace).owner_of_device_event[work.rows])
    calls = trace.host_calls.iloc[owner[owner >= 0]]
    shape = calls["input_dims"].cat.codes.to_numpy().astype(np.int64)
    step = np.searchsorted(starts, calls["start_ns"].to_numpy(), side="right") - 1
    in_step = (shape >= 0) & (step >= 0)
    if not in_step.any():
        return 1.0
    shape, step = shape[in_step], step[in_step]
    pairs = np.unique(shape * len(starts) + step) // len(starts)
    step_count = np.bincount(pairs, minlength=int(shape.max()) + 1)
    return float(np.mean(step_count[shape] == len(starts)))


RULE = Rule(
    id="cudnn-generic-engine",
    title="Convolutions run on engines made for any shape",
    passed="Convolutions on engines made for any shape take little time",
    category="operators",
    why="A convolution library chooses an algorithm by a rule of thumb, unless it may try them. "
    "These engines fit every shape; for constant shapes, an engine that was measured is often "
    "faster.",
    detects="Kernels by the names of such engines, as a fraction of all kernels' time. It reports "
    "from `least_share` on, if `torch.backends.cudnn.benchmark` was off, by the arguments of "
    "`aten::_convolution` or the recorded settings, and if at least `least_static_share` of these "
    "convolutions have shapes that recur in every step.",
    silent=(
        "`cudnn.benchmark` was on: these engines were measured as the fastest, and it is ruled "
        "out.",
        "Shapes change from step to step: each new shape would be tried, which costs more than it "
        "saves.",
        "Where the host is the limit it is ruled out.",
    ),
    saving="The engines' own time where the device is the limit: at least nothing, since the "
    "current engine may be the fastest; at most a third, if another is half as fast again.",
    fix=Fix(
        "Let the library measure its algorithms once per shape.",
        "torch.backends.cudnn.benchmark = True  # before the first step",
        verify="After two warm-up steps, in which it tries, Kernels shows other names and "
        "convolutions take less time.",
        caveats=(
            "It helps only where shapes stay the same: each new shape is tried.",
            "Results may differ in the last digits from run to run, and it may need more memory.",
        ),
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "steps"}),
    priority="device work",
    after=("gather-scatter-heavy",),
    links=("/tutorials/recipes/recipes/tuning_guide.html#enable-cudnn-auto-tuner",),
    life_cycle="preview",
    origin="PyTorch tuning guide, cuDNN auto-tuner; the names are from real traces",
    culprit="convolving on engines for any shape",
)
