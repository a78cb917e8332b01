"""Threads of torch that do not fit the CPUs: what operators on the CPU take is of that."""

from collections.abc import Iterator

from stepscope.analyses.health._check import NOTHING, Check
from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.formatting import count
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace

MANY_TIMES = 2
"""As many threads as CPUs: from there on most wait for a CPU."""
FEW_TIMES = 4
"""As many CPUs as threads: from there on most stand idle, as with torchrun's OMP_NUM_THREADS=1."""
VARIABLE = "OMP_NUM_THREADS"


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report recordings in which torch computed with far more, or fewer, threads than CPUs."""
    settings = recorded_settings(trace)
    threads, usable = settings.host.thread_count, settings.host.usable_cpu_count
    if threads is None or usable is None:
        return
    cpus = max(1, usable // settings.ranks_on_this_host)
    if threads >= MANY_TIMES * cpus:
        advised, what = cpus, "threads wait for each other's CPU"
    elif cpus >= FEW_TIMES * threads:
        advised, what = cpus, "most CPUs compute nothing"
    else:
        return
    said = settings.environment.get(VARIABLE)
    why = f", {VARIABLE}={said}" if said else ""
    divide = "  # divided among the ranks of this host"
    if settings.ranks_on_this_host > 1:
        why, divide = f"{why}, {settings.ranks_on_this_host} ranks on this host", ""
    yield HealthItem(
        kind="threads-do-not-fit",
        severity="info",
        count=threads,
        of_count=None,
        message=(
            f"torch computes with {count(threads, 'thread')} on {count(cpus, 'CPU')} that the "
            f"process may use ({RECORDED}{why}): {what}"
        ),
        action="times of operators on the CPU are of that",
        remedy=f"torch.set_num_threads({advised}){divide}",
    )


CHECK = Check(damages={"threads-do-not-fit": NOTHING}, check=check)
