"""Settings as files and the command line write them.

```toml
[tool.stepscope]                 # in pyproject.toml; in stepscope.toml without `tool.stepscope`
select = ["all"]                 # ids, categories, severities
ignore = ["conv-bias-before-bn"]
preview = false
profile = ""                     # one of the profiles below, for all runs
gpus = 1024                      # devices of the job; else what was recorded
price = 2.50                     # of one for an hour, in any currency

[tool.stepscope.rules.dataloader-bound]
least_share = 0.10               # an option of the rule
severity = "info"                # of all that it finds

[tool.stepscope.profiles.serving]
runs = ["serve*"]                # names of runs; `training` and `inference` need none
ignore = ["tiny-batch-size"]

[[tool.stepscope.suppress]]
rule = "item-sync"
reason = "We log every step, and accept it."
runs = "debug*"                  # may be left out, as `fingerprint` and `expires` may
expires = 2027-01-31             # the last day on which it counts
```
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import msgspec

from stepscope.advice.settings import (
    INFERENCE,
    MOST_GPUS,
    MOST_PRICE,
    SEVERITIES,
    TRAINING,
    AdviceSettings,
    Changes,
    Profile,
    Suppression,
    Value,
    suggestion,
)
from stepscope.base.errors import UsageError
from stepscope.base.findings import Severity

OWN_NAME = "stepscope.toml"
PROJECT_NAME = "pyproject.toml"
SEVERITY = "severity"
UNKNOWN = re.compile(r"unknown field `(.+?)`")


class _Put(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """One of `suppress`."""

    rule: str
    reason: str
    runs: str = "*"
    fingerprint: str = ""
    expires: date | None = None

    def suppression(self) -> Suppression:
        """Return what it says."""
        return Suppression(
            rule=self.rule,
            reason=self.reason,
            runs=self.runs,
            fingerprint=self.fingerprint,
            expires=self.expires.isoformat() if self.expires else "",
        )


class _Part(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a file and a profile may say."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    preview: bool | None = None
    rules: dict[str, dict[str, Value]] = {}
    suppress: tuple[_Put, ...] = ()
    gpus: Annotated[int, msgspec.Meta(ge=1, le=MOST_GPUS)] | None = None
    price: Annotated[float, msgspec.Meta(ge=0, le=MOST_PRICE)] | None = None


class _Profile(_Part, forbid_unknown_fields=True, frozen=True):
    """One of `profiles`."""

    runs: tuple[str, ...] = ()


class _File(_Part, forbid_unknown_fields=True, frozen=True):
    """What a file may say beside it."""

    profile: str = ""
    profiles: dict[str, _Profile] = {}
    plugins: bool = True


def nearest_file(folder: Path) -> Path | None:
    """Return the file that says something of stepscope, in a folder or the nearest above it."""
    for place in (folder, *folder.parents):
        if (own := place / OWN_NAME).is_file():
            return own
        project = place / PROJECT_NAME
        if project.is_file() and "stepscope" in _tools(_parsed(project)):
            return project
    return None


def read_settings(path: Path) -> AdviceSettings:
    """Return what a file says.

    Raises:
        UsageError: it cannot be read, is no TOML, or says something that is not known.
    """
    document = _parsed(path)
    if path.name == PROJECT_NAME:
        document = _tools(document).get("stepscope", {})
    try:
        said = msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        msg = f"{path}: {_in_words(str(error))}"
        raise UsageError(msg) from error
    return AdviceSettings(
        changes=_changes(said, str(path)),
        profiles={
            name: Profile(runs=each.runs, changes=_changes(each, str(path)))
            for name, each in said.profiles.items()
        },
        profile=validated_profile(said.profile, said.profiles, str(path)),
        has_packages=said.plugins,
    )


def validated_profile(name: str, known: Iterable[str], path: str = "--profile") -> str:
    """Return a profile's name, or insist that it be one.

    Raises:
        UsageError: there is no such profile.
    """
    names = (*known, TRAINING, INFERENCE)
    if name and name not in names:
        msg = f"{path}: there is no profile {name!r}. {suggestion(name, names)}".rstrip()
        raise UsageError(msg)
    return name


def option_changes(assignments: Iterable[str]) -> Changes:
    """Return what `--set rule.option=value` says, each time.

    Raises:
        UsageError: it is not of that form.
    """
    rules: dict[str, dict[str, Value]] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        rule, dot, option = name.strip().rpartition(".")
        if not (equals and dot and rule and option):
            msg = f"--set {text!r}: write it as rule.option=value"
            raise UsageError(msg)
        rules.setdefault(rule, {})[option] = _value(value.strip())
    return _changes(_Part(rules=rules), "--set")


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror})"
    except ValueError as error:  # no TOML, no UTF-8, or a number of thousands of digits
        msg = f"{path}: is no TOML ({error})"
    raise UsageError(msg)


def _tools(project: Mapping[str, Any]) -> Mapping[str, Any]:
    tools = project.get("tool")
    return tools if isinstance(tools, dict) else {}


def _in_words(error: str) -> str:
    """Return msgspec's error with the nearest names where one is not known."""
    place = error.rpartition(" - at ")[2].strip("`$.") if " - at " in error else ""
    where = f"{place}: " if place else ""
    if unknown := UNKNOWN.search(error):
        part = _Profile if "profiles" in place else _Put if "suppress" in place else _File
        hint = suggestion(unknown[1], part.__struct_fields__)
        return f"{where}{unknown[1]!r} is not known. {hint}".rstrip()
    return f"{where}{error.partition(' - at ')[0].replace(' | null', '')}"


def _value(text: str) -> Value:
    """Return a value as TOML reads it; what is no TOML is a text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float | str) else text


def _changes(said: _Part, path: str) -> Changes:
    return Changes(
        select=said.select,
        ignore=said.ignore,
        preview=said.preview,
        options={
            rule: {name: value for name, value in each.items() if name != SEVERITY}
            for rule, each in said.rules.items()
        },
        severities=_severities(said.rules, path),
        suppressions=tuple(each.suppression() for each in said.suppress),
        gpus=said.gpus,
        price=said.price,
    )


def _severities(rules: Mapping[str, Mapping[str, Value]], path: str) -> dict[str, Severity]:
    given = {rule: each[SEVERITY] for rule, each in rules.items() if SEVERITY in each}
    for rule, severity in given.items():
        if severity not in SEVERITIES:
            msg = f"{path}: {rule}.severity is {severity!r}: it must be {' or '.join(SEVERITIES)}"
            raise UsageError(msg)
    return msgspec.convert(given, dict[str, Severity])
