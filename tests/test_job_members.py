"""What the recordings of a built job tell of each other: machines, groups, waiting, blame."""

import dataclasses
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import rankbuild
from jobreports import MS
from loading import columns_of
from rankbuild import Group, Plan
from stepscope.advice import AdviceSettings, advise, advise_trace, run_report
from stepscope.advice.settings import Changes, Profile
from stepscope.advice.trace_advice import advise_trace_by
from stepscope.base.report import RunReport
from stepscope.model.trace import Run, Trace, trace_from_columns
from stepscope.rules import Finding, Rule, RuleResult, straggler_rank
from test_advice import claiming, rule

LATE = 5
PIPELINES = [Group(name=f"p{n}", description="mesh_pp", ranks=(n, n + 4)) for n in range(4)]
PLAN = Plan(
    groups=[*rankbuild.grid(8, 2), *PIPELINES], world_size=8, slow_us={LATE: 400.0}, jitter=0.001
)


def traces(plan: Plan = PLAN, **how: Any) -> tuple[Trace, ...]:
    truth = rankbuild.run(plan)
    documents = [
        rankbuild.document(truth, rank, host=f"node{rank // 4}", **how)
        for rank in range(plan.world_size)
    ]
    return read(documents)


def read(documents: Iterable[dict[str, Any]]) -> tuple[Trace, ...]:
    return tuple(
        dataclasses.replace(
            trace_from_columns(columns_of(json.dumps(document)), worker=f"w{rank}"), id=f"t{rank}"
        )
        for rank, document in enumerate(documents)
    )


def finding(check: Callable[[Trace], Iterable[RuleResult]], name: str = "own") -> Rule[Any]:
    return dataclasses.replace(
        rule(name), check=lambda trace, _options: check(trace), category="host"
    )


@pytest.fixture(scope="module")
def job() -> RunReport:
    """Rank 5 computes longer before each collective, and one rule finds something there."""
    own = finding(lambda trace: [claiming((0, 10**9))] if trace.rank == LATE else [])
    return advise(Run(name="job", workers=traces()), [own, straggler_rank.RULE])


def test_recordings_are_told_with_machine_stage_and_group(job: RunReport) -> None:
    assert [(each.host, each.groups, each.world_size) for each in job.workers] == [
        (
            f"node{rank // 4}",
            (
                f"pipeline stage {rank // 4 + 1} of 2",
                f"tensor-parallel group {rank // 2 + 1} of 4",
            ),
            8,
        )
        for rank in range(8)
    ]


def test_all_wait_but_the_late_rank(job: RunReport) -> None:
    waits = {each.rank: each.wait_ns for each in job.workers}
    late, others = waits.pop(LATE), [wait for wait in waits.values() if wait is not None]
    assert late is not None
    assert late < 0.1 * MS
    assert len(others) == 7
    assert min(others) > 10 * late


def test_waiting_that_computing_hides_is_none() -> None:
    truth = rankbuild.run(PLAN)
    documents = [rankbuild.document(truth, rank) for rank in range(PLAN.world_size)]
    for document in documents:
        events = document["traceEvents"]
        first, last = (min(e["ts"] for e in events), max(e["ts"] + e["dur"] for e in events))
        beside = {"cat": "kernel", "name": "gemm", "pid": 0, "tid": 9, "args": {"device": 0}}
        events.append({"ph": "X", "ts": first, "dur": last - first, **beside})
    report = advise(Run(name="hidden", workers=read(documents)), [])
    assert [each.wait_ns for each in report.workers] == [0] * PLAN.world_size


def test_the_late_rank_is_blamed_and_its_own_finding_stands_beside_it(job: RunReport) -> None:
    late = next(each for each in job.merged if each.outcome.rule == "straggler-rank")
    assert late.outcome.blamed[0] == f"t{LATE}"
    assert [(each.rule, each.rank, each.is_only_there) for each in late.related] == [
        ("own", LATE, True)
    ]


def test_the_slowest_of_the_representatives_is_the_late_rank(job: RunReport) -> None:
    slowest = next(each for each in job.representatives if each.kind == "slowest")
    assert (slowest.trace, slowest.rank, slowest.name) == (f"t{LATE}", LATE, f"w{LATE}")


def test_waiting_for_ranks_that_were_not_recorded_cannot_be_told() -> None:
    """Ranks 4 to 7 are missing, whom the others meet in their pipelines."""
    half = Run(name="half", workers=traces()[:4])
    assert [each.wait_ns for each in advise(half, []).workers] == [None] * 4


def test_a_process_that_met_no_other_is_a_job_of_its_own() -> None:
    alone = Plan(groups=[], world_size=1)
    [trace] = traces(alone)
    [worker] = advise(Run(name="one", workers=(trace,)), []).workers
    assert (worker.world_size, worker.host, worker.groups) == (1, "node0", ())


# The profile of the recordings' kind


def settings(kind: str) -> AdviceSettings:
    ignored = Profile(changes=Changes(ignore=("straggler-rank",)))
    return AdviceSettings(profiles={kind: ignored}, has_packages=False)


@pytest.mark.parametrize(("kind", "is_asked"), [("inference", False), ("training", True)])
def test_rules_over_a_run_go_by_the_profile_of_its_recordings(kind: str, *, is_asked: bool) -> None:
    recordings = [advise_trace(trace, settings(kind)) for trace in traces()[:2]]
    assert {each.worker.is_training for each in recordings} == {False}
    rules = {each.rule for each in run_report("job", recordings, settings(kind)).outcomes}
    assert ("straggler-rank" in rules) is is_asked


def test_recordings_of_both_kinds_go_by_no_profile() -> None:
    given = AdviceSettings(profiles={"training": Profile(changes=Changes(gpus=8))})
    assert given.for_traces([True, True]).gpus == 8
    assert given.for_traces([True, False]).gpus is None
    assert given.for_traces([None]).gpus is None


def test_what_the_user_says_of_the_job_reaches_the_report() -> None:
    recordings = [advise_trace_by(trace, ()) for trace in traces()[:2]]
    told = AdviceSettings(changes=Changes(gpus=16, price=2.0), has_packages=False)
    job = run_report("job", recordings, told).job
    assert job is not None
    assert (job.gpu_count, job.gpu_source, job.gpu_hour_price) == (16, "set by --gpus", 2.0)


def test_blame_without_recordings_is_no_error() -> None:
    def check_run(_evidence: object, _options: object) -> Iterable[RuleResult]:
        yield Finding(message="Late.", blamed=("gone",))

    strange = dataclasses.replace(rule("strange"), check=None, check_run=check_run)
    report = advise(Run(name="job", workers=traces()[:2]), [strange])
    assert [each.related for each in report.merged] == [()]
