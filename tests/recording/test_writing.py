"""A trace's file: completed with one more key, or not there at all."""

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.recording.writing import IncompleteError, write

EVENTS = (
    '{"schemaVersion": 1, "traceEvents": [\n {"name": "a}]", "args": {"x": [1]}},\n {"b": 2}\n ]'
)
KINETO = EVENTS + ',"traceName": "{path}" }'
OLDER_KINETO = EVENTS + ',\n  "traceName": "{path}",\n  "displayTimeUnit": "ms"\n}\n'
UNNAMED = EVENTS + "\n}\n"


def written(folder: Path, content: str, name: str = "one.1.pt.trace.json") -> Path:
    """Write what an exporter writes, which knows the path that it was given."""

    def export(path: str) -> None:
        Path(path).write_text(content.replace("{path}", path))

    assert write(folder / name, export, "stepscope", '{"schema": 1}')
    return folder / name


@pytest.mark.parametrize("content", [KINETO, OLDER_KINETO, UNNAMED])
@pytest.mark.parametrize("name", ["one.1.pt.trace.json", "one.1.pt.trace.json.gz"])
def test_a_key_is_put_behind_the_others(tmp_path: Path, content: str, name: str) -> None:
    path = written(tmp_path, content, name)
    data = gzip.decompress(path.read_bytes()) if name.endswith(".gz") else path.read_bytes()
    expected = {**json.loads(content.replace("{path}", path.name)), "stepscope": {"schema": 1}}
    assert json.loads(data) == expected
    assert list(tmp_path.iterdir()) == [path]


@given(st.sampled_from([KINETO, OLDER_KINETO, UNNAMED]), st.integers(1))
def test_a_trace_that_was_cut_anywhere_is_no_trace(content: str, cut: int) -> None:
    whole = content.rstrip()
    part = whole[: -(1 + cut % len(whole))]
    with tempfile.TemporaryDirectory() as folder:
        with pytest.raises(IncompleteError, match="torch could not write the whole trace"):
            written(Path(folder), part)
        assert list(Path(folder).iterdir()) == []


def test_an_exporter_that_writes_nothing_is_told(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match=f"the whole trace to {tmp_path}"):
        write(tmp_path / "one.pt.trace.json", lambda path: Path(path).unlink(), "stepscope", "{}")


def test_a_trace_that_is_a_list_is_kept_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "one.pt.trace.json"
    assert not write(path, lambda to: Path(to).write_text('[{"ph": "X"}]\n'), "stepscope", "{}")
    assert path.read_text() == '[{"ph": "X"}]\n'


def test_a_long_trace_is_completed_at_its_end(tmp_path: Path) -> None:
    events = ",".join('{"name": "traceName"}' for _ in range(20_000))
    content = f'{{"traceEvents": [{events}], "traceName": "{{path}}"}}'
    path = written(tmp_path, content)
    trace = json.loads(path.read_text())
    assert len(trace["traceEvents"]) == 20_000
    assert (trace["traceName"], trace["stepscope"]) == (path.name, {"schema": 1})


def test_the_folders_above_are_made(tmp_path: Path) -> None:
    assert written(tmp_path / "log" / "run", KINETO).exists()
