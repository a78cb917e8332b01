"""Events and headers that no exporter should write: every answer is given all the same."""

import json
import warnings
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

from loading import columns_of
from stepscope.advice import advise, rule_outcomes
from stepscope.analyses.core.memory_peak import memory_peak
from stepscope.analyses.health import health
from stepscope.api.endpoints.grouped_tables import kernels_table, operators_table
from stepscope.api.endpoints.overview import overview
from stepscope.model.frames.device_events import MOST_DEVICES
from stepscope.model.frames.name_masks import codes_and_names
from stepscope.model.trace import Run, Trace, trace_from_columns
from stepscope.rules import all_rules

pytestmark = pytest.mark.frames

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


def event(name: str | None, category: str, start: float, duration: float, **more: Any) -> Any:
    own: dict[str, Any] = {key: more.pop(key) for key in ("pid", "tid") if key in more}
    place: dict[str, Any] = {"pid": 1, "tid": 1, **own}
    named: dict[str, Any] = {} if name is None else {"name": name}
    whole = {"ph": "X", **named, "cat": category, "ts": start, "dur": duration, **place}
    return {**whole, "args": more} if more else whole


def kernel(start: float, correlation: Any, name: str | None = "k", **more: Any) -> Any:
    return event(name, "kernel", start, 10, pid=0, tid=7, correlation=correlation, **more)


BASE = [
    event("ProfilerStep#1", "user_annotation", 0, 1000),
    event("aten::mm", "cpu_op", 5, 20),
    event("cudaLaunchKernel", "cuda_runtime", 10, 5, correlation=1),
    kernel(20, 1, device=0, stream=7),
]


def trace_with(*events: Any, header: str = "") -> Trace:
    content = f'{{{header}"traceEvents": {json.dumps([*BASE, *events])}}}'
    return trace_from_columns(columns_of(content), worker="w", identity="t")


ODD_EVENTS: dict[str, list[Any]] = {
    "two broken texts that read the same": [
        event("\ud800", "cpu_op", 30, 1),
        event("\udfff", "cpu_op", 40, 1),
        event("?", "cpu_op", 50, 1),
    ],
    "an empty process beside none": [
        event("a", "cpu_op", 30, 1, pid=""),
        {"ph": "X", "name": "a", "cat": "cpu_op", "ts": 40, "dur": 1, "tid": 1},
    ],
    "slashes in processes and threads": [
        event("a", "cpu_op", 30, 1, pid="a/b", tid="c"),
        event("a", "cpu_op", 40, 1, pid="a", tid="b/c"),
    ],
    "numbers beyond 64 bits": [
        kernel(200, 2**70, device=2**70),
        event("k", "kernel", 300, 10, pid=10**30, tid=10**30),
    ],
    "correlations beyond 64 bits, as floats": [kernel(200, 1e300), kernel(300, 2.5)],
    "children without a name": [
        event(LOADER, "user_annotation", 100, 500),
        event(None, "cpu_op", 120, 100),
    ],
    "a call of 31 years": [event("aten::mm", "cpu_op", 2000, 1e15)],
    "memory beyond 64 bits": [
        {
            "ph": "i",
            "name": "[memory]",
            "cat": "cpu_instant_event",
            "pid": 1,
            "tid": 1,
            "ts": 5,
            "args": {"Device Type": 1, "Device Id": 0, "Total Reserved": "1e400", "Bytes": 1},
        }
    ],
}
ODD_HEADERS = (
    '"distributedInfo": {"rank": "²"}, ',
    '"deviceProperties": [{"id": "²"}], ',
    '"deviceProperties": [{"id": "--5"}], ',
    '"deviceProperties": [{"id": 0, "totalGlobalMem": 1e400}], ',
    '"deviceProperties": [{"id": 1e400}], ',
)


def _answered(trace: Trace) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = advise(Run(name="r", workers=(trace,)))
        answers = [
            overview(trace),
            *(operators_table(trace, group) for group in ("name", "shape")),
            *(kernels_table(trace, group) for group in ("name", "launch")),
        ]
    assert not [outcome for outcome in report.outcomes if outcome.status == "failed"]
    for answer in (report, *answers):
        assert msgspec.json.encode(answer)


@pytest.mark.parametrize("odd", ODD_EVENTS)
def test_odd_events_have_all_their_answers(odd: str) -> None:
    _answered(trace_with(*ODD_EVENTS[odd]))


@pytest.mark.parametrize("header", ODD_HEADERS)
def test_odd_headers_have_all_their_answers(header: str) -> None:
    _answered(trace_with(header=header))


def test_texts_that_read_the_same_are_one() -> None:
    calls = trace_with(*ODD_EVENTS["two broken texts that read the same"]).host_calls
    assert list(calls["name"][-3:]) == ["?", "?", "?"]


def test_threads_that_are_named_alike_stay_apart() -> None:
    calls = trace_with(*ODD_EVENTS["slashes in processes and threads"]).host_calls
    first, second = (str(thread) for thread in calls["thread"][-2:])
    assert {first, second} == {"a/b/c", "a/b/c (2)"}


def test_what_does_not_fit_counts_as_not_recorded() -> None:
    events = trace_with(*ODD_EVENTS["numbers beyond 64 bits"]).device_events
    assert list(events["device"]) == [0, 0, -1]
    assert list(events["correlation"]) == [1, -1, -1]
    floats = trace_with(*ODD_EVENTS["correlations beyond 64 bits, as floats"]).device_events
    assert list(floats["correlation"]) == [1, -1, 2]


def test_an_event_without_a_name_is_neither_collective_nor_hidden() -> None:
    trace = trace_with(
        kernel(300, 5, name=None),
        kernel(400, 6, name="ncclKernel"),
        event(None, "cpu_op", 30, 1),
        event("aten::is_leaf", "cpu_op", 40, 1),
    )
    assert list(trace.device_events["is_collective"]) == [False, False, True]
    names = [None if pd.isna(name) else name for name in trace.host_calls["name"]]
    assert names == ["ProfilerStep#1", "aten::mm", None]


def test_more_devices_than_a_trace_can_have_are_one_unknown_device() -> None:
    rows = [kernel(100 + 20 * number, -1, device=number % 500, stream=7) for number in range(600)]
    trace = trace_with(*rows)
    devices = trace.device_events["device"].to_numpy()
    assert len(np.unique(devices)) == MOST_DEVICES + 1
    assert set(devices[devices >= 0]) <= set(range(100))  # of two events each
    [item] = [each for each in health(trace) if each.kind == "too-many-devices"]
    assert (item.count, item.of_count, item.effect) == (600 + 1 - 2 * 64 - 1, 601, "low")


def test_operators_without_a_name_are_one_group_of_a_table() -> None:
    calls = [
        event(None, "cpu_op", start, 400, **{"Sequence number": start, "Fwd thread id": 0})
        for start in range(2_000, 40_000, 1_000)
    ]
    outcomes = rule_outcomes(trace_with(*calls), all_rules())
    [outcome] = [each for each in outcomes if each.rule == "inference-mode-off"]
    assert outcome.status == "found", outcome.reason
    assert [row.cells[:2] for row in outcome.tables[0].rows] == [("?", len(calls))]


def test_codes_of_missing_names_are_counted() -> None:
    names = pd.Series(["a", None, "b", None]).astype("category")
    codes, texts = codes_and_names(names, np.array([1, 2, 3]))
    assert [texts[code] for code in codes] == ["?", "b", "?"]
    assert np.bincount(codes).tolist() == [0, 1, 2]


def test_memory_that_no_device_has_is_not_told() -> None:
    [peak] = memory_peak(
        trace_with(*ODD_EVENTS["memory beyond 64 bits"], header=ODD_HEADERS[3])
    ).values()
    assert (peak.reserved_bytes, peak.capacity_bytes) == (None, None)


@pytest.mark.parametrize(
    ("rank", "understood"), [("3", 3), ('"3"', 3), ('"²"', None), ("true", None), ("1e400", None)]
)
def test_a_rank_is_a_whole_number(rank: str, understood: int | None) -> None:
    assert trace_with(header=f'"distributedInfo": {{"rank": {rank}}}, ').rank == understood
