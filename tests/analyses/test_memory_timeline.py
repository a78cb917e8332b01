"""Memory by what it is for: from files that `export_memory_timeline` wrote."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import rows_of
from stepscope.analyses.memory.file_reports import (
    CURVE_SCHEMA,
    SCHEMA,
    category_curve,
    category_table,
    timeline_peak,
)
from stepscope.base.errors import UnreadableError
from stepscope.ingest import memory_files
from stepscope.ingest.memory_files import MemoryDocument
from stepscope.model.frames.memory_timeline import CATEGORIES, MemoryTimeline, timeline_of

PREEXISTING, CREATE, INCREMENT, DESTROY = 1, 2, 3, 4
PARAMETER, INPUT, TEMPORARY, GRADIENT, UNKNOWN = 0, 2, 3, 5, 7


def _timeline(content: object) -> MemoryTimeline:
    return timeline_of(MemoryDocument(path="memory.json", what="timeline", content=content))


def _sizes(*of_category: tuple[int, int]) -> list[int]:
    row = [0] * (len(CATEGORIES) + 1)  # the first is torch's 0, from which it draws
    for category, size in of_category:
        row[category + 1] = size
    return row


PLAIN = [
    [100, 110, 130],
    [
        _sizes((PARAMETER, 1000)),
        _sizes((PARAMETER, 1000), (TEMPORARY, 500)),
        _sizes((PARAMETER, 1000), (GRADIENT, 400)),
    ],
]
RAW = [
    [-1, PREEXISTING, 1000, PARAMETER],
    [100_000, CREATE, 500, TEMPORARY],
    [100_500, INCREMENT, -500, TEMPORARY],
    [100_500, INCREMENT, 500, GRADIENT],
    [101_000, DESTROY, -500, GRADIENT],
]


def test_what_each_category_held_at_the_peak_and_over_time() -> None:
    timeline = _timeline(PLAIN)
    peak = timeline_peak(timeline)
    assert peak is not None
    assert (peak.time_ns, peak.bytes) == (10_000, 1500)
    table = {row.category: row for row in rows_of(category_table(timeline))}
    assert list(table) == ["parameter", "temporary", "gradient"]
    parameter, temporary, gradient = table.values()
    assert (parameter.at_peak_bytes, temporary.at_peak_bytes, gradient.at_peak_bytes) == (
        1000,
        500,
        0,
    )
    assert temporary.at_peak_share == pytest.approx(1 / 3)
    assert (gradient.most_bytes, gradient.most_ns, gradient.end_bytes) == (400, 30_000, 400)
    assert temporary.mean_bytes == pytest.approx(500 * 20 / 30)


def test_raw_events_are_summed_and_what_was_there_before_stands_at_the_first_time() -> None:
    curve = category_curve(_timeline(RAW))
    assert curve["time_ns"].tolist() == [0, 500, 1000]
    assert curve["total_bytes"].tolist() == [1500, 1500, 1000]
    assert curve["temporary_bytes"].tolist() == [500, 0, 0]
    assert curve["gradient_bytes"].tolist() == [0, 500, 0]


def test_an_empty_timeline_gives_empty_tables_with_their_columns() -> None:
    contents: list[object] = [[[], []], []]
    for content in contents:
        timeline = _timeline(content)
        assert timeline_peak(timeline) is None
        for table, schema in (
            (category_table(timeline), SCHEMA),
            (category_curve(timeline), CURVE_SCHEMA),
        ):
            assert len(table) == 0
            found = {str(name): str(dtype) for name, dtype in table.dtypes.items()}
            assert found == {column.name: column.dtype for column in schema}


def test_tables_have_the_columns_of_their_schemas() -> None:
    timeline = _timeline(PLAIN)
    for table, schema in (
        (category_table(timeline), SCHEMA),
        (category_curve(timeline), CURVE_SCHEMA),
    ):
        found = {str(name): str(dtype) for name, dtype in table.dtypes.items()}
        assert found == {column.name: column.dtype for column in schema}


@pytest.mark.parametrize(
    "content",
    [
        {"traceEvents": []},
        3,
        [[1, 2], [3]],
        [[1], [_sizes()[:-1]]],
        [[1, 2], [_sizes()]],
        [[1.5], [_sizes()]],
        [["1"], [_sizes()]],
        [[1, 9, 10, 0]],
        [[1, CREATE, 10, 8]],
        [[1, CREATE, 10]],
        [[1, CREATE, 2**62, 0]] * 4,
        [[2**70], [_sizes()]],
        [[1], [_sizes((0, 2**60))]],
    ],
)
def test_other_lists_are_no_timelines(content: object) -> None:
    with pytest.raises(UnreadableError, match="not a memory timeline"):
        _timeline(content)


categories = st.integers(0, len(CATEGORIES) - 1)
raw_events = st.lists(
    st.tuples(st.integers(-1, 20), st.sampled_from([1, 2, 4]), st.integers(-99, 99), categories),
    max_size=20,
)


@given(raw_events)
def test_raw_events_add_up_like_a_slow_walk(events: list[tuple[int, int, int, int]]) -> None:
    timeline = _timeline([list(event) for event in events])
    known = [time for time, *_ in events if time >= 0]
    first = min(known, default=0)
    levels: dict[int, list[int]] = {}
    held = [0] * len(CATEGORIES)
    for time, _, change, category in sorted(events, key=lambda e: e[0] if e[0] >= 0 else first):
        held[category] += change
        levels[(time if time >= 0 else first) - first] = list(held)
    assert (
        dict(zip(timeline.time_ns.tolist(), timeline.sizes_bytes.tolist(), strict=True)) == levels
    )


def test_a_picture_is_no_data(tmp_path: Path) -> None:
    path = tmp_path / "memory.html"
    path.write_text('<html>\n<head><meta charset="utf-8" /><title>GPU Memory Timeline HTML</title>')
    with pytest.raises(UnreadableError, match="as a picture") as refused:
        memory_files.read(str(path))
    assert "export_memory_timeline('memory.json.gz')" in refused.value.remedy


def _exported(folder: Path) -> dict[str, Path]:
    """Files of torch itself: a small training on the CPU."""
    torch = pytest.importorskip("torch")
    profiler = torch.profiler
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 4))
    optimizer = torch.optim.Adam(model.parameters())
    options: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], **options) as recording:
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(32, 64)).sum().backward()
            optimizer.step()
    paths = {}
    for name in ("memory.json", "memory.json.gz", "memory.raw.json.gz"):
        paths[name] = folder / name
        with pytest.warns(FutureWarning, match="export_memory_timeline"):
            recording.export_memory_timeline(str(paths[name]), device="cpu")
    return paths


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return _exported(tmp_path_factory.mktemp("timelines"))


def _read(path: Path) -> MemoryTimeline:
    document = memory_files.read(str(path))
    assert document is not None
    assert document.what == "timeline"
    return timeline_of(document)


@pytest.mark.recording
def test_what_torch_exports_is_read_and_its_forms_agree(exported: dict[str, Path]) -> None:
    plain, zipped, raw = (_read(path) for path in exported.values())
    np.testing.assert_array_equal(plain.sizes_bytes, zipped.sizes_bytes)
    assert raw.is_raw
    assert not plain.is_raw
    # all that happens in a microsecond is one point of the plain form
    np.testing.assert_array_equal(plain.sizes_bytes[-1], raw.sizes_bytes[-1])
    assert plain.sizes_bytes.max() <= raw.sizes_bytes.sum(axis=1).max()
    np.testing.assert_array_equal(
        np.unique(raw.sizes_bytes[:, 0]), np.unique(plain.sizes_bytes[:, 0])
    )


@pytest.mark.recording
def test_the_sizes_are_those_in_the_file(exported: dict[str, Path]) -> None:
    times, sizes = json.loads(exported["memory.json"].read_text())
    timeline = _read(exported["memory.json"])
    ascending = np.argsort(times, kind="stable")
    by_time = {times[at] - min(times): sizes[at][1:] for at in ascending}
    found = zip((timeline.time_ns // 1000).tolist(), timeline.sizes_bytes.tolist(), strict=True)
    assert dict(found) == by_time


@pytest.mark.recording
def test_categories_at_the_peak_are_the_sums_of_the_raw_events(exported: dict[str, Path]) -> None:
    table = category_table(_read(exported["memory.raw.json.gz"])).set_index("category")
    events = json.loads(gzip.decompress(exported["memory.raw.json.gz"].read_bytes()))
    held = dict.fromkeys(CATEGORIES, 0)
    most: dict[str, int] = {}
    for place, (time, _, size, category) in enumerate(events):
        held[list(CATEGORIES)[category]] += size
        is_last_of_its_time = time not in [event[0] for event in events[place + 1 : place + 2]]
        if time >= 0 and is_last_of_its_time and sum(held.values()) > sum(most.values()):
            most = dict(held)
    found = table["at_peak_bytes"].to_dict()
    assert found == {name: most[str(name)] for name in found}
    assert table["at_peak_share"].sum() == pytest.approx(1)
    # by how they are used torch tells what they are for; it finds a transposed weight's copy too
    assert found["parameter"] >= 4 * (64 * 128 + 128 + 128 * 4 + 4)
    assert {"optimizer_state", "gradient", "input"} <= set(found)
