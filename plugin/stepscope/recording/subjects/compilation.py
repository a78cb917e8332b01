"""Activity of torch.compile in this process; empty if it was never loaded."""

import sys
from typing import Any

from stepscope.recording.live_objects import Scene
from stepscope.recording.subjects._fields import fields


def compiled(scene: Scene) -> dict[str, Any]:
    """Return the backend, mode, recompilations and graph breaks of compiled code.

    The counts are those of the whole process since its start.
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
    """Return the backend of torch.compile if all uses share it."""
    names = {str(compiler.compiler_name) for compiler in scene.compilers}
    return names.pop() if len(names) == 1 else None


def _mode(scene: Scene) -> str | None:
    """Return the mode, inferred from the options it sets: torch does not store its name."""
    # only inductor's backends have it
    configs = [dict(c.config) for c in scene.compilers if hasattr(c, "config")]
    if not configs or any(config != configs[0] for config in configs):
        return None
    if not configs[0]:
        return "default"
    from torch._inductor import list_mode_options

    modes = {name: dict(options) for name, options in list_mode_options().items()}
    return next((name for name, options in modes.items() if options == configs[0]), None)


def _recompile_count(utilities: Any) -> int:
    """Return the number of recompiled frames: all compilations but the first of each frame.

    The id of a compilation is `frame/n`; torch retains the last 64 compilations, and the n of a
    frame's last one counts the earlier ones.
    """
    last: dict[str, int] = {}
    for metrics in utilities.get_compilation_metrics():
        frame, _, count = str(metrics.compile_id).split("_")[0].rpartition("/")
        if count.isdigit():
            last[frame] = max(last.get(frame, 0), int(count))
    return sum(last.values())
