"""Products multiply by a dense matrix of mostly zeros."""

from collections.abc import Sequence

from stepscope.analyses.core import event_references, frame_times
from stepscope.analyses.operators.noted_calls import noted_rows
from stepscope.analyses.operators.python_operators import backward_times
from stepscope.analyses.settings.tensor_values import SparseOperand
from stepscope.base.calibration import SPARSE_PRODUCTS
from stepscope.base.findings import EvidenceTable
from stepscope.base.formatting import duration, share
from stepscope.model import intervals
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases
from stepscope.rules.shared.noted_values import claims, require_values


class Options(Thresholds):
    """Thresholds of the zeros and of the products' time."""

    least_zeros: float = option(
        0.95,
        "Fraction of zeros in the operand.",
        origin="ours: below, sparse products of PyTorch are hardly faster on CPUs",
    )
    least_share: float = option(
        0.02, "Fraction of the operators' time in such products.", origin="ours: below, not seen"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report products whose operand is mostly zeros."""
    values = require_values(trace)
    sparse = [
        operand
        for operand in values.sparse
        if operand.zero_fraction >= options.least_zeros
        and operand.zero_row_fraction < options.least_zeros
    ]
    total_ns = sum(operand.time_ns for operand in sparse)
    if total_ns < options.least_share * values.operators_ns:
        return
    rows = noted_rows(trace, (operand.calls for operand in sparse))
    times = intervals.merged(frame_times.times(trace.host_calls, rows), backward_times(trace, rows))
    first = sparse[0]
    yield Finding(
        confidence="high",
        message=f"{share(first.zero_fraction)} of the {_sizes(first)} that {first.line} "
        f"multiplies by are zero. Such products took {duration(total_ns)} of an unrecorded step, "
        "without their backward passes.",
        evidence=(
            facts.fraction("Zeros in the largest operand", first.zero_fraction),
            facts.duration("Time in the products per unrecorded step", total_ns),
            facts.fraction("Of the time in all operators", total_ns / values.operators_ns),
            facts.duration(
                "Recorded time in them and their backward passes in total",
                intervals.duration_ns(times),
            ),
        ),
        tables=(_table(sparse),),
        events=call_costs.longest(trace, rows),
        locations=event_references.source_lines(operand.line for operand in sparse),
        claims=claims(
            times,
            SPARSE_PRODUCTS,
            "The time of these products and of their backward passes; half of it at least.",
        ),
        subject=first.line,
    )


def _sizes(operand: SparseOperand) -> str:
    largest = max(operand.calls.shapes, key=_elements, default=())
    return f"{' × '.join(f'{size:,}' for size in largest)} elements"


def _elements(shape: Sequence[int]) -> int:
    number = 1
    for size in shape:
        number *= size
    return number


def _table(sparse: Sequence[SparseOperand]) -> EvidenceTable:
    return facts.table(
        "Products with an operand of mostly zeros",
        {
            "Source line": "code",
            "Operator": "code",
            "Shapes": "text",
            "Zeros": "share",
            "Time per unrecorded step": "ns",
        },
        (
            (
                operand.line,
                operand.calls.name,
                phrases.joined([str(list(shape)) for shape in operand.calls.shapes]),
                operand.zero_fraction,
                operand.time_ns,
            )
            for operand in sparse
        ),
    )


RULE = Rule(
    id="mostly-zero-operand",
    title="Products multiply by a dense matrix of mostly zeros",
    passed="No large product has an operand of mostly zeros",
    category="operators",
    why="A dense product multiplies all elements. An adjacency matrix with few edges, one-hot rows "
    "or counts of few words are an index, a gather or a sparse product that does the work of the "
    "other elements only.",
    detects="Operands of matrix products of which `least_zeros` or more are zero, as stepscope's "
    "recorder counted them in two unrecorded steps (`stepscope record`); reported where the "
    "products take `least_share` of the operators' time or more.",
    silent=(
        "Results of ReLU, dropout and pooling, whose zeros differ in each step.",
        "Operands with fewer than 1,024 elements, and gradients.",
        "Operands of which nearly all rows are zeros: padded-batches reports padding.",
    ),
    saving="The time of these products and of their backward passes; half of it at least.",
    fix=Fix(
        "Use an index, or a sparse matrix.",
        "adjacency = adjacency.to_sparse_csr()    # once; then adjacency @ features\n"
        "sums = torch.zeros_like(x).index_add_(0, target, x[source])    # edges as two indices\n"
        "rows = F.embedding(classes, weight.t())    # in place of one_hot(classes) @ weight.t()",
        verify="Record again: the product is gone, or has another operator.",
        caveats=("Sparse products are slower than dense ones above some 5 % of non-zeros.",),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    links=("sparse.html",),
    origin="ours: graph networks on dense adjacency matrices",
    culprit="multiplying zeros",
)
