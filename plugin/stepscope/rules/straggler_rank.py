"""One rank comes late to collectives, and all others wait for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

from stepscope.analyses.communication.rank_table import rank_table
from stepscope.analyses.communication.stragglers import stragglers
from stepscope.calibration import WAITING_FOR_A_LATE_RANK
from stepscope.quantities import duration, share
from stepscope.report import Evidence, EvidenceColumn, EvidenceRow, EvidenceTable, Fix, Link
from stepscope.rules import Finding, Rule, RunClaim, RunEvidence, _ranks, option
from stepscope.rules._ranks import Ranks, called

ROWS_SHOWN = 10
REMEDIES = {
    "computing": "Give every rank the same work: bucket by length, shuffle shards; else check the"
    " device's clock and temperature.",
    "data loading": "Load faster there: more workers, the same storage as the others.",
    "copies": "Pin the memory that it copies from, and look at its PCIe link and NUMA node.",
    "host": "Look at what else runs on its machine, and how many cores it has.",
}


@dataclass(frozen=True, kw_only=True)
class Options:
    """When a late rank is worth a word."""

    least_wait_share: float = option(
        0.05,
        "Of the step: how long the others wait for it on average.",
        origin="HTA's stragglers and torch-tb-profiler's overview name no threshold; 5 % is where"
        " torch-tb-profiler and xprof speak of lost time",
    )
    shown_count: int = option(
        3, "How many ranks are told at most.", origin="ours", is_threshold=False
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Late:
    """A late rank, and what the others lose by it."""

    row: "pd.Series[Any]"
    name: str
    waits_ns: dict[str, float]
    """Recording to how long it waits a step for this rank."""
    step_ns: float

    @property
    def mean_ns(self) -> float:
        """How long the others wait a step, on average."""
        return sum(self.waits_ns.values()) / max(1, len(self.waits_ns))


def check_run(evidence: RunEvidence, options: Options) -> Iterator[Finding]:
    """Report ranks that come last beyond what is usual, by what the others wait for them."""
    ranks = _ranks.several(evidence)
    late = stragglers(ranks.parts)
    table = rank_table(ranks.parts)
    found = [_late(ranks, row, table) for _, row in late[late["is_straggler"]].iterrows()]
    for each in found[: options.shown_count]:
        if each.mean_ns >= options.least_wait_share * each.step_ns:
            yield _finding(ranks, each, late)


def _late(ranks: Ranks, row: "pd.Series[Any]", table: pd.DataFrame) -> _Late:
    """Return what the others lose by a rank: of waiting that no computing hides, its part."""
    beside = table[(table["span"] == row["span"]) & (table["worker"] != row["worker"])]
    part = float(str(row["wait_caused_share"]))
    waits = {
        ranks.recording(other).trace: min(other["wait_ns"], other["exposed_ns"]) * part
        for _, other in beside[beside["wait_ns"].notna()].iterrows()
    }
    return _Late(row=row, name=called(row), waits_ns=waits, step_ns=float(beside["step_ns"].mean()))


def _finding(ranks: Ranks, late: _Late, table: pd.DataFrame) -> Finding:
    cause = late.row["cause"]
    return Finding(
        confidence=ranks.confidence("high" if cause is not None else "medium"),
        message=_message(ranks, late),
        evidence=(
            Evidence(label="Waiting of the others a step", value=round(late.mean_ns), unit="ns"),
            Evidence(
                label="Collectives to which it comes last",
                value=float(str(late.row["last_share"])),
                unit="share",
            ),
            Evidence(
                label="Lateness in a collective",
                value=round(float(str(late.row["lateness_ns"]))),
                unit="ns",
            ),
        ),
        tables=(_table(table),),
        run_claim=RunClaim(
            low_ns=WAITING_FOR_A_LATE_RANK.low * late.mean_ns,
            high_ns=WAITING_FOR_A_LATE_RANK.high * late.mean_ns,
            method=(
                "The others' waiting in collectives beyond the shortest duration over the ranks, "
                "as far as this rank was the last to come; 30 % of it at least."
            ),
            taken_ns=late.waits_ns,
            taken_from=("exposed-communication",),
        ),
        fix=_fix(str(cause)) if cause is not None else None,
        place=late.name,
    )


def _message(ranks: Ranks, late: _Late) -> str:
    row = late.row
    since = int(str(row["since_step"]))
    when = f" since step {since}" if since >= 0 else ""
    name = late.name[:1].upper() + late.name[1:]
    text = (
        f"{name} comes last to {row['last_count']} of {row['collective_count']} collectives{when}: "
        f"the others wait {duration(late.mean_ns)} a step for it "
        f"({share(late.mean_ns / late.step_ns)})."
    )
    if row["cause"] is not None:
        longer = duration(float(str(row["cause_ns"])))
        text += f" It takes {longer} a step longer than the median rank in {row['cause']}."
    if alone := _own_findings(ranks, row):
        text += f" On it alone: {_ranks.listed(alone)}."
    return text


def _own_findings(ranks: Ranks, row: "pd.Series[Any]") -> list[str]:
    """Return the rules that found something serious on this rank and on no other."""
    mine = ranks.recording(row)
    serious = {
        each.trace: {
            outcome.rule
            for outcome in each.outcomes
            if outcome.status == "found" and outcome.severity in ("critical", "warning")
        }
        for each in ranks.recordings
    }
    others = set().union(*(rules for trace, rules in serious.items() if trace != mine.trace))
    return sorted(serious[mine.trace] - others)


def _table(late: pd.DataFrame) -> EvidenceTable:
    columns = {
        "rank": ("Rank", "text"),
        "lateness_ns": ("Lateness in a collective", "ns"),
        "last_share": ("Comes last", "share"),
        "wait_ns": ("Waits for others in all", "ns"),
    }
    rows = [
        EvidenceRow(
            cells=(called(row), *(row[name] for name in list(columns)[1:])),
            link=Link(view="overview", rank=_number(row)),
        )
        for _, row in late.head(ROWS_SHOWN).iterrows()
    ]
    return EvidenceTable(
        label="Ranks, the latest first",
        columns=(
            EvidenceColumn(label="Rank", unit="text"),
            EvidenceColumn(label="Lateness in a collective", unit="ns"),
            EvidenceColumn(label="Comes last", unit="share"),
            EvidenceColumn(label="Waits for others in all", unit="ns"),
        ),
        rows=tuple(rows),
    )


def _number(row: "pd.Series[Any]") -> int | None:
    name = called(row)
    return int(name.removeprefix("rank ")) if name.startswith("rank ") else None


def _fix(cause: str) -> Fix:
    return Fix(summary=REMEDIES[cause], verify=RULE.fix.verify, caveats=RULE.fix.caveats)


RULE = Rule(
    id="straggler-rank",
    title="One rank comes late to collectives, and the others wait for it",
    category="distributed balance",
    why=(
        "No rank leaves a collective before all have come. A rank that is late makes every other "
        "rank stand still, and the job as slow as itself."
    ),
    detects=(
        "Collectives matched across ranks by group and sequence. All ranks leave together, so the "
        "one whose call is shortest came last; this needs no common clock. A rank is late if its "
        "lateness is an outlier among the ranks (modified z-score above 3.5; of two ranks, last in "
        "60 % of the collectives) and 1 % of a step or more. It speaks where the others wait for "
        "it for `least_wait_share` of a step."
    ),
    silent=(
        "A rank that is late in one of its groups only because another made it wait there does not "
        "count as late.",
        "Collectives that do not make every rank wait (sends, receives, broadcasts) are left out.",
    ),
    saving=(
        "At most the others' mean waiting a step that no computing hides, as far as it is for this "
        "rank; 30 % of that at "
        "least, what evening out the work of the recordings in sample_logs/ranks won. What the "
        "others' `exposed-communication` claims is lessened by it."
    ),
    fix=Fix(
        summary="Find out what is different on that rank, and make its work equal to the others'.",
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
    origin=(
        "HTA's stragglers; torch-tb-profiler's minimum over the workers; Iglewicz and Hoaglin, How "
        "to Detect and Handle Outliers (1993)"
    ),
)
