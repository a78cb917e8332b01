"""Settings of advice: selection of rules, their options, severities and suppressions.

They come from `[tool.stepscope]` of `pyproject.toml`, `stepscope.toml`, or the command line
(`advice/settings_files.py`); they are frozen and can be sent to reader processes. A *profile*
changes settings for some runs: by their names, or by the kind of workload (`training`,
`inference`).
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, get_args

from stepscope.advice.rule_packages import package_rules
from stepscope.base.errors import UsageError, suggestion
from stepscope.base.findings import Outcome, Severity, SuppressedBy
from stepscope.rules import Rule, all_rules

Value = bool | int | float | str
ALL = "all"
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
TRAINING, INFERENCE = "training", "inference"
MOST_SHARE = 1.0
MOST_GPUS, MOST_PRICE = 10_000_000, 1e9
"""Devices of a job, and price of one for an hour in any currency."""
MOST_NUMBER = 2**63
"""Above every time, size and count of a trace."""


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """Findings to suppress, with the reason."""

    rule: str
    reason: str
    runs: str = "*"
    """A pattern of run names (`fnmatch`)."""
    fingerprint: str = ""
    """Of one finding (`Outcome.fingerprint`); empty: all of the rule."""
    expires: str = ""
    """The last day (`2027-01-31`) on which it applies; empty: it does not expire."""
    by: SuppressedBy = "configuration"

    def covers(self, outcome: Outcome, day: str) -> bool:
        """Return whether it suppresses this finding, of a run that it is for."""
        is_of = self.rule == outcome.rule and self.fingerprint in ("", outcome.fingerprint)
        return is_of and not self.has_expired(day)

    def has_expired(self, day: str) -> bool:
        """Return whether its last day is before this day."""
        return bool(self.expires) and day > self.expires


@dataclass(frozen=True, kw_only=True)
class Changes:
    """Settings of a file, a profile or the command line; None and empty change nothing."""

    select: tuple[str, ...] | None = None
    """Ids, categories, severities, or `all`."""
    ignore: tuple[str, ...] = ()
    preview: bool | None = None
    options: Mapping[str, Mapping[str, Value]] = field(default_factory=dict)
    """Rule id to option to value."""
    severities: Mapping[str, Severity] = field(default_factory=dict)
    """Rule id to the severity of all its findings."""
    suppressions: tuple[Suppression, ...] = ()
    gpus: int | None = None
    """Devices of the run's job."""
    price: float | None = None
    """Price of a device for an hour."""

    def then(self, later: "Changes") -> "Changes":
        """Return these settings overridden by later ones."""
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
        """Return these settings without suppressions for other runs."""
        suppressions = tuple(s for s in self.suppressions if fnmatchcase(run, s.runs))
        return dataclasses.replace(self, suppressions=suppressions)


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Changes for some runs."""

    runs: tuple[str, ...] = ()
    """Patterns of run names (`fnmatch`)."""
    changes: Changes = Changes()


@dataclass(frozen=True, kw_only=True)
class AdviceSettings:
    """All settings of advice."""

    changes: Changes = Changes()
    profiles: Mapping[str, Profile] = field(default_factory=dict)
    profile: str = ""
    """The requested profile; empty: all profiles that match the run."""
    has_packages: bool = True
    """Whether rules of other installed packages run, too."""

    def then(self, later: Changes) -> "AdviceSettings":
        """Return the settings overridden by later ones, in profiles, too."""
        profiles = {
            name: dataclasses.replace(profile, changes=profile.changes.then(later))
            for name, profile in self.profiles.items()
        }
        return dataclasses.replace(self, changes=self.changes.then(later), profiles=profiles)

    def for_run(self, run: str) -> "AdviceSettings":
        """Return the settings of a run, with its profiles applied."""
        changes = self.changes
        for name, profile in self.profiles.items():
            is_match = any(fnmatchcase(run, pattern) for pattern in profile.runs)
            if name == self.profile or (is_match and not self.profile):
                changes = changes.then(profile.changes)
        by_kind = {
            name: dataclasses.replace(profile, changes=profile.changes.for_run(run))
            for name, profile in self.profiles.items()
            if name in (TRAINING, INFERENCE)
        }
        return dataclasses.replace(self, changes=changes.for_run(run), profiles=by_kind)

    def for_traces(self, kinds: Iterable[bool | None]) -> Changes:
        """Return the settings of several traces, with the profile of their kind if they share one.

        `kinds` are whether each trace is of training.
        """
        kinds = set(kinds)
        kind = kinds.pop() if len(kinds) == 1 else None
        return self.changes if kind is None else self.for_trace(is_training=kind)

    def for_trace(self, *, is_training: bool) -> Changes:
        """Return the settings of a trace, with the profile of its kind unless one was requested."""
        kind = TRAINING if is_training else INFERENCE
        profile = self.profiles.get(kind)
        if self.profile or profile is None or profile.runs:
            return self.changes
        return self.changes.then(profile.changes)


DEFAULT = AdviceSettings()


def available_rules(*, has_packages: bool = True) -> tuple[Rule[Any], ...]:
    """Return stepscope's rules and, after them, those of other packages."""
    rules = all_rules()
    return (*rules, *package_rules()[0]) if has_packages else rules


def selected_rules(changes: Changes, available: Iterable[Rule[Any]]) -> tuple[Rule[Any], ...]:
    """Return the rules to run, with their options.

    Raises:
        UsageError: a rule or option is unknown, or a value does not fit.
    """
    rules = tuple(available)
    by_id = _by_id(rules)
    by_name = tuple(name for name in changes.select or () if name not in SEVERITIES)
    selected = _selector(by_id, by_name or (ALL,))
    ignored = _selector(by_id, changes.ignore)
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
        if rule.id in selected
        and rule.id not in ignored
        and (rule.life_cycle != "preview" or has_preview or rule.id in named)
    )


def validated(settings: AdviceSettings) -> AdviceSettings:
    """Return the settings after checking the rules and options that they name.

    Raises:
        UsageError: a rule or option is unknown.
    """
    rules = available_rules(has_packages=settings.has_packages)
    profiles = (profile.changes for profile in settings.profiles.values())
    for changes in (settings.changes, *profiles):
        selected_rules(changes, rules)
        for suppression in changes.suppressions:
            find_rule(suppression.rule, rules)
    return settings


def is_shown(changes: Changes, severity: Severity | None) -> bool:
    """Return whether findings of this severity are shown; outcomes without one always are."""
    selected = {name for name in changes.select or () if name in SEVERITIES}
    return severity is None or (
        severity not in changes.ignore and (not selected or severity in selected)
    )


def _by_id(rules: Iterable[Rule[Any]]) -> dict[str, Rule[Any]]:
    rules = tuple(rules)
    aliases = {alias: rule for rule in rules for alias in rule.aliases}
    return {**aliases, **{rule.id: rule for rule in rules}}


def find_rule(name: str, rules: Iterable[Rule[Any]]) -> Rule[Any]:
    """Return the rule of this id or alias.

    Raises:
        UsageError: there is none; the message suggests similar names.
    """
    return _rule(_by_id(rules), name)


def _rule(by_id: Mapping[str, Rule[Any]], name: str) -> Rule[Any]:
    if name in by_id:
        return by_id[name]
    msg = f"there is no rule {name!r}. {suggestion(name, by_id)}`stepscope rules` lists all rules"
    raise UsageError(msg)


def _selector(by_id: Mapping[str, Rule[Any]], names: Iterable[str]) -> set[str]:
    """Return the ids of rules by names of rules, categories, or `all`; severities select none."""
    categories: dict[str, set[str]] = {}
    for rule in by_id.values():
        categories.setdefault(rule.category.replace(" ", "-"), set()).add(rule.id)
    everything = {rule.id for rule in by_id.values()}
    selected: set[str] = set()
    names = tuple(names)
    for name in names:
        if name == ALL:
            selected |= everything
        elif name in by_id:
            selected.add(by_id[name].id)
        elif name.replace(" ", "-") in categories:
            selected |= categories[name.replace(" ", "-")]
        elif name not in SEVERITIES:
            options = (*by_id, *categories, *SEVERITIES, ALL)
            hint = suggestion(name, options) or "`stepscope rules` lists them"
            msg = f"{name!r} is not a rule, category or severity. {hint}".rstrip()
            raise UsageError(msg)
    return selected


def _with_options(rule: Rule[Any], values: Mapping[str, Value]) -> Rule[Any]:
    if not values:
        return rule
    fields = {option.name: option for option in dataclasses.fields(rule.options)}
    options = {}
    for name, value in values.items():
        if name not in fields:
            hint = suggestion(name, fields) or f"It has {', '.join(fields) or 'none'}. "
            msg = f"{rule.id} has no option {name!r}. {hint}See `stepscope explain {rule.id}`"
            raise UsageError(msg)
        options[name] = _fitting(rule.id, fields[name], value)
    return dataclasses.replace(rule, options=dataclasses.replace(rule.options, **options))


def _fitting(rule: str, of: "dataclasses.Field[Any]", value: Value) -> Value:
    """Return a value of the option's type."""
    expected = type(of.default)
    fits = isinstance(value, expected) and (expected is bool or not isinstance(value, bool))
    if expected is float and isinstance(value, int) and not isinstance(value, bool):
        value, fits = float(min(value, MOST_NUMBER)), True
    if not fits:
        nouns = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
        msg = f"{rule}.{of.name} is {value!r}: it must be {nouns.get(expected, expected.__name__)}"
        raise UsageError(msg)
    if isinstance(value, (int, float)) and not 0 <= value < MOST_NUMBER:
        msg = f"{rule}.{of.name} is {value!r}: it must not be negative or infinite"
        raise UsageError(msg)
    if of.name.endswith("_share") and isinstance(value, float) and value > MOST_SHARE:
        msg = f"{rule}.{of.name} is {value!r}: it must be a fraction from 0 to 1: 5 % is 0.05"
        raise UsageError(msg)
    return value
