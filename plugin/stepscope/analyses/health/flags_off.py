"""What the profiler was not told to record."""

from collections.abc import Iterator

from stepscope.analyses.core.record_next import FLAGS
from stepscope.analyses.health._check import NOTHING, Check
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report each thing that this recording could have had and has not."""
    for flag in FLAGS:
        if flag.message and flag.is_missing(trace):
            yield HealthItem(
                kind=f"no-{flag.name}",
                severity="info",
                count=1,
                nature="gap",
                message=flag.message,
                remedy=flag.remedy,
            )


CHECK = Check(damages={f"no-{flag.name}": NOTHING for flag in FLAGS if flag.message}, check=check)
