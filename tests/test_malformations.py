"""Files as bad exporters, broken disks and attackers write them: what is kept, and the report.

Each test is of every reader, and compares all that is reported: kind, count, lost bytes, and of
each example its place in the inflated file and its text.
"""

import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest

from loading import columns_of
from stepscope.ingest import EventColumns, reader, scanned
from stepscope.ingest.repair import BeyondRepairError, mended

READERS = {"compiled": "0", "python": "1", "one-by-one": reader.ONE_BY_ONE}


@pytest.fixture(scope="module", params=READERS, autouse=True)
def _reader(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "compiled" and not scanned.IS_BUILT:
        pytest.skip("the scanner is not built here: no C compiler")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(reader.FORCED, READERS[request.param])
        yield


def _event(name: str, **fields: Any) -> str:
    return json.dumps({"ph": "X", "name": name, "ts": 1, "dur": 1} | fields)


def _names(columns: EventColumns) -> list[str | None]:
    return [columns.strings[code] if code >= 0 else None for code in columns.name]


def _kinds(columns: EventColumns) -> dict[str, int]:
    return {incident.kind: incident.count for incident in columns.incidents}


# --- what can be mended ----------------------------------------------------------------------


@pytest.mark.parametrize("damaged", ['{"ph":"X","a":[{"b":1}}', '{"ph":"X","a":[1}', '{"a":[:1]}'])
def test_a_list_that_ends_as_an_object_costs_its_event(damaged: str) -> None:
    columns = columns_of(f"[{_event('before')},{damaged},{_event('after')}]")
    assert _names(columns) == ["before", "after"]
    assert _kinds(columns) == {"skipped-events": 1}


def test_many_damages_in_one_event_are_one_example() -> None:
    columns = columns_of(f'[{{"ph":"X","a":[1{"," * 9},N/A,nan],"name":"a"}}]')
    assert _kinds(columns) == {"bare-word": 2, "extra-comma": 9}
    assert [len(incident.examples) for incident in columns.incidents] == [1, 1]


def test_a_text_of_millions_of_escapes_costs_no_more_memory_than_it_is_long() -> None:
    text = '{"a":"' + "\\n" * 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(BeyondRepairError):
            mended(text)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < len(text)
