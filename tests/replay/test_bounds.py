"""No finding promises more than the replay without its work: all samples, and bounds by hand."""

import sys

import numpy as np
import pytest

from loading import SAMPLE_LOGS, trace_at, trace_of
from replay.bounds import (
    BoundedFinding,
    World,
    bound_ns,
    bounded_findings,
    interval_sum_ns,
    table,
    traces_at_hand,
    weights_of_worlds,
)
from replay.test_graph import GEMM, recorded
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.base.calibration import Factor
from stepscope.model.trace import Trace
from stepscope.rules import Claim

SOME = Factor(low=0.1, high=0.2, source="The test.")


def bounded(under: str) -> list[BoundedFinding]:
    """Return the findings of the traces below a folder, the largest overestimate first."""
    findings = [
        finding
        for name, path in traces_at_hand().items()
        if name.startswith(under)
        for finding in bounded_findings(name, trace_at(path))
    ]
    return sorted(findings, key=lambda finding: -finding.overestimate)


@pytest.mark.slow
def test_no_finding_of_a_sample_promises_more_than_its_bound(
    capsys: pytest.CaptureFixture[str],
) -> None:
    findings = bounded("sample_logs/")
    with capsys.disabled():
        sys.stdout.write(f"\n{table(findings)}\n")
    assert len(findings) > 60
    assert [finding for finding in findings if not finding.is_kept] == []


def recorded_bound_ns(trace: Trace, claim: Claim) -> int:
    return bound_ns(trace, [claim], *weights_of_worlds(trace)[0])


def test_the_bound_of_times_is_the_whole_time_whatever_the_factor() -> None:
    trace = trace_of([["user_annotation", "ProfilerStep#1", 0, 100]])
    claim = Claim(intervals=np.array([[10_000, 60_000]]), factor=SOME)
    assert recorded_bound_ns(trace, claim) == 50_000
    assert interval_sum_ns(trace, [claim, claim]) == pytest.approx(10_000)


def test_the_bound_of_kernels_that_the_host_does_not_wait_for_is_small() -> None:
    trace = recorded({"repeat": 50, "body": [GEMM, {"host": 1_500}]})
    whole = np.array([[0, 10**12]])
    claim = Claim(intervals=whole, factor=SOME, is_device_work=True)
    assert recorded_bound_ns(trace, claim) < 1_100_000
    assert interval_sum_ns(trace, [claim]) > 50_000_000


def test_the_bound_of_waits_is_the_step_without_them() -> None:
    # the case of tests/replay/test_simulation.py: 217 us in each step, and 1 us for the copy's end
    trace = recorded(GEMM, {"item": 4}, {"host": 200}, GEMM, {"host": 900})
    claim = Claim(intervals=np.zeros((0, 2), dtype=np.int64), waits=synchronizations(trace).calls)
    assert recorded_bound_ns(trace, claim) == pytest.approx(4 * 217_000, abs=4_000)


def test_the_bound_of_calls_includes_what_they_launch() -> None:
    trace = recorded(GEMM, {"item": 4}, steps=1)
    calls = np.flatnonzero((trace.host_calls["name"] == "aten::mm").to_numpy())
    claim = Claim(intervals=np.zeros((0, 2), dtype=np.int64), calls=calls)
    assert recorded_bound_ns(trace, claim) > 990_000


@pytest.mark.parametrize(("net", "alone", "bound"), [(3, 1, 9), (3, 9, 6)])
def test_a_promise_above_the_saving_alone_or_above_the_bound_is_not_kept(
    net: float, alone: float, bound: float
) -> None:
    world = World(net_high_ns=net, alone_ns=alone, bound_ns=bound)
    assert not world.is_kept
    assert World(net_high_ns=net, alone_ns=net, bound_ns=net).is_kept


def test_the_worst_overestimate_of_the_sums_of_times_is_large() -> None:
    [path] = (SAMPLE_LOGS / "synthetic_tiny_batch" / "fault").glob("*.json.gz")
    findings = {each.rule: each for each in bounded_findings("tiny", trace_at(path))}
    assert findings["tiny-kernels"].recorded.net_high_ns < 0.1 * 5_868_000
    assert findings["tiny-kernels"].interval_sum_ns == pytest.approx(5_868_000, rel=0.01)
