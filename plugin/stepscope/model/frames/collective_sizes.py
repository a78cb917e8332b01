"""Message sizes of collectives, from their arguments or from the shapes of their inputs."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.model.frames import collective_names as names
from stepscope.model.frames.collective_evidence import (
    Evidence,
    Floats,
    Texts,
    bounded,
    category,
    filled,
    mapped,
)

SYMMETRIC = ("all_reduce", "broadcast", "reduce")
"""Kinds in which every rank outputs as much as it inputs."""
SIDES = re.compile(r"^c10d::_?(?:all_?gather|reduce_?scatter|all_?to_?all)_?(?:into_tensor_)?base_")
"""torch's operators whose first input is the output tensor, and the second the input."""


def sizes(evidence: Evidence, kind: Texts, function: Texts, group_size: Floats) -> dict[str, Any]:
    """Return the columns `dtype`, `in_bytes`, `out_bytes` and `message_bytes`."""
    dtype = filled(
        mapped(evidence.text("dtype"), names.type_of),
        mapped(evidence.types(evidence.annotation), names.first_type),
        mapped(evidence.types(evidence.function), names.first_type),
    )
    put_in, got_out = _both_sides(kind, *_elements(evidence, function), group_size)
    item = np.array([pair[1] if pair else np.nan for pair in dtype], dtype=np.float64)
    item[kind == "barrier"] = np.nan  # it sends a byte or so, which says nothing
    return {
        "dtype": category(np.array([pair[0] if pair else None for pair in dtype], dtype=object)),
        "in_bytes": put_in * item,
        "out_bytes": got_out * item,
        "message_bytes": np.fmax(put_in, got_out) * item,
    }


def by_ratio(kind: Texts, columns: dict[str, Any], group_size: Floats) -> Floats:
    """Return the group's size; if nothing else has it, from the ratio of input and output."""
    larger, smaller = columns["message_bytes"], np.fmin(columns["in_bytes"], columns["out_bytes"])
    ratio = np.divide(larger, smaller, out=np.full(len(larger), np.nan), where=smaller > 0)
    tells = np.isin(kind, ("all_gather", "reduce_scatter")) & (ratio == np.floor(ratio))
    return np.where(np.isnan(group_size) & tells & (ratio > 1), ratio, group_size)


def _elements(evidence: Evidence, function: Texts) -> tuple[Floats, Floats]:
    """Return the number of elements that a rank inputs and outputs; NaN if unknown."""
    annotated = mapped(evidence.shapes(evidence.annotation), names.elements_of)
    inputs = mapped(evidence.shapes(evidence.function), names.elements_of)
    has_sides = np.array([bool(name and SIDES.match(name)) for name in function], dtype=bool)
    sent = np.where(has_sides, _item(inputs, 1), _item(inputs, 0))
    put_in = filled(evidence.count("In msg nelems"), _total(annotated), sent)
    return put_in, filled(
        evidence.count("Out msg nelems"), np.where(has_sides, _item(inputs, 0), np.nan)
    )


def _both_sides(
    kind: Texts, put_in: Floats, got_out: Floats, group_size: Floats
) -> tuple[Floats, Floats]:
    """Derive missing sizes from the kind: the annotation's shapes are those of the input."""
    follows = {"all_gather": put_in * group_size, "reduce_scatter": put_in / group_size}
    follows |= dict.fromkeys((*SYMMETRIC, "all_to_all"), put_in)
    for symmetric, elements in follows.items():
        got_out = np.where((kind == symmetric) & np.isnan(got_out), elements, got_out)
    is_missing = np.isin(kind, SYMMETRIC) & np.isnan(put_in)
    return np.where(is_missing, got_out, put_in), got_out


def _total(counts: NDArray[Any]) -> Floats:
    return bounded(np.array([sum(of) if of else np.nan for of in counts], dtype=np.float64))


def _item(counts: NDArray[Any], index: int) -> Floats:
    values = [of[index] if of and len(of) > index and of[index] else np.nan for of in counts]
    return bounded(np.array(values, dtype=np.float64))
