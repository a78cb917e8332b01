"""A report in Markdown, fit for an issue or a pull request."""

from collections.abc import Iterable, Iterator

from stepscope.base.findings import Evidence, EvidenceTable, Fix, Outcome
from stepscope.base.report import Report
from stepscope.render import advice_phrases as told
from stepscope.render import job_phrases, phrases
from stepscope.render.advice_sections import Advised, Told, advised
from stepscope.render.evidence_table import is_text
from stepscope.render.markdown_escape import code, fenced, folded, link, table, text

RECOVERABLE = "could be won back"


def render(report: Report) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [line for run in report.runs for line in _run(advised(run))]
    problems = phrases.problems(report)
    if problems:
        lines += ["## Not read", "", *(f"- {text(line)}" for line in problems), ""]
    return "\n".join(lines).rstrip() + "\n"


def _run(advice: Advised) -> Iterator[str]:
    yield from (f"## {text(advice.run.name)}", "")
    yield from (f"**{text(told.verdict(advice))}**", "")
    yield from _recorded(advice)
    if job := job_phrases.job(advice.run):
        yield from (text(job), "")
    if rows := told.recordings(advice):
        yield from table(("recording", "step:", "device busy:"), [map(text, row) for row in rows])
        if left := told.more(len(advice.run.workers), len(rows), "recording"):
            yield from (left, "")
        for line in told.represented(advice):
            yield from (text(line), "")
    yield from (text(told.recording(advice)), "")
    if settings := told.settings(advice):
        yield from (text(settings), "")
    if verdict := told.own_verdict(advice):
        yield from (text(verdict), "")
    yield from _budget(advice)
    yield from _standings(advice)
    for number, each in enumerate(advice.found, start=1):
        yield from _finding(number, each, advice)
    yield from _rejected(advice)
    yield from _rest(advice)


def _recorded(advice: Advised) -> Iterator[str]:
    """Yield what is missing, and what is wrong with what is there."""
    for missing in job_phrases.not_recorded(advice.run):
        yield from (f"> {text(missing)}", "")
    for unhealthy in advice.health:
        where = f" ({unhealthy.where})" if unhealthy.where else ""
        yield from (f"> The recording{where}: {text(phrases.health(unhealthy.item))}", "")


def _budget(advice: Advised) -> Iterator[str]:
    rows = told.budget(advice.lead) if advice.lead else ()
    if not rows or advice.lead is None:
        return
    yield from table(
        ("where the time goes", "time:", "share:", f"{RECOVERABLE}:", "by"),
        [
            (
                text(row.label) if row.category else f"**{text(row.label)}**",
                row.time,
                row.share,
                row.recoverable,
                _by(row.rules),
            )
            for row in (*rows, told.whole(advice.lead))
        ],
    )


def _by(rules: tuple[str, ...]) -> str:
    more = told.more(len(rules), told.RULES_SHOWN, "rule")
    return " ".join(part for part in (_names(rules[: told.RULES_SHOWN]), more) if part)


def _names(rules: Iterable[str]) -> str:
    return ", ".join(map(code, rules))


def _standings(advice: Advised) -> Iterator[str]:
    for stand in advice.standings:
        where = f" ({stand.where})" if stand.where else ""
        yield from (f"**{told.STATES[stand.state]}{where}:** {text(stand.message)}", "")
    if not advice.standings and not advice.found:
        yield from (told.NOTHING_FOUND, "")


def _finding(number: int, each: Told, advice: Advised) -> Iterator[str]:
    outcome = each.outcome
    severity = (outcome.severity or "info").capitalize()
    marks = "".join(f" ({text(mark)})" for mark in told.marks(outcome))
    yield from (f"### {number}. {severity}: {text(outcome.title)}{marks}", "")
    saving = told.savings(each, advice.per)
    qualities = "" if each.is_covered else told.qualities(outcome)
    facts = [
        f"**{phrases.capitalised(saving)}**" if saving else "",
        qualities if saving else phrases.capitalised(qualities),
        code(outcome.rule),
    ]
    yield from (" · ".join(fact for fact in facts if fact), "")
    if job := job_phrases.job_saving(each, advice.run.job):
        yield from (text(job), "")
    if place := told.place(each):
        yield from (text(place), "")
    yield from (text(outcome.message), "")
    for line in job_phrases.related(each):
        yield from (text(line), "")
    if each.is_covered:
        method = outcome.claim.method if outcome.claim else ""
        yield from (text(phrases.sentences(told.COVERED, method)), "")
        return
    yield from _also(each)
    if why := phrases.doubt(outcome):
        yield from (f"**Doubtful:** {text(why)}", "")
    if outcome.claim and outcome.claim.method:
        yield from (f"Reckoned: {text(outcome.claim.method)}", "")
    yield from _facts(outcome.evidence)
    yield from _proof(outcome)
    if outcome.fix:
        yield from _fix(outcome.fix)
    yield from _links(outcome)


def _also(each: Told) -> Iterator[str]:
    for other in each.also[: told.ALSO_SHOWN]:
        yield f"- Also: {text(other.message)}"
    if left := told.more(len(each.also), told.ALSO_SHOWN, "of the same"):
        yield f"- {left}"
    if each.also:
        yield ""


def _facts(evidence: tuple[Evidence, ...]) -> Iterator[str]:
    rows = []
    for fact in evidence:
        label, value = phrases.evidence(fact)
        rows.append((text(label), code(value) if fact.unit == "code" else text(value)))
    if rows:
        yield from table(("evidence", "value:"), rows)


def _proof(outcome: Outcome) -> Iterator[str]:
    for each in outcome.tables:
        yield from _evidence_table(each)
    for reference in outcome.events[: told.EVENTS_SHOWN]:
        yield f"- {text(phrases.event(reference))}"
    if outcome.events:
        yield ""
    if outcome.locations:
        lines = outcome.locations[: told.LINES_SHOWN]
        yield from (f"At {', '.join(code(told.source_line(line)) for line in lines)}", "")


def _evidence_table(evidence: EvidenceTable) -> Iterator[str]:
    if not evidence.rows:
        return
    yield from (f"{text(phrases.capitalised(evidence.label))}:", "")
    headings = (
        text(column.label) + ("" if is_text(column) else ":") for column in evidence.columns
    )
    rows = (
        [
            code(phrases.cut(phrases.value(cell, column.unit)))
            if column.unit == "code" and cell is not None
            else text(phrases.cut(phrases.value(cell, column.unit)))
            for cell, column in zip(row.cells, evidence.columns, strict=False)
        ]
        for row in evidence.rows[: told.ROWS_SHOWN]
    )
    yield from table(tuple(headings), rows)
    if left := told.more(len(evidence.rows), told.ROWS_SHOWN, "row"):
        yield from (left, "")


def _fix(fix: Fix) -> Iterator[str]:
    yield from (f"**Fix:** {text(fix.summary)}", "")
    if fix.code:
        yield from fenced(fix.code, fix.language)
    if fix.verify:
        yield from (f"**Check:** {text(fix.verify)}", "")
    for caveat in fix.caveats:
        yield from (f"**Mind:** {text(caveat)}", "")


def _links(outcome: Outcome) -> Iterator[str]:
    links = [found for each in outcome.links if (found := link(each))]
    if links:
        yield from (f"More: {', '.join(links)}", "")


def _rejected(advice: Advised) -> Iterator[str]:
    """Yield what looks like a fault and costs nothing, with the numbers that acquit it."""
    if advice.rejected:
        yield from (f"### {told.REJECTED}", "")
    for each in advice.rejected:
        where = f" ({each.where})" if each.where else ""
        title = f"**{text(each.outcome.title)}** {code(each.outcome.rule)}{where}"
        yield from (f"{title}: {text(each.outcome.message)}", "")
        yield from _facts(each.outcome.evidence)


def _rest(advice: Advised) -> Iterator[str]:
    if advice.suppressed:
        yield from folded(f"Suppressed ({len(advice.suppressed)})", _suppressed(advice))
    for status, label in told.GROUPS.items():
        reasons = advice.reasons.get(status, ())
        if not reasons:
            continue
        lines = []
        for reason in reasons:
            where = f" ({reason.where})" if reason.where else ""
            remedy = f" To record it: {code(reason.remedy)}" if reason.remedy else ""
            lines.append(f"- {_names(reason.rules)}{where}: {text(reason.text)}{remedy}")
        yield from folded(f"{label} ({sum(len(each.rules) for each in reasons)})", lines)
    for passed in advice.passed:
        why = f" {text(passed.why)}" if passed.why else ""
        yield from folded(passed.label, [f"{_names(passed.rules)}.{why}"])


def _suppressed(advice: Advised) -> Iterator[str]:
    for each in advice.suppressed:
        saving = told.sentence(told.savings(each, advice.per))
        where = f" ({each.where})" if each.where else ""
        about = text(phrases.sentences(told.aside(each.outcome), saving))
        yield f"- {code(each.outcome.rule)}{where}: {about}"
