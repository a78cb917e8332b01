"""Damage is never silent: what rests on it has low confidence or no answer, and says why."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import tracebuild
from loading import trace_of
from stepscope import ingest
from stepscope.advice import advise
from stepscope.analyses.health import PARTS, Parts
from stepscope.base.findings import Fix, Outcome
from stepscope.base.report import RunReport, WorkerReport
from stepscope.model.trace import Run, trace_from_columns
from stepscope.rules import Finding, Rule, all_rules

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


def test_the_verdict_says_that_a_file_was_cut_off(whole: Path) -> None:
    [worker] = report_of(cut_before_the_device(whole)).workers
    assert worker.verdict.startswith("The file was cut off; of the remaining part: Step ")
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
    assert (before.doubts, after.doubts) == ((), ("the file ends in the middle",))


# What each kind of damage does


def rule(rests_on: Parts, *findings: Finding) -> Rule[None]:
    return Rule(
        id="of-a-test",
        title="Something",
        category="test",
        why="Because.",
        detects="What it looks at.",
        saving="As the test says.",
        effort="flag",
        risk="none",
        fix=Fix(summary="Change it."),
        options=None,
        check=lambda _trace, _options: findings,
        rests_on=rests_on,
    )


def answer(rows: Sequence[tracebuild.Row], asked: Rule[Any]) -> tuple[Outcome, WorkerReport]:
    report = advise(Run(name="run", workers=(trace_of(rows),)), [asked])
    [outcome], [worker] = report.outcomes, report.workers
    return outcome, worker


STEPS: list[list[Any]] = [
    ["user_annotation", f"ProfilerStep#{n}", 1000 * n, 1000] for n in range(4)
]
CAUSALITY_BROKEN: list[list[Any]] = [
    row
    for n in range(4)
    for row in (
        ["cuda_runtime", "cudaLaunchKernel", 1000 * n + 20, 2, {"correlation": n}],
        ["kernel", "gemm", 1000 * n + 10, 900, {"correlation": n}],
    )
]
RECORDS_LOST: list[list[Any]] = [
    row
    for n in range(30)
    for row in (
        ["cuda_runtime", "cudaLaunchKernel", 100 * n, 2, {"correlation": n}],
        ["kernel", "gemm", 100 * n + 5, 50, {"correlation": n if n != 9 else 99}],
    )
]
FINDING = Finding(message="It is so.", severity="critical")
CLOCKS: Parts = frozenset({"clocks"})
TIMES: Parts = frozenset({"device times"})


def test_a_rule_whose_evidence_is_damaged_beyond_use_is_withheld_and_says_why() -> None:
    outcome, _ = answer([*STEPS, *CAUSALITY_BROKEN], rule(CLOCKS, FINDING))
    assert (outcome.status, outcome.reason, outcome.remedy) == (
        "cannot-tell",
        "the clocks of host and device disagree: 4 device events of 4 begin up to 10.0 µs before "
        "the host launched them",
        None,
    )


def test_a_rule_that_rests_on_other_parts_is_asked() -> None:
    others = PARTS - {"clocks", "launches"}
    outcome, _ = answer([*STEPS, *CAUSALITY_BROKEN], rule(others, FINDING))
    assert (outcome.status, outcome.confidence, outcome.doubts) == ("found", "high", ())


def test_a_gap_says_what_to_record() -> None:
    memory = ["cpu_instant_event", "[memory]", 5, None, {"Bytes": 512, "Device Type": 1}]
    outcome, _ = answer([*STEPS, memory], rule(TIMES, FINDING))
    assert outcome.status == "cannot-tell"
    assert outcome.remedy == (
        "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"
    )


def test_a_rule_whose_evidence_is_in_doubt_has_low_confidence_and_says_why() -> None:
    outcome, _ = answer([*STEPS, *RECORDS_LOST], rule(TIMES, FINDING))
    assert (outcome.status, outcome.severity, outcome.confidence) == ("found", "warning", "low")
    assert outcome.doubts == ("1 kernel launch of 30 left no device event (3.3 %)",)


def test_what_was_not_found_is_in_doubt_too() -> None:
    outcome, _ = answer([*STEPS, *RECORDS_LOST], rule(TIMES))
    assert (outcome.status, len(outcome.doubts)) == ("passed", 1)


def test_health_names_the_rules_and_views_that_it_makes_unreliable() -> None:
    _, worker = answer([*STEPS, *RECORDS_LOST], rule(TIMES))
    affected = {item.kind: (item.effect, item.affects) for item in worker.health}
    assert affected["device-records-lost"] == (
        "low",
        (
            "of-a-test",
            "verdict",
            "step breakdown",
            "device use",
            "idle causes",
            "operators",
            "kernels",
        ),
    )
    assert affected["no-memory"] == ("none", ())


def test_each_rule_says_what_it_rests_on() -> None:
    for each in all_rules():
        assert each.rests_on < PARTS, f"{each.id} rests on all that there is"


def test_the_verdict_and_the_devices_figures_say_that_they_are_in_doubt() -> None:
    _, worker = answer([*STEPS, *RECORDS_LOST], rule(TIMES))
    assert worker.verdict.startswith(
        "Figures are in doubt, since 1 kernel launch of 30 left no device event (3.3 %): Step "
    )
    [device] = worker.devices
    assert device.notes["busy_share"] == (
        "In doubt: 1 kernel launch of 30 left no device event (3.3 %)."
    )


def test_the_verdict_and_the_devices_figures_say_that_they_mean_nothing() -> None:
    stuck = ["kernel", "stuck", 10, 3000, {"correlation": 77}]
    _, worker = answer([*STEPS, *RECORDS_LOST, stuck], rule(TIMES))
    why = (
        "30 device events of 31 begin before the one ahead on the same stream ends, by up to "
        "50.0 µs: durations are wrong"
    )
    assert worker.verdict == (
        f"Step 1.00 ms (± 0.0 %, 3 steps); where the time goes is unknown: {why}."
    )
    [device] = worker.devices
    assert device.notes["kernel_busy_share"] == f"Not reliable: {why}."


def test_a_sound_recording_is_not_called_doubtful() -> None:
    sound = [row for row in RECORDS_LOST if row[3] == 2 or row[4]["correlation"] != 99]
    rows = [row for row in sound if row[4]["correlation"] != 9]
    outcome, worker = answer([*STEPS, *rows], rule(PARTS, FINDING))
    assert (outcome.confidence, outcome.doubts) == ("high", ())
    assert {item.effect for item in worker.health} == {"none"}
    assert not worker.verdict.startswith("Figures are in doubt")
    assert "busy_share" not in worker.devices[0].notes
