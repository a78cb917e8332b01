"""One rank comes late to collectives, and all others wait for it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd
from msgspec.structs import replace

from stepscope.analyses.communication.rank_table import rank_table_of
from stepscope.analyses.communication.ranked_run import RankRun, several_ranks
from stepscope.analyses.communication.stragglers import (
    StragglerGroup,
    straggler_groups,
    stragglers_of,
)
from stepscope.base.calibration import MOST_SHARED_WORK, SHARED_WORK, WAITING_FOR_A_LATE_RANK
from stepscope.base.findings import EvidenceTable, Link, Unit
from stepscope.base.formatting import capitalized, duration, number_ranges, share
from stepscope.replay.run_savings import RunSaving, savings_of_late_ranks
from stepscope.rules import Finding, Fix, Rule, RunClaim, RunEvidence, Thresholds, option
from stepscope.rules.shared import facts, phrases, rank_evidence
from stepscope.rules.shared.rank_evidence import Ranks, rank_name, rank_number

ROWS_SHOWN = 10
COUNTS = ("last_count", "collective_count")
REMEDIES = {
    "computing": "Give every rank the same work: bucket by length, shuffle shards; else check the "
    "device's clock and temperature.",
    "data loading": "Load faster there: more workers, the same storage as the others.",
    "copies": "Pin the memory that it copies from, and check its PCIe link and NUMA node.",
    "host": "Check the other processes on its machine, and its number of cores.",
}
METHOD = (
    "The others' waiting in collectives beyond the shortest duration over the ranks, as far as "
    "this rank causes it: the time by which it has more to do than the slowest of the others, or "
    "else the part before collectives to which it came last; at least 30 % of it."
)
REPLAY_METHODS = {
    "more": "The run replayed with the same work on all ranks, since this rank does more: its "
    "operators are more, or their inputs larger; 65 to 110 % of that.",
    "same": "The run replayed with this rank working as long as the median of the others, since it "
    "does the same: its operators are as many, and their inputs as large; at least 65 % of that.",
    "unknown": "The run replayed with this rank working as long as the median of the others; at "
    "least 65 % of what is saved if the ranks share its additional work.",
}
BEFORE = " The late ranks of findings above are mended first."
MORE_SHARE = 0.3
"""Of a late rank's additional time, the fraction by which its work exceeds that of the others."""


class Options(Thresholds):
    """Thresholds of late ranks."""

    least_wait_share: float = option(
        0.05,
        "Mean time per step for which the others wait for it, as a fraction of the step.",
        origin="HTA's stragglers and torch-tb-profiler's overview name no threshold; 5 % is where "
        "torch-tb-profiler and xprof report lost time",
    )
    shown_count: int = option(
        3, "Number of late ranks, or groups of them, shown.", origin="ours", is_threshold=False
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _LateRanks:
    """Late ranks of one cause, and the time that the others lose."""

    group: StragglerGroup
    rows: tuple[Mapping[Any, Any], ...]
    """Of the stragglers' traces, the costliest first."""
    waits_ns: Mapping[str, float]
    """Trace to its waiting per step for these ranks."""
    step_ns: float
    saving: RunSaving | None
    """None where the run cannot be replayed."""
    work: Literal["more", "same", "unknown"]
    """What these ranks do, compared with the others."""

    @property
    def claimed_ns(self) -> tuple[float, float]:
        """The least and the most that the run saves per step without their lateness."""
        if self.saving is None:
            factor = WAITING_FOR_A_LATE_RANK
            return factor.low * self.mean_ns, factor.high * self.mean_ns
        shared_ns, gone_ns = self.saving.shared_ns, self.saving.gone_ns
        if self.work == "more":
            return SHARED_WORK.low * shared_ns, min(gone_ns, MOST_SHARED_WORK * shared_ns)
        return SHARED_WORK.low * (gone_ns if self.work == "same" else shared_ns), gone_ns

    @property
    def mean_ns(self) -> float:
        """Mean waiting of the others per step."""
        return sum(self.waits_ns.values()) / max(1, len(self.waits_ns))

    @cached_property
    def of_ranks(self) -> tuple[Mapping[Any, Any], ...]:
        """The costliest trace of each rank."""
        first: dict[str, Mapping[Any, Any]] = {}
        for row in self.rows:
            first.setdefault(row["worker"], row)
        return tuple(first.values())

    @property
    def subject(self) -> str:
        """Group, or rank, that distinguishes these ranks from other late ones."""
        are_many = len(self.of_ranks) > 1
        return self.group.name or ("several ranks" if are_many else rank_name(self.rows[0]))

    @property
    def names(self) -> str:
        """The ranks as a sentence's subject."""
        if len(self.of_ranks) == 1:
            return capitalized(rank_name(self.rows[0]))
        numbers = [number for row in self.of_ranks if (number := rank_number(row)) is not None]
        late, of = len(self.of_ranks), self.group.recorded_count
        listed = f" ({number_ranges(numbers)})" if len(numbers) == late else ""
        if self.group.kind == "ranks":
            return f"{late} ranks{listed}"
        part = f"The {late} ranks" if late == of else f"{late} of {of} ranks"
        return f"{part} of {self.group.kind} {self.group.name}{listed}"


def check_run(evidence: RunEvidence, options: Options) -> Iterator[Finding]:
    """Report ranks that come last more often than usual, by the time that the others wait."""
    ranks = rank_evidence.several(evidence)
    run = several_ranks(ranks.parts)
    groups = _late_ranks(ranks, run)
    step_ns = max((late.step_ns for late in groups), default=0.0)
    if sum(late.mean_ns for late in groups) >= options.least_wait_share * step_ns:
        table = _table(stragglers_of(run))
        yield from (_finding(ranks, late, table) for late in groups[: options.shown_count])


def _late_ranks(ranks: Ranks, run: RankRun) -> list[_LateRanks]:
    """Return the late ranks with the time that the others lose, which no computing hides.

    That is the time by which these ranks have more to do than the slowest of the others, since
    they delay the ranks of their groups, which delay others in turn. Where their compute time shows
    no such difference, it is the part before collectives to which they came last.
    """
    rows = {(row["worker"], row["span"]): row for row in stragglers_of(run).to_dict("records")}
    table = rank_table_of(run)
    traces = [ranks.recording(row).trace for row in table.to_dict("records")]
    spans, step_ns = table["span"].to_numpy(), table["step_ns"].to_numpy()
    left = table[["wait_ns", "exposed_ns"]].min(axis=1, skipna=False).to_numpy()
    result = []
    groups = straggler_groups(run)
    savings = savings_of_late_ranks(run, [group.indexes for group in groups])
    for number, group in enumerate(groups):
        parts = [run.parts[index].evidence for index in group.indexes]
        late = tuple(rows[part.worker, part.span] for part in parts)
        caused = {row["span"]: float(row["wait_caused_share"]) for row in late}
        is_other = np.isin(spans, list(caused))
        is_other[list(group.indexes)] = False
        fraction = np.array([caused.get(span, 0.0) for span in spans])
        lost = np.minimum(left, group.gain_ns) if group.gain_ns else left * fraction
        waiting = np.flatnonzero(is_other & ~np.isnan(left)).tolist()
        waits_ns = {traces[index]: float(lost[index]) for index in waiting}
        mean_ns = float(step_ns[is_other].mean())
        saving = None if savings is None else savings[number]
        result.append(
            _LateRanks(
                group=group,
                rows=late,
                waits_ns=waits_ns,
                step_ns=mean_ns,
                saving=saving,
                work=_work(run, group.indexes),
            )
        )
        left = np.where(is_other, left - lost, left)
    return result


def _work(run: RankRun, late: Sequence[int]) -> Literal["more", "same", "unknown"]:
    """Return whether the slowest of the late ranks does more than the median of the others.

    It does where its operators, or the elements of their inputs, exceed theirs by a fraction of the
    additional time. Without shapes, as many operators may be the same work or not.
    """
    totals = pd.DataFrame([part.totals for part in run.parts])
    totals["work_ns"] = totals["step_ns"] - totals["exposed_ns"]
    names = ["work_ns", "operator_count", "element_count"]
    slowest = totals.iloc[list(late)].sort_values("work_ns", na_position="first")[names].iloc[-1]
    more = slowest / totals.drop(index=list(late))[names].median() - 1
    if np.isnan(more["work_ns"]):
        return "unknown"
    if (more[names[1:]] > MORE_SHARE * max(0.0, more["work_ns"])).any():
        return "more"
    return "unknown" if np.isnan(more["element_count"]) else "same"


def _finding(ranks: Ranks, late: _LateRanks, table: EvidenceTable) -> Finding:
    first = late.rows[0]
    cause = first["cause"]
    low_ns, high_ns = late.claimed_ns
    return Finding(
        confidence=ranks.confidence("high" if cause is not None else "medium"),
        message=_message(ranks, late),
        evidence=(
            facts.duration("Waiting of the others per step", round(late.mean_ns)),
            facts.fraction("Collectives to which it comes last", float(first["last_share"])),
            facts.duration("Lateness per collective", round(first["lateness_ns"])),
        ),
        tables=(table,),
        run_claim=RunClaim(
            low_ns=low_ns,
            high_ns=high_ns,
            method=METHOD if late.saving is None else REPLAY_METHODS[late.work] + BEFORE,
            taken_ns=late.waits_ns,
            taken_from=("ddp-missing-no-sync", "small-collectives", "exposed-communication"),
        ),
        fix=None if cause is None else replace(RULE.fix, summary=REMEDIES[cause]),
        blamed=tuple(ranks.recording(row).trace for row in late.of_ranks),
        subject=late.subject,
    )


def _message(ranks: Ranks, late: _LateRanks) -> str:
    first, are_many = late.rows[0], len(late.of_ranks) > 1
    since, spans = int(first["since_step"]), {row["span"] for row in late.rows}
    when = f" since step {since}" if since >= 0 and len(spans) == 1 else ""
    waits = f"{duration(late.mean_ns)} per step ({share(late.mean_ns / late.step_ns)})"
    if are_many:
        text = f"{late.names} delay the others{when}: these wait {waits} for them."
    else:
        last, of = (sum(int(row[name]) for row in late.rows) for name in COUNTS)
        text = (
            f"{late.names} comes last to {last} of {of} collectives{when}: the others wait {waits} "
            "for it."
        )
    if first["cause"] is not None:
        longer = duration(float(first["cause_ns"]))
        subject = f"The slowest, {rank_name(first)}, takes" if are_many else "It takes"
        text += f" {subject} {longer} per step longer than the median rank in {first['cause']}."
    if rules := _rules_only_there(ranks, late.rows):
        text += f" On {'them' if are_many else 'it'} alone: {phrases.joined(rules)}."
    return text


def _rules_only_there(ranks: Ranks, rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the rules with a serious finding on these ranks and on no other."""
    late = {ranks.recording(row).trace for row in rows}
    there, elsewhere = set[str](), set[str]()
    for recording in ranks.recordings:
        (there if recording.trace in late else elsewhere).update(
            outcome.rule
            for outcome in recording.outcomes
            if outcome.status == "found" and outcome.severity in ("critical", "warning")
        )
    return sorted(there - elsewhere)


def _table(late: pd.DataFrame) -> EvidenceTable:
    columns: dict[str, Unit] = {
        "Rank": "text",
        "Lateness per collective": "ns",
        "Comes last": "share",
        "Waits for others in total": "ns",
    }
    rows = (
        facts.row(
            rank_name(row),
            *(row[name] for name in ("lateness_ns", "last_share", "wait_ns")),
            link=Link(view="overview", rank=rank_number(row)),
        )
        for row in late.head(ROWS_SHOWN).to_dict("records")
    )
    return facts.table("Ranks, the latest first", columns, rows)


RULE = Rule(
    id="straggler-rank",
    title="One rank comes late to collectives, and the others wait for it",
    passed="No rank delays the others",
    category="distributed balance",
    why="No rank leaves a collective before all have entered it: a late rank makes every other "
    "rank wait.",
    detects="Collectives matched across ranks by group and sequence. All ranks leave together, so "
    "the one whose call is shortest came last; this needs no common clock. A rank is late if its "
    "lateness is an outlier among the ranks (modified z-score above 3.5; of two ranks, last in "
    "60 % of the collectives, or the cause of 75 % of the waiting) and at least 1 % of a step; or "
    "if the same holds for its compute "
    "time, which is the step less exposed communication, compared with the ranks of its pipeline "
    "stage. Late ranks that are most of a machine or of a process group are reported together. "
    "It reports where the others wait for all late ranks together for `least_wait_share` of a "
    "step.",
    silent=(
        "A rank that is late in one of its groups only because another delayed it does not count "
        "as late.",
        "Collectives that do not make every rank wait (sends, receives, broadcasts) do not count.",
    ),
    saving="The run is replayed with ranks that leave each collective together. Where this rank "
    "does more than the others (more operators, or larger inputs), with the same work on all ranks "
    "of its pipeline stage: 65 to 110 % of that, as measured in three jobs. Where it does the same "
    "and takes longer, with this rank working as long as the median of the others, and at least 65 "
    "% of that. Without shapes, from the one to the other. Where the run cannot be replayed, 30 to "
    "100 % of the others' mean waiting per step that no computing hides, as far as this rank "
    "causes it. `exposed-communication`, `ddp-missing-no-sync` and `small-collectives` of the "
    "others do not claim that waiting.",
    fix=Fix(
        "Find the difference between that rank and the others, and make their work equal.",
        verify="In the next trace no rank comes last to more than its fraction of the collectives.",
        caveats=(
            "Stages of a pipeline wait for each other by design.",
            "Record all ranks over the same steps: otherwise they do not match.",
        ),
    ),
    effort="day",
    risk="none",
    options=Options(),
    check_run=check_run,
    rests_on=frozenset({"device times", "ranks", "steps"}),
    priority="program",
    culprit="waiting for a late rank",
    links=("distributed.html#debugging-torch-distributed-applications",),
    origin="HTA's stragglers; torch-tb-profiler's minimum over the workers; Iglewicz and Hoaglin, "
    "How to Detect and Handle Outliers (1993)",
)
