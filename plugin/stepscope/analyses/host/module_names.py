"""Names of module calls.

torch's Python tracer names calls `nn.Module: Linear_3`: the class, and the number of the instance
(`torch/csrc/profiler/collection.cpp`). Lightning's profiler names ranges
`[pl][module]torch.nn.modules.linear.Linear: model.head` and
`[pl][profile][Strategy]DDPStrategy.training_step` (`lightning/pytorch/profilers/pytorch.py`).
Without these, the user's own ranges of `record_function` count.
"""

import re
from dataclasses import dataclass
from typing import Literal

from stepscope.base.errors import MissingDataError
from stepscope.dialects import ANNOTATION_NAME
from stepscope.model.trace import Trace, computed

Origin = Literal["nn.Module", "Lightning", "record_function"]
TORCH_MODULE = re.compile(r"^nn\.Module: (?P<name>(?P<class>.*?)(?:_\d+)?)$", re.DOTALL)
LIGHTNING_MODULE = re.compile(r"^\[pl\]\[module\](?P<class>[^:]*): (?P<name>.*)$", re.DOTALL)
LIGHTNING_RANGE = re.compile(
    r"^\[pl\]\[profile\](?P<name>(?:\[(?P<class>[^\]]*)\])?.*)$", re.DOTALL
)
OWN_RANGES = re.compile(
    # what torch itself files as annotations
    r"^(?:PyTorch Profiler|ProfilerStep|Torch-Compiled Region|TorchDynamo|AOTDispatcher"
    r"|Pregraph bytecode|## Call Compiled|autograd::|c10d::|gloo:|CompiledFx|inductor::)"
)
RECORD = "profile(with_stack=True)"


@dataclass(frozen=True, kw_only=True)
class ModuleName:
    """A module: one instance of a class, or a range named like one."""

    name: str
    class_name: str


@dataclass(frozen=True, kw_only=True)
class ModuleNames:
    """Names of module calls."""

    origin: Origin
    of_call: dict[str, ModuleName]
    """By the name of the Python call or annotation."""


@computed
def module_names(trace: Trace) -> ModuleNames:
    """Return the trace's modules by the names of their calls.

    Raises:
        MissingDataError: nothing in the recording is a module.
    """
    python = [str(name) for name in trace.python_calls["name"].cat.categories]
    ranges = [
        str(name)
        for name in trace.annotations["name"].cat.remove_unused_categories().cat.categories
    ]
    candidates: list[tuple[Origin, dict[str, ModuleName]]] = [
        ("nn.Module", _matching(python, TORCH_MODULE)),
        ("Lightning", _matching(ranges, LIGHTNING_MODULE)),
        ("Lightning", _matching(ranges, LIGHTNING_RANGE)),
        ("record_function", _named_by_user(trace, ranges)),
    ]
    for origin, names in candidates:
        if names:
            return ModuleNames(origin=origin, of_call=names)
    msg = "the trace has neither module calls nor ranges of record_function"
    raise MissingDataError(msg, RECORD)


def _matching(names: list[str], pattern: re.Pattern[str]) -> dict[str, ModuleName]:
    matches = {name: match for name in names if (match := pattern.match(name))}
    return {
        name: ModuleName(name=match["name"], class_name=_class(match["class"] or match["name"]))
        for name, match in matches.items()
    }


def _class(path: str) -> str:
    """Return a class without its package: `Linear` of `torch.nn.modules.linear.Linear`."""
    return path.rpartition(".")[2] or path


def _named_by_user(trace: Trace, names: list[str]) -> dict[str, ModuleName]:
    return {
        name: ModuleName(name=name, class_name=name)
        for name in names
        if not ANNOTATION_NAME.match(name)
        and not OWN_RANGES.match(name)
        and not trace.dialect.collective.search(name)
    }
