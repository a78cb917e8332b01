"""Locations in the program that spend time in NumPy, pandas or PIL."""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core.event_references import user_calls
from stepscope.analyses.core.main_thread_stacks import main_thread_stacks
from stepscope.analyses.host.library_detection import library_of
from stepscope.analyses.host.library_times import TO_NUMPY, library_times
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace

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
