"""Overhead of the recorder: per step that is not recorded, and per saved span.

`make overhead`, which `make bench` includes. Steps of 10 ms run without a profiler, with torch's
schedule and handler, and with stepscope's, in turns; the profiler waits all the time. The
difference is some microseconds, less than the difference of two equal loops of 10 ms, so
`profiler.step()` is also timed alone, and compared with the limit. Samples of the host are timed
by equal work with and without 20 times as many of them.
"""

import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler
from torch.utils.data import DataLoader, TensorDataset

from stepscope.recording import Schedule, settings, trace_handler
from stepscope.recording.host_sampler import INTERVAL_NS, HostSampler

STEP_SECONDS = 0.010
MOST_SHARE = 0.01
"""Largest overhead of a step that is not recorded, as a fraction of 10 ms."""
MOST_SAMPLING = 0.005
"""Largest overhead of the samples."""
SAMPLES_PER_INTERVAL = 20
STEP_COUNT = 150
CALL_COUNT = 20_000
TURNS = 5
NEVER = 10**9
SPAN_STEPS = 8
console = Console(highlight=False, soft_wrap=True)

Making = Callable[[Path], AbstractContextManager[Any]]


def nothing(_: Path) -> AbstractContextManager[Any]:
    """No profiler at all."""
    return nullcontext()


def with_torch(folder: Path) -> AbstractContextManager[Any]:
    """torch's schedule, still waiting, and torch's handler."""
    return profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=NEVER, warmup=1, active=SPAN_STEPS),
        on_trace_ready=tensorboard_trace_handler(str(folder)),
    )


def with_stepscope(folder: Path) -> AbstractContextManager[Any]:
    """The schedule and the handler of stepscope; all spans are far ahead."""
    steps = Schedule(skip_first=NEVER, wait=0, warmup=1, active=SPAN_STEPS, repeat=1)
    return profile(
        activities=[ProfilerActivity.CPU],
        schedule=steps,
        on_trace_ready=trace_handler(folder),
    )


MAKING: dict[str, Making] = {
    "no profiler": nothing,
    "torch's handler": with_torch,
    "stepscope's handler": with_stepscope,
}


def training(batch: int = 32) -> Iterator[None]:
    """A small training without end; each `next` makes a step of about 10 ms."""
    torch.set_num_threads(1)
    model = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(8)))
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(TensorDataset(torch.randn(64 * batch, 64)), batch_size=batch)
    while True:
        for (samples,) in loader:
            end = time.perf_counter() + STEP_SECONDS
            optimizer.zero_grad()
            model(samples).sum().backward()
            optimizer.step()
            while time.perf_counter() < end:
                pass
            yield


def step_seconds(making: Making, folder: Path, steps: Iterator[None]) -> float:
    """Return the mean seconds of a step."""
    with making(folder) as profiler:
        start = time.perf_counter()
        for _ in range(STEP_COUNT):
            next(steps)
            if profiler is not None:
                profiler.step()
        return (time.perf_counter() - start) / STEP_COUNT


def call_seconds(making: Making, folder: Path) -> float:
    """Return the mean seconds of `profiler.step()`; of the loop alone without a profiler."""
    with making(folder) as profiler:
        step = profiler.step if profiler is not None else time.perf_counter
        start = time.perf_counter()
        for _ in range(CALL_COUNT):
            step()
        return (time.perf_counter() - start) / CALL_COUNT


def span_seconds(handler: Callable[[Any], None], steps: Iterator[None]) -> float:
    """Return the time of a handler that saves a span of eight steps, s."""
    took: list[float] = []

    def timed(profiler: profile) -> None:
        start = time.perf_counter()
        handler(profiler)
        took.append(time.perf_counter() - start)

    with profile(activities=[ProfilerActivity.CPU], on_trace_ready=timed):
        for _ in range(SPAN_STEPS):
            next(steps)
    return took[0]


def work_seconds(depth: int = 30) -> float:
    """Return the time of some work under calls of Python, s."""
    if depth:
        return work_seconds(depth - 1)
    begin = time.perf_counter()
    sum(number * number for number in range(2_000_000))
    return time.perf_counter() - begin


def sample_seconds() -> float:
    """Return the time that a sample adds, s."""
    without = work_seconds()
    sampler = HostSampler(INTERVAL_NS // SAMPLES_PER_INTERVAL)
    sampler.step_began(1)
    with_samples = work_seconds()
    sampler.stop()
    count = int(sampler.summary([1]).get("count", 0))
    return (with_samples - without) / max(1, count)


def once_seconds(call: Callable[[], object]) -> float:
    """Return the time of a call, s."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(folder: Path) -> dict[str, dict[str, float]]:
    """Return the medians: by recorder, then by measurement."""
    steps = training()
    for _ in range(20):
        next(steps)
    times: dict[str, dict[str, list[float]]] = {name: {"step": [], "call": []} for name in MAKING}
    for _ in range(TURNS):
        for name, making in MAKING.items():
            times[name]["step"].append(step_seconds(making, folder, steps))
            times[name]["call"].append(call_seconds(making, folder))
    spans: dict[str, list[float]] = {"torch": [], "stepscope": [], "settings": [], "made": []}
    for _ in range(TURNS):
        torchs = tensorboard_trace_handler(str(folder), use_gzip=True)
        spans["torch"].append(span_seconds(torchs, steps))
        spans["stepscope"].append(span_seconds(trace_handler(folder, use_gzip=True), steps))
        spans["settings"].append(once_seconds(settings.collect))
        spans["made"].append(once_seconds(lambda: trace_handler(folder)))
    samples = [sample_seconds() for _ in range(4 * TURNS)]
    return {
        **{name: _medians(kinds) for name, kinds in times.items()},
        "span": _medians(spans),
        "sample": _medians({"added": samples}),
    }


def _medians(values: dict[str, list[float]]) -> dict[str, float]:
    return {name: statistics.median(several) for name, several in values.items()}


def show(measured: dict[str, dict[str, float]]) -> bool:
    """Print the medians, and return whether the limit is met."""
    table = Table("", "a 10 ms step, ms", "profiler.step() alone, µs")
    for name, making in MAKING.items():
        step, call = measured[name]["step"], measured[name]["call"]
        alone = "" if making is nothing else f"{call * 1e6:.2f}"
        table.add_row(name, f"{step * 1e3:.3f}", alone)
    console.print(table)
    share = measured["stepscope's handler"]["call"] / STEP_SECONDS
    console.print(f"of a 10 ms step: {share:.4%} (limit: {MOST_SHARE:.0%})")
    span = measured["span"]
    console.print(
        f"a span of {SPAN_STEPS} steps, gzipped: torch's handler {span['torch'] * 1e3:.0f} ms, "
        f"stepscope's {span['stepscope'] * 1e3:.0f} ms, of which settings "
        f"{span['settings'] * 1e3:.0f} ms\ntrace_handler() itself: {span['made'] * 1e6:.0f} µs"
    )
    added = measured["sample"]["added"]
    sampling = added / (INTERVAL_NS * 1e-9)
    console.print(
        f"a sample of the host: {added * 1e6:.0f} µs, every {INTERVAL_NS / 1e6:.0f} ms: "
        f"{sampling:.2%} (limit: {MOST_SAMPLING:.1%})"
    )
    return share <= MOST_SHARE and sampling <= MOST_SAMPLING


def main() -> int:
    """Measure, print, and return 1 if the limit is exceeded."""
    warnings.filterwarnings("ignore", "Warning. Profiler clears events")
    with tempfile.TemporaryDirectory() as folder:
        return 0 if show(measure(Path(folder))) else 1


if __name__ == "__main__":
    sys.exit(main())
