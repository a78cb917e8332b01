"""What a recording is worth as a whole: order, effects, and what rests on what is damaged.

What each check finds is in `tests/health`.
"""

from typing import Any

import pytest

from loading import columns_of, trace_of
from stepscope.analyses import health as package
from stepscope.analyses.health import (
    PARTS,
    Parts,
    damaged_parts,
    doubts,
    health,
    with_effect,
)
from stepscope.analyses.health._check import Check
from stepscope.base.findings import Severity
from stepscope.base.report import HealthItem
from stepscope.model.trace import Trace, trace_from_columns

WHOLE = '{"ph": "X", "cat": "cpu_op", "name": "aten::relu", "ts": 0, "dur": 1}'


def works(count: int, early: int = 0) -> list[list[Any]]:
    """Kernels with a launch 5 us before them; some begin 5 us before theirs."""
    rows: list[list[Any]] = []
    for number in range(count + early):
        start = 20 + 10 * number
        launch = start - 5 if number < count else start + 5
        rows.append(["cuda_runtime", "cudaLaunchKernel", launch, 2, {"correlation": number}])
        rows.append(["kernel", "gemm", start, 3, {"correlation": number}])
    return rows


def cut_short() -> Trace:
    return trace_from_columns(columns_of(f'{{"traceEvents": [{WHOLE}'), worker="worker")


def item(kind: str, severity: Severity) -> HealthItem:
    return with_effect(HealthItem(kind=kind, severity=severity, count=1, message="odd"))


def test_a_full_recording_needs_no_remark() -> None:
    rows: list[list[Any]] = [
        ["user_annotation", "ProfilerStep#1", 0, 1000],
        ["cpu_op", "aten::mm", 0, 10, {"Input Dims": [[1, 2], [2, 1]]}],
        ["python_function", "train.py(1): main", 0, 900],
        [
            "cpu_instant_event",
            "[memory]",
            5,
            None,
            {"Bytes": 512, "Device Type": 1, "Total Allocated": 512},
        ],
    ]
    assert health(trace_of([*rows, *works(50)])) == ()


def test_the_worst_comes_first_and_damage_before_gaps() -> None:
    rows = [*works(10, early=5), ["cpu_op", "aten::mm", 5, -10], ["kernel", "gemm", 500, 3]]
    told = [(each.severity, each.nature, each.kind) for each in health(trace_of(rows))]
    assert told == [
        ("critical", "damage", "clocks-disagree"),
        ("warning", "damage", "launch-not-recorded"),
        ("warning", "damage", "negative-durations"),
        ("info", "gap", "no-steps"),
        ("info", "gap", "no-shapes"),
        ("info", "gap", "no-stacks"),
        ("info", "gap", "no-memory"),
    ]


@pytest.mark.parametrize(
    ("severity", "effect"), [("critical", "withheld"), ("warning", "low"), ("info", "none")]
)
def test_severity_says_what_becomes_of_that_which_rests_on_it(
    severity: Severity, effect: str
) -> None:
    found = item("clocks-disagree", severity)
    assert found.effect == effect
    shown = () if effect == "none" else ("step breakdown", "idle causes", "operators")
    assert found.affects == shown


def test_what_damages_nothing_has_no_effect_however_serious() -> None:
    assert (item("trailing-data", "warning").effect, item("no-steps", "warning").affects) == (
        "none",
        (),
    )


def test_an_unknown_kind_of_damage_puts_everything_in_doubt() -> None:
    assert "of-tomorrow" not in damaged_parts()
    assert item("of-tomorrow", "warning").affects == tuple(package.RESTS_ON)


@pytest.mark.parametrize(
    ("rests_on", "kinds"),
    [
        ({"clocks"}, ["clocks-disagree"]),
        ({"launches"}, ["clocks-disagree"]),
        ({"memory"}, []),
        (set(), []),
        (PARTS, ["clocks-disagree"]),
    ],
)
def test_doubts_are_of_what_a_thing_rests_on(rests_on: Parts, kinds: list[str]) -> None:
    trace = trace_of(works(10, early=5))
    assert [each.kind for each in doubts(trace, rests_on, "withheld")] == kinds
    assert doubts(trace, rests_on, "low") == ()


def test_a_file_that_was_cut_off_says_so() -> None:
    assert cut_short().is_truncated
    assert not trace_of(works(1)).is_truncated
    [damage] = doubts(cut_short(), {"steps"}, "low")
    assert damage.kind == "truncated-json"


def test_a_check_that_fails_costs_only_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(trace: Trace) -> list[HealthItem]:
        msg = f"a bug on {trace.worker}"
        raise ZeroDivisionError(msg)

    known = package.all_checks()
    broken = Check(damages={}, check=fail)
    monkeypatch.setattr(package, "all_checks", lambda: (*known, ("new_check", broken)))
    whole = {each.kind for each in health(trace_of(works(1)))}
    [failed] = [each for each in health(trace_of(works(1))) if each.kind == "failed-check"]
    assert {"no-steps", "no-memory"} <= whole
    assert failed.message.startswith(
        "the check new-check failed: ZeroDivisionError: a bug on worker at "
    )
    assert (failed.severity, failed.effect) == ("info", "none")


def test_long_names_are_cut() -> None:
    rows = [["kernel", "gemm" * 40, 0, 3]]
    [found] = [each for each in health(trace_of(rows)) if each.kind == "launch-not-recorded"]
    name = found.examples[0].text.partition(": ")[0]
    assert name == f"{'gemm' * 40}"[:59] + "…"
