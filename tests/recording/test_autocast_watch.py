"""Autocast as `sys.monitoring` tells of it: by a stand-in of it everywhere, by itself where it is.

The stand-in does what Python 3.12's does (tried beside it): a tool's number has one holder, and a
function's return is told to the callback while events of its code are asked for.
"""

import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, ClassVar

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from stepscope.recording import autocast_detection, trace_handler
from stepscope.recording.autocast_detection import AutocastWatch, _Process
from stepscope.recording.settings import COLLECTORS, collect

pytestmark = [
    pytest.mark.recording,
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]

BFLOAT16 = {"enabled": True, "device": "cpu", "dtype": "bfloat16"}
OTHERS = set(COLLECTORS) - {"precision"}


class Events:
    """The events of `sys.monitoring` that are asked for here."""

    PY_RETURN = 4


class Monitoring:
    """What `sys.monitoring` keeps; `returned` stands for the interpreter."""

    events = Events

    def __init__(self) -> None:
        self.tools: dict[int, str] = {}
        self.callbacks: dict[int, Callable[..., object]] = {}
        self.asked: set[tuple[int, CodeType]] = set()

    def get_tool(self, tool: int) -> str | None:
        return self.tools.get(tool)

    def use_tool_id(self, tool: int, name: str) -> None:
        if tool in self.tools:
            message = f"tool {tool} is already in use"
            raise ValueError(message)
        self.tools[tool] = name

    def register_callback(self, tool: int, _event: int, call: Callable[..., object] | None) -> None:
        self.callbacks.pop(tool, None)
        if call is not None:
            self.callbacks[tool] = call

    def set_local_events(self, tool: int, code: CodeType, events: int) -> None:
        (self.asked.add if events else self.asked.discard)((tool, code))

    def free_tool_id(self, tool: int) -> None:
        del self.tools[tool]

    def returned(self, function: Any, value: object) -> None:
        """Tell who asked that a function returned a value."""
        for tool, code in list(self.asked):
            if code is function.__code__:
                self.callbacks[tool](code, 0, value)


class Autocast:
    """What is asked of a region of autocast."""

    def __init__(self, device: str, dtype: object, *, enabled: bool = True) -> None:
        self.device, self.fast_dtype, self._enabled = device, dtype, enabled

    def __enter__(self) -> "Autocast":
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is left of a region."""


@pytest.fixture(autouse=True)
def _watch_of_this_process() -> Iterator[None]:
    """No test meets what another has seen."""
    _Process.watch = None
    yield
    if _Process.watch:
        _Process.watch.stop()
    _Process.watch = None


@pytest.fixture
def monitoring(monkeypatch: pytest.MonkeyPatch) -> Monitoring:
    stands_in = Monitoring()
    monkeypatch.setattr(sys, "monitoring", stands_in, raising=False)
    return stands_in


def enter(monitoring: Monitoring, region: Any) -> None:
    """Enter and leave a region, as the interpreter would tell of it."""
    with region as returned:
        monitoring.returned(type(region).__enter__, returned)


def test_the_first_enabled_region_is_noted_and_nothing_is_asked_from_then_on(
    monitoring: Monitoring,
) -> None:
    watch = AutocastWatch(Autocast)
    enter(monitoring, Autocast("cuda", "torch.float16", enabled=False))
    assert (watch.seen, watch.is_watching) == (None, True)
    enter(monitoring, Autocast("cuda", "torch.float16"))
    assert watch.seen == {"enabled": True, "device": "cuda", "dtype": "float16"}
    assert (watch.is_watching, monitoring.tools, monitoring.asked) == (False, {}, set())
    assert monitoring.callbacks == {}


def test_another_tools_number_is_left_to_it(monitoring: Monitoring) -> None:
    monitoring.tools = {4: "a debugger"}
    watch = AutocastWatch(Autocast)
    assert monitoring.tools == {4: "a debugger", 3: "stepscope"}
    watch.stop()
    assert monitoring.tools == {4: "a debugger"}


def test_where_no_number_is_free_nothing_is_known(monitoring: Monitoring) -> None:
    monitoring.tools = {4: "a debugger", 3: "a tracer"}
    autocast_detection.start()
    assert autocast_detection.seen() is None
    assert monitoring.asked == set()


def test_a_number_that_another_takes_in_between_costs_what_is_known(
    monitoring: Monitoring, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitoring, "get_tool", lambda _: None)
    monitoring.tools = {4: "a debugger"}
    autocast_detection.start()
    assert autocast_detection.seen() is None


def test_a_region_that_cannot_be_read_raises_nothing_and_is_not_taken_for_none(
    monitoring: Monitoring,
) -> None:
    class Odd(Autocast):
        _enabled: ClassVar[bool] = True  # type: ignore[misc]

        def __init__(self) -> None:
            """Have no type."""

    _Process.watch = AutocastWatch(Autocast)
    enter(monitoring, Odd())
    assert autocast_detection.seen() is None


def test_before_python_3_12_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "monitoring", raising=False)
    autocast_detection.start()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pass
    assert autocast_detection.seen() is None


def test_that_no_region_was_entered_is_known_while_it_is_watched(monitoring: Monitoring) -> None:
    autocast_detection.start()
    assert autocast_detection.seen() == {"enabled": False}
    assert list(monitoring.tools.values()) == ["stepscope"]


def test_who_starts_again_forgets_and_holds_one_number(monitoring: Monitoring) -> None:
    autocast_detection.start()
    enter(monitoring, torch.autocast("cpu", dtype=torch.bfloat16))
    assert autocast_detection.seen() == BFLOAT16
    autocast_detection.start()
    autocast_detection.start()
    assert autocast_detection.seen() == {"enabled": False}
    assert monitoring.tools == {4: "stepscope"}


def precision() -> dict[str, Any]:
    told: dict[str, Any] = collect(leave_out=OTHERS, is_searched=False)["settings"]["precision"]
    return told


def test_the_settings_tell_of_the_region_that_is_over(monitoring: Monitoring) -> None:
    autocast_detection.start()
    enter(monitoring, torch.autocast("cpu", dtype=torch.bfloat16))
    assert precision()["autocast"] == BFLOAT16


@pytest.mark.parametrize(
    ("compiled_count", "said"), [(0, {"enabled": False}), (1, None)], ids=["eager", "compiled"]
)
@pytest.mark.usefixtures("monitoring")
def test_that_there_was_none_is_said_unless_something_is_compiled(
    compiled_count: int, said: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torch._dynamo import utils

    monkeypatch.setattr(utils, "counters", {"frames": {"ok": compiled_count}})
    autocast_detection.start()
    assert precision().get("autocast") == said


def test_a_span_tells_of_autocast_within_its_steps(monitoring: Monitoring) -> None:
    told = []
    trace_handler("", leave_out=OTHERS)  # which watches from now on
    with profile(
        activities=[ProfilerActivity.CPU], on_trace_ready=lambda _: told.append(precision())
    ):
        enter(monitoring, torch.autocast("cpu", dtype=torch.bfloat16))
        torch.ones(3).sum()
    assert told[0]["autocast"] == BFLOAT16


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python tells of it from 3.12 on")
def test_python_itself_tells_of_torchs_regions() -> None:
    trace_handler("")
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=False):
        pass
    assert autocast_detection.seen() == {"enabled": False}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        pass
    assert autocast_detection.seen() == BFLOAT16
