"""`stepscope compare`: what changed between runs, spans or ranks."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Literal

import click

from stepscope.cli.advice_options import Asked, with_configuration
from stepscope.cli.file_reading import Effort, with_effort
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.output import Printing, width, with_printing
from stepscope.cli.selection import Selection, with_selection
from stepscope.cli.summary_reading import Wanted, values_of, with_summaries

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.base.errors import UnreadableError
    from stepscope.comparison.messages import ComparisonReport
    from stepscope.comparison.samples import Sample
    from stepscope.readers.requests import Step
    from stepscope.storage.discover import TraceFile

By = Literal["run", "worker", "span"]
REGRESSED = 1
NOTHING_COMPARED = 2
ROWS = 8


@click.command(short_help="Print what changed between runs, spans or ranks.")
@click.argument("paths", metavar="BEFORE AFTER...", nargs=-1, required=True)
@click.option(
    "--by",
    type=click.Choice(["run", "worker", "span"]),
    help="Compare the runs, workers or spans below one PATH, the first with each other one.",
)
@with_printing("JSON is one object; `stepscope schema --compare` prints its schema.")
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    default=ROWS,
    show_default=True,
    help="Rows of each table of changes.",
)
@click.option(
    "--fail-on-regression",
    "percent",
    type=click.FloatRange(min=0),
    metavar="PERCENT",
    help="Exit with 1 where the mean step is longer by so much, and that is told from noise.",
)
@with_selection
@with_configuration
@with_effort
@with_summaries
def compare(  # noqa: PLR0913 (one parameter an option)
    *,
    paths: tuple[str, ...],
    by: By | None,
    printing: Printing,
    rows: int,
    percent: float | None,
    selection: Selection,
    asked: Asked,
    effort: Effort,
) -> None:
    """Print what changed from BEFORE to each AFTER, and which of it is more than noise.

    Each is the folder of a run, or one trace file. The step's time is taken apart, operators and
    kernels are matched by name, shape and module, and advice that was followed is held against
    what it promised.

    \b
    stepscope compare log/before log/after
    stepscope compare log/before log/after --format markdown      # for a pull request
    stepscope compare log/resnet50 --by span                      # the first span with each other
    stepscope compare log/resnet50 --by worker --span 2           # ranks
    stepscope compare main/ branch/ --fail-on-regression 5        # in CI

    The exit status is 2 where nothing could be compared, 1 where --fail-on-regression asks for it,
    else 0.
    """
    report = _report(paths, by, selection, asked, effort)
    if report.comparisons or printing.form == "json":
        printing.write(_rendered(report, printing, rows))
    if not report.comparisons:
        raise click.exceptions.Exit(NOTHING_COMPARED)
    if percent is not None and _is_regressed(report, percent):
        raise click.exceptions.Exit(REGRESSED)


def _report(
    paths: Sequence[str], by: By | None, selection: Selection, asked: Asked, effort: Effort
) -> "ComparisonReport":
    """Read file by file, keep what is compared of each, and compare."""
    from stepscope._version import __version__
    from stepscope.base.report import Report
    from stepscope.comparison import TEST, compare
    from stepscope.comparison.messages import ComparisonReport
    from stepscope.render import phrases

    sides, problems = _sides(paths, by, selection)
    sampled = _sampled(sides, asked.settings(), effort, problems)
    problems_told = as_problems(problems)
    show_tracebacks(problems)
    for line in phrases.problems(Report(runs=(), problems=problems_told)):
        click.echo(f"stepscope: {line}", err=True)
    first, *others = sampled.items() if sampled else [("", [])]
    is_usable = len(sampled) == len(sides)
    return ComparisonReport(
        comparisons=tuple(compare(*first, *other) for other in others) if is_usable else (),
        test=TEST,
        problems=problems_told,
        version=__version__,
    )


def _sides(
    paths: Sequence[str], by: By | None, selection: Selection
) -> "tuple[dict[str, list[TraceFile]], list[UnreadableError]]":
    """Return what is compared with what, by name, in the order that was given."""
    from stepscope.base.errors import UsageError
    from stepscope.base.urls import redacted

    problems: list[UnreadableError] = []
    sides: dict[str, list[TraceFile]] = {}
    if by is None and len(paths) == 1:
        msg = "name two paths, or say what below it is compared: --by run, worker or span"
        raise UsageError(msg)
    for path, short in zip(paths, _short([redacted(path) for path in paths]), strict=True):
        files, wrong = files_at([path])
        problems += wrong
        for file in selection.of(files):
            name = f"{by} {getattr(file, by)}" if by else short
            sides.setdefault(name, []).append(file)
    if not problems:
        _insist_on_two(sides, by)
    return sides, problems


def _short(paths: Sequence[str]) -> list[str]:
    """Return paths without the folders that they share."""
    parts = [path.rstrip("/").split("/") for path in paths]
    shared = 0
    while len({tuple(each[: shared + 1]) for each in parts}) == 1 and all(
        len(each) > shared + 1 for each in parts
    ):
        shared += 1
    return ["/".join(each[shared:]) for each in parts]


def _insist_on_two(sides: "dict[str, list[TraceFile]]", by: By | None) -> None:
    from stepscope.base.errors import UsageError

    if len(sides) < 2:
        what = f"there is only {next(iter(sides))}" if by else "both paths are the same"
        msg = f"there is nothing to compare: {what}"
        raise UsageError(msg)
    for name, files in sides.items():
        runs = sorted({file.run for file in files})
        if len(runs) > 1 and by != "run":
            msg = f"{name} holds {len(runs)} runs ({', '.join(runs)}): name one, or use --by run"
            raise UsageError(msg)


def _sampled(
    sides: "dict[str, list[TraceFile]]",
    rules: "AdviceSettings",
    effort: Effort,
    problems: "list[UnreadableError]",
) -> "dict[str, list[Sample]]":
    """Return what is compared of each file that can be read, by side."""
    from stepscope.base.errors import UnreadableError

    named = [(name, file) for name, files in sides.items() for file in files]
    wanted = Wanted(steps=_steps, of=lambda summary: summary.sample, with_samples=True)
    values = values_of([file for _, file in named], wanted, rules, effort.settings())
    found: dict[str, list[Sample]] = {}
    for (name, _), value in zip(named, values, strict=True):
        if isinstance(value, UnreadableError):
            problems.append(value)
        else:
            found.setdefault(name, []).append(value)
    return found


def _steps(settings: "AdviceSettings") -> "tuple[Step, ...]":
    from stepscope.readers.tasks import sample

    return (("analysing", partial(sample, settings=settings)),)


def _is_regressed(report: "ComparisonReport", percent: float) -> bool:
    steps = [comparison.step for comparison in report.comparisons]
    return any(step.verdict == "more" and (step.share or 0) * 100 >= percent for step in steps)


def _rendered(report: "ComparisonReport", printing: Printing, rows: int) -> str:
    from stepscope.render import comparison_markdown, comparison_text, json

    match printing.form:
        case "json":
            return json.render(report)
        case "markdown":
            return comparison_markdown.render(report, rows=rows)
    return comparison_text.render(
        report, width=width(), is_coloured=printing.is_coloured, rows=rows
    )
