"""The results of all runs in short: what the list of runs holds of the advice on each."""

import logging
from collections.abc import Callable
from pathlib import Path

import flask.testing
import msgspec
import pytest

import stepscope
from loading import ROOT
from logs import ROWS, STEP_US, write_long_ago, write_run, write_trace
from stepscope.advice import advise, run_report
from stepscope.api import run_results
from stepscope.api.app import create_app
from stepscope.api.messages import RunResult, Runs, RunState
from stepscope.api.prefetch import prepare
from stepscope.base.config import Settings
from stepscope.base.report import RunReport
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.file_state import Summarised
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.pool import InProcessReader
from waiting import until

SAMPLES = ROOT / "sample_logs"


class AtOnce:
    def submit(self, job: Callable[[], None], /) -> None:
        job()


class InTurn:
    """Does one job when it is told to."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], None]] = []

    def submit(self, job: Callable[[], None], /) -> None:
        self.jobs.append(job)


def catalog_of(folder: Path, executor: AtOnce | InTurn | None = None, **limits: int) -> Catalog:
    catalog = Catalog(
        [LogDirectory(path=str(folder))],
        CatalogOptions(
            settings=Settings(**limits),  # type: ignore[arg-type]
            reader=InProcessReader(),
            executor=executor or AtOnce(),
            prepare=prepare,
        ),
    )
    catalog.scan()
    return catalog


def runs_of(client: flask.testing.FlaskClient) -> Runs:
    return msgspec.json.decode(client.get("/api/runs").data, type=Runs)


def settled(client: flask.testing.FlaskClient) -> dict[str, RunState]:
    """Wait for the results; return the runs by name."""
    until(lambda: not runs_of(client).has_pending_results)
    return {run.name: run for run in runs_of(client).runs}


def results_in(folder: Path) -> dict[str, RunState]:
    return settled(create_app(catalog_of(folder)).test_client())


def result_of(run: RunState) -> RunResult:
    assert run.result is not None
    return run.result


def report_on(folder: Path) -> RunReport:
    return advise(stepscope.load(folder))


def test_a_run_of_one_trace_has_the_figures_of_its_advice() -> None:
    folder = SAMPLES / "synthetic_item_sync" / "fault"
    [run] = results_in(folder).values()
    result, report = result_of(run), report_on(folder)
    [worker] = report.workers
    assert (result.step_ns, result.step_count) == (worker.step.mean_ns, worker.step.count)
    assert len(result.step_durations_ns) == worker.step.count
    assert round(sum(result.step_durations_ns) / worker.step.count) == worker.step.mean_ns
    assert result.busy_share == worker.devices[0].busy_share
    assert result.batch_size == 8
    first = report.merged[0].outcome
    assert result.finding is not None
    assert (result.finding.rule, result.finding.severity) == (first.rule, first.severity)
    assert result.finding.title == first.title
    assert first.claim is not None
    assert result.finding.saving is not None
    assert result.finding.saving.high_ns == first.claim.decisive.high_ns
    assert result.finding_count == len(report.merged)
    assert result.saving is not None
    assert result.saving.high_ns == sum(line.recoverable_high_ns for line in worker.budget)
    assert 0 < result.saving.low_ns <= result.saving.high_ns
    assert result.saving.share == pytest.approx(result.saving.high_ns / worker.step.mean_ns)


def test_a_job_has_the_saving_of_the_job_and_the_steps_of_its_slowest_rank() -> None:
    folder = SAMPLES / "ranks" / "one_slow_rank"
    [run] = results_in(folder).values()
    result, report = result_of(run), report_on(folder)
    assert report.job is not None
    assert report.job.total is not None
    assert result.saving is not None
    assert result.saving.share == report.job.total.high_share
    assert result.step_ns == report.job.step_ns
    slowest = max(report.workers, key=lambda worker: worker.step.mean_ns)
    assert (result.slowest, result.trace_count) == (slowest.name, len(report.workers))
    assert result.busy_share is None, "no device was recorded"
    assert result.finding is not None
    assert result.finding.rule == report.merged[0].outcome.rule
    assert report.merged[0].job_saving is not None
    assert result.finding.saving is not None
    assert result.finding.saving.share == report.merged[0].job_saving.high_share


def test_many_steps_are_drawn_by_the_longest_of_each_group(tmp_path: Path) -> None:
    rows = tuple(
        row
        for step in range(200)
        for row in (
            ["user_annotation", f"ProfilerStep#{step}", step * STEP_US, STEP_US - step % 7 * 100],
            ["cpu_op", "aten::mm", step * STEP_US + 100, 200],
        )
    )
    write_trace(tmp_path / "run" / "w.1700000000000.pt.trace.json", rows)
    [run] = results_in(tmp_path).values()
    durations = result_of(run).step_durations_ns
    assert result_of(run).step_count > run_results.MOST_DURATIONS >= len(durations) > 20
    assert max(durations) == STEP_US * 1000


def test_a_trace_without_steps_has_no_step_time(tmp_path: Path) -> None:
    rows = tuple(row for row in ROWS if row[0] != "user_annotation")
    write_trace(tmp_path / "run" / "w.1700000000000.pt.trace.json", rows)
    [run] = results_in(tmp_path).values()
    result = result_of(run)
    assert (result.step_ns, result.step_count, result.step_durations_ns) == (None, 0, ())
    assert (result.batch_size, result.busy_share is not None) == (None, True)


def test_results_come_as_files_are_read(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name)
    write_long_ago(tmp_path / "bad" / "w.1.pt.trace.json")
    turns = InTurn()
    client = create_app(catalog_of(tmp_path, turns)).test_client()
    assert all(run.result is None for run in runs_of(client).runs)
    with_results = set()
    while turns.jobs:
        turns.jobs.pop(0)()
        runs = settled(client).values()
        ready = {run.name for run in runs if run.state == "ready"}
        with_results = {run.name for run in runs if run.result is not None}
        assert with_results == ready
    assert with_results == {"a", "b"}, "the damaged one has none"


def test_a_changed_file_changes_the_result_and_the_tag(tmp_path: Path) -> None:
    path = tmp_path / "run" / "w.1700000000000.pt.trace.json"
    write_trace(path)
    catalog = catalog_of(tmp_path)
    client = create_app(catalog).test_client()
    before = result_of(settled(client)["run"])
    tag = client.get("/api/runs").headers["ETag"]
    assert client.get("/api/runs", headers={"If-None-Match": tag}).status_code == 304
    rows = [list(row) for row in ROWS]
    for row in rows:
        row[2] = int(row[2]) * 2
        row[3] = int(row[3]) * 2
    write_trace(path, tuple(rows), version=2)
    catalog.scan()
    until(lambda: result_of(settled(client)["run"]) != before)
    assert result_of(settled(client)["run"]).step_ns == 2 * (before.step_ns or 0)
    assert client.get("/api/runs", headers={"If-None-Match": tag}).status_code == 200


def test_no_trace_is_read_again_for_them(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write_run(tmp_path / name)
    catalog = catalog_of(tmp_path, memory_bytes=1)
    runs = settled(create_app(catalog).test_client())
    assert all(run.result is not None for run in runs.values())
    assert sum(isinstance(entry.state, Summarised) for entry in catalog.entries()) >= 2


def test_a_run_whose_merge_fails_has_none_and_the_others_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / name)

    def failing(name: str, *args: object, **options: object) -> RunReport:
        if name == "a":
            msg = "a defect"
            raise ValueError(msg)
        return run_report(name, *args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr("stepscope.api.run_results.run_report", failing)
    with caplog.at_level(logging.WARNING):
        runs = results_in(tmp_path)
    assert {name: run.result is not None for name, run in runs.items()} == {"a": False, "b": True}
    assert "a: its result is omitted: ValueError: a defect" in caplog.text
