"""The Python interface: `stepscope.load`, `advise`, `table`, `compare` and `whatif`."""

import warnings
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path

import pandas as pd

from stepscope import comparison
from stepscope._version import __version__
from stepscope.advice import AdviceSettings, advise_with_settings
from stepscope.advice.fixes import fix_changes, predict_fixes
from stepscope.advice.settings import Changes
from stepscope.advice.settings_files import read_settings
from stepscope.analyses.communication.rank_summary import rank_summary
from stepscope.analyses.communication.ranked_run import rank_run
from stepscope.base.config import settings
from stepscope.base.errors import MissingDataError, StepscopeError, UnreadableError, UsageError
from stepscope.base.report import Report, RunReport
from stepscope.base.step_range import StepRange, parse_steps
from stepscope.comparison.messages import ComparisonReport
from stepscope.comparison.samples import Sample, sample
from stepscope.comparison.selected_steps import select_steps, step_label
from stepscope.model.table import RunTable
from stepscope.model.trace import Run, Trace
from stepscope.readers.batch import Outcome, read_all
from stepscope.readers.memory_budget import MemoryBudget
from stepscope.readers.pool import InProcessReader, ReaderPool
from stepscope.readers.requests import ReadRequest
from stepscope.render import (
    advice_report,
    comparison_report,
    simulated_trace,
)
from stepscope.render import prediction as rendered_prediction
from stepscope.render import run_prediction as rendered_run
from stepscope.render.shared_file import frame
from stepscope.render.table_export import labelled, schema_of, stacked
from stepscope.replay.changes import Change
from stepscope.replay.run_what_if import RunPrediction, RunWhatIf, StageScale, predict_run
from stepscope.replay.simulation import simulate
from stepscope.replay.what_if import Prediction, WhatIf, changes_of, parse_scale
from stepscope.storage import discover
from stepscope.storage.discover import TraceFile
from stepscope.tables import find

NOTEBOOK_BYTES = 4_000_000
"""Largest page of a run in a notebook, which stores it."""


class Printed:
    """A result that the Python prompt shows as `print` does."""

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class LoadedRun(Run):
    """A run that a notebook shows as the page, in a frame."""

    def _repr_html_(self) -> str | None:
        """Return the page of a shared file in a frame; None, so for text, where there is none."""
        from stepscope.api import shared_file  # noqa: PLC0415 (imports the web framework)

        paths = [trace.path for trace in self.workers]
        options = shared_file.Options(most_bytes=NOTEBOOK_BYTES)
        try:
            files = [file for path in paths for file in discover.at(path)]
            file = shared_file.of_files(discover.as_runs(files), settings(), options=options)
        except StepscopeError:  # the page is not built, or the files were moved
            return None
        return frame(file.html, self.name)


@dataclass(frozen=True, repr=False)
class Advice(Printed):
    """Advice on a run: `print` it, or use its `report`."""

    report: RunReport

    def __str__(self) -> str:
        return advice_report.render("text", self._as_report())

    def _repr_markdown_(self) -> str:
        return advice_report.render("markdown", self._as_report())

    def _as_report(self) -> Report:
        return Report(runs=(self.report,), version=__version__)


def load_all(path: str | PathLike[str], *, jobs: int = 1) -> tuple[Run, ...]:
    """Return every run below a path; a file that cannot be read causes a warning.

    `jobs` is as for `load`.

    Raises:
        UnreadableError: No file below the path can be read.
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
    runs = tuple(
        LoadedRun(name=names[folder], workers=tuple(run)) for folder, run in traces.items()
    )
    _warn(problems, has_result=bool(runs))
    return runs


def _read(files: Sequence[TraceFile], jobs: int) -> Sequence[Outcome]:
    requests = [ReadRequest(file=file) for file in files]
    if jobs == 1:
        return read_all(requests, InProcessReader(), jobs=1)
    with closing(ReaderPool(MemoryBudget(settings().memory_bytes))) as readers:
        return read_all(requests, readers, jobs=jobs)


def load(path: str | PathLike[str], *, jobs: int = 1) -> Run:
    """Return the run at a path: a run's folder, a log directory with one run, or a trace file.

    `run.workers` has one `Trace` per file, with `worker`, `span`, and its frames. `jobs` files are
    read in parallel, large ones in child processes; these never import your script, so `if __name__
    == "__main__"` is not needed.

    Raises:
        UnreadableError: No file there can be read; the message includes the remedy.
        UsageError: There are several runs; the message lists them.
    """
    runs = load_all(path, jobs=jobs)
    if len(runs) > 1:
        names = ", ".join(run.name for run in runs)
        msg = (
            f"{fspath(path)} holds {len(runs)} runs ({names}): pass the folder of one, or use "
            "stepscope.load_all"
        )
        raise UsageError(msg)
    return runs[0]


def advise(  # noqa: PLR0913 (options of the user)
    run: Run,
    *,
    select: Sequence[str] = (),
    ignore: Sequence[str] = (),
    options: Mapping[str, Mapping[str, bool | float | str]] | None = None,
    preview: bool = False,
    config: str | PathLike[str] | None = None,
) -> Advice:
    """Return the advice on a run: `print` it, show it in a notebook, or use its `report`.

    A trace that cannot be analysed causes a warning.

    Args:
        run: The run, from `load`.
        select: Only these rules: ids, categories, severities, or `all`.
        ignore: Exclude these rules; names as for `select`.
        options: Rule id to option to value, as `{"item-sync": {"least_idle_share": 0.02}}`.
        preview: Include preview rules.
        config: A `stepscope.toml` or `pyproject.toml`; the arguments take precedence.

    Raises:
        UnreadableError: No trace of the run can be analysed.
        UsageError: A rule or option does not exist, or a value is invalid.
    """
    base = AdviceSettings() if config is None else read_settings(Path(fspath(config)))
    changes = Changes(
        select=tuple(select) or None,
        ignore=tuple(ignore),
        preview=preview or None,
        options=options or {},
    )
    report, problems = advise_with_settings(run, base.then(changes))
    _warn(problems, has_result=bool(report.workers))
    return Advice(report)


def table(of: Run | Trace, name: str) -> pd.DataFrame:
    """Return a public table: of one trace, or of all traces of a run.

    `all_tables()` lists the tables. The table of a trace (`run.workers[0]`) has the columns of the
    table's schema; the table of a run begins with `run`, `worker`, `span` and `rank`. A trace that
    lacks the data causes a warning.

    Raises:
        MissingDataError: No trace has the data; `remedy` is the code that records it.
        UsageError: There is no table of that name.
    """
    definition = find(name)
    traces = (of,) if isinstance(of, Trace) else of.workers
    if isinstance(definition, RunTable):
        return definition.build([definition.part(trace) for trace in traces])
    if isinstance(of, Trace):
        return definition.build(of)
    frames: list[pd.DataFrame] = []
    missing: list[tuple[Trace, MissingDataError]] = []
    for trace in traces:
        try:
            frames.append(labelled(definition.build(trace), definition, of.name, trace))
        except MissingDataError as error:
            missing.append((trace, error))
    if missing and not frames:
        raise missing[0][1]
    for trace, why in missing:
        warnings.warn(f"{name} of {trace.worker}, span {trace.span}: {why}", stacklevel=2)
    return stacked(frames, schema_of(definition))


@dataclass(frozen=True, repr=False)
class PredictedRun(Printed):
    """Simulated step of a run: `print` it, or use its `prediction`."""

    prediction: RunPrediction

    def __str__(self) -> str:
        return rendered_run.text(self.prediction)

    def _repr_markdown_(self) -> str:
        return rendered_run.markdown(self.prediction)


def run_what_if(
    run: Run,
    *,
    ranks_alike: bool = False,
    without_ranks: Sequence[int] = (),
    network: float = 1.0,
    stages: Mapping[int, float] | None = None,
) -> PredictedRun:
    """Return the simulated step of a run of several ranks after changes.

    The ranks' work between collectives is replayed: a collective ends when its last rank has come
    and its transfer is over. Without changes, the result tells how well this describes the run.

    Args:
        run: The run, from `load`.
        ranks_alike: Let all ranks of a pipeline stage work as long as their mean.
        without_ranks: Ranks that work as long as the median of the others of their stage.
        network: Speed of the network; 2: each transfer takes half its time.
        stages: Pipeline stage, from 1, to the factor of its work.

    Raises:
        MissingDataError: The run has one rank, its ranks recorded different steps or collectives,
            or a replay with typical transfers misses the recorded steps by more than 2 %.
        UsageError: A rank or stage does not exist, or a factor is negative.
    """
    changes = RunWhatIf(
        ranks_alike=ranks_alike,
        without_ranks=tuple(without_ranks),
        network=network,
        stages=tuple(
            StageScale(stage=stage, factor=factor) for stage, factor in (stages or {}).items()
        ),
    )
    parts = [rank_summary(trace) for trace in run.workers]
    return PredictedRun(predict_run(rank_run(parts), changes))


@dataclass(frozen=True, repr=False)
class Comparison(Printed):
    """Comparison of runs: `print` it, or use its `report`."""

    report: ComparisonReport

    def __str__(self) -> str:
        return comparison_report.render("text", self.report)

    def _repr_markdown_(self) -> str:
        return comparison_report.render("markdown", self.report)


def compare(
    before: Run | Trace,
    *after: Run | Trace,
    steps: int | str | None = None,
    baseline_steps: int | str | None = None,
) -> Comparison:
    """Return the changes from one run, or trace, to each of the others.

    `print` the result, show it in a notebook, or use its `report`: metrics with their spread,
    significant changes, advice that was fixed, and the savings that it brought.

    Args:
        before: A run or a trace.
        after: The others; with `baseline_steps`, they may be `before` itself.
        steps: Compare only these steps, by their numbers: `5` or `"3-5"`.
        baseline_steps: Steps of `before`, if they are others.

    Raises:
        UsageError: There are no such steps.
    """
    selected = _steps(steps)
    of_before = selected if baseline_steps is None else _steps(baseline_steps)
    first = _side(before, of_before)
    report = ComparisonReport(
        comparisons=tuple(
            comparison.compare(
                *first,
                *_side(other, selected),
                are_steps_selected=(selected, of_before) != (None, None),
            )
            for other in after
        ),
        test=comparison.TEST,
        version=__version__,
    )
    return Comparison(report)


@dataclass(frozen=True, repr=False)
class PredictedStep(Printed):
    """The step that a simulation predicts: `print` it, or use its `prediction`."""

    prediction: Prediction

    def __str__(self) -> str:
        return rendered_prediction.text(self.prediction)

    def _repr_markdown_(self) -> str:
        return rendered_prediction.markdown(self.prediction)


def whatif(  # noqa: PLR0913 (options of the user)
    of: Run | Trace | str | PathLike[str],
    *changes: Change | str,
    fixes: Collection[str] = (),
    host: float = 1.0,
    device: float = 1.0,
    is_unblocked: bool = False,
    workers: int | None = None,
    cores: int | None = None,
    output: str | PathLike[str] | None = None,
) -> PredictedStep:
    """Return the simulated step of a trace after changes.

    The trace is replayed as a graph: each launch, kernel and copy begins as soon as everything that
    it waited for in the recording has ended.

    Args:
        of: A trace, a run of one trace, or the path of one.
        changes: Scales as `"kernels:*gemm*=0.5"` or `"operators:aten::to=0"`, or changes of
            `stepscope.replay.changes`; they apply first, after fixes.
        fixes: Rules whose findings are fixed, as `("item-sync", "tiny-kernels")`.
        host: Factor of all of the host's time.
        device: Factor of all device events.
        is_unblocked: Whether no call waits for the device any more.
        workers: Worker processes that load batches.
        cores: Cores for the loop and its workers; without it, as recorded.
        output: A file for recorded and simulated events, as a Chrome trace for Perfetto.

    Raises:
        MissingDataError: The replay does not describe this trace: without changes, it misses the
            recorded end by more than 2 %; or the trace lacks data on its workers.
        UnreadableError: The file cannot be read.
        UsageError: There are several traces, a scale is invalid or matches no event, or a rule has
            no finding that saves time.
    """
    trace = _only_trace(of)
    what_if = WhatIf(
        host=host,
        device=device,
        scales=tuple(parse_scale(change) for change in changes if isinstance(change, str)),
        is_unblocked=is_unblocked,
        workers=workers,
        cores=cores,
    )
    first = [change for change in changes if isinstance(change, Change)]
    prediction = predict_fixes(trace, fixes, what_if, first)
    if output is not None:
        every = [*fix_changes(trace, fixes).most, *first, *changes_of(trace, what_if)]
        simulation = simulate(trace, every)
        simulated_trace.write(trace, simulation, fspath(output))
    return PredictedStep(prediction)


def _only_trace(of: Run | Trace | str | PathLike[str]) -> Trace:
    if isinstance(of, Trace):
        return of
    run = of if isinstance(of, Run) else load(of)
    if len(run.workers) != 1:
        names = ", ".join(f"{trace.worker} span {trace.span}" for trace in run.workers)
        msg = f"{run.name} holds {len(run.workers)} traces ({names}): pass one of its `workers`"
        raise UsageError(msg)
    return run.workers[0]


def _steps(steps: int | str | None) -> StepRange | None:
    return None if steps is None else parse_steps(str(steps))


def _side(of: Run | Trace, steps: StepRange | None) -> tuple[str, list[Sample]]:
    if isinstance(of, Run):
        name, traces = of.name, of.workers
    else:
        name, traces = f"{of.worker}, span {of.span}", (of,)
    return step_label(name, steps), select_steps([sample(trace) for trace in traces], steps)


def _warn(problems: Sequence[UnreadableError], *, has_result: bool) -> None:
    """Warn the caller's caller of each problem, or raise the first if there is no result."""
    if problems and not has_result:
        raise problems[0]
    for problem in problems:
        warnings.warn(str(problem), stacklevel=3)
