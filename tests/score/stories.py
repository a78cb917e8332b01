"""True causes of each run: the reader of sample_logs/stories.toml."""

from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from loading import SAMPLE_LOGS

STORIES = SAMPLE_LOGS / "stories.toml"
Side = Literal["fault", "fix"]


class Recording(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """True causes of a run folder."""

    run: str
    device: Literal["cpu", "cuda"]
    healthy: bool
    why: str
    """How the truth is known."""
    story: int | None = None
    causes: tuple[str, ...] = ()
    """Rules, one of which must be first; all must be reported at warning or above."""
    also: dict[str, str] = {}
    """Rule to reason: also true, and may be reported at warning or above."""
    known_miss: str = ""
    """Cause that no rule reports yet, with the reason; empty: none."""

    @property
    def is_synthetic(self) -> bool:
        """True if it was generated from a schedule."""
        return self.run.startswith("synthetic_")

    @property
    def true_rules(self) -> frozenset[str]:
        """Rules whose findings are true."""
        return frozenset(self.causes) | frozenset(self.also)


class Pair(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The same job with a fault and without it."""

    fault: str
    fix: str
    why: str
    """Difference between the two."""
    heals: tuple[str, ...] | None = None
    """Causes that the fix removes; None: all of the fault's."""
    unit: Literal["step", "sample"] = "step"
    samples: tuple[int, int] = (1, 1)
    """Samples in a step of the fault and of the fix, if the unit is a sample."""
    outside: str = ""
    """Reason if the estimate does not contain the measured saving; empty if it does."""

    @property
    def is_synthetic(self) -> bool:
        """True if it was generated from schedules."""
        return self.fault.startswith("synthetic_")


class Stories(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """True causes of all sample logs."""

    schema: Literal[1]
    stories: dict[str, str]
    """Problems that users described in public, by number."""
    recording: tuple[Recording, ...]
    pair: tuple[Pair, ...]

    def of(self, run: str) -> Recording:
        """Return the entry of a run.

        Raises:
            KeyError: it has none.
        """
        return {truth.run: truth for truth in self.recording}[run]

    def healed(self, pair: Pair) -> tuple[str, ...]:
        """Return the causes that a pair's fix removes."""
        return self.of(pair.fault).causes if pair.heals is None else pair.heals


def read(text: str) -> Stories:
    """Return the content of a file of this format.

    Raises:
        msgspec.ValidationError: it has an unknown field, or lacks one.
        ValueError: it contradicts itself.
    """
    stories = msgspec.toml.decode(text.encode(), type=Stories)
    problems = [*_twice(stories), *_unfit_recordings(stories), *_unfit_pairs(stories)]
    if problems:
        raise ValueError("\n".join(problems))
    return stories


def _twice(stories: Stories) -> list[str]:
    runs = [truth.run for truth in stories.recording]
    pairs = [(pair.fault, pair.fix) for pair in stories.pair]
    return [
        *(f"{run}: two entries" for run in sorted(set(runs)) if runs.count(run) > 1),
        *(f"{pair}: two entries" for pair in sorted(set(pairs)) if pairs.count(pair) > 1),
    ]


def _unfit_recordings(stories: Stories) -> list[str]:
    problems = []
    for truth in stories.recording:
        if truth.healthy and (truth.causes or truth.known_miss):
            problems.append(f"{truth.run}: healthy, but has causes")
        if not truth.healthy and not truth.causes and not truth.known_miss:
            problems.append(f"{truth.run}: not healthy, but has no cause")
        if truth.story is not None and str(truth.story) not in stories.stories:
            problems.append(f"{truth.run}: there is no story {truth.story}")
    return problems


def _unfit_pairs(stories: Stories) -> list[str]:
    runs = {truth.run: truth for truth in stories.recording}
    problems = []
    for pair in stories.pair:
        name = f"{pair.fault} to {pair.fix}"
        problems += [f"{name}: no entry {run}" for run in (pair.fault, pair.fix) if run not in runs]
        fault = runs.get(pair.fault)
        if fault is not None and not set(pair.heals or ()) <= set(fault.causes):
            problems.append(f"{name}: `heals` names a rule that is not a cause")
        if (pair.unit == "sample") != (pair.samples != (1, 1)):
            problems.append(f'{name}: `samples` requires unit = "sample", and vice versa')
    return problems


@cache
def stories(path: Path = STORIES) -> Stories:
    """Return the content of the committed file."""
    return read(path.read_text(encoding="utf-8"))
