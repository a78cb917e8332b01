"""Calls of layers in training mode: dropout that drops, batch norms that use batch statistics.

`aten::dropout` and `aten::batch_norm` take an argument `train` or `training`
(`aten/src/ATen/native/native_functions.yaml`), recorded with shapes. Without it, a dropout that
calls other operators is active. Batch normalisation without running statistics
(`track_running_stats=False`, instance normalisation) has no other mode.
"""

import json

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

DROPOUTS = frozenset({"aten::dropout", "aten::feature_dropout", "aten::alpha_dropout"})
BATCH_NORM, INSTANCE_NORM = "aten::batch_norm", "aten::instance_norm"
PROBABILITY_AT, DROPS_AT = 1, 2
RUNNING_MEAN_AT, NORMALISES_AT = 3, 5
NOTHING = ("0", "0.0", "0.", "")


@computed
def training_layers(trace: Trace) -> Ints:
    """Return the rows of `host_calls` with layers in training mode, in start order."""
    return np.sort(np.concatenate((_dropping(trace), _normalising(trace))))


def _dropping(trace: Trace) -> Ints:
    calls = trace.host_calls
    rows = np.flatnonzero(name_mask(calls["name"], DROPOUTS.__contains__))
    train_argument = _inputs(calls["concrete_inputs"], rows, DROPS_AT)
    chance = _inputs(calls["concrete_inputs"], rows, PROBABILITY_AT)
    calls_something = np.isin(rows, calls["parent"].to_numpy())
    drops = np.where(train_argument == "", calls_something, train_argument == "True")
    return np.asarray(rows[drops & ((train_argument == "") | ~np.isin(chance, NOTHING))])


def _normalising(trace: Trace) -> Ints:
    calls = trace.host_calls
    rows = np.flatnonzero(name_mask(calls["name"], BATCH_NORM.__eq__))
    above = calls["parent"].to_numpy()[rows]
    in_instance_norm = np.append(name_mask(calls["name"], INSTANCE_NORM.__eq__), False)[above]
    normalises = _inputs(calls["concrete_inputs"], rows, NORMALISES_AT) == "True"
    has_statistics = ~np.isin(_inputs(calls["input_dims"], rows, RUNNING_MEAN_AT), ("", "[]"))
    return np.asarray(rows[normalises & has_statistics & ~in_instance_norm])


def _inputs(column: "pd.Series[str]", rows: Ints, index: int) -> NDArray[np.str_]:
    """Return an input as text, for rows of a column of JSON lists; "" where unknown."""
    codes = column.cat.codes.to_numpy()[rows]
    used, at = np.unique(codes, return_inverse=True)
    texts = [_input(str(column.cat.categories[c]) if c != NONE else "", index) for c in used]
    return np.array(texts, dtype=np.str_)[at] if len(rows) else np.zeros(0, dtype=np.str_)


def _input(inputs: str, index: int) -> str:
    try:
        values = json.loads(inputs)
    except (ValueError, RecursionError):
        return ""
    return str(values[index]) if isinstance(values, list) and index < len(values) else ""
