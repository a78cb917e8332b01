"""The device spends its time on reading and writing scattered rows."""

import re

import numpy as np

from stepscope.analyses.core.links import links
from stepscope.base.calibration import GATHERS
from stepscope.model.frames.name_masks import codes_and_names
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time
from stepscope.rules.shared.kernel_time import Work

TABLES = re.compile(r"^fbgemm::\w*lookup\w*$|CppNode<\w*(?:Split|Dense)\w*Lookup")
"""Lookups in tables of embeddings that are fused already, and their backward."""
GATHERING = re.compile(
    r"^aten::(?:gather|scatter\w*|_scatter\w*|index|index_\w+|_index_put_impl_|_unsafe_index\w*"
    r"|take|take_along_dim|put_|masked_select|masked_scatter\w*|embedding\w*|_embedding_bag\w*)$"
    rf"|{TABLES.pattern}"
)
"""Operators that launch such kernels: names of kernels contain `indexed` for products, too."""
VERIFY = "The operators of this table take less of the kernels' time in the next trace."
READ_IN_ORDER = Fix(
    "Gather fewer and longer rows: once, and in their order in memory.",
    "rows = rows.sort().values              # neighbours are read together\n"
    "chosen = table.index_select(0, rows)   # one gather for all uses",
    verify=VERIFY,
    caveats=("Sorting pays where the same rows are read several times, or rows are short.",),
)
WRITES = Fix(
    "Choose rows by an operator whose backward adds, instead of sorting its writes.",
    "chosen = table.index_select(0, rows)    # instead of table[rows]: backward is index_add_\n"
    "values = torch.gather(scores, 1, best)  # instead of scores[arange, best]",
    verify=VERIFY,
    caveats=(
        "index_add_ adds in any order: results may differ in the last digits from run to run.",
    ),
)
DENSE_GRADIENTS = Fix(
    "Make the embedding's gradient as small as the rows that were read.",
    "embedding = nn.Embedding(rows, width, sparse=True)\n"
    "optimizer = torch.optim.SparseAdam(embedding.parameters())",
    verify=VERIFY,
    caveats=("Few optimizers accept sparse gradients: SGD, SparseAdam and Adagrad do.",),
)
FUSED_TABLES = Fix(
    "Store the tables' rows in half precision: a lookup takes as long as its bytes.",
    "SplitTableBatchedEmbeddingBagsCodegen(..., weights_precision=SparseType.FP16)\n"
    "# torchrec: EmbeddingBagConfig(..., data_type=DataType.FP16)",
    verify=VERIFY,
    caveats=(
        "Small updates are rounded away unless rounding is stochastic, which is the default.",
    ),
)


class Options(Thresholds):
    """The part of the kernels' time that gathers may take."""

    least_share: float = option(
        0.15,
        "Fraction of all kernels' time in gathers and scatters from which they are reported.",
        origin="ours: of real traces, recommendation models alone have more",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report gathers, scatters, indexing and embeddings, by the operators that launched them."""
    rows = kernel_time.rows_in_window(trace)
    is_gather = kernel_time.owned_by(trace, GATHERING.search)
    work = kernel_time.work_of(trace, rows, is_gather & kernel_time.are_kernels(trace))
    if work.share < options.least_share:
        return
    most = _most(trace, work)
    finding = Finding(
        severity="info",
        confidence="medium",
        message=f"Gathers and scatters take {kernel_time.time_and_fraction(trace, work)}, most of "
        f"them by {most}.",
        evidence=(
            facts.fraction("Of the kernels' time", work.share, "operators"),
            facts.count("Kernels in total", len(work.rows)),
        ),
        tables=(kernel_time.by_operator(trace, work, "Gathers and scatters"),),
        fix=_fix(most),
        subject=most,
    )
    yield kernel_time.result_of(
        trace,
        work,
        GATHERS,
        "At most half of their time, with half the bytes; perhaps nothing.",
        finding,
    )


def _most(trace: Trace, work: Work) -> str:
    """Return the operator whose kernels take longest."""
    callers = links(trace).owner_of_device_event[work.rows]
    codes, names = codes_and_names(trace.host_calls["name"], callers)
    duration_ns = trace.device_events["duration_ns"].to_numpy()[work.rows]
    return names[int(np.bincount(codes, weights=duration_ns).argmax())]


def _fix(operator: str) -> Fix:
    if TABLES.search(operator):
        return FUSED_TABLES
    if "embedding_dense_backward" in operator:
        return DENSE_GRADIENTS
    return WRITES if "index_put" in operator else READ_IN_ORDER


RULE = Rule(
    id="gather-scatter-heavy",
    title="Gathers and scatters take much of the device's time",
    passed="Gathers and scatters take little time",
    category="operators",
    why="A gather reads scattered rows, a scatter writes them: memory delivers a fraction of its "
    "bandwidth, and rows that are written twice wait for each other or are sorted first.",
    detects="Kernels launched by gathers, scatters, indexing and embeddings, by the operator and "
    "not by the kernel's name, as a fraction of all kernels' time. It reports from `least_share` "
    "on.",
    silent=(
        "Convolutions and products whose kernels are called `indexed` do not count.",
        "Gathers in a fused kernel of compiled code are invisible.",
        "Where the host is the limit it is ruled out.",
    ),
    saving="At most half of their time, where the device is the limit; at least nothing: it "
    "depends on the rows that are read, which are not in a trace.",
    fix=READ_IN_ORDER,
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority="device work",
    after=("copy-heavy",),
    links=("generated/torch.index_select.html", "generated/torch.nn.Embedding.html"),
    life_cycle="preview",
    origin="ours; xprof, gathers and scatters",
    culprit="gathering and scattering",
)
