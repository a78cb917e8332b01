"""Counters and the critical path in a trace: added to it, exactly, and nothing else changed."""

import gzip
import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import tracebuild
from generated import examples
from loading import SAMPLE_LOGS
from stepscope.analyses.core.counter_table import counter_table
from stepscope.analyses.devices.memory_bandwidth import bandwidth_series
from stepscope.analyses.devices.queue_length import queue_series
from stepscope.analyses.idle.critical_path_tables import critical_path_segments
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.cli import cli
from stepscope.model.read import read_trace
from stepscope.model.trace import Trace
from stepscope.render.drawn_events import DRAWINGS
from stepscope.render.trace_excerpt import Request, write
from stepscope.storage import discover

Event = dict[str, Any]
BOTH = ("--with", "counters", "--with", "critical-path")
FRAMES = (
    "host_calls",
    "runtime_calls",
    "device_events",
    "copies",
    "memory",
    "python_calls",
    "steps",
)
RUNS = ("synthetic_dataloader/fault", "synthetic_item_sync/fault", "ranks/one_slow_rank")
ROWS: list[list[Any]] = [
    ["user_annotation", "ProfilerStep#1", 0, 100],
    ["cuda_runtime", "cudaLaunchKernel", 10, 4, {"correlation": 1}],
    ["kernel", "gemm", 20, 30, {"correlation": 1}],
    ["cuda_runtime", "cudaMemcpyAsync", 16, 4, {"correlation": 2}],
    ["gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 51, 10, {"correlation": 2, "bytes": 20_000}],
    ["cuda_runtime", "cudaStreamSynchronize", 22, 41, {"correlation": 3}],
    ["cpu_op", "aten::add", 70, 30],
]  # fmt: skip


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["cut", *(str(argument) for argument in arguments)])


def trace_in(path: Path) -> Trace:
    (file,) = discover.at(str(path))
    return read_trace(file)


def file_of(folder: Path, rows: Sequence[Any]) -> Path:
    path = folder / "worker.1.pt.trace.json"
    path.write_text(json.dumps(tracebuild.document(rows=rows)))
    return path


def events_in(path: Path) -> list[Event]:
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    events: list[Event] = json.loads(text, parse_float=Decimal, parse_constant=pytest.fail)[
        "traceEvents"
    ]
    return events


def drawn(path: Path, *arguments: str) -> tuple[list[Event], list[Event]]:
    """The events of the annotated trace: the file's, and the added ones."""
    target = path.with_name("annotated.json.gz")
    result = run(path, *arguments, "-o", target)
    assert result.exit_code == 0, result.output
    events = events_in(target)
    return (
        [event for event in events if event.get("cat") != "stepscope"],
        [event for event in events if event.get("cat") == "stepscope"],
    )


def test_counters_hold_each_change_of_queue_and_bandwidth(tmp_path: Path) -> None:
    before, added = drawn(file_of(tmp_path, ROWS), "--with", "counters")
    assert before == events_in(tmp_path / "worker.1.pt.trace.json")
    common = {"ph": "C", "cat": "stepscope", "pid": 0}
    queue = [(10, 1), (16, 2), (20, 1), (51, 0)]
    rate = [(51, 2), (61, 0)]
    assert added == [
        *(
            {**common, "name": "Queue length (stream 7)", "ts": at, "args": {"launched": length}}
            for at, length in queue
        ),
        *(
            {**common, "name": "Memory bandwidth DtoH (GB/s)", "ts": at, "args": {"GB/s": gb}}
            for at, gb in rate
        ),
    ]


def test_the_critical_path_has_a_track_and_arrows_between_tracks(tmp_path: Path) -> None:
    _, added = drawn(file_of(tmp_path, ROWS), "--with", "critical-path")
    names = {event["name"]: event["args"] for event in added if event["ph"] == "M"}
    assert names["process_name"] == {"name": "Critical path"}
    slices = [event for event in added if event["ph"] == "X"]
    assert [(e["name"], e["ts"], e["dur"], e["args"]["edge"]) for e in slices] == [
        ("CPU", 0, 10, None),
        ("Launch overhead", 10, 10, "launch"),
        ("gemm", 20, 30, "launch"),
        ("Kernel-kernel overhead", 50, 1, "stream"),
        ("Memcpy DtoH (Device -> Pinned)", 51, 10, "stream"),
        ("Sync wait", 61, 2, "sync"),
        ("CPU", 63, 7, "thread"),
        ("aten::add", 70, 30, "thread"),
    ]
    assert {(event["pid"], event["tid"]) for event in slices} == {(9_000_000, 1)}
    arrows = [event for event in added if event["ph"] in "sf"]
    assert [(e["ph"], e["id"], e["name"], e["pid"], e["tid"], e["ts"]) for e in arrows] == [
        ("s", 1, "critical path: launch", 100, 100, Decimal("11.999")),
        ("f", 1, "critical path: launch", 0, 7, 20),
        ("s", 2, "critical path: sync", 0, 7, Decimal("60.999")),
        ("f", 2, "critical path: sync", 100, 100, 63),
    ]
    assert [event.get("bp") for event in arrows] == [None, "e", None, None]


@pytest.mark.parametrize("name", RUNS)
def test_the_other_events_are_the_files_and_read_the_same(name: str, tmp_path: Path) -> None:
    original = next((SAMPLE_LOGS / name).glob("*.json.gz"))
    target = tmp_path / "worker.1.pt.trace.json.gz"
    arguments = BOTH if name.startswith("synthetic") else BOTH[2:]
    result = run(original, *arguments, "-o", target)
    assert result.exit_code == 0, result.output
    kept = [event for event in events_in(target) if event.get("cat") != "stepscope"]
    assert kept == events_in(original)
    before, after = trace_in(original), trace_in(target)
    for frame in FRAMES:
        frames = getattr(after, frame), getattr(before, frame)
        pd.testing.assert_frame_equal(*frames, check_categorical=False)
    assert step_breakdown(after).parts_ns.tolist() == step_breakdown(before).parts_ns.tolist()
    assert not len(after.counters) or set(counter_table(after)["derived_by"]) == {"stepscope"}


def test_drawings_hold_the_rows_of_their_tables(tmp_path: Path) -> None:
    """Each change of a counter and each segment of the path is one event."""
    original = next((SAMPLE_LOGS / RUNS[1]).glob("*.json.gz"))
    trace = trace_in(original)
    origin = Decimal(trace.columns.origin_ns)
    copy = tmp_path / original.name
    copy.write_bytes(original.read_bytes())
    _, added = drawn(copy, *BOTH)
    for name, column, table, scale in (
        ("Queue length (stream 7)", "length", queue_series(trace), 1),
        ("Memory bandwidth HtoD (GB/s)", "bytes_per_second", bandwidth_series(trace), 10**9),
    ):
        rows = table[table["kind"] == "HtoD"] if "kind" in table else table
        samples = [event for event in added if event["name"] == name]
        times = [int(event["ts"] * 1000 - origin) for event in samples]
        values = [float(next(iter(event["args"].values()))) * scale for event in samples]
        assert times == rows["time_ns"].tolist()
        assert values == pytest.approx(rows[column].tolist())
    segments = critical_path_segments(trace)
    slices = [event for event in added if event["ph"] == "X"]
    for key, column in (("ts", "start_ns"), ("dur", "duration_ns")):
        shift = origin if key == "ts" else 0
        assert [int(event[key] * 1000 - shift) for event in slices] == segments[column].tolist()


def test_a_part_has_the_drawings_of_its_time(tmp_path: Path) -> None:
    second = [
        [category, name.replace("#1", "#2"), start + 100, duration, *shifted(rest)]
        for category, name, start, duration, *rest in ROWS
    ]
    path = file_of(tmp_path, [*ROWS, *second])
    kept, added = drawn(path, "--steps", "2", *BOTH)
    plain = path.with_name("plain.json")
    assert run(path, "--steps", "2", "-o", plain).exit_code == 0
    assert kept == events_in(plain)
    timed = [event for event in added if event["ph"] != "M"]
    assert len([event for event in timed if event["ph"] == "X"]) == 8
    assert all(100 <= event["ts"] <= 200 for event in timed)
    queue = [event for event in timed if event["name"].startswith("Queue")]
    assert [(event["ts"], event["args"]["launched"]) for event in queue] == [
        (100, 0),
        (110, 1),
        (116, 2),
        (120, 1),
        (151, 0),
    ]


def shifted(rest: list[Any]) -> list[Any]:
    return [{**more, "correlation": more["correlation"] + 10} for more in rest]


@pytest.mark.parametrize(
    ("good", "bad", "count"),
    [
        ('"aten::add"', '"aten::\\qadd"', len(ROWS)),  # a wrong escape is repaired
        ('"aten::add"', "", len(ROWS) - 1),  # the file ends in it
    ],
)
def test_damage_costs_the_damaged_event_alone(
    tmp_path: Path, good: str, bad: str, count: int
) -> None:
    path = file_of(tmp_path, ROWS)
    text = path.read_text()
    path.write_text(text.replace(good, bad) if bad else text[: text.index(good)])
    kept, added = drawn(path, *BOTH)
    assert len(kept) == count
    assert kept[:6] == tracebuild.document(rows=ROWS)["traceEvents"][:6]
    assert [event["ph"] for event in added].count("X") >= 6


def test_the_command_says_what_it_added_and_what_is_missing(tmp_path: Path) -> None:
    path, target = file_of(tmp_path, ROWS), tmp_path / "annotated.json"
    result = run(path, "--with", "counters", "-o", target)
    assert result.stderr == (
        f"stepscope: 7 of 7 events, 0.000 to 0.100 ms, are in {target}; 6 events were added\n"
    )
    note = json.loads(target.read_text())["stepscopeCut"]
    assert note["added"] == {"category": "stepscope", "drawings": ["counters"]}
    target.unlink()
    on_host = file_of(tmp_path, [row for row in ROWS if row[0] == "cpu_op"])
    result = run(on_host, "--with", "counters", "-o", target)
    assert result.exit_code == 2
    assert "the trace has no device work, and so neither queues nor copies" in result.stderr
    assert not target.exists()


TIMES = st.integers(0, 60)
ANY_ROWS = st.lists(
    st.tuples(
        st.sampled_from(["cpu_op", "cuda_runtime", "kernel", "gpu_memcpy", "user_annotation"]),
        st.sampled_from(["a", "cudaLaunchKernel", "ProfilerStep#1", "Memcpy DtoH", 'say "so"']),
        TIMES,
        st.integers(0, 20),
        st.fixed_dictionaries({"tid": st.integers(1, 2), "correlation": st.integers(1, 3)}),
    ),
    max_size=14,
)


@examples(50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ANY_ROWS)
def test_of_any_trace_only_ours_are_added(tmp_path: Path, rows: list[Any]) -> None:
    path = file_of(tmp_path, [*rows, ["kernel", "k", 30, 5], ["cpu_op", "aten::always", 30, 5]])
    target = tmp_path / "annotated.json"
    excerpt = write(trace_in(path), Request(path=str(target), drawings=DRAWINGS))
    events = events_in(target)
    ours = [event for event in events if event.get("cat") == "stepscope"]
    assert [event for event in events if event.get("cat") != "stepscope"] == events_in(path)
    assert len(ours) == excerpt.written.drawn_count
    arrows = [event for event in ours if event["ph"] in "sf"]
    assert [event["ph"] for event in arrows] == ["s", "f"] * (len(arrows) // 2)
