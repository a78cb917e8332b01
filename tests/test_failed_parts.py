"""A part of the advice or of a comparison that fails costs that part alone."""

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from loading import fresh_trace_at
from stepscope import comparison
from stepscope.advice import advise, merging, run_advice, savings, trace_advice, trace_report
from stepscope.base.report import Report, RunReport
from stepscope.comparison.samples import Sample, sample
from stepscope.model.trace import Run
from stepscope.render import brief, github, html, json, markdown, sarif, text
from stepscope.rules.shared import claimable_time

pytestmark = pytest.mark.frames

SAMPLE = next(
    Path(__file__).parents[1].glob("sample_logs/synthetic_dataloader/fault/*.pt.trace.json.gz")
)
BROKEN = "broken on purpose"
FORMS = (text, brief, github, html, json, markdown, sarif)


def _fail(*_arguments: Any, **_more: Any) -> Any:
    raise ValueError(BROKEN)


def _advised() -> RunReport:
    return advise(Run(name="r", workers=(fresh_trace_at(SAMPLE),)))


@cache
def _intact() -> RunReport:
    return _advised()


def _titles(run: RunReport) -> list[str]:
    return [finding.outcome.title for finding in run.merged]


@pytest.mark.parametrize(
    ("module", "part"),
    [
        (trace_advice, "potential_saving"),
        (trace_advice, "time_budget"),
        (trace_advice, "overall_status"),
        (trace_advice, "advised_verdict"),
        (trace_advice, "outlook"),
        (trace_advice, "outlook_withheld"),
        (trace_advice, "rank_summary"),
        (trace_report, "device_metrics"),
        (trace_report, "idle_per_step"),
        (trace_report, "record_next"),
        (trace_report, "run_settings"),
        (trace_report, "measured_steps"),
        (merging, "ranks_of"),
        (merging, "steps_of"),
        (merging, "related"),
        (run_advice, "worker_reports"),
        (run_advice, "representative_traces"),
        (run_advice, "job_savings"),
        (run_advice, "job_outlook"),
        (run_advice, "_verdict"),
    ],
)
def test_a_part_that_fails_is_left_out_and_named_in_every_form(
    module: Any, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _titles(_intact())
    monkeypatch.setattr(module, part, _fail)
    run = _advised()
    assert _titles(run) == _titles(_intact())
    failed = [item for item in run.workers[0].health if item.kind == "failed-part"]
    assert failed
    assert all(BROKEN in item.message and "report it" in item.remedy for item in failed)
    report = Report(runs=(run,))
    assert BROKEN in " ".join(text.render(report).split())
    assert all(form.render(report) for form in FORMS)


def test_without_the_simulation_savings_are_sums_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claimable_time, "simulate", _fail)
    run = _advised()
    assert _titles(run) == _titles(_intact())
    [claim, *_] = [each.outcome.claim for each in run.merged if each.outcome.claim]
    assert claim.high_ns > 0
    assert (
        "Not simulated, and therefore at most this sum of times: the simulation failed (Value"
        in (claim.method)
    )


def test_without_the_unrecorded_step_savings_are_of_the_recorded_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(claimable_time, "unrecorded_world", _fail)
    claims = [each.outcome.claim for each in _advised().merged if each.outcome.claim]
    assert claims
    assert {claim.unrecorded_high_ns for claim in claims} == {None}


def test_a_finding_whose_saving_fails_is_shown_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(savings, "claim_report", _fail)
    run = _advised()
    assert set(_titles(run)) == set(_titles(_intact()))
    for before in _intact().merged:
        if before.outcome.claim is not None:
            [now] = [each for each in run.merged if each.outcome.rule == before.outcome.rule]
            assert now.outcome.claim is None
            assert now.outcome.confidence == "low"
            assert BROKEN in now.outcome.doubts[-1]


@cache
def _sample() -> Sample:
    return sample(fresh_trace_at(SAMPLE), _intact())


@pytest.mark.parametrize(
    "part",
    [
        *("idle", "figures", "operator_rows", "device_rows"),
        *("advice_changes", "followed_savings", "setting_changes"),
    ],
)
def test_a_part_of_a_comparison_that_fails_is_left_out_and_named(
    part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = comparison.compare("a", [_sample()], "b", [_sample()])
    monkeypatch.setattr(comparison, part, _fail)
    compared = comparison.compare("a", [_sample()], "b", [_sample()])
    assert (compared.step, compared.waterfall) == (whole.step, whole.waterfall)
    [failure] = set(compared.warnings) - set(whole.warnings)
    assert BROKEN in failure
    assert "This is a bug" in failure
