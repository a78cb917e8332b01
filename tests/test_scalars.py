"""Trends over spans: as a table, and as scalars that TensorBoard itself reads."""

import json
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

import stepscope
from loading import ROOT, SHARED_TRACES, shared_trace_names, trace_at
from logs import ROWS, write_run, write_trace
from programs import running
from stepscope.advice import worker_report
from stepscope.analyses.steps.step_breakdown import CATEGORIES
from stepscope.cli import cli
from stepscope.cli.scalars import EVENT_FILE, StepScalars, encode_events, write_events
from stepscope.comparison.trends import FIGURES, trend, trend_table
from waiting import LONG_SECONDS

pytestmark = pytest.mark.frames

RECORDED_S = (1_700_000_000, 1_700_000_060)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["scalars", *(str(argument) for argument in arguments)])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Two spans of one worker; the second's steps are twice as long."""
    folder = tmp_path / "log" / "run"
    for factor, recorded in zip((1, 2), RECORDED_S, strict=True):
        rows = tuple([*row[:2], row[2] * factor, row[3] * factor, *row[4:]] for row in ROWS)
        write_trace(folder / f"w.{recorded}000.pt.trace.json", rows)
    return tmp_path / "log"


def read_back(folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    tags: Any = events.Tags()
    assert not tags["tensors"]
    return {
        tag: [(each.step, each.wall_time, each.value) for each in events.Scalars(tag)]
        for tag in tags["scalars"]
    }


def test_writing_names_the_package_that_it_needs(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["stepscope.cli.scalars"], "find_spec", lambda _: None)
    result = run(log, "--write")
    assert result.exit_code == 2
    assert "pip install 'stepscope[tensorboard]'" in result.stderr
    assert run(log).exit_code == 0


def test_tensorboard_reads_back_what_was_written(log: Path) -> None:
    result = run(log, "--write")
    assert result.exit_code == 0
    found = read_back(log / "run" / "stepscope" / "w")
    assert found["stepscope/step_ms"] == [(1, RECORDED_S[0], 10.0), (2, RECORDED_S[1], 20.0)]
    kernel = [value for _, _, value in found["stepscope/step_parts/kernel_ms"]]
    assert kernel == [4.0, 8.0]
    assert [value for _, _, value in found["stepscope/busy_share"]] == pytest.approx([0.4, 0.4])
    parts = [found[f"stepscope/step_parts/{name}_ms"] for name in CATEGORIES]
    for step, span in enumerate(found["stepscope/step_ms"]):
        assert sum(each[step][2] for each in parts) == pytest.approx(span[2])


def test_writing_twice_changes_nothing_and_later_spans_are_added(log: Path) -> None:
    later = next(log.rglob(f"*{RECORDED_S[1]}*"))
    hidden = later.rename(later.with_suffix(".hidden"))
    run(log, "--write")
    path = log / "run" / "stepscope" / "w" / EVENT_FILE
    first, inode = path.read_bytes(), path.stat().st_ino
    assert "nothing new" in run(log, "--write").stdout
    assert path.read_bytes() == first
    hidden.rename(later)
    assert "2 spans, written" in run(log, "--write").stdout
    assert path.read_bytes().startswith(first)
    assert path.stat().st_ino == inode
    assert len(read_back(path.parent)["stepscope/step_ms"]) == 2
    assert [each.name for each in path.parent.iterdir()] == [EVENT_FILE]


def test_others_files_are_left_alone(log: Path) -> None:
    folder = log / "run" / "stepscope" / "w"
    folder.mkdir(parents=True)
    other = folder / "events.out.tfevents.1.other"
    other.write_bytes(b"theirs")
    run(log, "--write")
    assert other.read_bytes() == b"theirs"


def test_without_write_nothing_is_written(log: Path) -> None:
    before = sorted(log.rglob("*"))
    result = run(log)
    assert sorted(log.rglob("*")) == before
    lines = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line}
    assert lines["stepscope/step_ms"] == ["10.0", "20.0"]
    assert lines["stepscope/busy_share"] == ["40.0", "%", "40.0", "%"]


def test_each_worker_of_each_run_has_its_own(tmp_path: Path) -> None:
    write_run(tmp_path / "first", "a", "b")
    write_run(tmp_path / "second", "..")
    run(tmp_path, "--write")
    found = {path.parent.relative_to(tmp_path).as_posix() for path in tmp_path.rglob(EVENT_FILE)}
    assert found == {"first/stepscope/a", "first/stepscope/b", "second/stepscope/worker"}


def test_what_cannot_be_written_is_said(log: Path) -> None:
    assert "--write needs all spans" in run(log, "--write", "--span", "1").stderr
    assert run(log / "nowhere").exit_code == 2
    (log / "run" / "bad.1.pt.trace.json").write_text("nonsense")
    result = run(log, "--write")
    assert (result.exit_code, result.stderr.count("\n")) == (0, 1)


def test_a_file_that_is_no_beginning_of_the_new_one_is_replaced(tmp_path: Path) -> None:
    first = encode_events([StepScalars(step=1, wall_time=0, values={"a": 1.0})])
    other = encode_events([StepScalars(step=1, wall_time=0, values={"a": 2.0})])
    assert [write_events(tmp_path, each) for each in (first, first, other)] == [True, False, True]
    assert read_back(tmp_path) == {"a": [(1, 0.0, 2.0)]}


@pytest.mark.slow
@pytest.mark.parametrize("load_fast", ["false", "true"])
def test_a_real_tensorboard_shows_them(log: Path, load_fast: str) -> None:
    """Through TensorBoard's own route, with its reader in Python and with the fast one."""
    run(log, "--write")
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(log), "--port", "0"]
    with running(
        [*command, "--load_fast", load_fast], stderr=subprocess.PIPE, text=True
    ) as tensorboard:
        assert tensorboard.stderr is not None
        try:
            line = next(line for line in tensorboard.stderr if "http://" in line)
            address = line[line.index("http://") :].split()[0]
            query = urlencode({"run": "run/stepscope/w", "tag": "stepscope/step_ms"})
            points = until_answered(f"{address}data/plugin/scalars/scalars?{query}")
        finally:
            tensorboard.terminate()
    assert points == [[RECORDED_S[0], 1, 10.0], [RECORDED_S[1], 2, 20.0]]


def until_answered(url: str) -> Any:
    deadline = time.monotonic() + LONG_SECONDS
    while True:
        try:
            with urlopen(url, timeout=LONG_SECONDS) as answer:  # noqa: S310
                return json.load(answer)
        except HTTPError:  # not loaded yet
            assert time.monotonic() < deadline
            time.sleep(0.2)


# --- the table ------------------------------------------------------------------------------------


def test_the_table_has_a_row_a_span(log: Path) -> None:
    table = stepscope.table(stepscope.load(log / "run"), "trends")
    assert table["span"].tolist() == [1, 2]
    assert table["step_ns"].tolist() == [10e6, 20e6]
    assert table["longest_step_ns"].tolist() == [10e6, 20e6]
    assert table["step_count"].tolist() == [4, 4]


@pytest.mark.parametrize("name", shared_trace_names())
def test_a_trends_figures_are_those_of_the_report(name: str) -> None:
    trace = trace_at(SHARED_TRACES / name)
    found, report = trend(trace), worker_report(trace)
    trace.results.clear()
    parts = [found.figures[f"{category}_ns"] for category in CATEGORIES]
    if report.step.count:
        assert found.figures["step_ns"] == report.step.mean_ns == sum(parts)
    else:
        assert all(map(math.isnan, parts))
    assert 0 <= found.figures["recoverable_share"] <= 1 + 1e-9
    recoverable = found.figures["recoverable_share"]
    assert sum(found.recoverable_share.values()) == pytest.approx(recoverable)
    assert trend_table([found]).shape[0] == 1
    assert set(found.figures) == {column.name for column in FIGURES}


def test_one_step_has_no_deviation(tmp_path: Path) -> None:
    write_trace(tmp_path / "run" / "w.1.pt.trace.json", ROWS[:4])
    [row] = stepscope.table(stepscope.load(tmp_path / "run"), "trends").to_dict("records")
    assert (row["step_count"], row["step_ns"]) == (1, 10e6)
    assert math.isnan(row["step_deviation_ns"])


def test_spans_stand_in_order() -> None:
    trace = trace_at(next((ROOT / "sample_logs/language_model/long_job").glob("*.gz")))
    one = trend(trace)
    table = trend_table([replace(one, span=10), replace(one, span=9), one])
    assert table["span"].tolist() == [1, 9, 10]
