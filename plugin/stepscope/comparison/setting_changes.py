"""Recorded settings of the run that differ between two sides: often the answer itself."""

from collections.abc import Iterator

from stepscope.comparison.messages import SettingChange
from stepscope.comparison.side import Together

NOT_SET = "not recorded"
MOST_SHOWN = 50


def setting_changes(before: Together, after: Together) -> tuple[SettingChange, ...]:
    """Return what differs; nothing where one side's trace handler recorded no settings."""
    if not all(any(each.settings for each in side.recordings) for side in (before, after)):
        return ()
    return tuple(_changes(before, after))[:MOST_SHOWN]


def _changes(before: Together, after: Together) -> Iterator[SettingChange]:
    labels = {
        key: label
        for side in (before, after)
        for each in side.recordings
        for key, (label, _) in each.settings.items()
    }
    for key, label in labels.items():
        was, now = (_said(side, key) for side in (before, after))
        if was != now:
            yield SettingChange(name=key, label=label, before=was, after=now)


def _said(side: Together, key: str) -> str:
    """Return what the recordings of a side have, each value once."""
    known = {each.settings[key][1] for each in side.recordings if key in each.settings}
    return " or ".join(sorted(known)) or NOT_SET
