"""Text of a trace in Markdown, with all markup escaped."""

import re
from collections.abc import Iterable, Iterator

from stepscope.base.plain_text import plain, plain_lines
from stepscope.render import phrases

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#&])")
"""Characters of Markdown's markup."""
ACTING = re.compile(r"([\\`\[]|<(?=[A-Za-z/!?]|$)|&(?=[\w#]|$))")
"""Start of a link, an image, a tag, code or an entity within a line."""
NO_CALL = "@<!-- -->"
"""An `@` without a mention: GitHub looks for names after Markdown has removed backslashes."""
ADDRESS = re.compile(r"https?://[\w.-]+(?:/[\w./~%+:#?=&;,-]*)?", re.ASCII)
"""A URL that needs no escapes."""


def text(content: str) -> str:
    """Return text as one line that Markdown shows as it is."""
    shown = SPECIAL.sub(r"\\\1", plain(content))
    return shown.replace("@", NO_CALL)


def line(content: str, most: int) -> str:
    """Return a line for a chat: markup is escaped, names stay readable."""
    shown = phrases.cut(plain(content), most)
    return ACTING.sub(r"\\\1", shown).replace("@", NO_CALL)


def code(name: str) -> str:
    """Return a name as code; empty where it is empty."""
    if not name:
        return ""
    shown = plain(name).replace("|", "\\|")
    ticks = "`" * (max(map(len, re.findall(r"`+", shown)), default=0) + 1)
    space = " " if "`" in shown else ""
    return f"{ticks}{space}{shown}{space}{ticks}"


def fenced(lines: str, language: str) -> list[str]:
    """Return lines of code as a block."""
    fence = "`" * max(3, max(map(len, re.findall(r"`+", lines)), default=0) + 1)
    return [f"{fence}{language}", plain_lines(lines.rstrip()), fence, ""]


def link(address: str) -> str:
    """Return a URL as a link; empty where it is invalid."""
    return f"<{address}>" if ADDRESS.fullmatch(address) else ""


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a table; a column whose heading ends with a colon is right-aligned."""
    headings = tuple(headings)
    marks = ("---:" if heading.endswith(":") else "---" for heading in headings)
    yield f"| {' | '.join(heading.removesuffix(':') for heading in headings)} |"
    yield f"|{'|'.join(marks)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines in a collapsed section."""
    yield from (f"<details><summary>{summary}</summary>", "", *lines, "", "</details>", "")
