"""An embedding table gets a dense gradient, of which a batch touches few rows."""

import numpy as np

from stepscope.analyses.core import frame_times, requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.host.embedding_gradients import EmbeddingGradient, embedding_gradients
from stepscope.analyses.host.optimizer_updates import launched_work
from stepscope.analyses.idle.call_cost import CallCost, call_cost
from stepscope.base.calibration import SPARSE_GRADIENTS, part_of
from stepscope.base.findings import Link
from stepscope.base.formatting import count
from stepscope.model.arrays import Ints
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases


class Options(Thresholds):
    """Thresholds of tables, and of the time that their gradients take."""

    least_rows_per_index: int = option(
        8,
        "Rows of the table for each index of a lookup.",
        origin="ours: a sparse gradient costs some operators more, and its rows are added up; with "
        "10 rows for each index, next_track_gru of sample_logs/record/zoo still gains 30 %",
    )
    least_share: float = option(
        0.02,
        "Fraction of the window in gradients of the table and its updates.",
        origin="ours: steps of a loop differ by as much",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report tables whose gradients have many more rows than a batch reads."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    requirements.shapes(trace)
    gradients = [
        gradient
        for gradient in embedding_gradients(trace)
        if gradient.table[0] >= options.least_rows_per_index * gradient.index_count
        and not gradient.is_tied
        and not gradient.is_clipped
    ]
    if not gradients:
        return
    cost = _cost(trace, [rows for one in gradients for rows in (one.backward, one.updates)])
    lists = _cost(trace, [one.list_updates for one in gradients])
    list_share = sum(gradient.list_share for gradient in gradients)
    lost_ns = _lost_ns(cost) + round(list_share * _lost_ns(lists))
    if phrases.fraction_of_window(trace, lost_ns) < options.least_share:
        return
    claims = call_costs.claims(cost, SPARSE_GRADIENTS, SPARSE_GRADIENTS, METHOD)
    if list_share:
        part = part_of(SPARSE_GRADIENTS, list_share)
        claims += call_costs.claims(lists, part, part, "The tables' part of updates of lists.")
    yield _finding(trace, gradients, claims, lost_ns)


def _cost(trace: Trace, parts: list[Ints]) -> CallCost:
    rows = np.unique(np.concatenate(parts))
    times = frame_times.times(trace.host_calls, rows)
    return call_cost(trace, times, launched_work(trace, rows).events)


def _lost_ns(cost: CallCost) -> int:
    return cost.idle_ns + cost.work_ns


def _finding(
    trace: Trace, gradients: list[EmbeddingGradient], claims: tuple[Claim, ...], lost_ns: int
) -> Finding:
    tables = [f"{one.table[0]:,} × {one.table[1]:,}" for one in gradients]
    backward = np.concatenate([one.backward for one in gradients])
    updates = [rows for one in gradients for rows in (one.updates, one.list_updates)]
    rows = np.unique(np.concatenate((backward, *updates)))
    index_count = max(one.index_count for one in gradients)
    is_one = len(gradients) == 1
    return Finding(
        message=f"{'The gradient of an embedding table' if is_one else 'Gradients of tables'} of "
        f"{phrases.joined(tables)} {'is' if is_one else 'are'} dense, and a batch reads "
        f"{count(index_count, 'row')} at most: making {'it' if is_one else 'them'} and updating "
        "whole tables takes "
        f"{phrases.time_and_fraction(trace, lost_ns)}.",
        evidence=(
            facts.count("Rows of the tables", sum(one.table[0] for one in gradients)),
            facts.count("Indices of a lookup, at most", index_count),
            facts.count(
                f"Dense gradients {phrases.per_step(trace)}",
                window(trace).per_step(len(backward)),
                Link(view="operators", search="embedding"),
            ),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Operators on the tables"),),
        locations=call_costs.lines(trace, backward),
        claims=claims,
    )


METHOD = (
    "The gradient and the updates of all rows; of a sparse gradient only the batch's rows are "
    "made and updated, which takes a fifth of it at most."
)
RULE = Rule(
    id="dense-embedding-gradient",
    title="The gradient of an embedding table is dense",
    passed="No embedding table gets a dense gradient of mostly zeros",
    category="optimizer",
    why="A batch reads some hundred rows of a table of many thousands. Its dense gradient has "
    "zeros for all others: they are written in each backward pass, and the optimizer reads and "
    "writes the whole table for them.",
    detects="`aten::embedding_dense_backward` with a gradient of `least_rows_per_index` rows or "
    "more for each index of the lookup, from `least_share` of the window on. The operators that "
    "the optimizer and the accumulation of gradients call on tensors of the table's shape belong "
    "to it, and of operators on lists the table's part.",
    silent=(
        "A table that is also the weight of a linear layer, as the output of a language model, "
        "gets a dense gradient from there.",
        "A table whose gradient is clipped: clip_grad_norm_ takes no sparse gradients.",
        "A table whose rows a batch mostly reads.",
        "Tables of a gradient that `sparse=True` made.",
    ),
    saving="Four fifths of that time at least: the rows of the batch are still added up and "
    "updated.",
    fix=Fix(
        "Make the gradient sparse, and update the table by an optimizer for sparse gradients.",
        "table = torch.nn.Embedding(rows, width, sparse=True)\n"
        "sparse = torch.optim.SparseAdam(table.parameters(), lr=lr)    # or SGD without momentum\n"
        "dense = torch.optim.AdamW(others, lr=lr, fused=True)    # the other parameters",
        verify="In the next trace aten::embedding_dense_backward is gone, and the optimizer is "
        "shorter.",
        caveats=(
            "SparseAdam moves only the rows of the batch, Adam also those with momentum; SGD "
            "without momentum and weight decay computes the same.",
            "Adam, AdamW, weight decay and clipping need dense gradients.",
        ),
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="optimizer",
    links=(
        "generated/torch.nn.Embedding.html",
        "generated/torch.optim.SparseAdam.html",
    ),
    origin="ours: embedding tables of recommender systems",
    culprit="the dense gradient of an embedding table",
    since="0.1.0",
)
