"""Loops over a tensor and garbage collection, recorded here: the faults, and their fixes."""

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from loading import trace_at
from stepscope.advice import rule_outcomes
from stepscope.base.findings import Outcome
from stepscope.rules.python_gc_pauses import RULE as GARBAGE
from stepscope.rules.python_loop_indexing import RULE as LOOPS
from undisturbed import undisturbed

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.recording
STEPS = 5


def recorded(path: Path, step: Callable[[], object], *, with_garbage: bool = False) -> Path:
    """Record some steps; with garbage there is no schedule, which torch 2.13 does not survive."""
    extra = {}
    if with_garbage:
        from torch.profiler import _ExperimentalConfig  # type: ignore[attr-defined]

        config = _ExperimentalConfig(record_python_gc_info=True)
        extra = {"with_stack": True, "experimental_config": config}
    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], **extra) as prof:
        for number in range(STEPS):
            with torch.profiler.record_function(f"ProfilerStep#{number}"):
                step()
    prof.export_chrome_trace(str(path))
    return path


def said(path: Path, rule: object) -> Outcome:
    [outcome] = rule_outcomes(trace_at(path), [rule])  # type: ignore[list-item]
    return outcome


def total_in_a_loop() -> object:
    rows = torch.ones(200, 32)
    total = torch.zeros(())
    for place in range(len(rows)):
        total = total + rows[place].sum()
    return total


def test_a_loop_over_rows_is_found_and_one_operator_is_not(tmp_path: Path) -> None:
    fault = said(recorded(tmp_path / "fault.json", total_in_a_loop), LOOPS)
    assert fault.severity in ("warning", "critical")  # a slow first step lowers its confidence
    assert "in 1,000 iterations of aten::select → aten::sum → aten::add" in fault.message
    fix = recorded(tmp_path / "fix.json", lambda: torch.ones(200, 32).sum())
    assert said(fix, LOOPS).status == "passed"


def test_iterating_over_rows_indexes_in_cpp(tmp_path: Path) -> None:
    path = recorded(tmp_path / "rows.json", lambda: [row.sum() for row in torch.ones(200, 32)])
    assert said(path, LOOPS).status == "passed"


def test_reading_a_value_of_each_row_is_found_and_reading_all_at_once_is_not(
    tmp_path: Path,
) -> None:
    rows, wanted = torch.ones(200, 32), torch.ones(200)

    def hits() -> int:
        both = zip(rows, wanted, strict=True)
        return sum(int(row.argmax() == one) for row, one in both)

    fault = said(recorded(tmp_path / "fault.json", hits), LOOPS)
    assert fault.severity in ("warning", "critical")  # a slow first step lowers its confidence
    assert "in 1,000 iterations of aten::argmax → aten::eq → aten::item" in fault.message
    fix = recorded(tmp_path / "fix.json", lambda: (rows.argmax(1) == wanted).sum().item())
    assert said(fix, LOOPS).status == "passed"


@pytest.mark.slow
def test_collecting_in_each_step_is_found_and_without_it_is_not(tmp_path: Path) -> None:
    kept = [[number, {}] for number in range(100_000)]

    def multiply() -> object:
        return torch.ones(256, 256) @ torch.ones(256, 256)

    def collect() -> object:
        multiply()
        return gc.collect()

    path = tmp_path / "fault.json"
    fault = undisturbed(
        lambda: said(recorded(path, collect, with_garbage=True), GARBAGE),
        lambda each: each.severity in ("warning", "critical"),
    )
    assert fault.severity in ("warning", "critical")  # a slow first step lowers its confidence
    assert "of it in gc.collect()" in fault.message
    assert fault.fix is not None
    assert fault.fix.summary == "Do not call gc.collect() in every step."
    gc.disable()
    try:
        fix = recorded(tmp_path / "fix.json", multiply, with_garbage=True)
    finally:
        gc.enable()
    assert said(fix, GARBAGE).status == "cannot-tell", "no collection was there to be recorded"
    assert len(kept) == 100_000
