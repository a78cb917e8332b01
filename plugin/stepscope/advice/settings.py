"""Which rules are asked, with which options, and what of their findings is put aside.

The user says it in `[tool.stepscope]` of `pyproject.toml`, in `stepscope.toml`, or by options of
the command line (`advice/settings_files.py` reads them). Frozen, and small enough to be sent to a
reader's process. A *profile* changes settings for some runs: by their names, or, for the two that
are always there, by what the recording is of (`training`, `inference`).
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any, get_args

from stepscope.advice.rule_packages import package_rules
from stepscope.base.errors import UsageError
from stepscope.base.findings import Outcome, Severity, SuppressedBy
from stepscope.rules import Rule, all_rules

Value = bool | int | float | str
ALL = "all"
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
TRAINING, INFERENCE = "training", "inference"
MOST_SHARE = 1.0
MOST_GPUS, MOST_PRICE = 10_000_000, 1e9
"""Of a job, and of a device for an hour in any currency."""
MOST_NUMBER = 2**63
"""No time, size or count of a recording reaches it."""


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """Findings that a person put aside, and why."""

    rule: str
    reason: str
    runs: str = "*"
    """A pattern of run names (`fnmatch`)."""
    fingerprint: str = ""
    """Of one finding (`Outcome.fingerprint`); empty: all of the rule."""
    expires: str = ""
    """A day (`2027-01-31`) after which it does not count any more; empty: never."""
    by: SuppressedBy = "configuration"

    def covers(self, outcome: Outcome, day: str) -> bool:
        """Tell whether a finding of a run that it is for is one of those."""
        is_of = self.rule == outcome.rule and self.fingerprint in ("", outcome.fingerprint)
        return is_of and not self.has_expired(day)

    def has_expired(self, day: str) -> bool:
        """Tell whether its last day is before this one."""
        return bool(self.expires) and day > self.expires


@dataclass(frozen=True, kw_only=True)
class Changes:
    """What a file, a profile or the command line says; None and empty say nothing."""

    select: tuple[str, ...] | None = None
    """Ids, categories, severities, or `all`."""
    ignore: tuple[str, ...] = ()
    preview: bool | None = None
    options: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Rule id to option to value."""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """Rule id to the severity of all that it finds."""
    suppressions: tuple[Suppression, ...] = ()
    gpus: int | None = None
    """Devices of the job that a run is of."""
    price: float | None = None
    """Of one of them for an hour."""

    def then(self, later: "Changes") -> "Changes":
        """Return these with what is said later going before what is said here."""
        options = {name: dict(of_rule) for name, of_rule in self.options.items()}
        for name, of_rule in later.options.items():
            options.setdefault(name, {}).update(of_rule)
        return Changes(
            select=self.select if later.select is None else later.select,
            ignore=(*(self.ignore if later.select is None else ()), *later.ignore),
            preview=self.preview if later.preview is None else later.preview,
            options=options,
            severities={**self.severities, **later.severities},
            suppressions=(*self.suppressions, *later.suppressions),
            gpus=self.gpus if later.gpus is None else later.gpus,
            price=self.price if later.price is None else later.price,
        )

    def for_run(self, run: str) -> "Changes":
        """Return these without suppressions that are for other runs."""
        meant = tuple(each for each in self.suppressions if fnmatchcase(run, each.runs))
        return dataclasses.replace(self, suppressions=meant)


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Changes for some runs."""

    runs: tuple[str, ...] = ()
    """Patterns of run names (`fnmatch`)."""
    changes: Changes = Changes()


@dataclass(frozen=True, kw_only=True)
class AdviceSettings:
    """All that the user said of advice."""

    changes: Changes = Changes()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    profile: str = ""
    """The one profile that was asked for; empty: those that fit the run."""
    has_packages: bool = True
    """Whether rules of other installed packages are asked too."""

    def then(self, later: Changes) -> "AdviceSettings":
        """Return the settings with what is said later going before all, profiles included."""
        profiles = {
            name: dataclasses.replace(each, changes=each.changes.then(later))
            for name, each in self.profiles.items()
        }
        return dataclasses.replace(self, changes=self.changes.then(later), profiles=profiles)

    def for_run(self, run: str) -> "AdviceSettings":
        """Return the settings with what the profiles say of a run of this name."""
        changes = self.changes
        for name, profile in self.profiles.items():
            is_meant = any(fnmatchcase(run, pattern) for pattern in profile.runs)
            if name == self.profile or (is_meant and not self.profile):
                changes = changes.then(profile.changes)
        kept = {
            name: dataclasses.replace(each, changes=each.changes.for_run(run))
            for name, each in self.profiles.items()
            if name in (TRAINING, INFERENCE)
        }
        return dataclasses.replace(self, changes=changes.for_run(run), profiles=kept)

    def for_traces(self, kinds: Iterable[bool | None]) -> Changes:
        """Return what counts for several: the profile of their kind, where they are of one.

        `kinds` says of each whether it is of training.
        """
        kinds = set(kinds)
        kind = kinds.pop() if len(kinds) == 1 else None
        return self.changes if kind is None else self.for_trace(is_training=kind)

    def for_trace(self, *, is_training: bool) -> Changes:
        """Return what counts for a recording: the profile of its kind, where none was asked for."""
        kind = TRAINING if is_training else INFERENCE
        known = self.profiles.get(kind)
        if self.profile or known is None or known.runs:
            return self.changes
        return self.changes.then(known.changes)


DEFAULT = AdviceSettings()


def available_rules(*, has_packages: bool = True) -> tuple[Rule[Any], ...]:
    """Return stepscope's rules and, after them, those of other packages."""
    own = all_rules()
    return (*own, *package_rules()[0]) if has_packages else own


def selected_rules(changes: Changes, known: Iterable[Rule[Any]]) -> tuple[Rule[Any], ...]:
    """Return the rules that are to be asked, with the options that they are to have.

    Raises:
        UsageError: there is no such rule or option, or a value does not fit it.
    """
    rules = tuple(known)
    by_id = _by_id(rules)
    by_name = tuple(name for name in changes.select or () if name not in SEVERITIES)
    wanted = _selector(by_id, by_name or (ALL,))
    unwanted = _selector(by_id, changes.ignore)
    named = set(changes.select or ())
    has_preview = bool(changes.preview)
    options: dict[str, dict[str, Value]] = {}
    for name, values in changes.options.items():
        options.setdefault(_rule(by_id, name).id, {}).update(values)
    for name in changes.severities:
        _rule(by_id, name)
    return tuple(
        _with_options(rule, options.get(rule.id, {}))
        for rule in rules
        if rule.id in wanted
        and rule.id not in unwanted
        and (rule.life_cycle != "preview" or has_preview or rule.id in named)
    )


def validated(settings: AdviceSettings) -> AdviceSettings:
    """Return settings in which every rule and option that is named anywhere is one.

    Raises:
        UsageError: one is not.
    """
    known = available_rules(has_packages=settings.has_packages)
    for changes in (settings.changes, *(each.changes for each in settings.profiles.values())):
        selected_rules(changes, known)
        for suppression in changes.suppressions:
            find_rule(suppression.rule, known)
    return settings


def is_shown(changes: Changes, severity: Severity | None) -> bool:
    """Tell whether findings of a severity are wanted at all; what has none is no finding."""
    chosen = {name for name in changes.select or () if name in SEVERITIES}
    return severity is None or (
        severity not in changes.ignore and (not chosen or severity in chosen)
    )


def _by_id(known: Iterable[Rule[Any]]) -> dict[str, Rule[Any]]:
    rules = tuple(known)
    aliases = {alias: rule for rule in rules for alias in rule.aliases}
    return {**aliases, **{rule.id: rule for rule in rules}}


def find_rule(name: str, known: Iterable[Rule[Any]]) -> Rule[Any]:
    """Return the rule of this id or alias.

    Raises:
        UsageError: there is none; the message names those that are nearest.
    """
    return _rule(_by_id(known), name)


def _rule(by_id: Mapping[str, Rule[Any]], name: str) -> Rule[Any]:
    if name in by_id:
        return by_id[name]
    msg = f"there is no rule {name!r}. {suggestion(name, by_id)}`stepscope rules` lists them all"
    raise UsageError(msg)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a question that names what is nearest to a name, or nothing."""
    close = get_close_matches(name, tuple(known), n=3, cutoff=0.5)
    return f"Did you mean {' or '.join(close)}? " if close else ""


def _selector(by_id: Mapping[str, Rule[Any]], names: Iterable[str]) -> set[str]:
    """Return the ids that names mean: of a rule, of a category's, of all; severities mean none."""
    categories: dict[str, set[str]] = {}
    for rule in by_id.values():
        categories.setdefault(rule.category.replace(" ", "-"), set()).add(rule.id)
    everything = {rule.id for rule in by_id.values()}
    chosen: set[str] = set()
    names = tuple(names)
    for name in names:
        if name == ALL:
            chosen |= everything
        elif name in by_id:
            chosen.add(by_id[name].id)
        elif name.replace(" ", "-") in categories:
            chosen |= categories[name.replace(" ", "-")]
        elif name not in SEVERITIES:
            known = (*by_id, *categories, *SEVERITIES, ALL)
            msg = f"{name!r} is no rule, category or severity. {suggestion(name, known)}".rstrip()
            raise UsageError(msg)
    return chosen


def _with_options(rule: Rule[Any], values: Mapping[str, Value]) -> Rule[Any]:
    if not values:
        return rule
    known = {each.name: each for each in dataclasses.fields(rule.options)}
    given = {}
    for name, value in values.items():
        if name not in known:
            hint = suggestion(name, known) or f"It has {', '.join(known) or 'none'}. "
            msg = (
                f"{rule.id} has no option {name!r}. {hint}`stepscope explain {rule.id}` tells more"
            )
            raise UsageError(msg)
        given[name] = _fitting(rule.id, known[name], value)
    return dataclasses.replace(rule, options=dataclasses.replace(rule.options, **given))


def _fitting(rule: str, of: "dataclasses.Field[Any]", value: Value) -> Value:
    """Return a value of the option's type."""
    wanted = type(of.default)
    fits = isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value, fits = float(min(value, MOST_NUMBER)), True
    if not fits:
        nouns = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
        msg = f"{rule}.{of.name} is {value!r}: it must be {nouns.get(wanted, wanted.__name__)}"
        raise UsageError(msg)
    if isinstance(value, (int, float)) and not 0 <= value < MOST_NUMBER:
        msg = f"{rule}.{of.name} is {value!r}: it must not be negative or without bound"
        raise UsageError(msg)
    if of.name.endswith("_share") and isinstance(value, float) and value > MOST_SHARE:
        msg = f"{rule}.{of.name} is {value!r}: a share is from 0 to 1, so 5 % is 0.05"
        raise UsageError(msg)
    return value
