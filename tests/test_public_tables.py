"""Every public table, on every recording at hand: its columns are what its schema says."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import pandas as pd
import pytest

from loading import ROOT, SHARED_TRACES, shared_trace_names, trace_at
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.model.trace import Trace
from stepscope.tables import AnyTable, RunTable, all_tables, find

pytestmark = pytest.mark.frames

SAMPLES = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("sample_logs/*/*/*.gz"))
UNIT_SUFFIXES = ("ns", "bytes", "share", "count")


@cache
def _recording(name: str) -> Trace:
    folder = ROOT if name.startswith("sample_logs/") else SHARED_TRACES
    return trace_at(folder / name)


@pytest.fixture(params=[*SAMPLES[::4], *shared_trace_names()])
def recording(request: pytest.FixtureRequest) -> Iterator[Trace]:
    trace = _recording(request.param)
    yield trace
    trace.results.clear()


def _built(table: AnyTable, trace: Trace) -> pd.DataFrame:
    if isinstance(table, RunTable):
        return table.build([table.part(trace)])
    return table.build(trace)


def test_every_table_has_the_columns_that_its_schema_says(recording: Trace) -> None:
    wrong: dict[str, Any] = {}
    for name, table in all_tables().items():
        try:
            frame = _built(table, recording)
        except MissingDataError as missing:
            if not missing.reason:
                wrong[name] = "withheld without a reason"
            continue
        wanted = {column.name: column.dtype for column in table.schema}
        found = {str(column): str(dtype) for column, dtype in frame.dtypes.items()}
        if list(found.items()) != list(wanted.items()):
            wrong[name] = set(found.items()) ^ set(wanted.items()) or "other order"
    assert not wrong


@pytest.mark.parametrize("name", all_tables())
def test_every_column_says_what_it_holds(name: str) -> None:
    table = all_tables()[name]
    assert table.title
    assert table.meaning.endswith(".")
    assert len({column.name for column in table.schema}) == len(table.schema)
    for column in table.schema:
        assert column.meaning.endswith("."), column
        for unit in UNIT_SUFFIXES:
            if column.name.endswith(f"_{unit}"):
                assert column.unit == unit, column


def test_a_name_that_is_nearly_a_table_is_corrected() -> None:
    with pytest.raises(UsageError, match=r"'operator'\. Did you mean operators"):
        find("operator")
