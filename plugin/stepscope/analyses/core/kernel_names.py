"""Kernels' short names, `vectorized_elementwise_kernel<CUDAFunctor_add>`, and operand types.

Profilers demangle most C++ names, except very long ones and those that their library does not know
(ROCm's with `DF16b`, C++20's). This module reads only the path of those: of eight in real traces,
itanium_demangler 1.1 reads two and binutils' c++filt five.

The first floating-point type in a C++ kernel's template is that of the operands; later types are
the accumulator's or the result's. Libraries spell types in other ways (`Dialect.operand_types`).
Collectives' names have no reliable type.
"""

import re
from functools import lru_cache

from stepscope.dialects import Dialect

_MANGLED = re.compile(r"^_ZN?K?(?=\d)")
_MANGLED_ARGUMENT = re.compile(r"(?<!L[a-z])(?<!DF)(?<![\dS])[1-9]\d*")  # `DF16b`: bfloat16
_LENGTH = re.compile(r"\d{1,9}")
_PLAIN = re.compile(r"^[\w.$-]*$")
_TRANSFER = re.compile(r"^Mem(?:cpy|set)(?: \w+)?(?= ?\()")
_LEADING = re.compile(r"^(?:void|static|__global__|auto)\s+")
_NOISE = re.compile(
    r"\(anonymous namespace\)::|<unnamed>::|\{anonymous\}::|\(anonymous class\)::|\bconst\b"
)
_PATH = re.compile(r"(?<![\w$])[A-Za-z_][\w$]*(?:::[A-Za-z_~][\w$]*)*")
_OF_NO_INTEREST = re.compile(
    r"^(?:float|double|int|unsigned|long|short|char|bool|void|true|false|nullptr|signed|const"
    r"|u?int\d+_t|size_t|c10|at|std|__half2?|__nv_bfloat162?|__hip_bfloat16|bfloat16|half"
    r"|Half|BFloat16|Float8_\w+|complex|Array|TrivialOffsetCalculator|OffsetCalculator"
    r"|LoadWithoutCast|StoreWithoutCast|LoadWithCast|StoreWithCast|TensorInfo|integral_constant"
    r"|cudnnKernelDataType_t|\w*TensorListMetadata|ReduceOp|func_wrapper_t|gpu_kernel_impl\w*"
    r"|\w*(?:Unary|Binary)Functor|\w*Policy\w*|policy_type|TensorIterator\w*|Kernel\d*)$"
)
_TELLS_NOTHING = re.compile(r"^(?:device_)?kernel\d*$", re.IGNORECASE)
_OPEN, _CLOSE = "<([{", ">)]}"
_OPENS = dict(zip(_CLOSE, _OPEN, strict=True))


@lru_cache(maxsize=65536)
def short(name: str) -> str:
    """Return a kernel's name without namespaces, arguments and most of its template.

    The template's first part that names an operation stays: many kernels differ in that alone.
    Names other than C++ (Triton's, hipBLASLt's) are unchanged; copies and memory sets lose their
    kinds of memory.
    """
    if _MANGLED.match(name):
        return _short_mangled(name)
    if transfer := _TRANSFER.match(name):
        return transfer[0]
    if _PLAIN.match(name) or ("::" not in name and "<" not in name and "(" not in name):
        return name
    text = _LEADING.sub("", _NOISE.sub("", name).strip())
    head, template = _split(text)
    return _joined(head.split()[-1].split("::") if head.split() else [name], _operation(template))


def template(name: str) -> str:
    """Return the template arguments in a kernel's name, without brackets, or ""."""
    return _split(_LEADING.sub("", _NOISE.sub("", name).strip()))[1]


def _joined(path: list[str], operation: str) -> str:
    base = path[-1]
    if operation and operation != base:
        return f"{base}<{operation}>"
    if _TELLS_NOTHING.match(base) and len(path) > 1:
        return f"{path[-2]}::{base}"
    return base


@lru_cache(maxsize=4096)
def _split(text: str) -> tuple[str, str]:
    """Return the text before the template and the arguments, and the last template."""
    opened: list[str] = []
    begin, template = 0, ""
    head: list[str] = []
    for index, character in enumerate(text):
        if character in _OPEN:
            if not opened:
                if character != "<":
                    break  # the arguments
                begin = index + 1
            opened.append(character)
        elif not opened:
            head.append(character)
        elif _closes(text, index, opened[-1]):
            opened.pop()
            template = template if opened else text[begin:index]
    return "".join(head), template


def _closes(text: str, index: int, opened: str) -> bool:
    """Return whether a character closes the last open bracket: not in `->` or `<((8)>(0))>`."""
    return _OPENS.get(text[index]) == opened and not text.startswith("->", index - 1)


def _operation(template: str) -> str:
    for path in _PATH.findall(template):
        last = path.rsplit("::", 1)[-1]
        if not _OF_NO_INTEREST.match(last) and not last.startswith(("lambda", "operator")):
            return str(last)
    return ""


def _short_mangled(name: str) -> str:
    """Return the short form of an Itanium-mangled name: `_ZN2at6native3addILi4EEEvv` is `add`."""
    path, at = _mangled_path(name, len((_MANGLED.match(name) or [""])[0]))
    argument = _MANGLED_ARGUMENT.search(name, at) if name.startswith("I", at) else None
    inner = _mangled_path(name, argument.start())[0] if argument else []
    operation = inner[-1] if inner and not _OF_NO_INTEREST.match(inner[-1]) else ""
    return _joined(path, operation) if path else name


def _mangled_path(name: str, at: int) -> tuple[list[str], int]:
    path: list[str] = []
    while match := _LENGTH.match(name, at):
        end = match.end() + int(match[0])
        if end > len(name):
            break  # cut off, or not a mangled name
        at, part = end, name[match.end() : end]
        if not part.startswith("_GLOBAL__N_"):
            path.append(part)
    return path, at


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
