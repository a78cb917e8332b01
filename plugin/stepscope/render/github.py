"""A report as workflow commands, which GitHub shows as annotations of source lines.

A step may have ten of each kind; the log counts the others. A finding whose time another finding
claims has none. All text of a trace is inside a command, escaped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stepscope.base.findings import Severity
from stepscope.base.formatting import capitalized, count
from stepscope.base.plain_text import plain
from stepscope.base.report import Report
from stepscope.render import advice_phrases as labels
from stepscope.render import job_phrases, phrases
from stepscope.render.advice_sections import AdviceItem, AdviceSections, advice_sections
from stepscope.render.sarif_locations import below_repository

Command = Literal["error", "warning", "notice"]
COMMANDS: dict[Severity, Command] = {"critical": "error", "warning": "warning", "info": "notice"}
MOST = 10
"""Annotations of a kind that GitHub shows per step."""
LONGEST = 1000
IN_DATA = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
IN_PROPERTY = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


@dataclass(frozen=True, kw_only=True)
class Annotation:
    """One workflow command."""

    command: Command
    title: str
    message: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        values = {
            "file": self.file,
            "line": str(self.line) if self.file and self.line > 0 else "",
            "title": phrases.cut(self.title),
        }
        properties = ",".join(
            f"{name}={plain(text).translate(IN_PROPERTY)}" for name, text in values.items() if text
        )
        message = plain(phrases.cut(self.message, LONGEST)).translate(IN_DATA)
        return f"::{self.command} {properties}::{message}"


def render(report: Report) -> str:
    """Return one command per line, the most serious first, and the number of those left out."""
    annotations = [
        annotation for run in report.runs for annotation in _annotations(advice_sections(run))
    ]
    annotations += [
        Annotation(command="warning", title="Not read", message=line)
        for line in phrases.problems(report)
    ]
    lines: list[str] = []
    for command in COMMANDS.values():
        of_kind = [annotation for annotation in annotations if annotation.command == command]
        lines += map(str, of_kind[:MOST])
        if len(of_kind) > MOST:
            left = count(len(of_kind) - MOST, command)
            lines.append(f"and {left} more: GitHub shows {MOST} of a kind")
    return "".join(f"{line}\n" for line in lines)


def _annotations(advice: AdviceSections) -> Iterator[Annotation]:
    yield Annotation(
        command="notice", title=f"stepscope: {advice.run.name}", message=labels.verdict(advice)
    )
    yield from (_finding(advice, item) for item in advice.findings if not item.is_covered)
    for reason in advice.reasons.get("failed", ()):
        yield Annotation(
            command="warning", title=f"Failed: {', '.join(reason.rules)}", message=reason.text
        )


def _finding(advice: AdviceSections, item: AdviceItem) -> Annotation:
    outcome = item.outcome
    line = next(iter(outcome.locations), None)
    message = phrases.sentences(
        labels.sentence(labels.savings(item, advice.per), labels.qualities(outcome)),
        f"In {item.where} of {advice.run.name}" if item.where else f"In {advice.run.name}",
        capitalized(item.when),
        outcome.message,
        *job_phrases.related(item),
        f"Fix: {outcome.fix.summary}" if outcome.fix else "",
    )
    return Annotation(
        command=COMMANDS[outcome.severity or "info"],
        title=f"{outcome.title} [{outcome.rule}]",
        message=message,
        file=below_repository(line.path) if line else "",
        line=line.line if line else 0,
    )
