"""Host time outside of torch operators: of libraries, and under the user's labels.

The profiler writes a function as `path(line): name`, and a C function as `<built-in method sort of
numpy.ndarray object at 0x7f01>`. A built-in function that names no library (`len`, `isinstance`)
belongs to its caller.

NumPy's operators (`a > b`) leave no function. So two more kinds of time without operators and
runtime calls count: gaps that functions of these libraries mostly fill, and the time between
`tensor.numpy()` and `torch.from_numpy(array)` in one call of a function.

A moment belongs to the innermost label (`record_function`) around it. Torch's own labels are left
out: those of the loop, of DataLoaders, optimizers, collectives and of compiled code.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import frame_times
from stepscope.analyses.core.call_paths import python_nesting
from stepscope.analyses.core.compile_events import BACKWARD, GRAPH, LOOKUP, REGION, TIMED
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.event_references import is_users_file, user_calls
from stepscope.analyses.core.host_activity import main_thread, main_thread_stacks
from stepscope.analyses.core.window import window
from stepscope.dialects import ANNOTATION_NAME
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

TO_NUMPY = re.compile(r"^<built-in (?:method|function) numpy of Tensor")
FROM_NUMPY = re.compile(r"^<built-in (?:method|function) from_numpy\b")


@dataclass(frozen=True, kw_only=True, eq=False)
class LibraryTimes:
    """Times of the main thread in the window, without data loading."""

    calls: Ints
    """Rows of `python_calls`: outermost functions of these libraries."""
    inside: Intervals
    """In such a call, and in no operator called from it."""
    with_gaps: Intervals
    """The same, with the gaps without operators that belong to these libraries."""


@computed
def library_times(trace: Trace) -> LibraryTimes:
    """Return the main thread's times in NumPy, pandas or PIL; empty without Python functions."""
    span, loading = window(trace), data_loading(trace).times
    calls = _outermost(trace)
    theirs = frame_times.times(trace.python_calls, calls)
    theirs = intervals.difference(theirs, _operators_called_in(trace, theirs))
    inside = intervals.difference(intervals.clip(theirs, span.start_ns, span.end_ns), loading)
    free = without_operators(trace)
    mostly = free[2 * intervals.covered_ns(inside, *free.T) >= free[:, 1] - free[:, 0]]
    between = intervals.intersection(free, _between_hand_overs(trace))
    return LibraryTimes(
        calls=calls, inside=inside, with_gaps=intervals.merged(inside, mostly, between)
    )


@computed
def without_operators(trace: Trace) -> Intervals:
    """Return the times with no thread in an operator, runtime call, or data loading."""
    span, calls = window(trace), trace.host_calls
    operators = frame_times.times(calls, calls["is_operator"].to_numpy())
    runtime = frame_times.times(trace.runtime_calls, frame_times.ALL)
    at_work = intervals.merged(operators, runtime, data_loading(trace).times)
    return intervals.complement(at_work, span.start_ns, span.end_ns)


def _outermost(trace: Trace) -> Ints:
    functions = trace.python_calls
    is_theirs = name_mask(functions["name"], lambda name: library_of(name) in NAMED)
    is_theirs &= (functions["thread"] == main_thread(trace)).to_numpy()
    rows = np.flatnonzero(is_theirs)
    start, end = (functions[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    order = np.lexsort((-end, start))
    reached = np.maximum.accumulate(end[order])
    is_first = np.append(True, start[order][1:] >= reached[:-1])[: len(rows)]
    outermost: Ints = rows[order[is_first]]
    return outermost


def _between_hand_overs(trace: Trace) -> Intervals:
    """Return the times between a tensor's `numpy()` and the next `from_numpy()` of a function."""
    functions = trace.python_calls
    on_main = (functions["thread"] == main_thread(trace)).to_numpy()
    got = np.flatnonzero(on_main & name_mask(functions["name"], TO_NUMPY.search))
    made = np.flatnonzero(on_main & name_mask(functions["name"], FROM_NUMPY.search))
    if not len(got) or not len(made):
        return intervals.EMPTY
    start, parent = functions["start_ns"].to_numpy(), python_nesting(trace).parent
    got, made = got[np.argsort(start[got])], made[np.argsort(start[made])]
    last = np.searchsorted(start[got], start[made]) - 1
    before = got[last]
    is_pair = (last >= 0) & (parent[before] == parent[made]) & (parent[made] >= 0)
    end = functions["end_ns"].to_numpy()
    return intervals.union(end[before[is_pair]], start[made[is_pair]])


def _operators_called_in(trace: Trace, theirs: Intervals) -> Intervals:
    """Return the times of the operators called during some times."""
    calls = trace.host_calls
    is_operator = (
        calls["is_operator"].to_numpy() & (calls["thread"] == main_thread(trace)).to_numpy()
    )
    rows = np.flatnonzero(is_operator)
    start = calls["start_ns"].to_numpy()[rows]
    rows = rows[intervals.covered_ns(theirs, start, start + 1) > 0]
    return frame_times.times(calls, rows)


USER, TORCH, GARBAGE, OTHER = "user code", "torch", "garbage collection", "other library"
NAMED = ("numpy", "pandas", "PIL")
"""Libraries that prepare data for torch."""
COLLECTION = re.compile(r"^Python GC|^<built-in function collect>")
"""The first is of `record_python_gc_info` (torch 2.9 and later); the second is `gc.collect`."""
BUILT_IN = re.compile(r"^<built-in")
WORD = re.compile(r"[A-Za-z_]\w*")
IMAGING = frozenset({"ImagingCore", "ImagingDecoder", "ImagingEncoder"})
"""Objects of Pillow's C module."""
FRAME = re.compile(r"^(?P<file>[^\n]*?)\((?P<line>\d{1,9})\): (?P<function>.+)$", re.DOTALL)


def library_of(frame: str) -> str | None:
    """Return a function's library; None where it belongs to its caller."""
    if BUILT_IN.match(frame):
        return GARBAGE if COLLECTION.match(frame) else _named_in(frame)
    if COLLECTION.match(frame):
        return GARBAGE
    package = TORCH if frame.startswith("nn.Module: ") else _package(frame)
    if package in (TORCH, *NAMED):
        return package
    return USER if is_users_file(frame) else OTHER


def _named_in(frame: str) -> str | None:
    words = set(WORD.findall(frame))
    if words & IMAGING:
        return "PIL"
    return next((library for library in (TORCH, *NAMED) if library in words), None)


def _package(frame: str) -> str:
    """Return a file's package: the part after `site-packages`, else a known one, else the first."""
    path = frame.partition("(")[0].replace("\\", "/")
    for folder in ("site-packages/", "dist-packages/"):
        _, separator, behind = path.rpartition(folder)
        if separator:
            return behind.partition("/")[0]
    parts = [part for part in path.split("/") if part not in {"", "."}]
    named = [part for part in parts[:-1] if part in (TORCH, *NAMED)]
    return named[-1] if named else (parts[0] if parts else "")


LEAST_SHARE = 0.01
"""Smallest fraction of the total time that is listed."""
TORCH_EQUIVALENTS = {
    "argwhere": "torch.nonzero(condition)",
    "nonzero": "torch.nonzero(condition, as_tuple=True)",
    "where": "torch.where(condition, a, b)",
    "standard_normal": "torch.randn(shape, device=device)",
    "normal": "mean + deviation * torch.randn(shape, device=device)",
    "random": "torch.rand(shape, device=device)",
    "rand": "torch.rand(shape, device=device)",
    "uniform": "torch.rand(shape, device=device) * (high - low) + low",
    "randint": "torch.randint(low, high, shape, device=device)",
    "concatenate": "torch.cat(parts)",
    "stack": "torch.stack(parts)",
    "sort": "torch.sort(x)",
    "argsort": "torch.argsort(x)",
    "unique": "torch.unique(x)",
    "clip": "torch.clamp(x, low, high)",
    "percentile": "torch.quantile(x, q / 100)",
    "quantile": "torch.quantile(x, q)",
    "einsum": "torch.einsum(equation, a, b)",
    "dot": "a @ b",
    "array": "torch.as_tensor(x, device=device)",
    "resize": "torchvision.transforms.v2.functional.resize(images, size)",
}
"""Torch equivalents of these libraries' functions."""
FUNCTION = re.compile(r"\(\d{1,9}\): (\w+)$|^<built-in \w+ (\w+)")
"""Function's own name, of a Python frame and of a C frame."""


@dataclass(frozen=True, kw_only=True)
class ProgramLocation:
    """A location in the user's program."""

    label: str | None
    """Innermost annotation around it."""
    frame: str | None
    """The user's innermost function; None where none was recorded."""
    time_ns: int


def program_locations(
    trace: Trace, times: Intervals, most: int = 10
) -> tuple[ProgramLocation, ...]:
    """Return the main thread's locations during these times, longest first."""
    program = main_thread_stacks(trace)
    _, stretch, length_ns = program.cut(times[:, 0], times[:, 1])
    labels = [*map(str, trace.host_calls["name"].cat.categories), None]
    frames = [*map(str, user_calls(trace)["name"].cat.categories), None]
    # -1, none, becomes the last
    label, function = program.annotation[stretch] % len(labels), program.function[stretch]
    keys, which = np.unique(label * len(frames) + function % len(frames), return_inverse=True)
    total_ns = np.bincount(which, weights=length_ns, minlength=len(keys))
    return tuple(
        ProgramLocation(
            label=labels[keys[row] // len(frames)],
            frame=frames[keys[row] % len(frames)],
            time_ns=int(total_ns[row]),
        )
        for row in np.argsort(-total_ns, kind="stable")[:most].tolist()
        if total_ns[row] >= LEAST_SHARE * total_ns.sum()
    )


def costliest_functions(trace: Trace, times: Intervals) -> tuple[tuple[str, str, int], ...]:
    """Return (library, function, ns) of the library functions called, the longest first."""
    frame, rows = trace.python_calls, library_times(trace).calls
    start, end = (frame[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    spent_ns = intervals.covered_ns(times, start, end)
    names = frame["name"].cat
    total_ns = np.bincount(
        names.codes.to_numpy()[rows], weights=spent_ns, minlength=len(names.categories)
    )
    least_ns = LEAST_SHARE * total_ns.sum()
    merged: dict[tuple[str, str], int] = {}
    for code in np.flatnonzero(total_ns > least_ns).tolist():
        name = str(names.categories[code])
        if TO_NUMPY.search(name):
            continue  # hands over, and computes nothing
        key = library_of(name) or "", function_name(name)
        merged[key] = merged.get(key, 0) + int(total_ns[code])
    ordered = sorted(merged.items(), key=lambda item: -item[1])
    return tuple((library, name, time_ns) for (library, name), time_ns in ordered)


def function_name(frame: str) -> str:
    """Return a function's own name: `argwhere` of `numpy/_core/numeric.py(624): argwhere`."""
    match = FUNCTION.search(frame)
    return (match[1] or match[2]) if match else frame


BACKEND = re.compile(r"^(?:nccl|rccl|xccl|hccl|gloo|mpi|ucc|c10d|FSDP|torch)(?::|::)|^\[param\|")
TORCHS = (ANNOTATION_NAME, BACKEND, REGION, GRAPH, TIMED, BACKWARD, re.compile(re.escape(LOOKUP)))


HANDED_OVER = "aten::lift_fresh"
"""Operator of `torch.from_numpy` and `torch.as_tensor`, which make a tensor of an array. Before
that of `torch.tensor`, `aten::empty` runs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelTime:
    """One label's time on the main thread in the window."""

    label: str
    total_ns: int
    without_operators: Intervals
    handed_over: Intervals
    """The part right before an array becomes a tensor."""

    @property
    def empty_share(self) -> float:
        """Fraction of its time in which no operator runs."""
        return intervals.duration_ns(self.without_operators) / max(1, self.total_ns)


def label_times(trace: Trace, most: int = 10) -> tuple[LabelTime, ...]:
    """Return the user's labels with the most time without operators, in descending order."""
    calls, span = trace.host_calls, window(trace)
    on_main = (calls["thread"] == main_thread(trace)).to_numpy()
    codes = np.where(on_main & ~calls["is_operator"].to_numpy(), calls["name"].cat.codes, NONE)
    names = [str(name) for name in calls["name"].cat.categories]
    is_users = np.array([is_user_label(name) for name in names], dtype=bool)
    start, end, innermost = _without_operators(trace)
    empty_ns = np.bincount(innermost, weights=end - start, minlength=len(names)) * is_users
    handed_over_ns = calls["start_ns"].to_numpy()[on_main & (calls["name"] == HANDED_OVER)]
    labels = []
    for code in np.argsort(-empty_ns, kind="stable")[:most].tolist():
        label_time = intervals.clip(
            frame_times.times(calls, codes == code), span.start_ns, span.end_ns
        )
        empty = intervals.union(start[innermost == code], end[innermost == code])
        if len(empty):
            total_ns = intervals.duration_ns(label_time)
            labels.append(
                LabelTime(
                    label=names[code],
                    total_ns=total_ns,
                    without_operators=empty,
                    handed_over=empty[np.isin(empty[:, 1], handed_over_ns)],
                )
            )
    return tuple(label for label in labels if is_user_label(label.label))


def is_user_label(name: str) -> bool:
    """Return whether a label is the user's own, not torch's."""
    return not any(pattern.search(name) for pattern in TORCHS)


def _without_operators(
    trace: Trace,
) -> tuple[Ints, Ints, Ints]:
    """Return starts, ends and innermost label of the labelled times without operators."""
    free, places = without_operators(trace), main_thread_stacks(trace)
    owner, stretch, length_ns = places.cut(free[:, 0], free[:, 1])
    start = np.maximum(places.start_ns[stretch], free[owner, 0])
    label = places.annotation[stretch]
    is_labelled = label != NONE
    return start[is_labelled], (start + length_ns)[is_labelled], label[is_labelled]
