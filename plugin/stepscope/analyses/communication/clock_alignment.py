"""Offsets between the clocks of a job's ranks, with error bounds.

No rank can leave a collective of a `FULL` kind before every rank has entered it. So each collective
of two ranks bounds the offset between their clocks: `start - other end <= offset <= end - other
start`. The estimate is the median difference of ends over the collectives with shorter transfers,
clipped to the intersection of these intervals; the error is the distance to its further end. The
likely error is the median transfer, far less where one rank always waits for the other.

Traces of one machine share a clock, unless their collectives contradict it. From the lowest rank
on, clocks are linked over the pairs with the least error; errors add up.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import NamedTuple

import numpy as np
import pandas as pd

from stepscope.analyses.communication.collective_matching import Matches
from stepscope.analyses.communication.rank_assignment import RecordedRank
from stepscope.analyses.communication.rank_summary import RankSummary
from stepscope.analyses.core import group_statistics as statistics
from stepscope.model.arrays import Floats, Ints, Objects

SHARED_WITHIN_NS = 50_000
"""Clocks of one machine's devices may differ by this much after calibration by CUPTI."""
MOST_DRIFT = 1e-3
"""Larger estimates are not clock drift."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Alignment:
    """Offset of each trace's clock from its reference's; arrays have an entry per trace."""

    reference: Ints
    """Index of the trace whose clock it is aligned with; -1: none."""
    offset_ns: Floats
    """Added to its times, at `middle_ns`; NaN: not aligned."""
    drift: Floats
    """Change of the offset per nanosecond after `middle_ns`."""
    error_ns: Floats
    """Bound of the offset's error; NaN: unknown."""
    likely_error_ns: Floats
    """Time within which ranks mostly leave a collective; NaN: unknown."""
    middle_ns: int
    link: Objects
    """`reference`, `same machine`, `collectives`; None: not aligned."""
    link_count: Ints
    """Collectives behind the last link."""

    def added_ns(self, trace_index: Ints, at_ns: Ints) -> Floats:
        """Return the offsets to add to times of traces; NaN for traces that are not aligned."""
        later = (at_ns - self.middle_ns).astype(np.float64)
        return self.offset_ns[trace_index] + self.drift[trace_index] * later


@dataclass(frozen=True, kw_only=True, eq=False)
class ClockLinks:
    """Pairs of clocks with common collectives; the offset takes `other` to `anchor`."""

    anchor: Ints
    other: Ints
    offset_ns: Floats
    drift: Floats
    error_ns: Floats
    """NaN where the collectives contradict each other."""
    likely_error_ns: Floats
    count: Ints


class _Reached(NamedTuple):
    error_ns: float
    clock: int
    reference: int
    offset_ns: float
    drift: float
    likely_error_ns: float
    used: int


Near = dict[int, list[_Reached]]


def align_clocks(
    parts: Sequence[RankSummary], ranks: Sequence[RecordedRank], matches: Matches
) -> Alignment:
    """Align the clocks of a run's traces."""
    pairs = _pairs(matches)
    clock = _clocks(parts, pairs)
    middle_ns = int(np.median(matches.start_ns)) if len(matches.start_ns) else 0
    links = _links(pairs, clock, middle_ns)
    order = sorted(range(len(parts)), key=lambda at: _precedence(ranks[at], at))
    return _spread(clock, order, links, middle_ns)


def _precedence(rank: RecordedRank, at: int) -> tuple[int, int]:
    return (rank.rank if rank.rank is not None else 2**62, at)


def _pairs(matches: Matches) -> pd.DataFrame:
    """Return each member of a full match, paired with the match's first member."""
    row = np.flatnonzero(matches.is_full)
    anchor = matches.first[matches.match[row]]
    row, anchor = row[row != anchor], anchor[row != anchor]
    start, end = matches.start_ns, matches.end_ns
    return pd.DataFrame(
        {
            "anchor": matches.trace_index[anchor],
            "other": matches.trace_index[row],
            "at_ns": start[row],
            "apart_ns": end[anchor] - end[row],
            "least_ns": start[anchor] - end[row],
            "most_ns": end[anchor] - start[row],
            "transfer_ns": matches.transfer_ns[matches.match[row]],
        }
    )


def _clocks(parts: Sequence[RankSummary], pairs: pd.DataFrame) -> Ints:
    """Return each trace's clock: its machine's, or a separate one."""
    hosts = [part.host for part in parts]
    numbers = {host: at for at, host in reversed(list(enumerate(hosts))) if host is not None}
    clocks = (at if host is None else numbers[host] for at, host in enumerate(hosts))
    clock = np.fromiter(clocks, dtype=np.int64, count=len(hosts))
    anchor, other = pairs["anchor"].to_numpy(), pairs["other"].to_numpy()
    is_denied = (pairs["least_ns"].to_numpy() > SHARED_WITHIN_NS) | (
        pairs["most_ns"].to_numpy() < -SHARED_WITHIN_NS
    )
    denied = np.unique(clock[anchor[is_denied & (clock[anchor] == clock[other])]])
    return np.where(np.isin(clock, denied), np.arange(len(parts)), clock)


def _links(pairs: pd.DataFrame, clock: Ints, middle_ns: int) -> ClockLinks:
    anchor, other = clock[pairs["anchor"].to_numpy()], clock[pairs["other"].to_numpy()]
    pairs = pairs[anchor != other]
    anchor, other = anchor[anchor != other], other[anchor != other]
    link, distinct = pd.factorize(anchor * len(clock) + other)
    count = len(distinct)
    drift = np.zeros(count)
    offset, error = _estimates(pairs, link, count)
    contradicts = np.flatnonzero(np.isnan(error))
    if len(contradicts):
        drift[contradicts] = _drift(pairs, link, count)[contradicts]
        offset, error = _estimates(_without(pairs, drift[link], middle_ns), link, count)
    return ClockLinks(
        anchor=distinct // len(clock),
        other=distinct % len(clock),
        offset_ns=offset,
        drift=drift,
        error_ns=error,
        likely_error_ns=_usual_transfer(pairs, link, count),
        count=np.bincount(link, minlength=count),
    )


def _estimates(pairs: pd.DataFrame, link: Ints, count: int) -> tuple[Floats, Floats]:
    """Return each link's offset and its error; NaN: the collectives contradict each other."""
    bound = np.iinfo(np.int64)
    least, most = np.full(count, bound.min), np.full(count, bound.max)
    np.maximum.at(least, link, pairs["least_ns"].to_numpy())
    np.minimum.at(most, link, pairs["most_ns"].to_numpy())
    is_short = pairs["transfer_ns"].to_numpy() <= _usual_transfer(pairs, link, count)[link]
    apart = pairs["apart_ns"].to_numpy()[is_short]
    middle = statistics.quantile(apart, link[is_short], count, 0.5)
    low, high = least.astype(np.float64), most.astype(np.float64)
    is_possible = low <= high
    offset = np.where(is_possible, np.clip(middle, low, np.maximum(low, high)), middle)
    error = np.where(is_possible, np.maximum(high - offset, offset - low), np.nan)
    return offset, error


def _usual_transfer(pairs: pd.DataFrame, link: Ints, count: int) -> Floats:
    return statistics.quantile(pairs["transfer_ns"].to_numpy(), link, count, 0.5)


def _drift(pairs: pd.DataFrame, link: Ints, count: int) -> Floats:
    at = pairs["at_ns"].to_numpy()
    bounds = [statistics.quantile(at, link, count, share)[link] for share in (1 / 3, 2 / 3)]
    means = []
    for third in (at <= bounds[0], at >= bounds[1]):
        when = statistics.quantile(at[third], link[third], count, 0.5)
        apart = pairs["apart_ns"].to_numpy()[third]
        means.append((when, statistics.quantile(apart, link[third], count, 0.5)))
    (before, first), (after, last) = means
    drift = np.zeros(count)
    np.divide(last - first, after - before, out=drift, where=after > before)
    return np.where(np.abs(drift) <= MOST_DRIFT, drift, 0.0)


def _without(pairs: pd.DataFrame, drift: Floats, middle_ns: int) -> pd.DataFrame:
    moved = np.round(drift * (pairs["at_ns"].to_numpy() - middle_ns)).astype(np.int64)
    columns = ("apart_ns", "least_ns", "most_ns")
    return pairs.assign(**{name: pairs[name].to_numpy() - moved for name in columns})


def _spread(clock: Ints, order: Sequence[int], links: ClockLinks, middle_ns: int) -> Alignment:
    """Align clocks from each reference on, over the links of least error (Dijkstra)."""
    near, reached = _neighbours(links), dict[int, _Reached]()
    holders = np.bincount(clock, minlength=len(clock))
    for start in order:
        number = int(clock[start])
        if number not in reached and (number in near or holders[number] > 1):
            reached |= _reached_from(_Reached(0.0, number, start, 0.0, 0.0, 0.0, 0), near, reached)
    lost = _Reached(np.nan, -1, -1, np.nan, 0.0, np.nan, 0)
    ends = [reached.get(number, lost) for number in clock.tolist()]
    reference = np.array([of.reference for of in ends], dtype=np.int64)
    link_count = np.array([of.used for of in ends], dtype=np.int64)
    links_used = np.where(link_count > 0, "collectives", "same machine").astype(object)
    links_used = np.where(reference == np.arange(len(clock)), "reference", links_used)
    return Alignment(
        reference=reference,
        offset_ns=np.array([of.offset_ns for of in ends], dtype=np.float64),
        drift=np.array([of.drift for of in ends], dtype=np.float64),
        error_ns=np.array([of.error_ns for of in ends], dtype=np.float64),
        likely_error_ns=np.array([of.likely_error_ns for of in ends], dtype=np.float64),
        middle_ns=middle_ns,
        link=np.where(reference >= 0, links_used, np.array(None, dtype=object)),
        link_count=link_count,
    )


def _reached_from(
    start: _Reached, near: Near, previous: Mapping[int, _Reached]
) -> dict[int, _Reached]:
    """Return every clock that links lead to, by the path with the least sum of errors."""
    reached: dict[int, _Reached] = {}
    waiting = [start]
    while waiting:
        here = heapq.heappop(waiting)
        if here.clock in reached or here.clock in previous:
            continue
        reached[here.clock] = here
        for link in near.get(here.clock, ()):
            if link.clock not in reached:
                beyond = _Reached(
                    here.error_ns + link.error_ns,
                    link.clock,
                    start.reference,
                    here.offset_ns + link.offset_ns,
                    here.drift + link.drift,
                    here.likely_error_ns + link.likely_error_ns,
                    link.used,
                )
                heapq.heappush(waiting, beyond)
    return reached


def _neighbours(links: ClockLinks) -> Near:
    near: Near = {}
    columns = (links.anchor, links.other, links.offset_ns, links.drift, links.error_ns)
    more = (links.likely_error_ns, links.count)
    rows = zip(*(column.tolist() for column in (*columns, *more)), strict=True)
    for anchor, other, offset, drift, error, likely, used in rows:
        if not isnan(error):
            on = _Reached(error, other, -1, offset, drift, likely, used)
            back = _Reached(error, anchor, -1, -offset, -drift, likely, used)
            near.setdefault(anchor, []).append(on)
            near.setdefault(other, []).append(back)
    return near
