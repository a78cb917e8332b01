"""The output of commands: file or terminal, format, encoding, width, colours.

Renderers leave no control characters of a trace in their texts; commands that a log of continuous
integration would run are removed from all printed text here.
"""

import codecs
import io
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import click

from stepscope.base.plain_text import plain_lines, without_commands
from stepscope.cli.options import Command, with_options

if TYPE_CHECKING:
    import logging

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
        elif self.form == "csv":
            print_content(lambda sink: sink.write(_as_bytes(text)))
        elif self.form == "text":
            click.echo(without_commands(text), nl=False, color=True)
        else:
            print_document(text, has_commands=self.form == "github")


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


def print_content(write_to: Callable[[BinaryIO], object], *, is_text: bool = True) -> None:
    """Print the output of a function.

    A terminal and a log receive it without control characters and commands; a file and another
    program as it is. In continuous integration, a pipe may lead into the log, and counts as one.
    """
    if not is_text or not is_read_by_people():
        write_to(sys.stdout.buffer)
        return
    content = io.BytesIO()
    write_to(content)
    print_document(plain_lines(content.getvalue().decode().replace("\r\n", "\n")))


def write_message(text: str) -> None:
    """Print a message to standard error, which may contain names of a trace or of files."""
    click.echo(without_commands(plain_lines(f"stepscope: {text}")), err=True)


def log_formatter(form: str = "%(message)s") -> "logging.Formatter":
    """Return a formatter of the log's messages, which may contain names of files."""
    import logging

    class PlainFormatter(logging.Formatter):
        def format(self, record: logging.LogRecord) -> str:
            return without_commands(plain_lines(super().format(record)))

    return PlainFormatter(form)


CONTINUOUS_INTEGRATION = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION")
"""Environment variables of services whose log runs commands."""
NOT_SET = ("", "0", "false")


def is_read_by_people() -> bool:
    """Return whether standard output is a terminal or a log, and not a file or another program."""
    if sys.stdout.isatty():
        return True
    values = (os.environ.get(name, "").lower() for name in CONTINUOUS_INTEGRATION)
    if all(value in NOT_SET for value in values):
        return False
    try:
        return not stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode)
    except OSError:  # not a stream of the system
        return False


def print_document(text: str, *, has_commands: bool = False) -> None:
    """Print a document for programs: in a file or pipe as UTF-8, whatever the terminal's encoding.

    Windows would encode it by its code page, and write `\\r\\n` for `\\n`. `has_commands` is for
    text with commands of ours, whose other texts are escaped.
    """
    text = text if has_commands else without_commands(text)
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
    """Let output in any encoding replace characters that the encoding lacks, instead of failing.

    A stream that is closed from the start, as in some services, leads to nowhere.
    """
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:  # opened files would get the number of the stream
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
    codecs.register_error("stepscope", _in_ascii)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="stepscope")
