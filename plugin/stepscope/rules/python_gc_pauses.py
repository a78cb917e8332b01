"""Python's garbage collector stops the program in the loop."""

from collections import Counter

from stepscope.analyses.core import event_references
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.host.garbage_collection import Collections, collections
from stepscope.base.calibration import GARBAGE_COLLECTION
from stepscope.base.findings import EventReference, Evidence, EvidenceTable, severity_of
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases

MOST_SHOWN = 10
MOSTLY = 0.5


class Options(Thresholds):
    """Fractions of the window, from 0 to 1."""

    least_share: float = option(
        0.01,
        "Time in collections from which they are reported.",
        origin="ours: below 1 % no rule reports; MindStudio Insight's `gc` rule lists collections "
        "of 1 ms and longer",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report garbage collections by the time in which no device works."""
    pauses = collections(trace)
    exposed = intervals.difference(pauses.times, all_busy(trace))
    exposed_ns = intervals.duration_ns(exposed)
    least_ns = options.least_share * window(trace).reference_ns
    if intervals.duration_ns(pauses.times) < least_ns:
        return
    message, idle = _message(trace, pauses), phrases.time_and_fraction(trace, exposed_ns)
    lines = _by_line(trace, pauses)
    finding = Finding(
        severity=severity_of(phrases.fraction_of_window(trace, exposed_ns)) or "info",
        message=f"{message}; {phrases.device(trace)} is idle meanwhile for {idle}."
        if len(trace.device_events)
        else f"{message}.",
        evidence=_evidence(pauses, exposed),
        tables=(_table(pauses, lines),),
        events=_events(trace, pauses),
        locations=event_references.source_lines(line for line, _ in lines),
        claims=(
            Claim(exposed, GARBAGE_COLLECTION, "Time in collections in which no device works."),
        ),
        fix=_fix(pauses),
    )
    yield (
        finding
        if exposed_ns >= least_ns
        else finding.ruled_out(
            f"{message}; but {phrases.device(trace)} works meanwhile, and is idle for {idle}: "
            "collecting less would save next to nothing."
        )
    )


def _message(trace: Trace, pauses: Collections) -> str:
    total_ns = intervals.duration_ns(pauses.times)
    called = intervals.duration_ns(pauses.explicit) / max(1, total_ns)
    return (
        f"Python collects garbage {count(len(pauses.rows), 'time')}, for "
        f"{phrases.time_and_fraction(trace, total_ns)}"
        f"{f', {share(called)} of it in gc.collect()' if called else ''}"
    )


def _evidence(pauses: Collections, exposed: Intervals) -> tuple[Evidence, ...]:
    return (
        facts.count("Collections in total", len(pauses.rows)),
        facts.duration("Time in collections in total", intervals.duration_ns(pauses.times)),
        facts.duration("In gc.collect() in total", intervals.duration_ns(pauses.explicit)),
        facts.duration("While no device works, in total", intervals.duration_ns(exposed)),
    )


def _by_line(trace: Trace, pauses: Collections) -> list[tuple[str, int]]:
    """Return the user's lines in which it runs and its duration there, the longest first."""
    total: Counter[str] = Counter()
    durations = trace.python_calls["duration_ns"].to_numpy()[pauses.rows].tolist()
    for line, duration_ns in zip(pauses.lines, durations, strict=True):
        total[line] += duration_ns
    return total.most_common()


def _table(pauses: Collections, lines: list[tuple[str, int]]) -> EvidenceTable:
    counts = Counter(pauses.lines)
    return facts.table(
        "Lines in which Python collects garbage",
        {"Source line": "code", "Collections": "count", "Time in total": "ns"},
        ((line, counts[line], total_ns) for line, total_ns in lines[:MOST_SHOWN]),
    )


def _events(trace: Trace, pauses: Collections) -> tuple[EventReference, ...]:
    durations = trace.python_calls["duration_ns"].to_numpy()[pauses.rows]
    return tuple(
        event_references.python_call(trace, int(pauses.rows[row]), detail=pauses.lines[row])
        for row in (-durations).argsort(kind="stable")[:MOST_SHOWN].tolist()
    )


def _fix(pauses: Collections) -> Fix:
    total_ns = max(1, intervals.duration_ns(pauses.times))
    if intervals.duration_ns(pauses.explicit) < MOSTLY * total_ns:
        return RULE.fix
    return Fix(
        "Do not call gc.collect() in every step.",
        "if step % 1000 == 0:   # or never: reference counts free tensors at once\n"
        "    gc.collect()",
        verify=VERIFY,
        caveats=("Memory in cycles of references lives until the next collection.",),
    )


VERIFY = "Record again with record_python_gc_info=True: `Python GC` takes less than 1 % of a step."
RULE = Rule(
    id="python-gc-pauses",
    title="Python's garbage collection stops the loop",
    passed="Python's garbage collection takes little time",
    category="kernel launch",
    why="While Python searches for cycles of references, no thread runs Python: nothing is "
    "launched. A full collection visits every object of the program, which may be millions.",
    detects="Runs of the collector (`Python GC`, recorded with `record_python_gc_info=True` since "
    "torch 2.9) and calls of `gc.collect()`, from `least_share` of the window on.",
    silent=(
        "A collection is never guessed from a gap in which nothing was recorded.",
        "Collections during which the device works cost nothing: they are ruled out.",
    ),
    saving="The time in collections in which no device works; at least three quarters of it, since "
    "less frequent collections take longer.",
    fix=Fix(
        "Exclude permanent objects from collections, and choose when to collect.",
        "# after the warm-up, before the loop:\n"
        "gc.collect(); gc.freeze()    # model, optimizer and datasets are not visited again\n"
        "gc.disable()\n"
        "for step, batch in enumerate(loader):\n"
        "    ...\n"
        "    if step % 1000 == 0:\n"
        "        gc.collect()         # on all ranks in the same step",
        verify=VERIFY,
        caveats=(
            "Memory in cycles of references lives until the next collection: watch it grow.",
            "Ranks that collect in different steps wait for each other.",
        ),
    ),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="runtime",
    links=(
        "https://docs.python.org/3/library/gc.html#gc.freeze",
        "https://github.com/pytorch/torchtitan/blob/main/torchtitan/tools/utils.py",
    ),
    origin="torchtitan's GC handler; MindStudio Insight's gc rule, without its guessing from gaps",
    culprit="collecting garbage",
)
