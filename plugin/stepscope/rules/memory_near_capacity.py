"""The device's memory is nearly full."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import requirements
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.memory.at_peak import memory_peak_table
from stepscope.analyses.memory.curve import memory_curves
from stepscope.analyses.memory.holders import memory_holders
from stepscope.analyses.memory.memory_devices import REMEDY
from stepscope.analyses.memory.memory_report import memory_ooms
from stepscope.base.findings import Evidence, EvidenceTable, Unit
from stepscope.base.formatting import count, share, size
from stepscope.rules import Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts

MOST_ROWS = 10


class Options(Thresholds):
    """Threshold of reserved memory."""

    least_share: float = option(
        0.90,
        "Fraction of the device's memory that torch reserved at most (before torch 1.10: that "
        "the trace shows as allocated).",
        origin="torch-tb-profiler: more than 90 % is at the limit",
    )


@dataclass(frozen=True, kw_only=True)
class _Fullest:
    """The device with the largest fraction of memory in use."""

    type: str
    number: int
    reserved_bytes: float
    """NaN: not known."""
    allocated_bytes: float
    """At the peak; where there are no totals, at least so much."""
    capacity_bytes: float
    has_totals: bool

    @property
    def label(self) -> str:
        """The device's name on the page."""
        return f"{self.type} {self.number}"

    @property
    def used_bytes(self) -> float:
        """Memory that the process has reserved, or allocated where not recorded."""
        return float(np.fmax(self.reserved_bytes, self.allocated_bytes))

    @property
    def used_share(self) -> float:
        """The same, as a fraction of the capacity."""
        return self.used_bytes / self.capacity_bytes


def check(trace: Trace, options: Options) -> Results:
    """Report the fullest device, where it is nearly full."""
    requirements.main_device(trace)
    full, ooms = _fullest(trace), len(memory_ooms(trace))
    if full.used_share < options.least_share and not ooms:
        requirements.conclusive_if(
            full.has_totals,
            "torch before 1.10 does not record how much is allocated in total",
            "pip install --upgrade torch",
        )
        return
    is_tight = ooms > 0 or full.allocated_bytes >= options.least_share * full.capacity_bytes
    finding = Finding(
        severity="warning" if is_tight else "info",
        confidence="high" if full.has_totals else "medium",
        message=_message(full, ooms, is_tight=is_tight),
        evidence=tuple(_evidence(full, ooms)),
        tables=_holders(trace, full),
        fix=_fix(trace),
        subject=full.label,
    )
    is_server = not ooms and not is_training(trace)
    if is_server and _reserved_before(trace, full) >= options.least_share:
        text = (
            f"{full.label} is {share(full.used_share)} full, but that was reserved before "
            "recording began, and nothing trains: a server takes its memory in advance, by design."
        )
        yield RuledOut(message=text, evidence=finding.evidence)
        return
    yield finding


def _fullest(trace: Trace) -> _Fullest:
    table = memory_peak_table(trace)
    of_device = table["device_type"].astype(object) != "CPU"
    requirements.conclusive_if(of_device.any(), "no memory of a device was recorded", REMEDY)
    sized = table[of_device & ~np.isnan(table["capacity_bytes"])]
    requirements.conclusive_if(
        len(sized),
        "how much memory the device has was not recorded",
        "prof.export_chrome_trace(path)  # of torch 1.8.1 or later",
    )
    return max((_of(row) for row in sized.to_dict("records")), key=lambda device: device.used_share)


def _of(row: dict[Any, Any]) -> _Fullest:
    has_totals = not np.isnan(row["allocated_bytes"])
    return _Fullest(
        type=str(row["device_type"]),
        number=int(row["device"]),
        reserved_bytes=row["most_reserved_bytes"],
        allocated_bytes=row["allocated_bytes"] if has_totals else float(row["change_bytes"]),
        capacity_bytes=row["capacity_bytes"],
        has_totals=has_totals,
    )


def _reserved_before(trace: Trace, full: _Fullest) -> float:
    """Return the fraction of the reserved memory that was reserved before recording began."""
    for curve in memory_curves(trace):
        if (curve.device.type, curve.device.number) == (full.type, full.number):
            sized = curve.reserved_bytes[~np.isnan(curve.reserved_bytes)]
            return float(sized[0] / full.reserved_bytes) if len(sized) else 0.0
    return 0.0


def _message(full: _Fullest, ooms: int, *, is_tight: bool) -> str:
    least = "" if full.has_totals else "at least "
    state = "ran out of memory" if ooms else "is nearly full"
    text = (
        f"{full.label} {state}: {least}{size(full.used_bytes)} of "
        f"{size(full.capacity_bytes)} ({share(full.used_share)})."
    )
    if full.has_totals and not np.isnan(full.reserved_bytes):
        text += f" Tensors take at most {size(full.allocated_bytes)} of that"
        text += "." if is_tight else "; the rest is torch's cache, which it can release."
    if ooms:
        text += f" That happened {count(ooms, 'time')}."
    return text


def _evidence(full: _Fullest, ooms: int) -> Iterator[Evidence]:
    yield facts.fraction("Fraction of the device's memory in use", full.used_share)
    if not np.isnan(full.reserved_bytes):
        yield facts.size("Reserved at most", int(full.reserved_bytes))
    yield facts.size("Allocated at the peak", int(full.allocated_bytes))
    yield facts.size("Device memory", int(full.capacity_bytes))
    yield facts.count("Out of memory in total", ooms)


def _holders(trace: Trace, full: _Fullest) -> tuple[EvidenceTable, ...]:
    """Return the operators that allocated the memory in use at the peak, where that is known."""
    table = memory_holders(trace)
    rows = table[(table["device_type"] == full.type) & (table["device"] == full.number)]
    shown = rows[["holder", "origin", "held_bytes", "peak_share"]].head(MOST_ROWS).astype(object)
    columns: dict[str, Unit] = {
        "Operator": "text",
        "Allocated": "text",
        "In use": "bytes",
        "Fraction of the peak": "share",
    }
    return (facts.table("Memory in use at the peak, by operator", columns, shown, "operators"),)


def _fix(trace: Trace) -> Fix:
    module = trace.dialect.terms.get("module", "cuda")
    if is_training(trace):
        return replace(FIX, code=FIX.code.replace('"cuda"', f'"{module}"'))
    return Fix(
        "Use less memory at once, or limit what the server reserves.",
        "with torch.inference_mode():    # keeps nothing for a backward pass\n"
        "    outputs = [model(part).cpu() for part in batch.split(8)]",
        verify=FIX.verify,
        caveats=("A cache of keys and values grows with the batch and the length.",),
    )


FIX = Fix(
    "Keep less for the backward pass, keep it in 16 bits, or shard it.",
    "x = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)\n"
    'with torch.autocast("cuda", dtype=torch.bfloat16):\n'
    "    loss = model(batch)\n"
    "torch.distributed.fsdp.fully_shard(model)    # with several devices",
    verify="In Memory, torch reserves at most 90 % of the device's memory.",
    caveats=(
        "Checkpointing computes the forward pass twice; fewer samples per step cost nothing else.",
        "A device that is nearly full and never fails is well used: this only warns of the risk.",
    ),
)

RULE = Rule(
    id="memory-near-capacity",
    title="The device's memory is nearly full",
    passed="The device has free memory",
    category="memory",
    why="A longer sequence, a larger batch or an evaluation in between may run it out of memory. "
    "Close to the limit torch's allocator also frees segments and allocates them again, which "
    "waits for the device.",
    detects="Compares the most that torch reserved on the fullest device with its memory "
    "(deviceProperties.totalGlobalMem). It reports from `least_share` on, and where the trace "
    "contains an out-of-memory event. It warns in that case, and where the tensors alone take "
    "`least_share`.",
    silent=(
        "Nothing trains and the memory was reserved before recording began: servers take theirs "
        "in advance.",
    ),
    saving="None is claimed: it costs memory, not time.",
    fix=FIX,
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"memory"}),
    priority="program",
    links=("checkpoint.html", "notes/cuda.html#memory-management"),
    origin="torch-tb-profiler's memory limit, without servers' memory",
)
