"""The output of commands: file or terminal, format, encoding, width, colours."""

import codecs
import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from stepscope.cli.options import Command, with_options

Format = Literal["text", "json", "markdown", "csv", "brief", "sarif", "html", "github"]
FORMATS: tuple[Format, ...] = ("text", "json", "markdown")
"""Formats of every command."""


@dataclass(frozen=True, kw_only=True)
class Printing:
    """The output options of a command."""

    form: Format
    output: str | None
    """File name; None: standard output."""
    no_color: bool

    @property
    def is_coloured(self) -> bool:
        """Whether the output is a coloured terminal and the user allows colours."""
        return self.output is None and not self.no_color and is_coloured()

    def write(self, text: str) -> None:
        """Write text to the output."""
        if self.output is not None:
            Path(self.output).write_bytes(_as_bytes(text))
        elif self.form == "text":
            click.echo(text, nl=False, color=True)
        else:
            print_document(text)


def with_printing(meaning: str, *more: Format) -> Callable[[Command], Command]:
    """Return a decorator that adds the options of `Printing`, as `printing`.

    `meaning` is the help of `--format`; `more` are formats in addition to `FORMATS`.
    """
    return with_options(
        "printing",
        Printing,
        click.option(
            "--format",
            "form",
            type=click.Choice([*FORMATS, *more]),
            default="text",
            show_default=True,
            help=meaning,
        ),
        click.option(
            "--output",
            type=click.Path(dir_okay=False),
            help="Write to this file instead of standard output.",
        ),
        click.option("--no-color", is_flag=True, help="Print without colours."),
    )


def is_coloured() -> bool:
    """Return whether standard output is a terminal with colours (NO_COLOR, TERM)."""
    from rich.console import Console

    console = Console()
    return console.is_terminal and not console.no_color and console.color_system is not None


def width() -> int:
    """Return the terminal's width, from 40 to 120; 80 without a terminal."""
    from rich.console import Console

    console = Console()
    return max(40, min(console.width, 120)) if console.is_terminal else 80


def print_document(text: str) -> None:
    """Print a document for programs: in a file or pipe as UTF-8, whatever the terminal's encoding.

    Windows would encode it by its code page, and write `\\r\\n` for `\\n`.
    """
    click.echo(text if sys.stdout.isatty() else _as_bytes(text), nl=False, color=True)


def _as_bytes(text: str) -> bytes:
    return text.encode(errors="replace")


ASCII = {
    "─": "-", "━": "-", "│": "|", "–": "-", "—": "-", "\N{MINUS SIGN}": "-",
    "…": "...", "·": "*", "•": "*",
    "→": "->", "←": "<-", "↑": "^", "↓": "v", "≤": "<=", "≥": ">=", "≈": "~", "±": "+-", "×": "x",
    "µ": "u", "Δ": "delta", "✓": "v", "✗": "x", "█": "#", "░": ".", "’": "'", "“": '"', "”": '"',
}  # fmt: skip
"""Replacements of characters that an encoding lacks, such as cp1252 of pipes in Windows."""


def _in_ascii(error: UnicodeError) -> tuple[str, int]:
    """Return replacements of characters that cannot be encoded, and where to go on."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    return "".join(ASCII.get(character, "?") for character in missing), error.end


def prepare_streams() -> None:
    """Let output in any encoding replace characters that the encoding lacks, instead of failing."""
    codecs.register_error("stepscope", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="stepscope")
