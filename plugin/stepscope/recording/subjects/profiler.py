"""Options of the profiler."""

from typing import Any

from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects._fields import fields, flag, whole

OPTIONS = ("record_shapes", "with_stack", "profile_memory", "with_modules", "with_flops")
SCHEDULED = ("skip_first", "wait", "warmup", "active", "repeat")


def profiler(scene: Scene) -> dict[str, Any] | None:
    """Return the profiler's options and its schedule."""
    if scene.profiler is None:
        return None
    options = {name: flag(getattr(scene.profiler, name, None)) for name in OPTIONS}
    recorded = {name: value for name, value in options.items() if value is not None}
    return recorded | fields(schedule=lambda: schedule(scene.profiler.schedule) or None)


def schedule(of: Any) -> dict[str, int]:
    """Return the numbers of a schedule: attributes of stepscope's, closure variables of torch's."""
    of = getattr(of, "__wrapped__", of)
    numbers: dict[str, Any] = {name: getattr(of, name, None) for name in SCHEDULED} | _closed_over(
        of
    )
    return {name: n for name in SCHEDULED if (n := whole(numbers[name])) is not None}


def _closed_over(function: Any) -> dict[str, Any]:
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    if code is None or cells is None:
        return {}
    closure = dict(zip(code.co_freevars, cells, strict=True))
    return {name: closure[name].cell_contents for name in SCHEDULED if name in closure}
