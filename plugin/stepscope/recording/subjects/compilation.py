"""Activity of torch.compile in this process; empty where it was never loaded."""

import sys
from typing import Any

from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects._fields import fields


def compiled(scene: Scene) -> dict[str, Any]:
    """Return whether anything was compiled, by what, how often again, and how often it broke off.

    The counts are those of the whole process, since its start.
    """
    utilities = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utilities, "counters", None)
    if counters is None:
        return {"is_compiled": False}
    frame_count = int(counters.get("frames", {}).get("ok", 0))
    if not frame_count:
        return {"is_compiled": False}
    return fields(
        is_compiled=lambda: True,
        backend=lambda: _backend(scene),
        mode=lambda: _mode(scene),
        frame_count=lambda: frame_count,
        recompile_count=lambda: _recompile_count(utilities),
        graph_break_count=lambda: sum(counters.get("graph_break", {}).values()),
    )


def _backend(scene: Scene) -> str | None:
    """Return the backend of torch.compile, where all uses have the same."""
    names = {str(compiler.compiler_name) for compiler in scene.compilers}
    return names.pop() if len(names) == 1 else None


def _mode(scene: Scene) -> str | None:
    """Return the mode by the options it stands for: torch keeps these, not its name."""
    configs = [dict(c.config) for c in scene.compilers if hasattr(c, "config")]  # inductor's
    if not configs or any(config != configs[0] for config in configs):
        return None
    if not configs[0]:
        return "default"
    from torch._inductor import list_mode_options

    modes = {name: dict(options) for name, options in list_mode_options().items()}
    return next((name for name, options in modes.items() if options == configs[0]), None)


def _recompile_count(utilities: Any) -> int:
    """Return how many frames were compiled again: all but the first of each frame.

    A compilation's id is `frame/n`; torch keeps the last 64 compilations, and the n of the last
    one of a frame counts those before it.
    """
    last: dict[str, int] = {}
    for metrics in utilities.get_compilation_metrics():
        frame, _, count = str(metrics.compile_id).split("_")[0].rpartition("/")
        if count.isdigit():
            last[frame] = max(last.get(frame, 0), int(count))
    return sum(last.values())
