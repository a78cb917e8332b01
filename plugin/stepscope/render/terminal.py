"""Layout of text for a terminal: width, colours, indents, unwrapped code."""

from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from textwrap import indent

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from stepscope.base.findings import Severity
from stepscope.base.plain_text import plain_lines

WIDTH = 80
STYLES: dict[Severity, str] = {
    "critical": "bold red",
    "warning": "bold yellow",
    "info": "bold cyan",
}
INDENT = 3
TAB_COLUMNS = 4


@dataclass(frozen=True, kw_only=True)
class _Code:
    """Code without wrapping."""

    text: str
    language: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the code; highlighting takes long, and is done only where colours are shown."""
        shown = Text(self.text.expandtabs(TAB_COLUMNS))
        if console.color_system is not None:
            from rich.syntax import Syntax  # noqa: PLC0415 (half of what a text takes)

            shown = Syntax("", self.language or "text", theme="ansi_dark").highlight(self.text)
        shown.rstrip()
        shown.no_wrap, shown.overflow = True, "ignore"
        yield shown


def layout(parts: Iterable[RenderableType], *, width: int, is_coloured: bool) -> str:
    """Return the parts in lines of at most `width` columns; long words and code may exceed it."""
    written = StringIO()
    console = Console(
        file=written,
        width=width,
        force_terminal=is_coloured,
        color_system="standard" if is_coloured else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    for part in parts:
        console.print(part, crop=False)  # code may exceed the width, to be copied
    lines = written.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def indented(part: RenderableType) -> RenderableType:
    """Return the part indented."""
    return Padding(part, (0, 0, 0, INDENT))


def code(text: str, language: str) -> RenderableType:
    """Return the code indented, without wrapping."""
    shifted = indent(plain_lines(text.strip("\n")), " " * 2 * INDENT)
    return _Code(text=shifted, language=language)


def severity_mark(severity: Severity) -> Text:
    """Return a severity in its colour."""
    return Text(severity.upper(), style=STYLES[severity])
