"""Hot spots: functions and lines whose work no training step needs, by samples.

A loop function is one that also calls the backward pass or the optimizer (without them: the model).
A spot is the outermost function of the user below all loop functions, with everything that it
calls; of a loop function itself it is a group of lines near each other. Lines at which the loop
calls the model, the backward pass or the optimizer are no spots, nor is a library's own work: a
framework's loop. In a forward pass, which the model needs, only functions count that are at work
themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from stepscope.analyses.core.event_references import FRAME, is_user_code
from stepscope.analyses.host.phase_names import (
    BACKWARD,
    CHECKPOINT,
    COLLECTIVES,
    FORWARD,
    LOADING,
    OPTIMIZER,
    TRAINING,
)
from stepscope.analyses.host.sampled_lines import LEAST_SAMPLES, phase_of, wilson
from stepscope.analyses.settings.host_samples import (
    HostSamples,
    SampledStack,
    host_samples,
    worker_samples,
)
from stepscope.model.trace import Trace, computed

MODULE, DECORATOR = "<module>", "decorate_context"
"""The second is of `torch.no_grad()` and others as decorators."""
NEAR_LINES = 3
"""Lines of a loop function that are one spot: at most so far apart."""
OTHERS = (BACKWARD, OPTIMIZER, LOADING, COLLECTIVES, CHECKPOINT)
"""Phases that training needs, or that other rules report."""
MOST_LINES = 5


@dataclass(frozen=True, kw_only=True)
class HotSpot:
    """Samples of a function or a group of lines."""

    phase: str
    """Key of `PHASES`: that of most of its time. `forward`: inside of the model."""
    count: int
    share: float
    """Fraction of the unrecorded step, from 0 to 1."""
    interval: tuple[float, float]
    """Of the fraction, at 95 %."""
    lines: tuple[str, ...]
    """The user's lines in it (`file(line): function`), the longest first."""
    name: str = ""
    """`file: function`; of several groups of lines in a loop function, with their number."""
    caller: str = ""
    """The user's line that calls it; "": it is in the loop function."""
    is_callback: bool = False
    """Whether a library calls it, as a framework does its callbacks."""


Function = tuple[str, str]
"""File and name."""


@dataclass(frozen=True, kw_only=True)
class _Sample:
    """A stack with its phase and the user's calls in it."""

    stack: SampledStack
    phase: str
    calls: tuple[str, ...]
    """From the outermost."""

    @property
    def is_direct(self) -> bool:
        """Whether the user's function is at work, or C code that it calls itself."""
        return self.stack.frames[-1] == self.calls[-1]


@computed
def hot_spots(trace: Trace) -> tuple[HotSpot, ...]:
    """Return the spots with enough samples, the longest first; none without samples."""
    samples = host_samples(trace)
    if samples is None:
        return ()
    users = [sample for stack in samples.stacks if (sample := _sample(stack)).calls]
    spots = (_spot(samples, group) for group in _groups(users))
    return tuple(sorted(spots, key=lambda spot: -spot.share))


def _sample(stack: SampledStack) -> _Sample:
    calls = tuple(frame for frame in stack.frames if is_user_code(frame))
    return _Sample(stack=stack, phase=phase_of(stack), calls=calls)


def _function(frame: str) -> Function:
    match = FRAME.match(frame)
    return (match["path"], match["function"]) if match else (frame, "")


def _is_named(frame: str) -> bool:
    """Return whether a function is no comprehension or lambda, which belongs to its caller."""
    return not _function(frame)[1].startswith("<") or _function(frame)[1] == MODULE


def _line(frame: str) -> int:
    match = FRAME.match(frame)
    return int(match["line"]) if match else 0


@dataclass(frozen=True, kw_only=True)
class _Group:
    """Samples of a spot."""

    name: str
    members: tuple[_Sample, ...]
    frame: str = ""
    """The call of its function; "": lines of a loop function."""


def _groups(samples: Sequence[_Sample]) -> Iterator[_Group]:
    """Yield the samples of each spot."""
    loops, training = _loop_functions(samples), _training_lines(samples)
    if not loops:
        return
    functions: dict[tuple[Function, bool], list[tuple[_Sample, str]]] = defaultdict(list)
    in_loop: dict[Function, list[_Sample]] = defaultdict(list)
    for sample in samples:
        named = [call for call in sample.calls if _is_named(call)]
        if not named or not _is_candidate(sample, training):
            continue
        outside = [call for call in named if _function(call) not in loops]
        if outside:
            is_forward = sample.phase == FORWARD
            frame = outside[-1 if is_forward else 0]
            functions[_function(frame), is_forward].append((sample, frame))
        else:
            in_loop[_function(named[-1])].append(sample)
    yield from (_of_function(function, pairs) for (function, _), pairs in functions.items())
    for function, members in in_loop.items():
        yield from _of_loop(function, _near(members, training))


def _of_function(function: Function, pairs: Sequence[tuple[_Sample, str]]) -> _Group:
    longest = max(pairs, key=lambda pair: pair[0].stack.time_ns)
    members = tuple(sample for sample, _ in pairs)
    return _Group(name=_text(function), members=members, frame=longest[1])


def _of_loop(function: Function, groups: Iterable[Sequence[_Sample]]) -> Iterator[_Group]:
    for number, members in enumerate(groups, 1):
        name = f"{_text(function)} #{number}" if number > 1 else _text(function)
        yield _Group(name=name, members=tuple(members))


def _text(function: Function) -> str:
    return f"{function[0]}: {function[1]}"


def _loop_functions(samples: Iterable[_Sample]) -> set[Function]:
    """Return the functions below which the steps' backward pass and optimizer are called."""
    samples = list(samples)
    trained = [sample for sample in samples if sample.phase in (BACKWARD, OPTIMIZER)]
    if trained:
        return {_function(call) for sample in trained for call in sample.calls}
    forward = (_before_model(sample) for sample in samples if sample.phase == FORWARD)
    return {_function(call) for calls in forward for call in calls}


def _before_model(sample: _Sample) -> Iterator[str]:
    """Yield the user's calls before the first call of a module."""
    for frame in sample.stack.frames:
        if frame.startswith("torch/nn/modules/"):
            return
        if is_user_code(frame):
            yield frame


def _training_lines(samples: Iterable[_Sample]) -> set[str]:
    """Return the lines that call the model, the backward pass, the optimizer or a DataLoader."""
    needed = (*TRAINING, LOADING)
    return {call for s in samples if s.phase in needed and not s.is_direct for call in s.calls}


def _is_candidate(sample: _Sample, training: set[str]) -> bool:
    if sample.phase in OTHERS:
        return False
    if sample.phase == FORWARD:
        return sample.is_direct
    return sample.calls[-1] not in training


def _near(samples: Iterable[_Sample], training: set[str]) -> Iterator[list[_Sample]]:
    """Yield the samples of lines of one function that are near each other.

    Lines of training between them divide them.
    """
    ordered = sorted(samples, key=lambda sample: _line(sample.calls[-1]))
    function = _function(ordered[0].calls[-1])
    borders = [_line(line) for line in training if _function(line) == function]
    group: list[_Sample] = []
    for sample in ordered:
        line = _line(sample.calls[-1])
        last = _line(group[-1].calls[-1]) if group else line
        is_divided = any(last < border < line for border in borders)
        if group and (line - last > NEAR_LINES or is_divided):
            yield group
            group = []
        group.append(sample)
    yield group


def _spot(samples: HostSamples, group: _Group) -> HotSpot:
    members = group.members
    share = sum(sample.stack.time_ns for sample in members) / samples.time_ns
    longest = max(members, key=lambda sample: sample.stack.time_ns)
    caller, is_callback = _caller(longest, group.frame)
    return HotSpot(
        phase=_times(members, [sample.phase for sample in members])[0],
        count=sum(sample.stack.count for sample in members),
        share=share,
        interval=wilson(share, samples.count),
        lines=_times(members, [sample.calls[-1] for sample in members])[:MOST_LINES],
        name=group.name,
        caller=caller,
        is_callback=is_callback,
    )


def _caller(sample: _Sample, frame: str) -> tuple[str, bool]:
    """Return the user's line that calls a function, and whether it does so through a library."""
    if frame not in sample.stack.frames:
        return "", False
    above = sample.stack.frames[: sample.stack.frames.index(frame)]
    callers = [call for call in above if is_user_code(call)]
    by_library = bool(above) and not is_user_code(above[-1])
    is_decorated = by_library and DECORATOR in above[-1]
    is_callback = by_library and not is_decorated and sample.phase != FORWARD
    return (callers[-1] if callers else ""), is_callback


def _times(members: Sequence[_Sample], keys: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct keys by the time of their samples, the longest first."""
    times: Counter[str] = Counter()
    for sample, key in zip(members, keys, strict=True):
        times[key] += sample.stack.time_ns
    return tuple(key for key, _ in times.most_common())


def loading_lines(trace: Trace) -> tuple[str, ...]:
    """Return the user's lines at work in a DataLoader, of functions with enough samples.

    The longest first, of each function together; the functions by their time. Where none has
    enough, those of all: the trace knows how long loading takes, the samples only where.
    """
    samples = host_samples(trace)
    inside = (_sample(stack) for stack in (samples.stacks if samples else ()))
    groups = _innermost_functions(sample for sample in inside if sample.phase == LOADING)
    spots = sorted(
        (_spot(samples, group) for group in groups) if samples else (),
        key=lambda spot: -spot.share,
    )
    return tuple(line for spot in enough(spots) or spots for line in spot.lines)


@computed
def worker_spots(trace: Trace) -> tuple[HotSpot, ...]:
    """Return functions of DataLoader workers with enough samples, the longest first.

    Fractions are of the workers' working time. Of stacks without the user's code it is the
    innermost function.
    """
    samples = worker_samples(trace)
    if samples is None:
        return ()
    inside = (_sample(stack) for stack in samples.working.stacks)
    groups = _innermost_functions(
        sample if sample.calls else replace(sample, calls=sample.stack.frames) for sample in inside
    )
    return _longest_first(_spot(samples.working, group) for group in groups)


def _innermost_functions(samples: Iterable[_Sample]) -> Iterator[_Group]:
    """Yield the samples by the innermost function of the user."""
    functions: dict[Function, list[_Sample]] = defaultdict(list)
    for sample in samples:
        if inside := [call for call in sample.calls if _is_named(call)]:
            functions[_function(inside[-1])].append(sample)
    for function, members in functions.items():
        yield _Group(name=_text(function), members=tuple(members))


def _longest_first(spots: Iterable[HotSpot]) -> tuple[HotSpot, ...]:
    return tuple(sorted(enough(spots), key=lambda spot: -spot.share))


def enough(spots: Iterable[HotSpot]) -> tuple[HotSpot, ...]:
    """Return the spots with enough samples."""
    return tuple(spot for spot in spots if spot.count >= LEAST_SAMPLES)
