"""Attention writes its scores to memory: product, softmax, product."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.idle.call_cost import call_cost
from stepscope.analyses.operators.attention_chains import (
    AttentionChains,
    HostAttention,
    attention_chains,
    host_attention,
)
from stepscope.base.calibration import (
    FUSED_ATTENTION,
    FUSED_ATTENTION_CALLS,
    FUSED_ATTENTION_IN_INFERENCE_ON_CPU,
    FUSED_ATTENTION_ON_CPU,
    FUSED_LARGE_ATTENTION,
    FUSED_LARGE_ATTENTION_ON_CPU,
    FUSED_NARROW_ATTENTION_ON_CPU,
    FUSED_SHORT_ATTENTION,
    Factor,
)
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, EvidenceTable, Link
from stepscope.base.formatting import count, share, size
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, kernel_time, phrases, product_evidence
from stepscope.rules.shared.kernel_time import Work

LONG = 512
"""Rows of scores for which FlashAttention was measured."""
LARGE_BYTES = 32 * 1024 * 1024
"""Scores of a call that exceed caches; on a CPU, from which a fused backward pass gains, too."""
NARROW = 32
"""Numbers of a query on a CPU up to which scores take longer than the products."""
EAGER = "eager_attention_forward"
"""The function that Hugging Face's transformers call by default."""


class Options(Thresholds):
    """Thresholds of unfused attention."""

    least_share: float = option(
        0.05,
        "Fraction of all kernels' time in unfused attention.",
        origin="ours: models without fused attention spend 70 to 89 % there, others 0",
    )
    least_bytes_on_host: int = option(
        2 * 1024 * 1024,
        "Scores of an attention on a CPU from which the fused one is faster.",
        origin="ours: with 2.6 MB 1.2 to 4.6 times on one thread of a Xeon, with 0.1 to 1 MB 0.85 "
        "to 1.2 times",
    )
    least_bytes_of_wide_heads: int = option(
        8 * 1024 * 1024,
        "The same in training for queries of more than 32 numbers, whose fused backward pass takes "
        "longer.",
        origin="ours: with 8.4 MB 1.2 times, with 2.6 and 4.2 MB 0.94 times",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report unfused attention, by the order of operators on a thread."""
    try:
        chains = attention_chains(trace)
    except NotApplicableError:
        yield from _on_host(trace, options)
        return
    duration_ns = trace.device_events["duration_ns"].to_numpy()[chains.kernels]
    total_ns = int(duration_ns.sum())
    if not total_ns or total_ns < options.least_share * chains.kernel_ns:
        return
    is_math = bool(chains.is_math.any() and (chains.is_math | chains.is_backward).all())
    work = Work(rows=chains.kernels, time_ns=total_ns, whole_ns=chains.kernel_ns)
    finding = Finding(
        message=_message(trace, chains, total_ns, is_math=is_math),
        evidence=tuple(_evidence(trace, chains, total_ns)),
        tables=(_shapes(trace, chains, duration_ns), product_evidence.kernels(trace, work)),
        events=kernel_time.longest(trace, work),
        locations=kernel_time.lines(trace, work),
        claims=tuple(_claims(trace, chains)),
        fix=_fix(trace, is_training=bool(chains.is_backward.any()), is_math=is_math),
        effort="flag" if _is_eager(trace) else None,
        subject="math fallback" if is_math else "",
    )
    yield kernel_time.result(trace, finding)


def _on_host(trace: Trace, options: Options) -> Results:
    """Report unfused attention on a CPU whose scores exceed the caches."""
    attention, span = host_attention(trace), window(trace)
    is_slow = _is_slow(attention, options)
    is_slow &= (attention.start_ns >= span.start_ns) & (attention.start_ns < span.end_ns)
    times = intervals.union(attention.start_ns[is_slow], attention.end_ns[is_slow])
    times = intervals.clip(times, span.start_ns, span.end_ns)
    time_ns = intervals.duration_ns(times)
    fraction = phrases.fraction_of_window(trace, time_ns)
    forward = int((is_slow & ~attention.is_backward).sum())
    if not forward or fraction < options.least_share:
        return
    number = span.per_step(forward) or forward
    largest = float(np.max(attention.scores_bytes[is_slow]))
    is_math = bool(attention.is_math[is_slow & ~attention.is_backward].all())
    factor, text = _host_factor(attention, is_slow)
    yield Finding(
        message=f"{count(number, 'attention')} {phrases.per_step(trace)} "
        f"{'is' if number == 1 else 'are'} computed as product, softmax, product: "
        f"{phrases.time_and_fraction(trace, time_ns)}. The scores of one take {size(largest)}.",
        evidence=(
            facts.fraction("Of the window", fraction, Link(view="operators", search="softmax")),
            facts.count("Forward attentions in total", forward),
            facts.size("Scores of one attention", round(largest)),
        ),
        events=call_costs.longest(trace, attention.first[is_slow]),
        locations=call_costs.lines(trace, attention.first[is_slow]),
        claims=(
            Claim(
                times,
                factor,
                f"Fused, attention {text} is {product_evidence.times(factor)} times as fast on a "
                "CPU.",
            ),
        ),
        fix=_fix(trace, is_training=bool(attention.is_backward.any()), is_math=is_math),
        effort="flag" if _is_eager(trace) else None,
        subject="math fallback" if is_math else "",
    )


def _is_slow(attention: HostAttention, options: Options) -> NDArray[np.bool_]:
    """Return a mask of attentions that a fused one does faster on a CPU."""
    is_wide = attention.head_width > NARROW
    least = np.where(
        is_wide & attention.is_backward.any(),
        options.least_bytes_of_wide_heads,
        options.least_bytes_on_host,
    )
    return np.asarray(attention.scores_bytes >= least)


def _host_factor(attention: HostAttention, is_slow: NDArray[np.bool_]) -> tuple[Factor, str]:
    """Return the factor of slow attentions on a CPU, and what it is for."""
    if not attention.is_backward.any():
        return FUSED_ATTENTION_IN_INFERENCE_ON_CPU, "in inference"
    if attention.scores_bytes[is_slow].max() >= LARGE_BYTES:
        return FUSED_LARGE_ATTENTION_ON_CPU, f"with scores of {size(LARGE_BYTES)} and more"
    if attention.head_width[is_slow].max() <= NARROW:
        return FUSED_NARROW_ATTENTION_ON_CPU, f"with queries of up to {NARROW} numbers"
    return FUSED_ATTENTION_ON_CPU, f"with queries of more than {NARROW} numbers"


def _message(trace: Trace, chains: AttentionChains, total_ns: int, *, is_math: bool) -> str:
    forward = int((~chains.is_backward).sum())
    number = window(trace).per_step(forward) or forward
    form = (
        "run by torch's fallback, which writes its scores to memory"
        if is_math
        else "computed as product, softmax, product"
    )
    text = (
        f"{count(number, 'attention')} {phrases.per_step(trace)} {'is' if number == 1 else 'are'} "
        f"{form}: {phrases.time(trace, total_ns)} ({share(total_ns / chains.kernel_ns)} of the "
        "kernels' time)."
    )
    largest = np.nanmax(chains.scores_bytes, initial=0)
    return f"{text} The scores of one take {size(largest)}." if largest else text


def _evidence(trace: Trace, chains: AttentionChains, total_ns: int) -> Iterator[Evidence]:
    link = Link(view="operators", search="softmax")
    yield facts.fraction("Kernels of unfused attention", total_ns / chains.kernel_ns, link)
    yield facts.count("Forward attentions in total", int((~chains.is_backward).sum()), link)
    yield facts.count("Backward attentions in total", int(chains.is_backward.sum()), link)
    if chains.is_math.any():
        yield facts.count("By torch's fallback in total", int(chains.is_math.sum()), link)
    largest = float(np.nanmax(chains.scores_bytes, initial=0))
    if largest:
        yield facts.size("Scores of one attention", round(largest))
    yield from product_evidence.limit(trace)


def _shapes(trace: Trace, chains: AttentionChains, duration_ns: NDArray[np.int64]) -> EvidenceTable:
    dims = trace.host_calls["input_dims"].cat
    count = len(dims.categories) + 1  # the last is of calls without shapes
    of_chain = dims.codes.to_numpy()[chains.first].astype(np.int64) % count
    total_ns = sums(duration_ns, of_chain[chains.chains], count)
    number = np.bincount(of_chain, minlength=count)
    worst = np.argsort(-total_ns, kind="stable")[: product_evidence.MOST_ROWS]
    texts = [*map(str, dims.categories), None]
    return facts.table(
        "Attentions by the shapes of their first product",
        {
            "Shapes": "code",
            "Attentions": "count",
            f"Kernel time {phrases.per_step(trace)}": "ns",
            "Of all kernels": "share",
        },
        (
            (
                texts[row],
                int(number[row]),
                window(trace).per_step(total_ns[row]),
                int(total_ns[row]) / chains.kernel_ns,
            )
            for row in worst[number[worst] > 0].tolist()
        ),
        link=Link(view="operators", search="aten::bmm", group="shape"),
    )


def _claims(trace: Trace, chains: AttentionChains) -> Iterator[Claim]:
    """Claim the device's work by the size of the scores, and the idle time for its launches.

    A backward pass goes with the largest forward one.
    """
    largest, longest = (
        np.where(chains.is_backward, np.fmax.reduce(of, initial=0), of)
        for of in (chains.scores_bytes, chains.query_length)
    )
    is_large, is_long = largest >= LARGE_BYTES, longest >= LONG  # of NaN they are not
    for is_selected, factor, text in (
        (is_large, FUSED_LARGE_ATTENTION, f"scores of {size(LARGE_BYTES)} and more"),
        (is_long & ~is_large, FUSED_ATTENTION, f"{LONG} rows of scores and more"),
        (~is_long & ~is_large, FUSED_SHORT_ATTENTION, "small scores, or an unknown number"),
    ):
        rows = chains.kernels[is_selected[chains.chains]]
        if len(rows):
            yield Claim(
                exclusive_device_time(trace, rows),
                factor,
                f"Fused, attention with {text} is {product_evidence.times(factor)} times as fast.",
                is_device_work=True,
            )
    calls = trace.host_calls
    start_ns, end_ns = (calls[column].to_numpy() for column in ("start_ns", "end_ns"))
    host = intervals.union(start_ns[chains.first], end_ns[chains.last])
    idle = call_cost(trace, host, chains.kernels).idle
    if len(idle):
        yield Claim(
            idle,
            FUSED_ATTENTION_CALLS,
            "Of the idle time while the host calls these operators, what the fused one saves.",
        )


def _is_eager(trace: Trace) -> bool:
    return bool(name_mask(trace.python_calls["name"], lambda name: EAGER in name).any())


def _fix(trace: Trace, *, is_training: bool, is_math: bool) -> Fix:
    verify = "Operators list aten::_scaled_dot_product_… in place of aten::_softmax."
    mask = "For a bias or mask that no kernel supports, FlexAttention compiles a kernel."
    if is_math:
        return Fix(
            "Give scaled_dot_product_attention inputs that its fused kernels support.",
            "# 16-bit types, heads of up to 256, a mask of the queries' type or none\n"
            "from torch.nn.attention import SDPBackend, sdpa_kernel\n"
            "fused = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]\n"
            "with sdpa_kernel(fused):   # warns why a kernel cannot be taken\n"
            "    out = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
            verify=verify,
            caveats=(mask,),
        )
    code = (
        "# softmax(q @ k.transpose(-2, -1) / sqrt(d) + mask) @ v becomes\n"
        "out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask"
        f"{', dropout_p=p if self.training else 0.0' if is_training else ''})"
    )
    if _is_eager(trace):
        code = 'model = AutoModel.from_pretrained(name, attn_implementation="sdpa")'
    return Fix(
        "Use one kernel, which never writes the scores to memory.",
        code,
        verify=verify,
        caveats=(
            "Code that reads the attention weights (output_attentions=True) needs them in memory.",
            mask,
        ),
    )


RULE = Rule(
    id="unfused-attention",
    title="Attention writes its matrix of scores to memory",
    passed="Attention is fused, or takes little time",
    category="operators",
    why="Queries times keys give a matrix of scores that grows with the square of the sequence. "
    "Unfused, it goes to memory and back for the scaling, the mask, the softmax, the dropout and "
    "the second product. A fused kernel keeps it in registers, tile by tile.",
    detects="On one thread, `aten::bmm` or `aten::baddbmm`, then a softmax, then such a product "
    "again whose left operand has the first one's shape; scaling, masks and dropout may lie "
    "between. In the backward pass, two products on each side of the softmax's. It reports where "
    "the kernels launched there are `least_share` of all kernels' time; on a machine without a "
    "device, where attentions with scores of `least_bytes_on_host` and more (in training, of wide "
    "heads `least_bytes_of_wide_heads`) are `least_share` of the window.",
    silent=(
        "Products of batches without a softmax between them, as in recommenders, do not count.",
        "Attention within a replayed graph is launched by no operator and is not recognized.",
        "Fused kernels of torch, FlashAttention and the like launch no separate softmax.",
    ),
    saving="The kernels' time on the device: 2 to 16 times as fast with scores that exceed the "
    "caches, else 1.5 to 4 times from 512 rows of scores on, and 1.2 to 2 times below that. Where "
    "the device waits for the launches of these operators, 0.45 to 0.7 of that idle time too. On a "
    "CPU as measured: more in inference, for narrow heads and for large scores.",
    fix=Fix(
        "Use F.scaled_dot_product_attention.",
        "out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)",
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"device times", "launches", "nesting", "host calls", "steps"}),
    priority="device work",
    after=("float64-compute",),
    links=(
        "generated/torch.nn.functional.scaled_dot_product_attention.html",
        "nn.attention.flex_attention.html",
    ),
    origin="Ascend's advisor on fusible operators; TraceLens; by order and shapes of operators",
    culprit="unfused attention",
)
