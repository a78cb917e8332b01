"""How much a collective sends: by its own arguments, else by the shapes of what was given to it."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.model.frames import collective_names as words
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
"""Kinds in which every rank gets out as much as it puts in."""
SIDES = re.compile(r"^c10d::_?(?:all_?gather|reduce_?scatter|all_?to_?all)_?(?:into_tensor_)?base_")
"""torch's operators whose first input is the tensor that is filled, the second the one sent."""


def sizes(seen: Evidence, kind: Texts, function: Texts, group_size: Floats) -> dict[str, Any]:
    """Return the columns `dtype`, `in_bytes`, `out_bytes` and `message_bytes`."""
    dtype = filled(
        mapped(seen.text("dtype"), words.type_of),
        mapped(seen.types(seen.annotation), words.first_type),
        mapped(seen.types(seen.function), words.first_type),
    )
    put_in, got_out = _both_sides(kind, *_elements(seen, function), group_size)
    item = np.array([pair[1] if pair else np.nan for pair in dtype], dtype=np.float64)
    item[kind == "barrier"] = np.nan  # it sends a byte or so, which says nothing
    return {
        "dtype": category(np.array([pair[0] if pair else None for pair in dtype], dtype=object)),
        "in_bytes": put_in * item,
        "out_bytes": got_out * item,
        "message_bytes": np.fmax(put_in, got_out) * item,
    }


def by_ratio(kind: Texts, told: dict[str, Any], group_size: Floats) -> Floats:
    """Return the group's size, by what goes in and comes out where nothing else tells it."""
    larger, smaller = told["message_bytes"], np.fmin(told["in_bytes"], told["out_bytes"])
    ratio = np.divide(larger, smaller, out=np.full(len(larger), np.nan), where=smaller > 0)
    tells = np.isin(kind, ("all_gather", "reduce_scatter")) & (ratio == np.floor(ratio))
    return np.where(np.isnan(group_size) & tells & (ratio > 1), ratio, group_size)


def _elements(seen: Evidence, function: Texts) -> tuple[Floats, Floats]:
    """Return how many elements a rank puts in and gets out; NaN where nothing tells."""
    annotated = mapped(seen.shapes(seen.annotation), words.elements_of)
    inputs = mapped(seen.shapes(seen.function), words.elements_of)
    has_sides = np.array([bool(name and SIDES.match(name)) for name in function], dtype=bool)
    sent = np.where(has_sides, _item(inputs, 1), _item(inputs, 0))
    put_in = filled(seen.count("In msg nelems"), _total(annotated), sent)
    return put_in, filled(
        seen.count("Out msg nelems"), np.where(has_sides, _item(inputs, 0), np.nan)
    )


def _both_sides(
    kind: Texts, put_in: Floats, got_out: Floats, group_size: Floats
) -> tuple[Floats, Floats]:
    """Fill in what follows from the kind: the annotation's shapes are those put in."""
    follows = {"all_gather": put_in * group_size, "reduce_scatter": put_in / group_size}
    follows |= dict.fromkeys((*SYMMETRIC, "all_to_all"), put_in)
    for which, elements in follows.items():
        got_out = np.where((kind == which) & np.isnan(got_out), elements, got_out)
    is_known = np.isin(kind, SYMMETRIC) & np.isnan(put_in)
    return np.where(is_known, got_out, put_in), got_out


def _total(counts: NDArray[Any]) -> Floats:
    return bounded(np.array([sum(of) if of else np.nan for of in counts], dtype=np.float64))


def _item(counts: NDArray[Any], place: int) -> Floats:
    found = [of[place] if of and len(of) > place and of[place] else np.nan for of in counts]
    return bounded(np.array(found, dtype=np.float64))
