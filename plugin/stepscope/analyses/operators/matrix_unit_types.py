"""Operand types that matrix units support.

Half precision and below always fits; float32 where torch may round it (TF32), which only the
kernels show: `allow_tf32` is not in the file. Other types do not fit.
"""

import numpy as np

from stepscope.analyses.operators import matrix_units
from stepscope.analyses.operators.costs import operator_calls
from stepscope.analyses.operators.flops import operator_work
from stepscope.model.arrays import Floats
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace

FITTING_TYPES = frozenset(
    {
        "float16",
        "bfloat16",
        "float8_e4m3fn",
        "float8_e4m3fnuz",
        "float8_e5m2",
        "float8_e5m2fnuz",
        "float4_e2m1fn_x2",
        "int8",
        "uint8",
    }
)


def fits_matrix_unit(trace: Trace) -> Floats:
    """Return 1 for calls whose operands matrix units used or could use, and 0 for others.

    NaN for operators that are not matrix operations, for types that were not recorded, and for
    float32 without a kernel that shows it.
    """
    is_eligible = name_mask(trace.host_calls["name"], matrix_units.is_eligible)
    types = operator_work(trace).data_type
    costs = operator_calls(trace)
    is_single = name_mask(types, "float32".__eq__)
    runs_on_device = costs.device_total_ns > 0
    is_classified = is_eligible & (types.codes >= 0)
    is_classified &= ~is_single | (runs_on_device & (trace.dialect.matrix_unit_kernel is not None))
    fits = name_mask(types, FITTING_TYPES.__contains__)
    fits |= is_single & (costs.matrix_unit_total_ns > 0)
    return np.where(is_classified, fits, np.nan)
