"""The device's allocator is called in every step."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, frame_times, requirements
from stepscope.analyses.core.complete_steps import complete_steps
from stepscope.analyses.core.links import links
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.calibration import EXPOSED_TIME
from stepscope.base.findings import EventReference, Evidence, Fix, Link
from stepscope.base.formatting import share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, option, severity_of
from stepscope.rules.shared import call_costs, facts, phrases, recorded_facts

EMPTY_CACHE = "empty_cache"
Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Options:
    """When calls of the allocator are many."""

    least_a_step: int = option(
        1,
        "Calls in the median step, the first left out.",
        origin="ours: torch's cache serves a loop of equal steps without any",
    )
    least_share: float = option(
        0.005,
        "Of the window, the host in these calls.",
        origin="MindStudio speaks of more than 10 ms; TraceLens' floor of 0.5 %",
    )
    least_without_steps: int = option(
        10,
        "Calls in all where there are no steps, in which a loop cannot be told from its beginning.",
        origin="ours: a script's first allocations are few",
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report calls of the device's allocator that come again in every step."""
    requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    calls, within = trace.runtime_calls, window(trace)
    begins = calls["start_ns"].to_numpy()
    rows = np.flatnonzero(name_mask(calls["name"], trace.dialect.allocator_call.search))
    rows = rows[(begins[rows] >= within.start_ns) & (begins[rows] < within.device_end_ns)]
    times = intervals.clip(frame_times.times(calls, rows), within.start_ns, within.device_end_ns)
    spent = phrases.fraction_of_window(trace, intervals.duration_ns(times))
    if _are_many(trace, begins[rows], options) and spent >= options.least_share:
        yield _finding(trace, rows, times)


def _are_many(trace: Trace, begins_ns: Rows, options: Options) -> bool:
    steps = complete_steps(trace).steps
    if not len(steps):
        return len(begins_ns) >= options.least_without_steps
    first, last = (np.searchsorted(begins_ns, steps[name]) for name in ("start_ns", "end_ns"))
    in_step = np.maximum(last - first, 0)
    return float(np.median(in_step[1:] if len(steps) > 1 else in_step)) >= options.least_a_step


def _finding(trace: Trace, rows: Rows, times: Intervals) -> Finding:
    device = requirements.main_device(trace)
    idle = idle_ledger(trace)[device.device].times["alloc"]
    has_steps = window(trace).has_steps
    lost = phrases.fraction_of_window(trace, intervals.duration_ns(idle))
    claim = Claim(idle, EXPOSED_TIME, "Idle time of the device while the host was in these calls.")
    return Finding(
        confidence="high" if has_steps else "low",
        message=_message(trace, rows, times, idle),
        evidence=_evidence(trace, rows, times, lost),
        tables=(call_costs.by_name(trace.runtime_calls, rows, "Calls of the allocator"),),
        events=_longest(trace, rows),
        locations=call_costs.lines_around(
            trace,
            trace.runtime_calls,
            call_costs.most_time(trace.runtime_calls, rows, call_costs.MOST_LINES),
        ),
        claims=(claim,) if severity_of(lost) else (),
        fix=_fix(trace, rows),
    )


def _message(trace: Trace, rows: Rows, spent: Intervals, idle: Intervals) -> str:
    each = phrases.per_step(trace)
    number = len(rows) / max(1, window(trace).step_count)
    times = "time" if number == 1 else "times"
    spent_ns, idle_ns = intervals.duration_ns(spent), intervals.duration_ns(idle)
    text = (
        f"The device's allocator is called {number:.3g} {times} {each}, for which the host "
        f"takes {phrases.time(trace, spent_ns)} "
        f"({share(phrases.fraction_of_window(trace, spent_ns))}) and the {trace.dialect.device} "
        "stands "
        f"still for {phrases.time(trace, idle_ns)}."
    )
    if not window(trace).has_steps:
        text += " No steps were recorded, so it may be the beginning, which comes once."
    return text


def _evidence(trace: Trace, rows: Rows, times: Intervals, lost: float) -> tuple[Evidence, ...]:
    overview = Link(view="overview")
    spent = phrases.fraction_of_window(trace, intervals.duration_ns(times))
    return (
        facts.count("Calls of the allocator", len(rows)),
        facts.fraction("Host time in them", spent),
        facts.fraction("Idle time meanwhile", lost, overview),
        facts.count("Releases that no operator asked for", _explicit(trace, rows)),
    )


def _is_release(trace: Trace, rows: Rows) -> NDArray[np.bool_]:
    return name_mask(trace.runtime_calls["name"].iloc[rows], lambda name: "Free" in name)


def _explicit(trace: Trace, rows: Rows) -> int:
    """Return how many releases no operator asked for: `empty_cache()`, or a segment's end."""
    outside = links(trace).owner_of_call[rows] < 0
    return int((_is_release(trace, rows) & outside).sum())


def _longest(trace: Trace, rows: Rows) -> tuple[EventReference, ...]:
    names = trace.host_calls["name"].cat
    askers = [*map(str, names.categories), "outside any operator"]  # -1, none, is the last
    asker = np.append(names.codes.to_numpy(), -1)[links(trace).owner_of_call]
    return tuple(
        event_references.runtime_call(trace, row, detail=f"asked by: {askers[asker[row]]}")
        for row in call_costs.most_time(trace.runtime_calls, rows, call_costs.MOST_ROWS)
    )


def _fix(trace: Trace, rows: Rows) -> Fix:
    module = trace.dialect.terms.get("module", "cuda")
    names = trace.runtime_calls["name"].iloc[rows].astype(str)
    if _explicit(trace, rows) * 2 >= len(rows) or _clears(trace):
        summary = "Do not empty the cache in the loop."
        code = f"# torch.{module}.empty_cache()    # nor gc.collect() for its sake: leave it out"
    elif names.str.contains("Host").mean() > 0.5:
        summary = "Make pinned buffers once, and use them again."
        code = (
            "buffer = torch.empty(shape, pin_memory=True)    # before the loop\n"
            "buffer.copy_(batch)                             # in it, in place of pin_memory()"
        )
    else:
        variable = trace.dialect.environment.get("allocator", "PYTORCH_ALLOC_CONF")
        summary = FIX.summary
        code = FIX.code.replace(VARIABLE, variable)
        if recorded_facts.is_expandable(trace):
            code = code.partition("\n")[0] + f"\n# segments are expandable already ({RECORDED})"
        if not is_training(trace):
            code = code.replace(".sum().backward()", "")
    return Fix(summary, code, verify=FIX.verify, caveats=FIX.caveats)


def _clears(trace: Trace) -> bool:
    names = trace.python_calls["name"].cat.categories
    return any(EMPTY_CACHE in str(name) for name in names)


VARIABLE = "PYTORCH_ALLOC_CONF"
FIX = Fix(
    "Give tensors fewer sizes, and let the cache grow once, to the largest.",
    "model(largest_batch).sum().backward()    # before the loop: reserves the most\n"
    f'os.environ["{VARIABLE}"] = "expandable_segments:True"    # before torch is imported',
    verify="The idle cause `Allocator` is gone from Overview, and steps make no such calls.",
    caveats=(
        "Where the device is nearly full, the cache is given back to make room: see "
        "memory-near-capacity.",
        "Padding sequences to a few lengths costs arithmetic.",
        "cudnn.benchmark=True allocates and frees while it tries algorithms, once for each shape.",
    ),
)

RULE = Rule(
    id="allocator-calls-in-loop",
    title="Device memory is allocated and freed in every step",
    category="memory",
    why="The driver's allocation and release take some 0.1 to 10 ms, and a release waits for the "
    "device. torch's cache is there to avoid them: once warm, a loop makes none.",
    detects="Counts the calls of the device's allocator in each step. It speaks where the median "
    "step, the first left out, makes `least_a_step` or more, and the host spends `least_share` of "
    "the window in them. Without steps there must be `least_without_steps`.",
    silent=(
        "What only the first step allocates is warm-up.",
        "While graphs are captured.",
    ),
    saving="The idle time of the device while the host was in these calls.",
    fix=FIX,
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority=70,
    culprit="allocating device memory",
    links=(
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#preallocate-memory-in-case-of-variable-input-length",
    ),
    origin="MindStudio's memory advice; PyTorch's tuning guide, Preallocate memory",
)
