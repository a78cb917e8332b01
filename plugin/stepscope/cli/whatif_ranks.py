"""`stepscope whatif` of a run: options for its ranks, and the simulation from their summaries."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from stepscope.cli.advice_options import RuleOptions
from stepscope.cli.file_reading import Effort
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.options import NumberRange, with_options
from stepscope.cli.output import Printing, width, write_message
from stepscope.cli.selection import Selection
from stepscope.cli.summary_reading import Extraction, values_of

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings
    from stepscope.analyses.communication.rank_summary import RankSummary
    from stepscope.base.errors import UnreadableError
    from stepscope.readers.requests import Step
    from stepscope.replay.run_what_if import RunPrediction, RunWhatIf
    from stepscope.storage.discover import TraceFile

LEAST_SPEED, MOST_SPEED = 0.001, 1000


@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """Values of the options for a run's ranks."""

    ranks_alike: bool
    without_ranks: tuple[int, ...]
    network: float
    stages: tuple[str, ...]
    run_rules: tuple[str, ...] = ()
    """Rules over the run whose findings are fixed."""

    @property
    def is_given(self) -> bool:
        """Whether any of them differs from its default."""
        ranks = self.without_ranks or self.stages or self.run_rules
        return self.ranks_alike or bool(ranks) or self.network != 1

    def what_if(self) -> "RunWhatIf":
        """Return the changes.

        Raises:
            UsageError: A stage has another form.
        """
        from stepscope.replay.run_what_if import RunWhatIf, parse_stage

        return RunWhatIf(
            ranks_alike=self.ranks_alike,
            without_ranks=self.without_ranks,
            network=self.network,
            stages=tuple(map(parse_stage, self.stages)),
        )


with_rank_options = with_options(
    "ranks",
    RankOptions,
    click.option(
        "--ranks-alike",
        is_flag=True,
        help="Of a run: let all ranks of a pipeline stage work as long as their mean.",
    ),
    click.option(
        "--without-rank",
        "without_ranks",
        type=click.IntRange(min=0),
        multiple=True,
        metavar="RANK",
        help="Of a run: let this rank work as long as the median of the others of its stage. Can "
        "be repeated.",
    ),
    click.option(
        "--network",
        type=NumberRange(min=LEAST_SPEED, max=MOST_SPEED),
        default=1.0,
        metavar="SPEED",
        help="Of a run: divide the transfers of collectives by this; 2 for a network twice as "
        "fast.",
    ),
    click.option(
        "--stage",
        "stages",
        multiple=True,
        metavar="STAGE=FACTOR",
        help="Of a run: multiply the work of a pipeline stage, counted from 1. Can be repeated.",
    ),
)
"""Add the options of `RankOptions`, as `ranks`."""


def has_ranks(path: str, selection: Selection) -> bool:
    """Return whether the selected traces at a path are of several ranks of one run."""
    files, _ = files_at([path])
    files = selection.of(files)
    return len({file.worker for file in files}) > 1 and len({file.folder for file in files}) == 1


@dataclass(frozen=True, kw_only=True)
class RunReading:
    """The traces of a run, and how they are read."""

    path: str
    selection: Selection
    effort: Effort
    rule_options: RuleOptions


def write_run(reading: RunReading, options: RankOptions, printing: Printing) -> None:
    """Write the simulated step of a run.

    Raises:
        UnreadableError: No trace of it can be read.
        UsageError: There are several runs, or the run cannot be simulated.
    """
    printing.write(_rendered(_prediction(reading, options), printing))


def _prediction(reading: RunReading, options: RankOptions) -> "RunPrediction":
    from stepscope.advice.run_fixes import with_fixes
    from stepscope.analyses.communication.ranked_run import rank_run
    from stepscope.base.errors import MissingDataError, UnreadableError, UsageError
    from stepscope.replay.run_what_if import predict_run

    what_if = options.what_if()
    files, problems = files_at([reading.path])
    files = _of_one_run(reading.selection.of(files))
    extract = Extraction(steps=_steps, of=lambda summary: summary.advice.part)
    rules = reading.rule_options.settings()
    values = values_of(files, extract, rules, reading.effort.settings())
    problems += [value for value in values if isinstance(value, UnreadableError)]
    parts: list[RankSummary] = [value for value in values if not isinstance(value, UnreadableError)]
    if problems and not parts:
        raise problems[0]
    _print_problems(problems)
    try:
        if options.run_rules:
            what_if = with_fixes(what_if, parts, options.run_rules, rules.for_run(files[0].run))
        return predict_run(rank_run(parts), what_if)
    except MissingDataError as error:
        msg = f"{error.reason}. To record it: {error.remedy}"
        raise UsageError(msg) from error


def _of_one_run(files: "list[TraceFile]") -> "list[TraceFile]":
    from stepscope.base.errors import UsageError

    runs = sorted({file.run for file in files})
    if len({file.folder for file in files}) > 1:
        msg = f"there are several runs ({', '.join(runs)}): select one with --run"
        raise UsageError(msg)
    return files


def _steps(_: "AdviceSettings") -> "tuple[Step, ...]":
    from stepscope.readers.tasks import summarise_rank

    return (("analysing", summarise_rank),)


def _print_problems(problems: "Sequence[UnreadableError]") -> None:
    from stepscope.base.report import Report
    from stepscope.render import phrases

    show_tracebacks(problems)
    for line in phrases.problems(Report(runs=(), problems=as_problems(problems))):
        write_message(line)


def _rendered(prediction: "RunPrediction", printing: Printing) -> str:
    from stepscope.render import run_prediction as rendered

    match printing.form:
        case "json":
            return rendered.json(prediction)
        case "markdown":
            return rendered.markdown(prediction)
    return rendered.text(prediction, width=width(), is_coloured=printing.is_coloured)
