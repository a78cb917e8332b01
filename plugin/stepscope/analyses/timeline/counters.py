"""Values over time beside the slices: how busy a device was, queues, memory, and recorded ones."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import group_statistics
from stepscope.analyses.core.counter_table import TRACK, counter_table
from stepscope.analyses.core.device_activity import whole_activity
from stepscope.analyses.devices.device_metrics import capped_sums
from stepscope.analyses.devices.memory_bandwidth import MEMORY_SET, memory_rates
from stepscope.analyses.devices.queue_length import queues
from stepscope.analyses.memory.curve import memory_curves
from stepscope.analyses.timeline.tiles import TILE_PIXELS, require
from stepscope.analyses.timeline.track_names import ThreadNames, device_owner
from stepscope.analyses.timeline.tracks import Track, TrackSubject
from stepscope.base.errors import MissingDataError, UnknownNameError
from stepscope.dialects import Kind
from stepscope.model import intervals
from stepscope.model.frames.copies import SIZES
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

BUCKET_PIXELS = 4
BUCKETS = TILE_PIXELS // BUCKET_PIXELS
IDLE_ORDER, COUNTER_ORDER = 5, 6
COUNTER_BEHIND_THREADS = 9
EFFICIENCY = ("SM efficiency", "blocks over multiprocessors, at most 1", "share")
MOST_RECORDED = 200
"""Recorded counters that get a track; more are in the table of counters."""
Numbers = NDArray[np.int64]
Values = NDArray[np.float64]
Series = tuple[Numbers, Values]
"""When samples were taken, in order, and what they are; each holds until the next."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CounterTile:
    """A counter in `BUCKETS` equal times; NaN where no value is known."""

    bucket_ns: int
    start_ns: int
    least: Values
    most: Values
    last: Values
    least_of_all: float
    most_of_all: float


def counter_tracks(trace: Trace, words: ThreadNames, devices: list[int]) -> Iterator[Track]:
    """Yield the tracks of counters, without working out what they hold."""
    yield from _of_devices(trace, devices)
    yield from _of_memory(trace, words, devices)
    yield from _recorded_tracks(trace, words)


def _of_devices(trace: Trace, devices: list[int]) -> Iterator[Track]:
    kinds = np.bincount(trace.source.kinds, minlength=max(Kind) + 1)
    is_linked = kinds[Kind.RUNTIME_CALL] and trace.source.has("correlation", "connection_id")
    has_sizes = kinds[Kind.COPY] and any(map(trace.source.has, SIZES))
    has_blocks = kinds[Kind.KERNEL] and trace.source.has("blocks per SM")
    for device in devices:
        about = {
            "busy": ("Busy", "share of the time in which anything ran", "share"),
            **({"efficiency": EFFICIENCY} if has_blocks else {}),
            **({"queue": ("Queue", "work launched and not begun", "count")} if is_linked else {}),
            **(
                {"copies": ("Copy bandwidth", "all copies together", "bytes/s")}
                if has_sizes
                else {}
            ),
        }
        for place, (subject, (label, detail, unit)) in enumerate(about.items()):
            yield Track(
                kind="counter",
                label=label,
                detail=detail,
                unit=unit,
                owner=device_owner(trace, device),
                order=(COUNTER_ORDER, place, ""),
                about=TrackSubject(subject=subject, device=device),
            )


def _of_memory(trace: Trace, words: ThreadNames, devices: list[int]) -> Iterator[Track]:
    try:
        curves = memory_curves(trace)
    except MissingDataError:
        return
    for part, curve in enumerate(curves):
        number = curve.device.number
        owner = device_owner(trace, number) if number in devices else words.main_owner()
        order = COUNTER_ORDER if number in devices else COUNTER_BEHIND_THREADS
        for place, subject in enumerate(("allocated", "reserved")):
            if subject == "reserved" and np.isnan(curve.reserved_bytes).all():
                continue
            yield Track(
                kind="counter",
                label=f"{curve.device.label} memory {subject}",
                detail="" if curve.has_totals else "change since the recording began",
                unit="bytes",
                owner=owner,
                order=(order, 3 + place, f"{part:6}"),
                about=TrackSubject(subject=subject, device=number, part=part),
            )


def _recorded_tracks(trace: Trace, words: ThreadNames) -> Iterator[Track]:
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
            detail=f"worked out by {maker}" if maker else "recorded",
            unit=unit or "",
            owner=device_owner(trace, device) if is_device else words.owner(str(process or "")),
            order=(COUNTER_ORDER if is_device else COUNTER_BEHIND_THREADS, 9, f"{part:6}"),
            about=TrackSubject(subject="recorded", part=part),
        )


def counter_tile(trace: Trace, track: Track, level: int, number: int) -> CounterTile:
    """Return a counter's values in a tile.

    Raises:
        UsageError: there is no such level or tile.
        UnknownNameError: the track is no counter.
    """
    start_ns, _ = require(level, number)
    about = track.about
    if track.kind != "counter" or about is None:
        msg = f"track {track.id} is no counter"
        raise UnknownNameError(msg)
    bucket_ns = BUCKET_PIXELS << level
    edges = start_ns + np.arange(BUCKETS + 1, dtype=np.int64) * bucket_ns
    if about.subject == "busy":
        activity = next(each for each in whole_activity(trace) if each.device == about.device)
        return _shares(busy_share(activity.busy, edges), edges)
    if about.subject == "efficiency":
        return _shares(_mean_efficiency(trace, about.device, edges), edges)
    times, values = _SERIES[about.subject](trace).get((about.device, about.part), NO_SERIES)
    return _sampled(times, values, edges)


def _shares(share: Values, edges: Numbers) -> CounterTile:
    return CounterTile(
        bucket_ns=int(edges[1] - edges[0]),
        start_ns=int(edges[0]),
        least=share,
        most=share,
        last=share,
        least_of_all=0.0,
        most_of_all=1.0,
    )


def busy_share(busy: Intervals, edges: Numbers) -> Values:
    """Return which share of the time between two edges a time set covers; NaN outside of it."""
    covered = intervals.covered_ns(busy, edges[:-1], edges[1:])
    share = covered / (edges[1] - edges[0])
    if len(busy):
        outside = (edges[1:] <= busy[0, 0]) | (edges[:-1] >= busy[-1, 1])
        share[outside] = np.nan
    return np.asarray(share)


@computed
def _efficiency(trace: Trace) -> dict[int, tuple[Numbers, Values]]:
    """Return when kernels began and ended on a device, and the capped sum of blocks until then."""
    kernels, found = trace.kernels, {}
    told = kernels[kernels["blocks_per_sm"].to_numpy() > 0]
    for device in np.unique(told["device"].to_numpy()).tolist():
        rows = told[told["device"].to_numpy() == device]
        found[device] = capped_sums(
            rows["start_ns"].to_numpy(), rows["end_ns"].to_numpy(), rows["blocks_per_sm"].to_numpy()
        )
    return found


def _mean_efficiency(trace: Trace, device: int, edges: Numbers) -> Values:
    """Return the mean of min(1, blocks per multiprocessor) between two edges."""
    if device not in (by_device := _efficiency(trace)):
        return np.full(len(edges) - 1, np.nan)
    times, sums = by_device[device]
    share = np.diff(np.interp(edges, times, sums)) / np.diff(edges)
    share[(edges[1:] <= times[0]) | (edges[:-1] >= times[-1])] = np.nan
    return np.asarray(np.clip(share, 0.0, 1.0))


def _sampled(times: Numbers, values: Values, edges: Numbers) -> CounterTile:
    """Return what a counter was between edges: it holds a value until the next sample."""
    place = np.searchsorted(times, edges, side="left")
    low, high = place[:-1], place[1:]
    held = np.append(values, np.nan)[low - 1]  # 0 - 1 is the last: nothing held before
    begins_at_edge = np.append(times, -1)[np.minimum(low, len(times))] == edges[:-1]
    held = np.where(begins_at_edge & (high > low), np.nan, held)
    least, most, last = held.copy(), held.copy(), held.copy()
    filled = np.flatnonzero(high > low)
    if len(filled):
        used = values[low[filled[0]] : high[filled[-1]]]
        at = low[filled] - low[filled[0]]
        least[filled] = np.fmin(held[filled], np.minimum.reduceat(used, at))
        most[filled] = np.fmax(held[filled], np.maximum.reduceat(used, at))
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
Found = Mapping[tuple[int, int], Series]
"""By device and part."""


@computed
def _allocated(trace: Trace) -> Found:
    return {
        (curve.device.number, part): _known(curve.time_ns, curve.level_bytes)
        for part, curve in enumerate(memory_curves(trace))
    }


@computed
def _reserved(trace: Trace) -> Found:
    return {
        (curve.device.number, part): _known(curve.time_ns, curve.reserved_bytes)
        for part, curve in enumerate(memory_curves(trace))
    }


def _known(time_ns: Numbers, values: Values) -> Series:
    known = ~np.isnan(values)
    return time_ns[known], values[known]


@computed
def queue_counter(trace: Trace) -> Found:
    """Return how much was launched and not begun on each device."""
    found = queues(trace)
    device = np.array([device for device, _ in found.streams], dtype=np.int64)
    return _together(device[found.stream], found.stream, found.time_ns, found.length)


@computed
def _copies(trace: Trace) -> Found:
    found = memory_rates(trace)
    device = np.array([device for device, _ in found.kinds], dtype=np.int64)
    is_copy = np.array([kind != MEMORY_SET for _, kind in found.kinds], dtype=bool)
    rows = np.flatnonzero(is_copy[found.kind]) if len(is_copy) else found.kind[:0]
    kind = found.kind[rows]
    return _together(device[kind], kind, found.time_ns[rows], found.bytes_per_second[rows])


def _together(device: Numbers, part: Numbers, time_ns: Numbers, level: Numbers) -> Found:
    """Return the sum of the parts of each device; rows are by part, then time."""
    change = level.copy()
    same = part[1:] == part[:-1]
    change[1:][same] -= level[:-1][same]
    found: dict[tuple[int, int], Series] = {}
    for number in np.unique(device).tolist():
        rows = np.flatnonzero(device == number)
        rows = rows[np.argsort(time_ns[rows], kind="stable")]
        times, total = time_ns[rows], np.cumsum(change[rows])
        is_last = np.append(times[1:] != times[:-1], np.ones(min(1, len(times)), dtype=bool))
        found[number, -1] = times[is_last], total[is_last].astype(np.float64)
    return found


@computed
def _recorded(trace: Trace) -> Found:
    samples, table = trace.counters, counter_table(trace).head(MOST_RECORDED)
    group, first = group_statistics.group_rows(samples, TRACK)
    by_key = {
        tuple(_key(samples[key].iloc[row]) for key in TRACK): number
        for number, row in enumerate(first.tolist())
    }
    times, values = samples["start_ns"].to_numpy(), samples["value"].to_numpy()
    found: dict[tuple[int, int], Series] = {}
    for part in range(len(table)):
        number = by_key[tuple(_key(table[key].iloc[part]) for key in TRACK)]
        rows = np.flatnonzero(group == number)
        found[-1, part] = times[rows], values[rows]
    return found


def _key(value: object) -> object:
    """Return a value by which a row is found again: nothing is the same in every type."""
    return None if value is None or value != value else value  # noqa: PLR0124 - NaN is not itself


_SERIES: Mapping[str, Callable[[Trace], Found]] = {
    "allocated": _allocated,
    "reserved": _reserved,
    "queue": queue_counter,
    "copies": _copies,
    "recorded": _recorded,
}


def idle_track(trace: Trace, device: int) -> Track:
    """Return the track of a device's idle times, by their causes."""
    return Track(
        kind="idle",
        label="Idle",
        detail="and why",
        owner=device_owner(trace, device),
        order=(IDLE_ORDER, 0, ""),
        row_count=1,
        about=TrackSubject(subject="idle", device=device),
    )
