"""What must be the same for a summary to be used again: the file, the settings, and our code."""

import hashlib
import inspect
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import ModuleType
from typing import Any

import msgspec

from stepscope import storage
from stepscope._version import __version__
from stepscope.advice import AdviceSettings
from stepscope.advice.rule_packages import package_rules
from stepscope.advice.settings import Changes
from stepscope.advice.suppression import today
from stepscope.base import urls
from stepscope.ingest import is_compiled
from stepscope.storage.discover import TraceFile, run_identifier

KEY_LENGTH = 16
"""Hexadecimal digits: of a thousand settings, no two share them by chance."""
SOURCES = (".py", ".pyx")
WITHOUT_SOURCES = frozenset({"__pycache__", "static", "templates"})
OF_THE_RUN = ("gpus", "price")
"""Settings that change nothing of one recording."""


class FileLocations:
    """Where files really lie; a folder is looked up once, however many of its files are asked."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def folder(self, file: TraceFile) -> str:
        """Return the folder of a file's run, the same however the user came there."""
        if file.folder not in self._folders:
            self._folders[file.folder] = storage.real_path(file.folder)
        return self._folders[file.folder]

    def path(self, file: TraceFile) -> str:
        """Return a file's path in that folder, under its own name; of an address, all of it."""
        if urls.is_remote(file.path):
            return file.path
        return urls.join(self.folder(file), urls.name(file.path))

    def run_id(self, file: TraceFile) -> str:
        """Return the opaque id of a file's run."""
        return run_identifier(self.folder(file))

    def file_key(self, file: TraceFile) -> str:
        """Return what tells a recording from all others, however its run is called or reached."""
        return digest(f"{self.path(file)}\0{file.worker}\0{file.span}".encode(errors="replace"))


def settings_key(settings: AdviceSettings) -> str:
    """Return what stands for all that a recording's summary depends on beside its file.

    `settings` are those of its run (`of_run`). Suppressions count as what they are today.
    """
    said = {
        "changes": _changes(settings.changes),
        "profiles": {
            name: [each.runs, _changes(each.changes)] for name, each in settings.profiles.items()
        },
        "profile": settings.profile,
        "packages": _packages_key() if settings.has_packages else "",
        "code": code_key(),
        "compiled": is_compiled(),
    }
    return digest(msgspec.json.encode(said, order="deterministic"))


def digest(content: bytes) -> str:
    """Return a short text that another content will not have."""
    return hashlib.sha256(content).hexdigest()[:KEY_LENGTH]


@cache
def code_key() -> str:
    """Return what changes with any line of our own code.

    The version alone would not do: who writes a rule must not be shown what it said before.
    """
    whole = hashlib.sha256(__version__.encode())
    for name, content in _sources(files("stepscope"), ""):
        whole.update(name.encode() + content)
    return whole.hexdigest()[:KEY_LENGTH]


def _sources(folder: Traversable, within: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names of modules and what stands in them, in one order."""
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        name = f"{within}/{entry.name}"
        if name.endswith(SOURCES):
            yield name, entry.read_bytes()
        elif entry.name not in WITHOUT_SOURCES and entry.is_dir():
            yield from _sources(entry, name)


def _changes(changes: Changes) -> dict[str, Any]:
    day = today()
    return {
        **{name: value for name, value in asdict(changes).items() if name not in OF_THE_RUN},
        "expired": [each.has_expired(day) for each in changes.suppressions],
    }


@cache
def _packages_key() -> str:
    """Return what changes with other packages' rules: their versions, and their own modules."""
    rules, _ = package_rules()
    names = sorted({rule.package for rule in rules})
    checks = [check for rule in rules for check in (rule.check, rule.check_run) if check]
    modules = {inspect.getmodule(check) for check in checks}
    said = [
        *(f"{name} {version(name)}" for name in names),
        *sorted(_source(module) for module in modules if module is not None),
        *(repr(rule.options) for rule in rules),
    ]
    return digest("\0".join(said).encode())


def _source(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):  # it has none, such as a compiled one
        return module.__name__
