"""A file that ends in the middle is read, says so, and never counts as a full one."""

from pathlib import Path

import pytest

import tracebuild
from stepscope import ingest
from stepscope.advice import advise
from stepscope.report import RunReport
from stepscope.trace import Run, trace_from_columns

LOADING = {
    "machine": "h100",
    "actions": [
        {
            "steps": 4,
            "body": [
                {"dataloader": 0, "us": 20000},
                {"op": "aten::conv2d", "body": [{"kernel": "conv", "us": 50000}]},
                {"sync": "device", "us": 0},
            ],
        }
    ],
}


def report_of(path: Path) -> RunReport:
    trace = trace_from_columns(ingest.read(str(path)), worker="worker")
    return advise(Run(name="run", workers=(trace,)))


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    path = tmp_path / "worker.1.pt.trace.json"
    tracebuild.write(tracebuild.document(schedule=LOADING), path)
    return path


def cut_before_the_device(whole: Path) -> Path:
    """Kineto writes what ran on the device behind what ran on the host."""
    text = whole.read_text()
    path = whole.with_name("cut.1.pt.trace.json")
    path.write_text(text[: text.index('"cat": "kernel"')])
    return path


def test_its_verdict_says_so(whole: Path) -> None:
    [worker] = report_of(cut_before_the_device(whole)).workers
    assert worker.verdict.startswith("The file was cut off; of what it still holds: Step ")
    assert "truncated-json" in {item.kind for item in worker.health}


def test_rules_on_devices_do_not_take_it_for_a_recording_of_the_cpu(whole: Path) -> None:
    reasons = {each.rule: each.reason for each in report_of(cut_before_the_device(whole)).outcomes}
    assert reasons["launch-bound"] == "the file was cut off before any device event"


def test_what_is_found_in_it_is_of_low_confidence(whole: Path) -> None:
    [before] = [each for each in report_of(whole).outcomes if each.rule == "dataloader-no-workers"]
    cut = report_of(cut_before_the_device(whole))
    [after] = [each for each in cut.outcomes if each.rule == "dataloader-no-workers"]
    assert (before.status, before.confidence, before.severity) == ("found", "high", "critical")
    assert (after.status, after.confidence, after.severity) == ("found", "low", "warning")
