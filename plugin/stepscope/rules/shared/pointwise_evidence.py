"""What is said of chains of pointwise work: each sequence once with its time, and what to do."""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import event_references
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.operators.pointwise_chains import Chains
from stepscope.base.findings import Evidence, EvidenceRow, EvidenceTable, Fix, Link, SourceLine
from stepscope.model.trace import Trace
from stepscope.rules.shared import facts, recorded_facts

NONE = -1
MOST_ROWS = 10
MOST_NAMED = 8
MOST_LINES = 10
ARROW = " → "
UNKNOWN = "?"
"""An operator whose launch was not recorded."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Of splitmix64: multiplied by it, numbers spread over 64 bits."""
WRITTEN_OUT = (
    # operators of a formula that torch has as one function
    (("aten::pow", "aten::mean", "aten::rsqrt"), "F.rms_norm(x, (width,), weight)"),
    (("aten::square", "aten::mean", "aten::rsqrt"), "F.rms_norm(x, (width,), weight)"),
    (("aten::pow", "aten::tanh"), 'F.gelu(x, approximate="tanh")'),
    (("aten::sigmoid", "aten::mul"), "F.silu(x)"),
    (("aten::exp", "aten::sum", "aten::div"), "F.softmax(x, dim=-1)"),
)


def chain_table(
    trace: Trace, chains: Chains, call: NDArray[np.int64], took_ns: NDArray[np.int64]
) -> EvidenceTable:
    """Return the sequences that take longest.

    `call` (rows of `host_calls`, or -1) and `took_ns` are parallel to the chains' rows.
    """
    inside = chains.chain != NONE
    order = np.argsort(chains.chain[inside], kind="stable")
    chain, call = chains.chain[inside][order], call[inside][order]
    names = trace.host_calls["name"].cat
    code = np.append(names.codes.to_numpy(), NONE)[call].astype(np.int64)
    first = np.searchsorted(chain, np.arange(chains.count))
    length = np.bincount(chain, minlength=chains.count)
    _, one, which = np.unique(
        _contents(chain, code, np.arange(len(chain)) - first[chain], chains.count),
        return_index=True,
        return_inverse=True,
    )
    time_ns = sums(took_ns[inside][order], which[chain], len(one))
    count = np.bincount(which, minlength=len(one))
    texts = [*(str(name).removeprefix("aten::") for name in names.categories), UNKNOWN]
    rows = []
    for place in np.argsort(-time_ns, kind="stable")[:MOST_ROWS].tolist():
        start, size = int(first[one[place]]), int(length[one[place]])
        named = [texts[number] for number in code[start : start + min(size, MOST_NAMED)].tolist()]
        text = ARROW.join(named) + (f"{ARROW}…" if size > MOST_NAMED else "")
        cells = (text, size, int(count[place]), int(time_ns[place]))
        link = None if UNKNOWN in named else Link(view="operators", search=named[0])
        rows.append(EvidenceRow(cells=cells, link=link))
    return facts.table(
        "Chains", {"Operators": "text", "Length": "count", "Chains": "count", "Time": "ns"}, rows
    )


def _contents(
    chain: NDArray[np.int64], code: NDArray[np.int64], place: NDArray[np.int64], count: int
) -> NDArray[np.uint64]:
    """Return a number for each chain that is equal where the same names follow each other."""
    mixed = (place + 1).astype(np.uint64) * FACTOR ^ (code + 2).astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * FACTOR
    found = np.zeros(count, dtype=np.uint64)
    np.add.at(found, chain, mixed ^ (mixed >> np.uint64(29)))
    return found


def _functions(trace: Trace, call: NDArray[np.int64]) -> tuple[str, ...]:
    """Return torch's functions for formulas whose operators are all among these calls."""
    codes = np.unique(trace.host_calls["name"].cat.codes.to_numpy()[call[call != NONE]])
    names = set(trace.host_calls["name"].cat.categories[codes])
    found = (text for parts, text in WRITTEN_OUT if names.issuperset(parts))
    return tuple(dict.fromkeys(found))


def counts(chains: Chains) -> tuple[Evidence, ...]:
    """Return how many chains there are, and how much stands alone."""
    return (
        facts.count("Chains", chains.count),
        facts.count("In chains", len(chains.chained)),
        facts.count("Alone", len(chains.rows) - len(chains.chained)),
    )


def lines_of_calls(trace: Trace, rows: NDArray[np.int64]) -> tuple[SourceLine, ...]:
    """Return the user's lines that called the longest of some operators."""
    took = trace.host_calls["duration_ns"].to_numpy()[rows]
    longest = rows[np.argsort(-took, kind="stable")[:MOST_LINES]]
    texts = (event_references.line_of_host_call(trace, row) for row in longest.tolist())
    return event_references.source_lines(filter(None, texts))


def fix(trace: Trace, call: NDArray[np.int64], *, is_compiled: bool) -> Fix:
    """Return the fix for chains of these calls; where a part of the program is compiled or not."""
    code = "model = torch.compile(model)"
    if is_compiled or recorded_facts.is_compiled(trace):
        code = "step = torch.compile(step)  # what is around the part that is compiled already"
    ready = [f"\n{text}  # instead of the formula written out" for text in _functions(trace, call)]
    return fix_by("".join((code, *ready)))


def fix_by(code: str) -> Fix:
    """Return the fix that some code is."""
    return Fix(
        "Let the compiler write each chain as one kernel, or call the fused function.",
        code,
        verify="After warm-up, kernels named triton_… (on a CPU CompiledFxGraph) do the work.",
        caveats=(
            "The first steps compile, and every new shape may compile again.",
            "Fused arithmetic rounds less often: results differ in the last digits.",
        ),
    )
