"""A report in Markdown, fit for an issue or a pull request."""

import re
from collections.abc import Iterator

from stepscope.render import words
from stepscope.render.words import WorkerAdvice
from stepscope.report import Fix, Outcome, Report, RunReport

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#@])")
"""What Markdown would act upon; `@` too, which would call a person."""
LINE_BREAKS = re.compile(r"\s*[\r\n\u2028\u2029]\s*")


def render(report: Report) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [line for run in report.runs for line in _run(run)]
    problems = words.problems(report)
    if problems:
        lines += ["## Not read", "", *(f"- {_text(line)}" for line in problems), ""]
    return "\n".join(lines).rstrip() + "\n"


def _text(text: str) -> str:
    """Return one line of text that Markdown shows as it is."""
    return SPECIAL.sub(r"\\\1", LINE_BREAKS.sub(" ", words.plain(text)))


def _code(text: str) -> str:
    """Return a name set as code."""
    plain = LINE_BREAKS.sub(" ", words.plain(text)).replace("|", "\\|")
    ticks = "`" * (max(map(len, re.findall(r"`+", plain)), default=0) + 1)
    space = " " if "`" in plain else ""
    return f"{ticks}{space}{plain}{space}{ticks}"


def _fenced(code: str, language: str) -> list[str]:
    fence = "`" * max(3, max(map(len, re.findall(r"`+", code)), default=0) + 1)
    return [f"{fence}{language}", words.plain(code.rstrip()), fence, ""]


def _run(run: RunReport) -> Iterator[str]:
    yield from (f"## {_text(run.name)}", "")
    for advice in words.by_worker(run):
        yield from _worker(advice)


def _worker(advice: WorkerAdvice) -> Iterator[str]:
    worker = advice.worker
    yield from (f"### {_text(words.recording(worker))}", "", f"**{_text(worker.verdict)}**", "")
    if parts := words.breakdown(worker):
        yield from (f"{'Mean step' if worker.step.count else 'Time'}: {_text(parts)}", "")
    for item in worker.health:
        if item.severity != "info":
            yield f"> The recording: {_text(f'{item.message}. {item.remedy}'.strip())}"
            yield ""
    found = advice.of("found")
    if not found:
        yield from (words.NOTHING_FOUND, "")
    for number, outcome in enumerate(found, start=1):
        yield from _finding(number, outcome, advice.per)
    yield from _rest(advice)


def _finding(number: int, outcome: Outcome, per: str) -> Iterator[str]:
    severity = (outcome.severity or "info").capitalize()
    yield from (f"#### {number}. {severity}: {_text(outcome.title)}", "")
    saving = words.saving(outcome, per)
    sureness = words.CONFIDENCE[outcome.confidence] if outcome.confidence else ""
    facts = [f"**{saving}**" if saving else "", sureness, _code(outcome.rule)]
    yield from (" · ".join(fact for fact in facts if fact), "", _text(outcome.message), "")
    if outcome.claim and outcome.claim.method:
        yield from (f"Reckoned: {_text(outcome.claim.method)}", "")
    if outcome.evidence:
        yield from ("| evidence | value |", "|---|---:|")
        for fact in outcome.evidence:
            label, value = words.evidence(fact)
            yield f"| {_text(label)} | {_code(value) if fact.unit == 'code' else _text(value)} |"
        yield ""
    for reference in outcome.events[: words.EVENTS_SHOWN]:
        yield f"- {_text(words.event(reference))}"
    if outcome.events:
        yield ""
    if outcome.fix:
        yield from _fix(outcome.fix)


def _fix(fix: Fix) -> Iterator[str]:
    yield from (f"**Fix:** {_text(fix.summary)}", "")
    if fix.code:
        yield from _fenced(fix.code, fix.language)
    if fix.verify:
        yield from (f"**Check:** {_text(fix.verify)}", "")
    for caveat in fix.caveats:
        yield from (f"**Mind:** {_text(caveat)}", "")


def _rest(advice: WorkerAdvice) -> Iterator[str]:
    if passed := advice.of("passed"):
        names = ", ".join(_code(outcome.rule) for outcome in passed)
        yield from (f"Passed ({len(passed)}): {names}", "")
    for status, label in words.REST.items():
        outcomes = advice.of(status)
        if not outcomes:
            continue
        yield from (f"<details><summary>{label} ({len(outcomes)})</summary>", "")
        for reason in words.reasons(outcomes):
            names = ", ".join(map(_code, reason.rules))
            remedy = f" To record it: {_code(reason.remedy)}" if reason.remedy else ""
            yield f"- {names}: {_text(reason.text)}{remedy}"
        yield from ("", "</details>", "")
