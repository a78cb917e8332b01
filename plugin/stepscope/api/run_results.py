"""Results of all runs in short, from the advice that was computed when their files were read.

Merging the advice of many traces takes seconds, so a thread does it, one run after the other; a
request takes the results computed so far.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean
from threading import Lock, Thread
from time import monotonic
from types import MappingProxyType

from stepscope.advice import TraceAdvice, run_report
from stepscope.advice.settings import DEFAULT
from stepscope.advice.trace_report import undamaged
from stepscope.api.messages import FirstFinding, RunResult, RunSaving
from stepscope.api.run_advice import rest_seconds, unread_files
from stepscope.base.errors import in_one_line
from stepscope.base.report import MergedOutcome, RunReport, StepReport, WorkerReport
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Entry, Unreadable
from stepscope.summaries.summary import Summary

log = logging.getLogger(__name__)

MOST_DURATIONS = 48
"""Most step durations of a result, which the page draws a few pixels wide."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of runs computed so far, by the runs' ids."""

    by_run: Mapping[str, RunResult]
    is_pending: bool
    version: int
    """Changes with each result."""


NO_RESULTS = Results(by_run=MappingProxyType({}), is_pending=False, version=0)

_State = tuple[object, ...]
"""Changes when the result of a run may change."""


@dataclass(frozen=True, kw_only=True)
class _Computed:
    state: _State
    result: RunResult | None
    """None if it could not be computed."""
    due_at: float
    """Earliest time of the next result while files are read, in `monotonic` seconds."""


@dataclass(frozen=True, kw_only=True)
class _Task:
    state: _State
    entries: tuple[Entry, ...]
    advised: tuple[Entry, ...]


@dataclass(kw_only=True)
class _Shared:
    """State that requests and the thread share under the lock."""

    computed: dict[str, _Computed] = field(default_factory=dict)
    tasks: dict[str, _Task] = field(default_factory=dict)
    is_working: bool = False
    version: int = 0


class RunResults:
    """Results of the runs of a catalog, computed on a thread while there is something to do."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._shared = _Shared()
        self._lock = Lock()

    def current(self) -> Results:
        """Return the results computed so far; those of changed runs follow."""
        tasks = {
            run: task
            for run, entries in groupby(self._catalog.entries(), lambda entry: entry.file.run_id)
            if (task := _task(tuple(entries)))
        }
        with self._lock:
            shared = self._shared
            shared.computed = {run: of for run, of in shared.computed.items() if run in tasks}
            shared.tasks = {
                run: task
                for run, task in tasks.items()
                if (last := shared.computed.get(run)) is None or last.state != task.state
            }
            if any(self._is_due(run) for run in shared.tasks) and not shared.is_working:
                shared.is_working = True
                Thread(target=self._work, name="stepscope-results", daemon=True).start()
            return Results(
                by_run={
                    run: of.result for run, of in shared.computed.items() if of.result is not None
                },
                is_pending=bool(shared.tasks),
                version=shared.version,
            )

    def _is_due(self, run: str) -> bool:
        last = self._shared.computed.get(run)
        return last is None or monotonic() >= last.due_at

    def _next(self) -> tuple[str, _Task] | None:
        with self._lock:
            run = next(filter(self._is_due, self._shared.tasks), None)
            if run is None:
                self._shared.is_working = False
                return None
            return run, self._shared.tasks[run]

    def _work(self) -> None:
        while (item := self._next()) is not None:
            run, task = item
            begun_at = monotonic()
            result = self._result(task)
            took_s = monotonic() - begun_at
            is_coming = unread_files(task.entries, task.advised).awaited_count > 0
            due_at = monotonic() + rest_seconds(took_s) if is_coming else 0.0
            with self._lock:
                shared = self._shared
                shared.computed[run] = _Computed(state=task.state, result=result, due_at=due_at)
                shared.version += 1
                if shared.tasks.get(run, task).state == task.state:
                    shared.tasks.pop(run, None)

    def _result(self, task: _Task) -> RunResult | None:
        name = task.entries[0].file.run
        try:
            return self._merged(name, task)
        except Exception as error:  # the other runs' results are still shown
            log.warning("%s: its result is omitted: %s", name, in_one_line(error))
            return None

    def _merged(self, name: str, task: _Task) -> RunResult:
        unread = unread_files(task.entries, task.advised)
        summaries = _summaries(task.advised)
        report = run_report(
            name,
            [summary.advice for summary in summaries],
            self._catalog.advice or DEFAULT,
            unreadable=unread.unreadable,
            awaited_count=unread.awaited_count,
        )
        return run_result(report, summaries)


def _task(entries: tuple[Entry, ...]) -> _Task | None:
    """Return what a run's result follows from; None before a file is read."""
    advised = tuple(entry for entry in entries if _is_advised(entry))
    if not advised:
        return None
    unread = unread_files(entries, advised)
    files = ((entry.file.id, entry.file.span, entry.stamp) for entry in advised)
    state = (entries[0].file.run, *files, *unread.unreadable, unread.awaited_count)
    return _Task(state=state, entries=entries, advised=advised)


def _is_advised(entry: Entry) -> bool:
    is_read = entry.facts is not None and entry.facts.summary is not None
    return is_read and not isinstance(entry.state, Unreadable)


def _summaries(entries: Sequence[Entry]) -> list[Summary]:
    return [
        entry.facts.summary
        for entry in entries
        if entry.facts is not None and entry.facts.summary is not None
    ]


def run_result(report: RunReport, summaries: Sequence[Summary]) -> RunResult:
    """Return the result of a run in short, from its merged advice and its traces' summaries."""
    slowest = max(undamaged(report.workers), key=lambda worker: worker.step.mean_ns)
    summary = next(of for of in summaries if of.advice.worker.trace == slowest.trace)
    first = report.merged[0] if report.merged else None
    saving, withheld = _saving(report, slowest)
    return RunResult(
        trace_count=len(report.workers),
        verdict=report.verdict,
        slowest=slowest.name,
        step_ns=slowest.step.mean_ns if slowest.step.count else None,
        step_count=slowest.step.count,
        step_durations_ns=_step_durations(summary.advice),
        busy_share=_busy_share(report.workers),
        batch_size=summary.trend.batch_size if summary.trend is not None else None,
        finding=_finding(report, first, slowest.step) if first is not None else None,
        finding_count=len(report.merged),
        saving=saving,
        withheld=withheld,
    )


def _step_durations(advice: TraceAdvice) -> tuple[int, ...]:
    """Return the durations of a trace's steps; of many, the longest of each group."""
    if advice.part is None or not advice.part.steps.has_steps:
        return ()
    durations = advice.part.steps.duration_ns.tolist()
    size = -(-len(durations) // MOST_DURATIONS)
    return tuple(max(durations[at : at + size]) for at in range(0, len(durations), size))


def _busy_share(workers: Sequence[WorkerReport]) -> float | None:
    shares = [
        max(device.busy_share for device in worker.devices) for worker in workers if worker.devices
    ]
    return fmean(shares) if shares else None


def _finding(report: RunReport, merged: MergedOutcome, step: StepReport) -> FirstFinding:
    outcome = merged.outcome
    return FirstFinding(
        rule=outcome.rule,
        title=outcome.title,
        severity=outcome.severity or "info",
        saving=_saving_of_finding(report, merged, step.mean_ns),
    )


def _saving_of_finding(report: RunReport, merged: MergedOutcome, step_ns: int) -> RunSaving | None:
    """Return a finding's saving: of the job where it is estimated, else of the trace."""
    claim = merged.outcome.claim
    if len(report.workers) > 1 and merged.job_saving is not None:
        job = merged.job_saving
        return _of_shares(job.low_share, job.high_share, step_ns)
    if claim is None or not claim.decisive.high_ns:
        return None
    decisive = claim.decisive
    return RunSaving(low_ns=decisive.low_ns, high_ns=decisive.high_ns, share=decisive.share)


def _saving(report: RunReport, slowest: WorkerReport) -> tuple[RunSaving | None, str]:
    """Return the net saving of all findings, and the reason for withholding it."""
    if len(report.workers) == 1:
        return _saving_of_trace(slowest), ""
    job = report.job
    if job is None or job.total is None:
        return None, job.withheld if job is not None else ""
    return _of_shares(job.total.low_share, job.total.high_share, job.step_ns), ""


def _saving_of_trace(worker: WorkerReport) -> RunSaving | None:
    saving = worker.saving
    if saving is None:
        return None
    return RunSaving(low_ns=saving.low_ns, high_ns=saving.high_ns, share=saving.high_share)


def _of_shares(low: float, high: float, step_ns: int) -> RunSaving | None:
    if not high:
        return None
    return RunSaving(low_ns=round(low * step_ns), high_ns=round(high * step_ns), share=high)
