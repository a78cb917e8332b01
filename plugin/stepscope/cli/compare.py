"""`stepscope compare`: print the changes between runs, spans or ranks."""

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import click

from stepscope.cli import completion
from stepscope.cli.advice_options import RuleOptions, with_configuration
from stepscope.cli.file_reading import Effort, with_effort, with_summaries
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.options import NumberRange
from stepscope.cli.output import Printing, width, with_printing, write_message
from stepscope.cli.selection import Selection, with_selection
from stepscope.cli.summary_reading import Extraction, values_of

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.base.errors import UnreadableError
    from stepscope.base.step_range import StepRange
    from stepscope.comparison.messages import ComparisonReport
    from stepscope.comparison.samples import Sample
    from stepscope.readers.requests import Step
    from stepscope.storage.discover import TraceFile

    StepSelection = tuple[StepRange | None, StepRange | None]

By = Literal["run", "worker", "span"]
REGRESSED = 1
NOTHING_COMPARED = 2
ROWS = 8


@click.command(short_help="Print the changes between runs, spans or ranks.")
@click.argument(
    "paths",
    metavar="BEFORE AFTER...",
    nargs=-1,
    required=True,
    shell_complete=completion.files,
)
@click.option(
    "--by",
    type=click.Choice(["run", "worker", "span"]),
    help="Compare the runs, workers or spans below one PATH, the first with each of the others.",
)
@click.option("--steps", metavar="N[-M]", help="Compare only steps N to M, by their numbers.")
@click.option("--baseline-steps", metavar="N[-M]", help="Steps of BEFORE, if they are others.")
@with_printing("JSON is one object; `stepscope schema --compare` prints its schema.")
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    default=ROWS,
    show_default=True,
    help="Rows to print of each table of changes.",
)
@click.option(
    "--fail-on-regression",
    "percent",
    type=NumberRange(min=0),
    metavar="PERCENT",
    help="Exit with 1 if the mean step is longer by PERCENT, and the change is significant.",
)
@with_selection
@with_configuration
@with_effort
@with_summaries
def compare(  # noqa: PLR0913 (one parameter per option)
    *,
    paths: tuple[str, ...],
    by: By | None,
    steps: str | None,
    baseline_steps: str | None,
    printing: Printing,
    rows: int,
    percent: float | None,
    selection: Selection,
    rule_options: RuleOptions,
    effort: Effort,
) -> None:
    """Print the changes from BEFORE to each AFTER, and whether they are statistically significant.

    Each argument is the folder of a run, or one trace file. The report shows the change of each
    part of the step, of operators and kernels (matched by name, shape and module), and compares
    the achieved saving of followed advice with its estimate.

    \b
    stepscope compare log/before log/after
    stepscope compare log/before log/after --format markdown      # for an issue
    stepscope compare log/resnet50 --by span                      # with the first
    stepscope compare log/resnet50 --by worker --span 2           # ranks
    stepscope compare log/resnet50 --baseline-steps 5 --steps 9   # of one run
    stepscope compare main/ branch/ --fail-on-regression 5        # in CI

    The exit status is 0 on success, 1 if --fail-on-regression applies, and 2 if nothing could be
    compared, or if --fail-on-regression is given and sides are not comparable.
    """
    selected = _step_selection(steps, baseline_steps)
    if len(paths) == 1 and by is None and selected[0] != selected[1]:
        paths *= 2
    sides, problems = _sides(paths, by, selection, selected)
    sampled = _sampled(sides, rule_options.settings(), effort, problems)
    report = _report(sides, sampled, problems, selected)
    if report.comparisons or printing.form == "json":
        printing.write(_rendered(report, printing, rows))
    if not report.comparisons:
        raise click.exceptions.Exit(NOTHING_COMPARED)
    if percent is None:
        return
    for line in _not_comparable(report):
        write_message(line)
    if _is_regressed(report, percent):
        raise click.exceptions.Exit(REGRESSED)
    if any(_not_comparable(report)):
        raise click.exceptions.Exit(NOTHING_COMPARED)


def _step_selection(steps: str | None, baseline_steps: str | None) -> "StepSelection":
    """Return the steps of BEFORE and of the others; None: all."""
    from stepscope.base.step_range import parse_steps

    of_all = parse_steps(steps, "--steps") if steps else None
    return parse_steps(baseline_steps, "--baseline-steps") if baseline_steps else of_all, of_all


def _report(
    sides: "Mapping[str, Sequence[TraceFile]]",
    sampled: "Mapping[str, Sequence[Sample]]",
    problems: "Sequence[UnreadableError]",
    selected: "StepSelection",
) -> "ComparisonReport":
    """Return the comparison of the first side with each of the others."""
    from stepscope._version import __version__
    from stepscope.base.report import Report
    from stepscope.comparison import TEST, compare
    from stepscope.comparison.messages import ComparisonReport
    from stepscope.comparison.selected_steps import select_steps
    from stepscope.render import phrases

    shown_problems = as_problems(problems)
    show_tracebacks(problems)
    for line in phrases.problems(Report(runs=(), problems=shown_problems)):
        write_message(line)
    first, *others = [
        (name, select_steps(traces, selected[min(at, 1)]))
        for at, (name, traces) in enumerate(sampled.items())
    ] or [("", [])]
    is_usable = len(sampled) == len(sides)
    are_selected = selected != (None, None)
    return ComparisonReport(
        comparisons=tuple(
            compare(*first, *other, are_steps_selected=are_selected)
            for other in (others if is_usable else ())
        ),
        test=TEST,
        problems=shown_problems,
        version=__version__,
    )


def _sides(
    paths: Sequence[str], by: By | None, selection: Selection, selected: "StepSelection"
) -> "tuple[dict[str, list[TraceFile]], list[UnreadableError]]":
    """Return the files of each side by name, in the given order."""
    from stepscope.base.errors import UsageError
    from stepscope.base.urls import redacted
    from stepscope.comparison.selected_steps import step_label

    problems: list[UnreadableError] = []
    sides: dict[str, list[TraceFile]] = {}
    if by is None and len(paths) == 1:
        msg = (
            "pass two paths, compare parts of one path (--by run, worker or span), or steps of it"
            " (--baseline-steps 5 --steps 9)"
        )
        raise UsageError(msg)
    for at, (path, short) in enumerate(
        zip(paths, _short([redacted(path) for path in paths]), strict=True)
    ):
        files, unreadable = files_at([path])
        problems += unreadable
        for file in selection.of(files):
            name = f"{by} {getattr(file, by)}" if by else short
            sides.setdefault(step_label(name, selected[0 if at == 0 else 1]), []).append(file)
    if not problems:
        _check_two_sides(sides, by)
    return sides, problems


def _short(paths: Sequence[str]) -> list[str]:
    """Return paths without their common folders."""
    parts = [path.replace(os.sep, "/").rstrip("/").split("/") for path in paths]
    shared = 0
    while len({tuple(path[: shared + 1]) for path in parts}) == 1 and all(
        len(path) > shared + 1 for path in parts
    ):
        shared += 1
    return ["/".join(path[shared:]) for path in parts]


def _check_two_sides(sides: "dict[str, list[TraceFile]]", by: By | None) -> None:
    from stepscope.base.errors import UsageError

    if len(sides) < 2:
        reason = f"there is only {next(iter(sides))}" if by else "both paths are the same"
        msg = f"there is nothing to compare: {reason}"
        raise UsageError(msg)
    for name, files in sides.items():
        runs = sorted({file.run for file in files})
        if len(runs) > 1 and by != "run":
            msg = f"{name} has {len(runs)} runs ({', '.join(runs)}): select one, or use --by run"
            raise UsageError(msg)


def _sampled(
    sides: "Mapping[str, Sequence[TraceFile]]",
    rules: "AdviceSettings",
    effort: Effort,
    problems: "list[UnreadableError]",
) -> "dict[str, list[Sample]]":
    """Return the data of each readable file, by side."""
    from stepscope.base.errors import UnreadableError

    files = {file.id: file for of_side in sides.values() for file in of_side}
    extract = Extraction(steps=_steps, of=lambda summary: summary.sample, with_samples=True)
    values = values_of([*files.values()], extract, rules, effort.settings())
    problems += [value for value in values if isinstance(value, UnreadableError)]
    by_file = {
        file: value
        for file, value in zip(files, values, strict=True)
        if not isinstance(value, UnreadableError)
    }
    read = {
        name: [by_file[file.id] for file in of_side if file.id in by_file]
        for name, of_side in sides.items()
    }
    return {name: samples for name, samples in read.items() if samples}


def _steps(settings: "AdviceSettings") -> "tuple[Step, ...]":
    from stepscope.readers.tasks import sample

    return (("analysing", partial(sample, settings=settings)),)


def _not_comparable(report: "ComparisonReport") -> list[str]:
    """Return a line for each comparison that can show no regression."""
    from stepscope.render.comparison_phrases import is_comparable

    return [
        f"{comparison.before.name} and {comparison.after.name} are not comparable:"
        f" {' '.join(comparison.comparability.reasons)}"
        for comparison in report.comparisons
        if not is_comparable(comparison)
    ]


def _is_regressed(report: "ComparisonReport", percent: float) -> bool:
    from stepscope.render.comparison_phrases import is_comparable

    steps = [comparison.step for comparison in report.comparisons if is_comparable(comparison)]
    return any(step.verdict == "more" and (step.share or 0) * 100 >= percent for step in steps)


def _rendered(report: "ComparisonReport", printing: Printing, rows: int) -> str:
    from stepscope.render import comparison_report, json

    if printing.form == "json":
        return json.render(report)
    shown: dict[str, Any] = {"rows": rows}
    if printing.form == "text":
        shown |= {"width": width(), "is_coloured": printing.is_coloured}
    return comparison_report.render(printing.form, report, **shown)
