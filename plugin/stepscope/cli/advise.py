"""`stepscope advise`: print what to fix, as text or for chats, pull requests, CI and programs."""

import gc
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stepscope.cli import completion
from stepscope.cli.advice_options import RuleOptions, with_rules
from stepscope.cli.file_reading import Effort, with_effort, with_summaries
from stepscope.cli.input_files import as_problems, files_at, show_tracebacks
from stepscope.cli.options import with_options
from stepscope.cli.output import Printing, width, with_printing, write_message
from stepscope.cli.selection import Selection, with_selection
from stepscope.cli.summary_reading import Extraction, values_of

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
    """Filters of the shown findings, the exit status, and baselines."""

    min_severity: "Severity"
    max_findings: int | None
    fail_on: "Severity | None"
    baseline: str | None
    write_baseline: str | None
    is_quiet: bool


_with_gate = with_options(
    "gate",
    Gate,
    click.option(
        "--min-severity",
        type=click.Choice(SEVERITIES),
        default="info",
        show_default=True,
        help="Hide findings below this severity.",
    ),
    click.option(
        "--max-findings",
        type=click.IntRange(min=1),
        metavar="N",
        help="Show at most N findings per run, the worst first.",
    ),
    click.option(
        "--fail-on",
        type=click.Choice(SEVERITIES),
        help="Exit with 1 if there is an unsuppressed finding of this severity or above.",
    ),
    click.option(
        "--baseline",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Suppress the findings in this file, unless their cost has grown by a tenth.",
    ),
    click.option(
        "--write-baseline",
        type=click.Path(dir_okay=False),
        metavar="FILE",
        help="Write the current findings to this file.",
    ),
    click.option("--quiet", "is_quiet", is_flag=True, help="Print problems only."),
)


@click.command(short_help="Print what to fix in the traces below PATH.")
@click.argument(
    "paths", metavar="PATH...", nargs=-1, required=True, shell_complete=completion.files
)
@with_printing(
    "`brief` for a chat, `json` (`stepscope schema`) for programs, `sarif` for code scanning, "
    "`html` for a page to share, `github` for annotations.",
    "brief",
    "sarif",
    "html",
    "github",
)
@with_selection
@_with_gate
@with_rules
@with_effort
@with_summaries
def advise(  # noqa: PLR0913 (one parameter per option)
    *,
    paths: tuple[str, ...],
    printing: Printing,
    selection: Selection,
    gate: Gate,
    rule_options: RuleOptions,
    effort: Effort,
) -> None:
    """Print what to fix, with evidence, in the traces below each PATH.

    PATH is a log directory, the folder of one run, or one trace file of any name.

    \b
    stepscope advise log/
    stepscope advise log/resnet50 --worker node1_4711
    stepscope advise log/ --select input-pipeline,item-sync --set item-sync.least_idle_share=0.02
    stepscope advise trace.json.gz --format markdown --output advice.md
    stepscope advise log/ --format json | jq '.runs[].merged[].outcome.title'
    stepscope advise log/ --fail-on warning --baseline known.json  # in CI
    stepscope advise log/ --write-baseline known.json              # accept these

    The exit status is 0 on success, 1 if --fail-on applies (after all output is written), 2 if
    nothing could be read or an option is wrong, and 3 for a defect of stepscope.
    """
    import_advice(effort.settings())
    report = _with_baseline(_report(paths, selection, rule_options.settings(), effort), gate)
    _print_problems(report)
    if (report.runs or printing.form in ("json", "sarif")) and not (
        gate.is_quiet and printing.output is None
    ):
        printing.write(_rendered(_shown(report, gate), printing))
    if not report.runs:
        raise click.exceptions.Exit(NOTHING_READ)
    if gate.fail_on is not None and _fails(report, gate.fail_on):
        raise click.exceptions.Exit(FOUND)


def _print_problems(report: "Report") -> None:
    """Print unreadable files and notes on the settings to standard error."""
    from stepscope.render import phrases

    for line in (*phrases.problems(report), *report.notes):
        write_message(line)


def _report(
    paths: Sequence[str], selection: Selection, rules: "AdviceSettings", effort: Effort
) -> "Report":
    """Return the advice, reading files one by one."""
    from stepscope._version import __version__
    from stepscope.advice import run_report
    from stepscope.advice.rule_packages import package_rules
    from stepscope.base import urls
    from stepscope.base.errors import UnreadableError
    from stepscope.base.report import Report

    settings = effort.settings()
    files, problems = files_at(paths)
    files = selection.of(files)
    extract = Extraction(steps=_steps, of=lambda summary: summary.advice)
    values = values_of(files, extract, rules, settings)
    by_folder: dict[str, list[TraceAdvice]] = {}
    unreadable: dict[str, list[str]] = {}
    for file, value in zip(files, values, strict=True):
        if isinstance(value, UnreadableError):
            problems.append(value)
            unreadable.setdefault(file.folder, []).append(urls.name(file.path))
        else:
            by_folder.setdefault(file.folder, []).append(value)
    show_tracebacks(problems)
    packages = package_rules()[1] if rules.has_packages else ()
    names = {file.folder: file.run for file in files}
    runs = tuple(
        run_report(names[folder], traces, rules, unreadable=unreadable.get(folder, ()))
        for folder, traces in by_folder.items()
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
    """Return notes on unused suppressions, which should be removed."""
    from stepscope.advice.settings import available_rules
    from stepscope.advice.suppression import today, unused_suppressions, with_rule_ids

    every_rule = available_rules(has_packages=rules.has_packages)
    outcomes = [outcome for run in runs for outcome in run.outcomes]
    suppressions = with_rule_ids(rules.changes.suppressions, every_rule)
    return unused_suppressions(suppressions, outcomes, today()) if runs else ()


def _with_baseline(report: "Report", gate: Gate) -> "Report":
    """Compare the report with the baseline, after writing a new baseline if requested."""
    if gate.baseline is None and gate.write_baseline is None:
        return report
    import msgspec

    from stepscope.advice import baseline

    earlier = baseline.read_baseline(Path(gate.baseline)) if gate.baseline else None
    if gate.write_baseline is not None and report.runs:
        text = baseline.baseline_text(baseline.baseline_of(report))
        Path(gate.write_baseline).write_text(text, encoding="utf-8")
    if earlier is None:
        return report
    gone = tuple(
        f"Fixed since the baseline was written: {finding.rule}. {finding.message}".rstrip()
        for finding in baseline.fixed_findings(report, earlier)
    )
    compared = baseline.compare_with_baseline(report, earlier, Path(gate.baseline or "").name)
    return msgspec.structs.replace(compared, notes=(*compared.notes, *gone))


def _shown(report: "Report", gate: Gate) -> "Report":
    """Return the report without the findings that `gate` hides."""
    import msgspec

    runs = tuple(_filtered(run, gate) for run in report.runs)
    return msgspec.structs.replace(report, runs=runs)


def _filtered(run: "RunReport", gate: Gate) -> "RunReport":
    from stepscope.advice.run_advice import with_outcomes

    severities = SEVERITIES[: SEVERITIES.index(gate.min_severity) + 1]
    outcomes = [o for o in run.outcomes if o.status != "found" or o.severity in severities]
    if gate.max_findings is not None:
        merged = with_outcomes(run, outcomes).merged[: gate.max_findings]
        rules = {finding.outcome.rule for finding in merged}
        outcomes = [o for o in outcomes if o.status != "found" or o.rule in rules]
    return with_outcomes(run, outcomes)


def _fails(report: "Report", least: "Severity") -> bool:
    severities = SEVERITIES[: SEVERITIES.index(least) + 1]
    outcomes = (outcome for run in report.runs for outcome in run.outcomes)
    return any(o.status == "found" and o.severity in severities for o in outcomes)


def _rendered(report: "Report", printing: Printing) -> str:
    import msgspec

    from stepscope.render import advice_report

    if printing.form != "text":
        return advice_report.render(printing.form, report)
    report = msgspec.structs.replace(report, problems=())  # already printed to standard error
    shown = {"width": width(), "is_coloured": printing.is_coloured}
    return advice_report.render("text", report, **shown)


if TYPE_CHECKING:
    from stepscope.base.config import Settings


def import_advice(settings: "Settings") -> None:
    """Import pandas, the analyses and the rules, unless pandas is imported already."""
    if "pandas" in sys.modules:
        return
    gc.disable()  # imported modules are never garbage
    try:
        with _without_pyarrow(is_needed=settings.cache.folder is not None):
            import_module("pandas")
        import_module("stepscope.advice")
        import_module("stepscope.rules").all_rules()
        gc.freeze()
    finally:
        gc.enable()


@contextmanager
def _without_pyarrow(*, is_needed: bool) -> Iterator[None]:
    """Prevent pandas from importing pyarrow, which adds half the import time and is not needed.

    Later imports of pyarrow work.
    """
    if is_needed or "pyarrow" in sys.modules:
        yield
        return
    sys.modules["pyarrow"] = None  # type: ignore[assignment]  # marks a missing module
    try:
        yield
    finally:
        del sys.modules["pyarrow"]
