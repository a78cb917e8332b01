"""Types of tensors in `Input type`: their usual names and sizes.

torch writes a tensor's type as `caffe2::TypeMeta` names it (`c10/util/typeid.h`): C++ types such as
`float`, `long int` and `c10::BFloat16`. Other inputs are `Scalar`, `ScalarList`, `TensorList`,
`GenericList` or empty.
"""

from collections.abc import Mapping
from types import MappingProxyType

BYTES: Mapping[str, int] = MappingProxyType(
    {"float64": 8, "float32": 4}
    | dict.fromkeys(("float16", "bfloat16"), 2)
    | dict.fromkeys(("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"), 1)
    | {"float8_e8m0fnu": 1, "float4_e2m1fn_x2": 1}
    | {"complex32": 4, "complex64": 8, "complex128": 16}
    | {"int64": 8, "int32": 4, "int16": 2, "int8": 1}
    | {"uint64": 8, "uint32": 4, "uint16": 2, "uint8": 1}
    | {"bool": 1, "qint8": 1, "quint8": 1, "qint32": 4}
)
"""Bytes per element, by torch's name of the type; tables list types in this order."""
PACKED_TYPE = "float4_e2m1fn_x2"
"""An element of it contains two numbers."""
_CPP_NAMES: Mapping[str, tuple[str, ...]] = {
    # including those of c10::toString in arguments of collectives, and of NPUs
    "float64": ("double",),
    "float32": ("float", "fp32"),
    "float16": ("half", "fp16"),
    "bfloat16": ("bfp16",),
    "int64": ("long int", "long", "long long", "__int64"),
    "int32": ("int",),
    "int16": ("short", "short int"),
    "int8": ("signed char", "char"),
    "uint64": ("unsigned long", "long unsigned int"),
    "uint32": ("unsigned int",),
    "uint16": ("unsigned short", "short unsigned int"),
    "uint8": ("unsigned char", "byte"),
    "complex32": ("complex<half>",),
    "complex64": ("complex<float>", "complexfloat"),
    "complex128": ("complex<double>", "complexdouble"),
}
_CPP = {cpp: name for name, cpp_names in _CPP_NAMES.items() for cpp in cpp_names}


def data_type(written: str) -> str | None:
    """Return torch's name of a recorded type; None if it is not a tensor's."""
    name = written.replace("c10::", "").replace("at::", "").strip().lower()
    name = _CPP.get(name, name)
    return name if name in BYTES else None


SCALAR_TYPES: Mapping[str, str] = MappingProxyType(
    # c10/core/ScalarType.h: the encoding of an argument `dtype` in the concrete inputs
    {
        "0": "uint8",
        "1": "int8",
        "2": "int16",
        "3": "int32",
        "4": "int64",
        "5": "float16",
        "6": "float32",
        "7": "float64",
        "9": "complex64",
        "10": "complex128",
        "11": "bool",
        "15": "bfloat16",
        "23": "float8_e5m2",
        "24": "float8_e4m3fn",
    }
)
"""torch's name of a type by its number in `c10::ScalarType`."""
