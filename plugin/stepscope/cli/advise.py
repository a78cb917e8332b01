"""`stepscope advise`: what to fix, for people, chats, pull requests, CI and programs."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli.advice_options import Asked, with_rules
from stepscope.cli.fast_start import import_advice
from stepscope.cli.file_reading import Effort, with_effort
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.output import Printing, width, with_printing
from stepscope.cli.selection import Selection
from stepscope.cli.summary_reading import Wanted, values_of, with_summaries

if TYPE_CHECKING:
    from stepscope.advice import AdviceSettings, TraceAdvice
    from stepscope.base.findings import Severity
    from stepscope.base.report import Report, RunReport
    from stepscope.readers.requests import Step

SEVERITIES: "tuple[Severity, ...]" = ("critical", "warning", "info")
FOUND = 1
NOTHING_READ = 2


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What of the findings is shown, what counts, and what was known before."""

    min_severity: "Severity"
    max_findings: int | None
    fail_on: "Severity | None"
    baseline: str | None
    write_baseline: str | None
    is_quiet: bool


def _with_gate(command: "click.decorators.FC") -> "click.decorators.FC":
    """Add the options of `Gate`; each is a parameter."""
    for option in reversed(
        (
            click.option(
                "--min-severity",
                type=click.Choice(SEVERITIES),
                default="info",
                show_default=True,
                help="Leave out findings that are less serious.",
            ),
            click.option(
                "--max-findings",
                type=click.IntRange(min=1),
                metavar="N",
                help="Show no more findings of a run, the worst first.",
            ),
            click.option(
                "--fail-on",
                type=click.Choice(SEVERITIES),
                help="Exit with 1 where anything so serious is found and not put aside.",
            ),
            click.option(
                "--baseline",
                type=click.Path(dir_okay=False),
                metavar="FILE",
                help="Put aside what this file knows, unless it costs more by a tenth.",
            ),
            click.option(
                "--write-baseline",
                type=click.Path(dir_okay=False),
                metavar="FILE",
                help="Write what is found now to this file.",
            ),
            click.option(
                "--quiet", "is_quiet", is_flag=True, help="Print nothing but what went wrong."
            ),
        )
    ):
        command = option(command)
    return command


@click.command(short_help="Print what to fix in the traces below PATH.")
@click.argument("paths", metavar="PATH...", nargs=-1, required=True)
@with_printing(
    "`brief` for a chat, `json` (`stepscope schema`) for a program, `sarif` for code scanning, "
    "`html` to keep, `github` for annotations.",
    "brief",
    "sarif",
    "html",
    "github",
)
@click.option(
    "--worker", "workers", multiple=True, metavar="NAME", help="Only this worker; repeatable."
)
@_with_gate
@with_rules
@with_effort
@with_summaries
def advise(  # noqa: PLR0913 (one parameter an option)
    *,
    paths: tuple[str, ...],
    printing: Printing,
    workers: tuple[str, ...],
    min_severity: "Severity",
    max_findings: int | None,
    fail_on: "Severity | None",
    baseline: str | None,
    write_baseline: str | None,
    is_quiet: bool,
    asked: Asked,
    effort: Effort,
) -> None:
    """Print what to fix, with proof, in the traces below each PATH.

    PATH is a log directory, the folder of one run, or one trace file of any name.

    \b
    stepscope advise log/
    stepscope advise log/resnet50 --worker node1_4711
    stepscope advise log/ --select input-pipeline,item-sync --set item-sync.least_idle_share=0.02
    stepscope advise trace.json.gz --format markdown --output advice.md
    stepscope advise log/ --format json | jq '.runs[].merged[].outcome.title'
    stepscope advise log/ --fail-on warning --baseline known.json        # in CI
    stepscope advise log/ --write-baseline known.json                    # accept what is there

    The exit status is 0; 1 where --fail-on asks for it, after all is written; 2 where nothing could
    be read or the question is wrong; 3 for a defect of stepscope.
    """
    gate = Gate(
        min_severity=min_severity,
        max_findings=max_findings,
        fail_on=fail_on,
        baseline=baseline,
        write_baseline=write_baseline,
        is_quiet=is_quiet,
    )
    import_advice(effort.settings())
    report = _noted(_report(paths, workers, asked.settings(), effort), gate)
    _tell(report)
    if (report.runs or printing.form in ("json", "sarif")) and not _is_silent(printing, gate):
        printing.write(_rendered(_shown(report, gate), printing))
    if not report.runs:
        raise click.exceptions.Exit(NOTHING_READ)
    if gate.fail_on is not None and _fails(report, gate.fail_on):
        raise click.exceptions.Exit(FOUND)


def _is_silent(printing: Printing, gate: Gate) -> bool:
    return gate.is_quiet and printing.output is None


def _tell(report: "Report") -> None:
    """Say on standard error what could not be read, and what is odd about the question."""
    from stepscope.render import phrases

    for line in (*phrases.problems(report), *report.notes):
        click.echo(f"stepscope: {line}", err=True)


def _report(
    paths: Sequence[str], workers: tuple[str, ...], rules: "AdviceSettings", effort: Effort
) -> "Report":
    """Read and advise file by file."""
    from stepscope._version import __version__
    from stepscope.advice import run_report
    from stepscope.advice.rule_packages import package_rules
    from stepscope.base import urls
    from stepscope.base.errors import UnreadableError
    from stepscope.base.report import Report

    settings = effort.settings()
    files, problems = files_at(paths)
    files = Selection(workers=workers).of(files)
    wanted = Wanted(steps=_steps, of=lambda summary: summary.advice)
    values = values_of(files, wanted, rules, settings)
    found: dict[str, list[TraceAdvice]] = {}
    unreadable: dict[str, list[str]] = {}
    for file, value in zip(files, values, strict=True):
        if isinstance(value, UnreadableError):
            problems.append(value)
            unreadable.setdefault(file.folder, []).append(urls.name(file.path))
        else:
            found.setdefault(file.folder, []).append(value)
    show_tracebacks(problems)
    packages = package_rules()[1] if rules.has_packages else ()
    names = {file.folder: file.run for file in files}
    runs = tuple(
        run_report(names[folder], own, rules, unreadable=unreadable.get(folder, ()))
        for folder, own in found.items()
    )
    return Report(
        runs=runs,
        problems=(*as_problems(problems), *packages),
        version=__version__,
        notes=_notes(runs, rules),
    )


def _steps(settings: "AdviceSettings") -> "tuple[Step, ...]":
    from stepscope.readers.tasks import advise, analyse

    return (("analysing", analyse), ("advising", partial(advise, settings=settings)))


def _notes(runs: "Sequence[RunReport]", rules: "AdviceSettings") -> tuple[str, ...]:
    """Say which suppressions put nothing aside, so that they do not outlive their reason."""
    from stepscope.advice.settings import available_rules
    from stepscope.advice.suppression import today, unused_suppressions, with_rule_ids

    known = available_rules(has_packages=rules.has_packages)
    outcomes = [outcome for run in runs for outcome in run.outcomes]
    suppressions = with_rule_ids(rules.changes.suppressions, known)
    return unused_suppressions(suppressions, outcomes, today()) if runs else ()


def _noted(report: "Report", gate: Gate) -> "Report":
    """Hold what was found against the baseline; write it to the new one first, where asked to."""
    if gate.baseline is None and gate.write_baseline is None:
        return report
    import msgspec

    from stepscope.advice import baseline

    known = baseline.read_baseline(Path(gate.baseline)) if gate.baseline else None
    if gate.write_baseline is not None and report.runs:
        text = baseline.baseline_text(baseline.baseline_of(report))
        Path(gate.write_baseline).write_text(text, encoding="utf-8")
    if known is None:
        return report
    gone = tuple(
        f"Fixed since the baseline was written: {each.rule}. {each.message}".rstrip()
        for each in baseline.fixed_findings(report, known)
    )
    compared = baseline.compare_with_baseline(report, known, Path(gate.baseline or "").name)
    return msgspec.structs.replace(compared, notes=(*compared.notes, *gone))


def _shown(report: "Report", gate: Gate) -> "Report":
    """Leave out findings that are less serious, or more, than asked for."""
    import msgspec

    runs = tuple(_narrowed(run, gate) for run in report.runs)
    return msgspec.structs.replace(report, runs=runs)


def _narrowed(run: "RunReport", gate: Gate) -> "RunReport":
    from stepscope.advice.run_advice import with_outcomes

    wanted = SEVERITIES[: SEVERITIES.index(gate.min_severity) + 1]
    kept = [each for each in run.outcomes if each.status != "found" or each.severity in wanted]
    if gate.max_findings is not None:
        merged = with_outcomes(run, kept).merged[: gate.max_findings]
        rules = {each.outcome.rule for each in merged}
        kept = [each for each in kept if each.status != "found" or each.rule in rules]
    return with_outcomes(run, kept)


def _fails(report: "Report", least: "Severity") -> bool:
    wanted = SEVERITIES[: SEVERITIES.index(least) + 1]
    outcomes = (outcome for run in report.runs for outcome in run.outcomes)
    return any(each.status == "found" and each.severity in wanted for each in outcomes)


def _rendered(report: "Report", printing: Printing) -> str:
    if printing.form != "text":
        rendered: str = import_module(f"stepscope.render.{printing.form}").render(report)
        return rendered
    import msgspec

    from stepscope.render import text

    # The problems have just been told on standard error.
    told = msgspec.structs.replace(report, problems=())
    return text.render(told, width=width(), is_coloured=printing.is_coloured)
