"""Counters on the timeline: device use, queues, memory, and recorded values over time."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.counter_table import TRACK, counter_table
from stepscope.analyses.core.device_activity import whole_activity
from stepscope.analyses.devices.device_metrics import capped_sums
from stepscope.analyses.devices.memory_bandwidth import MEMORY_SET, memory_rates
from stepscope.analyses.devices.queue_length import queues
from stepscope.analyses.memory.curve import memory_curves
from stepscope.analyses.timeline.tiles import TILE_PIXELS, require
from stepscope.analyses.timeline.tracks import ThreadNames, Track, TrackSubject, device_owner
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.arrays import Floats, Ints
from stepscope.model.frames.copies import SIZES
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

BUCKET_PIXELS = 4
BUCKETS = TILE_PIXELS // BUCKET_PIXELS
IDLE_ORDER, COUNTER_ORDER = 5, 6
COUNTER_BEHIND_THREADS = 9
EFFICIENCY = ("SM efficiency", "blocks over multiprocessors, at most 1", "share")
MOST_RECORDED = 200
"""Limit of tracks of recorded counters; the table of counters has all."""
Series = tuple[Ints, Floats]
"""Times of samples, in order, and their values; a value holds until the next sample."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CounterTile:
    """A counter in `BUCKETS` equal times; NaN if no value is known."""

    bucket_ns: int
    start_ns: int
    least: Floats
    most: Floats
    last: Floats
    least_of_all: float
    most_of_all: float


def counter_tracks(trace: Trace, names: ThreadNames, devices: list[int]) -> Iterator[Track]:
    """Yield the tracks of counters, without their values."""
    yield from _of_devices(trace, devices)
    yield from _of_memory(trace, names, devices)
    yield from _recorded_tracks(trace, names)


def _of_devices(trace: Trace, devices: list[int]) -> Iterator[Track]:
    kinds = np.bincount(trace.source.kinds, minlength=max(Kind) + 1)
    is_linked = kinds[Kind.RUNTIME_CALL] and trace.source.has("correlation", "connection_id")
    has_sizes = kinds[Kind.COPY] and any(map(trace.source.has, SIZES))
    has_blocks = kinds[Kind.KERNEL] and trace.source.has("blocks per SM")
    for device in devices:
        counters = {
            "busy": ("Busy", "fraction of the time in which anything ran", "share"),
            **({"efficiency": EFFICIENCY} if has_blocks else {}),
            **({"queue": ("Queue", "launched and not begun", "count")} if is_linked else {}),
            **(
                {"copies": ("Copy bandwidth", "all copies together", "bytes/s")}
                if has_sizes
                else {}
            ),
        }
        for position, (subject, (label, detail, unit)) in enumerate(counters.items()):
            yield Track(
                kind="counter",
                label=label,
                detail=detail,
                unit=unit,
                owner=device_owner(trace, device),
                order=(COUNTER_ORDER, position, ""),
                subject=TrackSubject(kind=subject, device=device),
            )


def _of_memory(trace: Trace, names: ThreadNames, devices: list[int]) -> Iterator[Track]:
    try:
        curves = memory_curves(trace)
    except MissingDataError:
        return
    for part, curve in enumerate(curves):
        number = curve.device.number
        owner = device_owner(trace, number) if number in devices else names.main_owner()
        order = COUNTER_ORDER if number in devices else COUNTER_BEHIND_THREADS
        for position, subject in enumerate(("allocated", "reserved")):
            if subject == "reserved" and np.isnan(curve.reserved_bytes).all():
                continue
            yield Track(
                kind="counter",
                label=f"{curve.device.label} memory {subject}",
                detail="" if curve.has_totals else "change since the start of the trace",
                unit="bytes",
                owner=owner,
                order=(order, 3 + position, f"{part:6}"),
                subject=TrackSubject(kind=subject, device=number, part=part),
            )


def _recorded_tracks(trace: Trace, names: ThreadNames) -> Iterator[Track]:
    if not len(trace.counters):
        return
    table = counter_table(trace).head(MOST_RECORDED)
    keys = ("name", "series", "process", "device", "unit", "derived_by")
    for part, row in enumerate(zip(*(table[key].tolist() for key in keys), strict=True)):
        name, series, process, device, unit, maker = row
        is_device = device is not None and device >= 0
        yield Track(
            kind="counter",
            label=str(name) if series in {None, name, "value"} else f"{name}: {series}",
            detail=f"derived by {maker}" if maker else "recorded",
            unit=unit or "",
            owner=device_owner(trace, device) if is_device else names.owner(str(process or "")),
            order=(COUNTER_ORDER if is_device else COUNTER_BEHIND_THREADS, 9, f"{part:6}"),
            subject=TrackSubject(kind="recorded", part=part),
        )


def counter_tile(trace: Trace, track: Track, level: int, number: int) -> CounterTile:
    """Return a counter's values in a tile.

    Raises:
        UsageError: there is no such level or tile.
        UnknownNameError: the track is no counter.
    """
    start_ns, _ = require(level, number)
    subject = track.subject
    if track.kind != "counter" or subject is None:
        msg = f"track {track.id} is no counter"
        raise UnknownNameError(msg)
    bucket_ns = BUCKET_PIXELS << level
    edges = start_ns + np.arange(BUCKETS + 1, dtype=np.int64) * bucket_ns
    if subject.kind == "busy":
        activity = next(
            activity for activity in whole_activity(trace) if activity.device == subject.device
        )
        return _shares(busy_share(activity.busy, edges), edges)
    if subject.kind == "efficiency":
        return _shares(_mean_efficiency(trace, subject.device, edges), edges)
    times, values = _SERIES[subject.kind](trace).get((subject.device, subject.part), NO_SERIES)
    return _sampled(times, values, edges)


def _shares(share: Floats, edges: Ints) -> CounterTile:
    return CounterTile(
        bucket_ns=int(edges[1] - edges[0]),
        start_ns=int(edges[0]),
        least=share,
        most=share,
        last=share,
        least_of_all=0.0,
        most_of_all=1.0,
    )


def busy_share(busy: Intervals, edges: Ints) -> Floats:
    """Return the fraction of the time between two edges that a time set covers; NaN outside it."""
    covered = intervals.covered_ns(busy, edges[:-1], edges[1:])
    share = covered / (edges[1] - edges[0])
    if len(busy):
        outside = (edges[1:] <= busy[0, 0]) | (edges[:-1] >= busy[-1, 1])
        share[outside] = np.nan
    return np.asarray(share)


@computed
def _efficiency(trace: Trace) -> dict[int, tuple[Ints, Floats]]:
    """Return starts and ends of kernels by device, and the capped sum of blocks until then."""
    kernels, sums_by_device = trace.kernels, {}
    kernels_with_blocks = kernels[kernels["blocks_per_sm"].to_numpy() > 0]
    for device in np.unique(kernels_with_blocks["device"].to_numpy()).tolist():
        rows = kernels_with_blocks[kernels_with_blocks["device"].to_numpy() == device]
        sums_by_device[device] = capped_sums(
            rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy(), rows["blocks_per_sm"].to_numpy()
        )
    return sums_by_device


def _mean_efficiency(trace: Trace, device: int, edges: Ints) -> Floats:
    if device not in (by_device := _efficiency(trace)):
        return np.full(len(edges) - 1, np.nan)
    times, sums = by_device[device]
    share = np.diff(np.interp(edges, times, sums)) / np.diff(edges)
    share[(edges[1:] <= times[0]) | (edges[:-1] >= times[-1])] = np.nan
    return np.asarray(np.clip(share, 0.0, 1.0))


def _sampled(times: Ints, values: Floats, edges: Ints) -> CounterTile:
    """Return the values of a counter between edges: a value holds until the next sample."""
    first = np.searchsorted(times, edges, side="left")
    low, high = first[:-1], first[1:]
    previous = np.append(values, np.nan)[low - 1]  # 0 - 1 is the last: no value before
    begins_at_edge = np.append(times, -1)[np.minimum(low, len(times))] == edges[:-1]
    previous = np.where(begins_at_edge & (high > low), np.nan, previous)
    least, most, last = previous.copy(), previous.copy(), previous.copy()
    filled = np.flatnonzero(high > low)
    if len(filled):
        used = values[low[filled[0]] : high[filled[-1]]]
        at = low[filled] - low[filled[0]]
        least[filled] = np.fmin(previous[filled], np.minimum.reduceat(used, at))
        most[filled] = np.fmax(previous[filled], np.maximum.reduceat(used, at))
        last[filled] = values[high[filled] - 1]
    if len(times):
        over = edges[:-1] > times[-1]
        least[over], most[over], last[over] = np.nan, np.nan, np.nan
    return CounterTile(
        bucket_ns=int(edges[1] - edges[0]),
        start_ns=int(edges[0]),
        least=least,
        most=most,
        last=last,
        least_of_all=float(values.min()) if len(values) else np.nan,
        most_of_all=float(values.max()) if len(values) else np.nan,
    )


NO_SERIES: Series = np.zeros(0, dtype=np.int64), np.zeros(0)
SeriesByKey = Mapping[tuple[int, int], Series]
"""By device and part."""


def _memory(trace: Trace, curve_values: str) -> SeriesByKey:
    series: dict[tuple[int, int], Series] = {}
    for part, curve in enumerate(memory_curves(trace)):
        values: Floats = getattr(curve, curve_values)
        is_number = ~np.isnan(values)
        series[curve.device.number, part] = curve.time_ns[is_number], values[is_number]
    return series


@computed
def queue_counter(trace: Trace) -> SeriesByKey:
    """Return the number of launched kernels that have not begun, by device."""
    queue = queues(trace)
    device = np.array([device for device, _ in queue.streams], dtype=np.int64)
    changes = queue.changes
    return _together(device[changes.group], changes.group, changes.time_ns, changes.level)


@computed
def _copies(trace: Trace) -> SeriesByKey:
    rates = memory_rates(trace)
    device = np.array([device for device, _ in rates.kinds], dtype=np.int64)
    is_copy = np.array([kind != MEMORY_SET for _, kind in rates.kinds], dtype=bool)
    changes = rates.changes
    rows = np.flatnonzero(is_copy[changes.group]) if len(is_copy) else changes.group[:0]
    kind = changes.group[rows]
    return _together(device[kind], kind, changes.time_ns[rows], changes.level[rows])


def _together(device: Ints, part: Ints, time_ns: Ints, level: Ints) -> SeriesByKey:
    """Return the sum over the parts of each device; rows are ordered by part, then time."""
    change = level.copy()
    same = part[1:] == part[:-1]
    change[1:][same] -= level[:-1][same]
    series: dict[tuple[int, int], Series] = {}
    for number in np.unique(device).tolist():
        rows = np.flatnonzero(device == number)
        rows = rows[np.argsort(time_ns[rows], kind="stable")]
        times, total = time_ns[rows], np.cumsum(change[rows])
        is_last = np.append(times[1:] != times[:-1], np.ones(min(1, len(times)), dtype=bool))
        series[number, -1] = times[is_last], total[is_last].astype(np.float64)
    return series


@computed
def _recorded(trace: Trace) -> SeriesByKey:
    samples, table = trace.counters, counter_table(trace).head(MOST_RECORDED)
    group, first = group_statistics.group_rows(samples, TRACK)
    by_key = {
        tuple(_key(samples[key].iloc[row]) for key in TRACK): number
        for number, row in enumerate(first.tolist())
    }
    times, values = samples["start_ns"].to_numpy(), samples["value"].to_numpy()
    series: dict[tuple[int, int], Series] = {}
    for part in range(len(table)):
        number = by_key[tuple(_key(table[key].iloc[part]) for key in TRACK)]
        rows = np.flatnonzero(group == number)
        series[-1, part] = times[rows], values[rows]
    return series


def _key(value: object) -> object:
    """Return a key that is equal for missing values of any type."""
    return None if value is None or value != value else value  # noqa: PLR0124 - NaN is not itself


_SERIES: Mapping[str, Callable[[Trace], SeriesByKey]] = {
    "allocated": lambda trace: _memory(trace, "level_bytes"),
    "reserved": lambda trace: _memory(trace, "reserved_bytes"),
    "queue": queue_counter,
    "copies": _copies,
    "recorded": _recorded,
}


def idle_track(trace: Trace, device: int) -> Track:
    """Return the track of a device's idle times, by cause."""
    return Track(
        kind="idle",
        label="Idle",
        detail="by cause",
        owner=device_owner(trace, device),
        order=(IDLE_ORDER, 0, ""),
        row_count=1,
        subject=TrackSubject(kind="idle", device=device),
    )
