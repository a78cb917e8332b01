"""Text of a trace in Markdown, so that nothing in it acts."""

import re
from collections.abc import Iterable, Iterator

from stepscope.render import phrases

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#&])")
"""What Markdown would act upon."""
ACTING = re.compile(r"([\\`\[]|<(?=[A-Za-z/!?]|$)|&(?=[\w#]|$))")
"""What begins a link, a picture, a tag, code or a sign in letters, within a line."""
NO_CALL = "@<!-- -->"
"""An `@` that calls nobody: GitHub looks for names in what Markdown has become, where no backslash
is left."""
ADDRESS = re.compile(r"https?://[\w.-]+(?:/[\w./~%+:#?=&;,-]*)?", re.ASCII)
"""A web address that needs no escapes."""
LINE_BREAKS = re.compile(r"[\t\r\n\u2028\u2029]+ *")


def text(found: str) -> str:
    """Return one line of text that Markdown shows as it is."""
    shown = SPECIAL.sub(r"\\\1", LINE_BREAKS.sub(" ", phrases.plain(found)))
    return shown.replace("@", NO_CALL)


def line(found: str, most: int) -> str:
    """Return a line for a chat: what would act there does not, and names stay readable."""
    shown = phrases.cut(LINE_BREAKS.sub(" ", phrases.plain(found)), most)
    return ACTING.sub(r"\\\1", shown).replace("@", NO_CALL)


def code(name: str) -> str:
    """Return a name set as code; nothing of nothing."""
    if not name:
        return ""
    plain = LINE_BREAKS.sub(" ", phrases.plain(name)).replace("|", "\\|")
    ticks = "`" * (max(map(len, re.findall(r"`+", plain)), default=0) + 1)
    space = " " if "`" in plain else ""
    return f"{ticks}{space}{plain}{space}{ticks}"


def fenced(lines: str, language: str) -> list[str]:
    """Return lines of code as a block."""
    fence = "`" * max(3, max(map(len, re.findall(r"`+", lines)), default=0) + 1)
    return [f"{fence}{language}", phrases.plain(lines.rstrip()), fence, ""]


def link(address: str) -> str:
    """Return a web address to be followed; nothing where it is none, or an odd one."""
    return f"<{address}>" if ADDRESS.fullmatch(address) else ""


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a table of Markdown; a column whose heading ends with a colon stands right."""
    headings = tuple(headings)
    marks = ("---:" if heading.endswith(":") else "---" for heading in headings)
    yield f"| {' | '.join(heading.removesuffix(':') for heading in headings)} |"
    yield f"|{'|'.join(marks)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def folded(summary: str, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that are shown when they are asked for."""
    yield from (f"<details><summary>{summary}</summary>", "", *lines, "", "</details>", "")
