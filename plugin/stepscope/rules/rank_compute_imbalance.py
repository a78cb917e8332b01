"""Ranks compute for different times, so the others wait for the one that has most to do."""

from collections.abc import Iterator

import pandas as pd

from stepscope.analyses.communication.rank_table import rank_table
from stepscope.analyses.communication.ranked_run import several_ranks
from stepscope.analyses.communication.stragglers import stragglers
from stepscope.analyses.core import requirements
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import EvidenceTable, Severity
from stepscope.base.formatting import duration, share
from stepscope.replay.run_savings import saved_by_equal_work_ns
from stepscope.rules import Finding, Fix, Rule, RunClaim, RunEvidence, Thresholds, option
from stepscope.rules.shared import facts, rank_evidence
from stepscope.rules.shared.rank_evidence import Ranks, rank_name

ROWS_SHOWN = 10


class Options(Thresholds):
    """Thresholds of the spread over ranks."""

    least_spread_share: float = option(
        0.05,
        "Longest less shortest computing time per step, of the mean over the ranks.",
        origin="msprof-analyze's slow rank: 0.05",
    )
    warning_spread_share: float = option(
        0.20,
        "The same, from which it is a warning.",
        origin="SageMaker Debugger's LoadBalancing rule: 0.2",
    )


def check_run(evidence: RunEvidence, options: Options) -> Iterator[Finding]:
    """Report how far apart the ranks' computing times per step lie."""
    ranks = rank_evidence.several(evidence)
    requirements.applies_if(
        all(part.has_device for part in ranks.parts), "the ranks have no devices"
    )
    table = rank_table(ranks.parts)
    requirements.applies_if(
        (table["matched_count"] > 0).all(),
        "the traces do not meet in collectives: they are no ranks of one job",
    )
    computing = table.groupby("worker", sort=False)["computing_ns"].mean()
    spread_ns = float(computing.max() - computing.min())
    spread = spread_ns / max(1.0, float(computing.mean()))
    if len(computing) < 2 or spread < options.least_spread_share:
        return
    slowest, quickest = (
        rank_name(table[table["worker"] == worker].iloc[0].to_dict())
        for worker in (computing.idxmax(), computing.idxmin())
    )
    beyond_ns = float(computing.max() - computing.mean())
    severity: Severity = "warning" if spread >= options.warning_spread_share else "info"
    yield Finding(
        severity=severity,
        confidence=ranks.confidence("medium"),
        message=f"{slowest.capitalize()} computes {duration(float(computing.max()))} per step, "
        f"{quickest} {duration(float(computing.min()))}: {share(spread)} of the mean apart.",
        evidence=(
            facts.fraction("Longest less shortest, of the mean", spread),
            facts.duration("Longest less mean, per step", round(beyond_ns), "overview"),
        ),
        tables=(_table(table),),
        run_claim=None if _has_straggler(ranks) else _claim(beyond_ns, table, ranks),
        subject="computing",
    )


def _has_straggler(ranks: Ranks) -> bool:
    """Return whether a late rank explains it: then `straggler-rank` claims the waiting."""
    return bool(stragglers(ranks.parts)["is_straggler"].any())


def _claim(beyond_ns: float, table: pd.DataFrame, ranks: Ranks) -> RunClaim:
    saved_ns = saved_by_equal_work_ns(several_ranks(ranks.parts))
    method = "The longest computing time per step less the mean; half of it at least."
    if saved_ns is not None:
        beyond_ns = saved_ns
        method = "The run replayed with equal work on the ranks of a stage; half of it at least."
    waits = {
        ranks.recording(row).trace: min(beyond_ns, float(str(row["wait_ns"])))
        for row in table[table["wait_ns"].notna()].to_dict("records")
    }
    return RunClaim(
        low_ns=HALF_TO_ALL.low * beyond_ns,
        high_ns=HALF_TO_ALL.high * beyond_ns,
        method=method,
        taken_ns=waits,
        taken_from=("exposed-communication",),
    )


def _table(table: pd.DataFrame) -> EvidenceTable:
    ordered = table.sort_values("computing_ns", ascending=False, kind="stable").head(ROWS_SHOWN)
    return facts.table(
        "Ranks, the longest computing first",
        {
            "Rank": "text",
            "Computing per step": "ns",
            "Exposed communication per step": "ns",
            "Step": "ns",
        },
        (
            (
                rank_name(row),
                float(row["computing_ns"]),
                float(row["exposed_ns"]),
                float(row["step_ns"]),
            )
            for row in ordered.to_dict("records")
        ),
    )


RULE = Rule(
    id="rank-compute-imbalance",
    title="The ranks do not have the same amount to compute",
    passed="Ranks have similar amounts of work",
    category="distributed balance",
    why="Ranks meet in collectives at least once per step. The step lasts as long as that of the "
    "rank with the most to compute; the others wait.",
    detects="The time per step in which each rank's device computes (kernels that are no "
    "collectives). It reports from a spread of `least_spread_share`, and warns from "
    "`warning_spread_share`.",
    silent=(
        "Without devices it says nothing: operators of the host also wait for cores.",
        "Traces that do not meet in collectives are no ranks of one job.",
        "Where one rank comes late, straggler-rank claims the time, and this claims none.",
    ),
    saving="The run is replayed with equal work on all ranks of a pipeline stage; half of that at "
    "least. Where it cannot be replayed, the longest computing time less the mean.",
    fix=Fix(
        "Give every rank the same amount of work: tokens, samples by length, experts.",
        "# batches of about as many tokens on every rank, not as many samples\n"
        "sampler = LengthGroupedDistributedSampler(lengths, num_replicas, rank)",
        verify="The ranks' computing times per step differ by less than 5 %.",
        caveats=("Stages of a pipeline differ by design: compare within a stage.",),
    ),
    effort="day",
    risk="behaviour",
    options=Options(),
    check_run=check_run,
    rests_on=frozenset({"device times", "ranks", "steps"}),
    priority="program",
    culprit="unequal work of the ranks",
    links=("data.html#torch.utils.data.distributed.DistributedSampler",),
    origin="msprof-analyze's slow rank; SageMaker Debugger's LoadBalancing",
)
