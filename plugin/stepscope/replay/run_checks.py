"""Checks that the traces of a run describe the same steps and collectives."""

import json

import numpy as np
import pandas as pd

from stepscope.analyses.communication.rank_summary import Key
from stepscope.analyses.communication.ranked_run import ONE_RANK, REMEDY, RankRun, as_ranges
from stepscope.base.errors import MissingDataError
from stepscope.model.arrays import Ints

SAME_STEPS = "profile(schedule=schedule(...))  # with the same steps on every rank"
MOST_NAMED = 5


def require_equal_steps(run: RankRun) -> None:
    """Check that all ranks recorded the same steps.

    Raises:
        MissingDataError: they did not, or there is only one rank, or a rank has several traces.
    """
    workers = [part.evidence.worker for part in run.parts]
    if len(set(workers)) < 2:
        raise MissingDataError(ONE_RANK, REMEDY)
    if len(workers) > len(set(workers)):
        spans = ", ".join(sorted({part.evidence.span for part in run.parts}))
        msg = f"ranks have several traces (spans {spans}): select one with --span"
        raise MissingDataError(msg, REMEDY)
    steps = pd.Series([_steps(part.steps.number, part.steps.has_steps) for part in run.parts])
    usual = str(steps.mode().iloc[0])
    others = np.flatnonzero(steps != usual)
    if len(others):
        msg = (
            "the ranks recorded different steps: "
            f"{names_of(run, np.flatnonzero(steps == usual))} {usual}, "
            f"{names_of(run, others[:1])} {steps[others[0]]}"
        )
        raise MissingDataError(msg, SAME_STEPS)


def _steps(number: Ints, has_steps: bool) -> str:  # noqa: FBT001 (two fields of a rank's steps)
    return f"steps {as_ranges(number.tolist())}" if has_steps else "no steps"


def names_of(run: RankRun, indexes: Ints) -> str:
    """Return the names of some traces: `ranks 3, 7`."""
    numbers = [run.ranks[at].rank for at in indexes.tolist()]
    numbered = [number for number in numbers if number is not None]
    if len(numbered) < len(numbers):
        return ", ".join(run.parts[at].evidence.worker for at in indexes.tolist()[:MOST_NAMED])
    return f"{'rank' if len(numbered) == 1 else 'ranks'} {as_ranges(numbered)}"


def require_equal_collectives(run: RankRun, row: Ints) -> None:
    """Check that all recorded ranks of a group took part in each of its collectives.

    Args:
        run: The run.
        row: Rows of its matches' members, those in the recorded steps.

    Raises:
        MissingDataError: a rank lacks a collective, or no collective has a match.
    """
    matches = run.matches
    size = np.bincount(matches.match[row], minlength=len(matches.first))
    if not (size > 1).any():
        msg = "no collective of a rank matches another rank's"
        raise MissingDataError(msg, REMEDY)
    key = matches.key[matches.first]
    largest = np.zeros(len(matches.keys), dtype=np.int64)
    np.maximum.at(largest, key, size)
    ranks = frozenset(of.rank for of in run.ranks if of.rank is not None)
    counts = [_member_count(*of, ranks) for of in zip(matches.keys, largest.tolist(), strict=True)]
    expected = np.array(counts, dtype=np.int64)[key]
    lacking = np.flatnonzero((size > 0) & (size < expected))
    if not len(lacking):
        return
    first = int(lacking[0])
    of = matches.keys[key[first]]
    members = row[matches.match[row] == first]
    msg = (
        f"{len(lacking)} of {int((size > 0).sum())} collectives lack a rank: of the "
        f"{expected[first]} recorded ranks of group {of.group or 'unknown'}, only "
        f"{names_of(run, matches.trace_index[members])} took part in one {of.kind} of step "
        f"{matches.step[members[0]]}"
    )
    raise MissingDataError(msg, SAME_STEPS)


def _member_count(key: Key, largest: int, ranks: frozenset[int]) -> int:
    """Return the number of recorded ranks that take part in a collective.

    `largest` is the most that took part in one with this key.
    """
    if key.source >= 0 and key.destination >= 0:
        return len({key.source, key.destination} & ranks)
    if key.ranks:
        return len(ranks.intersection(json.loads(key.ranks)))
    return largest
