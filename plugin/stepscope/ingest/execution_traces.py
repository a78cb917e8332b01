"""Execution traces: JSON files of `torch.profiler.ExecutionTraceObserver`, one node per call.

A node has the shapes, types and values of the inputs, which are returned as kineto writes them with
`record_shapes=True` (`Input Dims`, `Input type`, `Concrete Inputs`). Schema 1.1 groups them in
`inputs` and `attrs`; schema 1.0 has them at the node.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from stepscope.base.errors import UnreadableError
from stepscope.ingest.gc_pause import without_collections
from stepscope.ingest.memory_files import HEAD_BYTES, read_head, read_whole

MOST_BYTES = 2**30 // 2
RECORD_AGAIN = (
    "Record it again, and call observer.unregister_callback() after the last step: it ends the"
    " file."
)
RECORD_LESS = "Record fewer steps."
HEAD = re.compile(
    r'\s*\{(?P<fields>(?:\s*"\w+"\s*:\s*(?:"[^"\\]*"|-?[\d.]+)\s*,)*)\s*"nodes"\s*:\s*\['
)
SCHEMA = re.compile(r'"schema"\s*:\s*"')
PROCESS = re.compile(r'"pid"\s*:\s*(\d{1,18})\b')
BETWEEN = re.compile(r"[\s,]*")
NODE = re.compile(r'\{\s*"id"\s*:')
LIST = re.compile(r"(?:Generic)?List\[(?P<items>.*)\]")
ITEM = re.compile(r"Tensor\([^()]*(?:\([^()]*\)[^()]*)*\)|[^,]+")
TENSOR = re.compile(r"Tensor\((?P<type>.*)\)")
UNDEFINED = "nullptr (uninitialized)"
OPTIONAL_TENSORS = "Tensor?[]"
SCALARS = frozenset({"Int", "Double", "Bool", "ComplexDouble", "SymInt", "SymFloat", "SymBool"})


@dataclass(frozen=True, kw_only=True)
class NodeInputs:
    """The inputs of one call, as kineto writes them."""

    name: str
    dims: str
    """Shapes (JSON); empty without inputs."""
    types: str
    values: str
    """Values of scalars (JSON)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ExecutionTrace:
    """The calls of one process."""

    calls: Mapping[int, NodeInputs]
    """By `rf_id`, the id of torch's record function."""
    lost_count: int
    """Number of nodes that are not valid JSON."""


def process_of(path: str) -> int | None:
    """Return the process of an execution trace, by the file's first bytes; None for other files.

    Raises:
        UnreadableError: The file cannot be read.
    """
    head = HEAD.match(read_head(path, HEAD_BYTES).decode("utf-8", "replace"))
    if head is None or not SCHEMA.search(head["fields"]):
        return None
    process = PROCESS.search(head["fields"])
    return int(process[1]) if process else None


def read(path: str) -> ExecutionTrace:
    """Read an execution trace; nodes that are not valid JSON are left out and counted.

    torch does not escape quotes in the names of ranges.

    Raises:
        UnreadableError: The file cannot be read, has no valid node, or is too large.
    """
    text = read_whole(path, MOST_BYTES, RECORD_LESS).decode("utf-8", "replace")
    calls: dict[int, NodeInputs] = {}
    lost_count = 0
    with without_collections():
        for node in _nodes(text):
            if node is None:
                lost_count += 1
            elif (call := _call(node)) is not None:
                calls[call[0]] = call[1]
    if not calls:
        message = "This execution trace has no call with an id (rf_id)."
        raise UnreadableError(path, message, RECORD_AGAIN)
    return ExecutionTrace(calls=calls, lost_count=lost_count)


def _nodes(text: str) -> Iterator[object]:
    """Yield the nodes one by one, None for one that is not valid JSON."""
    start = HEAD.match(text)
    at = start.end() if start else len(text)
    decoder = json.JSONDecoder(strict=False)
    while (at := BETWEEN.match(text, at).end()) < len(text) and text[at] != "]":  # type: ignore[union-attr]
        try:
            node, at = decoder.raw_decode(text, at)
            yield node
        except (ValueError, RecursionError):
            yield None
            following = NODE.search(text, at + 1)
            at = following.start() if following else len(text)


def _call(node: object) -> tuple[int, NodeInputs] | None:
    """Return a node's id and inputs; None for a node without an id, such as a thread."""
    if not isinstance(node, Mapping):
        return None
    attributes = {
        attribute["name"]: attribute.get("value")
        for attribute in _sequence(node.get("attrs"))
        if isinstance(attribute, Mapping) and "name" in attribute
    }
    inputs = node.get("inputs")
    if isinstance(inputs, Mapping):
        parts = inputs.get("shapes"), inputs.get("types"), inputs.get("values")
    else:
        parts = node.get("input_shapes"), node.get("input_types"), inputs
    identity = attributes.get("rf_id", node.get("rf_id"))
    if not isinstance(identity, int) or identity <= 0:
        return None
    schema = str(attributes.get("op_schema", node.get("op_schema", "")))
    return identity, _inputs(str(node.get("name", "")), schema, *map(_sequence, parts))


def _sequence(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _inputs(
    name: str, schema: str, shapes: Sequence[Any], types: Sequence[Any], values: Sequence[Any]
) -> NodeInputs:
    if not types or not len(shapes) == len(types) == len(values):
        return NodeInputs(name=name, dims="", types="", values="")
    declared = _declared_types(schema)
    if len(declared) != len(types):
        declared = ("",) * len(types)
    names = [_type(str(written), of) for written, of in zip(types, declared, strict=True)]
    dims = [
        shape if kind not in {"", "Scalar", "ScalarList"} else []
        for shape, kind in zip(shapes, names, strict=True)
    ]
    concrete = [
        _value(value, kind, str(written))
        for value, kind, written in zip(values, names, types, strict=True)
    ]
    return NodeInputs(
        name=name, dims=_compact(dims), types=_compact(names), values=_compact(concrete)
    )


@cache
def _declared_types(schema: str) -> tuple[str, ...]:
    """Return the types of the parameters in an operator's schema."""
    _, _, parameters = schema.partition("(")
    parts = parameters.rpartition(") ->")[0].split(", ")
    return tuple(part.partition(" ")[0] for part in parts if part not in {"", "*"})


@cache
def _type(written: str, declared: str) -> str:
    """Return kineto's type of an input, empty where kineto names none."""
    if tensor := TENSOR.fullmatch(written):
        return "" if tensor["type"] == UNDEFINED else tensor["type"]
    if listed := LIST.fullmatch(written):
        items = ITEM.findall(listed["items"])
        if items and all(map(TENSOR.fullmatch, items)):
            is_optional = declared == OPTIONAL_TENSORS or UNDEFINED in written
            return "" if is_optional else "TensorList"
        return "ScalarList" if SCALARS.issuperset(items) else ""
    return "Scalar" if written in SCALARS else ""


def _value(value: object, kind: str, written: str) -> str:
    """Return the value of a scalar or of a list of scalars as kineto writes it."""
    if kind == "Scalar":
        return _scalar(value, written)
    if kind == "ScalarList" and isinstance(value, list):
        listed = LIST.fullmatch(written)
        kinds = ITEM.findall(listed["items"]) if listed else []
        return f"[{', '.join(map(_scalar, value, kinds))}]"
    return ""


def _scalar(value: object, written: str) -> str:
    """Return a number as C++ prints it with 17 digits: `0.10000000000000001`, `1.`."""
    if written != "Double" or not isinstance(value, int | float):
        return str(value)
    text = f"{value:.17g}"
    return f"{text}." if text.lstrip("-").isdigit() else text


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
