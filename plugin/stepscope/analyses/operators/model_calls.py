"""Heavy operators of a model: their device, and layers that are in training mode.

Heavy are convolutions, matrix products, attention and recurrent layers, forward and backward.
Operators of a DataLoader in its own process, and of torch.compile's tracing, are not the model's.

`aten::dropout` and `aten::batch_norm` take an argument `train` or `training`
(`aten/src/ATen/native/native_functions.yaml`), recorded with shapes. Without it, a dropout that
calls other operators is active. Batch normalisation without running statistics
(`track_running_stats=False`, instance normalisation) has no other mode.
"""

import json
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry, frame_times
from stepscope.analyses.core.compile_events import compile_events
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

MODEL_OPERATOR = re.compile(
    r"^aten::(?:_?conv(?:olution(?:_overrideable)?|[123]d|_transpose[123]d)?|convolution_backward"
    r"|linear|addmm|mm|bmm|baddbmm|scaled_dot_product_attention|lstm|gru|rnn_(?:tanh|relu))$"
    r"|^\w*Conv\w*Backward\d*$|^(?:Addmm|Mm|Bmm|Baddbmm|Linear|MkldnnLinear)Backward\d*$"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class ModelCalls:
    """Calls of heavy operators that no other such call encloses; arrays are parallel."""

    rows: Ints
    """Rows of `host_calls` in the window."""
    on_device: Mask
    """Whether the call launched anything."""
    host_times: Intervals
    """Times of the calls that launched nothing, outside data loading."""

    @property
    def on_host_count(self) -> int:
        """Number of calls that launched nothing."""
        return int(np.count_nonzero(~self.on_device))


@computed
def model_calls(trace: Trace) -> ModelCalls:
    """Return the calls of heavy operators, and the ones that ran on the CPU."""
    calls = trace.host_calls
    parent = calls["parent"].to_numpy()
    is_heavy = name_mask(calls["name"], MODEL_OPERATOR.search)
    is_heavy &= compile_events(trace).phase < 0
    span, start = window(trace), calls["start_ns"].to_numpy()
    is_heavy &= (start >= span.start_ns) & (start < span.end_ns)
    rows = np.flatnonzero(is_heavy)
    above = ancestry.nearest_of(parent, parent[rows], is_heavy)
    rows = rows[above == NONE]
    loading = data_loading(trace).times
    rows = rows[~_inside(loading, start[rows])]
    launches = _launches(trace)
    on_device = launches[rows] > 0
    return ModelCalls(
        rows=rows,
        on_device=on_device,
        host_times=intervals.difference(frame_times.times(calls, rows[~on_device]), loading),
    )


def _inside(times: Intervals, moment_ns: Ints) -> Mask:
    return intervals.covered_ns(times, moment_ns, moment_ns + 1) > 0


def _launches(trace: Trace) -> Ints:
    """Return the number of runtime calls and device events of each call, with nested calls."""
    linked = links(trace)
    owners = np.concatenate((linked.owner_of_call, linked.owner_of_device_event))
    launch_count = np.bincount(owners[owners >= 0], minlength=len(trace.host_calls))
    return ancestry.with_descendants(
        trace.host_calls["parent"].to_numpy(), launch_count.astype(np.int64)
    )[0]


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
