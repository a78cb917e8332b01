"""Laws of savings on generated traces, with generated claims of every form, in both worlds."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from generated import examples
from loading import trace_of
from replay.bounds import World, bound_ns, weights_of_worlds
from rules.claimed import finding, findings, host_traces, schedules, spans
from stepscope.advice.rule_finding import RuleFinding
from stepscope.advice.savings import resolve_savings
from stepscope.analyses.core.window import window
from stepscope.base.calibration import Factor
from stepscope.base.findings import ClaimReport
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.replay.simulation import Simulation
from stepscope.rules import Claim
from stepscope.rules.shared.claimable_time import (
    claimed_ns,
    fixes_at_least,
    fixes_at_most,
    unchanged,
    unrecorded,
    unrecorded_ns,
)

Row = list[Any]
traces = st.one_of(schedules(), host_traces())


def worlds(trace: Trace) -> tuple[Simulation, Simulation]:
    """Return the replays of the recorded step and of the unrecorded one."""
    recorded, without_profiler = unchanged(trace).simulation, unrecorded(trace)
    if recorded is None or without_profiler is None:
        reject()
    return recorded, without_profiler


def reports(trace: Trace, found: Sequence[RuleFinding]) -> list[ClaimReport]:
    resolved = [each.outcome.claim for each in resolve_savings(trace, list(found))]
    return [claim for claim in resolved if claim is not None]


def claims_of(found: Sequence[RuleFinding]) -> list[Claim]:
    return [claim for each in found for claim in each.finding.claims]


def saved_ns(trace: Trace, found: Sequence[RuleFinding], world: Simulation) -> tuple[int, int]:
    """Return the time that the window gains when all fixes are made, at least and at most."""
    least, most = (
        world.with_changes(changes(trace, claims_of(found), world))
        for changes in (fixes_at_least, fixes_at_most)
    )
    return least.saved_ns - world.saved_ns, most.saved_ns - world.saved_ns


@given(st.data())
def test_without_a_fix_the_step_is_the_recorded_one(data: st.DataObject) -> None:
    trace = data.draw(traces)
    recorded, without_profiler = worlds(trace)
    assert recorded.simulated_ns == recorded.recorded_ns
    assert saved_ns(trace, (), recorded) == saved_ns(trace, (), without_profiler) == (0, 0)


@examples(100)
@given(st.data())
def test_net_savings_and_what_remains_are_the_step(data: st.DataObject) -> None:
    trace = data.draw(traces)
    found = data.draw(findings(trace))
    recorded, _ = worlds(trace)
    claims, span = reports(trace, found), window(trace)
    step_ns = span.per_step(recorded.recorded_ns)
    remaining_ns = step_ns - sum(claim.net_high_ns for claim in claims)
    _, joint_ns = saved_ns(trace, found, recorded)
    assert remaining_ns >= span.per_step(recorded.recorded_ns - joint_ns) - 1 >= -1


@examples(100)
@given(st.data())
def test_a_finding_saves_no_more_after_others_than_alone_nor_than_its_bound(
    data: st.DataObject,
) -> None:
    trace = data.draw(traces)
    found = data.draw(findings(trace))
    worlds(trace)
    span = window(trace)
    for one, claim in zip(found, reports(trace, found), strict=True):
        alone = claimed_ns(trace, one.finding.claims), unrecorded_ns(trace, one.finding.claims)
        nets = (
            (claim.net_low_ns, claim.net_high_ns),
            (claim.unrecorded_net_low_ns, claim.unrecorded_net_high_ns),
        )
        worlds_weights = weights_of_worlds(trace)
        for (low_ns, high_ns), alone_ns, weights in zip(nets, alone, worlds_weights, strict=True):
            assert low_ns is not None
            assert high_ns is not None
            assert 0 <= low_ns <= high_ns
            bound = span.per_step(bound_ns(trace, one.finding.claims, *weights))
            world = World(
                net_high_ns=high_ns, alone_ns=span.per_step(alone_ns or 0), bound_ns=bound
            )
            assert world.is_kept


@examples(100)
@given(st.data())
def test_one_more_fix_never_makes_the_promised_step_longer(data: st.DataObject) -> None:
    trace = data.draw(traces)
    found = data.draw(findings(trace))
    gone = data.draw(st.integers(0, len(found) - 1))
    fewer = [*found[:gone], *found[gone + 1 :]]
    for world in worlds(trace):
        least, most = saved_ns(trace, found, world)
        assert least <= most
        assert (least, most) >= (0, 0)
        least_before, most_before = saved_ns(trace, fewer, world)
        assert least >= least_before
        assert most >= most_before


@given(st.data(), st.randoms(use_true_random=False))
def test_the_order_of_the_fixes_does_not_matter(
    data: st.DataObject, shuffling: random.Random
) -> None:
    trace = data.draw(traces)
    found = data.draw(findings(trace))
    shuffled = list(found)
    shuffling.shuffle(shuffled)
    for world in worlds(trace):
        assert saved_ns(trace, shuffled, world) == saved_ns(trace, found, world)


@given(st.data())
def test_on_one_thread_nets_are_exactly_what_the_fixes_save_together(data: st.DataObject) -> None:
    """Nothing runs at the same time, so that nothing is saved by two fixes together only."""
    trace = data.draw(host_traces())
    recorded, _ = worlds(trace)
    found, taken = [], intervals.EMPTY
    for number in range(data.draw(st.integers(1, 4))):
        times = intervals.difference(data.draw(spans(trace)), taken)
        taken = intervals.merged(taken, times)
        factor = Factor(low=0.25, high=data.draw(st.sampled_from((0.5, 1.0))), source="The test.")
        found.append(finding(number, [Claim(intervals=times, factor=factor)]))
    assume(recorded.graph.chain.max() == 0)
    claims = reports(trace, found)
    saved = saved_ns(trace, found, recorded)[1]
    assert sum(claim.net_high_ns for claim in claims) == pytest.approx(saved, abs=len(claims) * 5)
    assert sum(claim.net_high_ns for claim in claims) <= window(trace).reference_ns


HOST_AND_DEVICE: list[Row] = [
    ["user_annotation", "ProfilerStep#1", 0, 240],
    ["cuda_runtime", "cudaLaunchKernel", 5, 5, {"correlation": 1}],
    ["kernel", "gemm", 15, 200, {"correlation": 1}],
    ["cpu_op", "aten::mm", 20, 200],
    ["cuda_runtime", "cudaDeviceSynchronize", 220, 10],
]
"""The host and the device work at the same time, and the host waits for the device."""


def test_what_only_two_fixes_save_together_counts_for_neither_and_is_stated() -> None:
    trace = trace_of(HOST_AND_DEVICE)
    kernel = np.array([[15_000, 215_000]])
    operator = np.flatnonzero((trace.host_calls["name"] == "aten::mm").to_numpy())
    whole = Factor(low=1.0, high=1.0, source="The test.")
    faster = finding(0, [Claim(intervals=kernel, factor=whole, is_device_work=True)])
    without = finding(1, [Claim(intervals=kernel, factor=whole, calls=operator)])
    first, second = reports(trace, [faster, without])
    assert (first.net_high_ns, second.net_high_ns) == (0, 15_000)
    assert saved_ns(trace, [faster, without], worlds(trace)[0])[1] == 200_000
    assert "After the fixes of" not in first.method
    assert second.method.endswith("After the fixes of rule-0, it saves at most 200 µs.")


def test_a_removed_call_leaves_the_work_of_other_threads() -> None:
    step = ["user_annotation", "ProfilerStep#1", 0, 500, {"tid": 1}]
    others = [["cpu_op", "aten::mm", 0, 400, {"tid": thread}] for thread in (1, 2)]
    trace = trace_of([step, *others])
    first = np.flatnonzero((trace.host_calls["name"] == "aten::mm").to_numpy())[:1]
    claim = Claim(intervals=np.array([[0, 400_000]]), calls=first)
    assert claimed_ns(trace, [claim]) == 100_000


def test_of_a_time_that_two_fixes_change_the_greater_fraction_goes() -> None:
    trace = trace_of([["user_annotation", "ProfilerStep#1", 0, 100]])
    small, large = (
        finding(number, [Claim(intervals=np.array([[0, 80_000]]), factor=Factor(0, high, "Test."))])
        for number, high in enumerate((0.25, 0.5))
    )
    recorded, _ = worlds(trace)
    assert saved_ns(trace, [small, large], recorded)[1] == 40_000
    assert [claim.net_high_ns for claim in reports(trace, [small, large])] == [20_000, 0]
