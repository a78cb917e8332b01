"""The trained model: the outermost module whose parameters an optimizer holds."""

from collections.abc import Iterable
from typing import Any

from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects._fields import fields, flag


def model(scene: Scene) -> dict[str, Any] | None:
    """Return the model's class, size and device; None if no module holds a parameter.

    With FSDP's flattened parameters a process holds only a shard, so they are not counted.
    """
    outer = root(scene)
    if outer is None:
        return None
    inner = unwrapped(outer)
    counted = not is_flattened(outer)
    return fields(
        name=lambda: _name(inner),
        parameter_count=lambda: _count(inner.parameters()) if counted else None,
        trainable_parameter_count=lambda: (
            _count(p for p in inner.parameters() if p.requires_grad) if counted else None
        ),
        device=lambda: str(next(iter(inner.parameters())).device),
        training=lambda: flag(inner.training),
    )


def root(scene: Scene) -> Any:
    """Return the passed module, otherwise the outermost with the most parameters to optimize."""
    if scene.given.model is not None:
        return scene.given.model
    optimised = _optimised(scene)
    sized = [(_size(module, optimised), module) for module in _outermost(scene.modules)]
    sized = [(size, module) for size, module in sized if size[-1]]
    return max(sized, key=lambda pair: pair[0])[1] if sized else None


def unwrapped(module: Any) -> Any:
    """Return the user's module inside DDP, FSDP, DataParallel and torch.compile."""
    for _ in range(8):
        children = _children(module)
        inner = children.get("_orig_mod")
        if inner is None and type(module).__module__.startswith("torch."):
            inner = children.get("module") or children.get("_fsdp_wrapped_module")
        if inner is None:
            return module
        module = inner
    return module


def is_flattened(module: Any) -> bool:
    """Return whether FSDP (version 1) holds the parameters, of which each process has a shard."""
    return any("_fsdp_wrapped_module" in _children(child) for child in module.modules())


def _children(module: Any) -> dict[str, Any]:
    """Return a module's children; empty if its `__init__` has not created them yet."""
    return module.__dict__.get("_modules") or {}


def _outermost(modules: tuple[Any, ...]) -> list[Any]:
    child_ids = {id(child) for module in modules for child in _children(module).values()}
    return [module for module in modules if id(module) not in child_ids]


def _optimised(scene: Scene) -> set[int]:
    all_groups = (getattr(optimizer, "param_groups", ()) for optimizer in scene.optimizers)
    groups = (group for groups in all_groups for group in groups)
    return {id(parameter) for group in groups for parameter in group["params"]}


def _size(module: Any, optimised: set[int]) -> tuple[int, bool, int]:
    """Return the optimized parameter count, whether the class is a user's, and the total count."""
    try:
        parameters = list(module.parameters())
    except Exception:  # a module that was not initialized, or overrides it
        return 0, False, 0
    trained_count = sum(1 for parameter in parameters if id(parameter) in optimised)
    return trained_count, type(module).__name__ != "GraphModule", len(parameters)


def _count(parameters: Iterable[Any]) -> int:
    return sum(parameter.numel() for parameter in parameters)


def _name(module: Any) -> str:
    """Return the class that the user wrote: FSDP2 derives its own class from it."""
    classes = type(module).__mro__
    if len(classes) > 2 and classes[1].__name__ == "FSDPModule":
        return classes[2].__name__
    return type(module).__name__
