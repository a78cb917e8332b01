"""Ranks and machines whose figures lie apart."""

from stepscope.analyses.communication.outlier_ranks import SCHEMA, outlier_ranks
from stepscope.analyses.communication.rank_summary import rank_part
from stepscope.tables import RunTable

TABLE = RunTable(
    title="Outlier ranks",
    meaning="One row a rank or machine and figure that lies far from what is usual among the"
    " ranks, by modified z-scores, the farthest first.",
    schema=SCHEMA,
    part=rank_part,
    build=outlier_ranks,
)
