"""Old names of modules and of their contents work, with a warning that names the new ones."""

import subprocess
import sys
from importlib import import_module

import pytest

from stepscope.base.deprecation import MOVED_MODULES, deprecated_names


@pytest.mark.parametrize(("old", "new"), sorted(MOVED_MODULES.items()))
def test_a_moved_module_is_imported_by_its_old_name(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} was moved: import {new}") as warnings:
        module = import_module(old)
    contents = import_module(new)
    names = [name for name in vars(contents) if not name.startswith("_")]
    assert names
    assert all(getattr(module, name) is getattr(contents, name) for name in names)
    assert module.__name__ == old
    assert len(warnings) == 1


def test_the_warning_points_at_the_import_and_submodules_are_the_new_ones() -> None:
    script = (
        "from stepscope.frames import source\n"
        "from stepscope.frames.kernels import *\n"
        "from stepscope.intervals import union\n"
        "import stepscope.frames.steps as old, stepscope.model.frames.steps as new\n"
        "assert old.build is new.build\n"
    )
    run = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "<string>:1: DeprecationWarning: stepscope.frames was moved" in run.stderr
    assert "<string>:3: DeprecationWarning: stepscope.intervals was moved" in run.stderr


def test_a_module_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("stepscope.never")
    with pytest.raises(ModuleNotFoundError):
        import_module("stepscope.intervals.never")


def test_a_renamed_name_is_resolved_with_a_warning() -> None:
    resolve = deprecated_names(__name__, {"Old": ("stepscope.base.errors", "UsageError")})
    with pytest.warns(DeprecationWarning, match=r"Old was renamed: use .*errors\.UsageError"):
        assert resolve("Old") is import_module("stepscope.base.errors").UsageError
    with pytest.raises(AttributeError, match="has no attribute 'New'"):
        resolve("New")
