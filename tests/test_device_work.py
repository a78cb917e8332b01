"""Work of the device that would become faster: saved only where the device is the limit."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from loading import trace_of
from stepscope.advice import advise, rule_outcomes
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.devices.gpu_bound import (
    exclusive_device_time,
    gpu_bound_share,
    gpu_bound_times,
)
from stepscope.base.calibration import Factor, speedup
from stepscope.base.findings import ClaimReport
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Run, Trace
from stepscope.rules import Claim, Finding, Rule
from stepscope.rules.shared.claimable_time import Unchanged
from test_advice import claiming, rule

pytestmark = pytest.mark.frames

HALF = Factor(low=0.25, high=0.5, source="The test.")
"""Launch calls of 5 us; a kernel is queued behind one of 100 us, then the host is late."""
ROWS: list[list[Any]] = [
    ["user_annotation", "ProfilerStep#1", 0, 1000],
    ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
    ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 2}],
    ["cuda_runtime", "cudaLaunchKernel", 500, 5, {"correlation": 3}],
    ["kernel", "first", 10, 100, {"correlation": 1}],
    ["kernel", "second", 110, 100, {"correlation": 2}],
    ["kernel", "third", 510, 100, {"correlation": 3}],
]
"""The same work, queued at once, and a host that waits for it: the device is the limit."""
QUEUED: list[list[Any]] = [
    ["user_annotation", "ProfilerStep#1", 0, 1000],
    ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
    ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 2}],
    ["cuda_runtime", "cudaLaunchKernel", 20, 5, {"correlation": 3}],
    ["cuda_runtime", "cudaDeviceSynchronize", 30, 285],
    ["kernel", "first", 10, 100, {"correlation": 1}],
    ["kernel", "second", 110, 100, {"correlation": 2}],
    ["kernel", "third", 210, 100, {"correlation": 3}],
]


def us(*spans: tuple[int, int]) -> Intervals:
    return np.array(spans, dtype=np.int64).reshape(-1, 2) * 1000


def working(*spans: tuple[int, int], factor: Factor = HALF, priority: int = 50) -> Rule[Any]:
    claim = Claim(intervals=us(*spans), factor=factor, is_device_work=True)
    return rule("faster", Finding(message="m", claims=(claim,)), priority=priority)


def claim_of(trace: Trace, *rules: Rule[Any]) -> ClaimReport:
    [claim] = [each.claim for each in rule_outcomes(trace, rules) if each.rule == "faster"]
    assert claim is not None
    return claim


def test_the_device_is_the_limit_where_its_next_work_is_queued_already() -> None:
    bound = gpu_bound_times(trace_of(ROWS))
    assert bound.sure.tolist() == us((10, 110), (510, 610)).tolist(), "nothing follows the third"
    assert bound.unknown.tolist() == []


def test_faster_work_that_the_host_waits_for_shortens_the_step() -> None:
    claim = claim_of(trace_of(QUEUED), working((10, 310)))
    assert (claim.high_ns, claim.net_low_ns, claim.net_high_ns) == (150_000, 75_000, 150_000)


def test_faster_work_saves_nothing_where_the_host_is_late() -> None:
    assert rule_outcomes(trace_of(ROWS), [working((10, 210), (510, 610))])[0].status == "passed"


def test_a_saving_is_stated_for_the_step_without_the_profiler_as_well() -> None:
    """Four calls of 1 us less before the waits: the device is the limit in both steps."""
    claim = claim_of(trace_of(QUEUED), working((10, 310)))
    assert (claim.unrecorded_low_ns, claim.unrecorded_high_ns) == (75_000, 150_000)
    assert "without the profiler" not in claim.method, "it is the same"


def test_without_a_replay_the_step_without_the_profiler_is_unknown() -> None:
    trace = trace_of(QUEUED)
    trace.results["stepscope.rules.shared.claimable_time.unchanged"] = Unchanged(
        simulation=None, reason="it has a circle"
    )
    claim = claim_of(trace, working((10, 310)))
    assert (claim.high_ns, claim.net_low_ns, claim.net_high_ns) == (150_000, 0, 150_000)
    assert claim.unrecorded_high_ns is None
    assert claim.method.endswith("at most this sum of times: it has a circle.")


def test_of_work_with_an_unknown_successor_nothing_is_sure() -> None:
    rows = [row for row in QUEUED if row[:3] != ["cuda_runtime", "cudaLaunchKernel", 10]]
    trace = trace_of(rows)
    assert gpu_bound_times(trace).unknown.tolist() == us((10, 110)).tolist()
    claim = claim_of(trace, working((10, 110)))
    assert (claim.net_low_ns, claim.net_high_ns) == (0, 50_000)


def test_without_any_launch_only_the_last_is_known() -> None:
    trace = trace_of([row for row in QUEUED if row[0] == "kernel"])
    device = main_device(trace)
    assert device is not None
    assert gpu_bound_share(trace, device) is None
    claim = claim_of(trace, working((0, 200)))
    assert (claim.net_low_ns, claim.net_high_ns) == (0, 100_000)


def test_without_a_device_there_is_no_work_of_one() -> None:
    trace = trace_of([["user_annotation", "ProfilerStep#1", 0, 1000]])
    assert rule_outcomes(trace, [working((0, 500))])[0].status == "passed"


def test_waiting_and_work_never_save_the_same_time() -> None:
    """Without its 300 us of waiting, the host launches the third at 210 us, still too late for
    the others; a launch takes 10 us.
    """
    late = [*ROWS, ["cuda_runtime", "cudaDeviceSynchronize", 510, 105]]
    waiting = rule("waiting", claiming((210_000, 510_000), high=1.0), priority=10)
    report = advise(Run(name="run", workers=(trace_of(late),)), [waiting, working((10, 610))])
    saved = {each.rule: each.claim.net_high_ns for each in report.outcomes if each.claim}
    assert saved == {"waiting": 290_000, "faster": 50_000}


def test_work_beside_other_work_is_not_alone() -> None:
    trace = trace_of(
        [
            ["kernel", "chosen", 0, 100, {"stream": 7}],
            ["kernel", "other", 60, 100, {"stream": 8}],
            ["kernel", "chosen", 200, 50, {"stream": 8}],
        ]
    )
    rows = np.flatnonzero((trace.device_events["name"] == "chosen").to_numpy())
    assert exclusive_device_time(trace, rows).tolist() == us((0, 60), (200, 250)).tolist()
    assert exclusive_device_time(trace, rows[:0]).tolist() == intervals.EMPTY.tolist()


@pytest.mark.parametrize(("low", "high", "shares"), [(2, 4, (0.5, 0.75)), (1, 2, (0.0, 0.5))])
def test_a_speed_up_wins_all_but_what_is_left(
    low: float, high: float, shares: tuple[float, float]
) -> None:
    factor = speedup(low, high, "The test.")
    assert (factor.low, factor.high) == shares


# The sentence of a device that is the limit


BUSY: list[list[Any]] = [
    ["user_annotation", "ProfilerStep#1", 0, 1000],
    ["cuda_runtime", "cudaLaunchKernel", 0, 5, {"correlation": 1}],
    ["cuda_runtime", "cudaLaunchKernel", 10, 5, {"correlation": 2}],
    ["kernel", "void conv_backward(int)", 10, 690, {"correlation": 1}],
    ["kernel", "gemm", 700, 300, {"correlation": 2}],
    ["cuda_runtime", "cudaDeviceSynchronize", 20, 980],
]


def verdict(*rules: Rule[Any]) -> str:
    return advise(Run(name="run", workers=(trace_of(BUSY),)), rules).verdict


def test_a_healthy_run_is_told_so_with_its_largest_kernel() -> None:
    assert verdict(rule("quiet")) == (
        "Step 1.00 ms (one step); the GPU is busy 99.0 % and is the limit; the loop keeps it busy, "
        "and only its own work can become faster: conv_backward takes 69.7 % of its kernels' "
        "time."
    )


def test_and_with_what_would_still_help() -> None:

    told = verdict(
        dataclasses.replace(working((10, 700)), culprit="arithmetic in double precision")
    )
    assert told.endswith("faster: arithmetic in double precision costs 173–345 µs.")


def test_what_others_would_win_already_is_no_reason_for_alarm() -> None:
    special = rule("special", claiming((210_000, 500_000), severity="critical"), priority=10)
    general = rule("general", claiming((210_000, 510_000), severity="critical"), priority=20)
    alone_ = rule("alone", claiming((610_000, 611_000), severity="critical"), priority=30)
    outcomes = rule_outcomes(trace_of(ROWS), [special, general, alone_])
    assert {each.rule: each.severity for each in outcomes} == {
        "special": "critical",
        "general": "info",
        "alone": "critical",
    }
