"""Text from outside, such as names in traces and of files, without characters that act.

Control characters move a terminal's cursor or change its title, others reverse the text, and tags
are invisible. A log of continuous integration runs commands: `::error::` at the start of a line
(GitHub), and `##vso[` or `##[` anywhere (Azure Pipelines, GitHub).
"""

import re

CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
"""Control characters except tabs and line feeds, marks that reverse text, lone surrogates, tags."""
LINE_BREAKS = re.compile("[\t\r\n\x0b\x0c\x85\u2028\u2029]+ *")
COMMAND = re.compile(r"^(?=[^\S\n]*::)|(?<=##)(?=\w*\[)", re.MULTILINE)


def plain_lines(text: str) -> str:
    """Return text without control characters; its lines stay."""
    return CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def plain(text: str) -> str:
    """Return text as one line without control characters."""
    return plain_lines(LINE_BREAKS.sub(" ", text) if LINE_BREAKS.search(text) else text)


def without_commands(text: str) -> str:
    """Return text with a backslash in each command of continuous integration."""
    return COMMAND.sub(r"\\", text)
