"""The public tables as the API answers with them: bounded, in any order, of recordings and runs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask.testing
import msgspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import trace_at
from logs import write_run
from stepscope.api.app import create_app
from stepscope.api.messages import Table
from stepscope.api.public_tables import RowOrder, cells, columns_of, shown_table
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.model.frames import Column
from stepscope.readers.pool import InProcessReader
from stepscope.tables import RunTable, all_tables
from stepscope.tables import Table as PublicTable

pytestmark = pytest.mark.frames

SAMPLE = Path(__file__).resolve().parents[1] / "sample_logs"
RUN_TABLES = [name for name, table in all_tables().items() if isinstance(table, RunTable)]


class _AtOnce:
    def submit(self, job: Callable[[], None], /) -> None:
        job()


@pytest.fixture
def client(tmp_path: Path) -> flask.testing.FlaskClient:
    write_run(tmp_path / "log", "a", "b")
    catalog = Catalog(
        [LogDirectory(path=str(tmp_path / "log"))],
        CatalogOptions(executor=_AtOnce(), reader=InProcessReader()),
    )
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog).test_client()


def _ids(client: flask.testing.FlaskClient) -> tuple[str, str]:
    [run] = client.get("/api/runs").get_json()["runs"]
    return run["id"], run["workers"][0]["spans"][0]["trace"]


def _table(client: flask.testing.FlaskClient, query: str) -> Table:
    _, trace = _ids(client)
    response = client.get(f"/api/traces/{trace}/tables/{query}")
    assert response.status_code == 200, response.get_json()
    return msgspec.json.decode(response.data, type=Table)


def test_every_table_is_in_the_list(client: flask.testing.FlaskClient) -> None:
    listed = client.get("/api/tables").get_json()["tables"]
    assert [each["name"] for each in listed] == list(all_tables())
    assert [each["name"] for each in listed if each["is_of_run"]] == RUN_TABLES


def test_a_table_has_all_its_columns_and_rows(client: flask.testing.FlaskClient) -> None:
    table = _table(client, "kernel-events")
    keys = [column.key for column in table.columns]
    assert keys[:2] == ["name", "event"]
    assert set(keys) == {column.name for column in all_tables()["kernel-events"].schema}
    assert (table.row_count, table.all_row_count) == (4, 4)
    assert table.values["name"] == ["gemm"] * 4
    assert table.values["kind"] == ["kernel"] * 4
    assert table.values["start_ns"] == [200_000, 10_200_000, 20_200_000, 30_200_000]
    assert table.title == "Kernel events"


def test_the_first_rows_are_those_of_the_order_that_is_asked_for(
    client: flask.testing.FlaskClient,
) -> None:
    last = _table(client, "kernel-events?sort=start_ns&limit=1")
    assert (last.row_count, last.all_row_count, last.sort) == (1, 4, "start_ns")
    assert last.values["start_ns"] == [30_200_000]
    first = _table(client, "kernel-events?sort=start_ns&descending=false&limit=2")
    assert first.values["start_ns"] == [200_000, 10_200_000]


def test_a_search_covers_all_rows_and_the_count_is_of_all(
    client: flask.testing.FlaskClient,
) -> None:
    whole = _table(client, "host-calls")
    assert whole.match_count is None
    names = [str(name) for name in whole.values["name"]]
    assert "aten::mm" in names
    cut = _table(client, "host-calls?limit=1&search=ATEN%3A%3AMM")
    assert cut.values["name"] == ["aten::mm"]
    assert (cut.row_count, cut.match_count) == (1, names.count("aten::mm"))
    assert cut.all_row_count == len(names)
    none = _table(client, "host-calls?search=nowhere")
    assert (none.row_count, none.match_count, none.empty) == (0, 0, "")


def test_a_search_reads_cells_as_they_are_shown(client: flask.testing.FlaskClient) -> None:
    kernels = _table(client, "kernel-events?search=kernel&limit=1")
    assert (kernels.row_count, kernels.match_count) == (1, 4), "the kind is a code in the frame"
    ordered = _table(client, "kernel-events?search=gemm&sort=start_ns&limit=1")
    assert ordered.values["start_ns"] == [30_200_000]


def test_a_table_is_of_the_time_that_is_asked_for(client: flask.testing.FlaskClient) -> None:
    second = _table(client, "kernel-events?start_ns=10000000&end_ns=20000000")
    assert second.values["start_ns"] == [10_200_000]


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("kernel-evnts", 400, "kernel-events"),
        ("ranks", 400, "runs/<run>/tables/ranks"),
        ("kernel-events?sort=length", 400, "no column 'length'"),
        ("kernel-events?limit=0", 400, ">= 1"),
        ("kernel-events?limit=200001", 400, "<= 200000"),
        ("modules", 422, "module calls"),
    ],
)
def test_what_cannot_be_answered_says_why(
    client: flask.testing.FlaskClient, query: str, status: int, words: str
) -> None:
    _, trace = _ids(client)
    response = client.get(f"/api/traces/{trace}/tables/{query}")
    assert (response.status_code, words in response.get_json()["message"]) == (status, True)


def test_what_was_not_recorded_comes_with_the_line_that_records_it(
    client: flask.testing.FlaskClient,
) -> None:
    _, trace = _ids(client)
    refusal = client.get(f"/api/traces/{trace}/tables/modules").get_json()
    assert refusal["code"] == "not-recorded"
    assert "with_stack=True" in refusal["hint"]


@pytest.mark.parametrize("name", RUN_TABLES)
def test_a_runs_table_is_answered_or_says_what_it_lacks(
    client: flask.testing.FlaskClient, name: str
) -> None:
    run, _ = _ids(client)
    response = client.get(f"/api/runs/{run}/tables/{name}")
    if response.status_code == 200:
        table = msgspec.json.decode(response.data, type=Table)
        assert {column.key for column in table.columns} == set(table.values)
    else:
        assert (response.status_code, response.get_json()["code"]) == (422, "not-recorded")
        assert response.get_json()["message"]


def test_the_ranks_of_a_run_are_a_table(client: flask.testing.FlaskClient) -> None:
    run, _ = _ids(client)
    response = client.get(f"/api/runs/{run}/tables/ranks")
    table = msgspec.json.decode(response.data, type=Table)
    assert table.values["worker"] == ["a", "b"]


@pytest.mark.parametrize("path", ["synthetic_dataloader", "masking"])
def test_every_table_of_a_recording_can_be_shown(path: str) -> None:
    """On a GPU, and on a CPU alone: every column of every table has a value of JSON a row."""
    trace = trace_at(min((SAMPLE / path).rglob("*.gz")))
    for name, table in all_tables().items():
        if isinstance(table, RunTable):
            continue
        try:
            frame = table.build(trace)
        except MissingDataError:
            continue
        shown = shown_table(table, frame, RowOrder(), trace)
        again = msgspec.json.decode(msgspec.json.encode(shown), type=Table)
        assert again == shown, name
        assert {key: len(values) for key, values in shown.values.items()} == {
            column.key: len(frame) for column in shown.columns
        }


@pytest.mark.parametrize("name", all_tables())
def test_no_two_columns_of_a_table_are_called_the_same(name: str) -> None:
    columns = columns_of(all_tables()[name])
    assert len({column.label for column in columns}) == len(columns)
    assert all(column.label[:1] == column.label[:1].upper() for column in columns)


def test_labels_are_names_in_words_and_units_tell_twins_apart() -> None:
    schema = (
        Column("host_self_ns", "int64", "ns", "."),
        Column("memory_ns", "int64", "ns", "."),
        Column("memory_bytes", "int64", "bytes", "."),
        Column("is_users", "bool", "", "."),
        Column("bus_bytes_per_second", "float64", "bytes/s", "."),
        Column("occupancy_share", "float64", "share", "."),
        Column("grid", "object", "text", "."),
        Column("event", "int64", "id", "."),
        Column("drift_ppm", "float64", "ppm", "."),
    )
    table = PublicTable(title="T", meaning=".", schema=schema, build=lambda _: pd.DataFrame())
    assert [(each.label, each.unit) for each in columns_of(table)] == [
        ("Host self", "ns"),
        ("Memory time", "ns"),
        ("Memory size", "bytes"),
        ("Users", "text"),
        ("Bus bandwidth", "bytes/s"),
        ("Occupancy share", "share"),
        ("Grid", "code"),
        ("Event", "text"),
        ("Drift ppm", "count"),
    ]


def test_a_number_that_a_browser_would_round_is_sent_as_text() -> None:
    assert cells(pd.Series([1, 2**53], dtype="int64"), "text") == ["1", str(2**53)]
    assert cells(pd.Series([1, 2**53 - 1], dtype="int64"), "text") == [1, 2**53 - 1]
    for amount in ("count", "ns", "bytes"):  # 9 PFLOPs are no id, and are sorted as numbers
        assert cells(pd.Series([1, 2**60], dtype="int64"), amount) == [1, 2**60]


def test_times_are_whole_and_what_is_not_known_is_null() -> None:
    assert cells(pd.Series([1.4, np.nan, np.inf]), "ns") == [1, None, None]
    assert cells(pd.Series([1.4, 1e30]), "bytes") == [1, int(1e30)], "beyond 64 bits"
    assert cells(pd.Series([1.4, np.nan]), "share") == [1.4, None]
    assert cells(pd.Series([True, None], dtype=object), "text") == ["yes", None]
    assert cells(pd.Series([1, None], dtype="Int64"), "text") == [1, None]


VALUES: Any = st.one_of(
    st.lists(st.floats(allow_infinity=False), max_size=30),
    st.lists(st.sampled_from(["b", "A", "a", "", None]), max_size=30),
    st.lists(st.booleans(), max_size=30),
)


@given(values=VALUES, is_descending=st.booleans(), limit=st.integers(1, 40))
def test_an_order_is_a_stable_one_with_what_is_missing_last(
    *, values: list[Any], is_descending: bool, limit: int
) -> None:
    kind = object if any(isinstance(each, str) or each is None for each in values) else None
    frame = pd.DataFrame({"key": pd.Series(values, dtype=kind)})
    order = RowOrder(key="key", is_descending=is_descending, limit=limit)

    def rank(place: int) -> Any:
        value = values[place]
        return value.lower() if isinstance(value, str) else value

    def is_missing(place: int) -> bool:
        return values[place] is None or values[place] != values[place]

    known = [place for place in range(len(values)) if not is_missing(place)]
    missing = [place for place in range(len(values)) if is_missing(place)]
    # Python's own sort keeps equals in their order the other way round, too
    expected = sorted(known, key=rank, reverse=is_descending) + missing
    assert order.rows(frame).tolist() == expected[:limit]


def test_without_a_key_rows_keep_their_order() -> None:
    frame = pd.DataFrame({"key": [1, 3, 2]})
    assert RowOrder(limit=2).rows(frame).tolist() == [0, 1]
    with pytest.raises(UsageError, match="no column 'other'"):
        RowOrder(key="other").rows(frame)
