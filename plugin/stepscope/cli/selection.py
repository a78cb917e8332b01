"""Selection of the traces at a path: `--run`, `--worker`, `--span`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import click

from stepscope.cli import completion
from stepscope.cli.options import with_options

if TYPE_CHECKING:
    from stepscope.storage.discover import TraceFile

NOUNS: "tuple[Literal['run', 'worker', 'span'], ...]" = ("run", "worker", "span")
MOST_NAMED = 10
"""Names in an error message."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Names of runs, workers and spans; empty: all."""

    runs: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()

    def of(self, files: "Sequence[TraceFile]") -> "list[TraceFile]":
        """Return the selected traces.

        Raises:
            UsageError: A name is unknown; the message lists the names.
        """
        selected = list(files)
        for noun, names in (("run", self.runs), ("worker", self.workers), ("span", self.spans)):
            selected = _with_names(selected, noun, names)
        return selected


def _with_names(files: "list[TraceFile]", noun: str, names: Sequence[str]) -> "list[TraceFile]":
    from stepscope.base import urls
    from stepscope.base.errors import UsageError, suggestion

    if not names or not files:
        return files
    existing = sorted({getattr(file, noun) for file in files})
    names = [urls.displayed(name) for name in names]
    if unknown := sorted(set(names) - set(existing)):
        shown = ", ".join(existing[:MOST_NAMED])
        others = f" and {len(existing) - MOST_NAMED:,} more" if len(existing) > MOST_NAMED else ""
        hint = suggestion(unknown[0], existing)
        msg = f"there is no {noun} {unknown[0]!r}. {hint}There is {shown}{others}"
        raise UsageError(msg)
    return [file for file in files if getattr(file, noun) in names]


with_selection = with_options(
    "selection",
    Selection,
    *(
        click.option(
            f"--{noun}",
            f"{noun}s",
            multiple=True,
            metavar="NUMBER" if noun == "span" else "NAME",
            help=f"Read only this {noun}; repeatable.",
            shell_complete=completion.traces(noun),
        )
        for noun in NOUNS
    ),
)
"""Add the options that select traces, as `selection`."""
