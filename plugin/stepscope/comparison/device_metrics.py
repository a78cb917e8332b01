"""Metrics of the busiest devices on both sides, and their idle time by cause."""

from collections.abc import Callable, Iterable, Iterator

from stepscope.analyses.idle.ledger import CAUSES
from stepscope.base.findings import Unit
from stepscope.base.report import DeviceReport
from stepscope.comparison.messages import Change, Part
from stepscope.comparison.side import SideSamples

Figure = Callable[[DeviceReport], float | None]
FIGURES: tuple[tuple[str, str, str, Unit, Figure], ...] = (
    (
        "busy_share",
        "Busy",
        "Fraction of the window in which the busiest device worked.",
        "share",
        lambda device: device.busy_share,
    ),
    (
        "sm_efficiency_share",
        "Multiprocessors used",
        "Blocks over multiprocessors, at most 1, weighted by duration.",
        "share",
        lambda device: device.sm_efficiency_share,
    ),
    (
        "occupancy_share",
        "Occupancy",
        "Estimated achieved occupancy, weighted by duration.",
        "share",
        lambda device: device.occupancy_share,
    ),
    (
        "tensor_core_share",
        "On matrix units",
        "Kernel time in kernels that use tensor cores or the like.",
        "share",
        lambda device: device.tensor_core_share,
    ),
    (
        "memory_peak_bytes",
        "Peak memory",
        "The most memory that torch had reserved on the device at once; allocated, where reserved"
        " memory was not recorded.",
        "bytes",
        lambda device: device.memory_peak_bytes,
    ),
)


def figures(before: SideSamples, after: SideSamples) -> tuple[Part, ...]:
    """Return the metrics that both sides have: means over traces of the busiest device."""
    return tuple(_figures(before, after))


def _figures(before: SideSamples, after: SideSamples) -> Iterator[Part]:
    for name, label, meaning, unit, figure in FIGURES:
        values = [_mean(figure(device) for device in _busiest(side)) for side in (before, after)]
        if values[0] is not None and values[1] is not None:
            change = Change(before=values[0], after=values[1], unit=unit)
            yield Part(id=name, label=label, meaning=meaning, change=change)


def _busiest(side: SideSamples) -> Iterator[DeviceReport]:
    for trace in side.traces:
        for worker in trace.advice.workers:
            if worker.devices:
                yield max(worker.devices, key=lambda device: device.busy_share)


def _mean(values: Iterable[float | None]) -> float | None:
    numbers = [value for value in values if value is not None]
    return sum(numbers) / len(numbers) if numbers else None


def idle(before: SideSamples, after: SideSamples) -> tuple[Part, ...]:
    """Return the busiest device's idle time per step by cause, the mean over traces."""
    sides = [_idle(side) for side in (before, after)]
    causes = dict.fromkeys([*sides[0], *sides[1]])
    return tuple(
        Part(
            id=cause,
            label=CAUSES[cause][0],
            meaning=CAUSES[cause][1],
            change=Change(
                before=sides[0].get(cause, 0.0), after=sides[1].get(cause, 0.0), unit="ns"
            ),
        )
        for cause in causes
    )


def _idle(side: SideSamples) -> dict[str, float]:
    sums: dict[str, float] = {}
    for trace in side.traces:
        for worker in trace.advice.workers:
            for cause, idle_ns in worker.idle_ns.items():
                sums[cause] = sums.get(cause, 0.0) + idle_ns / len(side.traces)
    return sums
