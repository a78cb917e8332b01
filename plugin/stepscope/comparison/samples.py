"""The data of one trace for a comparison: step times, costs per step, conditions, settings."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import pandas as pd

from stepscope.advice import advise
from stepscope.analyses.core.batch_size import batch_size
from stepscope.analyses.core.group_statistics import sums
from stepscope.analyses.core.links import links
from stepscope.analyses.core.producer import producer
from stepscope.analyses.core.window import complete_steps, window
from stepscope.analyses.operators.costs import operator_calls
from stepscope.analyses.operators.grouping import Labels, modules, names, shapes
from stepscope.analyses.settings.setting_rows import GROUPS, NOT_SHOWN, SettingRow, setting_rows
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.base.errors import MissingDataError
from stepscope.base.formatting import size
from stepscope.base.report import RunReport
from stepscope.dialects import Kind
from stepscope.model.arrays import NONE, Ints, Objects
from stepscope.model.trace import Run, Trace, whole_number

OPERATOR_KEYS = ("kind", "name", "shape", "module", "stem")
DEVICE_WORK_KEYS = ("kind", "name", "operator", "stem")
"""The columns of `Costs.keys`; `stem` is the name without the hash that each version changes."""
HASH = re.compile(r"\b[a-z2-7]{51,52}\b")
"""Hash of a compiled graph, which changes with the code (`torch/_inductor/codecache.py`)."""
Columns = Annotated[Ints, "columns"]
"""Two-dimensional."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Costs:
    """Costs of operators or device work per step; all arrays but `keys` are parallel."""

    keys: pd.DataFrame
    """One row per operator or kernel: its names, as objects."""
    key: Ints
    """A row of `keys`."""
    step: Ints
    call_count: Ints
    host_ns: Ints
    """Self time; 0 for device work."""
    device_ns: Ints
    host_total_ns: Ints
    """Including nested calls."""
    device_total_ns: Ints

    @cached_property
    def operator_calls(self) -> dict[str, int]:
        """Calls of each operator, by its name without the hash."""
        calls = np.bincount(self.key, weights=self.call_count, minlength=len(self.keys))
        is_operator = self.keys["kind"].to_numpy() == "operator"
        sums: dict[str, int] = {}
        for name, count in zip(
            self.keys["stem"].to_numpy()[is_operator].tolist(),
            calls[is_operator].tolist(),
            strict=True,
        ):
            sums[name] = sums.get(name, 0) + int(count)
        return sums


@dataclass(frozen=True, kw_only=True, eq=False)
class Sample:
    """The compared data of one trace, small compared with its events."""

    worker: str
    span: str
    has_steps: bool
    step_numbers: tuple[int, ...]
    duration_ns: Ints
    """Of each step, until the next one begins; of the last, until its device work ends."""
    loop_ns: Ints
    """Of each iteration of the host's loop, from one `prof.step()` to the next."""
    parts_ns: Columns
    """Parts of `duration_ns`: a row per step, a column per category."""
    operators: Costs
    device_work: Costs
    advice: RunReport
    conditions: dict[str, str]
    settings: dict[str, tuple[str, str]]
    """Label and value of each recorded setting."""
    batch_size: int | None


def sample(trace: Trace, report: RunReport | None = None) -> Sample:
    """Return a trace's compared data; without `report`, with advice by default settings."""
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


def _loop_ns(trace: Trace) -> Ints:
    steps = complete_steps(trace).steps
    return steps["duration_ns"].to_numpy() if len(steps) else step_breakdown(trace).duration_ns


def _step_at(trace: Trace, start_ns: Ints) -> Ints:
    """Return the host's step at each time, or -1; 0 where there are no steps.

    A step lasts until the next one begins, the last until its end on the host.
    """
    steps = complete_steps(trace).steps
    if not len(steps):
        return np.zeros(len(start_ns), dtype=np.int64)
    index = np.searchsorted(steps["start_ns"].to_numpy(), start_ns, side="right") - 1
    return np.where(start_ns < window(trace).end_ns, index, NONE)


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
    keys = {name: (label.codes[rows], label.texts) for name, label in labels.items()}
    figures = {
        "host_ns": cost.host_self_ns[rows],
        "device_ns": cost.device_self_ns[rows],
        "host_total_ns": calls["duration_ns"].to_numpy()[rows],
        "device_total_ns": cost.device_total_ns[rows],
    }
    return _costs(keys, step, figures)


def _modules(trace: Trace) -> Labels:
    try:
        return modules(trace)
    except MissingDataError:  # without modules the name alone matches
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
    keys = {
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
    return _costs(keys, step, figures)


def _step_on_device(trace: Trace, start_ns: Ints) -> Ints:
    """Return the step in which each event without a launch began, or -1."""
    steps = step_breakdown(trace)
    if not steps.step_count:
        return np.zeros(len(start_ns), dtype=np.int64)
    index = np.searchsorted(steps.start_ns, start_ns, side="right") - 1
    is_inside = (index >= 0) & (start_ns < (steps.start_ns + steps.duration_ns)[index])
    return np.where(is_inside, index, NONE)


def _costs(
    columns: dict[str, tuple[Ints, tuple[str, ...]]],
    step: Ints,
    figures: dict[str, Ints],
) -> Costs:
    """Sum figures by key and step, without events outside steps."""
    inside = np.flatnonzero(step >= 0)
    combined = np.zeros(len(inside), dtype=np.int64)
    for codes, texts in columns.values():
        combined, _ = pd.factorize(combined * (len(texts) + 1) + codes[inside] + 1)
    key_count = int(combined.max()) + 1 if len(inside) else 0
    step_count = int(step.max()) + 1 if len(inside) else 1
    cell, cells = pd.factorize(combined * step_count + step[inside], sort=True)
    key, at_step = np.divmod(cells, step_count)
    summed = {name: sums(figure[inside], cell, len(cells)) for name, figure in figures.items()}
    first = np.empty(key_count, dtype=np.int64)
    first[combined[::-1]] = inside[::-1]
    keys = {name: _texts(codes[first], texts) for name, (codes, texts) in columns.items()}
    keys["stem"] = np.array([HASH.sub("…", name) for name in keys["name"]], dtype=object)
    return Costs(
        keys=pd.DataFrame(keys, dtype=object),
        key=key,
        step=at_step,
        call_count=np.bincount(cell, minlength=len(cells)),
        **summed,
    )


def _texts(codes: Ints, texts: tuple[str, ...]) -> Objects:
    return np.array([*map(str, texts), ""], dtype=object)[codes]


VERSION = "_version"
RANK_SETTINGS = frozenset({("distributed", "rank"), ("distributed", "local_rank")})
"""Settings that differ between the ranks of one run."""


def conditions(trace: Trace) -> dict[str, str]:
    """Return the recorded conditions of a trace: name and value."""
    return dict(_conditions(trace))


def _conditions(trace: Trace) -> Iterator[tuple[str, str]]:
    yield "the profiler", producer(trace).name
    yield "the kind of device", trace.dialect.name
    if names := _device_names(trace):
        yield "the device", names
    for key, value in sorted(trace.metadata.items()):
        if key.endswith(VERSION):
            yield f"{key.removesuffix(VERSION).replace('_', ' ')} version", str(value)
    info = trace.metadata.get("distributedInfo")
    if isinstance(info, Mapping) and (size := whole_number(info.get("world_size"))) is not None:
        yield "the number of ranks", str(size)
    for name, is_set in _flags(trace):
        yield name, "on" if is_set else "off"


def settings(trace: Trace) -> dict[str, tuple[str, str]]:
    """Return label and value of each recorded setting by name: `dataloaders[0].worker_count`.

    Settings of the profiler are conditions; settings that differ between ranks are left out.
    """
    return {
        _setting_name(row): (f"{GROUPS[row.subject]}, {row.label}", _setting_value(row))
        for row in setting_rows(trace)
        if row.subject != "profiler"
        and row.name not in NOT_SHOWN
        and (row.subject, row.name) not in RANK_SETTINGS
    }


def _setting_name(row: SettingRow) -> str:
    return f"{row.subject}{f'[{row.index}]' if row.index >= 0 else ''}.{row.name}"


def _setting_value(row: SettingRow) -> str:
    if isinstance(row.value, bool):
        return "on" if row.value else "off"
    if isinstance(row.value, str):
        return row.value
    return size(row.value) if row.unit == "bytes" else f"{row.value:,}"


def _device_names(trace: Trace) -> str:
    """Return the distinct names of the devices."""
    properties = trace.metadata.get("deviceProperties")
    devices = properties if isinstance(properties, list) else []
    names = {str(d["name"]) for d in devices if isinstance(d, Mapping) and "name" in d}
    return ", ".join(sorted(names))


def _flags(trace: Trace) -> Iterator[tuple[str, bool]]:
    """Yield the profiler's options that cost time, by the file's content."""
    calls, kinds = trace.host_calls, trace.source.kinds
    has_shapes = bool((calls["input_dims"].cat.codes >= 0).any())
    yield "record_shapes", has_shapes and not trace.has_linked_inputs
    stacks = (calls["call_stack"].cat.codes >= 0).any() or len(trace.python_calls)
    yield "with_stack", bool(stacks)
    yield "profile_memory", bool((kinds == int(Kind.MEMORY)).any())
