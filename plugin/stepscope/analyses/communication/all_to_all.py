"""All-to-all exchanges: the bytes that each rank sends to each other, and the imbalance.

kineto writes the splits of an exchange as `In split size` and `Out split size`: one number per rank
of the group, in rows or elements; an empty list stands for equal parts. It cuts lists after 30
numbers (`...`). gloo's exchanges have no such arguments: theirs are the inputs of the operators
`c10d::alltoall_base_`, which run in the order of the calls. A part of a message is its fraction of
the splits' sum. Exchanges of lists of tensors (`c10d::alltoall_`) record their splits only in newer
versions of torch: an empty list then does not mean equal parts.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from stepscope.analyses.communication.collective_events import step_numbers
from stepscope.analyses.communication.process_groups import EXCHANGE
from stepscope.analyses.communication.rank_assignment import (
    RankEvidence,
    rank_evidence,
    recorded_ranks,
)
from stepscope.model.arrays import Floats
from stepscope.model.frames import Column, Schema
from stepscope.model.table import public_table, run_table, to_frame
from stepscope.model.trace import Trace, computed

BASE_OPERATOR = "c10d::alltoall_base_"
LIST_OPERATOR = "c10d::alltoall_"
OUT_SPLITS, IN_SPLITS = 3, 4
"""Positions among the inputs of `c10d::alltoall_base_`."""
CUT = re.compile(r"\.\.\.|…")
EQUAL = "[]"
NOT_RECORDED = "not recorded"
TRUNCATED = "truncated"
MOST_CALLERS = 8
"""Operators around a call of a collective that are searched for its kind."""
SPLITS: Schema = (
    Column("event", "int64", "id", "The exchange's first kernel, or its annotation."),
    Column("step", "int64", "id", "Number of the `ProfilerStep` that requested it; -1: none."),
    Column("group", "object", "text", "The process group's name; None: not recorded."),
    Column("group_description", "object", "text", "Its description."),
    Column("group_ranks", "object", "text", "Its ranks (JSON); None: unknown."),
    Column("group_rank", "int64", "id", "This rank's position in the group; -1: unknown."),
    Column("sequence", "int64", "id", "Its number within the group (torch's `Seq`); -1: none."),
    Column("sent_bytes", "float64", "bytes", "The rank's input; NaN: not recorded."),
    Column("received_bytes", "float64", "bytes", "The rank's output; NaN: not recorded."),
    Column("bytes_to_ranks", "object", "text", "Bytes to each rank of the group, in its order"
           " (JSON); None: not recorded."),
    Column("bytes_from_ranks", "object", "text", "Bytes from each rank (JSON); None: likewise."),
    Column("reason", "object", "text", "Why the parts are unknown: `not recorded`, or `truncated`"
           " by the profiler; None: they are known."),
)  # fmt: skip
TRAFFIC: Schema = (
    Column("group", "object", "text", "The process group's name; None: not recorded."),
    Column("group_description", "object", "text", "Its description."),
    Column("sender", "int64", "id", "The sending rank; its position in the group where the group's"
           " ranks are unknown."),
    Column("receiver", "int64", "id", "The receiving rank, likewise."),
    Column("call_count", "int64", "count", "Exchanges of the sender with known parts."),
    Column("total_bytes", "float64", "bytes", "Sum of the sender's bytes to the receiver."),
    Column("imbalance", "float64", "", "Most bytes that a rank of the group receives, over the"
           " mean: 1 is balanced. NaN: not all parts of all ranks are recorded."),
)  # fmt: skip


class _Parts(NamedTuple):
    """Bytes to and from each rank; None: unknown."""

    sent: tuple[float, ...] | None
    received: tuple[float, ...] | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class Exchange:
    """All exchanges of one rank in one group."""

    group: str | None
    description: str | None
    ranks: str | None
    """JSON."""
    position: int
    """The rank's position in the group; -1: unknown."""
    call_count: int
    """Exchanges with known parts."""
    reasons: tuple[str, ...]
    """Why those of others are unknown."""
    withheld_count: int
    """Number of the others."""
    sent_bytes: tuple[float, ...]
    """Bytes to each rank of the group; empty: no exchange has known parts."""


@dataclass(frozen=True, kw_only=True)
class ExchangePart:
    """The exchanges of one trace."""

    evidence: RankEvidence
    exchanges: tuple[Exchange, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupTraffic:
    """Exchanges in one process group."""

    group: str | None
    description: str | None
    ranks: tuple[int, ...]
    """Its ranks; their positions where unknown."""
    call_count: int
    """Exchanges of a rank: the most."""
    withheld_count: int
    reasons: tuple[str, ...]
    sent_bytes: Floats
    """Senders × receivers; NaN: no trace of the sender."""

    is_even: bool
    """Whether all recorded ranks have the same number of exchanges, all with known parts."""

    @property
    def missing(self) -> tuple[int, ...]:
        """Ranks without a trace, or without a known exchange."""
        rows = zip(self.ranks, self.sent_bytes, strict=True)
        return tuple(rank for rank, sent in rows if np.isnan(sent).any())

    @property
    def received_bytes(self) -> Floats | None:
        """Bytes that each rank receives; None: not all are known."""
        return None if self.missing or not self.is_even else self.sent_bytes.sum(axis=0)

    @property
    def imbalance(self) -> float:
        """Most bytes received by a rank over the mean; NaN: unknown, or nothing is sent."""
        received = self.received_bytes
        if received is None or not received.any():
            return float("nan")
        return float(received.max() / received.mean())


def parse_splits(text: str | None, size: int) -> tuple[int, ...] | str:
    """Return one number per rank of a group; else why they are unknown."""
    if text is not None and CUT.search(text):
        return TRUNCATED
    numbers = _whole_numbers(text or "")
    if numbers is None or size <= 0 or len(numbers) not in {0, size}:
        return NOT_RECORDED
    return numbers or (1,) * size


def _whole_numbers(text: str) -> tuple[int, ...] | None:
    try:
        numbers = json.loads(text)
    except ValueError:
        return None
    is_list = isinstance(numbers, list)
    if not is_list or not all(type(number) is int and number >= 0 for number in numbers):
        return None
    return tuple(numbers)


@public_table(
    "all-to-all-splits",
    SPLITS,
    "One row per all-to-all exchange of a rank: the bytes that it sends to each rank of the group"
    " and receives from it.",
)
@computed
def all_to_all_splits(trace: Trace) -> pd.DataFrame:
    """Return one row per exchange, in the order they began."""
    is_exchange = trace.collectives["kind"].isin(EXCHANGE).to_numpy()
    frame = trace.collectives[is_exchange]
    texts = _split_texts(trace, frame)
    size = frame["group_size"].fillna(0).astype(int).tolist()
    sides = zip(texts, size, frame["in_bytes"].tolist(), frame["out_bytes"].tolist(), strict=True)
    parts = [_parts(*side) for side in sides]
    columns: dict[str, Any] = {
        name: frame[name].astype(object).where(frame[name].notna(), None).tolist()
        for name in ("group", "group_description", "group_ranks")
    }
    positions = zip(columns["group_ranks"], frame["group_rank"].tolist(), strict=True)
    columns |= {
        "event": frame["event"].to_numpy(),
        "step": step_numbers(trace)[is_exchange],
        "group_rank": [_position(trace, ranks, position) for ranks, position in positions],
        "sequence": frame["sequence"].to_numpy(),
        "sent_bytes": frame["in_bytes"].to_numpy(),
        "received_bytes": [
            sum(of.received) if of.received is not None else float("nan") for of in parts
        ],
        "bytes_to_ranks": [_json(of.sent) for of in parts],
        "bytes_from_ranks": [_json(of.received) for of in parts],
        "reason": [of.reason for of in parts],
    }
    return to_frame(SPLITS, columns)


def _json(parts: tuple[float, ...] | None) -> str | None:
    return None if parts is None else json.dumps([round(part) for part in parts])


def _position(trace: Trace, ranks: str | None, position: int) -> int:
    """Return the rank's position in a group, from the arguments or its ranks; -1: unknown."""
    members = json.loads(ranks) if ranks else []
    return members.index(trace.rank) if trace.rank in members else position


def _parts(
    texts: tuple[str | None, str | None], size: int, in_bytes: float, out_bytes: float
) -> _Parts:
    sent, received = (parse_splits(text, size) for text in texts)
    if isinstance(sent, str) or isinstance(received, str):
        return _Parts(None, None, TRUNCATED if TRUNCATED in (sent, received) else NOT_RECORDED)
    if np.isnan(in_bytes):
        return _Parts(None, None, NOT_RECORDED)
    row_bytes = in_bytes / sum(sent) if sum(sent) else 0.0
    output_bytes = row_bytes * sum(received)
    if texts[1] == EQUAL:
        output_bytes = out_bytes if texts[0] == EQUAL else float("nan")  # of a size not recorded
    elif not sum(sent):
        output_bytes = out_bytes if sum(received) else 0.0
    part = output_bytes / max(1, sum(received))
    return _Parts(
        sent=tuple(number * row_bytes for number in sent),
        received=None if np.isnan(part) else tuple(number * part for number in received),
        reason=None,
    )


def _split_texts(trace: Trace, frame: pd.DataFrame) -> list[tuple[str | None, str | None]]:
    """Return the recorded lists of sent and of received splits of each exchange."""
    events = [frame[name].to_numpy() for name in ("event", "call")]
    keys = ("In split size", "Out split size")
    sent, received = (
        [_first(trace, key, *pair) for pair in zip(*events, strict=True)] for key in keys
    )
    texts = list(zip(sent, received, strict=True))
    lists = _calls_in(trace, LIST_OPERATOR)
    for at, (call, pair) in enumerate(zip(events[1].tolist(), texts, strict=True)):
        if pair == (EQUAL, EQUAL) and call in lists:
            texts[at] = (None, None)
    untold = [at for at, pair in enumerate(texts) if pair == (None, None)]
    calls = trace.host_calls
    operators = calls[(calls["name"] == BASE_OPERATOR).to_numpy(dtype=bool)]
    if untold and len(operators) == len(texts):
        shapes = dict(zip(calls["event"].tolist(), calls["input_dims"].tolist(), strict=True))
        rows = operators[["concrete_inputs", "input_dims"]].itertuples(index=False)
        of_operators = [_of_operator(*row) for row in rows]
        for at in untold:
            pair, shape = of_operators[at]
            if shape == shapes.get(int(events[0][at])):
                texts[at] = pair
    return texts


def _first(trace: Trace, key: str, *events: int) -> str | None:
    for event in events:
        if event >= 0:
            (text,) = trace.source.label(key, np.array([event]))
            if isinstance(text, str):
                return text
    return None


def _calls_in(trace: Trace, operator: str) -> frozenset[int]:
    """Return the events of the calls of collectives in an operator of this name."""
    calls = trace.host_calls
    parents, names = calls["parent"].tolist(), calls["name"].astype(object).tolist()
    inside = set()
    is_call = calls["event"].isin(trace.collectives["call"]).to_numpy()
    for row in np.flatnonzero(is_call).tolist():
        around = row
        for _ in range(MOST_CALLERS):
            if around >= 0 and names[around] == operator:
                inside.add(int(calls["event"].iloc[row]))
            around = parents[around] if around >= 0 else around
    return frozenset(inside)


def _of_operator(
    concrete: object, dims: object
) -> tuple[tuple[str | None, str | None], str | None]:
    """Return an operator's splits, sent first, and the shape of its input as a list of shapes."""
    nothing = (None, None), None
    try:
        values, shapes = json.loads(str(concrete)), json.loads(str(dims))
        return (values[IN_SPLITS], values[OUT_SPLITS]), json.dumps(
            [shapes[1]], separators=(",", ":")
        )
    except (ValueError, IndexError, TypeError):
        return nothing


def exchange_part(trace: Trace) -> ExchangePart:
    """Return the exchanges of a trace, summed by group."""
    rows = all_to_all_splits(trace)
    keys = ["group", "group_description", "group_ranks", "group_rank"]
    return ExchangePart(
        evidence=rank_evidence(trace),
        exchanges=tuple(
            _summed(key, of_group) for key, of_group in rows.groupby(keys, dropna=False, sort=False)
        ),
    )


def _summed(key: tuple[Any, ...], rows: pd.DataFrame) -> Exchange:
    group, description, ranks, position = key
    sent = [json.loads(text) for text in rows["bytes_to_ranks"].dropna()]
    return Exchange(
        group=_text(group),
        description=_text(description),
        ranks=_text(ranks),
        position=int(position),
        call_count=len(sent),
        withheld_count=len(rows) - len(sent),
        reasons=tuple(sorted(rows["reason"].dropna().unique())),
        sent_bytes=tuple(map(float, np.sum(sent, axis=0))) if sent else (),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def group_traffic(parts: Sequence[ExchangePart]) -> tuple[GroupTraffic, ...]:
    """Return the traffic of each group over all traces, most bytes first."""
    ranks = recorded_ranks([part.evidence for part in parts])
    together: dict[tuple[str | None, str | None], list[Exchange]] = {}
    for part, recorded in zip(parts, ranks, strict=True):
        for exchange in part.exchanges:
            members = json.loads(exchange.ranks) if exchange.ranks else []
            position = exchange.position
            if position < 0 and recorded.rank in members:
                position = members.index(recorded.rank)
            if position >= 0:
                key = (exchange.group, exchange.ranks)
                together.setdefault(key, []).append(replace(exchange, position=position))
    groups = [_merged(exchanges) for exchanges in together.values()]
    return tuple(sorted(groups, key=lambda group: -float(np.nansum(group.sent_bytes))))


def _merged(exchanges: Sequence[Exchange]) -> GroupTraffic:
    first = exchanges[0]
    members = tuple(json.loads(first.ranks)) if first.ranks else ()
    size = max(len(members), *(len(of.sent_bytes) for of in exchanges))
    sent = np.full((size, size), np.nan)
    calls = np.zeros(size, dtype=np.int64)
    for of in exchanges:
        calls[of.position] += of.call_count + of.withheld_count
        if of.sent_bytes:
            sent[of.position] = np.nan_to_num(sent[of.position]) + of.sent_bytes
    withheld = sum(of.withheld_count for of in exchanges)
    recorded = calls[calls > 0]
    return GroupTraffic(
        group=first.group,
        description=first.description,
        ranks=members or tuple(range(size)),
        call_count=int(calls.max(initial=0)),
        withheld_count=withheld,
        reasons=tuple(sorted({reason for of in exchanges for reason in of.reasons})),
        sent_bytes=sent,
        is_even=not withheld and len(set(recorded.tolist())) <= 1,
    )


@run_table(
    "all-to-all-traffic",
    TRAFFIC,
    exchange_part,
    "One row per process group, sender and receiver of all-to-all exchanges: the bytes, and how"
    " unevenly the ranks of the group receive them.",
)
def all_to_all_traffic(parts: Sequence[ExchangePart]) -> pd.DataFrame:
    """Return one row per group and pair of ranks whose sender is recorded, by position."""
    rows = [
        (of.group, of.description, sender, receiver, of.call_count, part, of.imbalance)
        for of in group_traffic(parts)
        for sender, sent in zip(of.ranks, of.sent_bytes.tolist(), strict=True)
        for receiver, part in zip(of.ranks, sent, strict=True)
        if not np.isnan(part)
    ]
    columns = zip(*rows, strict=True) if rows else [()] * len(TRAFFIC)
    names = (column.name for column in TRAFFIC)
    return to_frame(TRAFFIC, dict(zip(names, map(list, columns), strict=True)))
