"""Many small messages where few large ones would do."""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from msgspec.structs import replace

from stepscope.analyses.communication.accumulation import IN_BATCH_NORM
from stepscope.analyses.communication.collective_events import requested_in_calls
from stepscope.analyses.communication.collective_table import transfer_share
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.calibration import ALL_OF_IT, SMALL_MESSAGES, part_of
from stepscope.base.findings import INFO_SHARE, Evidence
from stepscope.base.formatting import duration, share, size
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import collective_costs, ddp, facts, phrases

KINDS = frozenset({"all_reduce", "all_gather", "reduce_scatter"})
"""What gradients and parameters are sent by; an exchange of all with all has sizes of its own."""
CALLS = re.compile(r"^c10d::_?(?:allreduce|allgather|reduce_scatter)")
"""The host's calls that request them."""
BUCKET_MB = 25
"""DDP's default `bucket_cap_mb`."""
BUCKET_BYTES = BUCKET_MB * 2**20
WITHOUT_STEPS_NS = 100_000_000
"""Where there are no steps, counts are of a tenth of a second."""


class Options(Thresholds):
    """Thresholds of number and size of messages."""

    least_a_step: float = option(
        20.0,
        "So many messages per step (without steps: in 100 ms) are many.",
        origin="ours: DDP of a model of 1 GB sends 40 of 25 MB; public traces with fewer "
        "layers send 3 to 7, hand-written loops over parameters 400",
    )
    small_bytes: int = option(
        1_000_000,
        "Median message below which messages are small.",
        origin="msprof-analyze: packets of less than 1 MB are small on RDMA",
    )
    short_ns: int = option(
        200_000,
        "Median duration below which messages are small where their size was not recorded.",
        origin="ours: 1 MB in 200 µs is 5 GB/s, a slow link's rate",
    )
    least_bucket_ratio: float = option(
        2.0,
        "Times as many messages a backward pass as DDP's default buckets would be.",
        origin="ours: buckets are filled in the order of gradients, so that a few more are usual",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Many:
    is_small: collective_costs.Mask
    a_step: float
    bucket_ratio: float
    """Messages a backward pass over those of default buckets; NaN where it is not DDP's."""


def check(trace: Trace, options: Options) -> Results:
    """Report small messages by the time saved if they were sent together."""
    events = collective_costs.timed(trace)
    many = _many(trace, events, options)
    if many is None:
        return
    small = events[many.is_small]
    lost = collective_costs.exposed(trace, many.is_small)
    gone = _gone(small, many.a_step)
    claims = _claims(trace, many, lost, gone)
    most = _most(trace, claims)
    evidence = tuple(_evidence(small, many, lost))
    tables = (collective_costs.table(events, many.is_small),)
    words = _sentence(trace, small, many)
    if not is_training(trace):
        text = (
            f"{words} In inference they belong to the model: two a layer with tensor parallelism."
        )
        yield RuledOut(message=text, evidence=evidence, tables=tables)
        return
    if most < INFO_SHARE:
        text = f"{words} Sent together they would save {share(most)}."
        yield RuledOut(message=text, evidence=evidence, tables=tables)
        return
    yield Finding(
        confidence="low" if np.isnan(transfer_share(small)) else "medium",
        message=f"{words} They keep the {trace.dialect.device} waiting for "
        f"{duration(lost.a_step_ns)} {phrases.per_step(trace)} ({share(lost.share)}).",
        evidence=evidence,
        tables=tables,
        events=collective_costs.longest(trace, events, many.is_small),
        locations=collective_costs.locations(trace, many.is_small),
        claims=claims,
        fix=_fix(trace, is_ddp=not np.isnan(many.bucket_ratio)),
        effort=None if np.isnan(many.bucket_ratio) else "flag",
        subject=collective_costs.wrapper(trace),
    )


def _claims(
    trace: Trace, many: _Many, lost: collective_costs.Exposed, gone: float
) -> tuple[Claim, ...]:
    """Claim a fraction of the messages' exposed time, of their calls and of slower computing."""
    method = "All of their exposed time but for the transfer itself, 50 to 85 % of that."
    exposed = collective_costs.claim(lost, part_of(SMALL_MESSAGES, gone), method)
    calls = trace.host_calls["name"]
    rows = np.flatnonzero(name_mask(calls, CALLS.search))
    called = intervals.difference(ddp.host_loss(trace, rows), lost.times)
    fewer = part_of(ALL_OF_IT, 1 - 1 / max(1.0, many.a_step))
    return (
        dataclasses.replace(exposed, is_device_work=False),  # the host calls fewer times too
        Claim(called, fewer, "The host's calls that request them, but for one."),
        *collective_costs.slowed(trace, many.is_small, "messages", gone),
    )


def _most(trace: Trace, claims: Sequence[Claim]) -> float:
    """Return the most that claims save, as a fraction of the window; their times are disjoint."""
    saved_ns = (claim.factor.high * intervals.duration_ns(claim.intervals) for claim in claims)
    return phrases.fraction_of_window(trace, sum(saved_ns))


def _many(trace: Trace, events: pd.DataFrame, options: Options) -> _Many | None:
    """Return the messages that are many and small, or more than DDP's buckets would be."""
    is_needed = requested_in_calls(trace, IN_BATCH_NORM)
    is_small = (
        events["kind"].isin(KINDS).to_numpy() & collective_costs.in_window(trace) & ~is_needed
    )
    is_small &= events["duration_ns"].notna().to_numpy()
    buckets = _in_buckets(trace, events, is_small)
    if buckets is not None and buckets.bucket_ratio >= options.least_bucket_ratio:
        return buckets
    a_step = int(is_small.sum()) / _units(trace)
    if a_step < options.least_a_step or not _are_small(events[is_small], options):
        return None
    return _Many(is_small=is_small, a_step=a_step, bucket_ratio=np.nan)


def _units(trace: Trace) -> float:
    span = window(trace)
    return span.step_count or max(1.0, span.reference_ns / WITHOUT_STEPS_NS)


def _are_small(small: pd.DataFrame, options: Options) -> bool:
    sizes = small["message_bytes"].dropna()
    if len(sizes):
        return bool(sizes.median() < options.small_bytes)
    return bool(small["duration_ns"].median() < options.short_ns)


def _in_buckets(
    trace: Trace, events: pd.DataFrame, is_small: collective_costs.Mask
) -> _Many | None:
    """Return DDP's messages of gradients with how many more they are than buckets of 25 MiB."""
    passes = ddp.forward_count(trace)
    kind, dtype = events["kind"].to_numpy(), events["dtype"].to_numpy()
    reduced = is_small & (kind == "all_reduce") & (dtype != "int32")
    total_bytes = float(events["message_bytes"].to_numpy()[reduced].sum())
    if not passes or not reduced.any() or not total_bytes > 0:
        return None
    buckets = np.ceil(total_bytes / passes / BUCKET_BYTES) + 1  # the first one holds 1 MiB
    ratio = float(reduced.sum()) / passes / float(buckets)
    return _Many(is_small=reduced, a_step=int(reduced.sum()) / _units(trace), bucket_ratio=ratio)


def _gone(small: pd.DataFrame, a_step: float) -> float:
    """Return the fraction of their time that is latency, paid once where they are sent together."""
    return 1 - max(float(np.nan_to_num(transfer_share(small))), 1 / max(1.0, a_step))


def _sentence(trace: Trace, small: pd.DataFrame, many: _Many) -> str:
    kinds = ", ".join(dict.fromkeys(small["kind"].astype(str)))
    sizes = small["message_bytes"].dropna()
    if len(sizes):
        middle = f"of {size(float(sizes.median()))}"
    else:
        middle = f"of {duration(float(small['duration_ns'].median()))}"
    scope = "per step" if window(trace).has_steps else "in 100 ms"
    text = f"{many.a_step:.3g} messages {scope} ({kinds}), in the median {middle}"
    if np.isnan(many.bucket_ratio):
        return f"{text}."
    return f"{text}: {many.bucket_ratio:.3g} times as many as DDP's default buckets."


def _evidence(
    small: pd.DataFrame, many: _Many, lost: collective_costs.Exposed
) -> Iterator[Evidence]:
    yield facts.count("Messages per step", many.a_step)
    sizes = small["message_bytes"].dropna()
    if len(sizes):
        yield facts.size("Median message", int(sizes.median()))
    median_ns = int(small["duration_ns"].median())
    yield facts.duration("Median duration", median_ns)
    transfer = transfer_share(small)
    if not np.isnan(transfer):
        yield facts.fraction("Transfer, of their time", transfer)
    if not np.isnan(many.bucket_ratio):
        label = "Times DDP's default buckets"
        yield facts.count(label, many.bucket_ratio)
    yield facts.fraction("Exposed, of the window", lost.share)


def _fix(trace: Trace, *, is_ddp: bool) -> Fix:
    """Return the fix that sends fewer messages: of DDP's buckets, sharded units, or by hand."""
    if is_ddp:
        return replace(
            RULE.fix,
            summary="Use larger DDP buckets.",
            code=f"model = DDP(model, {_larger(trace)}",
            caveats=("Too large a bucket starts late, after the rest of the backward pass.",),
        )
    if collective_costs.wrapper(trace).startswith("FSDP"):
        return replace(
            RULE.fix,
            summary="Shard larger units: whole blocks, not single layers.",
            code="for block in model.blocks:   # not each nn.Linear\n"
            "    fully_shard(block)\n"
            "fully_shard(model)",
            caveats=("All parameters of a unit are gathered while it runs: more memory.",),
        )
    return RULE.fix


def _larger(trace: Trace) -> str:
    """Return the argument of larger buckets: torch's default, or twice the recorded size."""
    now = recorded_settings(trace).distributed.bucket_cap_mb
    if now is None:
        return f"bucket_cap_mb={BUCKET_MB})  # the default; up to 100 on fast links"
    return f"bucket_cap_mb={max(BUCKET_MB, round(2 * now))})  # now {now:.3g} ({RECORDED})"


RULE = Rule(
    id="small-collectives",
    title="Communication goes in many small messages",
    passed="Collectives send messages large enough for the link",
    category="communication",
    why="A message of a few kilobytes takes as long as one of a hundred: its time is the latency "
    "of the call, the kernel and the ranks' meeting, not transfer. Sent together they pay it once.",
    detects="All-reduces, all-gathers and reduce-scatters: at least `least_a_step` per step whose "
    "median message is below `small_bytes` (or whose median duration is below `short_ns`, where "
    "messages were not recorded); or of DDP at least `least_bucket_ratio` times as many as its "
    "default buckets for the same bytes.",
    silent=(
        "With no collective it does not apply.",
        "Inference with tensor parallelism sends two small messages a layer by design.",
        "Exchanges of all with all, and the statistics of SyncBatchNorm, cannot be put together.",
        "Messages that could save less than 1 % of the window are listed as ruled out.",
    ),
    saving="50 to 85 % of their exposed time without the transfer, whose rate is estimated from "
    "the shortest of the smallest and the shortest of the largest messages: nothing hides the one "
    "message at the end. In addition, the host's calls but for one; "
    "and where the process has no core to spare, 30 to 70 % of the time in which it computes while "
    "messages are sent.",
    fix=Fix(
        "Send all gradients in a few messages.",
        "model = DDP(model)  # reduces gradients in buckets, during the backward pass\n"
        "# or by hand, one message for all of them:\n"
        "flat = torch.cat([grad.flatten() for grad in grads])\n"
        "dist.all_reduce(flat)\n"
        "for grad, part in zip(grads, flat.split([grad.numel() for grad in grads])):\n"
        "    grad.copy_(part.view_as(grad))",
        verify="Messages per step fall, and so does the exposed time of communication.",
        caveats=("The flat copy needs the memory of all gradients once more.",),
    ),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority="communication",
    after=("ddp-buffer-broadcast",),
    links=(ddp.DOCUMENTATION, "distributed.fsdp.fully_shard.html"),
    origin="msprof-analyze (small packets); DDP's bucket_cap_mb",
    culprit="sending many small messages",
)
