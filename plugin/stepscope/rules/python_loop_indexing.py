"""A Python loop processes a tensor element by element, or part by part."""

import dataclasses
from collections.abc import Callable

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.host.indexing_loops import (
    MORE,
    READS,
    SELECT,
    UNBIND,
    IndexingLoops,
    indexing_loops,
)
from stepscope.analyses.operators.python_operators import backward_times, python_operators
from stepscope.base.calibration import LOOP_OF_SLICES
from stepscope.base.findings import INFO_SHARE, EventReference, EvidenceTable, Link, Unit
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases

MOST_SHOWN = 10
ARROW = " → "
PART = frozenset({SELECT, "aten::slice", "aten::narrow", "aten::index"})
"""Operators whose backward pass makes a gradient of the whole tensor for each part."""
CALL_NS = 5_000
"""Recorded time up to which an operator without children is mostly its call: operators on one
number take 0.4 to 5 µs on an EPYC."""


class Options(Thresholds):
    """Thresholds of loops that could be one operator."""

    least_repeats: int = option(
        10, "Iterations of one loop.", origin="torch's ForLoopIndexingPattern: 10"
    )
    most_operator_us: float = option(
        50.0,
        "Mean duration of the loop's operators on the host; longer ones do real work.",
        origin="ours: calling an operator takes 1 to 20 µs, the profiler's part included",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report loops over parts of a tensor, by the time in which no device works."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    span = window(trace)
    loops = _in_window(
        trace, indexing_loops(trace, options.least_repeats, options.most_operator_us * 1000)
    )
    times = intervals.union(loops.start_ns, loops.end_ns)
    times = intervals.clip(times, span.start_ns, span.end_ns)
    backward = _backward(trace, times)
    times = intervals.merged(times, backward)
    exposed = intervals.difference(times, all_busy(trace))
    total_ns, exposed_ns = intervals.duration_ns(times), intervals.duration_ns(exposed)
    least_ns = INFO_SHARE * span.reference_ns
    if total_ns < least_ns:
        return
    pattern = loops.patterns[int(_spent_ns(loops).argmax())]
    others = " and others" if len(np.unique(loops.pattern)) > 1 else ""
    message = (
        f"{count(len(loops.first), 'Python loop processes', 'Python loops process')} a tensor in "
        f"{int(loops.repeats.sum()):,} iterations of {ARROW.join(pattern)}{others}, for "
        f"{phrases.time_and_fraction(trace, total_ns)}"
        f"{' with the backward pass' if len(backward) else ''}"
    )
    table = _table(trace, loops)
    finding = Finding(
        message=f"{message}.",
        evidence=(
            facts.count("Loops in total", len(loops.first), _link(pattern)),
            facts.count("Iterations in total", int(loops.repeats.sum())),
            facts.count("Iterations of the longest loop", int(loops.repeats.max())),
            facts.duration("Time in loops in total", total_ns),
            facts.duration("While no device works, in total", exposed_ns),
        ),
        tables=(table,),
        events=_events(trace, loops),
        locations=event_references.source_lines(str(row.cells[1] or "") for row in table.rows),
        claims=(_claim(trace, loops, exposed),),
        fix=_fix(pattern),
        subject=ARROW.join(pattern),
    )
    if exposed_ns >= least_ns:
        yield finding
        return
    idle = phrases.time_and_fraction(trace, exposed_ns)
    yield finding.ruled_out(
        f"{message}; but {phrases.device(trace)} works meanwhile, and is idle for only {idle}."
    )


def _claim(trace: Trace, loops: IndexingLoops, exposed: Intervals) -> Claim:
    """Claim all but the first iteration: one call for the whole tensor remains."""
    repeated = intervals.union(loops.second_ns, loops.end_ns)
    backward = _backward(trace, repeated)
    times = intervals.intersection(exposed, intervals.merged(repeated, backward))
    on_device = bool(len(trace.device_events))
    computing = intervals.EMPTY if on_device else _computing(trace, repeated)
    if len(backward) and not on_device:
        parts = backward_times(trace, _operators_in(trace, repeated, PART.__contains__))
        retained = intervals.difference(_computing(trace, backward), parts)
        computing = intervals.merged(computing, retained)
    scope = (
        "From each loop's second iteration to its last operator"
        f"{', and its backward pass' if len(backward) else ''}"
    )
    return Claim(
        times,
        LOOP_OF_SLICES,
        f"{scope}: at most what a replayed step gains without its calls; at least three quarters "
        "of the time in which no device works."
        if on_device
        else f"{scope}; at least three quarters of it, without what operators take beyond "
        f"{CALL_NS // 1000} µs.",
        low_intervals=intervals.difference(times, computing),
        calls=_operators_in(trace, repeated, lambda _: True) if on_device else None,
    )


def _backward(trace: Trace, times: Intervals) -> Intervals:
    """Return the backward pass of operators that Python called in some times."""
    span = window(trace)
    rows = _operators_in(trace, times, lambda _: True)
    return intervals.clip(backward_times(trace, rows), span.start_ns, span.end_ns)


def _operators_in(trace: Trace, times: Intervals, is_selected: Callable[[str], bool]) -> Ints:
    """Return the selected operators of Python that start in some times."""
    rows = python_operators(trace).rows
    rows = rows[name_mask(trace.host_calls["name"], is_selected)[rows]]
    start_ns = trace.host_calls["start_ns"].to_numpy()[rows]
    return np.asarray(rows[intervals.covered_ns(times, start_ns, start_ns + 1) > 0])


def _computing(trace: Trace, times: Intervals) -> Intervals:
    """Return the time of operators without children beyond a call's usual time, in some times."""
    calls = trace.host_calls
    is_caller = np.zeros(len(calls) + 1, dtype=bool)
    is_caller[calls["parent"].to_numpy()] = True
    long = calls["is_operator"].to_numpy() & (calls["duration_ns"].to_numpy() > CALL_NS)
    rows = np.flatnonzero(long & ~is_caller[:-1])
    start, end = (calls[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    return intervals.intersection(times, intervals.union(start + CALL_NS, end))


def _in_window(trace: Trace, loops: IndexingLoops) -> IndexingLoops:
    span = window(trace)
    mask = (loops.end_ns > span.start_ns) & (loops.start_ns < span.end_ns)
    names = ("first", "repeats", "start_ns", "second_ns", "end_ns", "pattern")
    return dataclasses.replace(loops, **{name: getattr(loops, name)[mask] for name in names})


def _spent_ns(loops: IndexingLoops) -> NDArray[np.int64]:
    """Return the time in the loops of each pattern."""
    spent = np.zeros(len(loops.patterns), dtype=np.int64)
    np.add.at(spent, loops.pattern, loops.end_ns - loops.start_ns)
    return spent


def _link(pattern: tuple[str, ...]) -> Link:
    return Link(view="operators", search=SELECT if SELECT in pattern else UNBIND)


def _table(trace: Trace, loops: IndexingLoops) -> EvidenceTable:
    spent, rows = _spent_ns(loops), []
    for number in np.argsort(-spent, kind="stable")[:MOST_SHOWN].tolist():
        repeats = loops.repeats[loops.pattern == number]
        if spent[number]:
            first = int(loops.first[np.flatnonzero(loops.pattern == number)[0]])
            pattern = loops.patterns[number]
            line = event_references.line_of_host_call(trace, first)
            cells = (ARROW.join(pattern), line, len(repeats), repeats.sum(), spent[number])
            rows.append(facts.row(*cells, link=_link(pattern)))
    columns: dict[str, Unit] = {
        "Operators of an iteration": "code",
        "Source line": "code",
        "Loops": "count",
        "Iterations": "count",
        "Time in total": "ns",
    }
    return facts.table("Patterns that the loops repeat", columns, rows)


def _events(trace: Trace, loops: IndexingLoops) -> tuple[EventReference, ...]:
    """Return the longest loops, by their first operators."""
    longest = np.argsort(loops.start_ns - loops.end_ns, kind="stable")[:MOST_SHOWN].tolist()
    return tuple(
        event_references.host_call(
            trace, int(loops.first[row]), detail=f"loop of {loops.repeats[row]:,} iterations"
        )
        for row in longest
    )


def _fix(pattern: tuple[str, ...]) -> Fix:
    inner = [name for name in pattern if name not in (SELECT, MORE)]
    computed = [name.removeprefix("aten::") for name in inner if name not in READS]
    does = ", ".join(dict.fromkeys(computed))
    if inner and not computed:
        code = "for value in x.tolist():        # one copy, instead of .item() in each iteration"
    elif len(computed) < len(inner):
        code = (
            f"per_row = x.argmax(1)           # so {does} of the whole tensor, not row by row\n"
            "hits = (per_row == y).sum()     # sums and counts stay on the tensor\n"
            "for value in per_row.tolist():  # where Python needs each: one copy, not .item() each"
        )
    elif any(name in {"aten::copy_", "aten::fill_"} for name in inner):
        code = (
            "x[:n] = torch.tensor(values)     # instead of x[i] = values[i] in each iteration\n"
            "x.index_copy_(0, index, rows)    # where the positions are not in order"
        )
    else:
        code = f"# instead of {does or '…'} of x[i] in each iteration:\n{RULE.fix.code}"
    return replace(RULE.fix, code=code)


RULE = Rule(
    id="python-loop-indexing",
    title="A Python loop processes a tensor element by element",
    passed="No Python loop indexes a tensor element by element",
    category="operators",
    why="Each iteration costs some microseconds of Python and dispatch per operator, however few "
    "numbers it handles, and on a device a launch per operator. One operator over the whole "
    "tensor costs them once.",
    detects="Operators under one caller that repeat a pattern, `least_repeats` times or more, "
    "where they take no longer than `most_operator_us` on average; from 1 % of the window on. A "
    "pattern has at most 48 operators and inner loops (of two iterations and more, of at most 16 "
    "operators). It takes parts of a tensor (`aten::select` for `x[i]`, `aten::slice`, "
    "`aten::narrow`), compares it with a number (`x == i`), makes tensors of Python's numbers "
    "(`aten::lift_fresh`) or joins them (`aten::cat`, `aten::stack`); or it reads a value "
    "(`aten::item`, `aten::is_nonzero`) right after an `aten::unbind` (`for row in x`, `zip(x, "
    "y)`), in at most as many iterations as that gave rows.",
    silent=(
        "A loop over products, convolutions, attention, norms or recurrent cells, or over "
        "operators of other libraries, does a model's work.",
        "A loop over rows (`for row in x`) that reads no value may do a model's work, row by row.",
        "A loop that reads or changes each parameter, and takes no part of it, is another matter.",
        "Loops in C++ (in `aten::unbind`, a node of autograd, DistributedDataParallel) cost no "
        "Python. Those of DataLoaders and optimizers have rules of their own.",
        "Loops during which the device works cost nothing: they are listed as ruled out.",
    ),
    saving="The time from a loop's second iteration to its last operator, and of the backward "
    "pass of these operators, in which no device works; at least three quarters of it, since the "
    "one operator takes time as well. On a CPU the least saving omits what operators take beyond "
    "5 µs, in which they compute; on a device the most is what a replayed step gains without the "
    "loop's calls. Recording costs up to 45 % of such a loop: without the profiler "
    "the saving is smaller.",
    fix=Fix(
        "Do with one operator what the loop does element by element.",
        "total = x.sum(0)                 # of all of x along its dimension 0\n"
        "rows = x[index]                  # or x.index_select(0, index): many rows at once\n"
        "out = torch.vmap(of_one_row)(x)  # what is written for one row",
        caveats=(
            "If an iteration needs the previous result, move everything else out of the loop.",
            "Iterating over the rows (for row in x) saves only the indexing, which is little.",
            "Tensors that are the same in each step can be made once, before the loop of steps.",
            "Without stacks the trace has no source line: record with with_stack=True.",
        ),
        verify="In the next trace aten::select and aten::item are called a few times per step.",
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "steps"}),
    priority="device work",
    links=("generated/torch.vmap.html", "generated/torch.index_select.html"),
    origin="torch's ForLoopIndexingPattern (torch.profiler._pattern_matcher), by time instead of "
    "count",
    culprit="a loop over a tensor's elements",
)
