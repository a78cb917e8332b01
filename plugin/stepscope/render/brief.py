"""A report of bounded length for a chat or an agent: numbers and what to do, and no more.

Whatever the run's size, it has at most `LIMIT` characters. Of each run the verdict comes first,
then its worst finding, where the time goes, and the rest as far as it fits; what does not is
counted.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.base.formatting import count
from stepscope.base.report import Report, RunReport
from stepscope.render import advice_phrases as told
from stepscope.render import job_phrases, phrases
from stepscope.render.advice_sections import Advised, Told, advised
from stepscope.render.markdown_escape import line

LIMIT = 4000
FOR_THE_END = 340
"""Characters kept for what was left out, and how to get it."""
NAME, VERDICT, BUDGET, FINDING, FIX, OTHER = 90, 320, 400, 460, 160, 300
"""Most characters of a line, or of that part of one."""
RUNS_FIRST = 8
"""So many runs, the worst first, are told of before the others' verdicts."""
RULES_NAMED = 6
SEVERITIES = ("critical", "warning", "info")
MORE = (
    "More: stepscope advise PATH --format json (all evidence), stepscope explain RULE "
    "(what a rule looks at)."
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line, its place among those that want room (0 first), and what it is called if left out.

    What goes by no name is not missed.
    """

    text: str
    urgency: int
    kind: str


def render(report: Report) -> str:
    """Return the report in at most `LIMIT` characters."""
    runs = sorted(report.runs, key=_worst)
    blocks = [
        list(_lines(advised(run), is_first=place < RUNS_FIRST)) for place, run in enumerate(runs)
    ]
    unread = [
        Line(text=f"Not read: {line(each, OTHER)}", urgency=1, kind="unread file")
        for each in phrases.problems(report)
    ]
    blocks.append(unread)
    head = f"stepscope {report.version}".strip() + f" on {count(len(runs), 'run')}\n"
    kept, left = _kept(blocks, LIMIT - len(head) - FOR_THE_END)
    body = "".join(f"{each.text}\n" for block in kept for each in block)
    return head + body + _left_out(left) + MORE + "\n"


def _worst(run: RunReport) -> int:
    """Return where a run stands among others: the one with the most serious finding first."""
    found = {each.severity for each in run.outcomes if each.status == "found"}
    return next((place for place, each in enumerate(SEVERITIES) if each in found), len(SEVERITIES))


def _kept(blocks: list[list[Line]], room: int) -> tuple[list[list[Line]], Counter[str]]:
    """Return the lines that there is room for, in their order, and how many of what there is not.

    The most urgent of all runs come first; a run without its first line has none, and where one of
    a kind is left out so are those behind it.
    """
    places = sorted(
        (each.urgency, block, place)
        for block, lines in enumerate(blocks)
        for place, each in enumerate(lines)
    )
    kept: set[tuple[int, int]] = set()
    left: Counter[str] = Counter()
    closed: set[tuple[int, str]] = set()
    for _, block, place in places:
        each = blocks[block][place]
        is_wanted = not place or (block, 0) in kept
        if is_wanted and (block, each.kind) not in closed and len(each.text) < room:
            kept.add((block, place))
            room -= len(each.text) + 1
        elif is_wanted and each.kind:
            closed.add((block, each.kind))
            left[each.kind] += 1
    return [
        [each for place, each in enumerate(lines) if (block, place) in kept]
        for block, lines in enumerate(blocks)
    ], left


def _left_out(left: Counter[str]) -> str:
    if not left:
        return ""
    parts = (count(number, kind) for kind, number in left.items())
    return f"Left out for length: {', '.join(parts)}.\n"


def _lines(advice: Advised, *, is_first: bool) -> Iterator[Line]:
    """Yield what there is to say of a run, in the order in which it is read."""
    verdict = line(told.verdict(advice), VERDICT if is_first else VERDICT // 2)
    yield Line(
        text=f"\nRun {line(advice.run.name, NAME)}: {verdict}",
        urgency=0 if is_first else 3,
        kind="run",
    )
    for missing in job_phrases.not_recorded(advice.run):
        yield Line(text=f"- {line(missing, OTHER)}", urgency=1, kind="missing rank")
    if job := job_phrases.job(advice.run):
        yield Line(text=f"- {line(job, BUDGET)}", urgency=2, kind="saving of the job")
    for unhealthy in advice.health:
        text = phrases.health(unhealthy.item)
        yield Line(text=f"- Recording: {line(text, OTHER)}", urgency=4, kind="health item")
    if budget := _budget(advice):
        yield Line(text=budget, urgency=2, kind="time budget")
    for stand in advice.standings:
        text = f"- {told.STATES[stand.state]}{_where(stand.where)}: {line(stand.message, OTHER)}"
        yield Line(text=text, urgency=1, kind="state")
    for number, each in enumerate(advice.found, start=1):
        urgency = 1 if number == 1 else 2 + number
        yield Line(text=_finding(number, each, advice), urgency=urgency, kind="finding")
    for each in advice.rejected:
        text = line(f"{each.outcome.rule}: {each.outcome.message}", OTHER)
        yield Line(text=f"- Rejected{_where(each.where)}: {text}", urgency=7, kind="rejected one")
    yield from _untold(advice)


def _where(where: str) -> str:
    return f" ({where})" if where else ""


def _budget(advice: Advised) -> str:
    rows = told.budget(advice.lead) if advice.lead else ()
    if not rows or advice.lead is None:
        return ""
    parts = (
        f"{row.label} {row.share}"
        + (f" ({row.recoverable} to win back)" if row.recoverable_share > 0 else "")
        for row in sorted(rows, key=lambda row: -row.tenths)
    )
    whole = told.whole(advice.lead)
    whose = "" if advice.is_single else " of the slowest recording"
    return line(f"- {whole.label}{whose}, {whole.time}: {', '.join(parts)}", BUDGET)


def _finding(number: int, each: Told, advice: Advised) -> str:
    outcome = each.outcome
    if each.is_covered:
        text = f"{outcome.title}; the same time is counted above"
        return line(f"{number}. {outcome.severity} {outcome.rule}: {text}.", OTHER)
    marks = "".join(f" ({mark})" for mark in told.marks(outcome))
    facts = phrases.sentences(
        f"{number}. {outcome.severity} {outcome.rule}{marks}: {outcome.title}",
        told.sentence(told.savings(each, advice.per), told.qualities(outcome)),
        job_phrases.job_saving(each, advice.run.job),
        told.place(each),
        *job_phrases.related(each),
        phrases.cut(f"Fix: {outcome.fix.summary}", FIX) if outcome.fix else "",
        f"Measured: {outcome.message}",
    )
    return line(facts, FINDING)


def _untold(advice: Advised) -> Iterator[Line]:
    """Yield what has no answer, what was put aside, and how many rules found nothing."""
    for status in ("cannot-tell", "failed"):
        for reason in advice.reasons.get(status, ()):
            rules = ", ".join(reason.rules[:RULES_NAMED])
            rest = told.more(len(reason.rules), RULES_NAMED, "rule")
            remedy = f" To record it: {reason.remedy}" if reason.remedy else ""
            text = f"{rules}{f' {rest}' if rest else ''}: {reason.text}{remedy}"
            yield Line(
                text=f"- {told.GROUPS[status]}{_where(reason.where)}: {line(text, OTHER)}",
                urgency=5,
                kind="reason",
            )
    for each in advice.suppressed:
        text = line(f"{each.outcome.rule}: {told.aside(each.outcome)}", OTHER)
        yield Line(text=f"- Suppressed{_where(each.where)}: {text}", urgency=8, kind="suppression")
    passed = sum(len(each.rules) for each in advice.passed)
    others = sum(len(each.rules) for each in advice.reasons.get("not-applicable", ()))
    text = f"- {count(passed, 'rule')} passed, {others:,} had nothing to look at."
    yield Line(text=text, urgency=6, kind="")
