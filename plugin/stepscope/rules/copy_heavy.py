"""The device spends its time on copies from its memory to its memory."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.ancestry import nearest_of
from stepscope.analyses.core.compile_events import compile_events
from stepscope.analyses.core.links import links
from stepscope.base.calibration import AVOIDABLE_COPIES
from stepscope.dialects import Kind
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuleResult, option
from stepscope.rules.shared import copy_fixes, facts, kernel_time
from stepscope.rules.shared.kernel_time import Work

NONE = -1
COPYING = re.compile(
    r"^aten::(?:copy_|_foreach_copy_|clone|contiguous|reshape|flatten|_reshape_copy|_copy_from"
    r"|view_as_\w+_copy|lift_fresh_copy)$"
)
"""Operators that do nothing but copy, and those that they are asked by."""
CONVERSION = re.compile(r"^aten::(?:_to_copy|to|_autocast_to_\w+)$")
OTHERS = re.compile(r"^torch\.distributed\.|^c10d::|^FSDP|^fsdp::|^Optimizer\.")
"""Who copies for a reason of its own, which other rules speak of."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """How much of the device's work copies may be."""

    least_share: float = option(
        0.05,
        "Share of the device's work in such copies from which it speaks.",
        origin="ours: models that were tuned have 0.1 to 4.7 % in real traces; TraceLens lists all",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report copies that only change where, or in which order, a tensor lies."""
    rows = kernel_time.rows_in_window(trace)
    asked_by = _askers(trace)
    found = kernel_time.work_of(
        trace, rows, (asked_by != NONE) & _within_device(trace), of_kernels=False
    )
    if found.share < options.least_share:
        return
    who = _named_callers(trace, asked_by[found.rows])
    most = _most(trace, found, who)
    finding = Finding(
        message="Copies within the device take "
        f"{kernel_time.time_and_fraction(trace, found, 'its work')}, most of them for {most}.",
        evidence=(
            facts.fraction("Of the device's work", found.share, "kernels"),
            facts.count("Copies", len(found.rows)),
        ),
        tables=(kernel_time.by_operator(trace, found, "Copies", who),),
        events=kernel_time.longest(trace, found),
        locations=kernel_time.lines(trace, found),
        claims=(
            kernel_time.claim(
                trace, found, AVOIDABLE_COPIES, "The copies' own time, all of it at most."
            ),
        ),
        fix=copy_fixes.fix(most, is_compiled=_is_compiled(trace, found)),
        subject=most,
    )
    yield kernel_time.result(trace, finding)


def _within_device(trace: Trace) -> NDArray[np.bool_]:
    """Tell which of `device_events` are kernels, or copies that neither leave nor enter."""
    found = (trace.device_events["kind"] == int(Kind.KERNEL)).to_numpy(copy=True)
    found[trace.device_events["kind"].to_numpy() == int(Kind.COPY)] = (
        trace.copies["direction"] == "DtoD"
    ).to_numpy()
    return found


def _askers(trace: Trace) -> NDArray[np.int64]:
    """Return the outermost copying operator around each of `device_events`, or -1.

    Not of copies that change the type, and not of those that others ask for (`OTHERS`).
    """
    calls = trace.host_calls
    parent = calls["parent"].to_numpy()
    is_copying = name_mask(calls["name"], COPYING.search)
    owner = links(trace).owner_of_device_event
    found = np.where(np.append(is_copying, False)[owner], owner, NONE)
    is_owner = np.zeros(len(calls) + 1, dtype=bool)
    is_owner[found] = True
    rows = np.flatnonzero(is_owner[:-1])
    around = nearest_of(parent, rows, ~is_copying)
    is_other = np.append(
        name_mask(calls["name"], CONVERSION.search) | name_mask(calls["name"], OTHERS.search), False
    )
    excluded = is_other[around] | is_other[nearest_of(parent, rows, is_other[:-1])]
    top = _below(parent, rows, around)
    place = np.full(len(calls) + 1, NONE, dtype=np.int64)
    place[rows] = np.where(excluded, NONE, top)
    return np.asarray(place[found])


def _below(
    parent: NDArray[np.int64], rows: NDArray[np.int64], around: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return, for each row, the call on the way up to `around` that is directly below it."""
    top = rows.copy()
    while (climbing := parent[top] != around).any():
        top[climbing] = parent[top[climbing]]
    return top


def _named_callers(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return who is to be named: the operator that wanted a plain copy, else the copy itself."""
    calls = trace.host_calls
    is_plain = name_mask(calls["name"], "aten::copy_".__eq__)
    above = calls["parent"].to_numpy()[rows]
    is_operator = np.append(calls["is_operator"].to_numpy(), False)[above]
    return np.where(is_plain[rows] & is_operator, above, rows)


def _most(trace: Trace, found: Work, who: NDArray[np.int64]) -> str:
    """Return the name of the caller whose copies take longest."""
    names = trace.host_calls["name"].cat
    codes = names.codes.to_numpy()[who]
    took = trace.device_events["duration_ns"].to_numpy()[found.rows]
    return str(names.categories[int(np.bincount(codes, weights=took).argmax())])


def _is_compiled(trace: Trace, found: Work) -> bool:
    """Tell whether all of them are made in calls of compiled code."""
    owner = links(trace).owner_of_device_event[found.rows]
    return bool((compile_events(trace).region[owner] != NONE).all())


RULE = Rule(
    id="copy-heavy",
    title="Copies within the device take its time",
    category="operators",
    why="A copy within the device's memory computes nothing: it reads and writes every byte once, "
    "which takes as long as a whole pointwise operator.",
    detects="Kernels and copies launched by `copy_`, `clone`, `contiguous`, `reshape` and the "
    "like, as a share of all the device's work. It speaks from `least_share` on.",
    silent=(
        "Copies that change the type count as casts, not here.",
        "Copies of gradients into buckets, of collectives and of the optimizer have their own "
        "rules.",
        "Where the host is the limit it is rejected.",
    ),
    saving="The times in which the device does nothing but copy, where the device is the limit: 30 "
    "% at least, since some copies are needed; all at most.",
    fix=copy_fixes.REORDERED,
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority=380,
    links=(
        "https://docs.pytorch.org/docs/stable/tensor_view.html",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    origin="TraceLens, copies within the device; xprof, data formatting",
    culprit="copying within the device",
)
