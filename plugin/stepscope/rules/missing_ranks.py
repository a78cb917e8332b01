"""Ranks of the job have no trace, so what the others waited for is not known whole."""

from collections.abc import Iterator

from stepscope.analyses.communication.ranked_run import (
    REMEDY,
    MissingRanks,
    missing_ranks,
    several_ranks,
)
from stepscope.analyses.communication.run_groups import RunGroup, run_groups
from stepscope.analyses.core import requirements
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import EvidenceTable
from stepscope.base.formatting import capitalized, count, number_ranges
from stepscope.rules import Finding, Fix, Rule, RunEvidence, Thresholds, option
from stepscope.rules.shared import facts, phrases, rank_evidence

ROWS_SHOWN = 10


class Options(Thresholds):
    """Threshold of missing ranks."""

    least_missing_count: int = option(
        1,
        "Ranks of the job without a trace that could be read.",
        origin="ours: any one of them may be whom the others wait for",
    )


def check_run(evidence: RunEvidence, options: Options) -> Iterator[Finding]:
    """Report ranks of the job that were not recorded, or whose file could not be read."""
    run = several_ranks(rank_evidence.several(evidence).parts)
    missing = missing_ranks(run, evidence.unreadable)
    requirements.applies_if(missing.source != "ranks", "the number of ranks was not recorded")
    if evidence.awaited_count:
        verb = "is" if evidence.awaited_count == 1 else "are"
        msg = f"{count(evidence.awaited_count, 'file')} of the run {verb} not read yet"
        raise MissingDataError(msg)
    if any(of.rank is None for of in run.ranks):
        msg = "the rank of a trace was not recorded"
        raise MissingDataError(msg, REMEDY)
    if len(missing.absent) < options.least_missing_count:
        return
    groups = [group for group in run_groups(run) if missing.absent & set(group.ranks)]
    yield Finding(
        severity="info",
        message=_message(missing, len(groups)),
        evidence=(
            facts.count("Ranks of the job", missing.world_size or 0),
            facts.count("Without a file", len(missing.missing)),
            facts.count("Whose file cannot be read", len(missing.unreadable)),
            facts.count("Process groups they are in", len(groups), "distributed"),
        ),
        tables=(_table(groups, missing),) if groups else (),
        subject="ranks",
    )


def _message(missing: MissingRanks, group_count: int) -> str:
    parts = []
    if missing.missing:
        verb = "has" if len(missing.missing) == 1 else "have"
        parts.append(f"{_called(missing.missing)} {verb} no trace")
    if missing.unreadable:
        noun = "file" if len(missing.unreadable) == 1 else "files"
        parts.append(f"the {noun} of {_called(missing.unreadable)} cannot be read")
    text = " and ".join(parts)
    text = f"{capitalized(text)}, of {missing.world_size:,} ranks."
    if group_count:
        text += (
            f" In {count(group_count, 'process group')} the reported waiting is a lower bound: the "
            "rank that came last may be one of them."
        )
    return text


def _called(ranks: tuple[int, ...]) -> str:
    named = phrases.joined(number_ranges(ranks).split(", "))
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {named}"


def _table(groups: list[RunGroup], missing: MissingRanks) -> EvidenceTable:
    return facts.table(
        "Process groups with ranks that say nothing, those with most time first",
        {"Group": "text", "For": "text", "Its ranks": "count", "Not recorded": "text"},
        (
            (
                group.name,
                group.role or None,
                group.size,
                number_ranges(missing.absent & set(group.ranks)),
            )
            for group in groups[:ROWS_SHOWN]
        ),
    )


RULE = Rule(
    id="missing-ranks",
    title="Some ranks of the job were not recorded",
    passed="All ranks of the job have a trace",
    category="trace quality",
    why="The rank that came last shows how long the others wait in a collective. If it has no "
    "trace, its lateness looks like transfer time of the others, and the rank that delays the "
    "job is not found.",
    detects="The job's size by `distributedInfo.world_size` or its process groups; the ranks that "
    "have a trace by header, file name or content. It reports from `least_missing_count` ranks "
    "without a trace, and distinguishes unreadable files from missing ones.",
    silent=(
        "Where one rank only was recorded, every rule about ranks says so itself.",
        "Traces that name neither a job's size nor groups are not taken for ranks of one.",
        "While files of the run are still to be read, their ranks are not taken for missing.",
    ),
    saving="None: it concerns the trace, not the program.",
    fix=Fix(
        "Record the same steps on every rank, into one folder that all of them can write.",
        REMEDY,
        verify="As many traces as the job has ranks, and this is not found.",
        caveats=(
            "A file that cannot be read was mostly cut off while it was written: the process ended "
            "before its profiler had stopped, or the disk was full.",
        ),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check_run=check_run,
    is_symptom=True,
    reports_missing_data=True,
    rests_on=frozenset({"ranks"}),
    priority="symptom",
    links=("profiler.html",),
    origin="HTA and torch-tb-profiler take the ranks that there are for all of the job's",
)
