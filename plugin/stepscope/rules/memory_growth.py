"""Memory grows from step to step."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from stepscope.analyses.core import event_references
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.memory.by_step import memory_by_step
from stepscope.analyses.memory.growth import memory_growth, memory_leaks
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Evidence, EvidenceTable
from stepscope.base.formatting import count, share, size
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts

FEWEST_STEPS = 5
"""With fewer, a rise in every step still comes by chance more than once in twenty times."""
MOST_ROWS = 10
RECORD_MORE_STEPS = "torch.profiler.schedule(wait=1, warmup=1, active=6)"


class Options(Thresholds):
    """Thresholds of growth."""

    least_share: float = option(
        0.0001,
        "Growth per step, of what was allocated at the end of the first.",
        origin="ours: at that rate it has doubled after 10,000 steps",
    )
    soon_step_count: int = option(
        10_000,
        "Where the device is full after fewer steps, it is a warning.",
        origin="ours: some hours of training",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report each device of which more is allocated at every step's end than at the one before."""
    growth, steps = memory_growth(trace), memory_by_step(trace)
    step_count = growth["step_count"].max()  # NaN where nothing was allocated
    if step_count < FEWEST_STEPS:
        are = count(int(step_count), "step is", "steps are")
        reason = f"{are} too few to distinguish growth from chance"
        raise MissingDataError(reason, RECORD_MORE_STEPS)
    for row in growth.to_dict("records"):
        if row["confidence"] not in ("medium", "high"):
            continue
        base_bytes = max(1.0, float(_of_device(steps, row)["end_bytes"].dropna().iloc[0]))
        if row["growth_bytes"] >= options.least_share * base_bytes:
            yield _finding(trace, row, row["growth_bytes"] / base_bytes, options)


def _of_device(table: pd.DataFrame, row: dict[Any, Any]) -> pd.DataFrame:
    is_on_device = (table["device_type"] == row["device_type"]) & (table["device"] == row["device"])
    per_step: pd.DataFrame = table[is_on_device]
    return per_step


def _finding(trace: Trace, row: dict[Any, Any], grown: float, options: Options) -> Finding:
    leaks = _leaks(trace, row)
    device = str(row["device_type"]) + (f" {row['device']}" if row["device"] >= 0 else "")
    left, trains = row["full_after_step_count"], is_training(trace)
    text = (
        f"Memory of {device} grows by {size(row['growth_bytes'])} per step ({share(grown)}) over "
        f"{row['step_count']} steps."
    )
    if not np.isnan(left):
        text += f" At that rate it is full after {round(left):,} more."
    if len(leaks):
        text += f" Most of what stays behind, {leaks[0]['operator'] or 'no operator'} allocated."
    return Finding(
        severity="warning" if trains and left <= options.soon_step_count else "info",
        confidence="high" if trains and row["confidence"] == "high" else "medium",
        message=text,
        evidence=tuple(_evidence(row, grown)),
        tables=(_table(leaks),) if len(leaks) else (),
        locations=event_references.source_lines(leak["function"] for leak in leaks),
        fix=FIX if trains else CACHE,
        subject=device,
    )


def _evidence(row: dict[Any, Any], grown: float) -> Iterator[Evidence]:
    yield facts.size("Growth per step", round(row["growth_bytes"]))
    yield facts.fraction("Growth per step, of what was allocated", grown)
    yield facts.size(
        "Growth per step, with 95 % confidence at least", round(row["least_growth_bytes"])
    )
    yield facts.size("Grown in total", round(row["total_growth_bytes"]))
    yield facts.count("Steps compared", int(row["step_count"]))
    if not np.isnan(row["full_after_step_count"]):
        value = round(row["full_after_step_count"])
        yield facts.count("Steps until the device is full", value)


def _leaks(trace: Trace, row: dict[Any, Any]) -> list[dict[Any, Any]]:
    """Return what stays behind on a device, the most first; names that are missing are None."""
    table = _of_device(memory_leaks(trace), row).head(MOST_ROWS).astype(object)
    leaks: list[dict[Any, Any]] = table.where(table.notna(), None).to_dict("records")
    return [{**leak, "function": (leak["stack"] or "").rpartition(";")[2]} for leak in leaks]


def _table(leaks: list[dict[Any, Any]]) -> EvidenceTable:
    return facts.table(
        "What stays behind, step after step",
        {
            "Operator": "text",
            "Module": "text",
            "Function": "code",
            "A step": "bytes",
            "In steps": "count",
        },
        (
            (
                leak["operator"],
                leak["module"],
                leak["function"] or None,
                round(leak["bytes_per_step"]),
                int(leak["step_count"]),
            )
            for leak in leaks
        ),
        "operators",
    )


FIX = Fix(
    "Let tensors of past steps go: keep numbers, or copies without their history.",
    "losses.append(loss.detach())    # not loss, which keeps its graph\n"
    "total += loss.detach()          # not total += loss\n"
    "outputs.append(output.detach().cpu())    # or reduce them at once",
    verify="What is allocated at the ends of the steps stays the same in Memory.",
    caveats=(
        "What the first steps make to keep (optimizer states, caches) may last longer than the "
        "trace's warm-up.",
    ),
)
CACHE = Fix(
    "Give what grows a fixed size, or let it go between requests.",
    "outputs.append(output.cpu())    # not the tensor on the device\n"
    "cache = StaticCache(config, max_cache_len=4096)    # transformers: keys and values",
    verify=FIX.verify,
    caveats=("A cache of keys and values grows with each token, by design, until the text ends.",),
)

RULE = Rule(
    id="memory-growth",
    title="Memory grows from step to step",
    passed="Memory does not grow over the steps",
    category="memory",
    why="Something keeps tensors of past steps alive, until the device runs out of memory hours "
    "after the start. A tensor that requires gradients keeps all that its backward pass needs.",
    detects="Compares what is allocated at the ends of the steps: the median slope between them "
    "(Theil-Sen), and whether the rise may be chance (Mann-Kendall, 5 %). It reports where a step "
    "adds `least_share` or more, and warns where the device is full within `soon_step_count` "
    "steps.",
    silent=(
        "With fewer than five steps growth cannot be distinguished from chance: it is "
        "inconclusive.",
        "A rise in one step alone, such as of an optimizer's state in the first, does not count.",
        "Where nothing trains it never warns: a cache of keys and values grows by design.",
    ),
    saving="None is claimed: it costs memory, not time.",
    fix=FIX,
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"memory", "steps", "host calls"}),
    priority="program",
    links=("notes/faq.html",),
    origin="PyTorch's FAQ, My model reports out of memory; Sen 1968, Kendall 1975",
)
