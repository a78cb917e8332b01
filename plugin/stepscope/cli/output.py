"""Where a command's answer goes: a file or a terminal, how wide, in which colours."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

Format = Literal["text", "json", "markdown", "csv", "brief", "sarif", "html", "github"]
FORMATS: tuple[Format, ...] = ("text", "json", "markdown")
"""What every answer can be had as."""


@dataclass(frozen=True, kw_only=True)
class Printing:
    """How the answer is wanted, as the user said it."""

    form: Format
    output: str | None
    """A file's name; None: standard output."""
    no_color: bool

    @property
    def is_coloured(self) -> bool:
        """Whether it goes to a terminal that wants colour, and the user does too."""
        return self.output is None and not self.no_color and is_coloured()

    def write(self, text: str) -> None:
        """Write the answer to where it goes."""
        write(text, self.output)


def with_printing(
    meaning: str, *more: Format
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options that say how the answer is wanted, as `printing`.

    `meaning` is the help of `--format`; `more` are formats beside `FORMATS`.
    """
    options = (
        click.option(
            "--format",
            "form",
            type=click.Choice([*FORMATS, *more]),
            default="text",
            show_default=True,
            help=meaning,
        ),
        click.option("--output", type=click.Path(dir_okay=False), help="Write to this file."),
        click.option("--no-color", is_flag=True, help="No colours, even in a terminal."),
    )

    def added(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_one(*, form: Format, output: str | None, no_color: bool, **given: object) -> None:
            command(printing=Printing(form=form, output=output, no_color=no_color), **given)

        return functools.reduce(lambda inner, option: option(inner), reversed(options), with_one)

    return added


def is_coloured() -> bool:
    """Tell whether standard output is a terminal that wants colour (NO_COLOR, TERM)."""
    from rich.console import Console

    console = Console()
    return console.is_terminal and not console.no_color and console.color_system is not None


def width() -> int:
    """Return the terminal's width within reason; 80 where there is none."""
    from rich.console import Console

    console = Console()
    return max(40, min(console.width, 120)) if console.is_terminal else 80


def write(text: str, output: str | None) -> None:
    """Write text to a file, or print it where none was named."""
    if output is None:
        click.echo(text, nl=False, color=True)
    else:
        Path(output).write_text(text, encoding="utf-8")
