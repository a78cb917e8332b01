"""Pointwise operators run one by one, each through memory."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.costs import owners_of_device_events
from stepscope.analyses.operators.pointwise_chains import Chains, kernel_chains, operator_chains
from stepscope.base.calibration import POINTWISE_CHAINS, POINTWISE_CHAINS_ON_CPU
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, EvidenceTable, Link
from stepscope.base.formatting import duration, share
from stepscope.dialects import TRITON_NAME
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, kernel_time, phrases, recorded_facts
from stepscope.rules.shared.kernel_time import Work

NONE = -1
MOST_ROWS = 10
MOST_NAMED = 8
MOST_LINES = 10
ARROW = " → "
UNKNOWN = "?"
"""An operator whose launch was not recorded."""
FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""The multiplier of splitmix64, which spreads numbers over 64 bits."""
FUSED_FUNCTIONS = (
    # operators of a formula, and the one function that torch has for it
    (("aten::pow", "aten::mean", "aten::rsqrt"), "F.rms_norm(x, (width,), weight)"),
    (("aten::square", "aten::mean", "aten::rsqrt"), "F.rms_norm(x, (width,), weight)"),
    (("aten::pow", "aten::tanh"), 'F.gelu(x, approximate="tanh")'),
    (("aten::sigmoid", "aten::mul"), "F.silu(x)"),
    (("aten::exp", "aten::sum", "aten::div"), "F.softmax(x, dim=-1)"),
)


class Options(Thresholds):
    """Thresholds of chains of pointwise work."""

    least_share: float = option(
        0.20,
        "Fraction of the kernels' time (on a CPU, of the window) in all but the longest of each "
        "chain, from which it reports.",
        origin="ours: in real traces up to 11 %, but 27 to 36 in transformers written out",
    )
    least_time_ns: int = option(
        1_000_000,
        "Time of all kernels (on a CPU, of the window) from which a share says something.",
        origin="ours: less is a test's, or what ran around a capture",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report chains of pointwise operators and reductions that one kernel could do."""
    try:
        rows = kernel_time.rows_in_window(trace)
    except NotApplicableError:
        yield from _on_host(trace, options)
        return
    chains = kernel_chains(trace)
    fusable = kernel_time.work_of(trace, rows, _mask(trace, chains.fusable))
    if fusable.share < options.least_share or fusable.whole_ns < options.least_time_ns:
        return
    call = owners_of_device_events(trace)[chains.rows]
    took = trace.device_events["duration_ns"].to_numpy()[chains.rows]
    length = len(chains.chained) / chains.count
    finding = Finding(
        message=f"Pointwise and reduction kernels follow each other in chains of {length:.1f} on "
        "average; all but the longest of each chain take "
        f"{kernel_time.time_and_fraction(trace, fusable)}, which one kernel a chain could save.",
        evidence=(
            facts.fraction("Of the kernels' time", fusable.share, "kernels"),
            *_counts(chains),
        ),
        tables=(
            _chain_table(trace, chains, call, took),
            kernel_time.by_operator(trace, fusable, "Kernels"),
        ),
        fix=_fix(trace, call, is_compiled=_is_compiled(trace)),
    )
    yield kernel_time.result_of(
        trace,
        fusable,
        POINTWISE_CHAINS,
        "All but the longest of each chain: 30 to 75 % of that.",
        finding,
    )


def _on_host(trace: Trace, options: Options) -> Iterator[Finding]:
    span, calls, chains = window(trace), trace.host_calls, operator_chains(trace)
    whole = times(calls, chains.fusable)
    ran = intervals.clip(whole, span.start_ns, span.end_ns)
    time_ns = intervals.duration_ns(ran)
    is_long = span.duration_ns >= options.least_time_ns
    if not is_long or time_ns < options.least_share * span.duration_ns:
        return
    fusable = Work(rows=chains.fusable, time_ns=time_ns, whole_ns=span.duration_ns)
    lasting = duration(span.per_step(time_ns))
    length = len(chains.chained) / chains.count
    yield Finding(
        message=f"Pointwise operators and reductions follow each other in chains of {length:.1f} "
        f"on average; all but the longest of each chain take {lasting} {phrases.per_step(trace)} "
        f"({share(fusable.share)}), which one loop a chain could save.",
        evidence=(facts.fraction("Of the window", fusable.share, "operators"), *_counts(chains)),
        tables=(
            _chain_table(trace, chains, chains.rows, calls["duration_ns"].to_numpy()[chains.rows]),
        ),
        locations=call_costs.lines(trace, chains.chained, MOST_LINES),
        claims=(
            Claim(
                ran,
                POINTWISE_CHAINS_ON_CPU,
                "All but the longest of each chain, 75 % of it at least.",
            ),
        ),
        fix=_fix(trace, chains.rows, is_compiled=False),
    )


def _mask(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    mask = np.zeros(len(trace.device_events), dtype=bool)
    mask[rows] = True
    return mask


def _is_compiled(trace: Trace) -> bool:
    names = trace.device_events["name"].cat.categories
    return any(TRITON_NAME.match(str(name)) for name in names)


def _chain_table(
    trace: Trace, chains: Chains, call: NDArray[np.int64], duration_ns: NDArray[np.int64]
) -> EvidenceTable:
    """Return the sequences of operators that take longest, each once.

    `call` (rows of `host_calls`, or -1) and `duration_ns` are parallel to the chains' rows.
    """
    inside = chains.chain != NONE
    order = np.argsort(chains.chain[inside], kind="stable")
    chain, call = chains.chain[inside][order], call[inside][order]
    names = trace.host_calls["name"].cat
    code = np.append(names.codes.to_numpy(), NONE)[call].astype(np.int64)
    first = np.searchsorted(chain, np.arange(chains.count))
    length = np.bincount(chain, minlength=chains.count)
    _, example, group = np.unique(
        _contents(chain, code, np.arange(len(chain)) - first[chain], chains.count),
        return_index=True,
        return_inverse=True,
    )
    time_ns = sums(duration_ns[inside][order], group[chain], len(example))
    count = np.bincount(group, minlength=len(example))
    texts = [*(str(name).removeprefix("aten::") for name in names.categories), UNKNOWN]
    rows = []
    for index in np.argsort(-time_ns, kind="stable")[:MOST_ROWS].tolist():
        start, size = int(first[example[index]]), int(length[example[index]])
        names_shown = [
            texts[number] for number in code[start : start + min(size, MOST_NAMED)].tolist()
        ]
        text = ARROW.join(names_shown) + (f"{ARROW}…" if size > MOST_NAMED else "")
        is_unknown = UNKNOWN in names_shown
        link = None if is_unknown else Link(view="operators", search=names_shown[0])
        rows.append(facts.row(text, size, count[index], time_ns[index], link=link))
    return facts.table(
        "Chains",
        {"Operators": "text", "Length": "count", "Chains": "count", "Time in total": "ns"},
        rows,
    )


def _contents(
    chain: NDArray[np.int64], code: NDArray[np.int64], index: NDArray[np.int64], count: int
) -> NDArray[np.uint64]:
    """Return a number per chain that is equal for the same sequence of names."""
    mixed = (index + 1).astype(np.uint64) * FACTOR ^ (code + 2).astype(np.uint64)
    mixed = (mixed ^ (mixed >> np.uint64(31))) * FACTOR
    contents = np.zeros(count, dtype=np.uint64)
    np.add.at(contents, chain, mixed ^ (mixed >> np.uint64(29)))
    return contents


def _counts(chains: Chains) -> tuple[Evidence, ...]:
    return (
        facts.count("Chains in total", chains.count),
        facts.count("In chains in total", len(chains.chained)),
        facts.count("Outside chains in total", len(chains.rows) - len(chains.chained)),
    )


def _fix(trace: Trace, call: NDArray[np.int64], *, is_compiled: bool) -> Fix:
    """Return the fix for chains of these calls, with torch's functions for written-out formulas."""
    code = "model = torch.compile(model)"
    if is_compiled or recorded_facts.is_compiled(trace):
        code = "step = torch.compile(step)  # the code around the part that is compiled already"
    codes = np.unique(trace.host_calls["name"].cat.codes.to_numpy()[call[call != NONE]])
    names = set(trace.host_calls["name"].cat.categories[codes])
    functions = (text for parts, text in FUSED_FUNCTIONS if names.issuperset(parts))
    lines = [f"\n{text}  # instead of the formula written out" for text in dict.fromkeys(functions)]
    return replace(RULE.fix, code="".join((code, *lines)))


RULE = Rule(
    id="unfused-elementwise",
    title="Pointwise operators run one by one, each through memory",
    passed="Pointwise operators are fused, or take little time",
    category="kernel launch",
    why="A pointwise operator reads its inputs from memory and writes its result there, for a "
    "little arithmetic. Of several in a row, each reads again what the one before has just "
    "written; one fused kernel reads once and writes once.",
    detects="Torch's own pointwise, reduction and layer-norm kernels that follow each other on a "
    "stream, two or more with nothing else in between. All but the longest of each chain count, as "
    "a share of all kernels' time; on a CPU such operators on a thread, as a share of the window. "
    "It reports from `least_share` on, where there is `least_time_ns` of work.",
    silent=(
        "What stands alone between products or convolutions is no chain.",
        "Where one of a chain takes nearly all of its time, there is nothing to fuse.",
        "What an optimizer does has fused versions of its own, and rules of its own.",
        "Where the host is the limit it is ruled out: then the launches count.",
    ),
    saving="The time of all but the longest of each chain where the device is the limit: 30 % of "
    "it at least, 75 at most; on a CPU 75 % at least, as the traces in sample_logs/compiled "
    "show.",
    fix=Fix(
        "Compile each chain into one kernel, or call the fused function.",
        "model = torch.compile(model)",
        verify="After warm-up, kernels named triton_… (on a CPU CompiledFxGraph) do the work.",
        caveats=(
            "The first steps compile, and every new shape may compile again.",
            "Fused arithmetic rounds less often: results differ in the last digits.",
        ),
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority="device work",
    after=("cudnn-generic-engine", "broadcast-product"),
    links=(
        "generated/torch.compile.html",
        "/tutorials/recipes/recipes/tuning_guide.html#fuse-operations",
    ),
    origin="PyTorch tuning guide, fuse operations; TraceLens kernel fusion",
    culprit="running pointwise operators one by one",
)
