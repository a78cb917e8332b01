"""How the busiest devices were used on both sides, and why they were idle."""

from collections.abc import Callable, Iterable, Iterator

from stepscope.analyses.idle.ledger import CAUSES
from stepscope.base.findings import Unit
from stepscope.base.report import DeviceReport
from stepscope.comparison.messages import Change, Part
from stepscope.comparison.side import Together

Figure = Callable[[DeviceReport], float | None]
FIGURES: tuple[tuple[str, str, str, Unit, Figure], ...] = (
    (
        "busy_share",
        "Busy",
        "Of the window, in which the busiest device worked.",
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
        "Most that torch had taken from the device at once: reserved, or where that is not recorded"
        " allocated.",
        "bytes",
        lambda device: device.memory_peak_bytes,
    ),
)


def figures(before: Together, after: Together) -> tuple[Part, ...]:
    """Return the figures that both sides have: means over recordings of the busiest device."""
    return tuple(_figures(before, after))


def _figures(before: Together, after: Together) -> Iterator[Part]:
    for name, label, meaning, unit, figure in FIGURES:
        values = [_mean(figure(device) for device in _busiest(side)) for side in (before, after)]
        if values[0] is not None and values[1] is not None:
            change = Change(before=values[0], after=values[1], unit=unit)
            yield Part(id=name, label=label, meaning=meaning, change=change)


def _busiest(side: Together) -> Iterator[DeviceReport]:
    for recording in side.recordings:
        for worker in recording.advice.workers:
            if worker.devices:
                yield max(worker.devices, key=lambda device: device.busy_share)


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def idle(before: Together, after: Together) -> tuple[Part, ...]:
    """Return the busiest device's idle time a step by cause, the mean over recordings."""
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


def _idle(side: Together) -> dict[str, float]:
    sums: dict[str, float] = {}
    for recording in side.recordings:
        for worker in recording.advice.workers:
            for cause, idle_ns in worker.idle_ns.items():
                sums[cause] = sums.get(cause, 0.0) + idle_ns / len(side.recordings)
    return sums
