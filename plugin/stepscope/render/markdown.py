"""A report in Markdown, fit for an issue or a pull request."""

from collections.abc import Iterator

from stepscope.render import words
from stepscope.render.markup import code, fenced, text
from stepscope.render.words import WorkerAdvice
from stepscope.report import Fix, Outcome, Report, RunReport


def render(report: Report) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [line for run in report.runs for line in _run(run)]
    problems = words.problems(report)
    if problems:
        lines += ["## Not read", "", *(f"- {text(line)}" for line in problems), ""]
    return "\n".join(lines).rstrip() + "\n"


def _run(run: RunReport) -> Iterator[str]:
    yield from (f"## {text(run.name)}", "")
    for advice in words.by_worker(run):
        yield from _worker(advice)


def _worker(advice: WorkerAdvice) -> Iterator[str]:
    worker = advice.worker
    yield from (f"### {text(words.recording(worker))}", "", f"**{text(worker.verdict)}**", "")
    if parts := words.breakdown(worker):
        yield from (f"{'Mean step' if worker.step.count else 'Time'}: {text(parts)}", "")
    for item in worker.health:
        if item.severity != "info":
            yield f"> The recording: {text(words.health(item))}"
            yield ""
    found = advice.of("found")
    if not found:
        yield from (words.NOTHING_FOUND, "")
    for number, outcome in enumerate(found, start=1):
        yield from _finding(number, outcome, advice.per)
    yield from _rest(advice)


def _finding(number: int, outcome: Outcome, per: str) -> Iterator[str]:
    severity = (outcome.severity or "info").capitalize()
    yield from (f"#### {number}. {severity}: {text(outcome.title)}", "")
    saving = words.saving(outcome, per)
    sureness = words.CONFIDENCE[outcome.confidence] if outcome.confidence else ""
    facts = [f"**{saving}**" if saving else "", sureness, code(outcome.rule)]
    yield from (" · ".join(fact for fact in facts if fact), "", text(outcome.message), "")
    if why := words.doubt(outcome):
        yield from (f"**Doubtful:** {text(why)}", "")
    if outcome.claim and outcome.claim.method:
        yield from (f"Reckoned: {text(outcome.claim.method)}", "")
    if outcome.evidence:
        yield from ("| evidence | value |", "|---|---:|")
        for fact in outcome.evidence:
            label, value = words.evidence(fact)
            yield f"| {text(label)} | {code(value) if fact.unit == 'code' else text(value)} |"
        yield ""
    for reference in outcome.events[: words.EVENTS_SHOWN]:
        yield f"- {text(words.event(reference))}"
    if outcome.events:
        yield ""
    if outcome.fix:
        yield from _fix(outcome.fix)


def _fix(fix: Fix) -> Iterator[str]:
    yield from (f"**Fix:** {text(fix.summary)}", "")
    if fix.code:
        yield from fenced(fix.code, fix.language)
    if fix.verify:
        yield from (f"**Check:** {text(fix.verify)}", "")
    for caveat in fix.caveats:
        yield from (f"**Mind:** {text(caveat)}", "")


def _rest(advice: WorkerAdvice) -> Iterator[str]:
    for passed in words.passed(advice.of("passed")):
        names = ", ".join(map(code, passed.rules))
        yield from (f"{passed.label}: {names}{f'. {text(passed.why)}' if passed.why else ''}", "")
    for status, label in words.REST.items():
        outcomes = advice.of(status)
        if not outcomes:
            continue
        yield from (f"<details><summary>{label} ({len(outcomes)})</summary>", "")
        for reason in words.reasons(outcomes):
            names = ", ".join(map(code, reason.rules))
            remedy = f" To record it: {code(reason.remedy)}" if reason.remedy else ""
            yield f"- {names}: {text(reason.text)}{remedy}"
        yield from ("", "</details>", "")
