"""How text for a terminal is laid out: widths, colours, indents, and code that is not wrapped."""

from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from textwrap import indent

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.text import Text

from stepscope.base.findings import Severity
from stepscope.render import phrases

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
    """Code with its lines as they are, whatever the width."""

    text: str
    language: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield it; its words are told apart only where colours are shown: that takes long."""
        shown = Text(self.text.expandtabs(TAB_COLUMNS))
        if console.color_system is not None:
            from rich.syntax import Syntax  # noqa: PLC0415 (half of what a text takes)

            shown = Syntax("", self.language or "text", theme="ansi_dark").highlight(self.text)
        shown.rstrip()
        shown.no_wrap, shown.overflow = True, "ignore"
        yield shown


def laid_out(parts: Iterable[RenderableType], *, width: int, is_coloured: bool) -> str:
    """Return the parts in lines of at most `width` columns, where their words let them."""
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
        console.print(part, crop=False)  # code goes beyond the edge, since it is to be copied
    lines = written.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"


def indented(part: RenderableType) -> RenderableType:
    """Return the part, shifted to the right."""
    return Padding(part, (0, 0, 0, INDENT))


def code(text: str, language: str) -> RenderableType:
    """Return the code with its lines as they are, whatever the width."""
    shifted = indent(phrases.plain(text.strip("\n")), " " * 2 * INDENT)
    return _Code(text=shifted, language=language)


def severity_mark(severity: Severity) -> Text:
    """Return how serious something is, in its colour."""
    return Text(severity.upper(), style=STYLES[severity])
