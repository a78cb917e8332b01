"""Values of tensors in two unrecorded steps, as stepscope's recorder noted them.

    "stepscope_recorder": {…, "tensor_values": {
        "operators_ns": 54_000_000,
        "constant": [{"line": "model.py(94): forward", "count": 2, "time_ns": 76_000, "calls":
            [["aten::embedding", [[160, 128], [160]], 1, [[0, 0]], 32_295]], …}, …],
        "repeated": […], "loops": [{…, "runs": 512}], "extended": […], "zeros": […],
        "ids": [["model.py(94): forward", 2, 1920, 992, 636]],
        "unused_gradients": {"count": 41, "of": 65, "time_ns": 6_870_651, "calls": […]}}}

Times are per step, of operators as they ran unrecorded (`recording/tensor_values.py`). Traces are
untrusted: entries that are not of this form are left out.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.analyses.settings.recorded_settings import KEY
from stepscope.analyses.settings.setting_kinds import as_count, as_quantity
from stepscope.analyses.settings.user_metadata import metadata_mapping
from stepscope.model.trace import Trace, computed

SUBJECT = "tensor_values"
MOST_LINES = 100
MOST_CALLS = 500
MOST_NUMBERS = 1000
MOST_CHARACTERS = 500
RECORD = "trace_handler(..., has_values=True)  # or stepscope record"

Shapes = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, kw_only=True)
class NotedCalls:
    """Calls of an operator with the same shapes."""

    name: str
    shapes: Shapes
    """Of its tensors, without those of no dimension."""
    ranges: tuple[tuple[int, int], ...]
    """First and last of their numbers, from 0, among the step's calls of this name and these
    shapes."""
    total: int = 0
    """Number of these calls in a step; 0: unknown."""


@dataclass(frozen=True, kw_only=True)
class NotedLine:
    """Operators at a source line whose results were known before."""

    line: str
    """`file(line): function`."""
    first_line: str
    """Line that had computed them first in the step."""
    inner_line: str
    """Line of the user's code that called most of them directly."""
    count: int
    time_ns: int
    is_recomputed: bool
    """Whether activation checkpointing called them in the backward pass."""
    calls: tuple[NotedCalls, ...]
    runs: int = 0
    """Number of times that a step runs the line, of loops."""


@dataclass(frozen=True, kw_only=True)
class SparseOperand:
    """A matrix product with an operand of zeros in part."""

    line: str
    time_ns: int
    """Of the products per step."""
    zero_fraction: float
    """Fraction of the operand's elements, from 0 to 1."""
    zero_row_fraction: float
    """Fraction of its rows that are all zeros."""
    calls: NotedCalls


@dataclass(frozen=True, kw_only=True)
class NotedIds:
    """Token ids of an embedding, summed over its calls."""

    line: str
    elements: int
    padded: int
    removable: int
    """Padding of columns that are padding in each row."""


@dataclass(frozen=True, kw_only=True)
class NotedTargets:
    """Targets of a classifying loss."""

    line: str
    classes: int
    targets: int
    ignored: int
    """Targets that the loss leaves out (`ignore_index`)."""
    calls: tuple[NotedCalls, ...]
    """Operators on the scores of all classes for all targets."""


@dataclass(frozen=True, kw_only=True)
class UnusedGradients:
    """Parameters that got a gradient and are in no optimizer."""

    count: int
    of: int
    """Parameters that got a gradient."""
    time_ns: int
    """Time of the products in the backward pass that computed them."""
    gradients_ns: int
    """The same of all parameters; 0: unknown."""
    is_of_whole_models: bool
    """Whether they are all parameters of some models, whose backward pass is not needed then."""
    calls: tuple[NotedCalls, ...]


@dataclass(frozen=True, kw_only=True)
class TensorValues:
    """All that was noted."""

    operators_ns: int
    """Time of all operators per step."""
    constant: tuple[NotedLine, ...]
    """Results that the step before had as well."""
    repeated: tuple[NotedLine, ...]
    """Results that the step had computed before."""
    loops: tuple[NotedLine, ...]
    """Lines that a step runs many times for small operators."""
    extended: tuple[NotedLine, ...]
    """Operators that extended their operands to a large tensor, by broadcasting."""
    sparse: tuple[SparseOperand, ...]
    ids: tuple[NotedIds, ...]
    targets: tuple[NotedTargets, ...]
    unused: UnusedGradients | None


@computed
def tensor_values(trace: Trace) -> TensorValues | None:
    """Return what was noted; None without a recorder that read values."""
    noted = metadata_mapping(trace, KEY).get(SUBJECT)
    if not isinstance(noted, Mapping):
        return None
    operators_ns = as_count(noted.get("operators_ns"))
    if not operators_ns:
        return None
    return TensorValues(
        operators_ns=operators_ns,
        constant=tuple(_noted_lines(noted.get("constant"))),
        repeated=tuple(_noted_lines(noted.get("repeated"))),
        loops=tuple(_noted_lines(noted.get("loops"))),
        extended=tuple(_noted_lines(noted.get("extended"))),
        sparse=tuple(_sparse(noted.get("zeros"))),
        ids=tuple(_ids(noted.get("ids"))),
        targets=tuple(_targets(noted.get("ignored_targets"))),
        unused=_unused(noted.get("unused_gradients")),
    )


def _noted_lines(rows: object) -> Iterator[NotedLine]:
    for row in _mappings(rows):
        time_ns, number = as_count(row.get("time_ns")), as_count(row.get("count"))
        if time_ns and number:
            yield NotedLine(
                line=_text(row.get("line")),
                first_line=_text(row.get("first_line")),
                inner_line=_text(row.get("inner_line")),
                count=number,
                time_ns=time_ns,
                is_recomputed=row.get("is_recomputed") is True,
                calls=tuple(_calls(row.get("calls"))),
                runs=as_count(row.get("runs")) or 0,
            )


def _sparse(rows: object) -> Iterator[SparseOperand]:
    for row in _mappings(rows):
        zero, zero_rows = (
            _fraction(row.get(f"zero_{name}")) for name in ("fraction", "row_fraction")
        )
        call = row.get("call")
        if zero is None or zero_rows is None or not isinstance(call, list) or len(call) != 3:
            continue
        name, shapes, ranges = call
        for calls in _calls([[name, shapes, 0, ranges]]):
            yield SparseOperand(
                line=_text(row.get("line")),
                time_ns=as_count(row.get("time_ns")) or 0,
                zero_fraction=zero,
                zero_row_fraction=zero_rows,
                calls=calls,
            )


def _ids(rows: object) -> Iterator[NotedIds]:
    for row in _lists(rows):
        if len(row) != 5:
            continue
        line, *counts = row
        _, elements, padded, removable = map(as_count, counts)
        if elements and padded is not None and removable is not None and padded <= elements:
            yield NotedIds(
                line=_text(line),
                elements=elements,
                padded=padded,
                removable=min(padded, removable),
            )


def _targets(rows: object) -> Iterator[NotedTargets]:
    for row in _mappings(rows):
        classes, targets, ignored = (
            as_count(row.get(n)) for n in ("classes", "targets", "ignored")
        )
        if classes and targets and ignored is not None and ignored <= targets:
            yield NotedTargets(
                line=_text(row.get("line")),
                classes=classes,
                targets=targets,
                ignored=ignored,
                calls=tuple(_calls(row.get("calls"))),
            )


def _unused(noted: object) -> UnusedGradients | None:
    if not isinstance(noted, Mapping):
        return None
    number, of = as_count(noted.get("count")), as_count(noted.get("of"))
    if not number or of is None or of < number:
        return None
    rows = [[*row[:2], 0, *row[2:]] for row in _lists(noted.get("calls")) if len(row) == 3]
    return UnusedGradients(
        count=number,
        of=of,
        time_ns=as_count(noted.get("time_ns")) or 0,
        gradients_ns=as_count(noted.get("gradients_ns")) or 0,
        is_of_whole_models=noted.get("is_of_whole_models") is True,
        calls=tuple(_calls(rows)),
    )


def _calls(rows: object) -> Iterator[NotedCalls]:
    for row in _lists(rows)[:MOST_CALLS]:
        if len(row) < 4 or not isinstance(row[0], str):
            continue
        shapes = tuple(_numbers(sizes) for sizes in _lists(row[1]))
        yield NotedCalls(
            name=row[0][:MOST_CHARACTERS],
            shapes=shapes,
            total=as_count(row[2]) or 0,
            ranges=tuple(_ranges(row[3])),
        )


def _ranges(values: object) -> Iterator[tuple[int, int]]:
    for first, last in (sizes for row in _lists(values) if len(sizes := _numbers(row)) == 2):
        if first <= last:
            yield first, last


def _numbers(values: object) -> tuple[int, ...]:
    listed = values[:MOST_NUMBERS] if isinstance(values, list) else []
    return tuple(number for number in map(as_count, listed) if number is not None)


def _mappings(rows: object) -> Iterable[Mapping[str, Any]]:
    listed = rows[:MOST_LINES] if isinstance(rows, list) else []
    return [row for row in listed if isinstance(row, Mapping)]


def _lists(rows: object) -> list[list[Any]]:
    listed = rows[:MOST_CALLS] if isinstance(rows, list) else []
    return [row for row in listed if isinstance(row, list)]


def _fraction(value: object) -> float | None:
    number = as_quantity(value)
    return number if number is not None and number <= 1.0 else None


def _text(value: object) -> str:
    return value[:MOST_CHARACTERS] if isinstance(value, str) else ""
