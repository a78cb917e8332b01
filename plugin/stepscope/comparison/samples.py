"""What a comparison needs of one recording: each step's time, and what each thing cost in it."""

import re
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.advice import advise
from stepscope.analyses.core.batch_size import batch_size
from stepscope.analyses.core.complete_steps import complete_steps
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.links import links
from stepscope.analyses.operators.costs import operator_calls
from stepscope.analyses.operators.grouping import Labels, names, shapes
from stepscope.analyses.operators.operator_modules import modules
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.errors import MissingDataError
from stepscope.base.report import RunReport
from stepscope.comparison.recording_conditions import conditions, settings
from stepscope.dialects import Kind
from stepscope.model.trace import Run, Trace

OPERATOR_KEYS = ("kind", "name", "shape", "module", "stem")
DEVICE_WORK_KEYS = ("kind", "name", "operator", "stem")
"""The columns of `Costs.keys`; `stem` is the name without what differs in each version."""
NONE = -1
HASH = re.compile(r"\b[a-z2-7]{51,52}\b")
"""Of a compiled graph: another one in each version of the code (`torch/_inductor/codecache.py`)."""
Numbers = NDArray[np.int64]
Columns = Annotated[Numbers, "columns"]
"""Of two dimensions, which its type does not tell."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Costs:
    """What each thing cost in each step in which it was; all arrays are parallel but `keys`."""

    keys: pd.DataFrame
    """One row a thing: what names it, as objects."""
    key: Numbers
    """A row of `keys`."""
    step: Numbers
    call_count: Numbers
    host_ns: Numbers
    """Self time; of work on a device 0."""
    device_ns: Numbers
    host_total_ns: Numbers
    """With what was called within."""
    device_total_ns: Numbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """One recording, small beside its events."""

    worker: str
    span: str
    has_steps: bool
    step_numbers: tuple[int, ...]
    duration_ns: Numbers
    """Each step's, until its work on the device ends."""
    loop_ns: Numbers
    """The same on the host alone: how long the loop took from one `prof.step()` to the next."""
    parts_ns: Columns
    """Of `duration_ns`: a row a step, a column each of its categories."""
    operators: Costs
    device_work: Costs
    advice: RunReport
    conditions: dict[str, str]
    settings: dict[str, tuple[str, str]]
    """Label and value of each recorded setting."""
    batch_size: int | None


def sample(trace: Trace, report: RunReport | None = None) -> Sample:
    """Return what of a recording is compared; its advice is by the usual settings unless given."""
    steps = step_breakdown(trace)
    batch = batch_size(trace)
    return Sample(
        worker=trace.worker,
        span=trace.span,
        has_steps=steps.step_count > 0,
        step_numbers=steps.numbers,
        duration_ns=steps.duration_ns,
        loop_ns=_loop_ns(trace),
        parts_ns=steps.parts_ns,
        operators=_operators(trace),
        device_work=_device_work(trace),
        advice=advise(Run(name="", workers=(trace,))) if report is None else report,
        conditions=conditions(trace),
        settings=settings(trace),
        batch_size=batch.size if batch and batch.is_certain else None,
    )


def _loop_ns(trace: Trace) -> Numbers:
    steps = complete_steps(trace).steps
    return steps["duration_ns"].to_numpy() if len(steps) else step_breakdown(trace).duration_ns


def _step_at(trace: Trace, start_ns: Numbers) -> Numbers:
    """Return the step within which the host was at each time, or -1; 0 where there are no steps."""
    steps = complete_steps(trace).steps
    if not len(steps):
        return np.zeros(len(start_ns), dtype=np.int64)
    place = np.searchsorted(steps["start_ns"].to_numpy(), start_ns, side="right") - 1
    within = (place >= 0) & (start_ns < steps["end_ns"].to_numpy()[place])
    return np.where(within, place, NONE)


def _operators(trace: Trace) -> Costs:
    calls, cost = trace.host_calls, operator_calls(trace)
    rows = np.flatnonzero(cost.counted == np.arange(len(calls)))
    step = _step_at(trace, calls["start_ns"].to_numpy()[rows])
    is_operator = calls["is_operator"].to_numpy().astype(np.int64)
    labels = {
        "kind": Labels(codes=is_operator, texts=("annotation", "operator")),
        "name": names(trace),
        "shape": shapes(trace),
        "module": _modules(trace),
    }
    what = {name: (label.codes[rows], label.texts) for name, label in labels.items()}
    figures = {
        "host_ns": cost.host_self_ns[rows],
        "device_ns": cost.device_self_ns[rows],
        "host_total_ns": calls["duration_ns"].to_numpy()[rows],
        "device_total_ns": cost.device_total_ns[rows],
    }
    return _costs(what, step, figures)


def _modules(trace: Trace) -> Labels:
    try:
        return modules(trace)
    except MissingDataError:  # no module was recorded: then the name tells less, and still matches
        return Labels(codes=np.full(len(trace.host_calls), NONE), texts=())


def _device_work(trace: Trace) -> Costs:
    events, linked = trace.device_events, links(trace)
    launch = linked.call_of_device_event
    call_start = np.append(trace.runtime_calls["start_ns"].to_numpy(), 0)[launch]
    step = np.where(
        launch >= 0,
        _step_at(trace, call_start),
        _step_on_device(trace, events["start_ns"].to_numpy()),
    )
    owners = trace.host_calls["name"].cat
    operator = np.append(owners.codes.to_numpy(), NONE)[linked.owner_of_device_event]
    event_names = events["name"].cat
    what = {
        "kind": (events["kind"].to_numpy() - int(Kind.KERNEL), ("kernel", "copy", "memory-set")),
        "name": (event_names.codes.to_numpy().astype(np.int64), tuple(event_names.categories)),
        "operator": (operator.astype(np.int64), tuple(owners.categories)),
    }
    nothing, took = np.zeros(len(events), dtype=np.int64), events["duration_ns"].to_numpy()
    figures = {
        "host_ns": nothing,
        "device_ns": took,
        "host_total_ns": nothing,
        "device_total_ns": took,
    }
    return _costs(what, step, figures)


def _step_on_device(trace: Trace, start_ns: Numbers) -> Numbers:
    """Return the step in whose time each event without a launch began, or -1."""
    steps = step_breakdown(trace)
    if not steps.step_count:
        return np.zeros(len(start_ns), dtype=np.int64)
    place = np.searchsorted(steps.start_ns, start_ns, side="right") - 1
    within = (place >= 0) & (start_ns < (steps.start_ns + steps.duration_ns)[place])
    return np.where(within, place, NONE)


def _costs(
    what: dict[str, tuple[Numbers, tuple[str, ...]]],
    step: Numbers,
    figures: dict[str, Numbers],
) -> Costs:
    """Sum figures by what they are of, and by step; what is in no step is left out."""
    inside = np.flatnonzero(step >= 0)
    combined = np.zeros(len(inside), dtype=np.int64)
    for codes, texts in what.values():
        combined, _ = pd.factorize(combined * (len(texts) + 1) + codes[inside] + 1)
    key_count = int(combined.max()) + 1 if len(inside) else 0
    step_count = int(step.max()) + 1 if len(inside) else 1
    cell, cells = pd.factorize(combined * step_count + step[inside], sort=True)
    key, at_step = np.divmod(cells, step_count)
    summed = {name: sums(figure[inside], cell, len(cells)) for name, figure in figures.items()}
    first = np.empty(key_count, dtype=np.int64)
    first[combined[::-1]] = inside[::-1]
    keys = {name: _texts(codes[first], texts) for name, (codes, texts) in what.items()}
    keys["stem"] = np.array([HASH.sub("…", name) for name in keys["name"]], dtype=object)
    return Costs(
        keys=pd.DataFrame(keys, dtype=object),
        key=key,
        step=at_step,
        call_count=np.bincount(cell, minlength=len(cells)),
        **summed,
    )


def _texts(codes: Numbers, texts: tuple[str, ...]) -> NDArray[np.object_]:
    return np.array([*map(str, texts), ""], dtype=object)[codes]
