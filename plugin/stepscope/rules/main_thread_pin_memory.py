"""The training loop pins memory itself."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry, event_references, frame_times, requirements
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.window import window
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import EventReference, Evidence, Link, SourceLine
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.arrays import NONE
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import copy_sources, facts, phrases, recorded_facts

PIN = "aten::pin_memory"
VERIFY = f"{PIN} is gone from the thread that runs the loop."
MOST_SHOWN = 10


class Options(Thresholds):
    """Threshold of pinning time."""

    least_share: float = option(
        0.01,
        "Fraction of the window in pinning while no device works.",
        origin="ours: below 1 % no rule reports; a real trace has 0.03 %",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report pinning on the loop's thread by the time in which no device works meanwhile."""
    requirements.main_device(trace)
    rows = _pinning(trace)
    requirements.applies_if(len(rows), "the thread that runs the loop pinned no memory")
    span = window(trace)
    times = frame_times.times(trace.host_calls, rows)
    times = intervals.clip(times, span.start_ns, span.end_ns)
    exposed = intervals.difference(times, all_busy(trace))
    lost = intervals.duration_ns(exposed) / span.reference_ns
    evidence = tuple(_evidence(rows, times, lost))
    message = _message(trace, rows, times, lost)
    if lost < options.least_share:
        if intervals.duration_ns(times) >= options.least_share * span.reference_ns:
            yield RuledOut(message=message, evidence=evidence)
        return
    is_loading = _is_loading(trace, times)
    events, lines = _shown(trace, rows)
    yield Finding(
        confidence="high" if is_loading else "medium",
        message=message,
        evidence=evidence,
        events=events,
        locations=lines,
        claims=(
            Claim(
                exposed,
                HALF_TO_ALL,
                "Pinning during which no device works; a thread beside the loop hides it.",
            ),
        ),
        fix=_fix_of_loader(trace) if is_loading else _fix_of_loop(trace),
        effort="flag" if is_loading else "hour",
    )


def _pinning(trace: Trace) -> NDArray[np.int64]:
    """Return the outermost calls that pin memory on the loop's thread, in the window."""
    calls, span = trace.host_calls, window(trace)
    pins = name_mask(calls["name"], PIN.__eq__) & (calls["thread"] == main_thread(trace)).to_numpy()
    pins &= (calls["end_ns"] > span.start_ns).to_numpy()
    pins &= (calls["start_ns"] < span.end_ns).to_numpy()
    rows = np.flatnonzero(pins)
    parent = calls["parent"].to_numpy()
    return np.asarray(rows[ancestry.nearest_of(parent, parent[rows], pins) == NONE])


def _is_loading(trace: Trace, times: Intervals) -> bool:
    """Return whether most pinning happens in the DataLoader (`pin_memory=True`)."""
    inside = intervals.intersection(times, data_loading(trace).times)
    return 2 * intervals.duration_ns(inside) >= intervals.duration_ns(times)


def _message(trace: Trace, rows: NDArray[np.int64], times: Intervals, lost: float) -> str:
    span = window(trace)
    lasting = duration(span.per_step(intervals.duration_ns(times)))
    device = trace.dialect.device
    return (
        f"{count(len(rows), 'tensor is', 'tensors are')} pinned by the thread that runs the loop, "
        f"in {lasting} {phrases.per_step(trace)}; during {share(lost)} of the time no "
        f"{device} works meanwhile."
    )


def _evidence(rows: NDArray[np.int64], times: Intervals, lost: float) -> Iterator[Evidence]:
    link = Link(view="operators", search=PIN)
    yield facts.count("Tensors pinned", len(rows), link)
    yield facts.duration("Pinning in total", intervals.duration_ns(times), link)
    yield facts.fraction("Exposed pinning", lost, "overview")


def _shown(
    trace: Trace, rows: NDArray[np.int64]
) -> tuple[tuple[EventReference, ...], tuple[SourceLine, ...]]:
    """Return the longest of the calls, and the lines that they come from."""
    lasting = trace.host_calls["duration_ns"].to_numpy()[rows]
    longest = rows[np.argsort(-lasting, kind="stable")[:MOST_SHOWN]].tolist()
    lines = [event_references.line_of_host_call(trace, row) for row in longest]
    events = tuple(
        event_references.host_call(trace, row, detail=line)
        for row, line in zip(longest, lines, strict=True)
    )
    return events, event_references.source_lines(lines)


def _fix_of_loader(trace: Trace) -> Fix:
    return Fix(
        "Give the loader workers: then it pins in a thread of its own, beside the loop.",
        _pinning_loader(trace),
        verify=VERIFY,
    )


def _pinning_loader(trace: Trace) -> str:
    workers = recorded_facts.bounded(trace, 2)
    batch = recorded_facts.loader_setting(trace, lambda loader: loader.batch_size) or "..."
    return (
        f"loader = DataLoader(dataset, batch_size={batch}, num_workers={workers}, pin_memory=True)"
    )


def _fix_of_loop(trace: Trace) -> Fix:
    return Fix(
        "Let the DataLoader pin its batches in a thread, or keep one pinned buffer.",
        f"{_pinning_loader(trace)}\n"
        "# or, for what comes from elsewhere:\n"
        "staging = torch.empty(shape, pin_memory=True)  # once, not batch.pin_memory()\n"
        "staging.copy_(batch)\n"
        f"batch = staging.to({copy_sources.target(trace)}, non_blocking=True)",
        verify=VERIFY,
        caveats=("The buffer must not be filled anew before its copy has run.",),
    )


RULE = Rule(
    id="main-thread-pin-memory",
    title="The training loop pins memory itself",
    passed="The training loop takes little or no time to pin memory",
    category="input pipeline",
    why="Pinning takes locked memory from the system and copies the tensor into it, on the CPU. "
    "Pinning it and then copying it may take longer than copying it from pageable memory.",
    detects="Calls of aten::pin_memory on the thread that runs the loop. It reports where the "
    "part of them during which no device works is at least `least_share` of the window.",
    silent=(
        "The DataLoader's pinning thread does it, in parallel with the loop.",
        "A device works meanwhile: nothing could be saved.",
    ),
    saving="At most all pinning during which no device works; half of it at least (an estimate).",
    fix=Fix(
        "Let the DataLoader pin its batches in a thread of its own.",
        "loader = DataLoader(dataset, batch_size=..., num_workers=2, pin_memory=True)",
        verify=VERIFY,
    ),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="loading",
    after=("dataloader-no-workers",),
    life_cycle="preview",
    culprit="pinning memory in the loop",
    links=(copy_sources.TUTORIAL,),
    origin="PyTorch's tutorial on pin_memory and non_blocking, where it was measured",
)
