"""The rule on a trace of a few lines, without a recording."""

import json
from pathlib import Path

import stepscope
from acme_stepscope_rules import RULES
from stepscope.advice import rule_outcomes


def trace(folder: Path, *, checkpoint_ms: int) -> Path:
    """Write a step of 100 ms with a kernel of 50 ms and a checkpoint after it."""
    events = [
        ("user_annotation", "ProfilerStep#1", 0, 100),
        ("user_annotation", "save_checkpoint", 50, checkpoint_ms),
        ("kernel", "gemm", 0, 50),
    ]
    path = folder / "trace.json"
    written = [
        {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 0, "ts": at * 1000, "dur": ms * 1000}
        for cat, name, at, ms in events
    ]
    path.write_text(json.dumps({"traceEvents": written}))
    return path


def test_a_checkpoint_of_30_ms_costs_30_ms(tmp_path: Path) -> None:
    run = stepscope.load(trace(tmp_path, checkpoint_ms=30))
    [outcome] = rule_outcomes(run.workers[0], RULES)
    assert outcome.status == "found"
    assert outcome.claim.net_high_ns == 30_000_000


def test_a_checkpoint_of_1_ms_costs_next_to_nothing(tmp_path: Path) -> None:
    run = stepscope.load(trace(tmp_path, checkpoint_ms=1))
    assert [outcome.status for outcome in rule_outcomes(run.workers[0], RULES)] == ["passed"]
