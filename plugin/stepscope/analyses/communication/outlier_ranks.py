"""Ranks and machines whose figures lie far from what is usual, each with its evidence."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.communication.compute_time import LEAST_SCALE_SHARE
from stepscope.analyses.communication.rank_metrics import FIGURES, RankFigures, rank_figures
from stepscope.analyses.communication.rank_summary import RankSummary, rank_summary
from stepscope.analyses.communication.ranked_run import (
    RankRun,
    computed_per_run,
    several_ranks,
    text_column,
)
from stepscope.analyses.communication.robust_zscore import FEW, modified_zscores, outlier_score
from stepscope.base.formatting import count, duration, share, size
from stepscope.model.frames import Column, Schema
from stepscope.model.table import RunTable
from stepscope.model.table_columns import to_frame

ENOUGH_RANKS = 8
"""Among fewer, what is usual is not well known."""
MOST_TIMES = 10.0
"""Where a figure is so many times what is usual, both are told, and no share."""
SCHEMA: Schema = (
    Column("rank", "float64", "id", "The rank; NaN: a machine, or unknown."),
    Column("worker", "object", "text", "The worker whose recording it is; None: a machine."),
    Column("span", "object", "text", "Which recording of it; None: a machine."),
    Column("host", "object", "text", "The machine's name (torch's `host_name`); None: unknown."),
    Column("is_machine", "bool", "", "Whether it is of a whole machine: the median of its ranks."),
    Column("figure", "object", "text", "Which figure: `own_work`, `step`, `computing`,"
           " `transfer`, `waiting`, `loading`, `copies`, `idle` (times a step), `kernels`"
           " (a step), `memory` (peak)."),
    Column("value", "float64", "", "What it is: nanoseconds, a number, or bytes."),
    Column("usual", "float64", "", "The median of the ranks that it is compared with: all, or those"
           " of its pipeline stage; of times, in the same steps."),
    Column("apart_share", "float64", "share", "How far it is from that, of that; negative: less;"
           " NaN: that is 0."),
    Column("score", "float64", "", "Modified z-score (Iglewicz and Hoaglin), its scale at least 1 %"
           " of a step or of the median. Outliers lie beyond 3.5, and beyond what one of so many"
           " reaches by chance in 1 case of 20."),
    Column("peer_count", "int64", "count", "With how many it is compared, itself among them."),
    Column("confidence", "object", "text", "`high`; `low`: among fewer than 8, or it has less than"
           " half as many steps as most."),
    Column("reason", "object", "text", "The same in words."),
)  # fmt: skip


class _Outlier(NamedTuple):
    """Something that lies apart: a recording, or a machine."""

    position: int
    """-1: a machine."""
    host: str | None
    figure: str
    value: float
    usual: float
    score: float
    peer_count: int
    is_sure: bool


def outlier_ranks(parts: Sequence[RankSummary]) -> pd.DataFrame:
    """Return one row a rank or machine and figure that lies apart, the farthest first.

    Raises:
        MissingDataError: the recordings are of one rank.
    """
    return outlier_ranks_of(several_ranks(parts)).copy()


@computed_per_run
def outlier_ranks_of(run: RankRun) -> pd.DataFrame:
    """Return the same of recordings that are put together already."""
    figures = rank_figures(run)
    outliers = sorted((*_ranks(run, figures), *_hosts(run, figures)), key=lambda of: -abs(of.score))
    position = np.array([of.position for of in outliers], dtype=np.int64)
    columns: dict[str, Any] = {
        "rank": np.append(run.identity["rank"], np.nan)[position],
        "worker": np.append(run.identity["worker"], None)[position],
        "span": np.append(run.identity["span"], None)[position],
        "host": text_column([of.host for of in outliers]),
        "is_machine": np.array([of.position < 0 for of in outliers], dtype=bool),
        "figure": text_column([of.figure for of in outliers]),
        "value": np.array([of.value for of in outliers], dtype=np.float64),
        "usual": np.array([of.usual for of in outliers], dtype=np.float64),
        "apart_share": np.array(
            [of.value / of.usual - 1 if of.usual else np.nan for of in outliers], dtype=np.float64
        ),
        "score": np.array([of.score for of in outliers], dtype=np.float64),
        "peer_count": np.array([of.peer_count for of in outliers], dtype=np.int64),
        "confidence": text_column(["high" if of.is_sure else "low" for of in outliers]),
        "reason": text_column([_reason(of) for of in outliers]),
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
    """Yield machines of several ranks whose median rank lies apart from the other machines'."""
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


def _medians(values: NDArray[np.float64], code: NDArray[np.int64]) -> NDArray[np.float64]:
    has_host = code >= 0
    medians = pd.Series(values[has_host]).groupby(code[has_host]).median()
    return np.asarray(medians, dtype=np.float64)


def _middle(values: NDArray[np.float64]) -> float:
    return float(np.median(values[~np.isnan(values)])) if (~np.isnan(values)).any() else 0.0


def _reason(of: _Outlier) -> str:
    peers = count(of.peer_count, "machine" if of.position < 0 else "rank")
    whose = "The median rank's" if of.position < 0 else "Its"
    return f"{whose} {comparison_text(of.figure, of.value, of.usual, peers)}."


def comparison_text(figure: str, value: float, usual: float, peers: str) -> str:
    """Return a figure beside what is usual: `own work a step is 13 ms: 30 % more than …`."""
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


TABLES = {
    "outlier-ranks": RunTable(
        title="Outlier ranks",
        meaning="One row per rank or machine and figure that lies far from what is usual among the"
        " ranks, by modified z-scores, the farthest first.",
        schema=SCHEMA,
        part=rank_summary,
        build=outlier_ranks,
    ),
}
