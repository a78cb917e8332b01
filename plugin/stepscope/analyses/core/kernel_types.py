"""Operand types of kernels, by their names.

The first floating-point type in a C++ kernel's template is that of the operands; later types are
the accumulator's or the result's. Libraries spell types in other ways (`Dialect.operand_types`).
Collectives' names have no reliable type.
"""

import re

from stepscope.analyses.core.kernel_names import template
from stepscope.dialects import Dialect

TEMPLATE_TYPES = (
    ("BFloat16|bfloat16(?:_t)?|__nv_bfloat16|__hip_bfloat16|bf16_t", "bfloat16"),
    ("Half|half(?:_t)?|__half|fp16_t|_Float16", "float16"),
    ("Float8_e4m3fn|float_e4m3_t|__nv_fp8_e4m3", "float8_e4m3fn"),
    ("Float8_e4m3fnuz|__hip_fp8_e4m3_fnuz", "float8_e4m3fnuz"),
    ("Float8_e5m2|float_e5m2_t|__nv_fp8_e5m2", "float8_e5m2"),
    ("tfloat32_t", "tf32"),
    ("complex<float>", "complex64"),
    ("complex<double>", "complex128"),
    ("float", "float32"),
    ("double", "float64"),
)
"""Names of types in C++ (torch, CUDA, HIP, cutlass) and torch's name of each."""
_TYPES = re.compile(
    "|".join(rf"\b(?P<t{index}>{names})(?!\w)" for index, (names, _) in enumerate(TEMPLATE_TYPES))
)
_ARGUMENTS = re.compile(r"(?<!lambda)\([^()]*\)")
"""Arguments of functions in a template; those of `{lambda(float)#1}` stay: the kernel's type."""


def operand_type(dialect: Dialect, kernel: str) -> str | None:
    """Return torch's name of a kernel's operand type; None: not in its name."""
    if dialect.collective.search(kernel):
        return None
    for pattern, name in dialect.operand_types:
        if pattern.search(kernel):
            return name
    match = _TYPES.search(_ARGUMENTS.sub("", template(kernel)))
    if match is None or match.lastgroup is None:
        return None
    return TEMPLATE_TYPES[int(match.lastgroup[1:])][1]
