"""Files about memory are told by their content; whatever is in them is read or refused."""

import json
import pickle
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from stepscope.analyses.memory.file_reports import report_of_snapshot, report_of_timeline
from stepscope.base.errors import UnreadableError
from stepscope.ingest import memory_files
from stepscope.model.frames.memory_snapshot import snapshot_of
from stepscope.model.frames.memory_timeline import timeline_of
from stepscope.render import memory_report as rendered

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=12,
)
rows = st.lists(st.lists(st.integers(-(2**63), 2**63), max_size=9) | plain, max_size=4)
snapshots = st.fixed_dictionaries(
    {"segments": plain | st.lists(st.dictionaries(st.sampled_from(["blocks", "device"]), plain))},
    optional={"device_traces": plain, "allocator_settings": plain},
)
contents = st.one_of(
    st.binary(max_size=64),
    st.binary(max_size=64).map(lambda rest: b"\x80\x04" + rest),
    snapshots.map(pickle.dumps),
    snapshots.map(lambda value: json.dumps(value).encode()),
    rows.map(lambda value: json.dumps(value).encode()),
    st.tuples(rows, rows).map(lambda value: json.dumps(value).encode()),
)


def _told(path: str) -> str:
    document = memory_files.read(path)
    if document is None:
        return ""
    if document.what == "timeline":
        return rendered.text(report_of_timeline(timeline_of(document), most_rows=3))
    return rendered.text(report_of_snapshot(snapshot_of(document.content, path), most_rows=3))


@examples(300)
@given(contents)
def test_any_file_is_told_of_or_refused_with_a_reason(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, suppress(UnreadableError):
        path = Path(folder, "file")
        path.write_bytes(content)
        _told(str(path))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b'{"traceEvents": []}', None),
        (b'[{"ph": "X", "name": "a"}]', None),
        (b"[]", None),
        (b"text", None),
        (b"", None),
        (b"[[], []]", "timeline"),
        (b"[[1], [[0, 0, 0, 0, 0, 0, 0, 0, 0]]]", "timeline"),
        (b" [ [-1, 1, 64, 0]]", "timeline"),
        (b'{"segments": []}', "snapshot"),
        (b'{"device_traces": [], "segments": []}', "snapshot"),
        (b'[{"device": 0, "address": 1, "total_size": 2, "blocks": []}]', "snapshot"),
        (pickle.dumps({"segments": []}, 2), "snapshot"),
    ],
)
def test_what_a_file_is_is_told_by_its_first_bytes(
    tmp_path: Path, content: bytes, what: str | None
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    document = memory_files.read(str(path))
    assert (document and document.what) == what
