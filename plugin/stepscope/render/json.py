"""JSON that may be printed: characters and commands that act on a terminal or a log are escaped.

`stepscope schema` prints the schema of `advise`'s report.
"""

import re

import msgspec

from stepscope.base.plain_text import CONTROL
from stepscope.base.report import HealthReport, Report
from stepscope.comparison.messages import ComparisonReport

ACTING = re.compile(f"{CONTROL.pattern}|(?<=#)#")
"""The second `#` begins a command in logs of continuous integration, such as `##vso[`."""


def escaped(text: str) -> str:
    """Return JSON with the same values, in which no text acts."""
    is_plain = text.isascii() and "##" not in text and "\x7f" not in text
    return text if is_plain else ACTING.sub(_escape, text)


def encoded(value: object) -> bytes:
    """Return a value as JSON in one line."""
    return escaped(msgspec.json.encode(value).decode()).encode()


def indented(value: object, indent: int = 2) -> str:
    """Return a value as indented JSON."""
    text = msgspec.json.format(msgspec.json.encode(value), indent=indent).decode()
    return escaped(text) + "\n"


def render(report: Report | HealthReport | ComparisonReport) -> str:
    """Return the report as indented JSON."""
    return indented(report)


def _escape(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
