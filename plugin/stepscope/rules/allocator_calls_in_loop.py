"""The device's allocator is called in every step."""

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, frame_times, requirements
from stepscope.analyses.core.links import links
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import complete_steps, window
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.calibration import EXPOSED_TIME
from stepscope.base.findings import EventReference, severity_of
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases, recorded_facts

OUTSIDE = "outside any operator"
VARIABLE = "PYTORCH_ALLOC_CONF"
Rows = NDArray[np.int64]


class Options(Thresholds):
    """Thresholds from which calls of the allocator are many."""

    least_a_step: int = option(
        1,
        "Calls in the median step, without the first step.",
        origin="ours: torch's cache serves a loop of equal steps without any",
    )
    least_share: float = option(
        0.005,
        "Fraction of the window that the host spends in these calls.",
        origin="MindStudio reports more than 10 ms; TraceLens' floor of 0.5 %",
    )
    least_without_steps: int = option(
        10,
        "Calls in total where there are no steps, which would separate a loop from its beginning.",
        origin="ours: a script's first allocations are few",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report calls of the device's allocator that recur in every step."""
    requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    calls, span = trace.runtime_calls, window(trace)
    begins = calls["start_ns"].to_numpy()
    rows = np.flatnonzero(name_mask(calls["name"], trace.dialect.allocator_call.search))
    rows = rows[(begins[rows] >= span.device_start_ns) & (begins[rows] < span.device_end_ns)]
    times = intervals.clip(frame_times.times(calls, rows), span.device_start_ns, span.device_end_ns)
    host_ns = intervals.duration_ns(times)
    is_costly = phrases.fraction_of_window(trace, host_ns) >= options.least_share
    if is_costly and _are_many(trace, begins[rows], options):
        yield _finding(trace, rows, host_ns)


def _are_many(trace: Trace, begins_ns: Rows, options: Options) -> bool:
    steps = complete_steps(trace).steps
    if not len(steps):
        return len(begins_ns) >= options.least_without_steps
    first, last = (np.searchsorted(begins_ns, steps[name]) for name in ("start_ns", "end_ns"))
    in_step = np.maximum(last - first, 0)
    return float(np.median(in_step[1:] if len(steps) > 1 else in_step)) >= options.least_a_step


def _finding(trace: Trace, rows: Rows, host_ns: int) -> Finding:
    calls, has_steps = trace.runtime_calls, window(trace).has_steps
    idle = idle_ledger(trace)[requirements.main_device(trace).device].times["alloc"]
    idle_ns = intervals.duration_ns(idle)
    lost = phrases.fraction_of_window(trace, idle_ns)
    number = len(rows) / max(1, window(trace).step_count)
    unclear = " No steps were recorded, so it may be the program's beginning, which does not recur."
    claim = Claim(idle, EXPOSED_TIME, "Idle time of the device while the host was in these calls.")
    return Finding(
        confidence="high" if has_steps else "low",
        message=f"The device's allocator is called {number:.3g} "
        f"{'time' if number == 1 else 'times'} {phrases.per_step(trace)}: the host spends "
        f"{phrases.time_and_fraction(trace, host_ns)} in these calls, and {phrases.device(trace)} "
        f"is idle for {phrases.time(trace, idle_ns)}.{'' if has_steps else unclear}",
        evidence=(
            facts.count("Calls of the allocator in total", len(rows)),
            facts.fraction("Host time in them", phrases.fraction_of_window(trace, host_ns)),
            facts.fraction("Idle time meanwhile", lost, "overview"),
            facts.count("Releases outside operators in total", _explicit(trace, rows)),
        ),
        tables=(call_costs.by_name(calls, rows, "Calls of the allocator"),),
        events=_longest(trace, rows),
        locations=call_costs.lines_around(
            trace, calls, call_costs.most_time(calls, rows, call_costs.MOST_LINES)
        ),
        claims=(claim,) if severity_of(lost) else (),
        fix=_fix(trace, rows),
    )


def _explicit(trace: Trace, rows: Rows) -> int:
    """Return the number of releases outside operators: `empty_cache()`, or a segment's end."""
    is_release = name_mask(trace.runtime_calls["name"].iloc[rows], lambda name: "Free" in name)
    return int((is_release & (links(trace).owner_of_call[rows] < 0)).sum())


def _longest(trace: Trace, rows: Rows) -> tuple[EventReference, ...]:
    names = trace.host_calls["name"].cat
    callers = [*map(str, names.categories), OUTSIDE]  # -1, none, is the last
    caller = np.append(names.codes.to_numpy(), -1)[links(trace).owner_of_call]
    return tuple(
        event_references.runtime_call(trace, row, detail=f"called by {callers[caller[row]]}")
        for row in call_costs.most_time(trace.runtime_calls, rows, call_costs.MOST_ROWS)
    )


def _fix(trace: Trace, rows: Rows) -> Fix:
    module = trace.dialect.terms.get("module", "cuda")
    names = trace.runtime_calls["name"].iloc[rows].astype(str)
    functions = map(str, trace.python_calls["name"].cat.categories)
    if _explicit(trace, rows) * 2 >= len(rows) or any("empty_cache" in name for name in functions):
        return replace(
            RULE.fix,
            summary="Do not empty the cache in the loop.",
            code=f"# torch.{module}.empty_cache()    # nor gc.collect() for its sake: leave it out",
        )
    if names.str.contains("Host").mean() > 0.5:
        return replace(
            RULE.fix,
            summary="Make pinned buffers once, and reuse them.",
            code="buffer = torch.empty(shape, pin_memory=True)    # before the loop\n"
            "buffer.copy_(batch)                             # in it, in place of pin_memory()",
        )
    variable = trace.dialect.environment.get("allocator", VARIABLE)
    code = RULE.fix.code.replace(VARIABLE, variable)
    if recorded_facts.is_expandable(trace):
        code = code.partition("\n")[0] + f"\n# segments are expandable already ({RECORDED})"
    if not is_training(trace):
        code = code.replace(".sum().backward()", "")
    return replace(RULE.fix, code=code)


RULE = Rule(
    id="allocator-calls-in-loop",
    title="Device memory is allocated and freed in every step",
    passed="Steps reuse cached device memory",
    category="memory",
    why="The driver's allocation and release take some 0.1 to 10 ms, and a release waits for the "
    "device. torch's cache avoids them: once warm, a loop makes none.",
    detects="Calls of the device's allocator in each step. It reports where the median step, "
    "without the first, makes `least_a_step` or more, and the host spends `least_share` of the "
    "window in them. Without steps there must be `least_without_steps`.",
    silent=(
        "Allocations in the first step alone are warm-up.",
        "While graphs are captured it is inconclusive.",
    ),
    saving="The idle time of the device while the host was in these calls.",
    fix=Fix(
        "Give tensors fewer sizes, and let the cache grow once, to the largest size.",
        "model(largest_batch).sum().backward()    # before the loop: reserves the most\n"
        f'os.environ["{VARIABLE}"] = "expandable_segments:True"    # before torch is imported',
        verify="The idle cause `Allocator` is gone from Overview, and steps make no such calls.",
        caveats=(
            "Where the device is nearly full, torch releases its cache to make room: see "
            "memory-near-capacity.",
            "Padding sequences to a few lengths costs arithmetic.",
            "cudnn.benchmark=True allocates and frees while it tries algorithms, once per shape.",
        ),
    ),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority="runtime",
    after=("launch-blocking-mode",),
    culprit="allocating device memory",
    links=(
        "notes/cuda.html#memory-management",
        "/tutorials/recipes/recipes/tuning_guide.html#preallocate-memory-in-case-of-variable-input-length",
    ),
    origin="MindStudio's memory advice; PyTorch's tuning guide, Preallocate memory",
)
