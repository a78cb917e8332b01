"""Experts get unequal numbers of tokens: ranks exchange unequal amounts."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.core import requirements
from stepscope.base.formatting import share, size
from stepscope.rules import Finding, Fix, Rule, RunEvidence, Thresholds, option
from stepscope.rules.shared import facts, rank_evidence

EXCHANGES = frozenset({"all_to_all", "all_to_allv"})
ROWS_SHOWN = 10


class Options(Thresholds):
    """Threshold of unequal amounts."""

    least_excess_share: float = option(
        0.2,
        "Most bytes that a rank exchanges, beyond the mean over the ranks.",
        origin="SageMaker Debugger's LoadBalancing rule: 0.2; capacity factors are mostly 1.25",
    )


def check_run(evidence: RunEvidence, options: Options) -> Iterator[Finding]:
    """Report ranks that exchange more than the others in total-to-alls."""
    requirements.applies_if(
        any(_mean_bytes(rank.part) for rank in evidence.recordings),
        "no tokens are exchanged (all-to-all) whose amounts were recorded",
    )
    ranks = rank_evidence.several(evidence)
    exchanged = {part.evidence.worker: _mean_bytes(part) for part in ranks.parts}
    sent_bytes = {worker: amount for worker, amount in exchanged.items() if amount > 0}
    mean = float(np.mean(list(sent_bytes.values())))
    excess = max(sent_bytes.values()) / mean - 1
    if excess < options.least_excess_share:
        return
    ordered = sorted(sent_bytes.items(), key=lambda item: -item[1])
    yield Finding(
        severity="info",
        confidence=ranks.confidence("medium"),
        message=f"{ordered[0][0]} exchanges {size(ordered[0][1])} in each all-to-all, "
        f"{ordered[-1][0]} {size(ordered[-1][1])}: {share(excess)} more than the mean.",
        evidence=(facts.fraction("Most beyond the mean", excess),),
        tables=(
            facts.table(
                "What each exchanges in an all-to-all",
                {"Worker": "text", "Mean size": "bytes"},
                (rank for rank in ordered[:ROWS_SHOWN]),
            ),
        ),
        subject="all-to-all",
    )


def _mean_bytes(part: RankSummary) -> float:
    """Return the mean size of a rank's exchanges, 0 where none was recorded."""
    collectives = part.collectives
    kinds = np.array([key.kind in EXCHANGES for key in collectives.keys] or [False])
    sizes = collectives.message_bytes[kinds[collectives.key]] if len(collectives) else np.empty(0)
    sizes = sizes[sizes > 0]
    return float(sizes.mean()) if len(sizes) else 0.0


RULE = Rule(
    id="moe-imbalance",
    title="Some experts get more tokens than others",
    passed="Experts receive similar numbers of tokens",
    category="distributed balance",
    why="In a mixture of experts each rank computes the tokens that were routed to its experts. "
    "The one with the most decides how long per step is; tokens beyond capacity are dropped.",
    detects="The mean size of each rank's all-to-alls, in which tokens travel to experts. It "
    "reports where one rank exchanges `least_excess_share` more than the mean.",
    saving="None: the longer computing of the experts is reported by `rank-compute-imbalance` and "
    "`straggler-rank`, which claim it.",
    fix=Fix(
        "Balance the router: an auxiliary loss, or a bias on overloaded experts.",
        "loss = task_loss + 0.01 * load_balancing_loss(router_logits)",
        verify="The ranks' all-to-alls are of about equal size.",
        caveats=("Other programs use all-to-all too: for sequences, for embedding tables.",),
    ),
    effort="day",
    risk="numerics",
    options=Options(),
    check_run=check_run,
    rests_on=frozenset({"ranks"}),
    priority="program",
    life_cycle="preview",
    links=("https://arxiv.org/abs/2101.03961",),
    origin="Fedus et al., Switch Transformers (2021): load balancing and expert capacity",
)
