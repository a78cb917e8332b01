"""What the user can set, read once from the environment and frozen."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from stepscope.errors import UsageError


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How much the catalog may hold, and how it goes about its work."""

    kept_events: int = 8_000_000
    """Events of traces kept in memory, at about 500 bytes each: 4 GB. `STEPSCOPE_KEPT_EVENTS`."""
    reader_count: int = 2
    """Files read at once; two, so that a huge one does not hold up a small one.
    `STEPSCOPE_READERS`."""
    rescan_seconds: int = 10
    """Pause between two looks for new files. `STEPSCOPE_RESCAN_SECONDS`."""


def _whole(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip().replace("_", "")
    if not text:
        return default
    if not text.isdecimal() or int(text) < 1:
        msg = f"{name} is {text!r}: it must be a whole number above zero"
        raise UsageError(msg)
    return int(text)


def settings(environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the user's settings.

    Raises:
        UsageError: a variable holds no whole number above zero.
    """
    default = Settings()
    return Settings(
        kept_events=_whole(environment, "STEPSCOPE_KEPT_EVENTS", default.kept_events),
        reader_count=_whole(environment, "STEPSCOPE_READERS", default.reader_count),
        rescan_seconds=_whole(environment, "STEPSCOPE_RESCAN_SECONDS", default.rescan_seconds),
    )
