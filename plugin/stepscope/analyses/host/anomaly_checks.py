"""Checks of torch's anomaly detection after every function of the backward pass.

With `torch.autograd.set_detect_anomaly(True)` the engine checks each result for NaN
(`torch/csrc/autograd/engine.cpp`, `call_function`): `aten::isnan`, then `aten::_is_any_true`
(`aten::any` before torch 2.0) and `aten::item`, directly in the engine's range.
"""

from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.window import window
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

ENGINE = "autograd::engine::evaluate_function"
NAN_CHECK = "aten::isnan"
CHECK_NAMES = frozenset({NAN_CHECK, "aten::_is_any_true", "aten::any", "aten::item"})


@dataclass(frozen=True, kw_only=True, eq=False)
class AnomalyChecks:
    """Rows of `host_calls` in the window, in start order."""

    nan_checks: Ints
    """Calls of `aten::isnan`."""
    calls: Ints
    """The NaN checks, and the calls that read their results."""


@computed
def anomaly_checks(trace: Trace) -> AnomalyChecks:
    """Return the NaN checks directly in the engine's range of a backward function."""
    calls, span = trace.host_calls, window(trace)
    parent = np.append(calls["parent"].to_numpy(), -1)
    is_engine = np.append(name_mask(calls["name"], lambda name: name.startswith(ENGINE)), False)
    begins = calls["start_ns"].to_numpy()
    rows = np.flatnonzero(name_mask(calls["name"], CHECK_NAMES.__contains__))
    rows = rows[(begins[rows] >= span.start_ns) & (begins[rows] < span.end_ns)]
    rows = rows[is_engine[parent[rows]]]
    is_nan_check = (calls["name"].iloc[rows] == NAN_CHECK).to_numpy()
    nan_checks = rows[is_nan_check]
    is_checked = np.isin(parent[rows], parent[nan_checks])
    return AnomalyChecks(nan_checks=nan_checks, calls=rows[is_checked])
