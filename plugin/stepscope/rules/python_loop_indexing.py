"""A Python loop processes a tensor element by element or row by row."""

import dataclasses

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.host.indexing_loops import (
    READS,
    SELECT,
    UNBIND,
    WORKS,
    IndexingLoops,
    indexing_loops,
)
from stepscope.base.calibration import LOOP_OF_SLICES
from stepscope.base.findings import INFO_SHARE, EventReference, EvidenceTable, Link, Unit
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases

MOST_SHOWN = 10
ARROW = " → "


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
    """Report loops over `x[i]` or rows of x, by the time in which no device works."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    loops = _indexing_only(trace, indexing_loops(trace, options.least_repeats), options)
    span = window(trace)
    times = intervals.union(loops.start_ns, loops.end_ns)
    times = intervals.clip(times, span.start_ns, span.end_ns)
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
        claims=(
            Claim(
                exposed,
                LOOP_OF_SLICES,
                "From each loop's first operator to its last, where no device works.",
            ),
        ),
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


def _indexing_only(trace: Trace, loops: IndexingLoops, options: Options) -> IndexingLoops:
    """Leave out loops that do a model's work, and those outside the window."""
    does_work = np.array([any(map(WORKS.search, pattern)) for pattern in loops.patterns] + [False])
    span = window(trace)
    mask = ~does_work[loops.pattern] & (loops.operator_ns <= options.most_operator_us * 1000)
    mask &= (loops.end_ns > span.start_ns) & (loops.start_ns < span.end_ns)
    names = ("first", "repeats", "start_ns", "end_ns", "operator_ns", "pattern")
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
    inner = [name for name in pattern if name != SELECT]
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
    detects="Operators under one caller that repeat a pattern of at most 8 operators, "
    "`least_repeats` times or more, where they take no longer than `most_operator_us` on "
    "average; from 1 % of the window on. The pattern contains `aten::select` (`x[i]`), or it "
    "reads a value (`aten::item`, `aten::is_nonzero`) right after an `aten::unbind` (`for row in "
    "x`, `zip(x, y)`), in at most as many iterations as that gave rows.",
    silent=(
        "A loop over products, convolutions or recurrent cells is a recurrence.",
        "A loop over rows (`for row in x`) that reads no value may do a model's work, row by row.",
        "Loops in C++ (in `aten::unbind`, a node of autograd, DistributedDataParallel) cost no "
        "Python.",
        "Loops during which the device works cost nothing: they are listed as ruled out.",
    ),
    saving="The time from a loop's first operator (including the `aten::unbind` before it) to its "
    "last in which no device works; at least three quarters of it, since the one operator takes "
    "time as well.",
    fix=Fix(
        "Do with one operator what the loop does element by element.",
        "total = x.sum(0)                 # of all of x along its dimension 0\n"
        "rows = x[index]                  # or x.index_select(0, index): many rows at once\n"
        "out = torch.vmap(of_one_row)(x)  # what is written for one row",
        caveats=(
            "If an iteration needs the previous result, move everything else out of the loop.",
            "Iterating over the rows (for row in x) saves only the indexing, which is little.",
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
