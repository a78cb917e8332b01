"""A report as workflow commands, which GitHub shows as annotations beside the lines they are about.

A step may have ten of each kind; what is beyond is counted in the log. A finding whose time another
one claims already has none. Nothing of a trace is printed outside a command, and within one what
would end it is escaped.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from stepscope.base.findings import Severity
from stepscope.base.formatting import count
from stepscope.base.report import Report
from stepscope.render import advice_phrases as told
from stepscope.render import job_phrases, phrases
from stepscope.render.advice_sections import Advised, Told, advised
from stepscope.render.repository_paths import below_repository

Command = Literal["error", "warning", "notice"]
COMMANDS: dict[Severity, Command] = {"critical": "error", "warning": "warning", "info": "notice"}
MOST = 10
"""Annotations of a kind that GitHub shows of a step."""
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
        given = {
            "file": self.file,
            "line": str(self.line) if self.file and self.line > 0 else "",
            "title": phrases.cut(self.title),
        }
        properties = ",".join(
            f"{name}={phrases.plain(text).translate(IN_PROPERTY)}"
            for name, text in given.items()
            if text
        )
        message = phrases.plain(phrases.cut(self.message, LONGEST)).translate(IN_DATA)
        return f"::{self.command} {properties}::{message}"


def render(report: Report) -> str:
    """Return one command a line, the most serious first, and what there was no room for."""
    annotations = [each for run in report.runs for each in _annotations(advised(run))]
    annotations += [
        Annotation(command="warning", title="Not read", message=line)
        for line in phrases.problems(report)
    ]
    lines: list[str] = []
    for command in COMMANDS.values():
        mine = [each for each in annotations if each.command == command]
        lines += map(str, mine[:MOST])
        if len(mine) > MOST:
            left = count(len(mine) - MOST, command)
            lines.append(f"and {left} more: GitHub shows {MOST} of a kind")
    return "".join(f"{line}\n" for line in lines)


def _annotations(advice: Advised) -> Iterator[Annotation]:
    yield Annotation(
        command="notice", title=f"stepscope: {advice.run.name}", message=told.verdict(advice)
    )
    yield from (_finding(advice, each) for each in advice.found if not each.is_covered)
    for reason in advice.reasons.get("failed", ()):
        yield Annotation(
            command="warning", title=f"Failed: {', '.join(reason.rules)}", message=reason.text
        )


def _finding(advice: Advised, each: Told) -> Annotation:
    outcome = each.outcome
    line = next(iter(outcome.locations), None)
    message = phrases.sentences(
        told.sentence(told.savings(each, advice.per), told.qualities(outcome)),
        f"In {each.where} of {advice.run.name}" if each.where else f"In {advice.run.name}",
        phrases.capitalised(each.when),
        outcome.message,
        *job_phrases.related(each),
        f"Fix: {outcome.fix.summary}" if outcome.fix else "",
    )
    return Annotation(
        command=COMMANDS[outcome.severity or "info"],
        title=f"{outcome.title} [{outcome.rule}]",
        message=message,
        file=below_repository(line.path) if line else "",
        line=line.line if line else 0,
    )
