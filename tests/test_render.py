"""A report as text, Markdown and JSON."""

import re
from collections.abc import Callable

import msgspec
import pytest

from stepscope.render import json, markdown, text
from stepscope.report import (
    ClaimReport,
    EventReference,
    Evidence,
    Fix,
    HealthItem,
    Outcome,
    Problem,
    Report,
    RunReport,
    StepReport,
    WorkerReport,
)

CODE = (
    "loader = DataLoader(dataset, num_workers=8, pin_memory=True, "
    "persistent_workers=True, prefetch_factor=4)"
)
FOUND = Outcome(
    rule="dataloader-no-workers",
    title="The DataLoader runs in the training process",
    category="input",
    status="found",
    worker="worker0",
    span="1",
    trace="id",
    severity="critical",
    confidence="high",
    claim=ClaimReport(
        gross_ns=60_000_000,
        net_low_ns=44_400_000,
        net_high_ns=59_300_000,
        net_share=0.339,
        method="All of it.",
    ),
    message="6 batches were loaded in the training process.",
    why="Loading and training take turns.",
    evidence=(
        Evidence("Exposed loading", 0.339, "share"),
        Evidence("Loading in all", 416_000_000, "ns"),
        Evidence("Bytes a step", 19_300_000, "bytes"),
        Evidence("Rate", 10_100_000_000, "bytes/s"),
        Evidence("Batches", 1462, "count"),
        Evidence("Line", "train.py(42): <module>", "code"),
    ),
    events=(EventReference("next", "thread 7", 350_000_000, 73_400_000, "most of it in aten::to"),),
    fix=Fix("Load in workers.", CODE, "python", "It takes less than 1 %.", ("Needs CPU cores.",)),
)
PASSED = Outcome("item-sync", "…", "sync", "passed", "worker0", "1", "id")
NOT_APPLICABLE = Outcome(
    "tiny-batch-size",
    "…",
    "shape",
    "not-applicable",
    "worker0",
    "1",
    "id",
    reason="no shapes were recorded",
    remedy="profile(record_shapes=True)",
)
FAILED = Outcome(
    "launch-bound", "…", "host", "failed", "worker0", "1", "id", reason="KeyError('x')"
)
WORKER = WorkerReport(
    trace="id",
    name="worker0",
    span="1",
    rank=3,
    events=75_718,
    dialect="cuda",
    synthetic=True,
    verdict="Step 178 ms (6 steps). The GPU is busy 56.6 %.",
    step=StepReport(6, 178_000_000, 0, {"kernel": 98_000_000, "dataloader": 80_000_000, "cpu": 0}),
    devices=(),
    idle_ns={},
    health=(HealthItem("truncated-gzip", "warning", 1, "the stream ends early", "Copy it again"),),
)
OUTCOMES = (FOUND, PASSED, NOT_APPLICABLE, FAILED)
REPORT = Report(
    runs=(RunReport("resnet50", (WORKER,), OUTCOMES),),
    problems=(Problem("log/x.json", "the file is empty", "Record it again"),),
    version="1.2.3",
)
HOSTILE = (
    "\x1b[31mred\x1b[0m\x07<script>alert(1)</script> [bold]x[/] `y` | z\r\n"
    "# not a heading @you \u202e"
)


def one_line(rendered: str) -> str:
    return " ".join(rendered.split())


def with_texts(hostile: str) -> Report:
    """Return the report with this in every place that can hold text of a trace."""
    found = msgspec.structs.replace(
        FOUND,
        message=hostile,
        evidence=(Evidence(hostile, hostile, "text"), Evidence("c", hostile, "code")),
        events=(EventReference(hostile, hostile, 0, 1, hostile),),
    )
    worker = msgspec.structs.replace(WORKER, name=hostile, verdict=hostile, dialect=hostile)
    found = msgspec.structs.replace(found, worker=hostile)
    return Report((RunReport(hostile, (worker,), (found,)),), (Problem(hostile, hostile, hostile),))


def test_text_has_the_verdict_first_then_findings_then_the_rest() -> None:
    rendered = text.render(REPORT)
    places = [
        rendered.index(part)
        for part in (
            "resnet50",
            "worker0, rank 3, span 1 · 75,718 events · cuda · synthetic",
            "Step 178 ms",
            "The recording: the stream ends early",
            "1. CRITICAL  The DataLoader runs in the training process",
            "Saves up to 59.3 ms a step (33.9 %), at least 44.4 ms; high confidence.",
            "Fix: Load in workers.",
            "Check: It takes less than 1 %.",
            "Mind: Needs CPU cores.",
            "Passed (1): item-sync",
            "Not applicable (1):",
            "Failed (1):",
            "Not read: log/x.json: the file is empty. Record it again.",
        )
    ]
    assert places == sorted(places)
    assert "tiny-batch-size: no shapes were recorded. profile(record_shapes=True)" in one_line(
        rendered
    )


def test_a_reason_that_many_rules_give_is_told_once() -> None:
    other = msgspec.structs.replace(NOT_APPLICABLE, rule="launch-bound")
    report = Report((RunReport("run", (WORKER,), (NOT_APPLICABLE, other)),))
    for render in (text.render, markdown.render):
        assert render(report).count("no shapes were recorded") == 1
    assert "tiny-batch-size, launch-bound: no shapes" in one_line(text.render(report))


@pytest.mark.parametrize("render", [text.render, markdown.render])
def test_numbers_have_their_units(render: Callable[[Report], str]) -> None:
    rendered = one_line(render(REPORT))
    for value in ("33.9 %", "416 ms", "19.3 MB", "10.1 GB/s", "1,462"):
        assert value in rendered


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_text_keeps_to_its_width_and_cuts_nothing_off(width: int) -> None:
    rendered = text.render(REPORT, width=width)
    lines = [line for line in rendered.splitlines() if CODE not in line]
    assert max(map(len, lines)) <= width
    words = one_line(rendered)
    for part in ("59.3 ms", "75,718", FOUND.message, "most of it in aten::to"):
        assert part in words
    assert "…" not in rendered


def test_code_is_not_wrapped_since_it_is_to_be_copied() -> None:
    assert CODE in text.render(REPORT, width=60)
    assert f"```python\n{CODE}\n```" in markdown.render(REPORT)


def test_text_is_coloured_only_when_asked() -> None:
    assert "\x1b" not in text.render(REPORT)
    coloured = text.render(REPORT, is_coloured=True)
    assert "\x1b[1;31mCRITICAL\x1b[0m" in coloured


def test_a_trace_cannot_act_on_the_terminal() -> None:
    rendered = text.render(with_texts(HOSTILE))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", rendered)
    assert "[bold]x[/]" in one_line(rendered), "what looks like markup is text"


def test_a_trace_cannot_act_in_markdown() -> None:
    rendered = markdown.render(with_texts(HOSTILE))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", rendered)
    outside_code = re.sub(r"(`+).*?\1", "", rendered)
    assert "<script" not in re.sub(r"\\<", "", outside_code)
    assert not re.search(r"^# not", rendered, re.MULTILINE)
    assert not re.search(r"(?<!\\)@you", outside_code)
    for row in rendered.splitlines():
        if row.startswith("|"):
            assert len(re.findall(r"(?<!\\)\|", row)) == 3, row


def test_nothing_found_is_said() -> None:
    report = Report((RunReport("run", (WORKER,), (PASSED,)),))
    assert "No rule found anything to fix." in text.render(report)
    assert "No rule found anything to fix." in markdown.render(report)


def test_without_steps_savings_are_of_the_whole() -> None:
    worker = msgspec.structs.replace(WORKER, step=StepReport(0, 100, 0, {"cpu": 100}))
    rendered = text.render(Report((RunReport("run", (worker,), (FOUND,)),)))
    assert "Saves up to 59.3 ms in all (33.9 %)" in rendered
    assert "Time: cpu 100.0 %" in rendered


def test_a_finding_without_a_claim_promises_nothing() -> None:
    found = msgspec.structs.replace(FOUND, claim=None)
    for render in (text.render, markdown.render):
        assert "up to" not in render(Report((RunReport("run", (WORKER,), (found,)),)))


def test_each_recording_has_its_own_outcomes() -> None:
    """Also where two files were given the same worker and span."""
    other = msgspec.structs.replace(WORKER, trace="other", rank=4)
    rendered = text.render(Report((RunReport("run", (WORKER, other), OUTCOMES),)))
    first, second = rendered.split("rank 4")
    assert "dataloader-no-workers" in first
    assert "dataloader-no-workers" not in second


def test_json_is_the_report() -> None:
    assert msgspec.json.decode(json.render(REPORT), type=Report) == REPORT
