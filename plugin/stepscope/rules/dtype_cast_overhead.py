"""Kernels only convert numbers from one floating-point type to another."""

import pandas as pd

from stepscope.analyses.core.window import window
from stepscope.analyses.operators.product_kernels import is_product
from stepscope.analyses.operators.type_casts import UNKNOWN, TypeCasts, type_casts
from stepscope.base.calibration import NO_CASTS
from stepscope.base.findings import EvidenceTable, Link
from stepscope.base.formatting import count, share
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence, recorded_facts
from stepscope.rules.shared.kernel_time import Work

BY_THE_PROGRAM = "the program itself"
VERIFY = "In Operators, aten::_to_copy takes less device time."


class Options(Thresholds):
    """Thresholds from which conversions are worth reporting."""

    least_share: float = option(
        0.05,
        "Fraction of all kernels' time in kernels that only convert.",
        origin="ours: a model whose norms work in float32 has 4.1 and 5.2 %, others under 0.1 %",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report kernels of conversions between floating-point types."""
    casts = type_casts(trace)
    total_ns = int(casts.duration_ns.sum())
    if not total_ns or total_ns < options.least_share * casts.kernel_ns:
        return
    table = _by_pair(trace, casts)
    work = Work(rows=casts.rows, time_ns=total_ns, whole_ns=casts.kernel_ns)
    link = Link(view="operators", search="aten::_to_copy")
    finding = Finding(
        confidence="medium" if (casts.pairs == UNKNOWN).any() else "high",
        message=_message(trace, work, table),
        evidence=(
            facts.fraction("Kernels that only convert", work.share, link),
            facts.count("Conversions in total", len(casts.rows), link),
            *product_evidence.limit(trace),
        ),
        tables=(_conversions(trace, casts, table), product_evidence.kernels(trace, work)),
        fix=_fix(trace, str(table["caller"].iloc[0]), str(table["pair"].iloc[0])),
    )
    yield kernel_time.result_of(
        trace,
        work,
        NO_CASTS,
        "All of it where the types agree; some conversions remain at borders.",
        finding,
    )


def _by_pair(trace: Trace, casts: TypeCasts) -> pd.DataFrame:
    """Return one row per pair of types and calling operator, the costliest first."""
    names = trace.host_calls["name"].astype(object).reindex(casts.callers)
    callers = names.fillna(BY_THE_PROGRAM).to_numpy()
    frame = pd.DataFrame({"pair": casts.pairs, "caller": callers, "ns": casts.duration_ns})
    table = frame.groupby(["pair", "caller"], sort=False)["ns"].agg(["size", "sum"])
    return table.reset_index().sort_values("sum", ascending=False, kind="stable")


def _message(trace: Trace, work: Work, table: pd.DataFrame) -> str:
    number = window(trace).per_step(len(work.rows)) or len(work.rows)
    pairs = table["pair"][table["pair"] != UNKNOWN].drop_duplicates().head(2).tolist()
    listed = f", {' and '.join(pairs)}" if pairs else ""
    return (
        f"{count(number, 'kernel')} {phrases.per_step(trace)} only "
        f"{'converts' if number == 1 else 'convert'} from one floating-point type to another: "
        f"{phrases.time(trace, work.time_ns)} ({share(work.share)} of the kernels' time){listed}, "
        f"requested by {table['caller'].iloc[0]}."
    )


def _conversions(trace: Trace, casts: TypeCasts, table: pd.DataFrame) -> EvidenceTable:
    worst = table.head(product_evidence.MOST_ROWS)
    return facts.table(
        "Conversions",
        {
            "Types": "text",
            "Requested by": "text",
            "Kernels": "count",
            f"Time {phrases.per_step(trace)}": "ns",
            "Of all kernels": "share",
        },
        (
            (*cells, window(trace).per_step(total_ns), total_ns / casts.kernel_ns)
            for *cells, total_ns in worst.itertuples(index=False, name=None)
        ),
        Link(view="operators", search="aten::_to_copy"),
    )


def _fix(trace: Trace, caller: str, pair: str) -> Fix:
    if is_product(caller):
        target = "dtype" if pair == UNKNOWN else f"torch.{pair.rpartition('→ ')[2]}"
        return Fix(
            "Keep the weights in the type in which they are multiplied.",
            f"model = model.to({target})   # instead of converting for every {caller}\n"
            "# in training: float32 weights in the optimizer, or a type that sums up exactly;\n"
            "# under autocast leave cache_enabled=True: a weight is converted once per pass",
            verify=VERIFY,
            caveats=("Weights of 16 bits lose small updates without a copy in float32.",),
        )
    compiled = "model = torch.compile(model)       # conversions become part of their neighbours"
    if recorded_facts.is_compiled(trace):
        compiled = recorded_facts.compiling(trace)
    return Fix(
        "Let operators work in the type of their inputs; fuse the conversions that remain.",
        "y = F.rms_norm(x, shape, weight)   # sums in float32 itself: no x.float() before it\n"
        f"{compiled}",
        verify=VERIFY,
        caveats=("A softmax or a sum written by hand may need float32: convert that alone.",),
    )


RULE = Rule(
    id="dtype-cast-overhead",
    title="Kernels only convert between floating-point types",
    passed="Type conversions take little time",
    category="precision",
    why="A conversion reads and writes a whole tensor and computes nothing. Norms written with "
    "`x.float()`, weights of another type than the products and modules of two types each cost "
    "some in every layer.",
    detects="Kernels of `aten::copy_` below `aten::_to_copy` whose operands have different "
    "floating-point types; where types were not recorded, all kernels below `aten::_to_copy`. It "
    "reports from `least_share` of all kernels' time on.",
    silent=(
        "Copies between host and device are not kernels.",
        "Conversions from and to integers do not count: images and indices need them.",
        "Products of 8-bit floats need the quantisation of their operands.",
    ),
    saving="The kernels' time on the device, at least 30 % of it, since some conversions stay at "
    "the borders; only where the host launches early enough.",
    fix=Fix(
        "Use the same type in neighbouring operators.",
        "model = torch.compile(model)",
        verify=VERIFY,
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority="device work",
    after=("no-mixed-precision",),
    links=("amp.html#autocast-op-reference", "generated/torch.nn.functional.rms_norm.html"),
    origin="xprof: minimise conversions; TraceLens",
    culprit="converting types",
)
