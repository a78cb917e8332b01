"""Rules of other installed packages: the entry-point group `stepscope.rules`.

An entry point names a module (or any object) with `STEPSCOPE_API = 1` and `RULES`, rules whose ids
begin with the entry point's name and a slash: `acme/no-logging`. If a package cannot be loaded or
is invalid, only its rules are left out, with a problem that gives the reason.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import is_dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from stepscope.base.errors import UsageError, in_one_line
from stepscope.base.report import Problem
from stepscope.rules import Rule

log = logging.getLogger(__name__)

GROUP = "stepscope.rules"
API_VERSION = 1
"""Increased when rules of the version before stop working."""
REMEDY = "Update or uninstall that package, or use `--no-plugins`."

Packaged = tuple[tuple[Rule[Any], ...], tuple[Problem, ...]]


@cache
def package_rules() -> Packaged:
    """Return the rules of other packages, and the problems of those that cannot be used."""
    rules: list[Rule[Any]] = []
    problems: list[Problem] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        package = entry.dist.name if entry.dist else entry.value
        try:
            rules += _loaded(entry, package, [rule.id for rule in rules])
        except Exception as error:  # an error of a package costs its rules only
            message = str(error) if isinstance(error, UsageError) else in_one_line(error)
            log.warning("rules of package %s cannot be used: %s", package, message)
            path = f"package {package}"
            problems.append(
                Problem(path=path, message=f"its rules are left out: {message}.", remedy=REMEDY)
            )
    return tuple(rules), tuple(problems)


def _loaded(entry: EntryPoint, package: str, taken: Sequence[str]) -> list[Rule[Any]]:
    provider = entry.load()
    version = getattr(provider, "STEPSCOPE_API", None)
    if version != API_VERSION:
        msg = f"it needs version {version} of the rules' API, but this is version {API_VERSION}"
        raise UsageError(msg)
    rules = [_checked(rule, entry.name, package) for rule in _rules(provider)]
    twice = [
        name for name, times in Counter((*taken, *(rule.id for rule in rules))).items() if times > 1
    ]
    if twice:
        msg = f"there is another rule with the id {twice[0]}"
        raise UsageError(msg)
    return rules


def _rules(provider: object) -> Iterable[object]:
    rules = getattr(provider, "RULES", None)
    if rules is None:
        msg = "it has no RULES"
        raise UsageError(msg)
    return tuple(rules)


def _checked(rule: object, namespace: str, package: str) -> Rule[Any]:
    if not isinstance(rule, Rule):
        msg = f"{rule!r} is not a stepscope.rules.Rule"
        raise UsageError(msg)
    if not rule.id.startswith(f"{namespace}/") or rule.id == f"{namespace}/":
        msg = f"the id {rule.id!r} must begin with {namespace}/"
        raise UsageError(msg)
    if (rule.check is None) == (rule.check_run is None):
        msg = f"{rule.id} must have either check or check_run"
        raise UsageError(msg)
    if not is_dataclass(rule.options) or isinstance(rule.options, type):
        msg = f"the options of {rule.id} are not an instance of a dataclass"
        raise UsageError(msg)
    return replace(rule, package=package)
