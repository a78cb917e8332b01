"""Reports of jobs of several ranks, for tests of what is said of a whole job."""

import msgspec

from reports import FOUND, WORKER
from stepscope.advice.job_savings import JobRequest, with_job
from stepscope.advice.run_advice import with_outcomes
from stepscope.base.findings import ClaimReport, Outcome
from stepscope.base.report import DeviceReport, RunReport, StepReport, WorkerReport

MS = 1_000_000
STEP_NS = 100 * MS
GPU = DeviceReport(0, "GPU 0", 0.5, 0.5, None, None, None, None, None, {})
PASSED = Outcome("rule", "…", "host", "passed", "", "1")


def rank(number: int, *, waits_ms: float | None = None, **changes: object) -> WorkerReport:
    """One rank's recording of ten steps of 100 ms."""
    worker = msgspec.structs.replace(
        WORKER,
        trace=f"t{number}",
        name=f"w{number}",
        rank=number,
        health=(),
        budget=(),
        devices=(GPU,),
        step=StepReport(10, STEP_NS, 0, {}),
        is_training=True,
        wait_ns=None if waits_ms is None else round(waits_ms * MS),
    )
    return msgspec.structs.replace(worker, **changes)


def found(
    number: int, low_ms: float, high_ms: float, rule: str = "rule", **more: object
) -> Outcome:
    """What a rule found on a rank; its saving is of a step of 100 ms."""
    claim = ClaimReport(
        low_ns=round(low_ms * MS),
        high_ns=round(high_ms * MS),
        share=high_ms * MS / STEP_NS,
        net_low_ns=round(low_ms * MS),
        net_high_ns=round(high_ms * MS),
        net_share=high_ms * MS / STEP_NS,
        method="",
        steps="0-9",
        step_ranges=((0, 9),),
    )
    outcome = msgspec.structs.replace(
        FOUND, rule=rule, trace=f"t{number}", worker=f"w{number}", claim=claim, category="host"
    )
    return msgspec.structs.replace(outcome, **more)


def over_the_run(low_ms: float, high_ms: float, *blamed: int, rule: str = "late") -> Outcome:
    """What a rule over the run found."""
    outcome = found(0, low_ms, high_ms, rule, category="distributed balance")
    traces = tuple(f"t{number}" for number in blamed)
    return msgspec.structs.replace(outcome, trace="", worker="", span="", blamed=traces)


def passed(number: int, rule: str = "rule") -> Outcome:
    """What a rule did not find on a rank."""
    return msgspec.structs.replace(PASSED, rule=rule, trace=f"t{number}", worker=f"w{number}")


def job(
    *outcomes: Outcome,
    workers: tuple[WorkerReport, ...],
    gpus: int | None = None,
    price: float | None = None,
) -> RunReport:
    """A run's report, put together as advice does it."""
    asked = JobRequest(gpu_count=gpus, gpu_hour_price=price)
    return with_outcomes(with_job(RunReport("job", workers, ()), asked), outcomes)
