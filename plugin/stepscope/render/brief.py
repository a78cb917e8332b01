"""A report of at most `LIMIT` characters for a chat or an agent: numbers and fixes.

Of each run the verdict comes first, then its worst finding, the time budget, and the rest as far as
it fits; a last line counts the lines left out.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.base.formatting import count
from stepscope.base.report import Report, RunReport
from stepscope.render import advice_phrases as labels
from stepscope.render import job_phrases, outlook_phrases, phrases
from stepscope.render.advice_sections import (
    SEVERITIES,
    AdviceItem,
    AdviceSections,
    advice_sections,
)
from stepscope.render.markdown_escape import line

LIMIT = 4000
FOR_THE_END = 340
"""Characters reserved for the count of lines left out, and for `MORE`."""
NAME, VERDICT, BUDGET, FINDING, FIX, OTHER = 90, 320, 400, 460, 160, 300
"""Most characters of a line, or of that part of a line."""
RUNS_FIRST = 8
"""Runs, the worst first, whose findings come before the verdicts of the other runs."""
RULES_NAMED = 6
MORE = (
    "More: stepscope advise PATH --format json (all evidence), stepscope explain RULE "
    "(details of a rule)."
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line, its urgency (0 is highest), and the noun that counts it if it is left out.

    Lines without a noun are not counted.
    """

    text: str
    urgency: int
    kind: str


def render(report: Report) -> str:
    """Return the report in at most `LIMIT` characters."""
    runs = sorted(report.runs, key=_worst)
    blocks = [
        list(_lines(advice_sections(run), is_first=number < RUNS_FIRST))
        for number, run in enumerate(runs)
    ]
    blocks.append(
        [
            Line(text=f"Not read: {line(problem, OTHER)}", urgency=1, kind="unread file")
            for problem in phrases.problems(report)
        ]
    )
    head = f"stepscope {report.version}".strip() + f" on {count(len(runs), 'run')}\n"
    texts, left = _fitting(blocks, LIMIT - len(head) - FOR_THE_END)
    if left:
        parts = (count(number, kind) for kind, number in left.items())
        texts.append(f"Left out for length: {', '.join(parts)}.")
    return head + "".join(f"{text}\n" for text in (*texts, MORE))


def _worst(run: RunReport) -> int:
    """Return a sort key: runs with the most serious finding first."""
    severities = {outcome.severity for outcome in run.outcomes if outcome.status == "found"}
    ranks = (rank for rank, severity in enumerate(SEVERITIES) if severity in severities)
    return next(ranks, len(SEVERITIES))


def _fitting(blocks: list[list[Line]], room: int) -> tuple[list[str], Counter[str]]:
    """Return the lines that fit, in their order, and counts of the others.

    The most urgent lines of all runs come first. A run without its first line has none, and after a
    line that does not fit, no later line of its kind is taken.
    """
    positions = sorted(
        (entry.urgency, block, index)
        for block, lines in enumerate(blocks)
        for index, entry in enumerate(lines)
    )
    taken: set[tuple[int, int]] = set()
    left: Counter[str] = Counter()
    closed: set[tuple[int, str]] = set()
    for _, block, index in positions:
        entry = blocks[block][index]
        is_allowed = not index or (block, 0) in taken
        if is_allowed and (block, entry.kind) not in closed and len(entry.text) < room:
            taken.add((block, index))
            room -= len(entry.text) + 1
        elif is_allowed and entry.kind:
            closed.add((block, entry.kind))
            left[entry.kind] += 1
    return [blocks[block][index].text for block, index in sorted(taken)], left


def _lines(advice: AdviceSections, *, is_first: bool) -> Iterator[Line]:
    """Yield a run's lines in reading order."""
    verdict = line(labels.verdict(advice), VERDICT if is_first else VERDICT // 2)
    yield Line(
        text=f"\nRun {line(advice.run.name, NAME)}: {verdict}",
        urgency=0 if is_first else 3,
        kind="run",
    )
    for missing in job_phrases.not_recorded(advice.run):
        yield Line(text=f"- {line(missing, OTHER)}", urgency=1, kind="missing rank")
    if job := job_phrases.job(advice.run):
        yield Line(text=f"- {line(job, BUDGET)}", urgency=2, kind="saving of the job")
    for note in advice.health:
        text = phrases.health(note.item)
        yield Line(text=f"- Trace: {line(text, OTHER)}", urgency=4, kind="health item")
    if budget := _budget(advice):
        yield Line(text=budget, urgency=2, kind="time budget")
    for status in advice.status_notes:
        state = f"{labels.STATES[status.state]}{_where(status.where)}"
        yield Line(text=f"- {state}: {line(status.message, OTHER)}", urgency=1, kind="status")
    for number, item in enumerate(advice.findings, start=1):
        urgency = 1 if number == 1 else 2 + number
        yield Line(text=_finding(number, item, advice), urgency=urgency, kind="finding")
    yield from _outlook(advice)
    for item in advice.ruled_out:
        text = line(f"{item.outcome.rule}: {item.outcome.message}", OTHER)
        start = f"- {labels.RULED_OUT}{_where(item.where)}"
        yield Line(text=f"{start}: {text}", urgency=7, kind="ruled-out finding")
    yield from _other_outcomes(advice)


def _outlook(advice: AdviceSections) -> Iterator[Line]:
    if outlook := outlook_phrases.outlook(advice):
        yield Line(text=f"- {line(outlook, FINDING)}", urgency=2, kind="outlook")


def _where(where: str) -> str:
    return f" ({where})" if where else ""


def _budget(advice: AdviceSections) -> str:
    rows = labels.budget(advice.lead) if advice.lead else ()
    if not rows or advice.lead is None:
        return ""
    saving = labels.saving_heading(advice.lead)
    parts = (
        f"{row.label} {row.share}"
        + (f" ({saving} {row.recoverable})" if row.recoverable_share > 0 else "")
        for row in sorted(rows, key=lambda row: -row.tenths)
    )
    whole = labels.whole(advice.lead)
    of_trace = "" if advice.is_single else " of the slowest trace"
    return line(f"- {whole.label}{of_trace}, {whole.time}: {', '.join(parts)}", BUDGET)


def _finding(number: int, item: AdviceItem, advice: AdviceSections) -> str:
    outcome = item.outcome
    if item.is_covered:
        text = f"{outcome.title}; {labels.COVERED[:1].lower()}{labels.COVERED[1:]}"
        return line(f"{number}. {outcome.severity} {outcome.rule}: {text}.", OTHER)
    marks = "".join(f" ({mark})" for mark in labels.marks(outcome))
    facts = phrases.sentences(
        f"{number}. {outcome.severity} {outcome.rule}{marks}: {outcome.title}",
        labels.sentence(labels.savings(item, advice.per), labels.qualities(outcome)),
        job_phrases.job_saving(item, advice.run.job),
        labels.extent(item),
        *job_phrases.related(item),
        phrases.cut(f"Fix: {outcome.fix.summary}", FIX) if outcome.fix else "",
        f"Measured: {outcome.message}",
    )
    return line(facts, FINDING)


def _other_outcomes(advice: AdviceSections) -> Iterator[Line]:
    """Yield inconclusive and failed rules, suppressed findings, and the count of passed rules."""
    for status in ("cannot-tell", "failed"):
        for reason in advice.reasons.get(status, ()):
            rules = ", ".join(reason.rules[:RULES_NAMED])
            rest = labels.more(len(reason.rules), RULES_NAMED, "rule")
            remedy = f" To record it: {reason.remedy}" if reason.remedy else ""
            text = f"{rules}{f' {rest}' if rest else ''}: {reason.text}{remedy}"
            yield Line(
                text=f"- {labels.GROUPS[status]}{_where(reason.where)}: {line(text, OTHER)}",
                urgency=5,
                kind="reason",
            )
    for item in advice.suppressed:
        text = line(f"{item.outcome.rule}: {labels.suppression(item.outcome)}", OTHER)
        yield Line(text=f"- Suppressed{_where(item.where)}: {text}", urgency=8, kind="suppression")
    passed = sum(len(group.rules) for group in advice.passed)
    others = sum(len(reason.rules) for reason in advice.reasons.get("not-applicable", ()))
    text = f"- {count(passed, 'rule')} passed, {others:,} not applicable."
    yield Line(text=text, urgency=6, kind="")
