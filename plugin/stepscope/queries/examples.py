"""Queries to start from, for the page and the help."""

from typing import NamedTuple


class ExampleQuery(NamedTuple):
    """A query and its subject."""

    title: str
    sql: str


EXAMPLES = (
    ExampleQuery(
        "Kernels by total time",
        "SELECT name, call_count, total_ns, total_ns / sum(total_ns) OVER () AS total_share\n"
        "FROM kernels\n"
        "ORDER BY total_ns DESC\n"
        "LIMIT 20",
    ),
    ExampleQuery(
        "Steps compared with the median",
        "SELECT number, duration_ns, duration_ns / median(duration_ns) OVER () AS ratio\n"
        "FROM steps\n"
        "ORDER BY ratio DESC",
    ),
    ExampleQuery(
        "Kernels that one step runs more often than others",
        "WITH calls AS (\n"
        "  SELECT s.number AS step, k.name, count(*) AS call_count\n"
        "  FROM kernel_events k JOIN steps s\n"
        "    ON k.run = s.run AND k.worker = s.worker AND k.span = s.span\n"
        "    AND k.start_ns BETWEEN s.start_ns AND s.start_ns + s.duration_ns\n"
        "  GROUP BY ALL\n"
        ")\n"
        "SELECT name, min(call_count) AS fewest, max(call_count) AS most\n"
        "FROM calls\n"
        "GROUP BY name\n"
        "HAVING fewest < most\n"
        "ORDER BY most - fewest DESC",
    ),
    ExampleQuery(
        "Operators with long calls on the host",
        "SELECT name, call_count, host_self_ns, host_p95_ns, host_p95_ns / host_p50_ns AS ratio\n"
        "FROM operators\n"
        "WHERE host_p50_ns > 0\n"
        "ORDER BY host_self_ns DESC\n"
        "LIMIT 20",
    ),
    ExampleQuery(
        "Idle time of the devices by cause",
        "SELECT device, cause, sum(idle_ns) AS idle_ns, sum(count) AS count\n"
        "FROM idle\n"
        "GROUP BY ALL\n"
        "ORDER BY idle_ns DESC",
    ),
    ExampleQuery(
        "Gaps between kernels of a stream",
        "SELECT stream, name, start_ns,\n"
        "  start_ns - lag(end_ns) OVER (PARTITION BY device, stream ORDER BY start_ns) AS gap_ns\n"
        "FROM kernel_events\n"
        "ORDER BY gap_ns DESC NULLS LAST\n"
        "LIMIT 50",
    ),
    ExampleQuery("Statistics of every column of a table", "SUMMARIZE operators"),
)
