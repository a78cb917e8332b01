"""Much of the memory that torch reserved lies unused, even when most is held."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.memory_peak import memory_peak
from stepscope.analyses.memory.cache_fill import CacheFill, cache_fill
from stepscope.analyses.memory.fragmentation import memory_fragmentation
from stepscope.analyses.settings.recorded_settings import RECORDED
from stepscope.base.findings import Evidence, Fix, Link
from stepscope.base.formatting import count, share, size
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import facts, recorded_facts

MANY_STEPS = 2
"""Unused in one step alone, it may be the rest of a single larger need."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """When unused memory is much."""

    least_share: float = option(
        0.20,
        "Unused of what was reserved, when most was held.",
        origin="ours: torch's allocator rounds by some percent; well-filled caches show 2 to 10 %",
    )
    least_bytes: int = option(
        2**30, "The same in bytes.", origin="ours: less decides about no batch"
    )
    crowded_share: float = option(
        0.80,
        "Of the device's memory reserved, from which on it is a warning.",
        origin="ours: below the 90 % of memory-near-capacity, which unused memory may bring it to",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report each device whose cache is badly filled at its fullest."""
    if not (trace.memory["reserved_bytes"] > 0).any():
        requirements.main_device(trace)  # says so where there is no device at all
    table = memory_fragmentation(trace)
    for fill, (unused, part) in zip(
        cache_fill(trace),
        zip(table["unused_bytes"].tolist(), table["unused_share"].tolist(), strict=True),
        strict=True,
    ):
        if _is_much(fill.unused_bytes, fill.unused_share, options):
            yield _finding(trace, fill, options)
        elif _is_much(unused, part, options):
            yield _rejected(fill, part)


def _is_much(unused_bytes: float, unused_share: float, options: Options) -> bool:
    return unused_share >= options.least_share and unused_bytes >= options.least_bytes


def _finding(trace: Trace, fill: CacheFill, options: Options) -> Finding:
    steps = np.array(fill.step_unused_bytes)
    limit = max(options.least_bytes, options.least_share * fill.reserved_bytes)
    in_steps = int((steps >= limit).sum())
    lasts = in_steps >= MANY_STEPS
    known = memory_peak(trace).get(fill.device)
    capacity = known.capacity_bytes if known else None
    crowded = capacity is not None and fill.reserved_bytes >= options.crowded_share * capacity
    text = (
        f"Of {size(fill.reserved_bytes)} that torch reserved on {_label(fill)}, "
        f"{size(fill.unused_bytes)} ({share(fill.unused_share)}) lie unused even when most is held"
    )
    text += f", in {count(in_steps, 'step')} of {len(steps)}." if len(steps) else "."
    if not lasts:
        text += " Seen in so few steps, it may be the rest of a single larger need."
    return Finding(
        severity="warning" if crowded and lasts else "info",
        confidence="high" if lasts else "medium",
        message=text,
        evidence=_evidence(fill, in_steps),
        fix=_fix(trace),
        subject=_label(fill),
    )


def _evidence(fill: CacheFill, in_steps: int) -> tuple[Evidence, ...]:
    at = Link(view="overview", start_ns=fill.time_ns, end_ns=fill.time_ns)
    return (
        facts.fraction("Unused when most is held", fill.unused_share, at),
        facts.size("Unused then", fill.unused_bytes, at),
        facts.size("Reserved then", fill.reserved_bytes, at),
        facts.count("Steps in which it is so", in_steps),
        facts.count("Steps compared", len(fill.step_unused_bytes)),
    )


def _rejected(fill: CacheFill, part: float) -> RuledOut:
    return RuledOut(
        message=f"Of {size(fill.reserved_bytes)} that torch reserved on {_label(fill)}, "
        f"{share(part)} lay unused at first, but only {share(fill.unused_share)} when most is "
        "held: the cache is needed.",
        evidence=(
            facts.fraction("Unused at first", part),
            facts.fraction("Unused when most is held", fill.unused_share),
        ),
    )


def _label(fill: CacheFill) -> str:
    return f"{fill.device_type} {fill.device}"


def _fix(trace: Trace) -> Fix:
    if recorded_facts.is_expandable(trace):
        return Fix(
            f"Give tensors fewer sizes: segments grow already ({RECORDED}).",
            FEWER_SIZES,
            verify=FIX.verify,
            caveats=FIX.caveats,
        )
    variable = trace.dialect.environment.get("allocator", VARIABLE)
    code = FIX.code.replace(VARIABLE, variable)
    return Fix(FIX.summary, code, verify=FIX.verify, caveats=FIX.caveats)


VARIABLE = "PYTORCH_ALLOC_CONF"
FEWER_SIZES = (
    "lengths = [64, 128, 256, 512]  # pad to the next of a few lengths\n"
    "padded = F.pad(tokens, (0, next(n for n in lengths if n >= len(tokens)) - len(tokens)))"
)
FIX = Fix(
    "Let segments grow in place of asking for new ones, and give tensors fewer sizes.",
    f'os.environ["{VARIABLE}"] = "expandable_segments:True"    # before torch is imported\n'
    "# and pad or bucket sequences, so that the same sizes come again",
    verify="Less is reserved, and unused memory at the peak falls, in Memory.",
    caveats=(
        "One large need long ago leaves a large cache too: calling torch's empty_cache() once "
        "after it helps; calling it in each step costs time.",
        "A memory snapshot (_record_memory_history) shows the pieces.",
    ),
)

RULE = Rule(
    id="allocator-fragmentation",
    title="Reserved memory lies in pieces that nothing fits into",
    category="memory",
    why="torch keeps what tensors give back in segments. Requests whose sizes keep changing do not "
    "fit into what is free: more is reserved than is ever held, and a device runs out of memory "
    "while some of it is free.",
    detects="Takes the moment at which most was held, of those at which most was reserved. It "
    "speaks where `least_share` of what was reserved, and `least_bytes`, were unused even then, "
    "and warns where that lasts over steps and `crowded_share` of the device is reserved.",
    silent=(
        "Between steps most of the cache is unused, which is what it is for: only the fullest "
        "moment counts.",
        "On a CPU, whose allocator keeps no cache.",
    ),
    saving="Nothing is claimed: memory is no time.",
    fix=FIX,
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"memory", "steps"}),
    priority=522,
    links=(
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf",
    ),
    origin="PyTorch's documentation of PYTORCH_CUDA_ALLOC_CONF",
)
