"""Completion in shells: files, and names of rules, tables, runs, workers and spans."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from stepscope.storage.discover import TraceFile

SEARCH_SECONDS = 0.5

Complete = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


def files(_context: click.Context, _of: click.Parameter, start: str) -> list[CompletionItem]:
    """Let the shell complete a file or folder."""
    return [CompletionItem(start, type="file")]


def rules(_context: click.Context, _of: click.Parameter, start: str) -> list[CompletionItem]:
    """Return the ids of stepscope's rules, also behind a comma; no rule is imported."""
    from importlib.util import find_spec
    from pkgutil import iter_modules

    package = find_spec("stepscope.rules")
    folders = (package.submodule_search_locations if package else None) or []
    modules = iter_modules(folders)
    before, comma, last = start.rpartition(",")
    names = [module.name.replace("_", "-") for module in modules if not module.ispkg]
    return _beginning_with(last, names, before + comma)


def tables(context: click.Context, _of: click.Parameter, start: str) -> list[CompletionItem]:
    """Return the names of the tables, for `query` as in SQL."""
    from stepscope.tables import all_tables

    is_sql = context.info_name == "query"
    return _beginning_with(start, [n.replace("-", "_") if is_sql else n for n in all_tables()])


def traces(noun: Literal["run", "worker", "span"]) -> Complete:
    """Return a completion by the runs, workers or spans at the paths of the command so far."""

    def complete(context: click.Context, _of: click.Parameter, start: str) -> list[CompletionItem]:
        names = {getattr(file, noun) for file in _files(_paths(context))}
        return _beginning_with(start, sorted(names))

    return complete


def _paths(context: click.Context) -> list[str]:
    """Return the paths on the command line; click leaves them unparsed before an open option."""
    path, paths = context.params.get("path"), context.params.get("paths")
    return [*([path] if path else ()), *(paths or ()), *context.args]


def _files(paths: Iterable[str]) -> "list[TraceFile]":
    """Return the traces in local folders, as far as they are listed in a short time."""
    from stepscope import storage
    from stepscope.base import urls
    from stepscope.storage import discover

    end_s = time.monotonic() + SEARCH_SECONDS
    listed: list[TraceFile] = []
    for path in paths:
        if urls.is_remote(path) or not storage.is_folder(path):
            continue
        for page in discover.pages(path):
            listed += page.files
            if time.monotonic() > end_s:
                break
    return discover.as_runs(discover.sorted_files(listed))


def _beginning_with(start: str, names: Sequence[str], before: str = "") -> list[CompletionItem]:
    return [CompletionItem(before + name) for name in names if name.startswith(start)]
