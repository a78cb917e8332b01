"""Rows of the summary store, and their conversion from and to summaries.

Each field is a column, with nested columns for its fields (`codec.py`). docs/summaries.md documents
them.
"""

import hashlib
import time
from dataclasses import dataclass, fields, replace

import msgspec
import pyarrow as pa

from stepscope._version import __version__
from stepscope.advice import AdviceSettings, TraceAdvice, run_report
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.base import urls
from stepscope.base.findings import Outcome
from stepscope.base.report import RunReport, WorkerReport
from stepscope.comparison.samples import Sample
from stepscope.comparison.trends import Trend
from stepscope.storage import FileStamp
from stepscope.storage.cache_folder import require
from stepscope.storage.discover import TraceFile
from stepscope.summaries.cache_key import FileLocations
from stepscope.summaries.codec import fields_of
from stepscope.summaries.summary import Summary
from stepscope.summaries.validation import require_consistent

VERSION = 1
"""Increment when the meaning of a column changes."""
NOTHING_ADVISED = RunReport(name="", workers=(), outcomes=())
"""Replaces a sample's advice, which is restored from the trace's."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Row:
    """One trace, without its sample."""

    file: str
    path: str
    worker: str
    span: str
    rank: int | None
    size_bytes: int
    modified_ns: int
    tag: str
    settings: str
    written_ns: int
    stepscope: str
    events: int
    report: WorkerReport
    outcomes: tuple[Outcome, ...]
    part: RankSummary | None
    trend: Trend | None


@dataclass(frozen=True, kw_only=True, eq=False)
class WholeRow(Row):
    """One trace."""

    sample: Sample | None


SCHEMA: pa.Schema = fields_of(WholeRow)


def folder_name(schema: pa.Schema, version: int) -> str:
    """Return the name of the folder for rows of these columns."""
    text = f"{version}\n{schema.to_string(truncate_metadata=False)}"
    return f"v{version}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


FOLDER = folder_name(SCHEMA, VERSION)


def columns_of(of: type[Row]) -> tuple[str, ...]:
    """Return the column names of a row type."""
    return tuple(field.name for field in fields(of))


def row_of(
    locations: FileLocations, file: TraceFile, stamp: FileStamp, summary: Summary, settings: str
) -> WholeRow:
    """Return the row of a file's summary.

    Raises:
        ValueError: The summary is of another trace.
    """
    report, outcomes = _without_names(summary.advice)
    sample = summary.sample
    return WholeRow(
        file=locations.file_key(file),
        path=urls.redacted(locations.path(file)),
        worker=file.worker,
        span=file.span,
        rank=report.rank,
        size_bytes=stamp.size_bytes,
        modified_ns=stamp.modified_ns,
        tag=stamp.tag,
        settings=settings,
        written_ns=time.time_ns(),
        stepscope=__version__,
        events=summary.events,
        report=report,
        outcomes=outcomes,
        part=summary.advice.part,
        trend=summary.trend,
        sample=None if sample is None else replace(sample, advice=NOTHING_ADVISED),
    )


def _without_names(advice: TraceAdvice) -> tuple[WorkerReport, tuple[Outcome, ...]]:
    """Return the advice without the trace's names, so that equal advice is stored once."""
    worker = advice.worker
    named = (worker.trace, worker.name, worker.span)
    if any((o.trace, o.worker, o.span) != named for o in advice.outcomes):
        msg = f"an outcome is not of {worker.name}, span {worker.span}"
        raise ValueError(msg)
    return (
        msgspec.structs.replace(worker, trace=""),
        tuple(
            msgspec.structs.replace(outcome, trace="", worker="", span="")
            for outcome in advice.outcomes
        ),
    )


def summary_of(row: Row, file: TraceFile, settings: AdviceSettings) -> Summary:
    """Return the summary of a file from its row.

    Raises:
        DamagedError: The row is inconsistent.
    """
    is_of_file = (row.report.name, row.report.span) == (file.worker, file.span)
    require(is_of_file, "its report is of another trace")
    advice = TraceAdvice(
        worker=msgspec.structs.replace(row.report, trace=file.id),
        outcomes=tuple(
            msgspec.structs.replace(outcome, trace=file.id, worker=file.worker, span=file.span)
            for outcome in row.outcomes
        ),
        part=row.part,
    )
    sample = row.sample if isinstance(row, WholeRow) else None
    if sample is not None:
        sample = replace(sample, advice=run_report("", [advice], settings))
    summary = Summary(events=row.events, advice=advice, trend=row.trend, sample=sample)
    require_consistent(summary)
    return summary
