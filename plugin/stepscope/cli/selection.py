"""Which of the recordings at a path are meant: `--run`, `--worker`, `--span`."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stepscope.storage.discover import TraceFile


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Names of runs, workers and spans; where none is given, all are meant."""

    runs: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    spans: tuple[str, ...] = ()

    def of(self, files: "Sequence[TraceFile]") -> "list[TraceFile]":
        """Return the recordings that are meant.

        Raises:
            UsageError: there is none of such a name; the message names those that there are.
        """
        chosen = list(files)
        for noun, wanted in (("run", self.runs), ("worker", self.workers), ("span", self.spans)):
            chosen = _named(chosen, noun, wanted)
        return chosen


def _named(files: "list[TraceFile]", noun: str, wanted: Sequence[str]) -> "list[TraceFile]":
    from stepscope.base.errors import UsageError

    if not wanted or not files:
        return files
    known = sorted({getattr(file, noun) for file in files})
    if unknown := sorted(set(wanted) - set(known)):
        msg = f"there is no {noun} {unknown[0]!r}; there is {', '.join(known)}"
        raise UsageError(msg)
    return [file for file in files if getattr(file, noun) in wanted]


def with_selection(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that choose among recordings, as `selection`."""
    options = (
        click.option("--run", "runs", multiple=True, metavar="NAME", help="Only this run."),
        click.option(
            "--worker", "workers", multiple=True, metavar="NAME", help="Only this worker."
        ),
        click.option("--span", "spans", multiple=True, metavar="NUMBER", help="Only this span."),
    )

    @functools.wraps(command)
    def with_one(
        *,
        runs: tuple[str, ...],
        workers: tuple[str, ...],
        spans: tuple[str, ...],
        **given: object,
    ) -> None:
        command(selection=Selection(runs=runs, workers=workers, spans=spans), **given)

    return functools.reduce(lambda inner, option: option(inner), reversed(options), with_one)
