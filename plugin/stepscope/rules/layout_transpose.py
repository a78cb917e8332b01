"""Convolutions reorder their tensors before they compute."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.core.links import links
from stepscope.analyses.operators.product_shapes import shape
from stepscope.base.calibration import LAYOUT_CONVERSIONS
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time
from stepscope.rules.shared.kernel_time import Work

VOLUME_DIMENSIONS = 5
"""Of the input of a convolution in three dimensions: batch, channels, and those three."""


class Options(Thresholds):
    """The part of the kernels' time that conversions may take."""

    least_share: float = option(
        0.02,
        "Fraction of all kernels' time in conversions from which they are reported.",
        origin="ours: one conversion of a network's first input takes up to 1.9 % in real traces "
        "of inference",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report kernels that only turn channels-first tensors into channels-last ones, or back."""
    rows = kernel_time.rows_in_window(trace)
    is_conversion = kernel_time.kernels_named(trace, trace.dialect.layout_kernel.search)
    work = kernel_time.work_of(trace, rows, is_conversion)
    if work.share < options.least_share:
        return
    layout = "torch.channels_last_3d" if _are_volumes(trace, work) else "torch.channels_last"
    finding = Finding(
        message="Conversions between channels-first and channels-last take "
        f"{kernel_time.time_and_fraction(trace, work)}.",
        evidence=(
            facts.fraction("Of the kernels' time", work.share, "kernels"),
            facts.count("Conversions in total", len(work.rows)),
        ),
        tables=(kernel_time.by_operator(trace, work, "Conversions"),),
        fix=_fix(layout, *_setting(trace)),
    )
    yield kernel_time.result_of(
        trace, work, LAYOUT_CONVERSIONS, "The conversions' own time, all of it at most.", finding
    )


def _fix(layout: str, *caveats: str) -> Fix:
    return Fix(
        "Keep the model and its inputs in the memory format in which convolutions compute.",
        f"model = model.to(memory_format={layout})\n"
        f"inputs = inputs.to(device, memory_format={layout})",
        verify="The conversions are gone from Kernels, except those of the first input.",
        caveats=(
            *caveats,
            "An operator without channels-last support returns its result channels-first: the "
            "table names the operator of the conversions that remain.",
            "It helps where products run on matrix units (float16, bfloat16, tf32); plain float32 "
            "convolutions may be slower in this format.",
        ),
    )


def _setting(trace: Trace) -> Iterator[str]:
    if variable := trace.dialect.environment.get("channels_last"):
        yield f"Set {variable} as well: without it, older versions of torch convert all the same."


def _are_volumes(trace: Trace, work: Work) -> bool:
    """Return whether most conversions are for convolutions in three dimensions; no if unknown."""
    dims = trace.host_calls["input_dims"].cat
    is_volume = [len(shape(str(text), 0)) == VOLUME_DIMENSIONS for text in dims.categories]
    owner = links(trace).owner_of_device_event[work.rows]
    codes = np.append(dims.codes.to_numpy(), -1)[owner]
    return bool(np.mean(np.array([*is_volume, False])[codes]) > 0.5)


RULE = Rule(
    id="layout-transpose",
    title="Convolutions convert between channels-first and channels-last",
    passed="Convolutions need little or no layout conversion",
    category="operators",
    why="Matrix units convolve channels-last tensors. Where the model keeps channels first, the "
    "library reorders each convolution's input, weights and result, which moves all their bytes "
    "and computes nothing.",
    detects="Kernels of the convolution libraries that only reorder, as a fraction of all kernels' "
    "time. It reports from `least_share` on.",
    silent=(
        "A few conversions of a network's first input stay below the threshold.",
        "Where the host is the limit, or the device hardly works, it is ruled out: a shorter "
        "kernel would only lengthen the gap behind it.",
    ),
    saving="The times in which the device does nothing but convert, where the device is the limit: "
    "70 % of them at least, all at most. That convolutions themselves may become faster is not "
    "counted.",
    fix=_fix("torch.channels_last"),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "steps"}),
    priority="device work",
    after=("tensor-core-misaligned",),
    links=("/tutorials/intermediate/memory_format_tutorial.html",),
    origin="PyTorch tuning guide, channels_last; xprof, layout conversions",
    culprit="converting between tensor layouts",
)
