"""Phrases of all forms: values with their units, names, sentences."""

import re
from collections.abc import Callable, Sequence

from stepscope.base import formatting, urls
from stepscope.base.findings import EventReference, Evidence, Outcome, Unit
from stepscope.base.formatting import capitalized
from stepscope.base.plain_text import plain
from stepscope.base.report import HealthItem, HealthReport, Problem, Report, WorkerReport

AS_TEXT: dict[Unit, Callable[[float], str]] = {
    "ns": formatting.duration,
    "bytes": formatting.size,
    "bytes/s": formatting.rate,
    "share": formatting.share,
}
FILES_NAMED = 3
"""Files that are named of those with the same problem."""
NUMBER = re.compile(r"\d[\d.,_]*")
LONGEST_NAME = 120
"""Characters of a kernel's or event's name; the rest is templates."""


def cut(text: str, most: int = LONGEST_NAME) -> str:
    """Return text of at most `most` characters, marked where it was cut off."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def trace_name(worker: WorkerReport) -> str:
    """Return a trace's worker, rank, span, events and vendor."""
    rank = f", rank {worker.rank}" if worker.rank is not None else ""
    origin = " · synthetic: written by stepscope, not recorded" if worker.synthetic else ""
    events = formatting.count(worker.events, "event")
    return plain(f"{worker.name}{rank}, span {worker.span} · {events} · {worker.dialect}{origin}")


def value(value: float | str | None, unit: Unit) -> str:
    """Return a value with its unit; a dash where it is unknown."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return plain(value)
    if unit in AS_TEXT:
        return AS_TEXT[unit](value)
    return f"{value:,}" if isinstance(value, int) else formatting.significant(value)


def evidence(fact: Evidence) -> tuple[str, str]:
    """Return a fact's label and value."""
    return plain(fact.label), value(fact.value, fact.unit)


def event(reference: EventReference) -> str:
    """Return an event's name, duration, track and start."""
    detail = f": {reference.detail}" if reference.detail else ""
    return plain(
        f"{cut(reference.name)}, {formatting.duration(reference.duration_ns)} on {reference.track} "
        f"at {formatting.duration(reference.start_ns)}{detail}"
    )


def problems(report: Report | HealthReport) -> tuple[str, ...]:
    """Return a line per unreadable file, or one line for many with the same problem."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in report.problems:
        key = NUMBER.sub("0", problem.message), problem.remedy
        groups.setdefault(key, []).append(problem)
    return tuple(
        line
        for same in groups.values()
        for line in (map(_problem, same) if len(same) <= FILES_NAMED else [_problems(same)])
    )


def _problem(problem: Problem) -> str:
    return sentences(f"{problem.path}: {problem.message}", problem.remedy)


def _problems(same: Sequence[Problem]) -> str:
    """Return the problem of many files in one line that names the first files."""
    first = same[0]
    names = ", ".join(urls.name(problem.path) or problem.path for problem in same[1:FILES_NAMED])
    left = formatting.count(len(same) - FILES_NAMED, "more file")
    if any(problem.message != first.message for problem in same):
        others = f"The same, with other numbers: {names} and {left}"
        return sentences(f"{first.path}: {first.message}", others, first.remedy)
    return sentences(f"{first.path}, {names} and {left}: {first.message}", first.remedy)


def doubt(outcome: Outcome) -> str:
    """Return the damage that puts an outcome in doubt; empty where there is none."""
    return sentences(*map(capitalized, outcome.doubts))


def health(item: HealthItem) -> str:
    """Return a health item's message, the reader's action, and the remedy."""
    done = f"; {item.action}" if item.action else ""
    return sentences(f"{item.message}{done}", item.remedy)


def sentences(*texts: str) -> str:
    """Return texts joined, each with a full stop."""
    stripped = [plain(text.strip()) for text in texts if text.strip()]
    return " ".join(text if text.endswith((".", "!", "?")) else f"{text}." for text in stripped)
