"""The advice in any form: a finding or part that a form fails to show costs no other.

Only where a form fails are outcomes and the parts of a trace's report tried alone.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from types import MappingProxyType
from typing import Any

import msgspec

from stepscope.advice.parts import with_items
from stepscope.analyses.health import failed_item
from stepscope.base.errors import in_one_line
from stepscope.base.findings import Outcome
from stepscope.base.report import MergedOutcome, Report, RunReport, WorkerReport
from stepscope.render.separate_failures import with_errors

log = logging.getLogger(__name__)

Form = Callable[[Report], str]
PARTS: Mapping[str, tuple[str, Any]] = MappingProxyType(
    {
        "budget": ("The time budget", ()),
        "saving": ("The saving of all findings together", None),
        "outlook": ("The outlook", None),
        "standing": ("The overall status", None),
        "verdict": ("The first sentence", ""),
        "settings": ("The list of settings", ()),
        "health": ("The health of the trace", ()),
    }
)
"""Fields of a trace's report that a form can do without, and their empty values."""


def render(form: str, report: Report, **options: Any) -> str:  # noqa: ANN401 (those of the form)
    """Return the report in a form, by the module of that name."""
    show: Form = partial(import_module(f"stepscope.render.{form}").render, **options)
    try:
        return show(report)
    except Exception as error:  # a bug in one part must not hide the others
        log.warning("the advice as %s failed: %s", form, in_one_line(error))
    runs = tuple(_shown(run, show) for run in report.runs)
    return show(msgspec.structs.replace(report, runs=runs))


def _shown(run: RunReport, show: Form) -> RunReport:
    """Return a run of which the form shows everything."""
    workers = tuple(_shown_worker(worker, run, show) for worker in run.workers)
    empty = msgspec.structs.replace(run, workers=workers, outcomes=(), merged=())
    if run.job is not None and _error(empty, show):
        empty = msgspec.structs.replace(empty, job=None)

    def outcomes_error(outcomes: Sequence[Outcome]) -> str:
        return _error(msgspec.structs.replace(empty, outcomes=tuple(outcomes)), show)

    def merged_error(merged: Sequence[MergedOutcome]) -> str:
        outcomes = tuple(finding.outcome for finding in merged)
        some = msgspec.structs.replace(empty, outcomes=outcomes, merged=tuple(merged))
        return _error(some, show)

    outcomes = with_errors(run.outcomes, outcomes_error)
    return msgspec.structs.replace(
        empty,
        outcomes=tuple(
            _failed(outcome, reason) if reason else outcome for outcome, reason in outcomes
        ),
        merged=tuple(
            finding for finding, reason in with_errors(run.merged, merged_error) if not reason
        ),
    )


def _shown_worker(worker: WorkerReport, run: RunReport, show: Form) -> WorkerReport:
    """Return a trace's report without the first part that the form fails to show, or without all.

    A health item names the omitted parts.
    """
    alone = RunReport(name=run.name, workers=(worker,), outcomes=())
    reason = _error(alone, show)
    if not reason:
        return worker
    for field, (name, empty) in PARTS.items():
        fewer = msgspec.structs.replace(worker, **{field: empty})
        if not _error(msgspec.structs.replace(alone, workers=(fewer,)), show):
            item = failed_item(f"{name} is left out: stepscope failed ({reason})")
            return with_items(fewer, [item])
    item = failed_item(f"Most of the trace's report is left out: stepscope failed ({reason})")
    emptied = {field: empty for field, (_, empty) in PARTS.items()}
    return with_items(msgspec.structs.replace(worker, **emptied), [item])


def _failed(outcome: Outcome, reason: str) -> Outcome:
    """Return the outcome of a rule whose finding cannot be shown."""
    return Outcome(
        rule=outcome.rule,
        title=outcome.title,
        category=outcome.category,
        status="failed",
        worker=outcome.worker,
        span=outcome.span,
        trace=outcome.trace,
        reason=f"its result cannot be shown: stepscope failed ({reason})",
    )


def _error(run: RunReport, show: Form) -> str:
    """Return the reason that a form fails to show a run; empty where it does not."""
    try:
        show(Report(runs=(run,)))
    except Exception as error:
        return in_one_line(error)
    return ""
