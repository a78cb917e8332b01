"""Operators of a step as they ran, summed by source line for a trace."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

MOST_COSTS = 20
MOST_LISTED = 200
"""Calls of a cost that are written."""
LEAST_RUNS = 16
"""Runs of a line per step that are a loop."""
MOST_MEAN_NS = 20_000
"""Mean time of an operator of a loop that is written: longer ones are work."""


Shapes = tuple[tuple[int, ...], ...]
Path = tuple[tuple[int, int, bool], ...]
"""From the innermost call: the address of a function's code, the position in it, and whether a
module was called to get there."""
Chain = tuple[str, ...]
"""Source lines outside of libraries, from the outermost call."""


class Call(NamedTuple):
    """An operator as it ran."""

    name: str
    shapes: Shapes
    ordinal: int
    """Number among the calls of the step with the same name and shapes."""
    digest: bytes | None
    """Of the result; None: not compared."""
    time_ns: int
    chain: Chain
    is_backward: bool
    is_recomputed: bool
    """Whether activation checkpointing called it in the backward pass."""
    result: Shapes
    path: Path
    """Code and position of the callers outside of libraries."""
    is_direct: bool
    """Whether the innermost of them called it, at most through `torch.nn`."""
    has_weight: bool
    """Whether it is of a layer with weights."""

    @property
    def line(self) -> str:
        """Line that called it; "" where only libraries did."""
        return self.chain[-1] if self.chain else ""


@dataclass
class LineCost:
    """Calls at a line whose results were known."""

    line: str
    first_line: str
    time_ns: int = 0
    calls: list[Call] = field(default_factory=list)


def result_key(call: Call) -> tuple[Any, ...]:
    """Return what two calls with the same result have in common."""
    return call.name, call.result, call.digest


def by_line(calls: Iterable[Call]) -> list[LineCost]:
    """Return calls by the line that made them."""
    costs: dict[str, LineCost] = {}
    for call in calls:
        cost = costs.setdefault(call.line, LineCost(call.line, call.line))
        cost.time_ns += call.time_ns
        cost.calls.append(call)
    return list(costs.values())


def repeated_in(calls: Iterable[Call], constant: set[tuple[Any, ...]]) -> list[LineCost]:
    """Return calls whose result an earlier call of the step had, by the lines that differ."""
    first: dict[tuple[Any, ...], Call] = {}
    costs: dict[tuple[str, str, bool], LineCost] = {}
    for call in calls:
        key = result_key(call)
        if call.digest is None or key in constant:
            continue
        earlier = first.setdefault(key, call)
        if earlier is call or (call.is_backward and not call.is_recomputed):
            continue
        line, first_line = _differing(call, earlier)
        cost = costs.setdefault((line, first_line, call.is_recomputed), LineCost(line, first_line))
        cost.time_ns += call.time_ns
        cost.calls.append(call)
    return list(costs.values())


def _differing(call: Call, earlier: Call) -> tuple[str, str]:
    """Return the outermost lines that differ; the innermost if none does."""
    for line, earlier_line in zip(call.chain, earlier.chain, strict=False):
        if line != earlier_line:
            return line, earlier_line
    return call.line, earlier.line


def written(costs: Iterable[LineCost], totals: Counter[tuple[str, Shapes]]) -> list[dict[str, Any]]:
    """Return the longest lines, as written into a trace; `totals` are all calls of the step."""
    ordered = sorted(costs, key=lambda cost: -cost.time_ns)[:MOST_COSTS]
    return [
        {
            "line": cost.line,
            "first_line": cost.first_line,
            "inner_line": _inner_line(cost.calls),
            "count": len(cost.calls),
            "time_ns": cost.time_ns,
            "is_recomputed": any(call.is_recomputed for call in cost.calls),
            "calls": grouped(cost.calls, totals),
        }
        for cost in ordered
    ]


def loops_in(calls: Iterable[Call], totals: Counter[tuple[str, Shapes]]) -> list[dict[str, Any]]:
    """Return the lines that a step runs many times, each for small operators.

    A line was run as often as the same operator was called directly from the same path.
    """
    by_path: dict[Path, list[Call]] = defaultdict(list)
    for call in calls:
        if not call.is_backward and call.path:
            by_path[call.path].append(call)
    runs = {
        path: max(Counter(call.name for call in several).values())
        for path, several in by_path.items()
    }
    tree = _tree(runs, by_path)
    costs: dict[str, LineCost] = {}
    most: Counter[str] = Counter()
    for path, several in by_path.items():
        direct = [call for call in several if call.is_direct]
        if not direct or runs[path] < LEAST_RUNS or not _is_looped(path, runs[path], tree):
            continue
        line = direct[0].line
        cost = costs.setdefault(line, LineCost(line, direct[0].chain[-2:][0]))
        cost.time_ns += sum(call.time_ns for call in direct)
        cost.calls += direct
        most[line] = max(most[line], runs[path])
    small = [cost for cost in costs.values() if cost.time_ns <= MOST_MEAN_NS * len(cost.calls)]
    return [{**row, "runs": most[row["line"]]} for row in written(small, totals)]


Tree = dict[Path, dict[tuple[int, int, bool], tuple[int, bool]]]
"""Callers to positions in the function that they called: runs, and whether of layers."""


def _tree(runs: Mapping[Path, int], by_path: Mapping[Path, Iterable[Call]]) -> Tree:
    tree: Tree = defaultdict(dict)
    for path, number in runs.items():
        has_weight = any(call.has_weight for call in by_path[path])
        for depth, position in enumerate(path):
            positions = tree[path[depth + 1 :]]
            most, is_layer = positions.get(position, (0, False))
            positions[position] = max(most, number), is_layer or has_weight
    return tree


def _is_looped(path: Path, number: int, tree: Tree) -> bool:
    """Return whether a function of the path runs its part many times, without calling layers.

    A loop that also calls layers as often goes through time or tokens: a rollout, a recurrence.
    """
    for depth, position in enumerate(path):
        others = tree[path[depth + 1 :]]
        least = min(runs for runs, _ in others.values())
        if number >= LEAST_RUNS * least or depth == len(path) - 1:
            return not any(is_layer and 2 * runs >= number for runs, is_layer in others.values())
        if position[2]:
            return False
    return False


def _inner_line(calls: Iterable[Call]) -> str:
    times: Counter[str] = Counter()
    for call in calls:
        times[call.line] += call.time_ns
    return max(times, key=times.__getitem__)


def grouped(calls: Iterable[Call], totals: Counter[tuple[str, Shapes]]) -> list[list[Any]]:
    """Return calls as name, shapes, calls of them in the step, ranges of these, time in ns."""
    groups: dict[tuple[str, Shapes], list[Call]] = defaultdict(list)
    for call in calls:
        groups[call.name, call.shapes].append(call)
    ordered = sorted(groups.items(), key=lambda item: -sum(call.time_ns for call in item[1]))
    return [
        [
            name,
            [list(shape) for shape in shapes],
            totals[name, shapes],
            ranges_of(call.ordinal for call in group),
            sum(call.time_ns for call in group),
        ]
        for (name, shapes), group in ordered[:MOST_LISTED]
    ]


def ranges_of(numbers: Iterable[int]) -> list[list[int]]:
    """Return ascending numbers as ranges of their first and last."""
    ranges: list[list[int]] = []
    for number in sorted(numbers):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ranges[:MOST_LISTED]


def calls_on_classes(calls: Iterable[Call], classes: int, least: int) -> list[Call]:
    """Return the calls on tensors of a dimension of all classes, with `least` elements or more."""
    return [
        call
        for call in calls
        if any(
            classes in shape and math.prod(shape) >= least for shape in (*call.shapes, *call.result)
        )
    ]
