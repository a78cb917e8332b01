"""Utilization of each device: busy time, multiprocessors, warps, matrix units, memory.

`busy_share` is of the window, and counts whatever the device did. The other shares of time are
torch-tb-profiler's: of the span from the first step's start to the last step's end, where a step
reaches to the end of the device work launched in it (`event_parser.py`), and of kernels alone
(`gpu_metrics_parser.py`). Its GPU Utilization is `kernel_busy_share`.

A kernel with less than one block per multiprocessor leaves some idle. Kineto writes the ratio
(`blocks per SM`); negative and absurd values count as missing. Collectives are left out: few
blocks are enough for them.
"""

from dataclasses import dataclass

import msgspec
import numpy as np
import pandas as pd

from stepscope.analyses.core.device_activity import DeviceActivity, device_activity
from stepscope.analyses.core.memory_peak import device_properties, memory_peak
from stepscope.analyses.core.window import window
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base import formatting
from stepscope.base.report import DeviceReport
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

MAY_BE_MISSING = (
    "sm_efficiency_share",
    "occupancy_share",
    "tensor_core_share",
    "memory_peak_bytes",
    "memory_capacity_bytes",
)
WORTH_A_NOTE = 0.005
NOT_RECORDED = (
    "The kernels of this recording do not say how they filled the device: torch 1.9 and later"
    " write it when ProfilerActivity includes the device."
)
NEVER_ABOVE_ZERO = "Every kernel of this recording reports 0, which means that it is not known."
VENDOR_DOES_NOT_TELL = (
    "This device's profiler does not report how kernels fill it; no setting records it."
)


@computed
def device_metrics(trace: Trace) -> tuple[DeviceReport, ...]:
    """Return the figures of every device that did anything, by its number."""
    start_ns, end_ns = stepped_span(trace)
    busy_ns = window(trace).duration_ns
    return tuple(
        _metrics(trace, activity, start_ns, end_ns, busy_ns) for activity in device_activity(trace)
    )


def device_metrics_in(trace: Trace, start_ns: int, end_ns: int) -> tuple[DeviceReport, ...]:
    """Return the figures of every device in `[start_ns, end_ns)`; peak memory is the trace's."""
    reports = (
        _metrics(trace, activity.clipped(start_ns, end_ns), start_ns, end_ns, end_ns - start_ns)
        for activity in device_activity(trace)
    )
    return tuple(
        report
        if report.memory_peak_bytes is None
        else msgspec.structs.replace(
            report, notes=report.notes | {"memory_peak_bytes": "Of the whole trace."}
        )
        for report in reports
    )


def stepped_span(trace: Trace) -> tuple[int, int]:
    """Return the first step's start and the last step's end, steps reaching to their device work.

    Without steps it is the window.
    """
    steps = step_breakdown(trace)
    if not len(steps.start_ns):
        return window(trace).device_start_ns, window(trace).device_end_ns
    return int(steps.start_ns[0]), int((steps.start_ns + steps.duration_ns).max())


def _metrics(
    trace: Trace, activity: DeviceActivity, start_ns: int, end_ns: int, busy_window_ns: int
) -> DeviceReport:
    """Return figures over `[start_ns, end_ns)`; the busy time over its own window."""
    kernels = trace.kernels[trace.kernels["device"].to_numpy() == activity.device]
    in_span = _KernelsInSpan(kernels, start_ns, end_ns)
    memory = memory_peak(trace).get(activity.device)
    report = DeviceReport(
        id=activity.device,
        name=_name(trace, activity.device),
        busy_share=_share(intervals.duration_ns(activity.busy), busy_window_ns),
        kernel_busy_share=_share(
            intervals.duration_ns(intervals.clip(activity.kernels, start_ns, end_ns)),
            end_ns - start_ns,
        ),
        sm_efficiency_share=in_span.sm_efficiency(),
        occupancy_share=in_span.occupancy(),
        tensor_core_share=in_span.matrix_unit_share(trace),
        memory_peak_bytes=memory.peak_bytes if memory else None,
        memory_capacity_bytes=memory.capacity_bytes if memory else None,
        notes={},
    )
    missing = [figure for figure in MAY_BE_MISSING if getattr(report, figure) is None]
    has_kernels = bool(len(in_span))
    notes = {
        figure: _why_missing(trace, report.id, figure, has_kernels=has_kernels)
        for figure in missing
    }
    if (
        "tensor_core_share" not in notes
        and (unknown_share := in_span.unknown_share(trace)) >= WORTH_A_NOTE
    ):
        notes["tensor_core_share"] = _partly_recorded(trace, unknown_share)
    return msgspec.structs.replace(report, notes=notes)


def _partly_recorded(trace: Trace, unknown_share: float) -> str:
    unit = trace.dialect.matrix_unit
    return (
        f"At least: for {formatting.share(unknown_share)} of the kernel time, kernel names do not"
        f" show whether {unit}s are used, as Triton's do not."
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


def _name(trace: Trace, device: int) -> str:
    recorded = device_properties(trace).get(device, {}).get("name")
    has_name = isinstance(recorded, str) and recorded
    return str(recorded) if has_name else f"{trace.dialect.device} {device}"


class _KernelsInSpan:
    """The kernels of one device, cut to a span."""

    def __init__(self, kernels: pd.DataFrame, start_ns: int, end_ns: int) -> None:
        start = np.maximum(kernels["start_ns"].to_numpy(), start_ns)
        end = np.minimum(kernels["end_ns"].to_numpy(), end_ns)
        inside = end > start
        self.kernels = kernels[inside]
        self.start_ns, self.end_ns = start[inside], end[inside]
        self.duration_ns = self.end_ns - self.start_ns
        self.span_ns = end_ns - start_ns

    def __len__(self) -> int:
        return len(self.kernels)

    def sm_efficiency(self) -> float | None:
        """Return the mean of min(1, blocks per multiprocessor of all kernels at that time)."""
        blocks = self.kernels["blocks_per_sm"].to_numpy()
        reported = blocks > 0
        if not reported.any() or self.span_ns <= 0:
            return None
        return (
            capped_sum_ns(self.start_ns[reported], self.end_ns[reported], blocks[reported])
            / self.span_ns
        )

    def occupancy(self) -> float | None:
        """Return the mean occupancy of the kernels that report one, weighted by duration."""
        occupancy = self.kernels["occupancy_share"].to_numpy()
        reported = occupancy > 0
        if not reported.any():
            return None
        return float(np.average(occupancy[reported], weights=self.duration_ns[reported]))

    def matrix_unit_share(self, trace: Trace) -> float | None:
        """Return the least fraction of kernel time on matrix units.

        Kernels whose names do not show it count as not using them; None where no name shows it.
        """
        reported = name_mask(self.kernels["name"], lambda name: _tells(trace, name))
        if not reported.any():
            return None
        used = name_mask(self.kernels["name"], trace.dialect.uses_matrix_unit)
        return float(self.duration_ns[used].sum() / self.duration_ns.sum())

    def unknown_share(self, trace: Trace) -> float:
        """Return the fraction of kernel time in kernels whose names do not show it."""
        reported = name_mask(self.kernels["name"], lambda name: _tells(trace, name))
        return float(self.duration_ns[~reported].sum() / max(1, self.duration_ns.sum()))


def _tells(trace: Trace, kernel: str) -> bool:
    return trace.dialect.uses_matrix_unit(kernel) is not None


def capped_sum_ns(start_ns: Ints, end_ns: Ints, value: Floats) -> float:
    """Return the integral over time of min(1, sum of the values of the intervals active then)."""
    _, sums = capped_sums(start_ns, end_ns, value)
    return float(sums[-1])


def capped_sums(start_ns: Ints, end_ns: Ints, value: Floats) -> tuple[Ints, Floats]:
    """Return when intervals begin and end, in order, and the same integral until each of them."""
    time = np.concatenate((start_ns, end_ns))
    change = np.concatenate((value, -value))
    order = np.argsort(time, kind="stable")
    level = np.cumsum(change[order])[:-1]
    sums = np.cumsum(np.clip(level, 0.0, 1.0) * np.diff(time[order]))
    return time[order], np.append(0.0, sums)


def _why_missing(trace: Trace, device: int, figure: str, *, has_kernels: bool) -> str:
    """Return the reason that a metric is missing, and the remedy."""
    name = f"{trace.dialect.device} {device}"
    if figure == "memory_capacity_bytes":
        return f"The trace's deviceProperties hold no memory size for {name}."
    if figure == "memory_peak_bytes":
        return _why_no_memory(trace, device)
    if not has_kernels:
        return f"No kernel ran on {name} within the steps."
    return _why_kernels_do_not_tell(trace, figure)


def _why_kernels_do_not_tell(trace: Trace, figure: str) -> str:
    dialect = trace.dialect
    if figure == "tensor_core_share":
        units = f"{dialect.matrix_unit}s"
        return f"The kernel names of this {dialect.device} do not tell which use {units}."
    if not dialect.records_occupancy:
        return VENDOR_DOES_NOT_TELL
    column = "occupancy_share" if figure == "occupancy_share" else "blocks_per_sm"
    return NEVER_ABOVE_ZERO if trace.kernels[column].notna().any() else NOT_RECORDED


def _why_no_memory(trace: Trace, device: int) -> str:
    if not len(trace.memory):
        return "No allocation was recorded: use torch.profiler.profile(profile_memory=True)."
    codes = trace.memory["device_type_code"]
    on_device = trace.memory[codes.isin(list(trace.dialect.memory_device_types))]
    others = sorted({int(number) for number in on_device["device"]})
    if device in others:
        return "The recording has allocations but no totals: torch 1.10 and later write them."
    if others:
        listed = ", ".join(str(number) for number in others)
        return (
            f"Allocations were recorded for device {listed} only. Visible and physical numbers"
            " differ where devices were hidden from the process, so they are not matched."
        )
    return "Only allocations on the host were recorded."


MOST_BLOCKS = 1e6
"""Blocks a multiprocessor above which the figure is no measurement."""


@dataclass(frozen=True, kw_only=True, eq=False)
class GridSizes:
    """One device's kernels with recorded grids; all arrays are parallel."""

    rows: Ints
    """Rows of `Trace.kernels`."""
    blocks: Floats
    """Blocks a multiprocessor."""
    duration_ns: Ints
    on_matrix_unit: Mask
    """Whether its name says that it multiplies matrices on matrix units: such kernels often have
    as few blocks as fill them, and work long in each."""

    @property
    def is_small(self) -> Mask:
        """Whether each has less than one block per multiprocessor."""
        return self.blocks < 1

    @property
    def small_share(self) -> float | None:
        """Fraction of kernel time in small kernels; None where no grid was recorded."""
        return self._of_time(self.is_small.astype(float))

    @property
    def small_matrix_share(self) -> float | None:
        """Share of kernel time in small kernels that run on matrix units."""
        return self._of_time((self.is_small & self.on_matrix_unit).astype(float))

    @property
    def small_idle_share(self) -> float:
        """Mean share of the multiprocessors without a block while a small kernel runs."""
        duration_ns, blocks = self.duration_ns[self.is_small], self.blocks[self.is_small]
        return float((duration_ns * (1 - blocks)).sum() / max(1, duration_ns.sum()))

    @property
    def filled_share(self) -> float | None:
        """Mean share of the multiprocessors that have a block while a kernel runs."""
        return self._of_time(np.minimum(self.blocks, 1))

    def _of_time(self, weight: Floats) -> float | None:
        total_ns = self.duration_ns.sum()
        return float((self.duration_ns * weight).sum() / total_ns) if total_ns else None


def grid_sizes(trace: Trace, device: int) -> GridSizes:
    """Return the kernels of a device with recorded numbers of blocks."""
    kernels = trace.kernels
    blocks = kernels["blocks_per_sm"].to_numpy()
    is_plausible = (blocks >= 0) & (blocks <= MOST_BLOCKS) & ~kernels["is_collective"].to_numpy()
    rows = np.flatnonzero(is_plausible & (kernels["device"] == device).to_numpy())
    on_unit = name_mask(kernels["name"], trace.dialect.uses_matrix_unit)
    return GridSizes(
        rows=rows,
        blocks=blocks[rows],
        duration_ns=kernels["duration_ns"].to_numpy()[rows],
        on_matrix_unit=on_unit[rows],
    )
