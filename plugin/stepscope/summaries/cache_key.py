"""Keys of stored summaries: the file, the settings, and the code that made them."""

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
"""Hexadecimal digits, enough for a thousand settings without a collision."""
SOURCES = (".py", ".pyx")
WITHOUT_SOURCES = frozenset({"__pycache__", "static", "templates"})
OF_THE_RUN = ("gpus", "price")
"""Settings without effect on a single trace."""


class FileLocations:
    """Real locations of files; each folder is resolved once."""

    def __init__(self) -> None:
        self._folders: dict[str, str] = {}

    def folder(self, file: TraceFile) -> str:
        """Return the real folder of a file's run, with links resolved."""
        if file.folder not in self._folders:
            self._folders[file.folder] = storage.real_path(file.folder)
        return self._folders[file.folder]

    def path(self, file: TraceFile) -> str:
        """Return a file's path in its real folder; a remote address is unchanged."""
        if urls.is_remote(file.path):
            return file.path
        return urls.join(self.folder(file), urls.name(file.path))

    def run_id(self, file: TraceFile) -> str:
        """Return the opaque id of a file's run."""
        return run_identifier(self.folder(file))

    def file_key(self, file: TraceFile) -> str:
        """Return the key of a trace, independent of its run's name and of links."""
        return digest(f"{self.path(file)}\0{file.worker}\0{file.span}".encode(errors="replace"))


def settings_key(settings: AdviceSettings) -> str:
    """Return the key of all inputs of a trace's summary except its file.

    `settings` are those of its run (`for_run`); suppressions count in their state of today.
    """
    state = {
        "changes": _changes(settings.changes),
        "profiles": {
            name: [profile.runs, _changes(profile.changes)]
            for name, profile in settings.profiles.items()
        },
        "profile": settings.profile,
        "packages": _packages_key() if settings.has_packages else "",
        "code": code_key(),
        "compiled": is_compiled(),
    }
    return digest(msgspec.json.encode(state, order="deterministic"))


def digest(content: bytes) -> str:
    """Return a short digest of some content."""
    return hashlib.sha256(content).hexdigest()[:KEY_LENGTH]


@cache
def code_key() -> str:
    """Return a key that changes with any line of stepscope's code.

    The version is not sufficient: the author of a rule must not see earlier results of it.
    """
    whole = hashlib.sha256(__version__.encode())
    for name, content in _sources(files("stepscope"), ""):
        whole.update(name.encode() + content)
    return whole.hexdigest()[:KEY_LENGTH]


def _sources(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of modules, sorted by name."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        name = f"{prefix}/{entry.name}"
        if name.endswith(SOURCES):
            yield name, entry.read_bytes()
        elif entry.name not in WITHOUT_SOURCES and entry.is_dir():
            yield from _sources(entry, name)


def _changes(changes: Changes) -> dict[str, Any]:
    day = today()
    return {
        **{name: value for name, value in asdict(changes).items() if name not in OF_THE_RUN},
        "expired": [suppression.has_expired(day) for suppression in changes.suppressions],
    }


@cache
def _packages_key() -> str:
    """Return a key of other packages' rules: their versions, sources and options."""
    rules, _ = package_rules()
    names = sorted({rule.package for rule in rules})
    checks = [check for rule in rules for check in (rule.check, rule.check_run) if check]
    modules = {inspect.getmodule(check) for check in checks}
    parts = [
        *(f"{name} {version(name)}" for name in names),
        *sorted(_source(module) for module in modules if module is not None),
        *(repr(rule.options) for rule in rules),
    ]
    return digest("\0".join(parts).encode())


def _source(module: ModuleType) -> str:
    try:
        return inspect.getsource(module)
    except (OSError, TypeError):  # no source, for example a compiled module
        return module.__name__
