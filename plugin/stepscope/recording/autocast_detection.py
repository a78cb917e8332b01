"""Detection of autocast regions in a running training, without patching it.

A `with torch.autocast(…)` is over when a span is saved, and leaves nothing behind. From Python 3.12
on, the interpreter itself says when one function returns (`sys.monitoring`): the first return of
`autocast.__enter__` within an enabled region is noted, and then nothing is asked for any more.
Until then it costs a call of ours each time; no other function is slower.

Before Python 3.12 there is no way that does no harm (all tried on torch 2.13), and nothing is said:
a function in the place of `autocast.__enter__` breaks `torch.jit.script`; a global hook on modules
makes torch.compile compile again, and fail where `fullgraph=True`.
"""

import sys
from collections.abc import Mapping
from types import CodeType
from typing import Any

FREE_TOOLS = (4, 3)
"""Numbers that `sys.monitoring` leaves to any tool."""


class AutocastWatch:
    """Notes the first enabled autocast region that is entered; `stop` ends it."""

    def __init__(self, autocast: type | None = None) -> None:
        self.seen: Mapping[str, Any] | None = None
        self.is_watching = False
        """Whether every entered region is detected; never where Python lacks monitoring."""
        self._tool: int | None = None
        self._code: CodeType | None = None
        monitoring = getattr(sys, "monitoring", None)
        torch = sys.modules.get("torch")
        autocast = autocast or getattr(torch, "autocast", None)
        if monitoring and autocast:
            self._start(monitoring, autocast)

    def _start(self, monitoring: Any, autocast: Any) -> None:
        code = getattr(getattr(autocast, "__enter__", None), "__code__", None)
        tool = next((tool for tool in FREE_TOOLS if monitoring.get_tool(tool) is None), None)
        if code is None or tool is None:
            return
        monitoring.use_tool_id(tool, "stepscope")
        monitoring.register_callback(tool, monitoring.events.PY_RETURN, self._returned)
        monitoring.set_local_events(tool, code, monitoring.events.PY_RETURN)
        self._tool, self._code, self.is_watching = tool, code, True

    def _returned(self, _code: CodeType, _offset: int, region: Any) -> None:
        """Note an enabled region; an exception here would be raised in the user's code."""
        try:
            if getattr(region, "_enabled", False):
                dtype = str(region.fast_dtype).removeprefix("torch.")
                self.seen = {"enabled": True, "device": str(region.device), "dtype": dtype}
                self.stop()
        except Exception:
            self.is_watching = False

    def stop(self) -> None:
        """Release the monitoring tool's id; detected regions stay."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring and self._tool is not None and self._code is not None:
            monitoring.set_local_events(self._tool, self._code, 0)
            monitoring.register_callback(self._tool, monitoring.events.PY_RETURN, None)
            monitoring.free_tool_id(self._tool)
        self._tool, self.is_watching = None, False


class _Process:
    """The one watch of this process."""

    watch: AutocastWatch | None = None


def start() -> None:
    """Forget detected regions, and start to watch. Never raises."""
    try:
        if _Process.watch:
            _Process.watch.stop()
        _Process.watch = AutocastWatch()
    except Exception:  # another tool took the number in between
        _Process.watch = None


def seen() -> Mapping[str, Any] | None:
    """Return the first enabled region entered since `start`; disabled, if there was surely none."""
    watch = _Process.watch
    if watch is None:
        return None
    return watch.seen or ({"enabled": False} if watch.is_watching else None)
