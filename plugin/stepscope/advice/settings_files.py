"""Settings in files and on the command line.

```toml
[tool.stepscope]                 # in pyproject.toml; in stepscope.toml without `tool.stepscope`
select = ["all"]                 # ids, categories, severities
ignore = ["conv-bias-before-bn"]
preview = false
profile = ""                     # one of the profiles below, for all runs
gpus = 1024                      # devices of the job, if not as recorded
price = 2.50                     # of one device for an hour, in any currency

[tool.stepscope.rules.dataloader-bound]
least_share = 0.10               # an option of the rule
severity = "info"                # of all its findings

[tool.stepscope.profiles.serving]
runs = ["serve*"]                # names of runs; `training` and `inference` need none
ignore = ["tiny-batch-size"]

[[tool.stepscope.suppress]]
rule = "item-sync"
reason = "We log every step, and accept it."
runs = "debug*"                  # optional, as are `fingerprint` and `expires`
expires = 2027-01-31             # the last day on which it applies
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
)
from stepscope.base.errors import UsageError, suggestion
from stepscope.base.findings import Severity

FILE_NAME = "stepscope.toml"
PROJECT_NAME = "pyproject.toml"
SEVERITY = "severity"
UNKNOWN = re.compile(r"unknown field `(.+?)`")


class _Suppression(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An entry of `suppress`."""

    rule: str
    reason: str
    runs: str = "*"
    fingerprint: str = ""
    expires: date | None = None

    def suppression(self) -> Suppression:
        """Return the suppression."""
        return Suppression(
            rule=self.rule,
            reason=self.reason,
            runs=self.runs,
            fingerprint=self.fingerprint,
            expires=self.expires.isoformat() if self.expires else "",
        )


class _Part(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Settings of a file or a profile."""

    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    preview: bool | None = None
    rules: dict[str, dict[str, Value]] = {}
    suppress: tuple[_Suppression, ...] = ()
    gpus: Annotated[int, msgspec.Meta(ge=1, le=MOST_GPUS)] | None = None
    price: Annotated[float, msgspec.Meta(ge=0, le=MOST_PRICE)] | None = None


class _Profile(_Part, forbid_unknown_fields=True, frozen=True):
    """An entry of `profiles`."""

    runs: tuple[str, ...] = ()


class _File(_Part, forbid_unknown_fields=True, frozen=True):
    """Settings of a file."""

    profile: str = ""
    profiles: dict[str, _Profile] = {}
    plugins: bool = True


def nearest_file(folder: Path) -> Path | None:
    """Return the nearest settings file, in a folder or above it."""
    for parent in (folder, *folder.parents):
        if (path := parent / FILE_NAME).is_file():
            return path
        project = parent / PROJECT_NAME
        if project.is_file() and "stepscope" in _tools(_parsed(project)):
            return project
    return None


def read_settings(path: Path) -> AdviceSettings:
    """Return the settings in a file.

    Raises:
        UsageError: it cannot be read, is invalid TOML, or has an unknown key.
    """
    document = _parsed(path)
    if path.name == PROJECT_NAME:
        document = _tools(document).get("stepscope", {})
    try:
        content = msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        msg = f"{path}: {_message(str(error))}"
        raise UsageError(msg) from error
    return AdviceSettings(
        changes=_changes(content, str(path)),
        profiles={
            name: Profile(runs=profile.runs, changes=_changes(profile, str(path)))
            for name, profile in content.profiles.items()
        },
        profile=validated_profile(content.profile, content.profiles, str(path)),
        has_packages=content.plugins,
    )


def validated_profile(name: str, profiles: Iterable[str], path: str = "--profile") -> str:
    """Return a profile's name after checking it.

    Raises:
        UsageError: there is no such profile.
    """
    names = (*profiles, TRAINING, INFERENCE)
    if name and name not in names:
        msg = f"{path}: there is no profile {name!r}. {suggestion(name, names)}".rstrip()
        raise UsageError(msg)
    return name


def option_changes(assignments: Iterable[str]) -> Changes:
    """Return the settings of `--set rule.option=value` options.

    Raises:
        UsageError: one has another form.
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
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        msg = f"{path}: cannot be read ({error.strerror})"
    except (ValueError, RecursionError) as error:  # also invalid UTF-8, thousands of digits
        msg = f"{path}: is not valid TOML ({error})"
    raise UsageError(msg)


def _tools(project: Mapping[str, Any]) -> Mapping[str, Any]:
    tools = project.get("tool")
    return tools if isinstance(tools, dict) else {}


def _message(error: str) -> str:
    """Return msgspec's error, with the nearest names of an unknown key."""
    location = error.rpartition(" - at ")[2].strip("`$.") if " - at " in error else ""
    where = f"{location}: " if location else ""
    if unknown := UNKNOWN.search(error):
        part = (
            _Profile
            if "profiles" in location
            else _Suppression
            if "suppress" in location
            else _File
        )
        hint = suggestion(unknown[1], part.__struct_fields__)
        return f"{where}unknown key {unknown[1]!r}. {hint}".rstrip()
    return f"{where}{error.partition(' - at ')[0].replace(' | null', '')}"


def _value(text: str) -> Value:
    """Return a value as TOML reads it; other text stays text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float | str) else text


def _changes(part: _Part, path: str) -> Changes:
    return Changes(
        select=part.select,
        ignore=part.ignore,
        preview=part.preview,
        options={
            rule: {name: value for name, value in options.items() if name != SEVERITY}
            for rule, options in part.rules.items()
        },
        severities=_severities(part.rules, path),
        suppressions=tuple(entry.suppression() for entry in part.suppress),
        gpus=part.gpus,
        price=part.price,
    )


def _severities(rules: Mapping[str, Mapping[str, Value]], path: str) -> dict[str, Severity]:
    severities = {rule: options[SEVERITY] for rule, options in rules.items() if SEVERITY in options}
    for rule, severity in severities.items():
        if severity not in SEVERITIES:
            msg = f"{path}: {rule}.severity is {severity!r}: it must be {' or '.join(SEVERITIES)}"
            raise UsageError(msg)
    return msgspec.convert(severities, dict[str, Severity])
