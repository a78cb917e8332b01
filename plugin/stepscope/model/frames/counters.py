"""Values over time from other sources: power, RDMA, hardware, the user's own counters.

Chrome's counter events (`ph: C`), which kineto writes for `hardware_counters`, `mtia_counters` and
similar categories, and which other tools merge into a trace. One event may contain several series,
one per numeric argument. A track is a process, a name, and an optional `id`, as in the Trace Event
Format. Counters that torch-tb-profiler, HTA and `stepscope cut` derive from the events are marked.
"""

import re
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pandas as pd

from stepscope.dialects import DEVICE_COUNTERS
from stepscope.ingest import ArgumentColumn
from stepscope.ingest.columns import MISSING
from stepscope.ingest.exact_numbers import NO_TIME
from stepscope.model.arrays import Floats, Ints, Mask
from stepscope.model.frames import Column, Schema
from stepscope.model.frames.device_events import digits, labelled_processes
from stepscope.model.frames.source import Source, as_number
from stepscope.model.table import public_table

PHASE = "C"
NO_SERIES = frozenset(
    {"device", "External id", "external id", "Ev Idx", "Record function id", "correlation"}
)
"""Arguments that identify the owner of a sample."""
DERIVED = (
    # gpu_metrics_parser.py
    (re.compile(r"^GPU \d+ (?:Utilization|Est\. SM Efficiency)/"), "torch-tb-profiler"),
    # trace_analysis.py, generate_trace_with_counters
    (re.compile(r"/(?:Queue Length|Memcpy BW)$"), "HTA"),
    # render/drawn_events.py
    (re.compile(r"^(?:Queue length \(stream |Memory bandwidth .+ \(GB/s\)/)"), "stepscope"),
)
"""Tool that derives a track, by its name and series, separated by a slash."""
NO_ROWS: Ints = np.empty(0, dtype=np.int64)
SCHEMA: Schema = (
    Column("event", "int64", "id", "Index of the event in the file; its series share it."),
    Column("name", "category", "text", "The counter's name as it was written."),
    Column("series", "category", "text", "Name of the argument with the value."),
    Column("start_ns", "int64", "ns", "Time, from the trace's first event."),
    Column("process", "category", "text", "Its process, or device."),
    Column("identifier", "category", "text", "Distinguishes tracks of one name; missing: none."),
    Column("device", "int64", "id", "The device's number; -1: unknown."),
    Column("value", "float64", "", "The value: exact up to 2^53, as JSON's numbers are."),
    Column("derived_by", "category", "text", "Tool that derived it; missing: recorded."),
)


class _Samples(NamedTuple):
    rows: Ints
    series: Ints
    values: Floats


def build(source: Source) -> pd.DataFrame:
    """Return one row per sample of a series, in `SCHEMA` columns, by time."""
    keys = [key for key in source.columns.arguments if key not in NO_SERIES]
    samples = _samples(source, keys)
    columns = source.columns
    order = np.lexsort((samples.series, columns.start_ns[samples.rows]))
    rows, series = samples.rows[order], samples.series[order]
    name = source.text(columns.name[rows])
    shown = pd.Categorical.from_codes(series, categories=pd.Index(keys, dtype=object))
    shown = shown.remove_unused_categories()
    return pd.DataFrame(
        {
            "event": rows,
            "name": name,
            "series": shown,
            "start_ns": columns.start_ns[rows],
            "process": source.text(columns.pid[rows]),
            "identifier": source.text(columns.identifier[rows]),
            "device": _device(source, rows),
            "value": samples.values[order],
            "derived_by": _derived_by(name, shown),
        },
        copy=False,
    )


def _samples(source: Source, keys: list[str]) -> _Samples:
    """Return the numeric arguments of counter events that have a time."""
    columns = source.columns
    is_counter = columns.start_ns != NO_TIME
    is_counter &= columns.phase == (
        columns.strings.index(PHASE) if PHASE in columns.strings else -2
    )
    counters = np.flatnonzero(is_counter)
    parts = [_Samples(NO_ROWS, NO_ROWS, np.empty(0))]
    for number, key in enumerate(keys if len(counters) else ()):
        column = columns.arguments[key]
        at = _indices(column, counters, is_counter)
        if len(at):
            values = _numbers(column, at)
            is_number = np.isfinite(values)
            rows = column.rows[at[is_number]].astype(np.int64)
            parts.append(_Samples(rows, np.full(len(rows), number), values[is_number]))
    return _Samples(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.series for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _indices(column: ArgumentColumn, counters: Ints, is_counter: Mask) -> Ints:
    """Return the indices of counters' values in a column, by the cheaper of two ways."""
    if len(counters) * 16 > len(column.rows):
        return np.flatnonzero(is_counter[column.rows])
    indices: Ints = np.searchsorted(column.rows, counters)
    is_there = np.append(column.rows, MISSING)[indices] == counters
    matches: Ints = indices[is_there]
    return matches


def _numbers(column: ArgumentColumn, at: Ints) -> Floats:
    """Return these values as numbers, NaN for other values."""
    values = column.values[at]
    if column.texts is None:
        return values.astype(np.float64)
    codes, index = np.unique(values, return_inverse=True)
    return np.array([as_number(column.texts[code]) for code in codes.tolist()])[index]


def _device(source: Source, rows: Ints) -> Ints:
    """Return the `device` argument, else the process label's number, else the process's."""
    columns = source.columns
    device = source.whole("device", rows)
    process, category = columns.pid[rows], columns.category[rows]
    number = np.full(len(rows), MISSING, dtype=np.int64)
    for code in np.unique(category[category >= 0]).tolist():
        if DEVICE_COUNTERS.match(columns.strings[code]):
            of_category = np.flatnonzero(category == code)
            number[of_category] = digits(source, process[of_category])
    for labelled, device_number in labelled_processes(source).items():
        number[process == labelled] = device_number
    return np.where(device >= 0, device, number)


def _derived_by(name: pd.Categorical, series: pd.Categorical) -> pd.Categorical:
    makers = sorted({maker for _, maker in DERIVED})
    pair = np.asarray(name.codes).astype(np.int64) * (len(series.categories) + 1) + series.codes
    distinct, index = np.unique(pair, return_inverse=True)
    names = [*name.categories, ""]  # code -1 is the last
    codes = [MISSING] * len(distinct)
    for at, number in enumerate(distinct.tolist()):
        name_code, key = divmod(number, len(series.categories) + 1)
        text = f"{names[name_code]}/{series.categories[key]}"
        maker = next((maker for pattern, maker in DERIVED if pattern.search(text)), None)
        codes[at] = makers.index(maker) if maker else MISSING
    all_codes = np.array(codes, dtype=np.int64)[index]
    categories = pd.Index(makers, dtype=object)
    return pd.Categorical.from_codes(all_codes, categories=categories).remove_unused_categories()


public_table(
    "counter-samples",
    SCHEMA,
    "One row per value of a counter at a time, as it was recorded.",
)(attrgetter("counters"))
