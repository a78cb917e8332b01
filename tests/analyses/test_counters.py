"""Counters: every number that others recorded is kept; what each series comes to."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of, trace_of
from stepscope.analyses.core.counter_table import counter_table
from stepscope.model.trace import Trace

US = 1000
POWER = "Power (W)"


def _sample(name: str, at: float | str, category: str = "", **given: Any) -> list[Any]:
    return [category, name, at, None, {"ph": "C", **given}]


def _valued(name: str, at: float, values: dict[str, Any]) -> list[Any]:
    return _sample(name, at, **values)


def _kept(trace: Trace, *columns: str) -> list[Any]:
    return rows_of(trace.counters[list(columns)])


def test_each_value_of_an_event_is_a_series() -> None:
    trace = trace_of(
        [
            ["cpu_op", "aten::mm", 0, 5],
            _sample("rdma", 10, rx=5, tx=7.25),
            _sample("rdma", 20, rx=6),
        ]
    )
    assert _kept(trace, "name", "series", "start_ns", "value") == [
        ("rdma", "rx", 10 * US, 5.0),
        ("rdma", "tx", 10 * US, 7.25),
        ("rdma", "rx", 20 * US, 6.0),
    ]


def test_samples_are_in_times_order_whatever_the_files() -> None:
    trace = trace_of([_sample("p", 30, v=3), _sample("p", 10, v=1), _sample("p", 20, v=2)])
    assert trace.counters["value"].tolist() == [1, 2, 3]
    assert (trace.counters["start_ns"].diff().dropna() == 10 * US).all()


def test_what_a_sample_belongs_to_is_no_series() -> None:
    (row,) = rows_of(trace_of([_sample("sm", 1, v=3, device=2, correlation=7)]).counters)
    assert (row.series, row.value, row.device) == ("v", 3, 2)


@pytest.mark.parametrize("value", ["N/A", "inf", None, True, [1], {"a": 1}, ""])
def test_what_is_no_number_costs_that_sample_alone(value: object) -> None:
    trace = trace_of([_sample("p", 1, v=1, w=5), _sample("p", 2, v=value, w=6)])
    assert _kept(trace, "series", "value") == [("v", 1), ("w", 5), ("w", 6)]


def test_a_counter_without_a_time_is_left_out_alone() -> None:
    trace = trace_of([_sample("p", 1, v=1), _sample("p", "never", v=2), _sample("p", 3, v=3)])
    assert trace.counters["value"].tolist() == [1, 3]


def test_numbers_that_are_written_as_text_count() -> None:
    trace = trace_of([_sample("p", 1, v="12.5"), _sample("p", 2, v="x")])
    assert trace.counters["value"].tolist() == [12.5]


def test_arguments_of_other_events_are_no_samples() -> None:
    kernel = ["kernel", "gemm", 0, 5, {"v": 9, "correlation": 1}]
    trace = trace_of([kernel, _sample("p", 1, v=1), *[kernel] * 40])
    assert trace.counters["value"].tolist() == [1]


@pytest.mark.parametrize(
    ("rows", "device"),
    [
        ([_sample("p", 1, pid=3, v=1)], -1),  # a process of the host, for all that is known
        ([_sample("p", 1, "hardware_counters", pid=3, v=1)], 3),
        ([_sample("p", 1, "mtia_counters", pid=3, v=1)], 3),
        ([_sample("p", 1, pid=3, v=1, device=1)], 1),
        (
            [
                ["", "process_labels", 0, None, {"ph": "M", "pid": 3, "labels": "GPU 5"}],
                _sample("p", 1, pid=3, v=1),
            ],
            5,
        ),
    ],
)
def test_the_device_is_told_by_argument_label_or_category(rows: list[Any], device: int) -> None:
    (row,) = rows_of(trace_of(rows).counters)
    assert row.device == device


@pytest.mark.parametrize(
    ("name", "series", "maker"),
    [
        ("GPU 0 Utilization", "GPU Utilization", "torch-tb-profiler"),
        ("GPU 11 Est. SM Efficiency", "Est. SM Efficiency", "torch-tb-profiler"),
        ("Queue Length", "Queue Length", "HTA"),
        ("Memcpy DtoH", "Memcpy BW", "HTA"),
        ("GPU 0 Power", "GPU Utilization", None),
        ("Utilization", "GPU 0", None),
    ],
)
def test_what_other_tools_derive_is_kept_and_told_apart(
    name: str, series: str, maker: str | None
) -> None:
    trace = trace_of([_valued(name, 1, {series: 0.5}), _sample("other", 2, v=1)])
    table = counter_table(trace).set_index("series")["derived_by"]
    assert table[series] == maker
    assert table["v"] is None


def test_a_sample_holds_until_the_next_one() -> None:
    trace = trace_of(
        [_sample(POWER, at, gpu=value) for at, value in [(0, 100), (10, 300), (40, 5)]]
    )
    (row,) = rows_of(counter_table(trace))
    assert row.mean == pytest.approx((10 * 100 + 30 * 300) / 40)
    assert (row.minimum, row.maximum, row.last, row.sample_count) == (5, 300, 5, 3)
    assert (row.first_ns, row.last_ns) == (0, 40 * US)


def test_samples_of_one_moment_have_the_plain_mean() -> None:
    trace = trace_of([_sample("p", 5, v=1), _sample("p", 5, v=4)])
    (row,) = rows_of(counter_table(trace))
    assert (row.mean, row.last) == (2.5, 4)


def test_tracks_are_told_apart_by_name_series_process_and_identifier() -> None:
    trace = trace_of(
        [
            _sample("q", 1, pid=1, v=1),
            _sample("q", 1, pid=2, v=1),
            _sample("q", 1, pid=1, id="7", v=1),
            _sample("q", 1, pid=1, w=1),
            _sample("q", 2, pid=1, v=1),
        ]
    )
    table = counter_table(trace)[["series", "process", "identifier", "sample_count"]]
    assert rows_of(table) == [
        ("v", "1", "7", 1),
        ("v", "1", None, 2),
        ("v", "2", None, 1),
        ("w", "1", None, 1),
    ]


@pytest.mark.parametrize(
    ("name", "series", "unit"),
    [
        (POWER, "gpu", "W"),
        ("rdma", "rx [bytes/s]", "bytes/s"),
        ("clock (MHz)", "sm (%)", "%"),
        ("utilization", "gpu", None),
    ],
)
def test_the_unit_is_the_series_or_the_counters(name: str, series: str, unit: str | None) -> None:
    (row,) = rows_of(counter_table(trace_of([_valued(name, 1, {series: 1})])))
    assert row.unit == unit


def test_values_at_a_floats_end_are_kept() -> None:
    trace = trace_of([_sample("p", at, v=1.7e308) for at in range(4)])
    (row,) = rows_of(counter_table(trace))
    assert row.maximum == 1.7e308
    assert row.mean > 0


def test_without_counters_the_table_is_empty() -> None:
    assert len(counter_table(trace_of([["cpu_op", "aten::mm", 0, 5]]))) == 0


SAMPLE = st.tuples(
    st.integers(0, 20), st.sampled_from(["a", "b"]), st.sampled_from(["v", "w"]), st.integers(-9, 9)
)


@given(st.lists(SAMPLE, min_size=1, max_size=25))
def test_every_sample_is_in_its_series(samples: list[tuple[int, str, str, int]]) -> None:
    trace = trace_of([_valued(name, at, {key: value}) for at, name, key, value in samples])
    first = min((at for at, *_ in samples), default=0)
    of: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for at, name, key, value in sorted(samples, key=lambda sample: sample[0]):
        of.setdefault((name, key), []).append((at - first, value))
    found = counter_table(trace)
    assert len(found) == len(of)
    for row in rows_of(found):
        times, values = np.array(of[row.name, row.series]).T
        held = np.append(np.diff(times), 0)
        mean = (values * held).sum() / held.sum() if held.any() else values.mean()
        assert row.sample_count == len(values)
        assert (row.minimum, row.maximum, row.last) == (min(values), max(values), values[-1])
        assert row.mean == pytest.approx(mean)
        assert (row.first_ns, row.last_ns) == (times[0] * US, times[-1] * US)
