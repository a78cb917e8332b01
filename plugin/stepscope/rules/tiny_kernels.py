"""Most kernels are over before the next could be launched."""

from collections.abc import Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import DeviceActivity
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.exclusive_device_time import exclusive_device_time
from stepscope.analyses.devices.kernel_sequences import kernel_sequences
from stepscope.analyses.idle.short_kernels import ShortKernels, idle_before, short_kernels
from stepscope.base.calibration import FUSED_LAUNCHES, FUSED_SHORT_KERNELS
from stepscope.base.findings import Evidence, EvidenceTable, Fix, Link, Severity
from stepscope.base.formatting import duration, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import (
    INFO_SHARE,
    Claim,
    Finding,
    Rule,
    RuledOut,
    RuleResult,
    option,
    severity_of,
)
from stepscope.rules.shared import facts, phrases, recorded_facts

MOST_ROWS = 10
COMPILING = "model = torch.compile(model)"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Thresholds of short kernels; shares are from 0 to 1."""

    short_us: float = option(
        10.0, "Kernels of less are short.", origin="TraceLens: short kernels are under 10 µs"
    )
    least_short_share: float = option(
        0.5, "Of the kernels.", origin="ours: of half per step's kernels something can be fused"
    )
    least_kernels: int = option(
        100, "Kernels per step.", origin="ours: with fewer there is next to nothing to fuse"
    )
    most_busy_share: float = option(
        0.9,
        "Of the window; a device that is busier hides its launches.",
        origin="ours: a checkpointed ResNet with 78 % short kernels keeps its GPU 97 % busy",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report many short kernels by the idle time before those that could be part of another."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    span = window(trace)
    short = short_kernels(trace, device, options.short_us * 1000)
    busy = intervals.duration_ns(device.busy) / max(1, span.device_duration_ns)
    is_pattern = span.per_step(len(short.kernels)) >= options.least_kernels
    is_pattern &= len(short.short) >= options.least_short_share * len(short.kernels)
    if not is_pattern or busy >= options.most_busy_share:
        return
    idle, work = (
        idle_before(trace, device, short.saved),
        exclusive_device_time(trace, short.fusable),
    )
    cost_ns = intervals.duration_ns(idle) + intervals.duration_ns(work)
    table = _table(trace, options)
    if cost_ns < INFO_SHARE * span.reference_ns:
        yield RuledOut(
            message=f"{_message(trace, short, idle, options)} Fusing would save next to nothing.",
            evidence=_evidence(trace, device, short, idle),
            tables=(table,) if table.rows else (),
        )
        return
    yield Finding(
        severity=_severity(trace, idle),
        message=_message(trace, short, idle, options),
        evidence=_evidence(trace, device, short, idle),
        tables=(table,) if table.rows else (),
        claims=_claims(idle, work),
        fix=_fix(trace, table),
    )


def _severity(trace: Trace, idle: Intervals) -> Severity:
    """Return how serious it is by what fusing wins at least; never critical: others are causes."""
    least_ns = FUSED_LAUNCHES.low * intervals.duration_ns(idle)
    serious = severity_of(least_ns / window(trace).reference_ns)
    return "warning" if serious in {"critical", "warning"} else "info"


def _claims(idle: Intervals, work: Intervals) -> tuple[Claim, ...]:
    return (
        Claim(
            idle,
            FUSED_LAUNCHES,
            "Idle time of under 1 ms before short kernels that could be part of the short one in "
            "front of them.",
        ),
        Claim(
            work,
            FUSED_SHORT_KERNELS,
            "The device's saving in such kernels.",
            is_device_work=True,
        ),
    )


def _message(trace: Trace, short: ShortKernels, idle: Intervals, options: Options) -> str:
    span, idle_ns = window(trace), intervals.duration_ns(idle)
    short_ns = trace.device_events["duration_ns"].to_numpy()[short.short].sum()
    portion = len(short.short) / max(1, len(short.kernels))
    return (
        f"{share(portion)} of {span.per_step(len(short.kernels)):,} kernels "
        f"{phrases.per_step(trace)} take less than {duration(options.short_us * 1000)}, together "
        f"{phrases.time(trace, short_ns)}; {span.per_step(len(short.saved)):,} of them "
        f"follow another such, and before these the {trace.dialect.device} waits for "
        f"{phrases.time(trace, idle_ns)} ({share(idle_ns / span.reference_ns)})."
    )


def _evidence(
    trace: Trace, device: DeviceActivity, short: ShortKernels, idle: Intervals
) -> tuple[Evidence, ...]:
    events, span = trace.device_events["duration_ns"].to_numpy(), window(trace)
    kernels = Link(view="kernels")
    busy = intervals.duration_ns(device.busy) / max(1, span.device_duration_ns)
    return (
        facts.count("Kernels", len(short.kernels), kernels),
        facts.count("Short kernels", len(short.short), kernels),
        facts.count("Launches that fusing saves", len(short.saved)),
        facts.duration("Time in short kernels", int(events[short.short].sum())),
        facts.duration("Idle before those", intervals.duration_ns(idle)),
        facts.fraction(f"{trace.dialect.device} busy", busy),
    )


def _table(trace: Trace, options: Options) -> EvidenceTable:
    """Return the sequences of short kernels that repeat, those that save most launches first."""
    table = kernel_sequences(trace)
    short = table[table["mean_kernel_ns"] < options.short_us * 1000].head(MOST_ROWS)
    names = ("operators", "sequence", "occurrence_count", "saved_launch_count", "mean_kernel_ns")
    rows = tuple(
        facts.row(
            str(operators),
            str(kernels),
            int(times),
            int(saved),
            float(mean_ns),
            link=Link(view="kernels"),
        )
        for operators, kernels, times, saved, mean_ns in short[list(names)].itertuples(index=False)
    )
    return facts.table(
        "Short kernels that follow each other",
        {
            "Operators": "code",
            "Kernels": "code",
            "Times": "count",
            "Launches saved": "count",
            "Mean kernel": "ns",
        },
        rows,
    )


def _fix(trace: Trace, table: EvidenceTable) -> Fix:
    seen = f" Most often here: {table.rows[0].cells[0]}." if table.rows else ""
    code = RULE.fix.code
    if recorded_facts.is_compiled(trace):
        code = code.replace(COMPILING, recorded_facts.compiling(trace))
    elif trace.dialect.terms.get("graph"):
        code = code.replace("(model)", '(model, mode="reduce-overhead")')
    return replace(RULE.fix, summary=f"{RULE.fix.summary}{seen}", code=code)


RULE = Rule(
    id="tiny-kernels",
    title="Most kernels are very short",
    category="kernel launch",
    why="A kernel of some microseconds is over before the host has launched the next, reads and "
    "writes all of its data for a single operation, and fills the device for no time at all.",
    detects="Kernels of less than `short_us`, where they are `least_short_share` of at least "
    "`least_kernels` kernels per step and the device is busy for less than `most_busy_share`. "
    "Counted are those that follow another short one on their stream with nothing between.",
    silent=(
        "A device that is busy all the same hides its launches behind its work.",
        "What graphs replay is launched together already.",
        "Where idle time and work of such kernels are under 1 % of the window, they are listed as "
        "ruled out.",
    ),
    saving="The idle time of under 1 ms before kernels that could be part of the one in front of "
    "them, a quarter of it at least; and of the work of all such kernels what fusing saves, where "
    "the device is the limit. What launch-bound claims is not counted again.",
    fix=Fix(
        "Fuse kernels that follow each other.",
        f"{COMPILING}\n"
        "# and what comes fused: F.scaled_dot_product_attention, F.rms_norm,\n"
        "# optimizers with fused=True or foreach=True",
        verify="In the next trace the Kernels view has fewer kernels per step, and longer ones.",
        caveats=("Products and convolutions are not fused with each other.",),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "launches", "clocks", "steps"}),
    priority=460,
    links=(
        "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#fuse-operations",
    ),
    origin="TraceLens short kernels; HTA's frequent kernel sequences",
    culprit="launching very short kernels",
)
