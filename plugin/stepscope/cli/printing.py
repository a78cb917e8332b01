"""Where a command's answer goes: a file or a terminal, how wide, in which colours."""

from pathlib import Path

import click


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
