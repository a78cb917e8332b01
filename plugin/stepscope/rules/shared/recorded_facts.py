"""What rules take from the settings that the trace handler recorded, in place of a guess."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from stepscope.analyses.settings.recorded_settings import (
    RECORDED,
    LoaderSettings,
    OptimizerSettings,
    common_value,
    recorded_settings,
    used_loaders,
)
from stepscope.base.findings import Evidence, Unit
from stepscope.model.trace import Trace

ValueT = TypeVar("ValueT")


def evidence(label: str, value: float | str, unit: Unit = "text") -> Evidence:
    """Return a setting as a fact, with where it is from."""
    return Evidence(label=f"{label} ({RECORDED})", value=value, unit=unit)


def usable_cpus(trace: Trace) -> int | None:
    """Return how many CPUs this process may use: its share, where several ranks are on a host."""
    settings = recorded_settings(trace)
    count = settings.host.usable_cpu_count or settings.host.cpu_count
    return None if count is None else max(1, count // settings.ranks_on_this_host)


def cpus(trace: Trace) -> Iterator[Evidence]:
    """Yield how many CPUs this process may use, where it was recorded."""
    count = usable_cpus(trace)
    if count is not None:
        yield evidence("CPUs that this process may use", count, "count")


def bounded(trace: Trace, workers: int) -> int:
    """Return a number of workers, but no more than there are CPUs for them."""
    count = usable_cpus(trace)
    return workers if count is None else min(workers, count)


def loaders(trace: Trace, *, has_workers: bool | None = None) -> tuple[LoaderSettings, ...]:
    """Return the loaders that were iterated: with workers, without, or all of them."""
    found = used_loaders(recorded_settings(trace))
    if has_workers is None:
        return found
    return tuple(
        each
        for each in found
        if each.worker_count is not None and (each.worker_count > 0) == has_workers
    )


def of_loaders(
    trace: Trace,
    setting: Callable[[LoaderSettings], ValueT | None],
    *,
    has_workers: bool | None = None,
) -> ValueT | None:
    """Return what all these loaders have set; None where it is not known, or they differ."""
    return common_value(setting(each) for each in loaders(trace, has_workers=has_workers))


def optimizer(trace: Trace, name: str) -> OptimizerSettings | None:
    """Return the settings of all optimizers of this class; None: not known, or they differ."""
    mine = [each for each in recorded_settings(trace).optimizers if each.name == name]
    return mine[0] if mine and all(each == mine[0] for each in mine) else None


def is_compiled(trace: Trace) -> bool:
    """Tell whether the trace handler saw that torch.compile compiled something."""
    return bool(recorded_settings(trace).compile.is_compiled)


def compiling(trace: Trace) -> str:
    """Return the line that compiles: the model, or where that is done already, what is around."""
    if is_compiled(trace):
        return f"step = torch.compile(step)  # what is not compiled yet: some is ({RECORDED})"
    return "model = torch.compile(model)"


def is_expandable(trace: Trace) -> bool:
    """Tell whether the allocator's segments may grow already."""
    return bool(recorded_settings(trace).allocator.expandable_segments)
