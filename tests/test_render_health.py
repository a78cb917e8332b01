"""What files are worth, as text, Markdown and JSON."""

import re

import msgspec
import pytest

from reports import HOSTILE
from stepscope.base.report import (
    FileHealth,
    HealthExample,
    HealthItem,
    HealthReport,
    Problem,
    RecordNext,
)
from stepscope.render import health_report, json

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


def test_health_as_text_has_what_was_read_then_damage_then_what_to_record() -> None:
    said = one_line(health_report.text(HEALTH))
    places = [
        said.index(part)
        for part in (
            "log/run/worker0.1.pt.trace.json.gz ─",
            "run: worker0, rank 3, span 1",
            "1.11 MiB, 20.5 MiB of JSON · 75,718 events · cuda · written by torch.profiler · read "
            "by the compiled scanner",
            "Some of its figures mean nothing, and advice that rests on them is withheld.",
            "CRITICAL same-stream-overlap 1,234 of 5,678, 1.91 MiB lost",
            "1,234 device events begin before the one ahead ends; busy time counts each nanosecond "
            "once. Record it again.",
            "Withheld: launch-bound, gpu-idle-gap, step breakdown.",
            "At byte 1,000,000: gemm: 17.2 s too early",
            "At byte 2,000,000 ",
            "INFO out-of-order 7 ",
            "Not recorded: shapes Shapes show the batch size.",
            "To record all of it next time: with torch.profiler.profile( record_shapes=True,",
            "log/run/worker1.1.pt.trace.json ─",
            "Its figures are reliable.",
            "Not read: log/x.json: the file is empty. Try again.",
        )
    ]
    assert places == sorted(places)
    assert "no-shapes" not in said, "told with its line of code"


def test_health_as_markdown_has_the_same() -> None:
    said = health_report.markdown(HEALTH)
    for part in (
        "## log/run/worker0.1.pt.trace.json.gz\n",
        "### Critical: `same-stream-overlap`, 1,234 of 5,678, 1.91 MiB lost\n",
        "Withheld: launch-bound, gpu-idle-gap, step breakdown.\n",
        "- At byte 1,000,000: gemm: 17.2 s too early\n- At byte 2,000,000\n",
        "| shapes | Shapes show the batch size. |\n",
        f"```python\n{PROFILE}\n```\n",
        "## Not read\n\n- log/x.json: the file is empty. Try again.\n",
    ):
        assert part in said


@pytest.mark.parametrize("width", [40, 80, 120])
def test_health_keeps_to_its_width_but_for_code(width: int) -> None:
    rendered = health_report.text(HEALTH, width=width)
    lines = [line for line in rendered.splitlines() if "torch" not in line]
    assert max(map(len, lines)) <= width
    assert f"      {PROFILE.splitlines()[0]}\n" in rendered
    assert "\x1b" not in rendered
    assert "\x1b[1;31mCRITICAL\x1b[0m" in health_report.text(HEALTH, is_coloured=True)


def test_nothing_of_a_trace_acts_where_its_health_is_shown() -> None:
    item = msgspec.structs.replace(
        OVERLAP, kind=HOSTILE, message=HOSTILE, examples=(HealthExample(1, HOSTILE),)
    )
    worst = msgspec.structs.replace(
        FILE, path=HOSTILE, run=HOSTILE, name=HOSTILE, producer=HOSTILE, health=(item,)
    )
    report = HealthReport((worst,), (Problem(HOSTILE, HOSTILE, HOSTILE),))
    for rendered in (health_report.text(report), health_report.markdown(report)):
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", rendered)
    written = health_report.markdown(report)
    assert not re.search(r"^# not", written, re.MULTILINE)
    assert not re.search(r"@you", re.sub(r"(`+).*?\1", "", written))


def test_health_as_json_is_the_report() -> None:
    assert msgspec.json.decode(json.render(HEALTH), type=HealthReport) == HEALTH
