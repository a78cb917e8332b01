"""Write the man pages of `stepscope` and of each command, from their help texts."""

import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import click

from stepscope._version import __version__
from stepscope.cli import COMMANDS, cli


def page(command: click.Command, name: str, *, summary: str) -> str:
    """Return the man page of a command in roff.

    Args:
        command: The command.
        name: Its name with those of its parents, as `stepscope advise`.
        summary: The line after its name.
    """
    context = click.Context(command, info_name=name)
    usage = " ".join(command.collect_usage_pieces(context))
    title = name.replace(" ", "-")
    lines = [
        f'.TH "{title.upper()}" "1" "" "stepscope {__version__}" "stepscope manual"',
        *(".SH NAME", rf"{_text(title)} \- {_text(summary)}"),
        *(".SH SYNOPSIS", rf"\fB{_text(name)}\fR {_text(usage)}"),
        *(".SH DESCRIPTION", *_paragraphs(inspect.cleandoc(command.help or ""))),
        ".SH OPTIONS",
    ]
    options = (item for item in command.get_params(context) if isinstance(item, click.Option))
    for option, meaning in filter(None, (item.get_help_record(context) for item in options)):
        lines += [".TP", rf"\fB{_text(option)}\fR", _text(meaning)]
    if isinstance(command, click.Group):
        lines.append(".SH COMMANDS")
        for subcommand in COMMANDS:
            lines += [".TP", rf"\fB{name}\-{subcommand.name}\fR(1)", _text(summary_of(subcommand))]
    return "\n".join(lines) + "\n"


def summary_of(command: click.Command) -> str:
    """Return the first sentence of a command's help text, without its full stop."""
    return command.get_short_help_str(limit=1000).rstrip(".")


def _paragraphs(text: str) -> Iterator[str]:
    r"""Yield the paragraphs of a help text; one that begins with \b keeps its lines."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b\n"):
            yield from (".PP", ".nf", *map(_text, paragraph.splitlines()[1:]), ".fi")
        else:
            yield from (".PP", _text(" ".join(paragraph.split())))


def _text(text: str) -> str:
    """Return text escaped for roff."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^([.'])", r"\\&\1", escaped)


def main(folder: Path) -> None:
    """Write all pages into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    summary = "find where PyTorch training steps lose time, and what to change"
    (folder / "stepscope.1").write_text(page(cli, "stepscope", summary=summary))
    for command in COMMANDS:
        written = page(command, f"stepscope {command.name}", summary=summary_of(command))
        (folder / f"stepscope-{command.name}.1").write_text(written)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
