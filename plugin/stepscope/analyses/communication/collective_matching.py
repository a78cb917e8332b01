"""Matches of the collectives of several ranks.

By process group (name and ranks), kind and torch's sequence number where recorded. Else by order:
in each step where the ranks have equally many of a group, kind and size in every step; in the trace
where they have equally many in total; else only among a step's ranks with the most common number.
Other collectives stay unmatched.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from stepscope.analyses.communication.rank_summary import Key, RankSummary
from stepscope.analyses.core.group_statistics import quantile
from stepscope.model.arrays import Floats, Ints, Mask

ALONE = -1
FULL = frozenset({"all_reduce", "all_gather", "reduce_scatter", "all_to_all", "barrier"})
"""Kinds that no rank can leave before all have entered: each needs data of every other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Matches:
    """Members (a collective on one rank), ordered by match; matches are numbered from 0."""

    keys: tuple[Key, ...]
    trace_index: Ints
    """Index of the run's trace."""
    row: Ints
    """Row of that trace's collectives."""
    match: Ints
    key: Ints
    sequence: Ints
    """torch's `Seq`; -1: not recorded."""
    by_sequence: Mask
    start_ns: Ints
    ready_ns: Ints
    duration_ns: Ints
    message_bytes: Floats
    step: Ints

    @cached_property
    def end_ns(self) -> Ints:
        """End of each member, on its rank's clock."""
        return self.start_ns + self.duration_ns

    @cached_property
    def first(self) -> Ints:
        """The first member of each match."""
        return np.flatnonzero(np.diff(self.match, prepend=-1))

    @cached_property
    def size(self) -> Ints:
        """Number of ranks of each match."""
        return np.bincount(self.match, minlength=len(self.first))

    @cached_property
    def transfer_ns(self) -> Ints:
        """Each match's shortest duration: of the last rank, which waits for no other."""
        return np.minimum.reduceat(self.duration_ns, self.first) if len(self.match) else self.match

    @cached_property
    def is_matched(self) -> Mask:
        """Mask of the members whose match has several ranks."""
        return (self.size > 1)[self.match]

    @cached_property
    def group(self) -> Ints:
        """Number of each member's process group, from 0."""
        names = [(key.group, key.ranks) for key in self.keys]
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        return np.array([*(numbers[name] for name in names), 0], dtype=np.int64)[self.key]

    @cached_property
    def late_ns(self) -> Floats:
        """Lateness of each member of a full match: the median rank's duration less its own.

        NaN for the others.
        """
        late = np.full(len(self.match), np.nan)
        distinct, match = np.unique(self.match[self.is_full], return_inverse=True)
        duration = self.duration_ns[self.is_full]
        late[self.is_full] = quantile(duration, match, len(distinct), 0.5)[match] - duration
        return late

    @cached_property
    def wait_ns(self) -> Ints:
        """Waiting of each member: its duration less the transfer."""
        return self.duration_ns - self.transfer_ns[self.match]

    @cached_property
    def is_full(self) -> Mask:
        """Mask of the members of `FULL` kinds in matches of several ranks."""
        of_key = np.array([key.kind in FULL for key in self.keys], dtype=bool)
        return of_key[self.key] & self.is_matched


def match_collectives(parts: Sequence[RankSummary]) -> Matches:
    """Match the collectives of a run's traces; different spans never match."""
    members = _members(parts)
    keys, members["key"] = _shared_keys(parts, members)
    has_sequence = members["sequence"].to_numpy() >= 0
    members["by_sequence"] = has_sequence
    by_order = members[~has_sequence]
    by_sequence = members[has_sequence]
    unit = [_units_by_sequence(by_sequence), _units_by_order(by_order)]
    members = pd.concat([by_sequence, by_order], ignore_index=True)
    match = _numbered(np.concatenate(unit), members)
    order = np.lexsort((members["trace_index"].to_numpy(), match))
    frame = members.iloc[order]
    columns = {str(name): frame[name].to_numpy() for name in frame if name != "span"}
    return Matches(keys=keys, match=match[order], **columns)


def _members(parts: Sequence[RankSummary]) -> pd.DataFrame:
    collectives = [part.collectives for part in parts]
    empty = np.empty(0, dtype=np.int64)
    spans = {span: at for at, span in enumerate(dict.fromkeys(p.evidence.span for p in parts))}
    columns = {
        name: np.concatenate([empty, *(getattr(of, name) for of in collectives)])
        for name in ("sequence", "start_ns", "ready_ns", "duration_ns", "step")
    }
    counts = [len(of) for of in collectives]
    return pd.DataFrame(
        {
            "trace_index": np.repeat(np.arange(len(parts)), counts),
            "row": np.concatenate([empty, *(np.arange(count) for count in counts)]),
            "span": np.repeat([spans[part.evidence.span] for part in parts], counts),
            **columns,
            "message_bytes": np.concatenate(
                [empty.astype(float), *(of.message_bytes for of in collectives)]
            ),
        }
    ).astype({"trace_index": np.int64, "row": np.int64, "span": np.int64})


def _shared_keys(
    parts: Sequence[RankSummary], members: pd.DataFrame
) -> tuple[tuple[Key, ...], Ints]:
    number: dict[Key, int] = {}
    codes = [np.empty(0, dtype=np.int64)]
    for part in parts:
        codes_of_part = [number.setdefault(key, len(number)) for key in part.collectives.keys]
        codes.append(np.array([*codes_of_part, 0], dtype=np.int64)[part.collectives.key])
    code = np.concatenate(codes)
    span = members["span"].to_numpy()
    together, distinct = pd.factorize(span * max(1, len(number)) + code)
    keys = tuple(number)
    return tuple(keys[at % max(1, len(number))] for at in distinct), together


def _units_by_sequence(members: pd.DataFrame) -> Ints:
    """Return each member's unit; equal units on several ranks are one collective."""
    number = combined(members["key"].to_numpy(), members["sequence"].to_numpy())
    again = _position_in_unit(members, number)
    return combined(number, again)


def _units_by_order(members: pd.DataFrame) -> Ints:
    key = members["key"].to_numpy()
    in_step = combined(key, members["step"].to_numpy())
    agrees_in_step = _agree(members, key, in_step)
    agrees = _agree(members, key, key)
    number = np.where(agrees_in_step | ~agrees, in_step, _beyond(in_step) + key)
    unit = combined(number, _position_in_unit(members, number))
    is_odd = ~agrees_in_step & ~agrees & ~_as_most(members, in_step)
    return np.where(is_odd, ALONE, unit)


def _beyond(values: Ints) -> int:
    return int(values.max()) + 1 if len(values) else 0


def combined(first: Ints, second: Ints) -> Ints:
    """Return one number for each pair of numbers, from 0."""
    codes, distinct = pd.factorize(second)
    return np.asarray(pd.factorize(first * max(1, len(distinct)) + codes)[0], dtype=np.int64)


def _position_in_unit(members: pd.DataFrame, unit: Ints) -> Ints:
    pair = combined(unit, members["trace_index"].to_numpy())
    order = np.lexsort((members["start_ns"].to_numpy(), pair))
    ordered = pair[order]
    is_first = np.diff(ordered, prepend=-1) != 0
    begin = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
    position = np.empty(len(order), dtype=np.int64)
    position[order] = np.arange(len(order)) - begin
    return position


def _counts(members: pd.DataFrame, unit: Ints) -> tuple[Ints, Ints, Ints]:
    """Return unit and count of each pair of unit and rank, and each member's pair."""
    pair = combined(unit, members["trace_index"].to_numpy())
    count = np.bincount(pair) if len(pair) else pair
    unit_of = np.empty(len(count), dtype=np.int64)
    unit_of[pair] = unit
    return unit_of, count, pair


def _agree(members: pd.DataFrame, key: Ints, unit: Ints) -> Mask:
    """Return which members' keys have equal counts on all ranks, in each of their units."""
    unit_of, count, _ = _counts(members, unit)
    least = np.full(_beyond(unit), np.iinfo(np.int64).max)
    most = np.zeros(_beyond(unit), dtype=np.int64)
    np.minimum.at(least, unit_of, count)
    np.maximum.at(most, unit_of, count)
    differs = np.zeros(_beyond(key), dtype=bool)
    differs[key[(least != most)[unit]]] = True
    return np.asarray(~differs[key])


def _as_most(members: pd.DataFrame, unit: Ints) -> Mask:
    """Return which members are of a rank whose count in their unit is that of most ranks."""
    unit_of, count, pair = _counts(members, unit)
    alike = combined(unit_of, count)
    ranks_alike = np.bincount(alike)[alike] if len(alike) else alike
    ranks = np.bincount(unit_of)[unit_of] if len(unit_of) else unit_of
    return np.asarray((2 * ranks_alike > ranks)[pair])


def _numbered(unit: Ints, members: pd.DataFrame) -> Ints:
    """Return matches numbered by time; unmatched members have separate numbers."""
    by_sequence = members["by_sequence"].to_numpy()
    number = np.where(unit == ALONE, -2 - np.arange(len(unit)), 2 * unit + by_sequence)
    order = np.argsort(members["start_ns"].to_numpy(), kind="stable")
    match = np.empty(len(unit), dtype=np.int64)
    match[order] = pd.factorize(number[order])[0]
    return match
