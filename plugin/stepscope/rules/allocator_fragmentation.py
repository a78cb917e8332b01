"""Much of the memory that torch reserved is unused, even when most is allocated."""

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import requirements
from stepscope.analyses.core.memory_peak import memory_peak
from stepscope.analyses.memory.fragmentation import CacheFill, cache_fill, memory_fragmentation
from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.findings import Link
from stepscope.base.formatting import count, share, size
from stepscope.rules import Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, recorded_facts

MANY_STEPS = 2
"""Memory that is unused in a single step may be the rest of one larger allocation."""
VARIABLE = "PYTORCH_ALLOC_CONF"
FEWER_SIZES = (
    "lengths = [64, 128, 256, 512]  # pad to the next of a few lengths\n"
    "padded = F.pad(tokens, (0, next(n for n in lengths if n >= len(tokens)) - len(tokens)))"
)


class Options(Thresholds):
    """Thresholds from which unused memory is much."""

    least_share: float = option(
        0.20,
        "Unused part of the reserved memory at the time of most allocated memory.",
        origin="ours: torch's allocator rounds by some percent; well-filled caches show 2 to 10 %",
    )
    least_bytes: int = option(
        2**30, "The same in bytes.", origin="ours: less decides about no batch"
    )
    crowded_share: float = option(
        0.80,
        "Reserved fraction of the device's memory from which it is a warning.",
        origin="ours: below the 90 % of memory-near-capacity, which unused memory may lead to",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report each device whose cache is badly filled at its fullest."""
    if not (trace.memory["reserved_bytes"] > 0).any():
        requirements.main_device(trace)  # raises where there is no device at all
    table = memory_fragmentation(trace)
    for fill, unused_bytes, unused_share in zip(
        cache_fill(trace), table["unused_bytes"], table["unused_share"], strict=True
    ):
        if _is_much(fill.unused_bytes, fill.unused_share, options):
            yield _finding(trace, fill, options)
        elif _is_much(unused_bytes, unused_share, options):
            yield RuledOut(
                message=f"Of {size(fill.reserved_bytes)} that torch reserved on {_device(fill)}, "
                f"{share(unused_share)} were unused at first, but only {share(fill.unused_share)} "
                "at the time of most allocated memory: the cache is needed.",
                evidence=(
                    facts.fraction("Unused at first", float(unused_share)),
                    facts.fraction("Unused at the peak", fill.unused_share),
                ),
            )


def _is_much(unused_bytes: float, unused_share: float, options: Options) -> bool:
    return unused_share >= options.least_share and unused_bytes >= options.least_bytes


def _finding(trace: Trace, fill: CacheFill, options: Options) -> Finding:
    steps = np.array(fill.step_unused_bytes)
    limit = max(options.least_bytes, options.least_share * fill.reserved_bytes)
    step_count = int((steps >= limit).sum())
    lasts = step_count >= MANY_STEPS
    peak = memory_peak(trace).get(fill.device)
    capacity = peak.capacity_bytes if peak else None
    crowded = capacity is not None and fill.reserved_bytes >= options.crowded_share * capacity
    text = (
        f"Of {size(fill.reserved_bytes)} that torch reserved on {_device(fill)}, "
        f"{size(fill.unused_bytes)} ({share(fill.unused_share)}) are unused even at the time of "
        "most allocated memory"
    )
    text += f", in {count(step_count, 'step')} of {len(steps)}." if len(steps) else "."
    if not lasts:
        text += " In so few steps, it may be the rest of one larger allocation."
    link = Link(view="overview", start_ns=fill.time_ns, end_ns=fill.time_ns)
    return Finding(
        severity="warning" if crowded and lasts else "info",
        confidence="high" if lasts else "medium",
        message=text,
        evidence=(
            facts.fraction("Unused at the peak", fill.unused_share, link),
            facts.size("Unused at the peak, bytes", fill.unused_bytes, link),
            facts.size("Reserved at the peak", fill.reserved_bytes, link),
            facts.count("Steps with as much unused memory", step_count),
            facts.count("Steps compared", len(fill.step_unused_bytes)),
        ),
        fix=_fix(trace),
        subject=_device(fill),
    )


def _device(fill: CacheFill) -> str:
    return f"{fill.device_type} {fill.device}"


def _fix(trace: Trace) -> Fix:
    if recorded_facts.is_expandable(trace):
        summary = f"Give tensors fewer sizes: segments grow already ({RECORDED})."
        return replace(RULE.fix, summary=summary, code=FEWER_SIZES)
    variable = trace.dialect.environment.get("allocator", VARIABLE)
    return replace(RULE.fix, code=RULE.fix.code.replace(VARIABLE, variable))


RULE = Rule(
    id="allocator-fragmentation",
    title="Reserved memory is split into pieces too small to reuse",
    passed="Reserved memory is not fragmented",
    category="memory",
    why="torch caches freed memory in segments. Requests whose sizes keep changing do not fit into "
    "the free pieces: more memory is reserved than is ever allocated, and a device runs out of "
    "memory while some of it is free.",
    detects="The time of most allocated memory among those of most reserved memory. It reports "
    "where `least_share` of the reserved memory, and `least_bytes`, are unused even then, and "
    "warns where that lasts over steps and `crowded_share` of the device is reserved.",
    silent=(
        "Between steps most of the cache is unused, as intended: only the fullest moment counts.",
        "On a CPU the allocator has no cache.",
    ),
    saving="Nothing is claimed: memory is no time.",
    fix=Fix(
        "Let segments grow instead of reserving new segments, and give tensors fewer sizes.",
        f'os.environ["{VARIABLE}"] = "expandable_segments:True"    # before torch is imported\n'
        "# and pad or bucket sequences, so that the same sizes recur",
        verify="Less is reserved, and unused memory at the peak falls, in Memory.",
        caveats=(
            "One large allocation long ago leaves a large cache too: calling torch's empty_cache() "
            "once after it helps; calling it in each step costs time.",
            "A memory snapshot (_record_memory_history) shows the pieces.",
        ),
    ),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"memory", "steps"}),
    priority="program",
    links=("notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",),
    origin="PyTorch's documentation of PYTORCH_CUDA_ALLOC_CONF",
)
