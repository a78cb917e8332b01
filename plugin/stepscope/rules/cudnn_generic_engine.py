"""Convolutions run on the library's engines for any shape."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.complete_steps import complete_steps
from stepscope.analyses.core.kernel_names import short
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.operator_arguments import argument
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import CONVOLUTION_ENGINES
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Evidence, Fix
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import facts, kernel_time, recorded_facts
from stepscope.rules.shared.kernel_time import Work

NAMED_COUNT = 3
CONVOLUTION = "aten::_convolution"
BENCHMARK = 9
"""The place of `benchmark` among its arguments (aten/src/ATen/native/native_functions.yaml)."""
RECORD_ARGUMENTS = "torch.profiler.profile(..., record_shapes=True)  # with torch 2.1 or later"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How much such convolutions take, and how often their shapes come again."""

    least_share: float = option(
        0.10,
        "Share of all kernels' time in such convolutions from which it speaks.",
        origin="ours: below that, another engine wins less than 3 %",
    )
    least_static_share: float = option(
        0.90,
        "Share of these convolutions whose shapes come in every step: with less, trying the "
        "engines of each new shape would cost more than it wins.",
        origin="ours: a last, smaller batch of an epoch is no reason against it",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report convolutions that a library which may measure its engines would perhaps do faster.

    Raises:
        MissingDataError: it is not known whether the library may.
    """
    rows = kernel_time.rows_in_window(trace)
    is_generic = kernel_time.kernels_named(trace, trace.dialect.generic_convolution.search)
    found = kernel_time.work_of(trace, rows, is_generic)
    if found.share < options.least_share:
        return
    message = (
        f"Convolutions on engines for any shape ({_names(trace, found)}) take "
        f"{kernel_time.time_and_fraction(trace, found)}."
    )
    if _is_measured(trace):
        yield RuledOut(message=f"{message} cudnn.benchmark is on: they were measured as fastest.")
        return
    static = _static_share(trace, found)
    if static >= options.least_static_share:
        yield kernel_time.result(trace, _finding(trace, found, message, static))


def _finding(trace: Trace, found: Work, message: str, static: float) -> Finding:
    return Finding(
        severity="info",
        confidence="medium",
        message=message,
        evidence=(
            facts.fraction("Of the kernels' time", found.share, "kernels"),
            facts.code("torch.backends.cudnn.benchmark", "False"),
            facts.fraction("Shapes that come in every step", static),
            *_deterministic(trace),
        ),
        tables=(kernel_time.by_operator(trace, found, "Convolutions"),),
        events=kernel_time.longest(trace, found),
        locations=kernel_time.lines(trace, found),
        claims=(
            kernel_time.claim(
                trace,
                found,
                CONVOLUTION_ENGINES,
                "Another engine may be no faster, or half as fast again.",
            ),
        ),
    )


def _deterministic(trace: Trace) -> Iterator[Evidence]:
    """Yield that only engines with the same result every time may run, where that is so."""
    if recorded_settings(trace).cudnn.deterministic:
        yield recorded_facts.evidence("torch.backends.cudnn.deterministic", "True", "code")


def _is_measured(trace: Trace) -> bool:
    """Tell whether `cudnn.benchmark` was on: torch hands it to each convolution, or it is recorded.

    Raises:
        MissingDataError: the convolutions' arguments were not recorded.
    """
    calls = trace.host_calls
    chosen = name_mask(calls["name"], CONVOLUTION.__eq__)
    texts = calls["concrete_inputs"][chosen].dropna().unique()
    flags = {argument(str(text), BENCHMARK) for text in texts} & {"True", "False"}
    if not flags and (recorded := recorded_settings(trace).cudnn.benchmark) is not None:
        return recorded
    if not flags:
        msg = "whether the library may measure its engines (cudnn.benchmark) was not recorded"
        raise MissingDataError(msg, RECORD_ARGUMENTS)
    return "True" in flags


def _names(trace: Trace, found: Work) -> str:
    """Return the kernels' names, those that take longest first."""
    events = trace.device_events.iloc[found.rows]
    total = events.groupby(events["name"].map(lambda name: short(str(name))), observed=True)
    longest = total["duration_ns"].sum().sort_values(ascending=False, kind="stable")
    return ", ".join(str(name) for name in longest.index[:NAMED_COUNT])


def _static_share(trace: Trace, found: Work) -> float:
    """Return the share of these convolutions whose shapes come in every step; 1 without steps."""
    starts = complete_steps(trace).steps["start_ns"].to_numpy()
    owner = np.unique(links(trace).owner_of_device_event[found.rows])
    calls = trace.host_calls.iloc[owner[owner >= 0]]
    shape = calls["input_dims"].cat.codes.to_numpy().astype(np.int64)
    step = np.searchsorted(starts, calls["start_ns"].to_numpy(), side="right") - 1
    known = (shape >= 0) & (step >= 0)
    if not known.any():
        return 1.0
    shape, step = shape[known], step[known]
    pairs = np.unique(shape * len(starts) + step) // len(starts)
    in_steps = np.bincount(pairs, minlength=int(shape.max()) + 1)
    return float(np.mean(in_steps[shape] == len(starts)))


RULE = Rule(
    id="cudnn-generic-engine",
    title="Convolutions run on engines made for any shape",
    category="operators",
    why="A convolution library picks an algorithm by a rule of thumb, unless it is allowed to try. "
    "The engines seen here fit every shape; for shapes that stay the same, one that was tried and "
    "measured is often faster.",
    detects="Kernels by the names of such engines, as a share of all kernels' time. It speaks from "
    "`least_share` on, if `torch.backends.cudnn.benchmark` was off, which the arguments of "
    "`aten::_convolution` or the recorded settings tell, and if at least `least_static_share` of "
    "these convolutions have shapes that come in every step.",
    silent=(
        "`cudnn.benchmark` was on: then these engines were measured as the fastest, and it is "
        "rejected.",
        "Shapes change from step to step: each new one would be tried, which takes longer than it "
        "wins.",
        "Where the host is the limit it is rejected.",
    ),
    saving="The engines' own time where the device is the limit: nothing at least, since the one "
    "taken may be the fastest; a third at most, were another half as fast again.",
    fix=Fix(
        "Let the library measure its algorithms once for each shape.",
        "torch.backends.cudnn.benchmark = True  # before the first step",
        verify="After two warm-up steps, in which it tries, other names stand in Kernels and "
        "convolutions take less time.",
        caveats=(
            "It helps only where shapes stay the same: each new one is tried.",
            "Results may differ in the last digits from run to run, and more memory may be taken.",
        ),
    ),
    effort="flag",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "steps"}),
    priority=400,
    links=(
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-cudnn-auto-tuner",
    ),
    life_cycle="preview",
    origin="PyTorch tuning guide, cuDNN auto-tuner; the names are from real traces",
    culprit="convolving on engines for any shape",
)
