"""Text of a trace in Markdown, so that nothing in it acts."""

import re

from stepscope.render import words

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|~#@])")
"""What Markdown would act upon; `@` too, which would call a person."""
LINE_BREAKS = re.compile(r"\s*[\r\n\u2028\u2029]\s*")


def text(found: str) -> str:
    """Return one line of text that Markdown shows as it is."""
    return SPECIAL.sub(r"\\\1", LINE_BREAKS.sub(" ", words.plain(found)))


def code(name: str) -> str:
    """Return a name set as code."""
    plain = LINE_BREAKS.sub(" ", words.plain(name)).replace("|", "\\|")
    ticks = "`" * (max(map(len, re.findall(r"`+", plain)), default=0) + 1)
    space = " " if "`" in plain else ""
    return f"{ticks}{space}{plain}{space}{ticks}"


def fenced(lines: str, language: str) -> list[str]:
    """Return lines of code as a block."""
    fence = "`" * max(3, max(map(len, re.findall(r"`+", lines)), default=0) + 1)
    return [f"{fence}{language}", words.plain(lines.rstrip()), fence, ""]
