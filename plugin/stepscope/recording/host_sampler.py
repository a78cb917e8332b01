"""A sampling profiler of the main thread, during steps that are not recorded.

A timer interrupts the main thread about every 10 ms with a signal, whose handler notes the Python
frames: 15 to 40 µs. Intervals are distributed exponentially: after any function a sample is as
likely as after any other, also where steps are short and regular. The samples show where
unrecorded steps take their time, by source line; a stack at each operator, as `with_stack` records
it, doubles the time of many steps.

Python runs a handler when the function in C returns that was in progress, on the line that called
it. An operator (`a @ b`, `x[i]`) is no call: after one, the handler runs at the next call, at the
begin of a function or at the end of a loop's body. At the latter two a late sample is of an
operator before (`in_progress`): of several of the last product, else of the last one without a
constant. At a call it may be of the call as well, and stays. A sample counts for the mean interval
plus the time for which its handler was late.

A sampling *thread* would see another program: it needs the GIL, and gets it where the main thread
releases it for long. (Measured with torch 2.13 on CPU: `time.sleep` of 2 ms in steps of 9 ms was in
11 of 15 samples.) So there are no samples outside 64-bit Linux, nor of another thread.

The interval doubles whenever `MOST_SAMPLES` are reached, and every other sample is dropped: memory
and cost have a limit, and the samples are spread over the whole stretch.
"""

import dis
import math
import os
import random
import signal
import site
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import lru_cache
from itertools import groupby, takewhile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

from stepscope.recording.posix_timer import PosixTimer

KEY = "host_samples"
NUMBER = getattr(signal, "SIGURG", 0)
"""Ignored by default: harmless where nobody handles it any more, as while Python ends."""
INTERVAL_NS = 10_000_000
LEAST_INTERVAL_NS = 50_000
MOST_STEP_NS = 120 * 10**9
"""After this time without a new step there are no more samples: the training may have ended."""
MOST_SAMPLES = 2000
MOST_CALLS = 200
"""Calls of a stack that are read, from the innermost."""
MOST_STACKS = 500
"""Different stacks that are written, those of most time; the total includes all."""

PACKAGE = str(Path(__file__).parents[1])
"""Folder of stepscope."""

Stack = tuple[CodeType | int, ...]
"""Calls from the innermost: a function's code and the position in it, alternately."""
Sample = tuple[int, int, bool, bool, Stack]
"""Number of the step, time in ns, whether autograd was off, whether it was late, stack."""
LATE_NS = 100_000
CHECKS = ("CALL", "RESUME", "JUMP_BACKWARD", "SEND", "YIELD_VALUE")
"""Beginnings of the names of instructions at which Python handles signals."""
OPERATORS = (
    "BINARY_", "COMPARE_OP", "CONTAINS_OP", "DELETE_SUBSCR", "FOR_ITER", "INPLACE_", "STORE_SLICE",
    "STORE_SUBSCR", "UNARY_",
)  # fmt: skip
"""Those that run functions in C without being calls."""
PRODUCTS = ("@", "@=")
CONSTANT = " constant"


class HostSampler:
    """Takes samples of the main thread in the steps that it begins; no method raises."""

    def __init__(
        self,
        interval_ns: int = INTERVAL_NS,
        *,
        is_possible: bool = True,
        outermost: CodeType | None = None,
    ) -> None:
        self._outermost = outermost
        """Function whose callees are noted, without itself and its callers; None: all calls."""
        self._first_interval_ns = interval_ns
        self._interval_ns = interval_ns
        self._random = random.Random(0).random  # noqa: S311 (the script's generator is not used)
        self._step = 0
        self._began_ns = 0
        """When the step began, or the last one ended."""
        self._samples: list[Sample] = []
        self._timer: PosixTimer | None = None
        self._due_ns = 0
        self._is_possible = is_possible
        self._is_grad: Callable[[], bool] = _always

    def step_began(self, step: int) -> None:
        """Attribute the samples from now on to a step; 0: to none."""
        self._step = step
        self._began_ns = time.perf_counter_ns()
        if step and self._timer is None and self._is_possible:
            try:
                self._start()
            except Exception:  # no such timer or signal here: there are no samples
                self._is_possible = False

    def stop(self) -> None:
        """Take no more samples."""
        timer, self._timer = self._timer, None
        self._step = 0
        if timer is not None:
            with suppress(Exception):
                timer.delete()

    def summary(self, steps: Collection[int]) -> dict[str, Any]:
        """Return the samples of these steps as written into a trace, and forget all.

        A frame is `file(line): function`, with the line in progress; `library_frames` are positions
        of those of libraries. A stack is its number of samples, its time in ns, and then positions
        in `frames`, from the outermost call; `without_grad` are positions of stacks in which
        autograd was off.
        """
        samples, self._samples = self._samples, []
        interval_ns, self._interval_ns = self._interval_ns, self._first_interval_ns
        selected = set(steps)
        counts: Counter[tuple[bool, Stack]] = Counter()
        times_ns: Counter[tuple[bool, Stack]] = Counter()
        for step, time_ns, is_without_grad, is_late, stack in samples:
            if step in selected:
                key = is_without_grad, in_progress(stack) if is_late else stack
                counts[key] += 1
                times_ns[key] += time_ns
        if not counts:
            return {}
        stacks = (
            (is_off, frames_of(stack), count, times_ns[is_off, stack])
            for (is_off, stack), count in counts.items()
        )
        return {
            "count": counts.total(),
            "time_ns": times_ns.total(),
            "step_count": len(selected),
            "interval_ns": interval_ns,
            **stack_table(stacks),
        }

    def _start(self) -> None:
        """Set the timer, in the main thread, and if the signal is not in use."""
        if threading.current_thread() is not threading.main_thread() or not _is_free():
            self._is_possible = False
            return
        timer = PosixTimer(NUMBER)  # a system without it keeps its signal handlers
        self._is_grad = getattr(sys.modules.get("torch"), "is_grad_enabled", _always)
        signal.signal(NUMBER, self._take)
        signal.siginterrupt(NUMBER, False)  # noqa: FBT003 (system calls in C continue)
        self._timer = timer
        self._due_ns = time.perf_counter_ns() + self._interval_ns
        self._timer.set(self._interval_ns)

    def _take(self, _signal: int, frame: FrameType | None) -> None:
        """Note a sample, and set the timer again."""
        timer = self._timer
        if timer is None:
            return
        now_ns = time.perf_counter_ns()
        if now_ns - self._began_ns > MOST_STEP_NS:
            self.stop()
            return
        if self._step:
            self._note(frame, now_ns)
        after_ns = LEAST_INTERVAL_NS + int(self._interval_ns * -math.log(1 - self._random()))
        self._due_ns = time.perf_counter_ns() + after_ns
        if self._timer is timer:
            timer.set(after_ns)

    def _note(self, frame: FrameType | None, now_ns: int) -> None:
        """Append a sample of these calls."""
        stack: list[CodeType | int] = []
        while frame is not None and len(stack) < 2 * MOST_CALLS:
            if frame.f_code is self._outermost:
                break
            stack.append(frame.f_code)
            stack.append(frame.f_lasti)
            frame = frame.f_back
        late_ns = max(0, now_ns - self._due_ns)
        time_ns, is_late = self._interval_ns + late_ns, late_ns >= LATE_NS
        sample = self._step, time_ns, not self._is_grad(), is_late, tuple(stack)
        self._samples.append(sample)
        if len(self._samples) >= MOST_SAMPLES:
            half = self._samples[::2]
            self._samples = [(sample[0], 2 * sample[1], *sample[2:]) for sample in half]
            self._interval_ns *= 2


def stack_table(
    stacks: Iterable[tuple[bool, Iterable[tuple[str, bool]], int, int]],
) -> dict[str, Any]:
    """Return stacks as written into a trace, without the rarest of many.

    Args:
        stacks: Of each, whether autograd was off, its frames with whether they are of libraries,
            its number of samples and its time in ns.
    """
    frames: dict[str, int] = {}
    of_libraries: set[int] = set()
    sums: dict[tuple[bool, tuple[int, ...]], list[int]] = {}
    for is_without_grad, calls, count, time_ns in stacks:
        positions = []
        for name, is_of_library in calls:
            positions.append(frames.setdefault(name, len(frames)))
            if is_of_library:
                of_libraries.add(positions[-1])
        figures = sums.setdefault((is_without_grad, tuple(positions)), [0, 0])
        figures[0] += count
        figures[1] += time_ns
    ordered = sorted(sums.items(), key=lambda item: -item[1][1])[:MOST_STACKS]
    return {
        "frames": list(frames),
        "library_frames": sorted(of_libraries),
        "stacks": [[*figures, *positions] for (_, positions), figures in ordered],
        "without_grad": [row for row, ((is_off, _), _) in enumerate(ordered) if is_off],
    }


def woken(_number: int, _frame: object) -> None:
    """Handle the signal where nothing is sampled: it lets a waiting thread make pending calls."""


def _is_free() -> bool:
    """Return whether nobody handles the signal but an earlier sampler, or `woken`."""
    handler = signal.getsignal(NUMBER)
    if handler in (signal.SIG_DFL, woken):
        return True
    return isinstance(getattr(handler, "__self__", None), HostSampler)


def _always() -> bool:
    return True


def in_progress(stack: Stack) -> Stack:
    """Return a late sample's calls with the operator that was in progress, as far as it is sure."""
    check = _instruction_at(stack)
    # at the begin of a function, the line that called it may have begun with an operator
    outside = stack[2:] if check.startswith("RESUME") else stack
    if not check.startswith(("RESUME", "JUMP_BACKWARD")) or not outside:
        return stack
    code, position, *callers = outside
    operator = operator_before(cast("CodeType", code), cast("int", position))
    return stack if operator is None else (code, operator, *callers)


def _instruction_at(stack: Stack) -> str:
    """Return the name of the instruction at which the innermost call is; "" without one."""
    if not stack:
        return ""
    code, position, *_ = stack
    return _instructions(cast("CodeType", code)).get(cast("int", position), "")


@lru_cache(maxsize=4 * MOST_SAMPLES)
def operator_before(code: CodeType, position: int) -> int | None:
    """Return the position of the operator that may take longest since Python looked for signals.

    `position` may be inside of an instruction, as that of a call in progress is. None: there was no
    operator.
    """
    *before, _ = (item for item in _instructions(code).items() if item[0] <= position)
    since = list(takewhile(lambda item: not item[1].startswith(CHECKS), reversed(before)))
    ranks = [(_rank(name), at) for at, name in since if name.startswith(OPERATORS)]
    return max(ranks)[1] if ranks else None


def _rank(instruction: str) -> int:
    """Return a number that is greater for operators that may take longer."""
    if instruction.endswith(PRODUCTS):
        return 3
    if instruction.startswith("FOR_ITER"):
        return 0
    return 1 if instruction.endswith(CONSTANT) else 2


@lru_cache(maxsize=MOST_SAMPLES)
def _instructions(code: CodeType) -> dict[int, str]:
    """Return the names of a function's instructions by their position, with their operator.

    One whose right operand is a constant ends in `CONSTANT`.
    """
    names, last = {}, ""
    for item in dis.get_instructions(code):
        names[item.offset] = f"{item.opname} {item.argrepr}"
        if last == "LOAD_CONST":
            names[item.offset] += CONSTANT
        last = item.opname
    return names


def frames_of(stack: Stack) -> list[tuple[str, bool]]:
    """Return a stack's calls as texts, from the outermost, and whether each is of a library.

    Of successive calls in libraries: the first, the first of each package, and the last. The
    recorder's calls are left out.
    """
    calls = [
        (code, line_at(code, position))
        for code, position in zip(stack[-2::-2], stack[::-2], strict=True)
        if isinstance(code, CodeType) and isinstance(position, int)
        if not code.co_filename.startswith(PACKAGE)
    ]
    frames: list[tuple[str, bool]] = []
    for is_of_library, group in groupby(calls, key=lambda call: is_library(call[0].co_filename)):
        members = list(group)
        listed = _listed(members) if is_of_library else members
        frames.extend((frame_name(code, line), is_of_library) for code, line in listed)
    return frames


def _listed(calls: list[tuple[CodeType, int]]) -> list[tuple[CodeType, int]]:
    """Return the first call of each package among successive calls in libraries, and the last."""
    packages: set[str] = set()
    listed = []
    for index, call in enumerate(calls):
        package = _package(call[0].co_filename)
        if package not in packages or index == len(calls) - 1:
            listed.append(call)
        packages.add(package)
    return listed


@lru_cache(maxsize=10_000)
def _package(path: str) -> str:
    """Return the package of a library's file; of torch with the package in it."""
    parts = Path(_short_path(path)).parts
    return "/".join(parts[: 2 if parts[0] == "torch" else 1])


def frame_name(code: CodeType, line: int) -> str:
    """Return a call as in torch's stacks: `file(line): function`."""
    return f"{_short_path(code.co_filename)}({line}): {code.co_name}"


@lru_cache(maxsize=4 * MOST_SAMPLES)
def line_at(code: CodeType, position: int) -> int:
    """Return the line at a position in a function's code.

    A jump back to a loop's begin has none: it counts for the line before it.
    """
    last = code.co_firstlineno
    for begin, _, line in code.co_lines():
        if begin > position:
            break
        last = last if line is None else line
    return last


@lru_cache(maxsize=10_000)
def is_library(path: str) -> bool:
    """Return whether a file belongs to Python or an installed package."""
    return path.startswith(("<", *_library_folders()))


@lru_cache(maxsize=1)
def _library_folders() -> tuple[str, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_path(name) for name in names}
    with suppress(Exception):  # a Python without a site
        folders |= {*site.getsitepackages(), site.getusersitepackages()}
    return tuple(os.path.join(folder, "") for folder in folders if folder)  # noqa: PTH118


@lru_cache(maxsize=10_000)
def _short_path(path: str) -> str:
    """Return a path without the folder of `sys.path` that contains it, as in torch's stacks."""
    folders = [os.path.join(folder, "") for folder in {*sys.path, *_library_folders()} if folder]  # noqa: PTH118
    around = [folder for folder in folders if path.startswith(folder)]
    return path[len(max(around, key=len)) :] if around else path
