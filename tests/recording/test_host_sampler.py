"""Samples of the main thread in unrecorded steps: by line, in proportion to its time."""

import dis
import gzip
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from inspect import unwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch.profiler import ProfilerActivity, profile, schedule

import stepscope
from stepscope.recording import host_sampler
from stepscope.recording.host_sampler import HostSampler, frames_of, in_progress, is_library

pytestmark = [
    pytest.mark.recording,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs timers of one thread"),
    pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning"),
]
MS = 1_000_000
HERE = Path(__file__).name


def compute_in_python(seconds: float) -> float:
    begin = time.perf_counter()
    while time.perf_counter() < begin + seconds:
        pass
    return time.perf_counter() - begin


def compute_in_c(rounds: int) -> float:
    begin = time.perf_counter()
    hashlib.pbkdf2_hmac("sha256", b"password", b"salt", rounds)
    return time.perf_counter() - begin


def fraction_in(summary: dict[str, Any], function: str) -> float:
    """Fraction of the sampled time in a function of this file."""
    places = {place for place, name in enumerate(summary["frames"]) if name.endswith(function)}
    stacks = summary["stacks"]
    inside_ns = sum(int(stack[1]) for stack in stacks if places & set(stack[2:]))
    return inside_ns / int(summary["time_ns"])


def passed_on(value: torch.Tensor) -> torch.Tensor:
    return value


def products(matrix: torch.Tensor, rounds: int) -> None:
    for count in range(rounds):
        product = matrix @ matrix
        passed_on(product)
        product = matrix @ matrix
        count += 1  # noqa: PLW2901


def test_an_operator_is_sampled_on_its_line_though_python_looks_for_signals_later() -> None:
    sampler, matrix = HostSampler(2 * MS), torch.ones(1000, 1000)  # takes many times LATE_NS
    sampler.step_began(1)
    products(matrix, 15)
    sampler.step_began(0)
    summary = sampler.summary([1])
    sampler.stop()
    first = products.__code__.co_firstlineno
    at_products = {f"{HERE}({first + line}): products" for line in (2, 4)}
    innermost = [(summary["frames"][stack[-1]], stack[1]) for stack in summary["stacks"]]
    inside_ns = sum(time_ns for frame, time_ns in innermost if frame in at_products)
    assert inside_ns > 0.8 * summary["time_ns"], innermost


def two_operators(items: list[int], index: int) -> None:
    items[index] + index
    passed_on(items)  # type: ignore[arg-type]


def test_of_the_operators_before_a_call_the_one_without_a_constant_is_in_progress() -> None:
    code, line = two_operators.__code__, two_operators.__code__.co_firstlineno
    call = max(item.offset for item in dis.get_instructions(code) if item.opname == "CALL")
    late = (passed_on.__code__, 0, code, call)
    assert [frame for frame, _ in frames_of(in_progress(late))] == [
        f"{HERE}({line + 1}): two_operators"
    ]
    assert in_progress((code, call)) == (code, call), "of the call or the operators: unknown"
    assert in_progress(()) == (), "no Python function was at work"


def test_time_is_divided_as_it_passes_though_functions_in_c_are_not_interrupted() -> None:
    sampler, spent = HostSampler(2 * MS), {"python": 0.0, "c": 0.0, "asleep": 0.0}
    for step in range(1, 21):
        sampler.step_began(step)
        spent["python"] += compute_in_python(0.015)
        spent["c"] += compute_in_c(40_000)
        begin = time.perf_counter()
        time.sleep(0.01)
        spent["asleep"] += time.perf_counter() - begin
    sampler.stop()
    summary = sampler.summary(range(1, 21))
    total = sum(spent.values())
    assert summary["step_count"] == 20
    assert summary["time_ns"] == pytest.approx(total * 1e9, rel=0.2)
    for name in ("python", "c"):
        expected = pytest.approx(spent[name] / total, abs=0.12)
        assert fraction_in(summary, f"compute_in_{name}") == expected


def test_samples_belong_to_the_chosen_steps_alone() -> None:
    sampler = HostSampler(MS)
    for step in (1, 0, 2):
        sampler.step_began(step)
        compute_in_python(0.05)
    sampler.stop()
    summary = sampler.summary([2])
    assert 0.5 * 50 * MS < summary["time_ns"] < 1.5 * 60 * MS
    assert sampler.summary([1]) == {}, "a summary forgets all samples"


def test_half_of_the_samples_go_when_they_are_many_and_the_others_count_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_sampler, "MOST_SAMPLES", 20)
    sampler = HostSampler(MS)
    sampler.step_began(1)
    spent = compute_in_python(0.3)
    sampler.stop()
    summary = sampler.summary([1])
    assert summary["count"] < 20
    assert summary["interval_ns"] >= 8 * MS
    assert summary["time_ns"] == pytest.approx(spent * 1e9, rel=0.7)


def test_the_line_in_progress_is_named() -> None:
    sampler = HostSampler(MS)
    sampler.step_began(1)
    compute_in_c(300_000)
    sampler.stop()
    summary = sampler.summary([1])
    longest = summary["stacks"][0]
    line = compute_in_c.__code__.co_firstlineno + 2
    assert summary["frames"][longest[-1]].endswith(f"{HERE}({line}): compute_in_c")


def test_of_successive_calls_in_libraries_the_first_of_each_package_and_the_last_are_listed() -> (
    None
):
    library, users, other = json.dumps.__code__, compute_in_c.__code__, gzip.open.__code__
    stack = (library, 0, library, 0, other, 0, library, 0, library, 0, users, 0, library, 0)
    frames = frames_of(stack)
    assert [(name.rpartition(" ")[2], is_of_library) for name, is_of_library in frames] == [
        ("dumps", True),
        ("compute_in_c", False),
        ("dumps", True),
        ("open", True),
        ("dumps", True),
    ]
    assert frames[0][0].startswith("json/__init__.py(")


def test_packages_of_torch_are_listed_apart() -> None:
    step, call = unwrap(torch.optim.SGD.step).__code__, torch.nn.Module.__call__.__code__
    frames = frames_of((call, 0, step, 0, step, 0, call, 0, call, 0))
    assert [name.partition("(")[0] for name, _ in frames] == [
        "torch/nn/modules/module.py",
        "torch/optim/sgd.py",
        "torch/nn/modules/module.py",
    ]


def test_a_jump_to_the_begin_of_a_loop_counts_for_the_line_before_it() -> None:
    def fill(values: list[int]) -> None:
        for index in range(len(values)):
            if index > 0:
                values[index] = index

    code = fill.__code__
    jumps = [begin for begin, _, line in code.co_lines() if line is None]
    (name, _), *_ = frames_of((code, jumps[0])) if jumps else [(f"({code.co_firstlineno + 3})", 0)]
    assert f"({code.co_firstlineno + 3})" in name


def test_stacks_without_autograd_and_frames_of_libraries_are_listed() -> None:
    sampler = HostSampler(MS)
    sampler.step_began(1)
    with torch.no_grad():
        compute_in_python(0.1)
    json.dumps([{"a": list(range(200_000))}], indent=1)
    sampler.stop()
    summary = sampler.summary([1])
    frames, stacks = summary["frames"], summary["stacks"]
    without = {frames[stacks[row][-1]].rpartition(" ")[2] for row in summary["without_grad"]}
    assert without == {"compute_in_python"}
    libraries = {frames[position] for position in summary["library_frames"]}
    assert any(frame.startswith("json/encoder.py(") for frame in libraries)
    assert not any("compute_in" in frame for frame in libraries)


def test_installed_packages_are_libraries_and_scripts_are_not() -> None:
    assert is_library(torch.__file__)
    assert is_library("<frozen runpy>")
    assert not is_library(__file__)


def test_another_thread_than_the_main_one_is_not_sampled() -> None:
    sampler = HostSampler(MS)

    def run() -> None:
        sampler.step_began(1)
        compute_in_python(0.02)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    sampler.stop()
    assert sampler.summary([1]) == {}


def test_elsewhere_than_on_linux_there_are_no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    sampler = HostSampler(MS)
    sampler.step_began(1)
    compute_in_python(0.01)
    sampler.stop()
    assert sampler.summary([1]) == {}


def test_where_the_signal_is_in_use_there_are_no_samples() -> None:
    before = signal.signal(signal.SIGURG, lambda *_: None)
    try:
        users = signal.getsignal(signal.SIGURG)
        sampler = HostSampler(MS)
        sampler.step_began(1)
        compute_in_python(0.01)
        sampler.stop()
        assert signal.getsignal(signal.SIGURG) is users
        assert sampler.summary([1]) == {}
    finally:
        signal.signal(signal.SIGURG, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_is_not_interrupted() -> None:
    sampler = HostSampler(MS)
    sampler.step_began(1)
    child = os.fork()
    if not child:
        before = len(sampler._samples)  # noqa: SLF001
        compute_in_python(0.05)
        os._exit(len(sampler._samples) - before)  # noqa: SLF001
    _, status = os.waitpid(child, 0)
    sampler.stop()
    assert os.waitstatus_to_exitcode(status) == 0


def test_the_handler_becomes_no_graph_of_torch_compile() -> None:
    def graphs(interval_ns: int) -> dict[str, int]:
        torch._dynamo.reset()  # noqa: SLF001
        counters.clear()

        @torch.compile(backend="eager")
        def compute(values: torch.Tensor) -> torch.Tensor:
            for _ in range(20):
                values = values.sin()
            return values

        sampler = HostSampler(interval_ns)
        sampler.step_began(1)
        for size in range(2, 30):
            compute(torch.randn(size, 3000))
        sampler.stop()
        assert interval_ns > 10**9 or sampler.summary([1])["count"] > 10
        return dict(counters["stats"])

    assert graphs(MS // 4) == graphs(10**12)


def recorder_of(folder: Path, wait: int, **options: Any) -> dict[str, Any]:
    """What the recorder wrote into a trace after steps of 10 ms."""
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=wait, warmup=1, active=1, repeat=1),
        on_trace_ready=stepscope.trace_handler(folder, use_gzip=True, **options),
    ) as profiler:
        for _ in range(wait + 2):
            compute_in_python(0.01)
            profiler.step()
    (file,) = folder.iterdir()
    recorder: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))["stepscope_recorder"]
    return recorder


def test_a_trace_holds_the_samples_of_its_unrecorded_steps(tmp_path: Path) -> None:
    recorder = recorder_of(tmp_path, wait=30)
    samples = recorder["host_samples"]
    assert samples["step_count"] == recorder["unrecorded_steps"]["count"]
    assert fraction_in(samples, "compute_in_python") > 0.9


def test_without_a_new_step_sampling_ends_and_the_next_step_resumes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_sampler, "MOST_STEP_NS", 200 * MS)
    sampler = HostSampler(MS)
    sampler.step_began(1)
    compute_in_python(0.6)
    spent_ns = sampler.summary([1])["time_ns"]
    assert 50 * MS < spent_ns < 400 * MS
    compute_in_python(0.05)
    assert sampler.summary([1]) == {}
    sampler.step_began(2)
    compute_in_python(0.15)
    sampler.stop()
    assert sampler.summary([2])["count"] > 2


def test_samples_can_be_left_out(tmp_path: Path) -> None:
    assert "host_samples" not in recorder_of(tmp_path, wait=6, is_sampled=False)


def test_a_script_ends_as_usual_while_it_is_sampled(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from stepscope.recording.host_sampler import HostSampler\n"
        "import subprocess, time\n"
        "sampler = HostSampler(1_000_000)\n"
        "sampler.step_began(1)\n"
        "end = time.perf_counter() + 0.1\n"
        "while time.perf_counter() < end: pass\n"
        "subprocess.run(['sleep', '0.05'], check=True)\n"
        "print(len(sampler._samples) > 10)\n"
        "import atexit; atexit.register(time.sleep, 0.05)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("True\n", "")
