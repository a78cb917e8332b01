"""Python's garbage collector stops the program in the loop."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import event_references
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.host.garbage_collection import Collections, collections
from stepscope.base.calibration import GARBAGE_COLLECTION
from stepscope.base.findings import EventReference, Evidence, EvidenceTable, Fix
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuledOut, RuleResult, option, severity_of
from stepscope.rules.shared import facts, phrases

MOST_SHOWN = 10
MOSTLY = 0.5


@dataclass(frozen=True, kw_only=True)
class Options:
    """Shares of the window, from 0 to 1."""

    least_share: float = option(
        0.01,
        "Time in collections from which they are worth a word.",
        origin="ours: below 1 % no rule speaks; MindStudio Insight's `gc` rule lists collections "
        "of 1 ms and longer",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report collections of garbage, by the time in which no device works."""
    found = collections(trace)
    exposed = intervals.difference(found.times, all_busy(trace))
    least_ns = options.least_share * window(trace).reference_ns
    if intervals.duration_ns(found.times) < least_ns:
        return
    if intervals.duration_ns(exposed) < least_ns:
        yield RuledOut(
            message=f"{_message(trace, found)}; but {_device(trace)} is at work meanwhile, and "
            f"stands still for {_time(trace, exposed)}: collecting less would save next to "
            "nothing.",
            evidence=_evidence(found, exposed),
            tables=(_table(trace, found),),
            events=_events(trace, found),
        )
        return
    exposed_share = intervals.duration_ns(exposed) / window(trace).reference_ns
    yield Finding(
        severity=severity_of(exposed_share) or "info",
        message=f"{_message(trace, found)}{_standing_still(trace, exposed)}.",
        evidence=_evidence(found, exposed),
        tables=(_table(trace, found),),
        events=_events(trace, found),
        locations=event_references.source_lines(line for line, _ in _by_line(trace, found)),
        claims=(
            Claim(exposed, GARBAGE_COLLECTION, "Time in collections in which no device works."),
        ),
        fix=_fix(found),
    )


def _time(trace: Trace, times: Intervals) -> str:
    return phrases.time_and_fraction(trace, intervals.duration_ns(times))


def _message(trace: Trace, found: Collections) -> str:
    calls = intervals.duration_ns(found.asked_for) / max(1, intervals.duration_ns(found.times))
    called = f", {share(calls)} of it in gc.collect()" if calls else ""
    return (
        f"Python collects garbage {count(len(found.rows), 'time')}, for "
        f"{_time(trace, found.times)}{called}"
    )


def _device(trace: Trace) -> str:
    return f"the {trace.dialect.device}"


def _standing_still(trace: Trace, exposed: Intervals) -> str:
    if not len(trace.device_events):
        return ""
    return f"; {_device(trace)} stands still meanwhile for {_time(trace, exposed)}"


def _evidence(found: Collections, exposed: Intervals) -> tuple[Evidence, ...]:
    total_ns, exposed_ns = intervals.duration_ns(found.times), intervals.duration_ns(exposed)
    asked_ns = intervals.duration_ns(found.asked_for)
    return (
        facts.count("Collections", len(found.rows)),
        facts.duration("Time in collections", total_ns),
        facts.duration("In gc.collect()", asked_ns),
        facts.duration("While no device works", exposed_ns),
    )


def _by_line(trace: Trace, found: Collections) -> list[tuple[str, int]]:
    """Return the user's lines in which it runs, and for how long, the longest first."""
    total: Counter[str] = Counter()
    durations = trace.python_calls["duration_ns"].to_numpy()[found.rows].tolist()
    for line, duration_ns in zip(found.lines, durations, strict=True):
        total[line] += duration_ns
    return total.most_common()


def _table(trace: Trace, found: Collections) -> EvidenceTable:
    counts = Counter(found.lines)
    rows = tuple(
        (line or None, counts[line], total_ns)
        for line, total_ns in _by_line(trace, found)[:MOST_SHOWN]
    )
    return facts.table(
        "Where it collects", {"Source line": "code", "Collections": "count", "Time": "ns"}, rows
    )


def _events(trace: Trace, found: Collections) -> tuple[EventReference, ...]:
    durations = trace.python_calls["duration_ns"].to_numpy()[found.rows]
    longest = np.argsort(-durations, kind="stable")[:MOST_SHOWN].tolist()
    return tuple(
        event_references.python_call(trace, int(found.rows[at]), detail=found.lines[at])
        for at in longest
    )


def _fix(found: Collections) -> Fix:
    total_ns = max(1, intervals.duration_ns(found.times))
    if intervals.duration_ns(found.asked_for) >= MOSTLY * total_ns:
        return Fix(
            "Do not call gc.collect() in every step.",
            "if step % 1000 == 0:   # or never: reference counts free tensors at once\n"
            "    gc.collect()",
            verify=VERIFY,
            caveats=("Memory in cycles of references lives until the next collection.",),
        )
    return RULE.fix


VERIFY = "Record again with record_python_gc_info=True: `Python GC` takes less than 1 % of a step."
CAVEATS = (
    "Memory in cycles of references lives until the next collection: watch it grow.",
    "Ranks that collect in different steps wait for each other.",
)
RULE = Rule(
    id="python-gc-pauses",
    title="Python's garbage collection stops the loop",
    category="kernel launch",
    why="While Python looks for cycles of references, no thread runs Python: nothing is launched. "
    "A full collection looks at every object of the program, of which there may be millions.",
    detects="Runs of the collector (`Python GC`, recorded with `record_python_gc_info=True` since "
    "torch 2.9) and calls of `gc.collect()`, from `least_share` of the window on.",
    silent=(
        "A collection is never guessed from a gap in which nothing was recorded.",
        "Collections during which the device works cost nothing: they are listed as rejected.",
    ),
    saving="The time in collections in which no device works; at least three quarters of it, since "
    "what is collected less often takes longer.",
    fix=Fix(
        "Leave out of collections what stays, and collect when it suits you.",
        "# behind the warm-up, before the loop:\n"
        "gc.collect(); gc.freeze()    # model, optimizer and datasets are not looked at again\n"
        "gc.disable()\n"
        "for step, batch in enumerate(loader):\n"
        "    ...\n"
        "    if step % 1000 == 0:\n"
        "        gc.collect()         # on all ranks in the same step",
        verify=VERIFY,
        caveats=CAVEATS,
    ),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority=40,
    links=(
        "https://docs.python.org/3/library/gc.html#gc.freeze",
        "https://github.com/pytorch/torchtitan/blob/main/torchtitan/tools/utils.py",
    ),
    origin="torchtitan's GC handler; MindStudio Insight's gc rule, without its guessing from gaps",
    culprit="collecting garbage",
)
