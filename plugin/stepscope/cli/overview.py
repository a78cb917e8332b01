"""`stepscope` without a command: the traces of this folder, and the next commands for them."""

import os
import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stepscope.storage.discover import TraceFile

LOG_FOLDERS = (
    "log", "logs", "runs", "traces", "tb_logs", "lightning_logs", "profile", "profiler", "output",
    "outputs", "results",
)  # fmt: skip
"""Usual names of folders with traces; they are searched first."""
SCRIPTS = ("train.py", "main.py", "run.py", "finetune.py", "infer.py")
SEARCH_SECONDS = 0.15
LEAST_PAGES = 20
"""Pages of folders (`storage.walk`) that are searched, however long that takes."""
MOST_RUNS = 6
PAGE = "all of it as a page in the browser"
OTHER_TRACE = re.compile(r"\.json\.gz$|(trace|prof).*\.json$", re.IGNORECASE)
"""Names that traces have which torch's handler did not write; other JSON files are seldom traces.
"""
FIRST_TRACES_NS = 1_400_000_000 * 10**9
"""Unix time of 2014: smaller numbers in names are no dates."""


def overview() -> None:
    """Print the traces of this folder, and the next commands for them."""
    click.echo("stepscope finds where PyTorch training steps lose time, and what to change.\n")
    search = _Search()
    runs = sorted(search.runs(), key=lambda run: run.newest_ns, reverse=True)
    lines = _of_runs(runs, is_cut=search.is_cut) if runs else _without_runs(is_cut=search.is_cut)
    click.echo("\n".join(lines))
    click.echo("\n`stepscope --help` lists all commands; `stepscope COMMAND --help` has examples.")


class _Run:
    """A folder with traces."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.count = 0
        self.newest_ns = 0
        """Unix time of its newest trace; 0 if unknown."""

    def add(self, file: "TraceFile") -> None:
        """Count a trace."""
        self.count += 1
        modified_ns = file.listed.modified_ns if file.listed else 0
        is_dated = file.recorded_ns > FIRST_TRACES_NS
        self.newest_ns = max(self.newest_ns, file.recorded_ns if is_dated else modified_ns)


class _Search:
    """A search for traces in this folder and below, of limited time."""

    def __init__(self) -> None:
        self._begin_s = time.monotonic()
        self._page_count = 0
        self.is_cut = False
        """Whether there may be more traces."""

    def runs(self) -> list[_Run]:
        """Return the folders with traces: those of log folders, or else of all folders."""
        folders = [folder for folder in LOG_FOLDERS if Path(folder).is_dir()]
        return self._runs_below(folders) or self._runs_below(["."])

    def _runs_below(self, roots: Iterable[str]) -> list[_Run]:
        runs: dict[str, _Run] = {}
        for root in roots:
            for file in self._files_below(root):
                runs.setdefault(file.folder, _Run(file.folder)).add(file)
        return [*runs.values()]

    def _files_below(self, root: str) -> "Iterator[TraceFile]":
        from stepscope.storage import discover

        for page in discover.pages(root):
            yield from page.files
            self._page_count += 1
            seconds = time.monotonic() - self._begin_s
            if self._page_count >= LEAST_PAGES and seconds > SEARCH_SECONDS:
                self.is_cut = True
                return


def _of_runs(runs: list[_Run], *, is_cut: bool) -> Iterator[str]:
    from stepscope.base.formatting import count

    traces = count(sum(run.count for run in runs), "trace")
    more = " (there may be more: the search was cut short)" if is_cut else ""
    yield f"{traces} in {count(len(runs), 'run')}{more}, the newest first:"
    shown = [(_shown(run.folder), count(run.count, "trace"), _age(run)) for run in runs[:MOST_RUNS]]
    width = max(len(folder) for folder, _, _ in shown)
    for folder, of_run, age in shown:
        yield f"  {folder:<{width}}  {of_run}{age}"
    if len(runs) > MOST_RUNS:
        yield f"  … and {len(runs) - MOST_RUNS:,} more"
    yield from ("", "Next:")
    newest = _quoted(runs[0].folder)
    yield from _command(f"stepscope advise {newest}", "what to change, with evidence")
    if before := _before(runs[0], runs[1:]):
        yield from _command(f"stepscope compare {before} {newest}", "what changed between them")
    root = _quoted(os.path.commonpath([run.folder for run in runs]) or ".")
    yield from _command(f"stepscope serve {root} --open", PAGE)


def _before(newest: _Run, others: list[_Run]) -> str:
    """Return the newest other run next to a run, or of its name in another folder; or empty."""
    folder, name = os.path.split(newest.folder)
    pairs = [(os.path.split(run.folder), run) for run in others]
    neighbours = [run for (other, _), run in pairs if other == folder]
    alike = [run for (_, other), run in pairs if other == name]
    return next((_quoted(run.folder) for run in (*neighbours, *alike)), "")


def _without_runs(*, is_cut: bool) -> Iterator[str]:
    where = "in a short search of this folder" if is_cut else "in this folder"
    yield f"No traces were found {where}."
    if other := _other_trace():
        yield from ("", "This file has another name than torch's handler gives, but may be one:")
        yield from _command(f"stepscope advise {other}", "what to change, with evidence")
        yield from _command(f"stepscope serve {other} --open", PAGE)
    script = next((name for name in SCRIPTS if Path(name).is_file()), None)
    yield from ("", "To record some steps of a script, unchanged:")
    command = f"stepscope record --advise -- python {script or 'train.py'}"
    yield from _command(command, "the advice follows when it ends")
    yield from ("", "If the traces are elsewhere:")
    yield from _command("stepscope advise PATH", "a folder of traces, or one trace file")


def _other_trace() -> str:
    """Return a file of this folder that may be a trace by its name, or empty."""
    from stepscope.storage import discover

    names = [path for path in discover.other_json_files(".") if OTHER_TRACE.search(path)]
    return _quoted(min(names)) if names else ""


def _command(command: str, purpose: str) -> tuple[str, str]:
    return f"  {command}", f"      {purpose}"


def _age(run: _Run) -> str:
    """Return the time since the newest trace of a run; empty if it is unknown."""
    seconds = time.time() - run.newest_ns / 1e9
    if not run.newest_ns or seconds < 0:
        return ""
    for unit, unit_seconds in (
        ("year", 31_557_600),
        ("day", 86_400),
        ("hour", 3_600),
        ("minute", 60),
    ):
        if seconds >= unit_seconds:
            number = int(seconds // unit_seconds)
            return f", {number:,} {unit}{'s' if number > 1 else ''} ago"
    return ", just now"


def _quoted(path: str) -> str:
    from stepscope.base.urls import shell_argument

    return shell_argument(_shown(path))


def _shown(path: str) -> str:
    """Return a path without control characters, which would move the terminal's cursor."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in path)
