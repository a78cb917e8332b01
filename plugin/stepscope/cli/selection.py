"""Selection of the traces at a path: `--run`, `--worker`, `--span`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from stepscope.cli.options import with_options

if TYPE_CHECKING:
    from stepscope.storage.discover import TraceFile


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
    from stepscope.base.errors import UsageError

    if not names or not files:
        return files
    existing = sorted({getattr(file, noun) for file in files})
    if unknown := sorted(set(names) - set(existing)):
        msg = f"there is no {noun} {unknown[0]!r}; there is {', '.join(existing)}"
        raise UsageError(msg)
    return [file for file in files if getattr(file, noun) in names]


with_selection = with_options(
    "selection",
    Selection,
    click.option("--run", "runs", multiple=True, metavar="NAME", help="Read only this run."),
    click.option(
        "--worker", "workers", multiple=True, metavar="NAME", help="Read only this worker."
    ),
    click.option("--span", "spans", multiple=True, metavar="NUMBER", help="Read only this span."),
)
"""Add the options that select traces, as `selection`."""
