"""Simulated step of a trace: a faster host or device, no waits, more workers, or other changes."""

import fnmatch
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec
import numpy as np

from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.steps.step_breakdown import whole_parts
from stepscope.base.errors import UsageError
from stepscope.model import intervals
from stepscope.model.arrays import Mask
from stepscope.model.trace import Trace, computed
from stepscope.replay.changes import Change, ScaleAllHost, ScaleDevice, ScaleHost, Unblock
from stepscope.replay.loading import MoveLoading, move_loading
from stepscope.replay.points import chain_of_calls
from stepscope.replay.simulation import LOADING, Simulation, replay_error, simulate

Target = Literal["kernels", "operators"]
MOST_FACTOR = 100
SCALE = re.compile(r"(kernels|operators):(.+)=(\d+(?:\.\d*)?|\.\d+)")


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Events by name whose time is multiplied."""

    target: Target
    """`kernels`: device events. `operators`: the host's time in operators and annotations."""
    pattern: str
    """A glob pattern of names, as `fnmatch` has them, case included."""
    factor: float
    """At least 0; 0: they take no time."""


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """Differences between the recorded program and the simulated one."""

    host: float = 1.0
    """Factor of all of the host's time; below 1 without a profiler, or with a faster processor."""
    device: float = 1.0
    """Factor of all device events."""
    scales: tuple[Scale, ...] = ()
    is_unblocked: bool = False
    """Whether no call waits for the device any more."""
    workers: int | None = None
    """Worker processes that load batches; None: as recorded."""
    cores: int | None = None
    """Cores for the loop and its workers; None: as recorded (see `move_loading`)."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Time of one kind on the path that determines the end."""

    name: str
    recorded_ns: int
    simulated_ns: int


class Prediction(msgspec.Struct, frozen=True, kw_only=True):
    """The simulated step beside the recorded one; times are per step, or of the whole trace."""

    worker: str
    span: str
    step_count: int
    """Recorded steps; 0: the times are of the whole trace."""
    recorded_ns: int
    simulated_ns: int
    slowest_ns: int | None = None
    """The simulated time where fixes of findings save least; None without such fixes."""
    replay_error: float
    """How far off the recorded end a replay with typical delays is; a fraction of the window."""
    limits: tuple[Part, ...]
    """Parts of the path that determines the end; they sum to the step."""
    matches: tuple[int, ...]
    """Number of events that each scale matches."""
    assumptions: tuple[str, ...] = ()
    """Sentences on numbers that the trace does not hold."""


def parse_scale(text: str) -> Scale:
    """Return the scale that a text such as `kernels:*gemm*=0.5` describes.

    Raises:
        UsageError: it has another form, or its factor is too large.
    """
    match = SCALE.fullmatch(text)
    if not match:
        msg = f"{text!r} is not of the form kernels:PATTERN=FACTOR or operators:PATTERN=FACTOR"
        raise UsageError(msg)
    if float(match[3]) > MOST_FACTOR:
        msg = f"a factor is at most {MOST_FACTOR}: {text!r}"
        raise UsageError(msg)
    target: Target = "kernels" if match[1] == "kernels" else "operators"
    return Scale(target=target, pattern=match[2], factor=float(match[3]))


def predict(trace: Trace, what_if: WhatIf, changes: Iterable[Change] = ()) -> Prediction:
    """Return the step that a simulation of further changes, then of those of `what_if`, predicts.

    Raises:
        MissingDataError: the model does not describe this trace (see `simulate`), or it lacks data
            on its workers (see `move_loading`).
        UsageError: a scale matches no event.
    """
    every = [*changes, *changes_of(trace, what_if)]
    result = simulate(trace, every)
    count = max(1, result.step_count)
    return Prediction(
        worker=trace.worker,
        span=trace.span,
        step_count=result.step_count,
        recorded_ns=round(result.recorded_ns / count),
        simulated_ns=round(result.simulated_ns / count),
        replay_error=replay_error(trace),
        limits=_limits(trace, result),
        matches=tuple(int(_matching(trace, scale).sum()) for scale in what_if.scales),
        assumptions=tuple(change.assumption for change in every if isinstance(change, MoveLoading)),
    )


def changes_of(trace: Trace, what_if: WhatIf) -> list[Change]:
    """Return the changes of a trace, in the order in which they apply.

    Raises:
        MissingDataError: the trace lacks data on its workers (see `move_loading`).
        UsageError: a scale matches no event.
    """
    matching = [_matching(trace, scale) for scale in what_if.scales]
    for scale, mask in zip(what_if.scales, matching, strict=True):
        if not mask.any():
            msg = f"no {scale.target} of this trace match {scale.pattern!r}"
            raise UsageError(msg)
    return list(_changes(trace, what_if, matching))


def _matching(trace: Trace, scale: Scale) -> Mask:
    frame = trace.device_events if scale.target == "kernels" else trace.host_calls
    names = frame["name"].cat
    is_match = [fnmatch.fnmatchcase(str(name), scale.pattern) for name in names.categories]
    return np.append(np.array(is_match, dtype=bool), False)[names.codes.to_numpy()]


def _changes(trace: Trace, what_if: WhatIf, matching: Iterable[Mask]) -> Iterator[Change]:
    for scale, mask in zip(what_if.scales, matching, strict=True):
        if scale.target == "kernels":
            yield ScaleDevice(rows=np.flatnonzero(mask), factor=scale.factor)
        else:
            yield from _host_scales(trace, mask, scale.factor)
    if what_if.workers is not None:
        yield move_loading(trace, what_if.workers, what_if.cores)
    if what_if.host != 1:
        yield ScaleAllHost(factor=what_if.host)
    if what_if.device != 1:
        rows = np.arange(len(trace.device_events))
        yield ScaleDevice(rows=rows, factor=what_if.device)
    if what_if.is_unblocked:
        yield Unblock(calls=synchronizations(trace).calls)


def _host_scales(trace: Trace, mask: Mask, factor: float) -> Iterator[ScaleHost]:
    calls, chain = trace.host_calls, chain_of_calls(trace)
    for number in np.unique(chain[mask & (chain >= 0)]):
        rows = mask & (chain == number)
        times = intervals.union(
            calls["start_ns"].to_numpy()[rows], calls["end_ns"].to_numpy()[rows]
        )
        yield ScaleHost(times=times, factor=factor, chain=int(number))


@computed
def _recorded_path_ns(trace: Trace) -> dict[str, int]:
    return simulate(trace, ()).recorded_path_ns()


def _limits(trace: Trace, result: Simulation) -> tuple[Part, ...]:
    paths = _recorded_path_ns(trace), result.simulated_path_ns()
    totals = result.recorded_ns, result.simulated_ns
    recorded, simulated = (
        whole_parts(np.array(list(path.values())), round(total / max(1, result.step_count)))
        for path, total in zip(paths, totals, strict=True)
    )
    parts = zip(paths[0], recorded, simulated, strict=True)
    return tuple(
        Part(name=name, recorded_ns=before, simulated_ns=after)
        for name, before, after in parts
        if before or after or name != LOADING
    )
