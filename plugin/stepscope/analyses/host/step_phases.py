"""Time of the host's `ProfilerStep`s by phase: every nanosecond of a step is in exactly one.

The main thread's time is cut where an operator, a Python function that names a phase, the user's
function or an annotation begins or ends. A stretch belongs, in this order: to data loading; to the
phase of its operator (`phase_operators`); to that of the innermost Python function that names one
(`phase_names`); to that of the annotation around it; to the backward pass, where another thread
runs it; to the phase of the gap between two operators, or to a collective that runs meanwhile.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from stepscope.analyses.core import ancestry, frame_times
from stepscope.analyses.core.call_paths import python_nesting
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.event_references import is_user_code
from stepscope.analyses.core.forward_backward import forward_backward
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.window import complete_steps, window
from stepscope.analyses.host.host_call_tree import shown_name
from stepscope.analyses.host.optimizer_updates import update_starts
from stepscope.analyses.host.phase_names import (
    BACKWARD,
    COLLECTIVES,
    HOST_CODE,
    LOADING,
    NOT_MODEL,
    PHASES,
    RUNTIME,
    phase_of_function,
    phase_of_label,
)
from stepscope.analyses.host.phase_operators import CODES, operator_phases
from stepscope.analyses.steps.step_breakdown import HOST_COLLECTIVE
from stepscope.model import call_tree, intervals
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import STEP_NAME
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

NOTHING = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stretches:
    """The steps' time on the main thread, in order; arrays are parallel."""

    step: Ints
    """Index of the step."""
    start_ns: Ints
    end_ns: Ints
    phase: Ints
    """Index into `PHASES`."""
    line: Ints
    """The user's innermost function: index into `lines`."""
    activity: Ints
    """Operator, function, module, annotation or `after aten::mm`: index into `activities`."""
    lines: tuple[str, ...]
    activities: tuple[str, ...]

    @property
    def duration_ns(self) -> Ints:
        """Duration of each."""
        return self.end_ns - self.start_ns


@dataclass(frozen=True, kw_only=True)
class PhaseLocation:
    """The line and activity in which a phase takes most time."""

    line: str
    """The user's function (`train.py(12): validate`); "" where stacks were not recorded."""
    activity: str
    """The operator, library function, module or annotation, else the last operator before."""
    time_ns: int


@dataclass(frozen=True, kw_only=True, eq=False)
class StepPhases:
    """One row per step; `parts_ns[i].sum() == duration_ns[i]`."""

    duration_ns: Ints
    parts_ns: Ints
    """Columns are those of `PHASES`."""
    stretches: Stretches

    def total_ns(self, phase: str) -> int:
        """Return the time of a phase in all steps."""
        return int(self.parts_ns[:, CODES[phase]].sum())

    def steps_with(self, phase: str) -> float:
        """Return the fraction of the steps that have a phase."""
        return float((self.parts_ns[:, CODES[phase]] > 0).mean()) if len(self.parts_ns) else 0.0

    def is_usual(self, phase: str) -> bool:
        """Return whether the median step has at least half of the mean time of a phase."""
        part_ns = self.parts_ns[:, CODES[phase]]
        return bool(len(part_ns) and 2 * np.median(part_ns) >= part_ns.mean())

    def times(self, phase: str) -> Intervals:
        """Return the times of a phase."""
        of_phase = self.stretches.phase == CODES[phase]
        return intervals.union(self.stretches.start_ns[of_phase], self.stretches.end_ns[of_phase])

    def locations(self, phase: str, most: int = 1) -> tuple[PhaseLocation, ...]:
        """Return the largest lines of a phase, each with its main activity."""
        cut = self.stretches
        rows = np.flatnonzero(cut.phase == CODES[phase])
        columns = {
            "line": cut.line[rows],
            "activity": cut.activity[rows],
            "time_ns": cut.duration_ns[rows],
        }
        pairs = pd.DataFrame(columns).groupby(["line", "activity"], as_index=False).sum()
        pairs = pairs.sort_values("time_ns", ascending=False, kind="stable")
        total_ns = pairs.groupby("line")["time_ns"].sum()
        total_ns = total_ns.sort_values(ascending=False, kind="stable")
        main = pairs.drop_duplicates("line").set_index("line")["activity"]
        return tuple(
            PhaseLocation(
                line=cut.lines[line],
                activity=cut.activities[int(main[line])],
                time_ns=int(time_ns),
            )
            for line, time_ns in zip(total_ns.index[:most], total_ns[:most], strict=True)
        )


@computed
def step_phases(trace: Trace) -> StepPhases:
    """Return the phases of the complete steps; without steps, of the window."""
    start, end = _steps(trace)
    cut = _stretches(trace, start, end)
    parts = np.zeros((len(start), len(PHASES)), dtype=np.int64)
    np.add.at(parts, (cut.step, cut.phase), cut.duration_ns)
    return StepPhases(duration_ns=end - start, parts_ns=parts, stretches=cut)


def _steps(trace: Trace) -> tuple[Ints, Ints]:
    complete = complete_steps(trace)
    if not len(complete):
        whole = window(trace)
        return np.array([whole.start_ns]), np.array([whole.end_ns])
    start, end = (complete.steps[name].to_numpy() for name in ("start_ns", "end_ns"))
    return start, np.minimum(end, np.append(start[1:], np.iinfo(np.int64).max))


def _stretches(trace: Trace, start_ns: Ints, end_ns: Ints) -> Stretches:
    operators, functions, labels = operator_phases(trace), _functions(trace), _labels(trace)
    elsewhere, collectives = _backward_elsewhere(trace), _collectives_elsewhere(trace)
    runtime = _runtime(trace)
    borders = [start_ns, end_ns, operators.start_ns, operators.end_ns]
    borders += [
        part.ravel() for part in (data_loading(trace).times, elsewhere, collectives, runtime)
    ]
    borders += [item for calls in (functions, labels) for item in (calls.start_ns, calls.end_ns)]
    moment = np.unique(np.concatenate(borders))
    begin, until = moment[:-1], moment[1:]
    step = np.searchsorted(start_ns, begin, side="right") - 1
    inside = (step >= 0) & (begin < np.append(end_ns, NONE)[step])
    begin, until, step = begin[inside], until[inside], step[inside]
    operator = np.searchsorted(operators.start_ns, begin, side="right") - 1
    in_operator = (operator >= 0) & (begin < np.append(operators.end_ns, NONE)[operator])
    function, label = functions.at(begin), labels.at(begin)
    of_function = np.append(functions.phase, NONE)[function]
    phase = operators.gap_phase[operator + 1].copy()
    phase[_covered(elsewhere, begin) & ~in_operator] = CODES[BACKWARD]
    _put(phase, np.append(labels.phase, NONE)[label], ~in_operator)
    _put(phase, of_function, ~in_operator)
    phase[_covered(runtime, begin) & (phase == CODES[HOST_CODE])] = CODES[RUNTIME]
    phase[_covered(collectives, begin) & (phase == CODES[HOST_CODE])] = CODES[COLLECTIVES]
    _put(phase, np.append(operators.phase, NONE)[operator], in_operator)
    _put(phase, of_function, phase == CODES[NOT_MODEL])
    phase[_covered(data_loading(trace).times, begin)] = CODES[LOADING]
    activity, activities = _activities(trace, operator, (function, label, in_operator))
    return Stretches(
        step=step,
        start_ns=begin,
        end_ns=until,
        phase=phase,
        line=np.append(functions.line, len(functions.lines) - 1)[function],
        activity=activity,
        lines=functions.lines,
        activities=activities,
    )


def _put(phase: Ints, other: Ints, where: Mask) -> None:
    """Set the phases that another column knows, at some positions."""
    mask = where & (other != NONE)
    phase[mask] = other[mask]


def _covered(times: Intervals, moment_ns: Ints) -> Mask:
    return np.asarray(intervals.covered_ns(times, moment_ns, moment_ns + 1) > 0)


def _activities(
    trace: Trace, operator: Ints, called: tuple[Ints, Ints, Mask]
) -> tuple[Ints, tuple[str, ...]]:
    """Return the name of each stretch's operator, else of its function, its label, or the gap.

    `operator` is the last one that began, `called` the function, the label, and whether the
    operator still runs.
    """
    function, label, in_operator = called
    names = [str(name) for name in trace.host_calls["name"].cat.categories]
    codes = trace.host_calls["name"].cat.codes.to_numpy().astype(np.int64)
    functions, labels = _functions(trace), _labels(trace)
    texts = [*names, *functions.names, *(f"after {name}" for name in names), NOTHING]
    of_operator = np.append(codes[operator_phases(trace).rows], NONE)[operator]
    of_function = np.append(functions.name, NONE)[function]
    of_label = np.append(labels.name, NONE)[label]
    behind = len(names) + len(functions.names)
    activity = np.where(of_operator != NONE, of_operator + behind, len(texts) - 1)
    activity = np.where(of_label != NONE, of_label, activity)
    activity = np.where(of_function != NONE, of_function + len(names), activity)
    activity = np.where(in_operator & (of_operator != NONE), of_operator, activity)
    return activity, tuple(texts)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Calls:
    """Nested calls of the main thread that name a phase, a line or an activity."""

    start_ns: Ints
    end_ns: Ints
    phase: Ints
    """Index into `PHASES`, or -1."""
    name: Ints
    """Index into names, or -1."""
    line: Ints
    names: tuple[str, ...]
    lines: tuple[str, ...]

    def at(self, moment_ns: Ints) -> Ints:
        """Return the innermost call around each moment, or -1."""
        one_thread = np.zeros(len(self.start_ns), dtype=np.int8)
        moments = np.zeros(len(moment_ns), dtype=np.int8), moment_ns, moment_ns + 1
        return call_tree.enclosing((one_thread, self.start_ns, self.end_ns), moments)


def _labels(trace: Trace) -> _Calls:
    """Return the annotations of the main thread, without steps."""
    calls = trace.host_calls
    is_label = ~calls["is_operator"].to_numpy() & ~name_mask(calls["name"], STEP_NAME.match)
    rows = np.flatnonzero(is_label & (calls["thread"] == main_thread(trace)).to_numpy())
    categories = [str(name) for name in calls["name"].cat.categories]
    phases = [_code(phase_of_label(name)) for name in categories]
    phase_of = np.array([*phases, NONE], dtype=np.int64)
    codes = calls["name"].cat.codes.to_numpy()[rows].astype(np.int64)
    start_ns = np.maximum(calls["start_ns"].to_numpy(), update_starts(trace))[rows]
    return _Calls(
        start_ns=start_ns,
        end_ns=calls["end_ns"].to_numpy()[rows],
        phase=phase_of[codes],
        name=codes,
        line=np.zeros(len(rows), dtype=np.int64),
        names=tuple(categories),
        lines=(NOTHING,),
    )


def _code(phase: str | None) -> int:
    return CODES[phase] if phase else NONE


@computed
def _functions(trace: Trace) -> _Calls:
    """Return the Python calls of the main thread at which phase, line or activity changes."""
    calls = trace.python_calls
    parent = python_nesting(trace).parent
    named = calls["name"].cat
    names = [str(name) for name in named.categories]
    codes = named.codes.to_numpy().astype(np.int64)
    phase_of = np.array([*(_code(phase_of_function(name)) for name in names), NONE])
    is_module = np.array([*(name.startswith("nn.Module: ") for name in names), False])[codes]
    is_user = np.array([*map(is_user_code, names), False])[codes]
    has_phase = phase_of[codes] != NONE
    phase_row = ancestry.nearest(parent, has_phase | is_module)
    phase = np.append(phase_of[codes], NONE)[phase_row]
    outermost = _outermost_of_phase(parent, phase)
    activity = np.where(phase != NONE, outermost, ancestry.nearest(parent, is_module))
    line = np.append(codes, NONE)[ancestry.nearest(parent, is_user)]
    distinct = {text: code for code, text in enumerate(dict.fromkeys(map(shown_name, names)))}
    shown = np.array([*(distinct[shown_name(name)] for name in names), NONE])
    name = shown[np.append(codes, NONE)[activity]]
    state = np.stack((phase, line, name))
    above = np.append(state, np.full((3, 1), NONE), axis=1)[:, parent]
    on_main = (calls["thread"] == main_thread(trace)).to_numpy()
    rows = np.flatnonzero(on_main & (state != above).any(axis=0))
    return _Calls(
        start_ns=calls["start_ns"].to_numpy()[rows],
        end_ns=calls["end_ns"].to_numpy()[rows],
        phase=phase[rows],
        name=name[rows],
        line=np.where(line[rows] != NONE, line[rows], len(names)),
        names=tuple(distinct),
        lines=(*names, NOTHING),
    )


def _outermost_of_phase(parent: Ints, phase: Ints) -> Ints:
    """Return the outermost of the callers that have a row's phase without interruption."""
    differs = np.append(phase, NONE)[parent] != phase
    return ancestry.nearest(parent, differs)


def _backward_elsewhere(trace: Trace) -> Intervals:
    """Return the times from the first to the last node of each backward pass on other threads.

    Nodes of a pass follow one another with no operator of the main thread between them.
    """
    calls = trace.host_calls
    elsewhere = (calls["thread"] != main_thread(trace)).to_numpy()
    rows = np.flatnonzero(elsewhere & (forward_backward(trace).node != NONE))
    times = frame_times.times(calls, rows)
    if not len(times):
        return times
    starts = operator_phases(trace).start_ns
    first = np.searchsorted(starts, times[:-1, 1])
    joined = first == np.searchsorted(starts, times[1:, 0])
    is_start, is_end = np.append(True, ~joined), np.append(~joined, True)
    return np.stack((times[is_start, 0], times[is_end, 1]), axis=1)


def _collectives_elsewhere(trace: Trace) -> Intervals:
    """Return the times of collectives on other threads, for which the main thread waits."""
    calls = trace.host_calls
    elsewhere = (calls["thread"] != main_thread(trace)).to_numpy()
    return frame_times.times(calls, elsewhere & name_mask(calls["name"], HOST_COLLECTIVE.match))


def _runtime(trace: Trace) -> Intervals:
    calls = trace.runtime_calls
    return frame_times.times(calls, (calls["thread"] == main_thread(trace)).to_numpy())
