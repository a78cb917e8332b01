"""The step with the first fixes: simulated, never longer than without, and its limit then."""

from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given

from jobreports import MS, found, job, over_the_run, passed, rank
from loading import SAMPLE_LOGS, trace_at, trace_of
from reports import WORKER
from stepscope.advice import advise, advise_trace
from stepscope.advice.fixes import predict_fixes
from stepscope.advice.outlook_sentences import with_message
from stepscope.advice.run_advice import with_outcomes
from stepscope.advice.settings import AdviceSettings, Changes, Suppression
from stepscope.base.report import JobOutlook, Outlook, Report, RunReport, WorkerReport
from stepscope.model.trace import Run, Trace
from stepscope.render import brief, html, markdown, text
from stepscope.replay.limits import limit_parts
from stepscope.replay.simulation import simulate
from stepscope.replay.what_if import WhatIf
from stepscope.rules import Rule
from stepscope.rules.shared.claimable_time import Unchanged
from test_advice import TRACE, claiming, fakes, rule

SAMPLES = ("synthetic_item_sync/fault", "synthetic_dataloader/fault", "masking/numpy")
US = 1000


def sample(name: str) -> Trace:
    [path] = (SAMPLE_LOGS / name).glob("*.json.gz")
    return trace_at(Path(path))


def advised(trace: Trace, *rules: Rule[Any]) -> WorkerReport:
    return advise(Run(name="run", workers=(trace,)), rules).workers[0]


def outlook_of(trace: Trace, *rules: Rule[Any]) -> Outlook:
    outlook = advised(trace, *rules).outlook
    assert outlook is not None
    return outlook


def step_times(start_us: int, end_us: int) -> list[tuple[int, int]]:
    """The same time in each of the three steps of 1 ms."""
    return [(step * 1000 * US + start_us * US, step * 1000 * US + end_us * US) for step in range(3)]


# The simulated step


def test_the_first_three_fixes_count_and_the_next_is_named() -> None:
    rules = [
        rule(f"r{number}", claiming(*step_times(100 * number, 100 * number + length)))
        for number, length in enumerate((50, 90, 20, 80, 60))
    ]
    assert outlook_of(TRACE, *rules) == Outlook(
        rules=("r1", "r3", "r4"),
        world="recorded",
        now_ns=1000 * US,
        low_ns=(1000 - 90 - 80 - 60) * US,
        high_ns=1000 * US - (90 + 80 + 60) * 750,
        limit="host",
        limit_share=1.0,
        next_rule="r0",
        next_saving_ns=50 * US,
        next_saving_low_ns=50 * 750,
        message="With “r1”, “r3” and “r4” fixed, the step takes 770–828 µs (now 1.00 ms as "
        "recorded). Next, the fix of “r0” saves 37.5–50.0 µs more.",
    )


def test_time_that_two_of_them_claim_is_saved_once() -> None:
    rules = [rule("a", claiming(*step_times(0, 400))), rule("b", claiming(*step_times(200, 500)))]
    assert outlook_of(TRACE, *rules).low_ns == 500 * US


def test_a_saving_below_the_threshold_does_not_count() -> None:
    tiny = rule("tiny", claiming(*step_times(0, 5)))
    assert advised(TRACE, tiny).outlook is None
    assert outlook_of(TRACE, tiny, rule("a", claiming(*step_times(100, 400)))).rules == ("a",)


def test_findings_of_a_rule_are_one_fix() -> None:
    both = rule("a", claiming(*step_times(0, 100)), claiming(*step_times(500, 700)))
    outlook = outlook_of(TRACE, both)
    assert (outlook.rules, outlook.low_ns) == (("a",), 700 * US)


@given(fakes())
def test_the_step_is_never_longer_than_without_the_fixes(fake: list[Rule[Any]]) -> None:
    outlook = advised(TRACE, *fake).outlook
    if outlook is not None:
        assert 0 <= outlook.low_ns <= outlook.high_ns <= outlook.now_ns
        assert 0 < len(outlook.rules) <= 3


@pytest.mark.parametrize("name", SAMPLES)
def test_the_step_is_that_of_whatif_with_the_same_fixes(name: str) -> None:
    trace = sample(name)
    advice = advise_trace(trace)
    outlook = advice.worker.outlook
    assert outlook is not None
    prediction = predict_fixes(trace, outlook.rules, WhatIf())
    scale = outlook.now_ns / prediction.recorded_ns
    assert outlook.low_ns == pytest.approx(prediction.simulated_ns * scale, rel=1e-6, abs=2)
    assert outlook.high_ns == pytest.approx((prediction.slowest_ns or 0) * scale, rel=1e-6, abs=2)


def test_with_all_fixes_it_saves_the_sum_of_the_net_savings() -> None:
    advice = advise_trace(sample("synthetic_item_sync/fault"))
    outlook = advice.worker.outlook
    assert outlook is not None
    claims = {o.rule: o.claim for o in advice.outcomes if o.claim is not None}
    assert set(outlook.rules) == set(claims)
    net_ns = sum(claim.net_high_ns for claim in claims.values())
    assert outlook.now_ns - outlook.low_ns == pytest.approx(net_ns, rel=1e-3)


# None


def test_without_findings_there_is_no_outlook() -> None:
    worker = advised(TRACE, rule("nothing"))
    assert (worker.outlook, worker.outlook_withheld) == (None, "")


def test_without_a_replay_the_reason_is_given_where_findings_save_time() -> None:
    trace = trace_of([["user_annotation", "ProfilerStep#1", 0, 1000]])
    trace.results["stepscope.rules.shared.claimable_time.unchanged"] = Unchanged(
        simulation=None, reason="it has a circle"
    )
    assert advised(trace, rule("nothing")).outlook_withheld == ""
    worker = advised(trace, rule("a", claiming((0, 500 * US))))
    assert (worker.outlook, worker.outlook_withheld) == (None, "it has a circle")
    said = text.render(report_of(worker, trace))
    assert "The step with these fixes is not predicted: it has a circle." in said


def report_of(worker: WorkerReport, trace: Trace) -> Report:
    report = advise(Run(name="run", workers=(trace,)), [rule("a", claiming((0, 500 * US)))])
    return Report(runs=(msgspec.structs.replace(report, workers=(worker,)),))


def test_a_suppressed_finding_is_not_fixed() -> None:
    trace = sample("synthetic_item_sync/fault")
    assert outlook_of_settings(trace, Changes()).rules == ("item-sync", "optimizer-not-fused")
    suppression = Suppression(rule="item-sync", reason="It is logged.")
    without = outlook_of_settings(trace, Changes(suppressions=(suppression,)))
    assert without.rules == ("optimizer-not-fused",)


def outlook_of_settings(trace: Trace, changes: Changes) -> Outlook:
    outlook = advise_trace(trace, AdviceSettings(changes=changes)).worker.outlook
    assert outlook is not None
    return outlook


def test_an_outlook_on_a_finding_that_is_hidden_later_goes() -> None:
    run = advise(Run(name="run", workers=(TRACE,)), [rule("a", claiming(*step_times(0, 300)))])
    assert run.workers[0].outlook is not None
    hidden = with_outcomes(run, [o for o in run.outcomes if o.rule != "a"])
    assert hidden.workers[0].outlook is None


# Unrecorded steps


def measured(step_ns: int) -> dict[str, Any]:
    """The recorder's metadata with unrecorded steps of this length."""
    figures = dict.fromkeys(("median_ns", "first_quartile_ns", "third_quartile_ns"), step_ns)
    return {"stepscope_recorder": {"unrecorded_steps": {"count": 20, **figures}}}


def test_measured_unrecorded_steps_are_the_ones_that_become_shorter() -> None:
    rows: list[list[Any]] = [
        row
        for step in range(3)
        for row in (
            ["user_annotation", f"ProfilerStep#{step}", step * 1000, 1000],
            *(["cpu_op", "aten::add", step * 1000 + 2 * n, 1] for n in range(400)),
        )
    ]
    half = rule("a", claiming(*step_times(500, 1000)))
    outlook = outlook_of(trace_of(rows, **measured(800 * US)), half)
    assert (outlook.world, outlook.now_ns) == ("unrecorded", 800 * US)
    assert 300 * US < outlook.low_ns < outlook.high_ns < 800 * US, "half of the step, and more"
    assert "the unrecorded step takes" in text.render(report_with(outlook))
    longer = outlook_of(trace_of(rows, **measured(1200 * US)), half)
    assert (longer.world, longer.now_ns) == ("recorded", 1000 * US), "that step is simulated"


# The limit

ROWS: list[list[Any]] = [
    row
    for step in range(3)
    for row in (
        ["user_annotation", f"ProfilerStep#{step}", 1000 * step, 1000],
        ["user_annotation", "enumerate(DataLoader)#_SingleProcess", 1000 * step, 450],
        ["cuda_runtime", "cudaLaunchKernel", 1000 * step + 460, 5, {"correlation": 2 * step}],
        ["kernel", "gemm", 1000 * step + 470, 150, {"correlation": 2 * step}],
        ["cuda_runtime", "cudaLaunchKernel", 1000 * step + 470, 5, {"correlation": 2 * step + 1}],
        [
            "kernel",
            "ncclDevKernel_AllReduce",
            1000 * step + 620,
            350,
            {"correlation": 2 * step + 1},
        ],
        ["cuda_runtime", "cudaDeviceSynchronize", 1000 * step + 480, 500],
    )
]


def test_the_limit_is_data_loading_then_collectives_then_the_device() -> None:
    trace = trace_of(ROWS)
    parts = limit_parts(trace, simulate(trace, ()))
    assert sum(parts.values()) == simulate(trace, ()).simulated_ns
    assert parts["data loading"] == pytest.approx(3 * 450 * US, rel=0.01)
    assert parts["collectives"] == 3 * 350 * US
    assert parts["device"] == 3 * 150 * US
    loader = rule("loader", claiming(*step_times(0, 450)))
    collective = rule("network", claiming(*step_times(620, 970), is_device_work=True))
    assert outlook_of(trace, loader).limit == "collectives"
    assert outlook_of(trace, collective).limit == "data loading"
    assert outlook_of(trace, loader, collective).limit == "device"


@pytest.mark.parametrize("name", SAMPLES)
def test_parts_sum_to_the_path(name: str) -> None:
    trace = sample(name)
    simulation = simulate(trace, ())
    assert sum(limit_parts(trace, simulation).values()) == simulation.simulated_ns


# Jobs


def test_the_step_of_a_job_follows_its_slowest_rank() -> None:
    workers = tuple(rank(n, waits_ms=0) for n in range(2))
    outcomes = (found(0, 5, 20, "a"), found(1, 10, 30, "a"), found(1, 40, 40, "b"), passed(0, "b"))
    report = job(*outcomes, workers=workers)
    assert report.job is not None
    message = (
        "With “The DataLoader runs in the training process” fixed, the job's step takes "
        "80.0–95.0 ms (now 100 ms)."
    )
    expected = JobOutlook(rules=("a",), low_ns=80 * MS, high_ns=95 * MS, message=message)
    assert report.job.outlook == expected, "b saves rank 1 alone, and so the job nothing"
    assert message in text.render(Report(runs=(report,)), width=500)


def test_a_finding_over_the_run_is_a_fix_of_the_job() -> None:
    workers = tuple(rank(n, waits_ms=0) for n in range(2))
    report = job(over_the_run(10, 25, 0), workers=workers)
    assert report.job is not None
    outlook = report.job.outlook
    assert outlook is not None
    assert (outlook.rules, outlook.low_ns, outlook.high_ns) == (("late",), 75 * MS, 90 * MS)


def test_more_fixes_never_make_the_step_of_a_job_longer() -> None:
    workers = tuple(rank(n, waits_ms=n) for n in range(3))
    every = [found(n, 1 + r, 4 + 2 * r, f"r{r}") for n in range(3) for r in range(3)]
    low_ns: dict[frozenset[str], int] = {}
    for size in (1, 2, 3):
        for rules in combinations(("r0", "r1", "r2"), size):
            report = job(*(o for o in every if o.rule in rules), workers=workers)
            assert report.job is not None
            assert report.job.outlook is not None
            low_ns[frozenset(rules)] = report.job.outlook.low_ns
    for few, few_ns in low_ns.items():
        assert all(many_ns <= few_ns for many, many_ns in low_ns.items() if few <= many)


def test_one_rank_is_no_job() -> None:
    report = job(found(0, 5, 20), workers=(rank(0),))
    assert report.job is not None
    assert report.job.outlook is None


# Sentences

OUTLOOK = Outlook(
    rules=("item-sync", "dataloader-no-workers", "launch-bound"),
    world="recorded",
    now_ns=141 * MS,
    low_ns=84 * MS,
    high_ns=92 * MS,
    limit="host",
    limit_share=0.713,
    next_rule="tiny-kernels",
    next_saving_ns=3 * MS,
    next_saving_low_ns=1 * MS,
)
TITLES = {
    "item-sync": "Reading values drains the device",
    "dataloader-no-workers": "The DataLoader runs in the training process",
    "launch-bound": "The CPU cannot launch kernels fast enough",
    "tiny-kernels": "Most kernels are very short",
}
SENTENCES = (
    "With “Reading values drains the device”, “The DataLoader runs in the training process” and "
    "“The CPU cannot launch kernels fast enough” fixed, the step takes 84.0–92.0 ms (now 141 ms as "
    "recorded); then the host is the limit (71.3 % of its critical path). Next, the fix of “Most "
    "kernels are very short” saves 1.00–3.00 ms more."
)


def message(outlook: Outlook, *, has_steps: bool = True, has_device: bool = True) -> str:
    return with_message(outlook, TITLES, has_steps=has_steps, has_device=has_device).message


def report_with(outlook: Outlook) -> Report:
    worker = msgspec.structs.replace(WORKER, outlook=outlook)
    findings = [found(0, 5, 20, name, trace=worker.trace) for name in outlook.rules]
    return Report(runs=(with_outcomes(RunReport("run", (worker,), ()), findings),))


def test_each_form_ends_with_the_outlook() -> None:
    assert message(OUTLOOK) == SENTENCES
    report = report_with(msgspec.structs.replace(OUTLOOK, message=SENTENCES))
    assert text.render(report, width=500).splitlines()[-3] == SENTENCES
    assert markdown.render(report).splitlines()[-1] == f"**{SENTENCES}**"
    assert f"<strong>{SENTENCES}</strong>" in html.render(report)
    assert f"- {SENTENCES}" in brief.render(report).splitlines()


def test_without_a_range_or_a_next_finding_less_is_said() -> None:
    sure = msgspec.structs.replace(OUTLOOK, rules=("item-sync",), low_ns=92 * MS, next_rule="")
    assert message(sure) == (
        "With “Reading values drains the device” fixed, the step takes 92.0 ms (now 141 ms as "
        "recorded); then the host is the limit (71.3 % of its critical path)."
    )
    unrecorded = msgspec.structs.replace(sure, world="unrecorded")
    assert message(unrecorded, has_device=False) == (
        "With “Reading values drains the device” fixed, the unrecorded step takes 92.0 ms "
        "(now 141 ms)."
    )
    assert "the trace takes 92.0 ms (now 141 ms);" in message(sure, has_steps=False)
