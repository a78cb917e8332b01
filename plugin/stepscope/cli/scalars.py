"""`stepscope scalars`: key figures over a run's spans as TensorBoard scalars."""

import io
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.base.plain_text import plain
from stepscope.cli.advice_options import RuleOptions, with_configuration
from stepscope.cli.file_reading import Effort, result_in, with_effort, with_summaries
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.output import is_coloured, width, write_message
from stepscope.cli.selection import Selection, with_selection
from stepscope.cli.summary_reading import Extraction, values_of

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.base.errors import UnreadableError
    from stepscope.comparison.trends import Trend
    from stepscope.readers.requests import Step
    from stepscope.readers.tasks import ResultWithDamage
    from stepscope.storage.discover import TraceFile
    from stepscope.summaries.summary import Summary

PREFIX = "stepscope"
NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
NOTHING_READ = 2
EVENT_FILE = "events.out.tfevents.0000000000.stepscope"
"""TensorBoard looks for `tfevents`; without time and process number the name is constant."""
EVENT_VERSION = "brain.Event:2"


@dataclass(frozen=True, kw_only=True)
class StepScalars:
    """The values of one step."""

    step: int
    wall_time: float
    """Unix time in seconds."""
    values: dict[str, float]
    """By tag."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """The scalars of one worker of one run."""

    run: str
    worker: str
    folder: str
    """The folder to write them to."""
    scalars: tuple[StepScalars, ...]
    """One per span."""


@click.command(short_help="Write step times and more as TensorBoard scalars, one point per span.")
@click.argument("paths", metavar="LOGDIR...", nargs=-1, required=True)
@click.option(
    "--write",
    "is_written",
    is_flag=True,
    help="Write the scalars (needs `pip install 'stepscope[tensorboard]'`); without this option "
    "they are only printed.",
)
@with_selection
@with_configuration
@with_effort
@with_summaries
def scalars(
    *,
    paths: tuple[str, ...],
    is_written: bool,
    selection: Selection,
    rule_options: RuleOptions,
    effort: Effort,
) -> None:
    """Print or write each run's key figures over its spans, for TensorBoard's Scalars tab.

    Each span is a point: the mean step and its parts in milliseconds, the device's busy share, the
    potential saving of each rule (a fraction of the step), peak memory. They are written to
    RUN/stepscope/WORKER next to the traces; writing again adds only new spans.

    \b
    stepscope scalars log/                   # print them
    stepscope scalars log/ --write
    tensorboard --logdir log/                # Scalars: stepscope/step_ms, …

    The exit status is 0 on success, and 2 if nothing could be read.
    """
    if is_written and selection.spans:
        msg = "--write needs all spans: a file of some spans would hide the others"
        raise click.UsageError(msg)
    if is_written and find_spec("tensorboard") is None:
        msg = "--write needs TensorBoard: pip install 'stepscope[tensorboard]'"
        raise click.UsageError(msg)
    series, problems = _series(paths, selection, rule_options, effort)
    _print_problems(problems)
    if not series:
        raise click.exceptions.Exit(NOTHING_READ)
    if is_written:
        _write(series)
    else:
        _print(series)


def _series(
    paths: Sequence[str], selection: Selection, rule_options: RuleOptions, effort: Effort
) -> "tuple[list[Series], list[UnreadableError]]":
    from stepscope.base import urls
    from stepscope.base.errors import UnreadableError

    files, problems = files_at(paths)
    files = selection.of(files)
    extract = Extraction(steps=_steps, of=_trend_with_damage)
    values = values_of(files, extract, rule_options.settings(), effort.settings())
    of_worker: dict[tuple[str, str], list[tuple[TraceFile, Trend]]] = {}
    for file, value in zip(files, values, strict=True):
        if isinstance(value, UnreadableError):
            problems.append(value)
        else:
            key = (file.folder, file.worker)
            of_worker.setdefault(key, []).append((file, result_in(file, value)))
    every_series = [
        Series(
            run=spans[0][0].run,
            worker=worker,
            folder=urls.join(folder, f"{PREFIX}/{worker.strip('.') or 'worker'}"),
            scalars=tuple(_of_span(file, trend) for file, trend in spans),
        )
        for (folder, worker), spans in of_worker.items()
    ]
    return every_series, problems


def _steps(settings: "AdviceSettings") -> "tuple[Step, ...]":
    from stepscope.readers.tasks import trend, with_damage

    return (("analysing", partial(with_damage, task=partial(trend, settings=settings))),)


def _trend_with_damage(summary: "Summary") -> "ResultWithDamage | None":
    from stepscope.analyses.health import losses_among
    from stepscope.readers.tasks import ResultWithDamage

    if summary.trend is None:
        return None
    return ResultWithDamage(result=summary.trend, damage=losses_among(summary.advice.worker.health))


def _of_span(file: "TraceFile", trend: "Trend") -> StepScalars:
    return StepScalars(
        step=trend.span,
        wall_time=file.recorded_ns / NS_PER_S,
        values=dict(_values(trend)),
    )


def _values(trend: "Trend") -> Iterator[tuple[str, float]]:
    """Yield tags and values; unknown values have no point."""
    from stepscope.analyses.steps.step_breakdown import CATEGORIES

    for name, value in trend.figures.items():
        if math.isnan(value):
            continue
        if not name.endswith("_ns"):
            yield f"{PREFIX}/{name}", value
            continue
        short = name.removesuffix("_ns")
        part = "step_parts/" if short in CATEGORIES else ""
        yield f"{PREFIX}/{part}{short}_ms", value / NS_PER_MS
    for rule, share in sorted(trend.recoverable_share.items()):
        yield f"{PREFIX}/recoverable_share/{rule}", share


def _print_problems(problems: "Sequence[UnreadableError]") -> None:
    from stepscope.base.report import Report
    from stepscope.render import phrases

    show_tracebacks(problems)
    for line in phrases.problems(Report(runs=(), problems=as_problems(problems))):
        write_message(line)


def _write(every_series: Sequence[Series]) -> None:
    from stepscope.base import urls
    from stepscope.base.errors import UsageError
    from stepscope.base.formatting import count

    for series in every_series:
        if urls.scheme(series.folder):
            msg = f"{urls.redacted(series.folder)}: scalars can only be written to local folders"
            raise UsageError(msg)
    for series in every_series:
        is_new = write_events(Path(series.folder), encode_events(series.scalars))
        state = "written" if is_new else "nothing new"
        points = sum(len(step.values) for step in series.scalars)
        spans = count(len(series.scalars), "span")
        click.echo(plain(f"{series.folder}: {points} points of {spans}, {state}"))


def _print(every_series: Sequence[Series]) -> None:
    from stepscope.render import scalars_text

    tables = [
        (f"{series.run}, {series.worker}", {str(of.step): of.values for of in series.scalars})
        for series in every_series
    ]
    click.echo(
        scalars_text.render(tables, width=width(), is_coloured=is_coloured()), nl=False, color=True
    )


def encode_events(scalars: Iterable[StepScalars]) -> bytes:
    """Return an event file of these steps."""
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    written = io.BytesIO()
    writer = RecordWriter(written)
    writer.write(
        Event(wall_time=0.0, file_version=EVENT_VERSION).SerializeToString(deterministic=True)
    )
    for step in scalars:
        values = [Summary.Value(tag=tag, simple_value=v) for tag, v in step.values.items()]
        event = Event(wall_time=step.wall_time, step=step.step, summary=Summary(value=values))
        writer.write(event.SerializeToString(deterministic=True))
    return written.getvalue()


def write_events(folder: Path, content: bytes) -> bool:
    """Update a folder's event file to this content; return whether anything was written."""
    from stepscope.storage.output_files import atomic_output

    path = folder / EVENT_FILE
    existing = path.read_bytes() if path.exists() else b""
    if existing == content:
        return False
    folder.mkdir(parents=True, exist_ok=True)
    if existing and content.startswith(existing):
        with path.open("ab") as stream:
            stream.write(content[len(existing) :])
        return True
    with atomic_output(str(path)) as sink:
        sink.write(content)
    return True
