"""The device spends its time on copies from its memory to its memory."""

import re

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.ancestry import nearest_of
from stepscope.analyses.core.compile_events import compile_events
from stepscope.analyses.core.links import links
from stepscope.base.calibration import AVOIDABLE_COPIES
from stepscope.dialects import Kind
from stepscope.model.frames.name_masks import codes_and_names, name_mask
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time
from stepscope.rules.shared.kernel_time import Work

NONE = -1
COPYING = re.compile(
    r"^aten::(?:copy_|_foreach_copy_|clone|contiguous|reshape|flatten|_reshape_copy|_copy_from"
    r"|view_as_\w+_copy|lift_fresh_copy)$"
)
"""Operators that do nothing but copy, and their callers that copy as well."""
CONVERSION = re.compile(r"^aten::(?:_to_copy|to|_autocast_to_\w+)$")
OTHERS = re.compile(r"^torch\.distributed\.|^c10d::|^FSDP|^fsdp::|^Optimizer\.")
"""Callers whose copies other rules report."""
REORDERING = ("aten::contiguous", "aten::clone", "aten::reshape", "aten::flatten")


class Options(Thresholds):
    """The part of the device's work that copies may be."""

    least_share: float = option(
        0.05,
        "Fraction of the device's work in such copies from which they are reported.",
        origin="ours: models that were tuned have 0.1 to 4.7 % in real traces; TraceLens lists all",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report copies that only change the location, or the order, of a tensor's elements."""
    rows = kernel_time.rows_in_window(trace)
    copier = _copiers(trace)
    mask = (copier != NONE) & _stays_on_device(trace)
    work = kernel_time.work_of(trace, rows, mask, of_kernels=False)
    if work.share < options.least_share:
        return
    callers = _named_callers(trace, copier[work.rows])
    most = _most(trace, work, callers)
    finding = Finding(
        message="Copies within the device take "
        f"{kernel_time.time_and_fraction(trace, work, 'its work')}, most of them for {most}.",
        evidence=(
            facts.fraction("Of the device's work", work.share, "kernels"),
            facts.count("Copies in total", len(work.rows)),
        ),
        tables=(kernel_time.by_operator(trace, work, "Copies", callers),),
        fix=_fix(most, is_compiled=_is_compiled(trace, work)),
        subject=most,
    )
    yield kernel_time.result_of(
        trace, work, AVOIDABLE_COPIES, "The copies' own time, all of it at most.", finding
    )


def _stays_on_device(trace: Trace) -> NDArray[np.bool_]:
    """Return a mask of `device_events`: kernels, and copies that neither leave nor enter."""
    mask = (trace.device_events["kind"] == int(Kind.KERNEL)).to_numpy(copy=True)
    mask[trace.device_events["kind"].to_numpy() == int(Kind.COPY)] = (
        trace.copies["direction"] == "DtoD"
    ).to_numpy()
    return mask


def _copiers(trace: Trace) -> NDArray[np.int64]:
    """Return the outermost copying operator around each of `device_events`, or -1.

    Copies that change the type, and those of `OTHERS`, have none.
    """
    calls = trace.host_calls
    parent = calls["parent"].to_numpy()
    is_copying = name_mask(calls["name"], COPYING.search)
    owner = links(trace).owner_of_device_event
    copying_owner = np.where(np.append(is_copying, False)[owner], owner, NONE)
    is_owner = np.zeros(len(calls) + 1, dtype=bool)
    is_owner[copying_owner] = True
    rows = np.flatnonzero(is_owner[:-1])
    around = nearest_of(parent, rows, ~is_copying)
    is_other = np.append(
        name_mask(calls["name"], CONVERSION.search) | name_mask(calls["name"], OTHERS.search), False
    )
    excluded = is_other[around] | is_other[nearest_of(parent, rows, is_other[:-1])]
    outermost = rows.copy()
    while (climbing := parent[outermost] != around).any():
        outermost[climbing] = parent[outermost[climbing]]
    copier = np.full(len(calls) + 1, NONE, dtype=np.int64)
    copier[rows] = np.where(excluded, NONE, outermost)
    return np.asarray(copier[copying_owner])


def _named_callers(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the calls to be named: the operator around a plain copy, else the copy itself."""
    calls = trace.host_calls
    is_plain = name_mask(calls["name"], "aten::copy_".__eq__)
    above = calls["parent"].to_numpy()[rows]
    is_operator = np.append(calls["is_operator"].to_numpy(), False)[above]
    return np.where(is_plain[rows] & is_operator, above, rows)


def _most(trace: Trace, work: Work, callers: NDArray[np.int64]) -> str:
    """Return the name of the caller whose copies take longest."""
    codes, names = codes_and_names(trace.host_calls["name"], callers)
    duration_ns = trace.device_events["duration_ns"].to_numpy()[work.rows]
    return names[int(np.bincount(codes, weights=duration_ns).argmax())]


def _is_compiled(trace: Trace, work: Work) -> bool:
    """Return whether compiled code makes all of the copies."""
    owner = links(trace).owner_of_device_event[work.rows]
    return bool((compile_events(trace).region[owner] != NONE).all())


VERIFY = "In the next trace this rule lists fewer copies, and in Kernels they take less time."
REORDERED = Fix(
    "Keep reordered dimensions as views: many operators accept strides.",
    "scores = torch.einsum('bqhd,bkhd->bhqk', query, key)  # instead of\n"
    "# scores = query.transpose(1, 2).contiguous() @ key.permute(0, 2, 3, 1).contiguous()\n"
    "# and F.scaled_dot_product_attention, nn.functional.linear and torch.compile take\n"
    "# transposed tensors as they are",
    verify=VERIFY,
    caveats=(
        "A kernel that needs contiguous memory makes the copy itself.",
        "One copy of a tensor that is read many times may save more than it costs.",
    ),
)
FIXES = {
    "aten::repeat": Fix(
        "Expand instead of repeat: operators broadcast without a copy.",
        "mask = mask.expand(batch, -1, -1)  # instead of mask.repeat(batch, 1, 1)",
        verify=VERIFY,
        caveats=("An expanded tensor must not be written in place.",),
    ),
    "aten::repeat_interleave": Fix(
        "Broadcast the repeated dimension in the operator.",
        "F.scaled_dot_product_attention(query, key, value, enable_gqa=True)\n"
        "# instead of key.repeat_interleave(groups, dim=1)",
        verify=VERIFY,
        caveats=("enable_gqa needs torch 2.5 or later.",),
    ),
    "aten::constant_pad_nd": Fix(
        "Allocate the tensor padded, and fill it, instead of padding it in every step.",
        "padded = torch.zeros(padded_shape, device=x.device, dtype=x.dtype)  # once\n"
        "padded[..., : x.shape[-1]] = x  # or choose sizes that need no padding",
        verify=VERIFY,
    ),
    "aten::_foreach_copy_": Fix(
        "Keep the inputs of a graph at fixed addresses, so that none is copied.",
        "torch._dynamo.mark_static_address(inputs)  # before the compiled call\n"
        "# with your own CUDA graph: write the batch into its static input directly",
        verify=VERIFY,
        caveats=("The tensor's memory must then be the same in every step.",),
    ),
}


def _fix(operator: str, *, is_compiled: bool) -> Fix:
    """Return the fix for copies by the operator that makes most of them."""
    if operator in FIXES:
        return FIXES[operator]
    if operator in REORDERING:
        return REORDERED
    if is_compiled:
        return FIXES["aten::_foreach_copy_"]
    return Fix(
        f"Let {operator} work on the tensor in place.",
        "cache[:, position] = value  # write new values only, instead of copying old ones\n"
        "torch.mm(a, b, out=buffer)  # compute into the buffer, instead of copying into it",
        verify=VERIFY,
        caveats=(f"Where {operator} comes from a library, look for a setting of the library.",),
    )


RULE = Rule(
    id="copy-heavy",
    title="Copies within the device take its time",
    passed="Copies within the device take little time",
    category="operators",
    why="A copy within the device's memory computes nothing: it reads and writes every byte once, "
    "which takes as long as a whole pointwise operator.",
    detects="Kernels and copies launched by `copy_`, `clone`, `contiguous`, `reshape` and the "
    "like, as a fraction of all the device's work. It reports from `least_share` on.",
    silent=(
        "Copies that change the type count as casts, not here.",
        "Copies of gradients into buckets, of collectives and of the optimizer have separate "
        "rules.",
        "Where the host is the limit it is ruled out.",
    ),
    saving="The times in which the device does nothing but copy, where the device is the limit: 30 "
    "% at least, since some copies are needed; all at most.",
    fix=REORDERED,
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority="device work",
    after=("dtype-cast-overhead",),
    links=("tensor_view.html", "/tutorials/recipes/recipes/tuning_guide.html"),
    origin="TraceLens, copies within the device; xprof, data formatting",
    culprit="copying within the device",
)
