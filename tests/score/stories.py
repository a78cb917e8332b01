"""What is true of each recording: the reader of sample_logs/stories.toml."""

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from loading import SAMPLE_LOGS

STORIES = SAMPLE_LOGS / "stories.toml"
Side = Literal["fault", "fix"]


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is true of a run folder."""

    run: str
    device: Literal["cpu", "cuda"]
    healthy: bool
    why: str
    """How the truth is known."""
    story: int | None = None
    causes: tuple[str, ...] = ()
    """Rules: one of them comes first, and each is said at warning or above."""
    also: dict[str, str] = {}
    """Rule to reason: true as well, and may be said at warning or above."""
    known_miss: str = ""
    """What no rule says yet, and why; empty: nothing."""

    @property
    def is_synthetic(self) -> bool:
        """True where it was written from a schedule."""
        return self.run.startswith("synthetic_")

    @property
    def true_rules(self) -> frozenset[str]:
        """What may be said at warning or above."""
        return frozenset(self.causes) | frozenset(self.also)


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The same job with a fault and without it."""

    fault: str
    fix: str
    why: str
    """What is different between the two."""
    heals: tuple[str, ...] | None = None
    """The causes that the fix removes; None: all of the fault's."""
    unit: Literal["step", "sample"] = "step"
    samples: tuple[int, int] = (1, 1)
    """In a step of the fault and of the fix, where the unit is a sample."""
    outside: str = ""
    """Why the predicted range does not hold what was won; empty where it does."""

    @property
    def is_synthetic(self) -> bool:
        """True where it was written from schedules."""
        return self.fault.startswith("synthetic_")


class Stories(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The truth about the sample logs."""

    schema: Literal[1]
    stories: dict[str, str]
    """Number to what a user told in public."""
    recording: tuple[Recording, ...]
    pair: tuple[Pair, ...]

    def of(self, run: str) -> Recording:
        """Return what is true of a run; KeyError where the file does not say."""
        return {each.run: each for each in self.recording}[run]

    def healed(self, pair: Pair) -> tuple[str, ...]:
        """Return the causes that a pair's fix removes."""
        return self.of(pair.fault).causes if pair.heals is None else pair.heals


def read(text: str) -> Stories:
    """Return what a file of this format says.

    Raises:
        msgspec.ValidationError: it has a field that there is not, or lacks one.
        ValueError: it contradicts itself.
    """
    stories = msgspec.toml.decode(text.encode(), type=Stories)
    problems = [*_twice(stories), *_unfit_recordings(stories), *_unfit_pairs(stories)]
    if problems:
        raise ValueError("\n".join(problems))
    return stories


def _twice(stories: Stories) -> list[str]:
    runs = [each.run for each in stories.recording]
    pairs = [(each.fault, each.fix) for each in stories.pair]
    return [
        *(f"{run}: two entries" for run in sorted(set(runs)) if runs.count(run) > 1),
        *(f"{pair}: two entries" for pair in sorted(set(pairs)) if pairs.count(pair) > 1),
    ]


def _unfit_recordings(stories: Stories) -> list[str]:
    found = []
    for each in stories.recording:
        if each.healthy and (each.causes or each.known_miss):
            found.append(f"{each.run}: healthy, and has causes")
        if not each.healthy and not each.causes and not each.known_miss:
            found.append(f"{each.run}: neither healthy nor with a cause")
        if each.story is not None and str(each.story) not in stories.stories:
            found.append(f"{each.run}: there is no story {each.story}")
    return found


def _unfit_pairs(stories: Stories) -> list[str]:
    runs = {each.run: each for each in stories.recording}
    found = []
    for each in stories.pair:
        where = f"{each.fault} to {each.fix}"
        found += [f"{where}: no entry {run}" for run in (each.fault, each.fix) if run not in runs]
        fault = runs.get(each.fault)
        if fault is not None and not set(each.heals or ()) <= set(fault.causes):
            found.append(f"{where}: heals what is no cause")
        if (each.unit == "sample") != (each.samples != (1, 1)):
            found.append(f'{where}: `samples` goes with unit = "sample"')
    return found


@cache
def stories(path: Path = STORIES) -> Stories:
    """Return what the committed file says."""
    return read(path.read_text(encoding="utf-8"))
