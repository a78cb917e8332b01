"""Kinds of recorded settings, each with a reader of untrusted values.

Readers return the value, or None where it is not of their kind; they raise no error.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field
from typing import Any

from stepscope.model.trace import whole_number

MOST_CHARACTERS = 200
"""Longer texts are cut."""
MOST_ITEMS = 64
"""Most items of a list; a process has fewer loaders, optimizers, devices and variables."""
MOST_COUNT = 2**62
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{1,63}")
SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE")
"""Variables that must not be recorded or shown."""
TORCH = "torch."
DATA_TYPE = re.compile(r"[a-z][a-z0-9_]{0,31}")
"""torch's name of a type. Advice inserts it into code, so other texts are refused."""
Reader = Callable[[object], Any]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """Reader, label and unit of a setting."""

    read: Reader
    label: str
    unit: str
    """As in public tables: `count`, `bytes`, `text`, `flag`."""


def setting_of(declared: "Field[Any]") -> Setting | None:
    """Return the `Setting` of a field; None: the field is a subject with settings."""
    setting = declared.metadata.get("setting")
    return setting if isinstance(setting, Setting) else None


def _field(setting: Setting, factory: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401
    about = {"setting": setting}
    if factory is None:
        return field(default=None, metadata=about)
    return field(default=MISSING, default_factory=factory, metadata=about)


def number(label: str, *, least: int = 0, unit: str = "count") -> Any:  # noqa: ANN401 (a field)
    """Declare a setting that is a whole number of at least `least`."""

    def read(value: object) -> int | None:
        count = as_count(value)
        return count if count is not None and count >= least else None

    return _field(Setting(read=read, label=label, unit=unit))


def _kind(
    read: Reader, unit: str, factory: Callable[[], Any] | None = None
) -> Callable[[str], Any]:
    """Return a function that declares a setting of a kind, by its label."""
    return lambda label: _field(Setting(read=read, label=label, unit=unit), factory)


def as_flag(value: object) -> bool | None:
    """Return on or off."""
    return value if isinstance(value, bool) else None


def as_count(value: object) -> int | None:
    """Return a whole number from 0 to `MOST_COUNT`."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    count = whole_number(value)
    return count if count is not None and 0 <= count < MOST_COUNT else None


def as_quantity(value: object) -> float | None:
    """Return a number that is not below zero."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < MOST_COUNT else None


def as_text(value: object) -> str | None:
    """Return a text in one line, cut at `MOST_CHARACTERS`; None if it is empty."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    if isinstance(value, int):
        return str(value) if abs(value) < MOST_COUNT else None
    shown = "".join(
        character if character.isprintable() else " " for character in value[: 2 * MOST_CHARACTERS]
    )
    shown = " ".join(shown.split())
    return (shown if len(shown) <= MOST_CHARACTERS else f"{shown[: MOST_CHARACTERS - 1]}…") or None


def as_data_type(value: object) -> str | None:
    """Return one of torch's types, without `torch.`."""
    name = (as_text(value) or "").removeprefix(TORCH) if isinstance(value, str) else ""
    return name if DATA_TYPE.fullmatch(name) else None


def as_version(value: object) -> str | None:
    """Return a version with points."""
    if isinstance(value, list | tuple):
        parts = [as_count(part) for part in value[:MOST_ITEMS]]
        return ".".join(map(str, parts)) if parts and None not in parts else None
    return as_text(value)


def as_counts(value: object) -> dict[str, int] | None:
    """Return the count of each name; names without one are left out."""
    if not isinstance(value, Mapping):
        return None
    counts = {
        as_data_type(name): as_count(count) for name, count in list(value.items())[:MOST_ITEMS]
    }
    return {name: count for name, count in counts.items() if name and count is not None}


def as_names(value: object) -> tuple[str, ...] | None:
    """Return the names in a list, in their order."""
    if not isinstance(value, list | tuple):
        return None
    return tuple(text for name in value[:MOST_ITEMS] if (text := as_text(name)) is not None)


def as_variables(value: object) -> dict[str, str] | None:
    """Return the variables with valid names that do not suggest a secret."""
    if not isinstance(value, Mapping):
        return None
    variables: dict[str, str] = {}
    for name, setting in list(value.items())[:MOST_ITEMS]:
        shown = as_text(setting)
        is_name = isinstance(name, str) and VARIABLE.fullmatch(name) and not SECRET.search(name)
        if is_name and shown is not None:
            variables[name] = shown
    return variables


flag = _kind(as_flag, "flag")
quantity = _kind(as_quantity, "count")
text = _kind(as_text, "text")
data_type = _kind(as_data_type, "text")
release = _kind(as_version, "text")
names = _kind(as_names, "text")
counts = _kind(as_counts, "count", dict)
variables = _kind(as_variables, "text", dict)
