"""A matrix product is computed by broadcasting, which writes each single product to memory."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from msgspec.structs import replace as replace_fields

from stepscope.analyses.core import ancestry, event_references, frame_times, requirements
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.broadcast_products import (
    COSINE,
    DISTANCE,
    DOT,
    BroadcastProducts,
    broadcast_products,
)
from stepscope.analyses.operators.costs import owners_of_device_events
from stepscope.analyses.operators.noted_calls import noted_rows
from stepscope.analyses.operators.python_operators import backward_calls
from stepscope.analyses.settings.tensor_values import tensor_values
from stepscope.base.calibration import (
    BROADCAST_PRODUCTS,
    BROADCAST_PRODUCTS_ON_CPU,
    LARGE_BROADCAST_PRODUCTS_ON_CPU,
)
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, EvidenceTable, SourceLine
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, kernel_time, phrases

LARGE = 4_000_000
"""Elements of a tensor that leaves the caches of a CPU."""
MOST_ROWS = 10
ABSOLUTE = "aten::abs"
PLURALS = {COSINE: "cosine similarities", DOT: "dot products", DISTANCE: "distances"}
CODES = {
    COSINE: "# not F.cosine_similarity(a[:, None], b[None], dim=-1)\n"
    "scores = F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T",
    DOT: "# not (a[:, None] * b[None]).sum(-1)\n"
    "scores = a @ b.T\n"
    'scores = torch.einsum("bhid,ijd->bhij", q, k)  # operands of more dimensions',
    DISTANCE: "# not (a[:, None] - b[None]).norm(dim=-1)\n"
    "distances = torch.cdist(a, b)\n"
    "squares = a.square().sum(-1)[:, None] + b.square().sum(-1) - 2 * a @ b.T",
    ABSOLUTE: "# not (a[:, None] - b[None]).abs().sum(-1)\ndistances = torch.cdist(a, b, p=1)",
}
PRECISION = (
    "Distances by products (torch.cdist of more than 25 rows, expanded squares) are less precise "
    "for points that are close to each other: clamp squares at 0 before a square root."
)


class Options(Thresholds):
    """Thresholds of products by broadcasting."""

    least_extension: int = option(
        4,
        "Elements of the result per element of the larger operand: rows of the smaller one.",
        origin="ours: of fewer rows the tensor is hardly larger than the operands; not measured",
    )
    least_width: int = option(
        8,
        "Elements that the sum adds up.",
        origin="ours: the least that was measured; positions have 2 or 3",
    )
    least_elements: int = option(
        100_000,
        "Elements of the tensor that is written.",
        origin="ours: with 2 k elements calls take as long as their work, with 164 k 43 % and more "
        "of the time is saved",
    )
    least_share: float = option(
        0.02,
        "Fraction of the kernels' time (on a CPU, of the window) in such products and their "
        "backward passes.",
        origin="ours: below, nothing is worth a change",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report products of all pairs that are computed by broadcasting and a sum."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    requirements.shapes(trace)
    products = _large_products(trace, options)
    if not len(products.first):
        return
    rows = _calls(trace, products.rows)
    try:
        in_window = kernel_time.rows_in_window(trace)
    except NotApplicableError:
        yield from _on_host(trace, options, products, rows)
        return
    work = kernel_time.work_of(trace, in_window, _launched_by(trace, rows))
    if work.share < options.least_share:
        return
    finding = Finding(
        message=f"{_message(trace, products)} take {kernel_time.time_and_fraction(trace, work)}.",
        evidence=(
            facts.fraction("Of the kernels' time", work.share, "kernels"),
            *_counts(products),
        ),
        tables=(
            _table(trace, products),
            kernel_time.by_operator(trace, work, "Kernels of these operators"),
        ),
        fix=_fix(trace, products),
    )
    result = kernel_time.result_of(
        trace,
        work,
        BROADCAST_PRODUCTS,
        "The kernels of these operators and of their backward passes; six tenths at least.",
        finding,
    )
    if isinstance(result, Finding) and not result.locations:
        result = replace(result, locations=_noted_lines(trace, products.rows))
    yield result


def _on_host(
    trace: Trace, options: Options, products: BroadcastProducts, rows: Ints
) -> Iterator[Finding]:
    span, calls = window(trace), trace.host_calls
    times = intervals.clip(frame_times.times(calls, rows), span.start_ns, span.end_ns)
    time_ns = intervals.duration_ns(times)
    fraction = phrases.fraction_of_window(trace, time_ns)
    if fraction < options.least_share:
        return
    yield Finding(
        message=f"{_message(trace, products)} take {phrases.time_and_fraction(trace, time_ns)}.",
        evidence=(facts.fraction("Of the window", fraction, "operators"), *_counts(products)),
        tables=(
            _table(trace, products),
            call_costs.by_name(calls, rows, "Operators and backward passes"),
        ),
        events=call_costs.longest(trace, rows),
        locations=call_costs.lines(trace, products.rows) or _noted_lines(trace, products.rows),
        claims=tuple(_claims(trace, products)),
        fix=_fix(trace, products),
    )


def _claims(trace: Trace, products: BroadcastProducts) -> Iterator[Claim]:
    """Claim tensors that leave the caches and others apart."""
    is_large = products.elements >= LARGE
    for is_selected, factor, text in (
        (is_large, LARGE_BROADCAST_PRODUCTS_ON_CPU, f"{LARGE:,} elements and more: eight tenths"),
        (~is_large, BROADCAST_PRODUCTS_ON_CPU, f"fewer than {LARGE:,} elements: four tenths"),
    ):
        if is_selected.any():
            rows = _calls(trace, products.selected(is_selected).rows)
            yield Claim(
                frame_times.times(trace.host_calls, rows),
                factor,
                f"The time of these operators and of their backward passes, of {text} at least.",
            )


def _large_products(trace: Trace, options: Options) -> BroadcastProducts:
    """Return the products of the window that the thresholds select."""
    products, span = broadcast_products(trace), window(trace)
    start_ns = trace.host_calls["start_ns"].to_numpy()[products.first]
    is_large = products.extension >= options.least_extension
    is_large &= products.width >= options.least_width
    is_large &= products.elements >= options.least_elements
    return products.selected(is_large & (start_ns >= span.start_ns) & (start_ns < span.end_ns))


def _calls(trace: Trace, forward: Ints) -> Ints:
    """Return operators and their backward nodes, as rows of `host_calls`."""
    return np.concatenate((forward, backward_calls(trace, forward)))


def _launched_by(trace: Trace, rows: Ints) -> Mask:
    """Return a mask of `device_events`: launched by some host calls, or by what these call."""
    return np.append(_are_inside(trace, rows), False)[owners_of_device_events(trace)]


def _are_inside(trace: Trace, rows: Ints) -> Mask:
    """Return a mask of `host_calls`: some of them, and what these call."""
    is_selected = np.zeros(len(trace.host_calls), dtype=bool)
    is_selected[rows] = True
    return np.asarray(ancestry.nearest(trace.host_calls["parent"].to_numpy(), is_selected) != NONE)


def _noted_lines(trace: Trace, rows: Ints) -> tuple[SourceLine, ...]:
    """Return the lines of some operators, as the recorder noted those that extend operands."""
    values = tensor_values(trace)
    if values is None:
        return ()
    are_inside = _are_inside(trace, rows)
    return event_references.source_lines(
        noted.line for noted in values.extended if are_inside[noted_rows(trace, noted.calls)].any()
    )


def _message(trace: Trace, products: BroadcastProducts) -> str:
    largest = int(products.elements.argmax())
    number = window(trace).per_step(len(products.first)) or len(products.first)
    kind = products.kinds[largest]
    noun = count(number, f"matrix of {PLURALS[kind]}", f"matrices of {PLURALS[kind]}")
    return (
        f"{noun} {phrases.per_step(trace)} {'is' if number == 1 else 'are'} computed by "
        f"broadcasting {products.shapes[largest]}, which writes "
        f"{products.elements[largest]:,} elements, and a sum of {products.width[largest]:,} each; "
        "with their backward passes, they"
    )


def _counts(products: BroadcastProducts) -> tuple[Evidence, ...]:
    return (
        facts.count("Products by broadcasting in total", len(products.first)),
        facts.count("Elements of the largest tensor", int(products.elements.max())),
        facts.count("Its elements per element of the larger operand", _extension(products)),
    )


def _extension(products: BroadcastProducts) -> int:
    return int(products.extension[products.elements.argmax()])


def _table(trace: Trace, products: BroadcastProducts) -> EvidenceTable:
    """Return a row per kind of result and shapes, the largest first."""
    duration_ns = trace.host_calls["duration_ns"].to_numpy()[products.rows]
    forward_ns = sums(duration_ns, products.product, len(products.first)).tolist()
    number: Counter[tuple[int, int, str, str]] = Counter()
    total_ns: Counter[tuple[int, int, str, str]] = Counter()
    columns = products.elements.tolist(), products.width.tolist(), products.kinds, products.shapes
    for key, time_ns in zip(zip(*columns, strict=True), forward_ns, strict=True):
        number[key] += 1
        total_ns[key] += time_ns
    return facts.table(
        "Products by broadcasting",
        {
            "Result": "text",
            "Operands": "code",
            "Elements written": "count",
            "Of a sum": "count",
            "Calls": "count",
            "Host time of forward calls in total": "ns",
        },
        (
            (key[2], key[3], key[0], key[1], number[key], total_ns[key])
            for key in sorted(number, reverse=True)[:MOST_ROWS]
        ),
        "operators",
    )


def _fix(trace: Trace, products: BroadcastProducts) -> Fix:
    """Return the fix with a line of code per kind of result."""
    names = trace.host_calls["name"].cat
    codes = np.unique(names.codes.to_numpy()[products.rows])
    kinds = [kind for kind in CODES if kind in products.kinds]
    if DISTANCE in kinds and ABSOLUTE in names.categories[codes]:
        kinds.append(ABSOLUTE)
    caveats = (PRECISION,) if DISTANCE in kinds else ()
    code = "\n".join(CODES[kind] for kind in kinds)
    return replace_fields(RULE.fix, code=code, caveats=caveats)


RULE = Rule(
    id="broadcast-product",
    title="A matrix product is computed by broadcasting",
    passed="No large matrix product is computed by broadcasting",
    category="operators",
    why="Scores or distances of N with M rows of D elements are a matrix product. Broadcasting "
    "writes N × M × D elements to memory, each operator after it reads and writes them again, and "
    "so does the backward pass; a product reads N × D and M × D, and writes N × M.",
    detects="`aten::mul`, `aten::sub` or `aten::mse_loss` of two operands that extend each other, "
    "by their recorded shapes and strides, to a tensor with `least_elements` and "
    "`least_extension` times the elements of the larger one. Soon after on the thread follows a "
    "sum, a mean or a norm over dimensions that both have, of `least_width` elements; only "
    "scaling and conversions (of differences also powers and absolute values) lie between. "
    "`aten::cosine_similarity` of such operands counts as well. It reports where they and their "
    "backward passes take `least_share` of the kernels' time; on a CPU, of the window.",
    silent=(
        "Sums of other functions of pairs, such as `tanh(a + b)` or `exp(a - b)`.",
        "Sums over a dimension that only one operand has, and means of all elements.",
        "Operands that were repeated in memory before (`repeat`, `repeat_interleave`).",
        "Differences of positions in 2 or 3 dimensions.",
    ),
    saving="The time of these operators and of their backward passes. On a CPU eight tenths of it "
    "at least where the tensor leaves the caches, else four tenths; on a device six tenths.",
    fix=Fix(
        "Compute all pairs by a matrix product, or by torch.cdist.",
        "\n".join(CODES.values()),
        verify="Operators list aten::mm, aten::bmm or aten::_cdist_forward instead of these.",
        caveats=(PRECISION,),
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority="device work",
    links=(
        "generated/torch.cdist.html",
        "generated/torch.einsum.html",
        "generated/torch.nn.functional.normalize.html",
    ),
    origin="ours: contrastive losses, prototypical networks and vector quantization",
    culprit="computing matrix products by broadcasting",
    since="0.1.0",
)
