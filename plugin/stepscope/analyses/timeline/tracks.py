"""The tracks of a recording: what lies on which, and in which order they are shown."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

TrackKind = Literal["group", "steps", "stream", "annotations", "idle", "counter", "thread", "other"]


@dataclass(frozen=True, kw_only=True)
class Owner:
    """A process or device, whose tracks are shown under its name."""

    label: str
    detail: str = ""
    order: tuple[int, int, str] = (0, 0, "")
    """Owners are shown by that."""


@dataclass(frozen=True, kw_only=True)
class TrackSubject:
    """What a track without slices of its own is about: a counter, or idle times."""

    subject: str
    device: int = -1
    part: int = -1
    """Which of several: a counter's number."""


@dataclass(frozen=True, kw_only=True)
class Track:
    """One track, or the header above some."""

    kind: TrackKind
    label: str
    detail: str = ""
    owner: Owner | None = None
    order: tuple[int, int, str] = (0, 0, "")
    """Tracks of one owner are shown by that; of equal ones those with most slices first."""
    device: int = -1
    """Of a stream and what else lies on a device."""
    unit: str = ""
    """Of a counter."""
    is_open: bool = True
    about: TrackSubject | None = None
    id: int = -1
    """Its place among the tracks."""
    parent: int | None = None
    row_count: int = 0
    event_count: int | None = None
    """None where nobody has counted: what is worked out when it is asked for."""
    busy_ns: int | None = None
    """For how long anything of it ran."""


def numbered(tracks: Sequence[Track]) -> tuple[tuple[Track, ...], list[int]]:
    """Return the tracks as they are shown, under their owners; and each given one's number."""
    places = sorted(range(len(tracks)), key=lambda place: _rank(tracks[place]))
    shown: list[Track] = []
    numbers = [-1] * len(tracks)
    owner, parent = None, None
    for place in places:
        track = tracks[place]
        if track.owner != owner:
            owner, parent = track.owner, len(shown)
            shown.extend(_header(track.owner, len(shown)))
            parent = len(shown) - 1
        numbers[place] = len(shown)
        parent = parent if owner else None
        shown.append(replace(track, id=len(shown), parent=parent))
    return tuple(shown), numbers


def _header(owner: Owner | None, number: int) -> Iterable[Track]:
    if owner is not None:
        yield Track(kind="group", label=owner.label, detail=owner.detail, id=number)


def _rank(track: Track) -> tuple[object, ...]:
    owner = (-1, 0, "") if track.owner is None else track.owner.order
    return owner, track.order, -(track.event_count or 0)
