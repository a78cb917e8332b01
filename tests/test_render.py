"""A report as text, Markdown and JSON."""

import re
from collections.abc import Callable

import msgspec
import pytest

from stepscope.render import health_markdown, health_text, json, markdown, text
from stepscope.report import (
    ClaimReport,
    EventReference,
    Evidence,
    FileHealth,
    Fix,
    HealthExample,
    HealthItem,
    HealthReport,
    Outcome,
    Problem,
    RecordNext,
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


OVERLAP = HealthItem(
    "same-stream-overlap",
    "critical",
    1234,
    "1,234 device events begin before the one ahead ends",
    "Record it again.",
    nature="damage",
    of_count=5678,
    action="busy time counts each nanosecond once",
    lost_bytes=2_000_000,
    examples=(
        HealthExample(1_000_000, "gemm: 17.2 s too early", 12_000_000),
        HealthExample(2_000_000, ""),
    ),
    effect="withheld",
    affects=("launch-bound", "gpu-idle-gap", "step breakdown"),
)
NO_SHAPES = HealthItem("no-shapes", "info", 1, "shapes were not recorded", nature="gap")
OUT_OF_ORDER = HealthItem("out-of-order", "info", 7, "7 events stand behind a later one")
PROFILE = "with torch.profiler.profile(\n    record_shapes=True,  # new\n) as prof:"
FILE = FileHealth(
    path="log/run/worker0.1.pt.trace.json.gz",
    run="run",
    name="worker0",
    span="1",
    rank=3,
    file_bytes=1_160_000,
    inflated_bytes=21_500_000,
    events=75_718,
    reader="compiled scanner",
    dialect="cuda",
    producer="torch.profiler",
    synthetic=False,
    fingerprint="f",
    health=(OVERLAP, NO_SHAPES, OUT_OF_ORDER),
    record_next=(RecordNext("shapes", "Shapes show the batch size.", "record_shapes=True"),),
    profile_call=PROFILE,
)
SOUND = msgspec.structs.replace(
    FILE, path="log/run/worker1.1.pt.trace.json", health=(), record_next=(), profile_call=""
)
HEALTH = HealthReport((FILE, SOUND), (Problem("log/x.json", "the file is empty", "Try again"),))


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


def test_what_puts_an_answer_in_doubt_stands_beside_it() -> None:
    lost = ("3 of 40 launches left no device event", "the file ends in the middle")
    found = msgspec.structs.replace(FOUND, doubts=lost)
    passed = msgspec.structs.replace(PASSED, rule="gpu-idle-gap", doubts=lost[1:])
    report = Report((RunReport("run", (WORKER,), (found, PASSED, passed)),))
    said = one_line(text.render(report))
    assert f"Doubtful: {lost[0]}. The file ends in the middle." in said
    assert "Passed (1): item-sync" in said
    assert "Passed, but doubtful (1): gpu-idle-gap The file ends in the middle." in said
    written = markdown.render(report)
    assert f"**Doubtful:** {lost[0]}. The file ends in the middle." in written
    assert "Passed, but doubtful (1): `gpu-idle-gap`. The file ends in the middle." in written


def test_advice_says_what_was_done_about_damage() -> None:
    item = HealthItem("x", "warning", 2, "2 are bad", "Do it.", action="they were left out")
    worker = msgspec.structs.replace(WORKER, health=(item, OUT_OF_ORDER))
    report = Report((RunReport("run", (worker,), ()),))
    for render in (text.render, markdown.render):
        assert "The recording: 2 are bad; they were left out. Do it." in one_line(render(report))
        assert "stand behind" not in render(report), "what changes nothing is told by `health`"


def test_health_as_text_has_what_was_read_then_damage_then_what_to_record() -> None:
    said = one_line(health_text.render(HEALTH))
    places = [
        said.index(part)
        for part in (
            "log/run/worker0.1.pt.trace.json.gz ─",
            "run: worker0, rank 3, span 1",
            "1.16 MB, 21.5 MB of JSON · 75,718 events · cuda · written by torch.profiler · read by "
            "the compiled scanner",
            "Some of its figures mean nothing, and advice that rests on them is withheld.",
            "CRITICAL same-stream-overlap 1,234 of 5,678, 2.00 MB lost",
            "1,234 device events begin before the one ahead ends; busy time counts each nanosecond "
            "once. Record it again.",
            "Withheld: launch-bound, gpu-idle-gap, step breakdown.",
            "At byte 1,000,000: gemm: 17.2 s too early",
            "At byte 2,000,000 ",
            "INFO out-of-order 7 ",
            "Not recorded: shapes Shapes show the batch size.",
            "To record all of it next time: with torch.profiler.profile( record_shapes=True,",
            "log/run/worker1.1.pt.trace.json ─",
            "Its figures can be relied upon.",
            "Not read: log/x.json: the file is empty. Try again.",
        )
    ]
    assert places == sorted(places)
    assert "no-shapes" not in said, "told with its line of code"


def test_health_as_markdown_has_the_same() -> None:
    said = health_markdown.render(HEALTH)
    for part in (
        "## log/run/worker0.1.pt.trace.json.gz\n",
        "### Critical: `same-stream-overlap`, 1,234 of 5,678, 2.00 MB lost\n",
        "Withheld: launch-bound, gpu-idle-gap, step breakdown.\n",
        "- At byte 1,000,000: gemm: 17.2 s too early\n- At byte 2,000,000\n",
        "| shapes | Shapes show the batch size. |\n",
        f"```python\n{PROFILE}\n```\n",
        "## Not read\n\n- log/x.json: the file is empty. Try again.\n",
    ):
        assert part in said


@pytest.mark.parametrize("width", [40, 80, 120])
def test_health_keeps_to_its_width_but_for_code(width: int) -> None:
    rendered = health_text.render(HEALTH, width=width)
    lines = [line for line in rendered.splitlines() if "torch" not in line]
    assert max(map(len, lines)) <= width
    assert f"      {PROFILE.splitlines()[0]}\n" in rendered
    assert "\x1b" not in rendered
    assert "\x1b[1;31mCRITICAL\x1b[0m" in health_text.render(HEALTH, is_coloured=True)


def test_nothing_of_a_trace_acts_where_its_health_is_shown() -> None:
    item = msgspec.structs.replace(
        OVERLAP, kind=HOSTILE, message=HOSTILE, examples=(HealthExample(1, HOSTILE),)
    )
    worst = msgspec.structs.replace(
        FILE, path=HOSTILE, run=HOSTILE, name=HOSTILE, producer=HOSTILE, health=(item,)
    )
    report = HealthReport((worst,), (Problem(HOSTILE, HOSTILE, HOSTILE),))
    for rendered in (health_text.render(report), health_markdown.render(report)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", rendered)
    written = health_markdown.render(report)
    assert not re.search(r"^# not", written, re.MULTILINE)
    assert not re.search(r"(?<!\\)@you", re.sub(r"(`+).*?\1", "", written))


def test_health_as_json_is_the_report() -> None:
    assert msgspec.json.decode(json.render(HEALTH), type=HealthReport) == HEALTH
