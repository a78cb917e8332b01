"""Least traffic of elementwise operators, of lists of tensors, and of fused optimizer steps.

Each input is read once, as far as its strides show that it is stored, and the result is written
once; an operator in place reads what it overwrites, except where it only fills or copies. The
result has the broadcast shape and torch's promoted type (`c10/core/ScalarType.h`). Operations are
the additions, multiplications and functions of the operator's definition, for each element of the
result: `exp`, `tanh` and the like count as one.

A result's type that depends on what is not recorded is unknown: torch's default type, which
integers become in a division, and whether a value of no dimensions was a number of Python or a
tensor.

Types of tensors in lists are not recorded. torch takes one kernel for lists of one type, and the
kernel's name has it: `list_types`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import prod
from types import MappingProxyType

from stepscope.analyses.operators.work_inputs import (
    NO_LIST_SHAPES,
    NO_VALUES,
    Inputs,
    Shape,
    Tensor,
    Traffic,
    TrafficFormula,
    UnknownWorkError,
    new_tensor,
)
from stepscope.model.frames.data_types import BYTES, data_type

PROMOTED = "The result's type depends on torch's default type, which is not recorded."
# Operators by number of arguments, up to the last that may be a tensor, and operations per element
# of the result. Results are of the inputs' promoted type, `float` of it if it is no integer, of the
# `first`'s, of all but the first's (`arms` of a condition), or `bool`.
_TABLE = """
abs 1 1 same
neg 1 1 same
sign 1 1 same
sgn 1 1 same
square 1 1 same
ceil 1 1 same
floor 1 1 same
round 1 1 same
trunc 1 1 same
frac 1 1 same
relu 1 1 same
bitwise_not 1 1 same
nan_to_num 1 2 same
clamp 3 2 same
clamp_min 2 1 same
clamp_max 2 1 same
threshold 1 1 same
hardtanh 1 2 same
exp 1 1 float
exp2 1 1 float
expm1 1 1 float
log 1 1 float
log2 1 1 float
log10 1 1 float
log1p 1 1 float
sqrt 1 1 float
rsqrt 1 2 float
reciprocal 1 1 float
sin 1 1 float
cos 1 1 float
tan 1 1 float
asin 1 1 float
acos 1 1 float
atan 1 1 float
sinh 1 1 float
cosh 1 1 float
tanh 1 1 float
asinh 1 1 float
acosh 1 1 float
atanh 1 1 float
erf 1 1 float
erfc 1 1 float
erfinv 1 1 float
lgamma 1 1 float
digamma 1 1 float
sigmoid 1 4 float
logit 1 3 float
silu 1 5 float
gelu 1 5 float
mish 1 5 float
elu 1 3 float
softplus 1 4 float
hardswish 1 5 float
hardsigmoid 1 4 float
leaky_relu 1 2 float
logical_not 1 1 bool
isnan 1 1 bool
isinf 1 1 bool
isfinite 1 1 bool
signbit 1 1 bool
eq 2 1 bool
ne 2 1 bool
lt 2 1 bool
le 2 1 bool
gt 2 1 bool
ge 2 1 bool
logical_and 2 1 bool
logical_or 2 1 bool
logical_xor 2 1 bool
add 2 1 same
sub 2 1 same
rsub 2 1 same
mul 2 1 same
maximum 2 1 same
minimum 2 1 same
fmax 2 1 same
fmin 2 1 same
remainder 2 1 same
fmod 2 1 same
floor_divide 2 2 same
pow 2 1 same
bitwise_and 2 1 same
bitwise_or 2 1 same
bitwise_xor 2 1 same
div 2 1 float
atan2 2 1 float
hypot 2 4 float
logaddexp 2 5 float
xlogy 2 2 float
copysign 2 1 float
lerp 3 3 same
addcmul 3 3 same
addcdiv 3 3 float
where 3 1 arms
masked_fill 3 1 first
sigmoid_backward 2 3 same
tanh_backward 2 3 same
threshold_backward 2 1 same
hardtanh_backward 2 2 same
gelu_backward 2 11 same
silu_backward 2 9 same
mish_backward 2 12 same
elu_backward 6 3 same
softplus_backward 2 4 same
hardswish_backward 2 4 same
hardsigmoid_backward 2 2 same
leaky_relu_backward 2 2 same
logit_backward 2 4 same
native_dropout_backward 2 2 first
mse_loss 2 2 same
smooth_l1_loss 2 3 same
huber_loss 2 3 same
binary_cross_entropy 3 7 same
mse_loss_backward 3 3 same
smooth_l1_loss_backward 3 4 same
huber_loss_backward 3 4 same
binary_cross_entropy_backward 4 5 same
"""
# Losses write the loss of each element; the reduction, if any, is an operator inside them.
OVERWRITING = {
    "fill_": 2,
    "zero_": 1,
    "copy_": 2,
    "uniform_": 1,
    "normal_": 1,
    "random_": 1,
    "exponential_": 1,
    "log_normal_": 1,
    "bernoulli_": 2,
}
"""Operators in place that do not read what they overwrite, by their arguments likewise."""


@dataclass(frozen=True, kw_only=True)
class Elementwise:
    """An elementwise operator; calling it returns the traffic of its inputs."""

    arguments: int
    """Arguments up to the last that may be a tensor; tensors behind them are `out=`."""
    operations: int
    """Per element of the result."""
    result: str = "same"
    updates_first: bool = False
    is_overwriting: bool = False

    def __call__(self, inputs: Inputs) -> Traffic:
        """Count an operator of tensors."""
        read = inputs.tensors(0, self.arguments)
        if not read:
            raise UnknownWorkError
        if self.updates_first:
            target = inputs.tensor(0)
            read = read[1:] if self.is_overwriting else read
            return self._traffic(read, [target], target.elements)
        shape = broadcast(*(tensor.shape for tensor in read))
        if outputs := inputs.tensors(self.arguments):
            return self._traffic(read, outputs, prod(shape))
        name = self._result_type(inputs, read)
        return self._traffic(read, [new_tensor(shape, name)], prod(shape))

    def of_lists(self, inputs: Inputs) -> Traffic:
        """Count the operator for each tensor of a list (`torch._foreach_*`)."""
        first, *others = _lists(inputs, self.arguments)
        if not first or any(len(other) not in (0, len(first)) for other in others):
            raise UnknownWorkError(UnknownWorkError().args[0] if first else NO_LIST_SHAPES)
        alone = inputs.tensors(0, self.arguments)
        listed = others if self.is_overwriting else [first, *others]
        read = [tensor for tensors in listed for tensor in tensors]
        elements = sum(tensor.elements for tensor in first)
        written = first if self.updates_first else [_dense(tensor) for tensor in first]
        return self._traffic([*read, *alone], written, elements)

    def _traffic(self, read: Sequence[Tensor], written: Sequence[Tensor], elements: int) -> Traffic:
        types = [tensor.data_type for tensor in (*read, *written) if tensor.data_type]
        return Traffic(
            flops=self.operations * elements,
            moved_bytes=sum(tensor.bytes for tensor in (*read, *written)),
            data_type=types[0] if types else None,
        )

    def _result_type(self, inputs: Inputs, read: Sequence[Tensor]) -> str:
        if self.result == "bool":
            return "bool"
        if self.result == "first":
            return str(read[0].data_type)
        typed = read[1:] if self.result == "arms" else read
        if not typed:
            raise UnknownWorkError
        name = promoted(typed, _number_kind(inputs, self.arguments))
        if self.result == "float" and _kind(name) < FLOAT:
            raise UnknownWorkError(PROMOTED)
        return name


def broadcast(*shapes: Shape) -> Shape:
    """Return the broadcast shape of shapes."""
    return reduce(_broadcast_pair, shapes)


def _broadcast_pair(first: Shape, second: Shape) -> Shape:
    longer, shorter = (first, second) if len(first) >= len(second) else (second, first)
    padded = (1,) * (len(longer) - len(shorter)) + shorter
    pairs = list(zip(longer, padded, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise UnknownWorkError
    return tuple(b if a == 1 else a for a, b in pairs)


def _dense(tensor: Tensor) -> Tensor:
    return replace(tensor, stored=tensor.elements)


BOOL, INTEGER, FLOAT, COMPLEX = range(4)
_WIDER = {
    frozenset({"float16", "bfloat16"}): "float32",
    frozenset({"uint8", "int8"}): "int16",
}


def _kind(name: str) -> int:
    if name == "bool":
        return BOOL
    if name.startswith("complex"):
        return COMPLEX
    return FLOAT if name.startswith(("float", "bfloat")) else INTEGER


def promoted(tensors: Sequence[Tensor], number_kind: int = BOOL) -> str:
    """Return the type of an operator's result, as `torch.result_type` does.

    Raises:
        UnknownWorkError: it depends on what is not recorded.
    """
    shaped = {str(tensor.data_type) for tensor in tensors if tensor.shape}
    single = {str(tensor.data_type) for tensor in tensors if not tensor.shape}
    if not shaped:
        if len(single) != 1:
            raise UnknownWorkError(PROMOTED)
        shaped, single = single, set()
    name = reduce(_promoted_pair, sorted(shaped))
    kind = max(map(_kind, single), default=BOOL)
    if kind > _kind(name):
        (name, *others) = sorted(one for one in single if _kind(one) == kind)
        if others or name in ("float64", "complex128"):
            raise UnknownWorkError(PROMOTED)  # a number of Python's is written as if it were wide
    if number_kind > _kind(name):
        if number_kind != INTEGER:
            raise UnknownWorkError(PROMOTED)
        return "int64"
    return name


def _promoted_pair(first: str, second: str) -> str:
    if first == second:
        return first
    if _kind(first) != _kind(second):
        lower, higher = sorted((first, second), key=_kind)
        if _kind(higher) == COMPLEX and (lower, higher) != ("float32", "complex64"):
            raise UnknownWorkError(PROMOTED)
        return higher
    if wider := _WIDER.get(frozenset((first, second))):
        return wider
    narrow, wide = sorted((first, second), key=lambda name: BYTES[name])
    unsigned = wide.startswith("uint") or (narrow.startswith("uint") and narrow != "uint8")
    if unsigned or BYTES[narrow] == BYTES[wide] or (BYTES[narrow] < 2 and _kind(wide) == FLOAT):
        raise UnknownWorkError(PROMOTED)
    return wide


def _number_kind(inputs: Inputs, arguments: int) -> int:
    """Return the kind of the widest number among the arguments."""
    kinds = [BOOL]
    for index in range(min(arguments, len(inputs.types))):
        if inputs.types[index] in ("Scalar", "Int", "Double"):
            if not inputs.values:
                names = [tensor.data_type for tensor in inputs.tensors(0, arguments)]
                if any(_kind(str(name)) < FLOAT for name in names):
                    raise UnknownWorkError(NO_VALUES)
                return BOOL
            kinds.append(_kind_of_number(inputs.value(index)))
    return max(kinds)


def _kind_of_number(text: str) -> int:
    if text in ("True", "False", ""):
        return BOOL
    return INTEGER if re.fullmatch(r"[-+]?\d+", text) else FLOAT


def _lists(inputs: Inputs, arguments: int) -> list[list[Tensor]]:
    indices = range(min(arguments, len(inputs)))
    listed = [inputs.listed(index) for index in indices if inputs.is_list(index)]
    if not listed:
        raise UnknownWorkError
    return listed


def _parsed() -> dict[str, Elementwise]:
    formulas = {}
    for line in _TABLE.split("\n"):
        if line:
            name, arguments, operations, result = line.split()
            formulas[name] = Elementwise(
                arguments=int(arguments), operations=int(operations), result=result
            )
            formulas[f"{name}_"] = replace(formulas[name], updates_first=True)
    for name, count in OVERWRITING.items():
        formulas[name] = Elementwise(
            arguments=count, operations=0, updates_first=True, is_overwriting=True
        )
    return formulas


_BY_NAME = _parsed()
ELEMENTWISE: Mapping[str, TrafficFormula] = MappingProxyType(
    {f"aten::{name}": formula for name, formula in _BY_NAME.items()}
    | {f"aten::_foreach_{name}": formula.of_lists for name, formula in _BY_NAME.items()}
)
"""Formulas by operator, with those of lists of tensors."""

_OPAQUE = re.compile(r"OpaqueType<(?:\([\w ]+\))?(\d+)u?>")
_JOINED_TYPE = re.compile(r"CatArrayBatchedCopy\w*<([\w: ]+)")
_LISTED_TYPES = re.compile(r"(?<!\w)(?=\w*?Functor)\w+<([\w: ]+?)(?:, ([\w: ]+?))?(?=[,>])")


def list_types(kernel: str) -> tuple[str | int, ...]:
    """Return the types of lists of tensors in the name of a kernel that handles whole lists.

    The size of an element where the name has no more; empty where it has neither.
    """
    pattern = _JOINED_TYPE if "CatArrayBatchedCopy" in kernel else _LISTED_TYPES
    if pattern is _LISTED_TYPES and "multi_tensor_apply" not in kernel:
        return ()
    if opaque := _OPAQUE.search(kernel):
        return (int(opaque[1]),)
    match = pattern.search(kernel)
    names = [data_type(text) for text in match.groups() if text] if match else []
    return tuple(name for name in names if name)


# Operations per parameter: the moments' and the parameter's update, by `FusedAdamMathFunctor` and
# `FusedSgdMathFunctor`, with the corrections of the bias that each element repeats.
FUSED_OPERATIONS = {"adam": 14, "adamw": 14, "sgd": 4, "adagrad": 8}


STEP_BYTES = 4
"""Of a parameter's number of steps, a float32 of no dimensions whatever the parameter's type."""


def fused_step(operations: int, updated: Sequence[int], steps: int | None = None) -> TrafficFormula:
    """Return the formula of a fused optimizer, by the indices of its lists; the second is read."""

    def count(inputs: Inputs) -> Traffic:
        parameters = inputs.listed(0)
        if not parameters:
            raise UnknownWorkError(NO_LIST_SHAPES)
        both = [tensor for index in updated for tensor in inputs.listed(index)]
        once = inputs.listed(1)
        step_count = len(inputs.listed(steps)) if steps is not None else 0
        return Traffic(
            flops=operations * sum(tensor.elements for tensor in parameters),
            moved_bytes=sum(2 * tensor.bytes for tensor in both)
            + sum(tensor.bytes for tensor in once)
            + STEP_BYTES * step_count,
            data_type=parameters[0].data_type,
        )

    return count


FUSED_STEPS: Mapping[str, TrafficFormula] = MappingProxyType(
    {
        f"aten::_fused_{name}_": fused_step(FUSED_OPERATIONS[name], updated, steps)
        for name, updated, steps in (
            ("adam", (0, 2, 3, 4), 5),
            ("adamw", (0, 2, 3, 4), 5),
            ("sgd", (0, 2), None),
            ("adagrad", (0, 2), 3),
        )
    }
)
"""Formulas of torch's fused optimizers; gradients are only read."""
