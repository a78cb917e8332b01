"""Short names for kernels: `vectorized_elementwise_kernel<CUDAFunctor_add>`.

Profilers undo C++'s mangling themselves, but for names that their library does not know (ROCm's
with `DF16b`, C++20's) or that are very long. Of those the path is read here, and no more: of eight
in real traces itanium_demangler 1.1 reads two, binutils' c++filt (what cxxfilt calls, where there
is a libstdc++) five.
"""

import re
from functools import lru_cache

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
    """Return a kernel's name without its namespaces, arguments and most of its template.

    Of the template the first part that names an operation is kept, since many kernels differ in
    that alone. Names that are no C++ (Triton's, hipBLASLt's) stay as they are; copies and memory
    sets lose which kinds of memory they are of.
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
    """Return what stands in the angle brackets of a kernel's name, "" where it has none."""
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
    """Return what stands before the last part's template and arguments, and that template."""
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
    """Tell whether a character closes what was opened last: not as in `->` or `<((8)>(0))>`."""
    return _OPENS.get(text[index]) == opened and not text.startswith("->", index - 1)


def _operation(template: str) -> str:
    """Return the first name in the template that says what the kernel does."""
    for path in _PATH.findall(template):
        last = path.rsplit("::", 1)[-1]
        if not _OF_NO_INTEREST.match(last) and not last.startswith(("lambda", "operator")):
            return str(last)
    return ""


def _short_mangled(name: str) -> str:
    """Return the same of an Itanium-mangled name: `_ZN2at6native3addILi4EEEvv` is `add`."""
    path, at = _mangled_path(name, len((_MANGLED.match(name) or [""])[0]))
    argument = _MANGLED_ARGUMENT.search(name, at) if name.startswith("I", at) else None
    inner = _mangled_path(name, argument.start())[0] if argument else []
    operation = inner[-1] if inner and not _OF_NO_INTEREST.match(inner[-1]) else ""
    return _joined(path, operation) if path else name


def _mangled_path(name: str, at: int) -> tuple[list[str], int]:
    """Return the parts `<length><text>` from there on, and where they end."""
    path: list[str] = []
    while match := _LENGTH.match(name, at):
        end = match.end() + int(match[0])
        if end > len(name):
            break  # cut off, or no mangled name at all
        at, part = end, name[match.end() : end]
        if not part.startswith("_GLOBAL__N_"):
            path.append(part)
    return path, at
