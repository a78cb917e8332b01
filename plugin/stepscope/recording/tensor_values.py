"""Values of tensors in two successive unrecorded steps: what a trace cannot show.

A dispatch mode sees each operator of the thread after it has run, as torch's `FlopCounterMode`
does. It reads results, changes nothing and uses no random numbers. It notes

- results that an operator computed before in the same step, or in the step before (by a digest of
  their bytes: weights and batches change from step to step, constants do not),
- products with matrices of mostly zeros,
- rows of token ids that end in the same number, and matrices with rows of zeros: padding,
- targets that a loss ignores,
- lines that run many times for small operators,
- operators that extend their operands to a large tensor, by broadcasting,
- parameters that get a gradient and are in no optimizer.

These steps are slower, and belong to no measured time. Whatever fails ends the reading, never the
training. Where `torch.compile` is in use nothing is read: compiled code has other operators.
"""

import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch
from torch.utils import _python_dispatch as dispatch

from stepscope.recording.host_sampler import PACKAGE, frame_name, is_library, line_at
from stepscope.recording.live_objects import Given, live_objects
from stepscope.recording.noted_operators import (
    MOST_COSTS,
    MOST_LISTED,
    Call,
    Chain,
    Path,
    Shapes,
    by_line,
    calls_on_classes,
    grouped,
    loops_in,
    ranges_of,
    repeated_in,
    result_key,
    written,
)
from stepscope.recording.tensor_facts import (
    LEAST_IDS,
    digest_of,
    elements_in_memory,
    is_plain,
    padding_in,
    zeros_in,
)

STEP_COUNT = 2
MOST_NS = 2_000_000_000
"""Time per step after which values are no longer read."""
MOST_CALLS = 40_000
"""Operators of a step that are noted."""
LEAST_MATRIX = 1024
"""Elements of a matrix whose zeros are counted."""
MOST_MATRIX = 1 << 23
LEAST_EXTENDED = 65_536
"""Elements of a result that is noted where broadcasting made it."""
LEAST_EXTENSION = 4
"""Its elements per element of the largest operand."""
MOST_RESULTS = 3
"""Results of an operator that are compared: one of lists of tensors returns many."""
MOST_FRAMES = 12
CONSTANT = frozenset({
    "aten::zeros", "aten::ones", "aten::full", "aten::empty", "aten::zeros_like", "aten::ones_like",
    "aten::empty_like", "aten::full_like", "aten::new_zeros", "aten::new_ones", "aten::new_full",
    "aten::scalar_tensor", "aten::detach", "aten::lift_fresh", "aten::alias",
})  # fmt: skip
PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::convolution"})
LOSSES = frozenset({"aten::nll_loss_forward", "aten::nll_loss_nd", "aten::cross_entropy_loss"})
IGNORE_INDEX = -100
SPARSE_BY_NATURE = frozenset({
    "aten::relu", "aten::relu_", "aten::threshold", "aten::native_dropout", "aten::hardtanh",
    "aten::clamp_min", "aten::clamp", "aten::clamp_min_", "aten::clamp_", "aten::bernoulli_",
    "aten::max_pool2d_with_indices", "aten::leaky_relu", "aten::where",
})  # fmt: skip
"""Their results are of zeros in part, and others in each step."""
CHECKPOINT = "checkpoint.py"
MODULE = "module.py"
WEIGHED = PRODUCTS | {"aten::t", "aten::transpose", "aten::embedding"}
"""Operators of layers that take a weight."""

DIRECT = re.compile(
    r"torch[/\\\\](?:_tensor|functional|_jit_internal|nn[/\\\\](?:functional|modules[/\\\\]\w+))\.py$"
)
"""Files of torch that pass a call on to an operator or two."""


class Kind(NamedTuple):
    """An operator, by its schema."""

    name: str
    is_new: bool
    """Whether its result is no view of an argument."""
    is_compared: bool
    """Whether a digest of its result says something."""


def _caller() -> FrameType | None:
    """Return the frame that called the operator in `_note`.

    None where no Python frame did: autograd runs a device's backward functions in a thread of C++.
    """
    frame = sys._getframe(1).f_back  # noqa: SLF001 (the only way)
    return frame.f_back if frame is not None else None


@dataclass
class Matrix:
    """Zeros of an operand, summed over its calls."""

    line: str
    name: str
    shapes: Shapes
    zero_fraction: float = 0.0
    zero_row_fraction: float = 0.0
    count: int = 0
    time_ns: int = 0
    ordinals: list[int] = field(default_factory=list)


@dataclass
class Ids:
    """Padding of token ids at a line, summed over its calls."""

    line: str
    count: int = 0
    elements: int = 0
    padded: int = 0
    removable: int = 0
    """Elements of the columns that are padding in each row."""


@dataclass
class Targets:
    """Targets of a loss at a line, summed over its calls."""

    line: str
    classes: int
    count: int = 0
    targets: int = 0
    ignored: int = 0

    def calls_in(self, calls: Iterable[Call]) -> list[Call]:
        """Return the calls on scores of all classes for all targets."""
        return calls_on_classes(calls, self.classes, self.classes * self.targets // self.count)


class TensorValues(dispatch.TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Reads the values of one step after the other; no method raises."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._steps: list[list[Call]] = []
        self._matrices: dict[tuple[str, str, Shapes, int], Matrix] = {}
        self._ids: dict[str, Ids] = {}
        self._targets: dict[tuple[str, int], Targets] = {}
        self._unused: dict[str, Any] = {}
        self._codes: dict[int, CodeType] = {}
        """Code of the callers by address; kept, so that no address is used twice."""
        self._chains: dict[Path, Chain] = {}
        self._is_entered = False
        """Whether the mode is among a thread's modes."""
        self._is_read = False
        """Whether the operators belong to a step that is read."""
        self._is_failed = False
        self._is_complete = True
        self._begin_step()

    def _begin_step(self) -> None:
        self._calls: list[Call] = []
        self._extended: list[Call] = []
        self._counts: Counter[tuple[str, Shapes]] = Counter()
        self._makers: dict[int, str] = {}
        """Operator that made the tensor at an address."""
        self._zeros: dict[int, tuple[tuple[Any, ...], tuple[float, float]]] = {}
        """Zeros of the tensor at an address, with its shape, strides and version."""
        self._ends_ns = time.perf_counter_ns() + MOST_NS

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Return whether compilation is to go on as without a mode."""
        return True

    # --- steps --------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        """Whether no further step is read."""
        return self._is_failed or len(self._steps) >= STEP_COUNT

    def begin(self) -> bool:
        """Begin to read a step; False if it cannot be."""
        if self.is_over or not is_possible():
            self._is_failed = True
            return False
        try:
            self._begin_step()
            self.__enter__()  # type: ignore[no-untyped-call]
        except Exception:  # a torch whose modes differ
            self._is_failed = True
            return False
        self._is_entered = self._is_read = True
        return True

    def end(self, *, is_whole: bool = True) -> None:
        """End the step, if one is read; drop it unless it is whole."""
        if not self._is_read:
            return
        self._is_read = False
        if not self.leave():
            self._is_failed = True
        if not is_whole or self._is_failed:
            return
        try:
            self._steps.append(self._calls)
            if self.is_over:  # a walk of all live objects, once
                self._unused = unused_gradients(self._calls)
        except Exception:  # the training continues
            self._is_failed = True

    def leave(self) -> bool:
        """Leave the mode after a step; False where that has to wait.

        A mode of the script may be in between, or another thread may end the step: then each
        operator goes through the mode, unread, until a later call.
        """
        if not self._is_entered or self._is_read:
            return True
        try:
            if dispatch._get_current_dispatch_mode() is not self:  # noqa: SLF001 (the only way)
                return False
            self.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        except Exception:  # a torch whose modes differ
            self._is_failed = True
        self._is_entered = False
        return True

    def summary(self) -> dict[str, Any]:
        """Return what was found, as written into a trace; empty without two whole steps."""
        if len(self._steps) < STEP_COUNT:
            return {}
        try:
            return self._summary()
        except Exception:  # a trace matters more than its values
            return {}

    # --- operators ----------------------------------------------------------------------------

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        begin_ns = time.perf_counter_ns()
        result = func(*args, **(kwargs or {}))
        if self._is_read and not self._is_failed:
            end_ns = time.perf_counter_ns()
            if end_ns > self._ends_ns or len(self._calls) >= MOST_CALLS:
                self._is_complete = False
                return result
            try:
                self._note(func, args, result, end_ns - begin_ns)
            except Exception:  # the training continues
                self._is_failed = True
        return result

    def _note(self, func: Any, args: Any, result: Any, time_ns: int) -> None:
        kind = _kind(func)
        if kind is None:
            return
        tensors = tuple(_tensors(args))
        results = tuple(_tensors((result,)))
        shapes = tuple(tuple(tensor.shape) for tensor in tensors if tensor.dim())
        key = kind.name, shapes
        ordinal = self._counts[key]
        self._counts[key] += 1
        is_backward = torch._C._current_graph_task_id() != -1  # noqa: SLF001 (the only way to ask)
        path, is_direct, is_checkpointed = self._path(_caller())
        has_weight = kind.name in WEIGHED and any(
            isinstance(tensor, torch.nn.Parameter) for tensor in tensors
        )
        digest = None
        if kind.is_compared and 0 < len(results) <= MOST_RESULTS:
            first, *others = map(digest_of, results)
            digest = first and first + b"".join(filter(None, others))
        if kind.is_new or kind.name in SPARSE_BY_NATURE:
            for tensor in results:
                self._makers[tensor.data_ptr()] = kind.name
                self._zeros.pop(tensor.data_ptr(), None)
        call = Call(
            kind.name, shapes, ordinal, digest, time_ns, self._chain(path), is_backward,
            is_backward and is_checkpointed, tuple(tuple(tensor.shape) for tensor in results),
            path, is_direct, has_weight,
        )  # fmt: skip
        self._calls.append(call)
        if not is_backward:
            self._note_values(call, tensors, args)
            if kind.is_new and is_extended(tensors, results):
                self._extended.append(call)

    def _note_values(self, call: Call, tensors: tuple[torch.Tensor, ...], args: Any) -> None:
        """Note what the values of a forward operator's tensors show."""
        if call.name in PRODUCTS:
            self._note_zeros(call, tensors)
        elif call.name == "aten::embedding" and len(tensors) > 1:
            self._note_ids(call, tensors[1])
        elif call.name in LOSSES and len(tensors) > 1:
            ignored = args[4] if len(args) > 4 else IGNORE_INDEX
            self._note_targets(call, tensors[0], tensors[1], ignored)

    def _path(self, frame: FrameType | None) -> tuple[Path, bool, bool]:
        """Return the callers outside of libraries; whether direct; whether checkpointed."""
        path: list[tuple[int, int, bool]] = []
        is_checkpointed, is_direct = False, True
        while frame is not None:
            code = frame.f_code
            file = code.co_filename
            if is_library(file) or file.startswith(PACKAGE):
                is_checkpointed |= file.endswith(CHECKPOINT)
                is_direct &= bool(path) or _passes_on(file)
                if path and file.endswith(MODULE):
                    path[-1] = (*path[-1][:2], True)
            elif len(path) < MOST_FRAMES:
                self._codes[id(code)] = code
                path.append((id(code), frame.f_lasti, False))
            frame = frame.f_back
        return tuple(path), is_direct, is_checkpointed

    def _chain(self, path: Path) -> Chain:
        """Return the source lines of a path, from the outermost."""
        chain = self._chains.get(path)
        if chain is None:
            calls = [(self._codes[code], position) for code, position, _ in reversed(path)]
            chain = tuple(frame_name(code, line_at(code, position)) for code, position in calls)
            self._chains[path] = chain
        return chain

    def _note_zeros(self, call: Call, tensors: tuple[torch.Tensor, ...]) -> None:
        for index, tensor in enumerate(tensors):
            if not LEAST_MATRIX <= tensor.numel() <= MOST_MATRIX or tensor.dim() < 2:
                continue
            if self._makers.get(tensor.data_ptr()) in SPARSE_BY_NATURE:
                continue
            zero, zero_rows = self._zeros_of(tensor, is_convolved=call.name == "aten::convolution")
            key = call.line, call.name, call.shapes, index
            matrix = self._matrices.setdefault(key, Matrix(call.line, call.name, call.shapes))
            matrix.zero_fraction += zero
            matrix.zero_row_fraction += zero_rows
            matrix.count += 1
            matrix.time_ns += call.time_ns
            if not self._steps:
                matrix.ordinals.append(call.ordinal)

    def _zeros_of(self, tensor: torch.Tensor, *, is_convolved: bool) -> tuple[float, float]:
        view = tensor.shape, tensor.stride(), _version(tensor), is_convolved
        noted = self._zeros.get(tensor.data_ptr())
        if noted is None or noted[0] != view:
            noted = view, zeros_in(tensor, is_convolved=is_convolved)
            self._zeros[tensor.data_ptr()] = noted
        return noted[1]

    def _note_ids(self, call: Call, ids: torch.Tensor) -> None:
        if ids.dim() != 2 or min(ids.shape) < 2 or ids.shape[1] < LEAST_IDS:
            return
        padding = padding_in(ids)
        if padding is None:
            return
        summed = self._ids.setdefault(call.line, Ids(call.line))
        summed.count += 1
        summed.elements += ids.numel()
        summed.padded += padding[0]
        summed.removable += padding[1]

    def _note_targets(
        self, call: Call, scores: torch.Tensor, targets: torch.Tensor, ignored: int
    ) -> None:
        if targets.is_floating_point() or scores.dim() < 2:
            return
        classes = scores.shape[1]
        summed = self._targets.setdefault((call.line, classes), Targets(call.line, classes))
        summed.count += 1
        summed.targets += targets.numel()
        summed.ignored += int(torch.count_nonzero(targets == ignored))

    # --- summary ------------------------------------------------------------------------------

    def _summary(self) -> dict[str, Any]:
        first, second = self._steps
        before = {result_key(call) for call in first if call.digest}
        constant = [
            call
            for call in second
            if call.digest and result_key(call) in before and not call.is_backward
        ]
        constant_keys = {result_key(call) for call in constant}
        return {
            "step_count": STEP_COUNT,
            "is_complete": self._is_complete,
            "operators_ns": sum(call.time_ns for call in second),
            "constant": written(by_line(constant), self._counts),
            "repeated": written(repeated_in(second, constant_keys), self._counts),
            "loops": loops_in(second, self._counts),
            "extended": written(by_line(self._extended), self._counts),
            "zeros": [_zeros_row(matrix) for matrix in self._largest_matrices()],
            "ids": [
                [ids.line, ids.count, ids.elements, ids.padded, ids.removable]
                for ids in self._ids.values()
            ],
            "ignored_targets": [
                {
                    "line": targets.line,
                    "classes": targets.classes,
                    "targets": targets.targets,
                    "ignored": targets.ignored,
                    "calls": grouped(targets.calls_in(second), self._counts),
                }
                for targets in self._targets.values()
                if targets.ignored
            ],
            "unused_gradients": self._unused,
        }

    def _largest_matrices(self) -> list[Matrix]:
        sparse = [matrix for matrix in self._matrices.values() if matrix.zero_fraction]
        sparse.sort(key=lambda matrix: -matrix.time_ns * matrix.zero_fraction / matrix.count)
        return sparse[:MOST_COSTS]


def is_possible() -> bool:
    """Return whether a mode may be entered: no compiled code, no capture of a graph."""
    if not hasattr(dispatch.TorchDispatchMode, "supports_higher_order_operators"):
        return False
    counters = getattr(sys.modules.get("torch._dynamo.utils"), "counters", None)
    if counters and counters["frames"]:
        return False
    return not torch.cuda.is_initialized() or not torch.cuda.is_current_stream_capturing()  # type: ignore[no-untyped-call]


def is_extended(operands: Iterable[torch.Tensor], results: Iterable[torch.Tensor]) -> bool:
    """Return whether operators made a large tensor of several smaller ones, by broadcasting."""
    largest = max((tensor.numel() for tensor in results), default=0)
    sizes = [elements_in_memory(tensor) for tensor in operands if tensor.dim()]
    is_large = largest >= LEAST_EXTENDED and len(sizes) > 1
    return is_large and largest >= LEAST_EXTENSION * max(sizes)


@lru_cache(maxsize=10_000)
def _kind(func: Any) -> Kind | None:
    """Return an operator's kind; None for higher-order operators."""
    schema = getattr(func, "_schema", None)
    if schema is None:
        return None
    name: str = schema.name
    is_new = all(returned.alias_info is None for returned in schema.returns)
    return Kind(name, is_new, is_new and name not in CONSTANT)


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors among arguments, also of lists; only plain ones."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if type(value) in (torch.Tensor, torch.nn.Parameter) and is_plain(value):
                yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


@lru_cache(maxsize=10_000)
def _passes_on(file: str) -> bool:
    return DIRECT.search(file) is not None


def _version(tensor: torch.Tensor) -> int:
    return 0 if tensor.is_inference() else tensor._version  # noqa: SLF001 (documented by torch)


def unused_gradients(calls: Iterable[Call]) -> dict[str, Any]:
    """Return how many parameters got gradients that no optimizer reads, and what they took.

    Its time is that of products in the backward pass with a result of such a shape, by the share of
    parameters of this shape that are unused.
    """
    scene = live_objects(Given())
    taken = {
        id(parameter)
        for optimizer in scene.optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    parameters = {
        id(parameter): parameter
        for module in scene.modules
        for parameter in module._parameters.values()  # noqa: SLF001 (without a walk of modules)
        if parameter is not None and parameter.requires_grad and parameter.grad is not None
    }
    unused = [parameter for key, parameter in parameters.items() if key not in taken]
    if not unused or not taken:
        return {}
    share = shares_of_shapes(parameters.values(), unused)
    all_shapes = shares_of_shapes(parameters.values(), parameters.values())
    ordinals: dict[tuple[str, Shapes], list[int]] = defaultdict(list)
    time_ns = gradients_ns = 0.0
    for call in calls:
        if not call.is_backward:
            continue
        gradients_ns += call.time_ns * any(shape in all_shapes for shape in call.result)
        shapes = [shape for shape in call.result if shape in share]
        if shapes:
            time_ns += call.time_ns * share[shapes[0]]
            if share[shapes[0]] == 1.0:
                ordinals[call.name, call.shapes].append(call.ordinal)
    return {
        "count": len(unused),
        "of": len(parameters),
        "elements": sum(parameter.numel() for parameter in unused),
        "time_ns": round(time_ns),
        "gradients_ns": round(gradients_ns),
        "is_of_whole_models": _are_whole_models(scene.modules, set(map(id, unused))),
        "calls": [
            [name, [list(shape) for shape in shapes], ranges_of(numbers)]
            for (name, shapes), numbers in list(ordinals.items())[:MOST_LISTED]
        ],
    }


def _are_whole_models(modules: Iterable[Any], unused: set[int]) -> bool:
    """Return whether models that are in no other module have all of the unused parameters.

    Their gradients lead to no parameter of use, so that no part of their backward pass is needed.
    """
    parents = {id(child) for module in modules for child in module._modules.values()}  # noqa: SLF001
    whole: set[int] = set()
    for module in modules:
        if id(module) not in parents:
            trained = {id(p) for p in module.parameters() if p.requires_grad and p.grad is not None}
            whole |= trained if trained <= unused else set()
    return whole == unused


def shares_of_shapes(all_of: Iterable[Any], unused: Iterable[Any]) -> dict[tuple[int, ...], float]:
    """Return by shape, also transposed, the fraction of parameters that are unused."""
    number, missing = Counter(map(_shape, all_of)), Counter(map(_shape, unused))
    shares = {shape: missing[shape] / number[shape] for shape in missing if len(shape) > 1}
    return shares | {
        shape[::-1]: share
        for shape, share in shares.items()
        if len(shape) == 2 and shape[::-1] not in number
    }


def _shape(parameter: Any) -> tuple[int, ...]:
    return tuple(parameter.shape)


def _zeros_row(matrix: Matrix) -> dict[str, Any]:
    return {
        "line": matrix.line,
        "count": matrix.count,
        "time_ns": matrix.time_ns // STEP_COUNT,
        "zero_fraction": round(matrix.zero_fraction / matrix.count, 4),
        "zero_row_fraction": round(matrix.zero_row_fraction / matrix.count, 4),
        "call": [matrix.name, [list(shape) for shape in matrix.shapes], ranges_of(matrix.ordinals)],
    }
