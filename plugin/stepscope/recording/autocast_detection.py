"""Detection of autocast regions in a running training, without patching.

By the time a span is saved, a `with torch.autocast(…)` region has ended without a trace. Since
Python 3.12, `sys.monitoring` reports the return of a single function: the first return of
`autocast.__enter__` in an enabled region is noted, and monitoring then stops. Until then each call
of `autocast.__enter__` has the overhead of one callback; other functions are not slowed.

Before Python 3.12 no harmless method exists (all tried with torch 2.13), so nothing is reported:
replacing `autocast.__enter__` breaks `torch.jit.script`; a global module hook makes torch.compile
recompile, and fail with `fullgraph=True`.
"""

import sys
from collections.abc import Mapping
from types import CodeType
from typing import Any

FREE_TOOLS = (4, 3)
"""Ids that `sys.monitoring` reserves for no particular tool."""


class AutocastWatch:
    """Detects the first enabled autocast region that is entered; `stop` ends detection."""

    def __init__(self, autocast: type | None = None) -> None:
        self.seen: Mapping[str, Any] | None = None
        self.is_watching = False
        """Whether entered regions are being detected; always False without `sys.monitoring`."""
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
        """Record an enabled region. An exception raised here would surface in the user's code."""
        try:
            if getattr(region, "_enabled", False):
                dtype = str(region.fast_dtype).removeprefix("torch.")
                self.seen = {"enabled": True, "device": str(region.device), "dtype": dtype}
                self.stop()
        except Exception:
            self.is_watching = False

    def stop(self) -> None:
        """Release the monitoring tool's id; detected regions are retained."""
        monitoring = getattr(sys, "monitoring", None)
        if monitoring and self._tool is not None and self._code is not None:
            monitoring.set_local_events(self._tool, self._code, 0)
            monitoring.register_callback(self._tool, monitoring.events.PY_RETURN, None)
            monitoring.free_tool_id(self._tool)
        self._tool, self.is_watching = None, False


class _Process:
    """The single `AutocastWatch` of this process."""

    watch: AutocastWatch | None = None


def start() -> None:
    """Clear detected regions and start detection. Never raises."""
    try:
        if _Process.watch:
            _Process.watch.stop()
        _Process.watch = AutocastWatch()
    except Exception:  # another tool took the id in the meantime
        _Process.watch = None


def seen() -> Mapping[str, Any] | None:
    """Return the first enabled region since `start`, or a disabled one if there was none."""
    watch = _Process.watch
    if watch is None:
        return None
    return watch.seen or ({"enabled": False} if watch.is_watching else None)
