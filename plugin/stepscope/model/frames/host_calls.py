"""Operators and annotations of the host, nested with each other: torch's call tree.

`Trace.operators` and `Trace.annotations` are its two halves.
"""

import json
import re
from collections.abc import Callable
from operator import attrgetter

import numpy as np
import pandas as pd

from stepscope.dialects import Kind
from stepscope.model import call_tree
from stepscope.model.frames import THREAD, TIMING, Column, Schema
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.source import Source
from stepscope.model.table import public_table

HIDDEN_NAMES = frozenset(
    # names that torch excludes from key_averages() (torch/autograd/profiler_util.py, _filter_name)
    {
        "[memory]",
        "[OutOfMemory]",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
    }
)
SHAPE = re.compile(r"(?:\d{1,18}(?: ?, ?\d{1,18})*)?", re.ASCII)
SCHEMA: Schema = (
    *TIMING,
    THREAD,
    Column("is_operator", "bool", "", "False for an annotation (`record_function`, a step)."),
    Column("parent", "int64", "id", "Row of its caller, -1 at the top."),
    Column("depth", "int64", "count", "Number of calls around it."),
    Column("self_ns", "int64", "ns", "Duration without its direct children."),
    Column("input_dims", "category", "text", "Shapes of the inputs (JSON), with record_shapes"
           " or from an execution trace."),
    Column("input_types", "category", "text", "Types of the inputs (JSON), likewise."),
    Column("concrete_inputs", "category", "text", "Values of scalar inputs (JSON)."),
    Column("sequence_number", "int64", "id", "Links forward and backward; -1: none."),
    Column("forward_thread_id", "int64", "id", "Of a backward call: torch's number of the forward"
           " call's thread; 0 or -1 of others."),
    Column("call_stack", "category", "text", "Python frames, if the file holds them as text."),
)  # fmt: skip


def build(source: Source) -> pd.DataFrame:
    """Return one row per operator or annotation, in `SCHEMA` columns, in the order they began."""
    rows = source.rows(Kind.OPERATOR, Kind.ANNOTATION)
    names = source.text(source.columns.name[rows])
    rows = rows[~name_mask(names, HIDDEN_NAMES.__contains__)]
    timing = source.timing(rows)
    thread = source.thread(rows)
    nesting = call_tree.nest(np.asarray(thread.codes), timing["start_ns"], timing["duration_ns"])
    return pd.DataFrame(
        {
            **timing,
            "thread": thread,
            "is_operator": source.kinds[rows] == int(Kind.OPERATOR),
            "parent": nesting.parent,
            "depth": nesting.depth,
            "self_ns": nesting.self_ns,
            "input_dims": _as_lists(source.label("Input Dims", rows, "Input dims"), _shape),
            "input_types": _as_lists(source.label("Input type", rows), str),
            "concrete_inputs": source.label("Concrete Inputs", rows),
            "sequence_number": source.whole("Sequence number", rows),
            "forward_thread_id": source.whole("Fwd thread id", rows),
            "call_stack": source.label("Call stack", rows),
        },
        copy=False,
    )


def _as_lists(texts: pd.Categorical, item: Callable[[str], object]) -> pd.Categorical:
    """Return texts as JSON; torch_npu separates inputs by semicolons: `32,64;64,8`."""
    if all(str(text).startswith("[") for text in texts.categories):
        return texts
    lists = np.array([_as_list(str(text), item) for text in texts.categories], dtype=object)
    distinct, index = np.unique(lists, return_inverse=True)
    codes = np.append(index, -1)[texts.codes]
    return pd.Categorical.from_codes(codes, categories=pd.Index(distinct, dtype=object))


def _as_list(text: str, item: Callable[[str], object]) -> str:
    if text.startswith("["):
        return text
    return json.dumps([item(part.strip()) for part in text.split(";")], separators=(",", ":"))


def _shape(text: str) -> list[int] | str:
    """Return one input's shape, or the text if it is not a shape."""
    if not SHAPE.fullmatch(text):
        return text
    return [int(size) for size in text.split(",") if size.strip()]


public_table(
    "host-calls",
    SCHEMA,
    "One row per call of an operator or an annotation, nested, in the order they began.",
)(attrgetter("host_calls"))
