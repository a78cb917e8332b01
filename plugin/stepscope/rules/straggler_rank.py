"""One rank comes late to collectives, and all others wait for it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.communication.rank_table import rank_table_of
from stepscope.analyses.communication.ranked_run import RankRun, several_ranks
from stepscope.analyses.communication.straggler_groups import StragglerGroup, straggler_groups
from stepscope.analyses.communication.stragglers import stragglers_of
from stepscope.base.calibration import WAITING_FOR_A_LATE_RANK
from stepscope.base.findings import EvidenceTable, Fix, Link
from stepscope.base.formatting import duration, number_ranges, share
from stepscope.rules import Finding, Rule, RunClaim, RunEvidence, option
from stepscope.rules.shared import facts, phrases, rank_evidence
from stepscope.rules.shared.rank_evidence import Ranks, called

ROWS_SHOWN = 10
COUNTS = ("last_count", "collective_count")
REMEDIES = {
    "computing": "Give every rank the same work: bucket by length, shuffle shards; else check the"
    " device's clock and temperature.",
    "data loading": "Load faster there: more workers, the same storage as the others.",
    "copies": "Pin the memory that it copies from, and look at its PCIe link and NUMA node.",
    "host": "Look at what else runs on its machine, and how many cores it has.",
}
METHOD = (
    "The others' waiting in collectives beyond the shortest duration over the ranks, as far as it "
    "is for this: as long as it has more to do than the slowest of the others, or else the part "
    "before collectives to which it came last; 30 % of it at least."
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """When a late rank is worth a word."""

    least_wait_share: float = option(
        0.05,
        "Of the step: how long the others wait for it on average.",
        origin="HTA's stragglers and torch-tb-profiler's overview name no threshold; 5 % is where "
        "torch-tb-profiler and xprof speak of lost time",
    )
    shown_count: int = option(
        3, "How many ranks are told at most.", origin="ours", is_threshold=False
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Late:
    """Late ranks of one reason, and what the others lose by them."""

    together: StragglerGroup
    rows: tuple[Mapping[Any, Any], ...]
    """Of the stragglers' recordings, the costliest first."""
    waits_ns: Mapping[str, float]
    """Recording to how long it waits a step for these ranks."""
    step_ns: float

    @property
    def mean_ns(self) -> float:
        """How long the others wait a step, on average."""
        return sum(self.waits_ns.values()) / max(1, len(self.waits_ns))

    @cached_property
    def of_ranks(self) -> tuple[Mapping[Any, Any], ...]:
        """Of each rank its costliest recording."""
        found: dict[str, Mapping[Any, Any]] = {}
        for row in self.rows:
            found.setdefault(row["worker"], row)
        return tuple(found.values())

    @property
    def place(self) -> str:
        """What tells it from other late ranks."""
        many = len(self.of_ranks) > 1
        return self.together.name or ("several ranks" if many else called(self.rows[0]))

    @property
    def names(self) -> str:
        """What to call them, where a sentence begins."""
        if len(self.of_ranks) == 1:
            name = called(self.rows[0])
            return name[:1].upper() + name[1:]
        known = {int(row["rank"]) for row in self.of_ranks if row["rank"] == row["rank"]}
        which = f" ({number_ranges(known)})" if len(known) == len(self.of_ranks) else ""
        late, of = len(self.of_ranks), self.together.recorded_count
        if self.together.kind == "ranks":
            return f"{late} ranks{which}"
        many = f"The {late} ranks" if late == of else f"{late} of {of} ranks"
        return f"{many} of {self.together.kind} {self.together.name}{which}"


def check_run(evidence: RunEvidence, options: Options) -> Iterator[Finding]:
    """Report ranks that come last beyond what is usual, by what the others wait for them."""
    ranks = rank_evidence.several(evidence)
    run = several_ranks(ranks.parts)
    late = stragglers_of(run)
    found = _all_late(ranks, run)
    if sum(each.mean_ns for each in found) >= options.least_wait_share * _step_ns(found):
        for each in found[: options.shown_count]:
            yield _finding(ranks, each, late)


def _step_ns(found: Sequence[_Late]) -> float:
    return max((each.step_ns for each in found), default=0.0)


def _all_late(ranks: Ranks, run: RankRun) -> list[_Late]:
    """Return the late ranks with what the others lose by them.

    Of waiting that no computing hides: by how much more these have to do than the slowest of the
    others, since they make the ranks of their groups late, for which others wait then; where their
    own work does not tell, the part before collectives to which they came last.
    """
    rows = {(row["worker"], row["span"]): row for row in stragglers_of(run).to_dict("records")}
    table = rank_table_of(run)
    traces = [ranks.recording(row).trace for row in table.to_dict("records")]
    spans = table["span"].to_numpy()
    left = table[["wait_ns", "exposed_ns"]].min(axis=1, skipna=False).to_numpy()
    found = []
    for together in straggler_groups(run):
        places = list(together.indexes)
        mine = [rows[run.parts[at].evidence.worker, run.parts[at].evidence.span] for at in places]
        is_beside = np.isin(spans, spans[places])
        is_beside[places] = False
        part = np.zeros(len(spans))
        for row in mine:
            part[spans == row["span"]] += float(row["wait_caused_share"])
        lost = np.minimum(left, together.gain_ns) if together.gain_ns else left * part
        chosen = np.flatnonzero(is_beside & ~np.isnan(left))
        found.append(
            _Late(
                together=together,
                rows=tuple(mine),
                waits_ns={traces[at]: float(lost[at]) for at in chosen.tolist()},
                step_ns=float(table["step_ns"].to_numpy()[is_beside].mean()),
            )
        )
        left = np.where(is_beside, left - lost, left)
    return found


def _finding(ranks: Ranks, late: _Late, table: pd.DataFrame) -> Finding:
    first = late.rows[0]
    cause = first["cause"]
    return Finding(
        confidence=ranks.confidence("high" if cause is not None else "medium"),
        message=_message(ranks, late),
        evidence=(
            facts.duration("Waiting of the others a step", round(late.mean_ns)),
            facts.fraction("Collectives to which it comes last", float(first["last_share"])),
            facts.duration("Lateness in a collective", round(first["lateness_ns"])),
        ),
        tables=(_table(table),),
        run_claim=RunClaim(
            low_ns=WAITING_FOR_A_LATE_RANK.low * late.mean_ns,
            high_ns=WAITING_FOR_A_LATE_RANK.high * late.mean_ns,
            method=METHOD,
            taken_ns=late.waits_ns,
            taken_from=("exposed-communication",),
        ),
        fix=_fix(str(cause)) if cause is not None else None,
        blamed=tuple(ranks.recording(row).trace for row in late.of_ranks),
        subject=late.place,
    )


def _message(ranks: Ranks, late: _Late) -> str:
    first, many = late.rows[0], len(late.of_ranks) > 1
    since, spans = int(first["since_step"]), {row["span"] for row in late.rows}
    when = f" since step {since}" if since >= 0 and len(spans) == 1 else ""
    waits = f"{duration(late.mean_ns)} a step"
    of_step = f"({share(late.mean_ns / late.step_ns)})"
    if many:
        text = f"{late.names} hold the others up{when}: these wait {waits} for them {of_step}."
    else:
        last, of = (sum(int(row[name]) for row in late.rows) for name in COUNTS)
        text = (
            f"{late.names} comes last to {last} of {of} collectives{when}: the others wait {waits} "
            f"for it {of_step}."
        )
    if first["cause"] is not None:
        longer = duration(float(first["cause_ns"]))
        who = f"The slowest, {called(first)}, takes" if many else "It takes"
        text += f" {who} {longer} a step longer than the median rank in {first['cause']}."
    if alone := _own_findings(ranks, late.rows):
        text += f" On {'them' if many else 'it'} alone: {phrases.joined(alone)}."
    return text


def _own_findings(ranks: Ranks, rows: Sequence[Mapping[Any, Any]]) -> list[str]:
    """Return the rules that found something serious on these ranks and on no other."""
    mine = {ranks.recording(row).trace for row in rows}
    own, others = set[str](), set[str]()
    for each in ranks.recordings:
        (own if each.trace in mine else others).update(
            outcome.rule
            for outcome in each.outcomes
            if outcome.status == "found" and outcome.severity in ("critical", "warning")
        )
    return sorted(own - others)


def _table(late: pd.DataFrame) -> EvidenceTable:
    rows = [
        facts.row(
            called(row),
            row["lateness_ns"],
            row["last_share"],
            row["wait_ns"],
            link=Link(view="overview", rank=_number(row)),
        )
        for row in late.head(ROWS_SHOWN).to_dict("records")
    ]
    return facts.table(
        "Ranks, the latest first",
        {
            "Rank": "text",
            "Lateness in a collective": "ns",
            "Comes last": "share",
            "Waits for others in all": "ns",
        },
        rows,
    )


def _number(row: Mapping[Any, Any]) -> int | None:
    name = called(row)
    return int(name.removeprefix("rank ")) if name.startswith("rank ") else None


def _fix(cause: str) -> Fix:
    return Fix(REMEDIES[cause], verify=RULE.fix.verify, caveats=RULE.fix.caveats)


RULE = Rule(
    id="straggler-rank",
    title="One rank comes late to collectives, and the others wait for it",
    category="distributed balance",
    why="No rank leaves a collective before all have come. A rank that is late makes every other "
    "rank stand still, and the job as slow as itself.",
    detects="Collectives matched across ranks by group and sequence. All ranks leave together, so "
    "the one whose call is shortest came last; this needs no common clock. A rank is late if its "
    "lateness is an outlier among the ranks (modified z-score above 3.5; of two ranks, last in 60 "
    "% of the collectives) and 1 % of a step or more; or if that holds of its own work, the step "
    "less communication that nothing hides, beside the ranks of its pipeline stage. Late ranks "
    "that are most of a machine, or of a process group, are told as one. It speaks where the "
    "others wait for all of them together for `least_wait_share` of a step.",
    silent=(
        "A rank that is late in one of its groups only because another made it wait there does not "
        "count as late.",
        "Collectives that do not make every rank wait (sends, receives, broadcasts) are left out.",
    ),
    saving="At most the others' mean waiting a step that no computing hides, as far as it is for "
    "this rank: by how much longer its own work is than that of the slowest other, or else before "
    "collectives to which it comes last. 30 % of that at least, what evening out the work of the "
    "recordings in sample_logs/ranks won. What the others' `exposed-communication` claims is "
    "lessened by it.",
    fix=Fix(
        "Find out what is different on that rank, and make its work equal to the others'.",
        verify="In the next recording no rank comes last to more than its share of collectives.",
        caveats=(
            "Stages of a pipeline wait for each other by design.",
            "Record all ranks over the same steps, else they cannot be matched.",
        ),
    ),
    effort="day",
    risk="none",
    options=Options(),
    check_run=check_run,
    rests_on=frozenset({"device times", "ranks", "steps"}),
    priority=550,
    culprit="waiting for a late rank",
    links=(
        "https://docs.pytorch.org/docs/stable/distributed.html#debugging-torch-distributed-applications",
    ),
    origin="HTA's stragglers; torch-tb-profiler's minimum over the workers; Iglewicz and Hoaglin, "
    "How to Detect and Handle Outliers (1993)",
)
