"""The time budget: its lines sum to the step, and none could lose more than it holds."""

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from loading import SAMPLE_LOGS, trace_at, trace_of
from stepscope import rules
from stepscope.advice import TraceAdvice, advise, advise_trace
from stepscope.base.findings import Outcome
from stepscope.model.trace import Run
from stepscope.rules import Rule, all_rules
from test_advice import TRACE, claiming, fakes, rule

LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
ROWS: list[list[Any]] = [
    row
    for n in range(3)
    for row in (
        ["user_annotation", f"ProfilerStep#{n}", 1000 * n, 1000],
        ["user_annotation", LOADER, 1000 * n, 400],
        ["cuda_runtime", "cudaLaunchKernel", 1000 * n + 400, 5, {"correlation": n}],
        ["kernel", "gemm", 1000 * n + 400, 600, {"correlation": n}],
    )
]


def of(
    rows: list[list[Any]], *rules: Rule[Any]
) -> dict[str, tuple[int, int, int, tuple[str, ...]]]:
    [worker] = advise(Run(name="run", workers=(trace_of(rows),)), rules).workers
    return {
        each.category: (
            each.time_ns,
            each.recoverable_low_ns,
            each.recoverable_high_ns,
            each.rules,
        )
        for each in worker.budget
    }


def test_each_part_says_how_much_of_it_can_be_won_and_by_which_rules() -> None:
    claims = [(n * 1_000_000 + 100_000, n * 1_000_000 + 500_000) for n in range(3)]
    assert of(ROWS, rule("a", claiming(*claims))) == {
        "kernel": (600_000, 75_000, 100_000, ("a",)),
        "dataloader": (400_000, 225_000, 300_000, ("a",)),
    }


def test_without_findings_nothing_can_be_won() -> None:
    assert of(ROWS) == {"kernel": (600_000, 0, 0, ()), "dataloader": (400_000, 0, 0, ())}


@given(fakes())
def test_what_can_be_won_is_never_more_than_there_is(chosen: list[Rule[Any]]) -> None:
    report = advise(Run(name="run", workers=(TRACE,)), chosen)
    [worker] = report.workers
    assert sum(each.time_ns for each in worker.budget) == worker.step.mean_ns
    assert sum(each.share for each in worker.budget) == pytest.approx(1)
    for each in worker.budget:
        assert 0 <= each.recoverable_low_ns <= each.recoverable_high_ns <= each.time_ns
    won = sum(each.recoverable_high_ns for each in worker.budget)
    assert won <= sum(o.claim.high_ns for o in report.outcomes if o.claim) + len(chosen)


def advice(sample: str) -> TraceAdvice:
    [path] = sorted((SAMPLE_LOGS / sample).glob("*.json.gz"))
    return advise_trace(trace_at(path))


def names(outcomes: tuple[Outcome, ...], *severities: str) -> set[str]:
    return {each.rule for each in outcomes if each.severity in severities}


def test_a_healthy_recording_is_told_so_with_its_numbers() -> None:
    healthy = advice("synthetic_healthy")
    assert names(healthy.outcomes, "critical", "warning") == set()
    assert healthy.worker.standing is not None
    assert healthy.worker.standing.state == "healthy"
    assert "checks found nothing that costs 5 % or more" in healthy.worker.standing.message
    assert "busy" in healthy.worker.standing.message


def test_no_recording_is_healthy_of_which_a_part_is_unreadable(tmp_path: Path) -> None:
    [whole] = (SAMPLE_LOGS / "synthetic_healthy").glob("*.json.gz")
    text = gzip.decompress(whole.read_bytes())
    damaged = tmp_path / "worker0.1.pt.trace.json"
    damaged.write_bytes(text.replace(b'"name": "aten::', b'"name": "a"ten::', len(text) // 10_000))
    standing = advise_trace(trace_at(damaged)).worker.standing
    assert standing is not None
    assert standing.state == "cannot-tell"
    assert "events are damaged beyond repair" in standing.message


def test_the_verdict_names_what_costs_most() -> None:
    faulty = advice("synthetic_dataloader/fault").worker
    assert faulty.standing is not None
    assert faulty.standing.state == "found"
    assert "; the DataLoader alone costs " in faulty.verdict


def test_a_recording_of_nothing_is_neither_healthy_nor_at_fault() -> None:
    [worker] = advise(
        Run(name="run", workers=(trace_of([["overhead", "Buffer Flush", 5, 1]]),))
    ).workers
    assert worker.standing is not None
    assert worker.standing.state in ("cannot-tell", "not-applicable")
    assert worker.budget == ()


def test_no_recording_is_healthy_whose_communication_no_rule_could_judge(
    shared_traces: Path,
) -> None:
    [path] = sorted((shared_traces / "hta" / "cpu_only").glob("*.json.gz"))
    found = advise_trace(trace_at(path)).worker.standing
    assert found is not None
    assert found.state == "cannot-tell"
    assert found.message.endswith(
        "including exposed-communication: communication is 85.1 % of the time."
    )


def test_what_may_cost_much_or_nothing_is_no_smaller_thing() -> None:
    [path] = sorted((SAMPLE_LOGS / "synthetic_item_sync" / "fix").glob("*.json.gz"))
    hint = rule("hint", claiming((0, 4_000_000), severity="info"))
    found = advise(Run(name="run", workers=(trace_at(path),)), [hint]).workers[0].standing
    assert found is not None
    assert found.message.startswith("1 check found nothing that certainly costs 5 %")
    assert "1 smaller or less certain finding would still help" in found.message


def test_a_culprit_is_one_thing_of_which_a_verdict_says_what_it_costs() -> None:
    things = {
        "NumPy",
        "Python",
        "SyncBatchNorm",
        "a",
        "activation",
        "anomaly",
        "communication",
        "double",
        "float32",
    }
    things |= {"attention", "exposed", "sizes", "the", "unequal", "unfused", "what"}
    things |= {"graphs", "recurrent", "statistics", "validation", "work"}
    culprits = {rule.culprit for rule in all_rules() if rule.culprit}
    first = {culprit.partition(" ")[0] for culprit in culprits}
    assert {word for word in first if not word.endswith("ing")} <= things


def test_each_rule_that_claims_a_saving_has_a_culprit() -> None:
    folder = Path(rules.__file__).parent
    sources = {each.id: folder / f"{each.id.replace('-', '_')}.py" for each in all_rules()}
    claims = {name for name, path in sources.items() if "claims=" in path.read_text()}
    assert len(claims) > 50
    assert claims - {each.id for each in all_rules() if each.culprit} == set()


def test_a_verdict_gives_a_cost_as_a_range(shared_traces: Path) -> None:
    trace = trace_at(sorted((SAMPLE_LOGS / "masking/numpy_without_stacks").glob("*.json.gz"))[0])
    assert "in the step alone costs 2.34–5.90 ms of it" in advise_trace(trace).worker.verdict
    work = sorted((shared_traces / "kineto/resnet50_num_workers_4").glob("*.json.gz"))[0]
    assert "launching kernels one by one alone costs 12.9–25.7 ms" in (
        advise_trace(trace_at(work)).worker.verdict
    )
    assert "launching kernels one by one alone costs 2.64–5.02 ms" in (
        advice("synthetic_tiny_batch/fault").worker.verdict
    )
