"""Ranks and machines with outlying figures."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from stepscope.analyses.communication.rank_metrics import (
    FIGURES,
    LEAST_SCALE_SHARE,
    RankFigures,
    rank_figures,
)
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.communication.ranked_run import (
    RankRun,
    computed_per_run,
    several_ranks,
)
from stepscope.analyses.core.robust_slope import FEW, modified_zscores, outlier_score
from stepscope.base.formatting import count, duration, share, size
from stepscope.model.arrays import Floats, Ints
from stepscope.model.frames import Column, Schema
from stepscope.model.table import run_table, to_frame

ENOUGH_RANKS = 8
"""Outliers among fewer have low confidence."""
MOST_TIMES = 10.0
"""Larger ratios are shown as two figures, not as a percentage."""
SCHEMA: Schema = (
    Column("rank", "float64", "id", "The rank; NaN: a machine, or unknown."),
    Column("worker", "object", "text", "The trace's worker; None: a machine."),
    Column("span", "object", "text", "The trace's span; None: a machine."),
    Column("host", "object", "text", "The machine's name (torch's `host_name`); None: unknown."),
    Column("is_machine", "bool", "", "Whether it is of a whole machine: the median of its ranks."),
    Column("figure", "object", "text", "`own_work` (compute time), `step`, `computing`,"
           " `transfer`, `waiting`, `loading`, `copies`, `idle` (times per step), `kernels`"
           " (per step), or `memory` (peak)."),
    Column("value", "float64", "", "Its value: nanoseconds, a number, or bytes."),
    Column("usual", "float64", "", "The median of its peers; for times, in the same steps."),
    Column("apart_share", "float64", "share", "Difference to the median, of the median; NaN: that"
           " is 0."),
    Column("score", "float64", "", "Modified z-score (Iglewicz and Hoaglin), its scale at least 1 %"
           " of a step or of the median. Outliers are beyond 3.5, and beyond the score that chance"
           " gives among as many peers in 1 case of 20."),
    Column("peer_count", "int64", "count", "Number of peers, including itself."),
    Column("confidence", "object", "text", "`high`; `low`: among fewer than 8, or less than half as"
           " many steps as the median."),
    Column("reason", "object", "text", "The comparison as a sentence."),
)  # fmt: skip


class _Outlier(NamedTuple):
    position: int
    """Index of the run's trace; -1: a machine."""
    host: str | None
    figure: str
    value: float
    usual: float
    score: float
    peer_count: int
    is_sure: bool


@run_table(
    "outlier-ranks",
    SCHEMA,
    rank_summary,
    "One row per outlying figure of a rank or machine, by modified z-scores among its peers, the"
    " farthest first.",
)
def outlier_ranks(parts: Sequence[RankSummary]) -> pd.DataFrame:
    """Return one row per outlying figure of a rank or machine, the farthest first.

    Raises:
        MissingDataError: the traces are of one rank.
    """
    return outlier_ranks_of(several_ranks(parts)).copy()


@computed_per_run
def outlier_ranks_of(run: RankRun) -> pd.DataFrame:
    """Return the same table for a run."""
    figures = rank_figures(run)
    outliers = sorted((*_ranks(run, figures), *_hosts(run, figures)), key=lambda of: -abs(of.score))
    position = np.array([of.position for of in outliers], dtype=np.int64)
    columns: dict[str, Any] = {
        **run.identity_of(position),
        "host": [of.host for of in outliers],
        "is_machine": [of.position < 0 for of in outliers],
        "figure": [of.figure for of in outliers],
        "value": [of.value for of in outliers],
        "usual": [of.usual for of in outliers],
        "apart_share": [of.value / of.usual - 1 if of.usual else np.nan for of in outliers],
        "score": [of.score for of in outliers],
        "peer_count": [of.peer_count for of in outliers],
        "confidence": ["high" if of.is_sure else "low" for of in outliers],
        "reason": [_reason(of) for of in outliers],
    }
    return to_frame(SCHEMA, columns)


def _ranks(run: RankRun, figures: RankFigures) -> Iterator[_Outlier]:
    names = list(FIGURES)
    least = np.array([outlier_score(peer_count) for peer_count in figures.peer_count.tolist()])
    with np.errstate(invalid="ignore"):
        far = np.abs(figures.score) > least[:, None]
    for at, column in zip(*np.nonzero(far), strict=True):
        peers = int(figures.peer_count[at])
        yield _Outlier(
            position=int(at),
            host=run.parts[at].host,
            figure=names[column],
            value=float(figures.value[at, column]),
            usual=float(figures.usual[at, column]),
            score=float(figures.score[at, column]),
            peer_count=peers,
            is_sure=peers >= ENOUGH_RANKS and not figures.is_short[at],
        )


def _hosts(run: RankRun, figures: RankFigures) -> Iterator[_Outlier]:
    """Yield machines of several ranks whose median rank is an outlier among machines."""
    code, hosts = pd.factorize(run.identity["host"])
    sizes = np.bincount(code[code >= 0], minlength=len(hosts))
    if len(hosts) < FEW or (sizes < 2).all():
        return
    step = figures.usual[:, list(FIGURES).index("step")]
    for column, (name, figure) in enumerate(FIGURES.items()):
        value, usual = figures.value[:, column], figures.usual[:, column]
        apart = _medians(value - usual, code)
        typical = _medians(usual, code)
        scale = np.nanmedian(step) if figure.unit == "ns" else _middle(typical)
        score = modified_zscores(apart, LEAST_SCALE_SHARE * float(np.nan_to_num(scale)))
        far = (np.abs(np.nan_to_num(score)) > outlier_score(len(hosts))) & (sizes > 1)
        for at in np.flatnonzero(far).tolist():
            yield _Outlier(
                position=-1,
                host=str(hosts[at]),
                figure=name,
                value=float(typical[at] + apart[at]),
                usual=float(typical[at]),
                score=float(score[at]),
                peer_count=len(hosts),
                is_sure=len(hosts) >= ENOUGH_RANKS,
            )


def _medians(values: Floats, code: Ints) -> Floats:
    has_host = code >= 0
    medians = pd.Series(values[has_host]).groupby(code[has_host]).median()
    return np.asarray(medians, dtype=np.float64)


def _middle(values: Floats) -> float:
    return float(np.median(values[~np.isnan(values)])) if (~np.isnan(values)).any() else 0.0


def _reason(of: _Outlier) -> str:
    peers = count(of.peer_count, "machine" if of.position < 0 else "rank")
    whose = "The median rank's" if of.position < 0 else "Its"
    return f"{whose} {comparison_text(of.figure, of.value, of.usual, peers)}."


def comparison_text(figure: str, value: float, usual: float, peers: str) -> str:
    """Return a comparison with the median: `compute time per step is 13 ms: 30 % more than …`."""
    text = f"{FIGURES[figure].label} is {value_text(figure, value)}"
    middle = f"the median of {peers} ({value_text(figure, usual)})"
    if value_text(figure, value) == value_text(figure, usual):
        return f"{text}, as the median of {peers}"
    if not usual or not 1 / MOST_TIMES < value / usual < MOST_TIMES:
        return f"{text}, far from {middle}"
    word = "more" if value > usual else "less"
    return f"{text}: {share(abs(value / usual - 1))} {word} than {middle}"


def value_text(figure: str, value: float) -> str:
    """Return a figure's value with its unit."""
    unit = FIGURES[figure].unit
    if unit == "ns":
        return duration(value)
    return size(value) if unit == "bytes" else f"{value:,.0f}"
