"""A loop of Python takes a tensor apart, element by element or row by row."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core import event_references
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
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import EventReference, Evidence, EvidenceTable, Fix, Link
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import INFO_SHARE, Claim, Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import facts, phrases

MOST_SHOWN = 10
ARROW = " → "


@dataclass(frozen=True, kw_only=True)
class Options:
    """Thresholds of loops that could be one operator."""

    least_repeats: int = option(
        10, "Turns of one loop.", origin="torch's ForLoopIndexingPattern: 10"
    )
    most_operator_us: float = option(
        50.0,
        "Mean duration of the loop's operators on the host; longer ones do real work.",
        origin="ours: calling an operator takes 1 to 20 µs, the profiler's part included",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report loops over `x[i]` or rows of x, by the time in which no device works."""
    if not trace.host_calls["is_operator"].any():
        msg = "no operator was recorded"
        raise NotApplicableError(msg)
    loops = _worth_looking(trace, indexing_loops(trace, options.least_repeats), options)
    span = window(trace)
    times = intervals.union(loops.start_ns, loops.end_ns)
    times = intervals.clip(times, span.start_ns, span.end_ns)
    exposed = intervals.difference(times, all_busy(trace))
    least_ns = INFO_SHARE * span.reference_ns
    if intervals.duration_ns(times) < least_ns:
        return
    if intervals.duration_ns(exposed) < least_ns:
        yield RuledOut(
            message=f"{_message(trace, loops, times)}; but the {trace.dialect.device} is at work "
            f"meanwhile, and is idle for {_time(trace, exposed)}: next to nothing.",
            evidence=_evidence(loops, times, exposed),
            tables=(_table(trace, loops),),
            events=_events(trace, loops),
        )
        return
    yield Finding(
        message=f"{_message(trace, loops, times)}.",
        evidence=_evidence(loops, times, exposed),
        tables=(_table(trace, loops),),
        events=_events(trace, loops),
        locations=event_references.source_lines(_lines(trace, loops)),
        claims=(
            Claim(
                exposed,
                LOOP_OF_SLICES,
                "From each loop's first operator to its last, where no device works.",
            ),
        ),
        fix=_fix(_costliest(loops)),
        subject=ARROW.join(_costliest(loops)),
    )


def _worth_looking(trace: Trace, loops: IndexingLoops, options: Options) -> IndexingLoops:
    """Leave out loops that do a model's work, and those outside the window."""
    does_work = np.array([any(map(WORKS.search, pattern)) for pattern in loops.patterns] + [False])
    span = window(trace)
    is_short_loop = ~does_work[loops.pattern] & (
        loops.operator_ns <= options.most_operator_us * 1000
    )
    is_short_loop &= (loops.end_ns > span.start_ns) & (loops.start_ns < span.end_ns)
    names = ("first", "repeats", "start_ns", "end_ns", "operator_ns", "pattern")
    return dataclasses.replace(
        loops, **{name: getattr(loops, name)[is_short_loop] for name in names}
    )


def _time(trace: Trace, times: Intervals) -> str:
    return phrases.time_and_fraction(trace, intervals.duration_ns(times))


def _message(trace: Trace, loops: IndexingLoops, times: Intervals) -> str:
    return (
        f"{count(len(loops.first), 'loop takes', 'loops take')} a tensor apart, in "
        f"{int(loops.repeats.sum()):,} turns of {ARROW.join(_costliest(loops))}"
        f"{_and_others(loops)}, for {_time(trace, times)}"
    )


def _and_others(loops: IndexingLoops) -> str:
    return " and others" if len(np.unique(loops.pattern)) > 1 else ""


def _spent_ns(loops: IndexingLoops) -> NDArray[np.int64]:
    """Return, for each pattern, how long its loops take."""
    spent = np.zeros(len(loops.patterns), dtype=np.int64)
    np.add.at(spent, loops.pattern, loops.end_ns - loops.start_ns)
    return spent


def _costliest(loops: IndexingLoops) -> tuple[str, ...]:
    return loops.patterns[int(_spent_ns(loops).argmax())]


def _evidence(loops: IndexingLoops, times: Intervals, exposed: Intervals) -> tuple[Evidence, ...]:
    link = _link(_costliest(loops))
    return (
        facts.count("Loops", len(loops.first), link),
        facts.count("Turns", int(loops.repeats.sum())),
        facts.count("Longest loop", int(loops.repeats.max())),
        facts.duration("Time in loops", intervals.duration_ns(times)),
        facts.duration("While no device works", intervals.duration_ns(exposed)),
    )


def _link(pattern: tuple[str, ...]) -> Link:
    """Lead to what takes the tensor apart."""
    return Link(view="operators", search=SELECT if SELECT in pattern else UNBIND)


def _first_of(loops: IndexingLoops, pattern: int) -> int:
    return int(loops.first[np.flatnonzero(loops.pattern == pattern)[0]])


def _worst_patterns(loops: IndexingLoops) -> list[int]:
    spent = _spent_ns(loops)
    return [
        int(pattern) for pattern in np.argsort(-spent, kind="stable")[:MOST_SHOWN] if spent[pattern]
    ]


def _lines(trace: Trace, loops: IndexingLoops) -> Iterator[str]:
    for pattern in _worst_patterns(loops):
        yield event_references.line_of_host_call(trace, _first_of(loops, pattern))


def _table(trace: Trace, loops: IndexingLoops) -> EvidenceTable:
    spent = _spent_ns(loops)
    rows = tuple(
        facts.row(
            ARROW.join(loops.patterns[pattern]),
            event_references.line_of_host_call(trace, _first_of(loops, pattern)) or None,
            int((loops.pattern == pattern).sum()),
            int(loops.repeats[loops.pattern == pattern].sum()),
            int(spent[pattern]),
            link=_link(loops.patterns[pattern]),
        )
        for pattern in _worst_patterns(loops)
    )
    return facts.table(
        "What the loops repeat",
        {
            "Operators of a turn": "code",
            "Source line": "code",
            "Loops": "count",
            "Turns": "count",
            "Time": "ns",
        },
        rows,
    )


def _events(trace: Trace, loops: IndexingLoops) -> tuple[EventReference, ...]:
    """Name the longest loops by their first operator, and as long as they are."""
    lasting = loops.end_ns - loops.start_ns
    longest = np.argsort(-lasting, kind="stable")[:MOST_SHOWN].tolist()
    return tuple(
        event_references.host_call(
            trace, int(loops.first[at]), detail=f"loop of {loops.repeats[at]:,} turns"
        )
        for at in longest
    )


def _fix(pattern: tuple[str, ...]) -> Fix:
    inner = [name for name in pattern if name != SELECT]
    computed = [name.removeprefix("aten::") for name in inner if name not in READS]
    does = ", ".join(dict.fromkeys(computed))
    if inner and not computed:
        code = "for value in x.tolist():        # one copy, instead of .item() in each turn"
    elif len(computed) < len(inner):
        code = (
            f"per_row = x.argmax(1)           # so {does} of the whole tensor, not row by row\n"
            "hits = (per_row == y).sum()     # sums and counts stay on the tensor\n"
            "for value in per_row.tolist():  # where Python needs each: one copy, not .item() each"
        )
    elif any(name in {"aten::copy_", "aten::fill_"} for name in inner):
        code = (
            "x[:n] = torch.tensor(values)     # instead of x[i] = values[i] in each turn\n"
            "x.index_copy_(0, index, rows)    # where the places are not in order"
        )
    else:
        code = f"# instead of {does or '…'} of x[i] in each turn:\n{RULE.fix.code}"
    return replace(RULE.fix, code=code)


RULE = Rule(
    id="python-loop-indexing",
    title="A Python loop takes a tensor apart",
    category="operators",
    why="Each turn costs some microseconds of Python and dispatch for each operator, however few "
    "numbers it handles, and on a device a launch each. One operator over the whole tensor costs "
    "them once.",
    detects="Operators under one caller that repeat a pattern of at most 8, `least_repeats` times "
    "or more, where they take no longer than `most_operator_us` in the mean; from 1 % of the "
    "window on. The pattern has `aten::select` in it (`x[i]`), or it reads a value (`aten::item`, "
    "`aten::is_nonzero`) and stands right behind an `aten::unbind` (`for row in x`, `zip(x, y)`): "
    "no more of its turns are counted than that gave rows.",
    silent=(
        "A loop over products, convolutions or recurrent cells is a recurrence: it has its reason.",
        "A loop over rows (`for row in x`) that reads no value may do a model's work, row by row.",
        "Loops in C++ (in `aten::unbind`, a node of autograd, DistributedDataParallel) cost no "
        "Python.",
        "Loops during which the device works cost nothing: they are listed as rejected.",
    ),
    saving="The time from a loop's first operator (the `aten::unbind` in front of it included) to "
    "its last, in which no device works; at least three quarters of it, since the one operator "
    "takes time as well.",
    fix=Fix(
        "Do with one operator what the loop does element by element.",
        "total = x.sum(0)                 # of all of x along its dimension 0\n"
        "rows = x[index]                  # or x.index_select(0, index): many rows at once\n"
        "out = torch.vmap(of_one_row)(x)  # what is written for one row",
        caveats=(
            "Where a turn needs the result of the one before, take out of the loop what does not.",
            "Iterating over the rows (for row in x) saves the indexing alone, hardly any time.",
        ),
        verify="In the next trace aten::select and aten::item are called a few times per step.",
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "steps"}),
    priority=280,
    links=(
        "https://docs.pytorch.org/docs/stable/generated/torch.vmap.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.index_select.html",
    ),
    origin="torch's ForLoopIndexingPattern (torch.profiler._pattern_matcher), charged by time",
    culprit="a loop over a tensor's elements",
)
