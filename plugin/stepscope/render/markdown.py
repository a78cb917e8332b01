"""A report in Markdown for an issue or a pull request."""

from collections.abc import Iterable, Iterator

from stepscope.base.findings import Evidence, EvidenceTable, Fix, Outcome
from stepscope.base.formatting import capitalized
from stepscope.base.report import Report
from stepscope.render import advice_phrases as labels
from stepscope.render import job_phrases, outlook_phrases, phrases
from stepscope.render.advice_sections import AdviceItem, AdviceSections, advice_sections
from stepscope.render.evidence_table import is_text
from stepscope.render.markdown_escape import code, fenced, folded, link, table, text


def render(report: Report) -> str:
    """Return the report in GitHub's Markdown."""
    lines = [line for run in report.runs for line in _run(advice_sections(run))]
    problems = phrases.problems(report)
    if problems:
        lines += ["## Not read", "", *(f"- {text(line)}" for line in problems), ""]
    return "\n".join(lines).rstrip() + "\n"


def _run(advice: AdviceSections) -> Iterator[str]:
    yield from (f"## {text(advice.run.name)}", "")
    yield from (f"**{text(labels.verdict(advice))}**", "")
    yield from _recorded(advice)
    if job := job_phrases.job(advice.run):
        yield from (text(job), "")
    if rows := labels.shown_traces(advice):
        yield from table(("trace", "step:", "device busy:"), [map(text, row) for row in rows])
        if left := labels.more(len(advice.run.workers), len(rows), "trace"):
            yield from (left, "")
        for line in labels.representatives(advice):
            yield from (text(line), "")
    yield from (text(labels.shown_trace(advice)), "")
    if settings := labels.settings(advice):
        yield from (text(settings), "")
    if verdict := labels.lead_verdict(advice):
        yield from (text(verdict), "")
    yield from _budget(advice)
    yield from _status_notes(advice)
    for number, item in enumerate(advice.findings, start=1):
        yield from _finding(number, item, advice)
    yield from _ruled_out(advice)
    yield from _rest(advice)
    yield from _outlook(advice)


def _recorded(advice: AdviceSections) -> Iterator[str]:
    """Yield missing ranks, and defects of the traces."""
    for missing in job_phrases.not_recorded(advice.run):
        yield from (f"> {text(missing)}", "")
    for unhealthy in advice.health:
        where = f" ({unhealthy.where})" if unhealthy.where else ""
        yield from (f"> The trace{where}: {text(phrases.health(unhealthy.item))}", "")


def _budget(advice: AdviceSections) -> Iterator[str]:
    rows = labels.budget(advice.lead) if advice.lead else ()
    if not rows or advice.lead is None:
        return
    yield from table(
        ("where the time goes", "time:", "share:", f"{labels.saving_heading(advice.lead)}:", "by"),
        [
            (
                text(row.label) if row.category else f"**{text(row.label)}**",
                row.time,
                row.share,
                row.recoverable,
                _by(row.rules),
            )
            for row in (*rows, labels.whole(advice.lead))
        ],
    )


def _by(rules: tuple[str, ...]) -> str:
    more = labels.more(len(rules), labels.RULES_SHOWN, "rule")
    return " ".join(part for part in (_names(rules[: labels.RULES_SHOWN]), more) if part)


def _names(rules: Iterable[str]) -> str:
    return ", ".join(map(code, rules))


def _status_notes(advice: AdviceSections) -> Iterator[str]:
    for note in advice.status_notes:
        where = f" ({note.where})" if note.where else ""
        yield from (f"**{labels.STATES[note.state]}{where}:** {text(note.message)}", "")
    if not advice.status_notes and not advice.findings:
        yield from (labels.NOTHING_FOUND, "")


def _finding(number: int, item: AdviceItem, advice: AdviceSections) -> Iterator[str]:
    outcome = item.outcome
    severity = (outcome.severity or "info").capitalize()
    marks = "".join(f" ({text(mark)})" for mark in labels.marks(outcome))
    yield from (f"### {number}. {severity}: {text(outcome.title)}{marks}", "")
    saving = labels.savings(item, advice.per)
    qualities = "" if item.is_covered else labels.qualities(outcome)
    facts = [
        f"**{capitalized(saving)}**" if saving else "",
        qualities if saving else capitalized(qualities),
        code(outcome.rule),
    ]
    yield from (" · ".join(fact for fact in facts if fact), "")
    if job := job_phrases.job_saving(item, advice.run.job):
        yield from (text(job), "")
    if extent := labels.extent(item):
        yield from (text(extent), "")
    yield from (text(outcome.message), "")
    for line in job_phrases.related(item):
        yield from (text(line), "")
    if item.is_covered:
        method = outcome.claim.method if outcome.claim else ""
        yield from (text(phrases.sentences(labels.COVERED, method)), "")
        return
    yield from _also(item)
    if why := phrases.doubt(outcome):
        yield from (f"**Doubtful:** {text(why)}", "")
    if outcome.claim and outcome.claim.method:
        yield from (f"{labels.ESTIMATED}: {text(outcome.claim.method)}", "")
    yield from _facts(outcome.evidence)
    yield from _proof(outcome)
    if outcome.fix:
        yield from _fix(outcome.fix)
    yield from _links(outcome)


def _also(item: AdviceItem) -> Iterator[str]:
    for other in item.also[: labels.ALSO_SHOWN]:
        yield f"- Also: {text(other.message)}"
    if left := labels.more(len(item.also), labels.ALSO_SHOWN, "of the same"):
        yield f"- {left}"
    if item.also:
        yield ""


def _facts(evidence: tuple[Evidence, ...]) -> Iterator[str]:
    rows = []
    for fact in evidence:
        label, value = phrases.evidence(fact)
        rows.append((text(label), code(value) if fact.unit == "code" else text(value)))
    if rows:
        yield from table(("evidence", "value:"), rows)


def _proof(outcome: Outcome) -> Iterator[str]:
    for evidence in outcome.tables:
        yield from _evidence_table(evidence)
    for reference in outcome.events[: labels.EVENTS_SHOWN]:
        yield f"- {text(phrases.event(reference))}"
    if outcome.events:
        yield ""
    if outcome.locations:
        lines = outcome.locations[: labels.LINES_SHOWN]
        yield from (f"At {', '.join(code(labels.source_line(line)) for line in lines)}", "")


def _evidence_table(evidence: EvidenceTable) -> Iterator[str]:
    if not evidence.rows:
        return
    yield from (f"{text(capitalized(evidence.label))}:", "")
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
        for row in evidence.rows[: labels.ROWS_SHOWN]
    )
    yield from table(tuple(headings), rows)
    if left := labels.more(len(evidence.rows), labels.ROWS_SHOWN, "row"):
        yield from (left, "")


def _fix(fix: Fix) -> Iterator[str]:
    yield from (f"**Fix:** {text(fix.summary)}", "")
    if fix.code:
        yield from fenced(fix.code, fix.language)
    if fix.verify:
        yield from (f"**Check:** {text(fix.verify)}", "")
    for caveat in fix.caveats:
        yield from (f"**Caveat:** {text(caveat)}", "")


def _links(outcome: Outcome) -> Iterator[str]:
    links = list(filter(None, map(link, outcome.links)))
    if links:
        yield from (f"More: {', '.join(links)}", "")


def _ruled_out(advice: AdviceSections) -> Iterator[str]:
    if advice.ruled_out:
        yield from (f"### {labels.RULED_OUT}", "")
    for item in advice.ruled_out:
        where = f" ({item.where})" if item.where else ""
        title = f"**{text(item.outcome.title)}** {code(item.outcome.rule)}{where}"
        yield from (f"{title}: {text(item.outcome.message)}", "")
        yield from _facts(item.outcome.evidence)


def _rest(advice: AdviceSections) -> Iterator[str]:
    if advice.suppressed:
        yield from folded(f"Suppressed ({len(advice.suppressed)})", _suppressed(advice))
    for status, label in labels.GROUPS.items():
        reasons = advice.reasons.get(status, ())
        if not reasons:
            continue
        lines = []
        for reason in reasons:
            where = f" ({reason.where})" if reason.where else ""
            remedy = f" To record it: {code(reason.remedy)}" if reason.remedy else ""
            lines.append(f"- {_names(reason.rules)}{where}: {text(reason.text)}{remedy}")
        yield from folded(f"{label} ({sum(len(reason.rules) for reason in reasons)})", lines)
    for passed in advice.passed:
        why = f" {text(passed.why)}" if passed.why else ""
        yield from folded(passed.label, [f"{_names(passed.rules)}.{why}"])


def _outlook(advice: AdviceSections) -> Iterator[str]:
    if line := outlook_phrases.outlook(advice):
        yield from (f"**{text(line)}**", "")


def _suppressed(advice: AdviceSections) -> Iterator[str]:
    for item in advice.suppressed:
        saving = labels.sentence(labels.savings(item, advice.per))
        where = f" ({item.where})" if item.where else ""
        about = text(phrases.sentences(labels.suppression(item.outcome), saving))
        yield f"- {code(item.outcome.rule)}{where}: {about}"
