"""Most kernels end before the host can launch the next one."""

from msgspec.structs import replace

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.devices.kernel_sequences import kernel_sequences
from stepscope.analyses.idle.dispatch_gaps import idle_before, short_kernels
from stepscope.base.calibration import FUSED_LAUNCHES, FUSED_SHORT_KERNELS
from stepscope.base.findings import INFO_SHARE, EvidenceTable, Link, Unit, severity_of
from stepscope.base.formatting import duration, share
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases, recorded_facts

MOST_ROWS = 10
COMPILING = "model = torch.compile(model)"
LITTLE = "Fusing would save less than 1 %."


class Options(Thresholds):
    """Thresholds of short kernels; fractions are from 0 to 1."""

    short_us: float = option(
        10.0, "Kernels that take less are short.", origin="TraceLens: short kernels are under 10 µs"
    )
    least_short_share: float = option(
        0.5,
        "Fraction of the kernels that are short.",
        origin="ours: where half of a step's kernels are short, some can be fused",
    )
    least_kernels: int = option(
        100, "Kernels per step.", origin="ours: with fewer there is hardly anything to fuse"
    )
    most_busy_share: float = option(
        0.9,
        "Busy fraction of the window; a busier device hides its launches.",
        origin="ours: a checkpointed ResNet with 78 % short kernels keeps its GPU 97 % busy",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report many short kernels by the idle time before those that could be part of another."""
    device = requirements.main_device(trace)
    requirements.reliable_timeline(trace)
    span = window(trace)
    short = short_kernels(trace, device, options.short_us * 1000)
    busy = intervals.duration_ns(device.busy) / max(1, span.duration_ns)
    is_pattern = span.per_step(len(short.kernels)) >= options.least_kernels
    is_pattern &= len(short.short) >= options.least_short_share * len(short.kernels)
    if not is_pattern or busy >= options.most_busy_share:
        return
    idle, work = (
        idle_before(trace, device, short.saved),
        exclusive_device_time(trace, short.fusable),
    )
    idle_ns, table = intervals.duration_ns(idle), _table(trace, options)
    short_ns = int(trace.device_events["duration_ns"].to_numpy()[short.short].sum())
    serious = severity_of(FUSED_LAUNCHES.low * idle_ns / span.reference_ns)
    finding = Finding(
        # Never critical: other rules report causes.
        severity="warning" if serious in {"critical", "warning"} else "info",
        message=f"{share(len(short.short) / max(1, len(short.kernels)))} of "
        f"{span.per_step(len(short.kernels)):,} kernels {phrases.per_step(trace)} take less than "
        f"{duration(options.short_us * 1000)}, together {phrases.time(trace, short_ns)}; "
        f"{span.per_step(len(short.saved)):,} of them directly follow another short kernel, and "
        f"{phrases.device(trace)} waits for these {phrases.time_and_fraction(trace, idle_ns)}.",
        evidence=(
            facts.count("Kernels in total", len(short.kernels), "kernels"),
            facts.count("Short kernels in total", len(short.short), "kernels"),
            facts.count("Launches that fusing saves in total", len(short.saved)),
            facts.duration("Time in short kernels in total", short_ns),
            facts.duration("Idle before those in total", idle_ns),
            facts.fraction(f"{trace.dialect.device} busy", busy),
        ),
        tables=(table,) if table.rows else (),
        claims=(
            Claim(
                idle,
                FUSED_LAUNCHES,
                "Idle time of under 1 ms before short kernels that could be part of the short one "
                "before them.",
            ),
            Claim(
                work,
                FUSED_SHORT_KERNELS,
                "The device's saving in such kernels.",
                is_device_work=True,
            ),
        ),
        fix=_fix(trace, table),
    )
    is_costly = idle_ns + intervals.duration_ns(work) >= INFO_SHARE * span.reference_ns
    yield finding if is_costly else finding.ruled_out(f"{finding.message} {LITTLE}")


def _table(trace: Trace, options: Options) -> EvidenceTable:
    """Return the sequences of short kernels that repeat, those that save most launches first."""
    table = kernel_sequences(trace)
    names = ["operators", "sequence", "occurrence_count", "saved_launch_count", "mean_kernel_ns"]
    short = table[table["mean_kernel_ns"] < options.short_us * 1000][names].head(MOST_ROWS)
    columns: dict[str, Unit] = {
        "Operators": "code",
        "Kernels": "code",
        "Times": "count",
        "Launches saved": "count",
        "Mean kernel": "ns",
    }
    return facts.table("Short kernels that follow each other", columns, short, Link(view="kernels"))


def _fix(trace: Trace, table: EvidenceTable) -> Fix:
    example = f" Most often here: {table.rows[0].cells[0]}." if table.rows else ""
    code = RULE.fix.code
    if recorded_facts.is_compiled(trace):
        code = code.replace(COMPILING, recorded_facts.compiling(trace))
    elif trace.dialect.terms.get("graph"):
        code = code.replace("(model)", '(model, mode="reduce-overhead")')
    return replace(RULE.fix, summary=f"{RULE.fix.summary}{example}", code=code)


RULE = Rule(
    id="tiny-kernels",
    title="Most kernels are very short",
    passed="Kernels are long enough, or the device is busy all the same",
    category="kernel launch",
    why="A kernel of some microseconds ends before the host has launched the next one, and reads "
    "and writes all of its data for a single operation.",
    detects="Kernels of less than `short_us`, where they are `least_short_share` of at least "
    "`least_kernels` kernels per step and the device is busy for less than `most_busy_share`. "
    "Those count that follow another short kernel on their stream with nothing between.",
    silent=(
        "A device that is busy all the same hides its launches behind its work.",
        "Kernels that graphs replay are launched together already.",
        "Where idle time and work of such kernels are under 1 % of the window, they are listed "
        "as ruled out.",
    ),
    saving="The idle time of under 1 ms before kernels that could be part of the previous one, at "
    "least a quarter of it; and the part of the work of all such kernels that fusing saves, "
    "where the device is the limit. What launch-bound claims is not counted again.",
    fix=Fix(
        "Fuse kernels that follow each other.",
        f"{COMPILING}\n"
        "# also functions that are fused: F.scaled_dot_product_attention, F.rms_norm,\n"
        "# optimizers with fused=True or foreach=True",
        verify="In the next trace the Kernels view has fewer kernels per step, and longer ones.",
        caveats=("Products and convolutions are not fused with each other.",),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "launches", "clocks", "steps"}),
    priority="launches",
    is_general=True,
    after=("launch-bound", "tiny-batch-size"),
    links=(
        "generated/torch.compile.html",
        "/tutorials/recipes/recipes/tuning_guide.html#fuse-operations",
    ),
    origin="TraceLens short kernels; HTA's frequent kernel sequences",
    culprit="launching very short kernels",
)
