"""Calls of the operators whose kernels graphs replay, by the recordings of the same trace.

The kernels of a graph count for the operators of the matching recording (`graph_matching`). Those
without a match, or whose recordings disagree, are `NOT_ATTRIBUTED`, or of the operator around the
launch of the graph, if there is one. A slice of a trace takes the recordings of the whole trace.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core.graph_launches import graph_launches
from stepscope.analyses.core.group_statistics import sums_where
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.graph_captures import (
    ReplayedGraph,
    graph_part,
    replayed_graphs,
)
from stepscope.analyses.operators.graph_matching import NodeMatch, matches
from stepscope.model.arrays import NONE, Floats, Ints, Mask, Objects
from stepscope.model.trace import Trace, computed

NOT_ATTRIBUTED = "replayed graph, not attributed"
"""Stands for the operators of the kernels of graphs that no recording has."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplayedOperators:
    """Operators of replayed graphs: the calls of a capture, each of which every replay repeats."""

    operator: Objects
    """Of each call of a capture, as in the next five."""
    module: Objects
    input_dims: Objects
    flops: Floats
    """Operations of one call; NaN: unknown."""
    owner: Ints
    """The call's row of `host_calls` of the whole trace; -1 where its shapes are not known, or not
    all of its kernels are."""
    replay_count: Ints
    call_of_device_event: Ints
    """For each row of `device_events`, the call of the capture, or -1."""
    replay_of_device_event: Ints
    """For each row of `device_events`, the number of the replayed call, or -1.

    A replay of the graph has one for each call of the capture."""
    call_of_replay: Ints
    """The call of the capture, of each replayed call."""

    def sums(self, values: Ints, where: Mask | np.bool_ = np.True_) -> Ints:
        """Return the sums of device events' values, of each replayed call."""
        return sums_where(values, self.replay_of_device_event, len(self.call_of_replay), where)


@computed
def replayed_operators(trace: Trace) -> ReplayedOperators:
    """Return the operators of the kernels that graphs replay."""
    count = len(trace.device_events)
    call_of_event, replay_of_event = (np.full(count, NONE, dtype=np.int64) for _ in range(2))
    calls: list[pd.DataFrame] = []
    call_of_replay: list[Ints] = []
    first_call = first_replay = 0
    for graph, rows, match in _matched(trace):
        nodes, call, table = _calls(match)
        size = len(table)
        number = np.arange(graph.replay_count)[:, None] * size + call
        call_of_event[rows[:, nodes]] = first_call + call
        replay_of_event[rows[:, nodes]] = first_replay + number
        call_of_replay.append(np.tile(first_call + np.arange(size), graph.replay_count))
        calls.append(table.assign(replay_count=graph.replay_count))
        first_call += size
        first_replay += size * graph.replay_count
    launches = graph_launches(trace)
    is_other = (call_of_event == NONE)[launches.rows]
    is_other &= (links(trace).owner_of_device_event == NONE)[launches.rows]
    if is_other.any():
        others = launches.rows[is_other]
        replay, replays = pd.factorize(launches.launch[is_other])
        call_of_event[others] = first_call
        replay_of_event[others] = first_replay + replay
        call_of_replay.append(np.full(len(replays), first_call))
        calls.append(_not_attributed(len(replays)))
    whole = pd.concat(calls, ignore_index=True) if calls else _nothing()
    return ReplayedOperators(
        **{name: whole[name].to_numpy() for name in whole.columns},
        call_of_device_event=call_of_event,
        replay_of_device_event=replay_of_event,
        call_of_replay=np.concatenate([*call_of_replay, np.zeros(0, dtype=np.int64)]),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Owners:
    """Operators of all device events; both arrays are parallel to `device_events`."""

    call: Ints
    """The `host_calls` row that launched it; of a replayed graph, that in its capture; or -1."""
    replay: Ints
    """The launch of the graph, for such a call of a capture, or -1."""


@computed
def owners_with_replays(trace: Trace) -> Owners:
    """Return the operator that launched each device event, or whose capture did.

    A slice of a trace does not have the calls of the capture.
    """
    replayed, launches = replayed_operators(trace), graph_launches(trace)
    launched = links(trace).owner_of_device_event
    captured = np.append(replayed.owner, NONE)[replayed.call_of_device_event]
    is_captured = (captured != NONE) & (trace.whole is trace)
    replay = np.full(len(launched), NONE, dtype=np.int64)
    replay[launches.rows] = launches.launch
    return Owners(
        call=np.where(is_captured, captured, launched), replay=np.where(is_captured, replay, NONE)
    )


def with_operators(trace: Trace, owners: pd.Categorical) -> pd.Categorical:
    """Return operators' names of device events, with those of the kernels that graphs replay."""
    replayed = replayed_operators(trace)
    rows = np.flatnonzero(replayed.call_of_device_event != NONE)
    if not len(rows):
        return owners
    operators = pd.Index(replayed.operator, dtype=object)
    names = owners.categories.union(operators.unique(), sort=False)
    codes = np.asarray(owners.set_categories(names).codes).copy()
    codes[rows] = names.get_indexer(operators)[replayed.call_of_device_event[rows]]
    return pd.Categorical.from_codes(codes, categories=names)


def _not_attributed(replay_count: int) -> pd.DataFrame:
    texts = {"operator": NOT_ATTRIBUTED, "module": None, "input_dims": None}
    numbers = {"flops": np.nan, "owner": NONE, "replay_count": replay_count}
    return pd.DataFrame(
        {name: pd.Series([text], dtype=object) for name, text in texts.items()}
    ).assign(**numbers)


def _nothing() -> pd.DataFrame:
    texts: dict[str, NDArray[np.object_]] = {
        name: np.zeros(0, dtype=object) for name in ("operator", "module", "input_dims")
    }
    return pd.DataFrame(
        {
            **texts,
            "flops": np.zeros(0),
            "owner": np.zeros(0, dtype=np.int64),
            "replay_count": np.zeros(0, dtype=np.int64),
        }
    )


def _matched(trace: Trace) -> Iterator[tuple[ReplayedGraph, Ints, NodeMatch]]:
    graphs = replayed_graphs(trace)
    if not graphs:
        return
    part = replace(graph_part(trace.whole), graphs=tuple(graph for graph, _ in graphs))
    for (graph, rows), (_, _, match) in zip(graphs, matches([part]), strict=True):
        yield graph, rows, match


def _calls(match: NodeMatch) -> tuple[Ints, Ints, pd.DataFrame]:
    """Return the nodes with an operator, the call of each, and the calls."""
    has_operator = np.array([operator is not None for operator in match.operator], dtype=bool)
    nodes = np.flatnonzero(has_operator & (match.call != NONE))
    call, _ = pd.factorize(match.call[nodes])
    _, first = np.unique(call, return_index=True)
    is_whole = np.bincount(call, minlength=1)[: len(first)] == match.call_size[nodes[first]]
    table = pd.DataFrame(
        {
            name: pd.Series(getattr(match, name)[nodes[first]], dtype=object)
            for name in ("operator", "module", "input_dims")
        }
    )
    has_work = is_whole & table["input_dims"].notna().to_numpy()
    return (
        nodes,
        call,
        table.assign(
            flops=np.where(has_work, match.flops[nodes[first]], np.nan),
            owner=np.where(has_work, match.owner[nodes[first]], NONE),
        ),
    )
