"""Settings that the trace handler recorded, as rules use them in place of a guess."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from stepscope.analyses.settings.recorded_settings import (
    RECORDED,
    LoaderSettings,
    OptimizerSettings,
    common_value,
    recorded_settings,
    usable_cpus,
    used_loaders,
)
from stepscope.base.findings import Evidence, Unit
from stepscope.model.trace import Trace

ValueT = TypeVar("ValueT")


def evidence(label: str, value: float | str, unit: Unit = "text") -> Evidence:
    """Return a setting as evidence, with its source in the label."""
    return Evidence(label=f"{label} ({RECORDED})", value=value, unit=unit)


def cpus(trace: Trace) -> Iterator[Evidence]:
    """Yield the number of CPUs for this process, where it was recorded."""
    count = usable_cpus(trace)
    if count is not None:
        yield evidence("CPUs that this process may use", count, "count")


def bounded(trace: Trace, workers: int) -> int:
    """Return a number of workers, limited to the CPUs for them."""
    count = usable_cpus(trace)
    return workers if count is None else min(workers, count)


def loaders(trace: Trace, *, has_workers: bool | None = None) -> tuple[LoaderSettings, ...]:
    """Return the loaders that were iterated: with workers, without, or all of them."""
    iterated = used_loaders(recorded_settings(trace))
    if has_workers is None:
        return iterated
    return tuple(
        loader
        for loader in iterated
        if loader.worker_count is not None and (loader.worker_count > 0) == has_workers
    )


def loader_setting(
    trace: Trace,
    setting: Callable[[LoaderSettings], ValueT | None],
    *,
    has_workers: bool | None = None,
) -> ValueT | None:
    """Return the common setting of these loaders; None where it is unknown, or they differ."""
    return common_value(setting(loader) for loader in loaders(trace, has_workers=has_workers))


def optimizer(trace: Trace, name: str) -> OptimizerSettings | None:
    """Return the settings of all optimizers of this class; None: unknown, or they differ."""
    return common_value(one for one in recorded_settings(trace).optimizers if one.name == name)


def is_compiled(trace: Trace) -> bool:
    """Return whether the trace handler recorded that torch.compile compiled something."""
    return bool(recorded_settings(trace).compile.is_compiled)


def compiling(trace: Trace) -> str:
    """Return the code that compiles: the model, or if that is compiled, the step around it."""
    if is_compiled(trace):
        return (
            f"step = torch.compile(step)  # also the parts not compiled yet: some are ({RECORDED})"
        )
    return "model = torch.compile(model)"


def is_expandable(trace: Trace) -> bool:
    """Return whether the allocator's segments may grow."""
    return bool(recorded_settings(trace).allocator.expandable_segments)
