"""Stacks as text against torch's `export_stacks` of the same profile, recorded here."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from loading import trace_at, trace_of
from stepscope.analyses.host.call_stacks import call_stacks
from stepscope.model.trace import Trace
from stepscope.render import stack_file

torch = pytest.importorskip("torch")
profiler = pytest.importorskip("torch.profiler")
pytest.importorskip("torch.profiler._cupti_monitor")
pytestmark = pytest.mark.recording
# torch imports it while it records, and then writes the name of a function that is gone:
# export_stacks fails on the broken bytes (`UnicodeDecodeError`).
US = 1000


class Recording(NamedTuple):
    path: Path
    stacks: list[str]
    """The lines that torch writes."""


def _model() -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(32, 4)
    )


def _step(model: Any, optimizer: Any) -> None:
    inputs = torch.randn(16, 32)
    with profiler.record_function("forward"), profiler.record_function("forward"):
        loss = model(inputs).square().mean()
    torch.utils.checkpoint.checkpoint(model, inputs, use_reentrant=False).sum().backward()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("recording")
    import torch.utils.checkpoint

    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    _step(model, optimizer)  # what is imported first is imported now
    with profiler.profile(
        activities=[profiler.ProfilerActivity.CPU],
        with_stack=True,
        record_shapes=True,
        experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True),  # noqa: SLF001
    ) as profile:
        for _ in range(3):
            _step(model, optimizer)
            other = threading.Thread(target=_step, args=(_model(), optimizer))
            other.start()
            other.join()
            profile.step()
    profile.export_chrome_trace(str(folder / "trace.json"))
    profile.export_stacks(str(folder / "stacks.txt"), "self_cpu_time_total")
    lines = (folder / "stacks.txt").read_text().splitlines()
    return Recording(folder / "trace.json", lines)


def _without_texts(path: Path) -> Trace:
    """The trace as it is without `verbose=True`: stacks are not written."""
    document = json.loads(path.read_text())
    for event in document["traceEvents"]:
        event.get("args", {}).pop("Call stack", None)
    return trace_of(document=document)


def _ours(trace: Trace) -> Iterator[tuple[str, int]]:
    """Each call's functions and own time in ns."""
    stacks = call_stacks(trace)
    for stack, self_ns in zip(stacks.stack.tolist(), stacks.host_self_ns.tolist(), strict=True):
        yield ";".join(stack_file.collapsed_frames(stacks.frames(stack))), self_ns


def _difference(ours: Iterator[tuple[str, int]], theirs: list[str]) -> str:
    """Return our first call that torch's lines do not have, or empty.

    torch cuts times in floating point: whole microseconds may be one less there. Calls of less than
    one have no line.
    """
    reached = {0}
    """Numbers of torch's lines that the calls so far may be."""
    for functions, self_ns in ours:
        us = self_ns // US
        written = {us, us - 1} if self_ns % US == 0 else {us}
        lines = {f"{functions} {each}" for each in written if functions and each > 0}
        after = {at + 1 for at in reached if theirs[at : at + 1] and theirs[at] in lines}
        after |= reached if len(lines) < len(written) else set()
        if not after:
            beside = [theirs[at : at + 1] for at in sorted(reached)]
            return f"{functions} {self_ns} ns, but torch: {beside}"
        reached = after
    return "" if len(theirs) in reached else f"torch has more: {theirs[max(reached) :][:1]}"


def test_a_call_of_one_microsecond_may_have_no_line() -> None:
    assert _difference(iter([("f", 1000), ("f", 1500), ("g", 1000)]), ["f 1", "g 1"]) == ""
    assert _difference(iter([("f", 1500), ("f", 1500)]), ["f 1"]) == "f 1500 ns, but torch: [[]]"
    assert _difference(iter([("f", 2000)]), ["f 1", "g 1"]) == "torch has more: ['g 1']"


def test_stacks_are_those_of_export_stacks(recording: Recording) -> None:
    assert _difference(_ours(trace_at(recording.path)), recording.stacks) == ""


def test_without_their_texts_stacks_are_the_python_calls_around(recording: Recording) -> None:
    trace = _without_texts(recording.path)
    assert not call_stacks(trace).texts
    assert _difference(_ours(trace), recording.stacks) == ""


def test_the_recording_has_what_makes_the_comparison_hard(recording: Recording) -> None:
    text = "\n".join(recording.stacks)
    assert len(recording.stacks) > 500
    assert "nn.Module:_Linear_0" in text
    assert "threading.py" in text
    backward = [line for line in recording.stacks if "_engine_run_backward" in line]
    assert len(backward) > 20
    assert not [line for line in backward if "autograd/__init__.py" in line]


def test_lines_end_in_whole_microseconds_of_a_call_of_its_own(recording: Recording) -> None:
    stacks = call_stacks(trace_at(recording.path))
    lines = list(stack_file.collapsed_lines(stacks, "self-cpu"))
    assert len(lines) == sum(1 for _, self_ns in _ours(trace_at(recording.path)) if self_ns >= US)
    assert all(line.endswith("\n") and int(line.rpartition(" ")[2]) > 0 for line in lines)
    assert list(stack_file.collapsed_lines(stacks, "self-device")) == []
