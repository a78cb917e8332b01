"""A part of a recording as a file: the same events, whole, and valid for other readers."""

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import tracebuild
from generated import examples
from loading import SHARED_TRACES, shared_trace_names
from stepscope.analyses.core.trace_cut import cut, time_of_steps
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.cli import cli
from stepscope.model.read import read_trace
from stepscope.model.trace import Trace
from stepscope.render import trace_excerpt
from stepscope.render.trace_excerpt import Request, write
from stepscope.storage import discover

US = 1000
Event = dict[str, Any]


def _trace(path: Path) -> Trace:
    """A recording that knows where its file is."""
    (file,) = discover.at(str(path))
    return read_trace(file)


def _file(folder: Path, rows: Sequence[tracebuild.Row], extra: Sequence[Event] = ()) -> Path:
    document = tracebuild.document(rows=rows)
    document["traceEvents"].extend(extra)
    path = folder / "worker.1.pt.trace.json"
    path.write_text(json.dumps(document))
    return path


def _cut_file(
    path: Path, start_us: int, end_us: int, *, is_repaired: bool = True
) -> dict[str, Any]:
    target = path.with_name("part.json")
    time_ns = start_us * US, end_us * US
    write(_trace(path), Request(path=str(target), time_ns=time_ns, is_repaired=is_repaired))
    found: dict[str, Any] = json.loads(target.read_text(), parse_constant=pytest.fail)
    return found


def _names(document: dict[str, Any]) -> list[str]:
    return [event["name"] for event in document["traceEvents"]]


ROWS: list[Any] = [
    ["cpu_op", "first", 0, 1],
    ["user_annotation", "ProfilerStep#1", 10, 90],
    ["user_annotation", "ProfilerStep#2", 100, 100],
    ["cpu_op", "aten::before", 50, 50],
    ["cpu_op", "aten::over", 90, 20, {"tid": 7}],
    ["cpu_op", "aten::mm", 120, 30, {"Input Dims": [[8, 8], [8, 8]], "External id": 7}],
    ["cuda_runtime", "cudaLaunchKernel", 130, 5, {"correlation": 1}],
    ["kernel", "gemm", 260, 40, {"correlation": 1, "grid": [1, 2, 3]}],
    ["kernel", "other", 310, 40, {"correlation": 2}],
    ["cpu_op", "aten::after", 200, 50],
]


def test_the_host_in_the_time_and_what_it_launched_are_kept(tmp_path: Path) -> None:
    document = _cut_file(_file(tmp_path, ROWS), 100, 200)
    assert _names(document) == [
        "ProfilerStep#2",
        "aten::over",
        "aten::mm",
        "cudaLaunchKernel",
        "gemm",
    ]


def test_events_keep_all_their_fields_and_the_file_its_header(tmp_path: Path) -> None:
    path = _file(tmp_path, ROWS)
    before = json.loads(path.read_text())
    after = _cut_file(path, 100, 200)
    kept = [event for event in before["traceEvents"] if event["name"] in _names(after)]
    assert after.pop("traceEvents") == kept
    note = after.pop(trace_excerpt.NOTE)
    assert note == {"start_ns": 100 * US, "end_ns": 200 * US, "shortened_count": 0}
    del before["traceEvents"]
    assert after == before


def test_counters_and_instants_of_the_time_and_all_metadata_rows_are_kept(tmp_path: Path) -> None:
    extra = [
        {"ph": "C", "name": "power", "pid": 3, "ts": 99, "args": {"watts": 1.5}},
        {"ph": "C", "name": "power", "pid": 3, "ts": 100, "args": {"watts": 2.25, "limit": 700}},
        {"ph": "C", "name": "power", "pid": 3, "ts": 200, "args": {"watts": 3}},
        {"ph": "M", "name": "process_name", "pid": 3, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 3, "tid": 4, "args": {"name": "loader"}},
        {"ph": "i", "name": "mark", "pid": 3, "tid": 4, "ts": 150, "s": "t"},
        {"ph": "i", "name": "late", "pid": 3, "tid": 4, "ts": 250, "s": "t"},
    ]
    events = _cut_file(_file(tmp_path, [ROWS[0]], extra), 100, 200)["traceEvents"]
    assert events == [extra[1], extra[3], extra[4], extra[5]]


def test_arrows_are_kept_where_both_their_ends_are(tmp_path: Path) -> None:
    def arrow(number: int, phase: str, at: float, **place: int) -> Event:
        spot = {"pid": tracebuild.PROCESS_ID, "tid": tracebuild.PROCESS_ID, **place}
        return {"ph": phase, "id": number, "cat": "ac2g", "name": "ac2g", "ts": at, **spot}

    extra = [
        arrow(1, "s", 130),
        arrow(1, "f", 260, pid=0, tid=7),  # the kernel that is kept, behind the time
        arrow(2, "s", 60),
        arrow(2, "f", 140),
        arrow(3, "s", 150),
        arrow(3, "f", 310, pid=0, tid=7),
    ]
    events = _cut_file(_file(tmp_path, ROWS, extra), 100, 200)["traceEvents"]
    assert [event for event in events if event.get("cat") == "ac2g"] == extra[:2]


def test_what_crosses_is_shortened_told_and_left_on_demand(tmp_path: Path) -> None:
    rows = [
        ["python_function", "main", 0, 200],
        ["python_function", "__enter__", 10, 10],
        ["user_annotation", "forward", 15, 100],
    ]
    path = _file(tmp_path, rows)
    document = _cut_file(path, 0, 200)
    durations = {event["name"]: event["dur"] for event in document["traceEvents"]}
    assert durations == {"main": 200, "__enter__": 5, "forward": 100}
    assert document[trace_excerpt.NOTE]["shortened_count"] == 1
    before = json.loads(path.read_text())["traceEvents"]
    as_recorded = _cut_file(path, 0, 200, is_repaired=False)
    assert as_recorded["traceEvents"] == before


def test_a_damaged_event_is_written_as_it_was_read(tmp_path: Path) -> None:
    path = tmp_path / "worker.1.pt.trace.json"
    path.write_bytes(
        b'{"traceEvents": [\n'
        b'{"ph": "X", "cat": "cpu_op", "name": "a\xff", "pid": 1, "tid": 1, "ts": 1.250, "dur": 2},'
        b'{"ph": "X", "cat": "cpu_op", "name": "b", "pid": 1, "tid": 1, "ts": 4, "dur": 2.100, '
        b'"args": {"x": N/A, "y": NaN, "path": "C:\\work"}} , {"ph": "X", "broken\n'
        b',{"ph": "X", "cat": "cpu_op", "name": "c\x01", "pid": 1, "tid": 1, "ts": 7, "dur": 1}'
    )
    events = _cut_file(path, -1, 100)["traceEvents"]
    assert [event["name"] for event in events] == ["a\ufffd", "b", "c\x01"]
    assert events[1]["args"] == {"x": None, "y": None, "path": "C:\\work"}
    assert (events[0]["ts"], events[1]["dur"]) == (1.25, 2.1)


TIMES = st.integers(0, 60)
ROWS_OF_ANY_KIND = st.lists(
    st.tuples(
        st.sampled_from(["cpu_op", "python_function", "kernel", "user_annotation"]),
        st.sampled_from(["a", "b;c", "ProfilerStep#1", 'say "so"\\', "\u00fc"]),
        TIMES,
        st.integers(0, 20),
        st.fixed_dictionaries({"tid": st.integers(1, 2), "correlation": st.integers(-1, 2)}),
    ),
    min_size=1,
    max_size=12,
)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS_OF_ANY_KIND, start=TIMES, length=st.integers(1, 40), is_packed=st.booleans())
def test_reading_it_again_gives_the_same_events(
    tmp_path: Path, rows: list[Any], start: int, length: int, *, is_packed: bool
) -> None:
    trace = _trace(_file(tmp_path, rows))
    origin_us = trace.columns.origin_ns // US
    target = tmp_path / ("part.json.gz" if is_packed else "part.json")
    part = cut(trace, start * US, (start + length) * US, is_repaired=False)
    time_ns = part.start_ns, part.end_ns
    write(trace, Request(path=str(target), time_ns=time_ns, is_repaired=False))
    everything = json.loads((tmp_path / "worker.1.pt.trace.json").read_text())["traceEvents"]
    expected = [everything[row] for row in part.events.tolist()]
    written = target.read_bytes()
    document = json.loads(gzip.decompress(written) if is_packed else written)
    assert document["traceEvents"] == expected
    begin, end = start + origin_us, start + length + origin_us
    assert [event for event in everything if _is_in(event, begin, end)] == [
        event for event in expected if _is_in(event, begin, end)
    ]
    if expected:
        assert _told(_trace(target)) == _told(trace, part.events)


def _is_in(event: Event, begin: float, end: float) -> bool:
    """Whether a slice runs in a time; one of no length, whether it begins there."""
    return bool(begin <= event["ts"] < end or event["ts"] < begin < event["ts"] + event["dur"])


def _told(trace: Trace, events: Any = None) -> list[tuple[Any, ...]]:
    """Events as they are read: stamp, duration, texts and arguments."""
    columns = trace.columns
    rows = range(len(columns)) if events is None else events.tolist()
    strings = (*columns.strings, None)
    arguments: dict[int, dict[str, Any]] = {row: {} for row in rows}
    for key, column in columns.arguments.items():
        for row, value in zip(column.rows.tolist(), column.values.tolist(), strict=True):
            if row in arguments:
                arguments[row][key] = column.texts[value] if column.texts else value
    return [
        (
            int(columns.start_ns[row]) + columns.origin_ns,
            int(columns.duration_ns[row]),
            *(strings[codes[row]] for codes in (columns.name, columns.category, columns.tid)),
            sorted((key, str(value)) for key, value in arguments[row].items()),
        )
        for row in rows
    ]


@pytest.mark.parametrize("name", shared_trace_names())
def test_a_real_traces_part_is_read_as_the_same_events(name: str, tmp_path: Path) -> None:
    trace = _trace(SHARED_TRACES / name)
    part = cut(trace, 1_000_000, 3_000_000, is_repaired=False)
    target = tmp_path / "part.json.gz"
    with target.open("wb") as sink:
        assert trace_excerpt.write_events(trace, part, sink).lost_count == 0
    again = _trace(target)
    assert _told(again) == _told(trace, part.events)
    assert {**again.metadata, trace_excerpt.NOTE: 0} == {**trace.metadata, trace_excerpt.NOTE: 0}
    assert not again.columns.incidents


@pytest.mark.parametrize("name", shared_trace_names("tracelens"))
def test_a_real_traces_slices_nest_afterwards_and_lose_little(name: str) -> None:
    trace = _trace(SHARED_TRACES / name)
    part = cut(trace, 0, 10**15)
    slices = trace.columns.duration_ns
    lost_ns = int((slices[part.shortened] - part.duration_ns).sum())
    assert 0 <= lost_ns < 0.01 * slices[part.events].clip(0).sum()


def test_steps_are_found_by_their_numbers(tmp_path: Path) -> None:
    trace = _trace(_file(tmp_path, ROWS))
    assert time_of_steps(trace, 1, 2) == (10 * US, 200 * US)
    assert time_of_steps(trace, 2, 9) == (100 * US, 200 * US)
    with pytest.raises(UsageError, match="there are 1 to 2"):
        time_of_steps(trace, 3, 4)
    with pytest.raises(MissingDataError, match="no steps"):
        time_of_steps(_trace(_file(tmp_path, ROWS[3:])), 1, 1)


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def test_the_command_writes_steps_and_tells_what_it_wrote(tmp_path: Path) -> None:
    path, target = _file(tmp_path, ROWS), tmp_path / "part.json.gz"
    result = _run("cut", str(path), "--steps", "2", "-o", str(target))
    assert result.exit_code == 0, result.output
    told = f"stepscope: 5 of 10 events, 0.100 to 0.200 ms, are in {target}\n"
    assert result.stderr == told
    assert len(json.loads(gzip.decompress(target.read_bytes()))["traceEvents"]) == 5


def test_the_command_refuses_what_makes_no_sense(tmp_path: Path) -> None:
    path, target = str(_file(tmp_path, ROWS)), str(tmp_path / "part.json")
    wrong = {
        "give --start and --end, or --steps": (),
        "--end must come after --start": ("--start", "2", "--end", "1"),
        "not 'x-3'": ("--steps", "x-3"),
        "not '5-3'": ("--steps", "5-3"),
        "there are 1 to 2": ("--steps", "7"),
        "give --steps, or --start and --end": ("--steps", "1", "--start", "2"),
    }
    for message, arguments in wrong.items():
        result = _run("cut", path, *arguments, "-o", target)
        assert result.exit_code == 2
        assert message in result.stderr
    assert not Path(target).exists()
    result = _run("cut", path, "--steps", "1", "-o", str(tmp_path / "absent" / "part.json"))
    assert (result.exit_code, "No such file or directory" in result.stderr) == (2, True)


def test_of_several_recordings_one_must_be_chosen(tmp_path: Path) -> None:
    path = _file(tmp_path, ROWS)
    path.with_name("other.2.pt.trace.json").write_text(path.read_text())
    target = tmp_path / "cut"
    arguments = ("cut", str(tmp_path), "--steps", "2", "-o", str(target))
    result = _run(*arguments)
    assert result.exit_code == 2
    assert "this command needs one trace, but there are 2" in result.stderr
    assert _run(*arguments, "--worker", "other").exit_code == 0
    assert target.exists()
