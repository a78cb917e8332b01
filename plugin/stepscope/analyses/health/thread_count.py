"""A number of torch threads that does not fit the CPUs, and affects operators on the CPU."""

from collections.abc import Iterator

from stepscope.analyses.settings.recorded_settings import RECORDED, recorded_settings
from stepscope.base.formatting import count
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace

MANY_TIMES = 2
"""Threads per CPU from which most threads wait for a CPU."""
FEW_TIMES = 4
"""CPUs per thread from which most CPUs are idle, as with torchrun and OMP_NUM_THREADS=1."""
VARIABLE = "OMP_NUM_THREADS"


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report traces in which torch computed with far more, or fewer, threads than CPUs."""
    settings = recorded_settings(trace)
    threads, usable = settings.host.thread_count, settings.host.usable_cpu_count
    if threads is None or usable is None:
        return
    cpus = max(1, usable // settings.ranks_on_this_host)
    if threads >= MANY_TIMES * cpus:
        advised, consequence = cpus, "threads wait for each other's CPU"
    elif cpus >= FEW_TIMES * threads:
        advised, consequence = cpus, "most CPUs compute nothing"
    else:
        return
    setting = settings.environment.get(VARIABLE)
    why = f", {VARIABLE}={setting}" if setting else ""
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
            f"process may use ({RECORDED}{why}): {consequence}"
        ),
        action="it affects the times of operators on the CPU",
        remedy=f"torch.set_num_threads({advised}){divide}",
    )


DAMAGES = {"threads-do-not-fit": ()}
