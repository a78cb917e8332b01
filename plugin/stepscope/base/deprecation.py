"""Old names of modules and of their contents, which work in all versions 1 with a warning."""

import sys

TYPE_CHECKING = (
    False  # type checkers treat this name as True; this module must not slow `import stepscope`
)
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

MOVED_MODULES = {
    "stepscope.analyses.devices.activity": "stepscope.analyses.core.device_activity",
    "stepscope.analyses.links": "stepscope.analyses.core.links",
    "stepscope.analyses.references": "stepscope.analyses.core.event_references",
    "stepscope.analyses.requirements": "stepscope.analyses.core.requirements",
    "stepscope.analyses.steps.window": "stepscope.analyses.core.window",
    "stepscope.calibration": "stepscope.base.calibration",
    "stepscope.call_tree": "stepscope.model.call_tree",
    "stepscope.config": "stepscope.base.config",
    "stepscope.errors": "stepscope.base.errors",
    "stepscope.frames": "stepscope.model.frames",
    "stepscope.intervals": "stepscope.model.intervals",
    "stepscope.quantities": "stepscope.base.formatting",
    "stepscope.report": "stepscope.base.report",
    "stepscope.trace": "stepscope.model.trace",
}
"""Modules that rule packages import, by their names in version 0.1."""


def deprecated_names(
    module_name: str, renamed: "Mapping[str, tuple[str, str]]"
) -> "Callable[[str], object]":
    """Return a module's `__getattr__` that resolves renamed names with a DeprecationWarning.

        __getattr__ = deprecated_names(__name__, {"Old": ("stepscope.new_module", "New")})

    Args:
        module_name: The module that had the old names.
        renamed: Old name to the module's full name and the new name there.
    """

    def resolve(name: str) -> object:
        if name not in renamed:
            message = f"module {module_name!r} has no attribute {name!r}"
            raise AttributeError(message)
        target, new_name = renamed[name]
        _warn(f"{module_name}.{name} was renamed: use {target}.{new_name}")
        return getattr(_import(target), new_name)

    return resolve


def install() -> None:
    """Make moved modules importable by their old names."""
    sys.meta_path.append(MovedModuleFinder())


class MovedModuleFinder:
    """Finds modules by their old names, after all other finders failed."""

    def find_spec(
        self, name: str, _path: "Sequence[str] | None" = None, _target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        """Return the spec of a moved module; None for any other name."""
        parent, _, child = name.rpartition(".")
        target = MOVED_MODULES.get(name)
        if not target and parent in MOVED_MODULES:
            target = f"{MOVED_MODULES[parent]}.{child}"
        if not target:
            return None
        from importlib.machinery import ModuleSpec  # noqa: PLC0415 (rarely needed)

        return ModuleSpec(name, self, loader_state=target, is_package=True)  # type: ignore[arg-type]

    def create_module(self, _spec: "ModuleSpec") -> None:
        """Leave the creation of the module to the import system."""

    def exec_module(self, module: "ModuleType") -> None:
        """Copy the contents of the new module to the old one."""
        spec = module.__spec__
        target = spec.loader_state if spec else ""
        contents = _import(target)
        _warn(f"{module.__name__} was moved: import {target}")
        vars(module)["__getattr__"] = lambda name: getattr(contents, name)


def _import(module_name: str) -> "ModuleType":
    from importlib import import_module  # noqa: PLC0415 (rarely needed)

    return import_module(module_name)


def _warn(message: str) -> None:
    """Warn the caller of this module's caller, ignoring frames of the import system."""
    from warnings import warn  # noqa: PLC0415 (rarely needed)

    warn(
        f"{message}. The old name will be removed in the next version.",
        DeprecationWarning,
        stacklevel=3,
    )
