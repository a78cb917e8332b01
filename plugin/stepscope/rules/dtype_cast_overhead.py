"""Kernels only convert numbers from one floating-point type to another."""

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from stepscope.analyses.core.window import window
from stepscope.analyses.operators.product_kernels import is_product
from stepscope.analyses.operators.type_casts import UNKNOWN, TypeCasts, type_casts
from stepscope.base.calibration import NO_CASTS
from stepscope.base.findings import Evidence, EvidenceTable, Fix, Link
from stepscope.base.formatting import count, duration, share
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuleResult, option
from stepscope.rules.shared import facts, kernel_time, phrases, product_evidence, recorded_facts
from stepscope.rules.shared.kernel_time import Work

BY_THE_PROGRAM = "the program itself"


@dataclass(frozen=True, kw_only=True)
class Options:
    """When it is worth a word."""

    least_share: float = option(
        0.05,
        "Kernels that only convert, of all kernels' time.",
        origin="ours: a model whose norms work in float32 has 4.1 and 5.2 %, others under 0.1 %",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report kernels of conversions between floating-point types."""
    casts = type_casts(trace)
    total_ns = int(casts.duration_ns.sum())
    if not total_ns or total_ns < options.least_share * casts.kernel_ns:
        return
    table = _by_pair(trace, casts)
    work = Work(rows=casts.rows, time_ns=total_ns, whole_ns=casts.kernel_ns)
    finding = Finding(
        confidence="medium" if (casts.pairs == UNKNOWN).any() else "high",
        message=_message(trace, casts, table),
        evidence=tuple(_evidence(trace, casts)),
        tables=(
            _conversions(trace, casts, table),
            product_evidence.kernels(trace, work),
        ),
        events=kernel_time.longest(trace, work),
        locations=kernel_time.lines(trace, work),
        claims=(
            kernel_time.claim(
                trace,
                work,
                NO_CASTS,
                "All of it where the types agree; some conversions remain at borders.",
            ),
        ),
        fix=_fix(trace, table),
    )
    yield kernel_time.result(trace, finding)


def _by_pair(trace: Trace, casts: TypeCasts) -> pd.DataFrame:
    """Return one row a pair of types and operator that asked, the costliest first."""
    names = trace.host_calls["name"].astype(object).reindex(casts.askers)
    frame = pd.DataFrame(
        {
            "pair": casts.pairs,
            "asker": names.fillna(BY_THE_PROGRAM).to_numpy(),
            "ns": casts.duration_ns,
        }
    )
    table = frame.groupby(["pair", "asker"], sort=False)["ns"].agg(["size", "sum"])
    return table.reset_index().sort_values("sum", ascending=False, kind="stable")


def _message(trace: Trace, casts: TypeCasts, table: pd.DataFrame) -> str:
    within = window(trace)
    number = within.per_step(len(casts.rows)) or len(casts.rows)
    lasting = duration(within.per_step(int(casts.duration_ns.sum())))
    part = share(int(casts.duration_ns.sum()) / casts.kernel_ns)
    known = table["pair"][table["pair"] != UNKNOWN].drop_duplicates().head(2).tolist()
    pairs = f", {' and '.join(known)}" if known else ""
    scope = phrases.per_step(trace)
    return (
        f"{count(number, 'kernel')} {scope} only {'converts' if number == 1 else 'convert'} "
        f"from one floating-point type to another: {lasting} {scope} ({part} of the kernels' time)"
        f"{pairs}, asked for by {table['asker'].iloc[0]}."
    )


def _evidence(trace: Trace, casts: TypeCasts) -> Iterator[Evidence]:
    link = Link(view="operators", search="aten::_to_copy")
    value = int(casts.duration_ns.sum()) / casts.kernel_ns
    yield facts.fraction("Kernels that only convert", value, link)
    yield facts.count("Conversions", len(casts.rows), link)
    yield from product_evidence.limit(trace)


def _conversions(trace: Trace, casts: TypeCasts, table: pd.DataFrame) -> EvidenceTable:
    worst = table.head(product_evidence.MOST_ROWS)
    return facts.table(
        "Conversions",
        {
            "Types": "text",
            "Asked for by": "text",
            "Kernels": "count",
            f"Time {phrases.per_step(trace)}": "ns",
            "Of all kernels": "share",
        },
        (
            (pair, asker, number, window(trace).per_step(total_ns), total_ns / casts.kernel_ns)
            for pair, asker, number, total_ns in zip(
                *(worst[column].tolist() for column in worst), strict=True
            )
        ),
        link=Link(view="operators", search="aten::_to_copy"),
    )


def _fix(trace: Trace, table: pd.DataFrame) -> Fix:
    verify = "In Operators, aten::_to_copy takes less device time."
    asker = str(table["asker"].iloc[0])
    pair = str(table["pair"].iloc[0])
    if is_product(asker):
        target = "dtype" if pair == UNKNOWN else f"torch.{pair.rpartition('→ ')[2]}"
        return Fix(
            "Keep the weights in the type that they are multiplied in.",
            f"model = model.to({target})   # instead of converting for every {asker}\n"
            "# in training: float32 weights in the optimizer, or a type that sums up exactly;\n"
            "# under autocast leave cache_enabled=True: a weight is converted once a pass",
            verify=verify,
            caveats=("Weights of 16 bits lose small updates without a copy in float32.",),
        )
    compiled = "model = torch.compile(model)       # conversions become part of their neighbours"
    if recorded_facts.is_compiled(trace):
        compiled = recorded_facts.compiling(trace)
    return Fix(
        "Let operators work in the type that they are given; fuse what has to convert.",
        "y = F.rms_norm(x, shape, weight)   # sums in float32 itself: no x.float() before it\n"
        f"{compiled}",
        verify=verify,
        caveats=("A softmax or a sum written by hand may need float32: convert that alone.",),
    )


RULE = Rule(
    id="dtype-cast-overhead",
    title="Kernels only convert between floating-point types",
    category="precision",
    why="A conversion reads and writes a whole tensor and computes nothing. Norms written with "
    "`x.float()`, weights in another type than the products and modules of two types each cost "
    "some in every layer.",
    detects="Kernels of `aten::copy_` below `aten::_to_copy` whose operands have different "
    "floating-point types; where types were not recorded, all kernels below `aten::_to_copy`. It "
    "speaks from `least_share` of all kernels' time on.",
    silent=(
        "Copies between host and device are no kernels.",
        "Conversions from and to integers are left out: images and indices need them.",
        "Quantising to 8-bit floats is what their products need.",
    ),
    saving="The kernels' time on the device, at least 30 % of it, since some conversions stay at "
    "the borders; only where the host is early enough.",
    fix=Fix(
        "Let neighbours have the same type.",
        "model = torch.compile(model)",
        verify="In Operators, aten::_to_copy takes less device time.",
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority=370,
    links=(
        "https://docs.pytorch.org/docs/stable/amp.html#autocast-op-reference",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html",
    ),
    origin="xprof: minimise conversions; TraceLens",
    culprit="converting types",
)
