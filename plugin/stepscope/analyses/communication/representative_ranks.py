"""Representative ranks of a large run: the fastest, the slowest, the median, and odd ranks.

Fastest and slowest are by compute time compared with their peers (`compute_time`): steps of all
ranks are equally long, since they wait for each other.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from stepscope.analyses.communication.outlier_ranks import comparison_text, outlier_ranks_of
from stepscope.analyses.communication.rank_metrics import FIGURES, RankFigures, rank_figures
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.communication.ranked_run import (
    IDENTITY,
    RankRun,
    computed_per_run,
    several_ranks,
)
from stepscope.analyses.communication.stragglers import straggler_groups
from stepscope.base.formatting import count
from stepscope.model.arrays import Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import run_table, to_frame

Kind = Literal["fastest", "slowest", "median", "odd"]
MOST_ODD = 5
SCHEMA: Schema = (
    Column("kind", "object", "text", "`fastest` and `slowest` (by compute time, compared with the"
           " same pipeline stage), `median` (nearest to the median in all figures together), or"
           " `odd` (an outlier in another figure)."),
    *IDENTITY,
    Column("figure", "object", "text", "The figure of the selection: see `outlier-ranks`."),
    Column("value", "float64", "", "Its value: nanoseconds, a number, or bytes."),
    Column("usual", "float64", "", "The median of its peers."),
    Column("score", "float64", "", "Modified z-score among them; NaN: fewer than three."),
    Column("reason", "object", "text", "The reason as a sentence."),
)  # fmt: skip
FIGURE_COLUMNS = ("kind", "figure", "value", "usual", "score", "reason")


@dataclass(frozen=True, kw_only=True)
class Representative:
    """A rank that represents others, or is odd."""

    kind: Kind
    index: int
    """Index of the run's trace."""
    figure: str
    """One of `FIGURES`."""
    value: float
    usual: float
    score: float
    reason: str


@run_table(
    "representative-ranks",
    SCHEMA,
    rank_summary,
    "One row per representative rank: the slowest, the fastest, the median one, and those with"
    " other outlying figures, each with the reason.",
)
def representative_ranks(parts: Sequence[RankSummary]) -> pd.DataFrame:
    """Return one row per representative rank, in `SCHEMA` columns.

    Raises:
        MissingDataError: the traces are of one rank.
    """
    run = several_ranks(parts)
    selection = representatives(run)
    index = np.array([rank.index for rank in selection], dtype=np.int64)
    columns: dict[str, Any] = {
        **run.identity_of(index),
        **{name: [getattr(of, name) for of in selection] for name in FIGURE_COLUMNS},
    }
    return to_frame(SCHEMA, columns)


@computed_per_run
def representatives(run: RankRun) -> tuple[Representative, ...]:
    """Return the representative ranks; none where fewer than three can be compared."""
    figures = rank_figures(run)
    names = list(FIGURES)
    has_work = ~np.isnan(figures.score[:, names.index("own_work")])
    figure = "own_work" if has_work.any() else "step"
    column = names.index(figure)
    apart = figures.value[:, column] - figures.usual[:, column]
    candidates = np.flatnonzero(~figures.is_short & ~np.isnan(figures.score[:, column]))
    if not len(candidates):
        return ()
    ends: tuple[tuple[Kind, int], ...] = (
        ("slowest", int(candidates[np.argmax(apart[candidates])])),
        ("fastest", int(candidates[np.argmin(apart[candidates])])),
    )
    if ends[0][1] == ends[1][1]:
        ends = ()  # all are equal
    extremes = [_of(figures, kind, at, figure, _reason(figures, at, figure)) for kind, at in ends]
    left = np.array([at for at in candidates if at not in {of.index for of in extremes}], dtype=int)
    usual = [_usual(figures, left, figure)] if len(left) else []
    return (*extremes, *usual, *_odd(run, figures, [*extremes, *usual]))


def _of(figures: RankFigures, kind: Kind, at: int, figure: str, reason: str) -> Representative:
    column = list(FIGURES).index(figure)
    return Representative(
        kind=kind,
        index=at,
        figure=figure,
        value=float(figures.value[at, column]),
        usual=float(figures.usual[at, column]),
        score=float(figures.score[at, column]),
        reason=reason,
    )


def _reason(figures: RankFigures, at: int, figure: str) -> str:
    column = list(FIGURES).index(figure)
    peers = count(int(figures.peer_count[at]), "rank")
    value, usual = float(figures.value[at, column]), float(figures.usual[at, column])
    return f"Its {comparison_text(figure, value, usual, peers)}."


def _usual(figures: RankFigures, left: Ints, figure: str) -> Representative:
    far = np.nansum(np.abs(figures.score[left]), axis=1)
    at = int(left[np.argmin(far)])
    figure_count = int((~np.isnan(figures.score[at])).sum())
    reason = (
        f"Of all ranks it is nearest to the median in {count(figure_count, 'figure')} together. "
    )
    return _of(figures, "median", at, figure, reason + _reason(figures, at, figure))


def _odd(
    run: RankRun, figures: RankFigures, named: Sequence[Representative]
) -> Iterator[Representative]:
    """Yield one rank of each other straggler group, then ranks with other outlying figures."""
    index_of = {(of.evidence.worker, of.evidence.span): at for at, of in enumerate(run.parts)}
    late = straggler_groups(run)
    taken = {of.index for of in named}
    rows = outlier_ranks_of(run)
    rows = rows[~rows["is_machine"] & (rows["confidence"] == "high")]
    others = [group.indexes[0] for group in late if not taken & set(group.indexes)]
    odd = [(at, "own_work") for at in others]
    taken |= {at for group in late for at in group.indexes}
    ways = set[tuple[str, bool]]()
    for row in rows.to_dict("records"):
        at, way = index_of[row["worker"], row["span"]], (row["figure"], row["score"] > 0)
        if at not in taken and way not in ways:
            odd.append((at, row["figure"]))
            taken.add(at)
            ways.add(way)
    for at, figure in odd[:MOST_ODD]:
        yield _of(figures, "odd", at, figure, _reason(figures, at, figure))
