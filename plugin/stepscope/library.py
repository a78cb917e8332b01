"""What `stepscope.load`, `advise`, `table` and `compare` give to a script or a notebook."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

import pandas as pd

from stepscope import comparison
from stepscope._version import __version__
from stepscope.advice import AdviceSettings, advise_with_settings
from stepscope.advice.settings import Changes
from stepscope.advice.settings_files import read_settings
from stepscope.base.config import settings
from stepscope.base.errors import MissingDataError, UnreadableError, UsageError
from stepscope.base.report import Report, RunReport
from stepscope.comparison.messages import ComparisonReport
from stepscope.comparison.samples import Sample, sample
from stepscope.model.table import RunTable
from stepscope.model.trace import Run, Trace
from stepscope.readers.batch import Outcome, read_all
from stepscope.readers.memory_budget import MemoryBudget
from stepscope.readers.pool import InProcessReader, ReaderPool
from stepscope.readers.requests import ReadRequest
from stepscope.render import comparison_markdown, comparison_text, markdown, text
from stepscope.render.table_export import labelled, schema_of, stacked
from stepscope.storage import discover
from stepscope.storage.discover import TraceFile
from stepscope.tables import find


@dataclass(frozen=True)
class Advice:
    """What to fix in a run: `print` it, or take its `report` apart."""

    report: RunReport

    def __str__(self) -> str:
        return text.render(self._whole())

    def _repr_markdown_(self) -> str:
        """Show it in a notebook."""
        return markdown.render(self._whole())

    def _whole(self) -> Report:
        return Report(runs=(self.report,), version=__version__)


def load_all(path: str | PathLike[str], *, jobs: int = 1) -> tuple[Run, ...]:
    """Return every run below a path; a file that cannot be read is a warning.

    Files are read one after another in this process, or `jobs` at once, large ones in processes of
    their own.

    Raises:
        UnreadableError: nothing below the path can be read.
    """
    files = discover.at(fspath(path))
    traces: dict[str, list[Trace]] = {}
    problems: list[UnreadableError] = []
    for file, outcome in zip(files, _read(files, jobs), strict=True):
        if isinstance(outcome, UnreadableError):
            problems.append(outcome)
        elif outcome.trace is not None:
            traces.setdefault(file.folder, []).append(outcome.trace)
    names = {file.folder: file.run for file in files}
    runs = tuple(Run(name=names[each], workers=tuple(own)) for each, own in traces.items())
    _tell(problems, is_any_left=bool(runs))
    return runs


def _read(files: Sequence[TraceFile], jobs: int) -> Sequence[Outcome]:
    orders = [ReadRequest(file=file) for file in files]
    if jobs == 1:
        return read_all(orders, InProcessReader(), jobs=1)
    with closing(ReaderPool(MemoryBudget(settings().memory_bytes))) as readers:
        return read_all(orders, readers, jobs=jobs)


def load(path: str | PathLike[str], *, jobs: int = 1) -> Run:
    """Return the one run below a path; `jobs` is as for `load_all`.

    Raises:
        UnreadableError: nothing there can be read.
        UsageError: there are several runs.
    """
    runs = load_all(path, jobs=jobs)
    if len(runs) > 1:
        names = ", ".join(run.name for run in runs)
        msg = (
            f"{fspath(path)} holds {len(runs)} runs ({names}): give the folder of one, "
            "or use stepscope.load_all"
        )
        raise UsageError(msg)
    return runs[0]


def advise(  # noqa: PLR0913 (each is something a user may say)
    run: Run,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    options: Mapping[str, Mapping[str, bool | float | str]] | None = None,
    preview: bool = False,
    config: str | PathLike[str] | None = None,
) -> Advice:
    """Return what the rules say of a run: see `stepscope.advise`.

    Raises:
        UnreadableError: no recording of the run can be analysed.
        UsageError: there is no such rule or option, or a value does not fit it.
    """
    said = AdviceSettings() if config is None else read_settings(Path(fspath(config)))
    given = Changes(
        select=tuple(select) or None,
        ignore=tuple(ignore),
        preview=preview or None,
        options=options or {},
    )
    report, problems = advise_with_settings(run, said.then(given))
    _tell(problems, is_any_left=bool(report.workers))
    return Advice(report)


def table(of: Run | Trace, name: str) -> pd.DataFrame:
    """Return a public table of a recording, or of all recordings of a run.

    Raises:
        MissingDataError: no recording can have it; `remedy` is the code that records what it lacks.
        UsageError: there is no table of that name.
    """
    known = find(name)
    traces = (of,) if isinstance(of, Trace) else of.workers
    if isinstance(known, RunTable):
        return known.build([known.part(trace) for trace in traces])
    if isinstance(of, Trace):
        return known.build(of)
    frames: list[pd.DataFrame] = []
    missing: list[tuple[Trace, MissingDataError]] = []
    for trace in traces:
        try:
            frames.append(labelled(known.build(trace), known, of.name, trace))
        except MissingDataError as error:
            missing.append((trace, error))
    if missing and not frames:
        raise missing[0][1]
    for trace, why in missing:
        warnings.warn(f"{name} of {trace.worker}, span {trace.span}: {why}", stacklevel=3)
    return stacked(frames, schema_of(known))


@dataclass(frozen=True)
class Comparison:
    """What changed between runs: `print` it, or take its `report` apart."""

    report: ComparisonReport

    def __str__(self) -> str:
        return comparison_text.render(self.report)

    def _repr_markdown_(self) -> str:
        """Show it in a notebook."""
        return comparison_markdown.render(self.report)


def compare(before: Run | Trace, *after: Run | Trace) -> Comparison:
    """Return what changed from a run, or one recording, to each of the others."""
    first, *others = (_side(each) for each in (before, *after))
    report = ComparisonReport(
        comparisons=tuple(comparison.compare(*first, *other) for other in others),
        test=comparison.TEST,
        version=__version__,
    )
    return Comparison(report)


def _side(of: Run | Trace) -> tuple[str, list[Sample]]:
    if isinstance(of, Run):
        return of.name, [sample(trace) for trace in of.workers]
    return f"{of.worker}, span {of.span}", [sample(of)]


def _tell(problems: Sequence[UnreadableError], *, is_any_left: bool) -> None:
    """Warn the caller's caller of each problem, or raise where there is nothing else."""
    if problems and not is_any_left:
        raise problems[0]
    for problem in problems:
        warnings.warn(str(problem), stacklevel=3)
