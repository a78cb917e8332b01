"""Input shapes from an execution trace, or why one in the folder was not used."""

from collections.abc import Iterator

from stepscope.base.formatting import count
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report the source of the input shapes, if it is an execution trace."""
    link = trace.execution_trace
    if link is None:
        return
    if link.problem:
        yield HealthItem(
            kind="execution-trace-unused",
            severity="info",
            count=1,
            nature="gap",
            message=f"no input shapes come from the execution trace {link.file_name}: "
            f"{link.problem}",
            remedy=link.remedy,
        )
        return
    lost = f"; {count(link.lost_count, 'node')} of it could not be read" if link.lost_count else ""
    yield HealthItem(
        kind="execution-trace",
        severity="info",
        count=link.linked_count,
        of_count=link.call_count,
        message=f"input shapes, types and values come from the execution trace {link.file_name}, "
        f"which has {link.linked_count:,} of {count(link.call_count, 'call')}{lost}",
    )


DAMAGES = {"execution-trace": (), "execution-trace-unused": ()}
