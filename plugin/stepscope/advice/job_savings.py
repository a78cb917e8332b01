"""Potential saving of a whole job: of its step, in GPU-hours and in money per day. An estimate.

The ranks of a synchronous job meet in every step, so the step lasts as long as the slowest rank
needs, and time saved on one rank is not yet saved by the job. A rank saves s of a step and waits
for others for w while nothing computes. The least w of all ranks is waiting that no single rank
causes; a rank's slack is its waiting beyond that. Then

    saved share of the job's step = min over the ranks of (slack + s) / step

If all ranks save, the smallest saving counts; if one rank delays the others, its saving counts, as
far as the others wait for it. A rule over the run knows all ranks: its claim counts. For all
findings together the law is applied to the sum of each rank's savings, or, if that is more, to the
claims of rules over the run plus the saving of every rank; never both, since waiting for a late
rank and the cause of its lateness are the same time.

    GPU-hours per day = saved share × devices of the job × 24
    money per day     = GPU-hours per day × price of one

Assumptions: the job runs all day as in the trace and uses the saved time; a rank that was not
recorded is like those that were; a rule that could not check a rank saves there the least that it
saves elsewhere. Ranks with unknown waiting are left out if they are the minority; else no rank is
taken to wait. Damaged traces are left out, traces of one rank are averaged. Nothing is estimated
without steps, for inference (a shorter step need not free a device), and for processes that do not
meet.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import msgspec

from stepscope.advice.merging import JUDGED
from stepscope.advice.trace_report import undamaged
from stepscope.base.findings import ClaimReport, Outcome
from stepscope.base.formatting import count
from stepscope.base.report import JobReport, JobSaving, RunReport, WorkerReport

HOURS_A_DAY = 24
NOTHING = (0.0, 0.0)
METHOD = (
    "Estimated: the job runs all day as in the trace, and its step becomes shorter by the smallest "
    "saving of any rank, including time that the rank waits for others"
)

Range = tuple[float, float]
"""Least and greatest fraction of the step."""


ShareOf = Callable[[ClaimReport], Range]
"""Fraction of the step that a finding saves: `alone` or `net`."""


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """Number and price of the job's GPUs, as the user gave them."""

    gpu_count: int | None = None
    gpu_hour_price: float | None = None


@dataclass(frozen=True, kw_only=True)
class RankSavings:
    """One rank's savings by rule, and its slack."""

    saved: Mapping[str, Range]
    slack_share: float = 0.0

    @property
    def total_saving(self) -> Range:
        """Savings of all rules, which share no time (`advice/savings.py`)."""
        lows, highs = zip(NOTHING, *self.saved.values(), strict=True)
        return min(1.0, sum(lows)), min(1.0, sum(highs))


def with_job(run: RunReport, request: JobRequest) -> RunReport:
    """Return a run's report with its job."""
    if not run.workers:
        return run
    gpus, source = _gpus(run.workers, request)
    job = JobReport(
        step_ns=max(worker.step.mean_ns for worker in undamaged(run.workers)),
        gpu_count=gpus,
        gpu_source=source,
        gpu_hour_price=request.gpu_hour_price,
        is_asked=request != JobRequest(),
        withheld=_withheld(run.workers),
    )
    return msgspec.structs.replace(run, job=job)


@dataclass(frozen=True, kw_only=True)
class Savings:
    """Potential savings of a run's job."""

    job: JobReport | None
    """With the saving of all findings together."""
    by_rule: Mapping[str, JobSaving]
    """Saving by each rule's findings alone; without rules that claim nothing."""


def job_savings(run: RunReport, outcomes: Sequence[Outcome]) -> Savings:
    """Return a job's savings; empty where they are withheld."""
    job = run.job
    if job is None or job.withheld:
        return Savings(job=job, by_rule={})
    saved = run_claims(outcomes)
    total = total_saving(rank_savings(run.workers, outcomes, net), saved.values())
    ranks = rank_savings(run.workers, outcomes, alone)
    for rule in dict.fromkeys(rule for rank in ranks for rule in rank.saved):
        by_rank = [rank.saved[rule] for rank in ranks]
        if any(saving != NOTHING for saving in by_rank):
            saved[rule] = job_saving(ranks, by_rank)
    return Savings(
        job=msgspec.structs.replace(
            job, total=_priced(total, job), method=_method(run.workers, len(ranks))
        ),
        by_rule={rule: _priced(share, job) for rule, share in saved.items()},
    )


# The law


def job_saving(ranks: Sequence[RankSavings], saved: Sequence[Range]) -> Range:
    """Return the job's saving from the saving of each rank."""
    pairs = list(zip(ranks, saved, strict=True))
    return (
        min(rank.slack_share + low for rank, (low, _) in pairs),
        min(rank.slack_share + high for rank, (_, high) in pairs),
    )


def total_saving(ranks: Sequence[RankSavings], of_run: Iterable[Range]) -> Range:
    """Return the job's saving by all findings together."""
    by_rank = [rank.total_saving for rank in ranks]
    lows, highs = zip(NOTHING, *of_run, strict=True)
    common = (
        min(1.0, sum(lows) + min(low for low, _ in by_rank)),
        min(1.0, sum(highs) + min(high for _, high in by_rank)),
    )
    alone = job_saving(ranks, by_rank)
    return max(alone[0], common[0]), max(alone[1], common[1])


def _priced(saved: Range, job: JobReport) -> JobSaving:
    low, high = saved
    if job.gpu_count is None:
        return JobSaving(low_share=low, high_share=high)
    hours = [share * job.gpu_count * HOURS_A_DAY for share in saved]
    price = job.gpu_hour_price
    money = [None, None] if price is None else [amount * price for amount in hours]
    return JobSaving(low, high, *hours, *money)


# Ranks


def rank_savings(
    workers: Iterable[WorkerReport], outcomes: Iterable[Outcome], share_of: ShareOf
) -> list[RankSavings]:
    """Return the undamaged ranks; an inconclusive rule saves the least that it saves elsewhere."""
    judged = _judged(outcomes, share_of)
    by_rank = _by_rank(workers)
    waits = [_wait_share(of_rank) for of_rank in by_rank]
    numbers = [wait for wait in waits if wait is not None]
    if len(numbers) * 2 <= len(by_rank):
        waits, numbers = [0.0] * len(by_rank), [0.0]
    saved = [_means([judged.get(worker.trace, {}) for worker in of_rank]) for of_rank in by_rank]
    elsewhere = _least(saved)
    return [
        RankSavings(saved=elsewhere | of_rank, slack_share=wait - min(numbers))
        for of_rank, wait in zip(saved, waits, strict=True)
        if wait is not None
    ]


def _by_rank(workers: Iterable[WorkerReport]) -> list[list[WorkerReport]]:
    by_rank: dict[object, list[WorkerReport]] = {}
    for worker in _usable(workers):
        key = worker.name if worker.rank is None else worker.rank
        by_rank.setdefault(key, []).append(worker)
    return list(by_rank.values())


def _judged(outcomes: Iterable[Outcome], share_of: ShareOf) -> dict[str, dict[str, Range]]:
    """Return the savings of rules with any finding, by trace that they could check."""
    outcomes = [outcome for outcome in outcomes if outcome.trace and outcome.status in JUDGED]
    rules = {outcome.rule for outcome in outcomes if outcome.status == "found"}
    judged: dict[str, dict[str, Range]] = {}
    for outcome in outcomes:
        if outcome.rule in rules:
            of_trace = judged.setdefault(outcome.trace, {})
            low, high = of_trace.get(outcome.rule, NOTHING)
            claim = outcome.claim if outcome.status == "found" else None
            more = share_of(claim) if claim is not None else NOTHING
            of_trace[outcome.rule] = low + more[0], high + more[1]
    return judged


def _least(ranks: Iterable[Mapping[str, Range]]) -> dict[str, Range]:
    """Return the least saving of each rule in any rank."""
    least: dict[str, Range] = {}
    for saved in ranks:
        for rule, (low, high) in saved.items():
            least_low, least_high = least.get(rule, (low, high))
            least[rule] = min(least_low, low), min(least_high, high)
    return least


def _usable(workers: Iterable[WorkerReport]) -> tuple[WorkerReport, ...]:
    """Return the undamaged traces of training with steps."""
    return undamaged(worker for worker in workers if worker.step.count and worker.is_training)


def _wait_share(workers: Iterable[WorkerReport]) -> float | None:
    """Return a rank's waiting as a fraction of its step; None where it is unknown."""
    shares = [
        min(1.0, worker.wait_ns / max(1, worker.step.mean_ns))
        for worker in workers
        if worker.wait_ns is not None
    ]
    return fmean(shares) if shares else None


def alone(claim: ClaimReport) -> Range:
    """Return the fraction of the step that a finding's fix alone saves; 0 if others count it."""
    saving = claim.decisive
    if claim.is_covered:
        return NOTHING
    return _range(saving.low_ns, saving.high_ns, saving.share)


def net(claim: ClaimReport) -> Range:
    """Return the fraction that a finding saves and no other finding counts."""
    saving = claim.decisive
    return _range(saving.net_low_ns, saving.net_high_ns, saving.net_share)


def _range(low_ns: int, high_ns: int, share: float) -> Range:
    return (share * low_ns / high_ns, share) if high_ns > 0 else NOTHING


def _means(traces: Sequence[Mapping[str, Range]]) -> dict[str, Range]:
    """Return the mean savings of rules over the traces of a rank that they could check."""
    shares: dict[str, list[Range]] = {}
    for saved in traces:
        for rule, share in saved.items():
            shares.setdefault(rule, []).append(share)
    return {
        rule: (fmean([low for low, _ in ranges]), fmean([high for _, high in ranges]))
        for rule, ranges in shares.items()
    }


def run_claims(outcomes: Iterable[Outcome]) -> dict[str, Range]:
    """Return the claims of rules over the run."""
    claims: dict[str, Range] = {}
    for outcome in outcomes:
        if (
            outcome.status == "found"
            and not outcome.trace
            and outcome.claim is not None
            and (share := net(outcome.claim)) != NOTHING
        ):
            low, high = claims.get(outcome.rule, NOTHING)
            claims[outcome.rule] = min(1.0, low + share[0]), min(1.0, high + share[1])
    return claims


def _withheld(workers: Sequence[WorkerReport]) -> str:
    """Return the reason that the job's saving is not estimated; empty where it is."""
    is_alone = len({worker.name for worker in workers}) == 1
    is_met = any(worker.wait_ns is not None for worker in workers)
    reasons = (
        (
            not any(worker.step.count for worker in workers),
            "No steps were recorded.",
        ),
        (
            not _usable(workers),
            "No device hours are given: only in training does a shorter step end the job sooner.",
        ),
        (
            not (is_alone or is_met or _world_size(workers) > 1),
            "The traces share no collectives: they may be of several jobs.",
        ),
    )
    return next((reason for is_true, reason in reasons if is_true), "")


def _world_size(workers: Iterable[WorkerReport]) -> int:
    """Return the number of the job's ranks; 0 where it is unknown, or traces disagree."""
    sizes = {worker.world_size for worker in workers} - {None}
    size = sizes.pop() if len(sizes) == 1 else None
    return size or 0


def _gpus(workers: Sequence[WorkerReport], request: JobRequest) -> tuple[int | None, str]:
    """Return the number of the job's devices, and its source."""
    if request.gpu_count is not None:
        return request.gpu_count, "set by --gpus"
    devices = max(len(worker.devices) for worker in workers)
    size = _world_size(workers)
    if not devices or not size:
        return None, ""
    if size > 1:
        return size, "one per rank, by the recorded world size"
    return devices, "as recorded"


def _method(workers: Sequence[WorkerReport], rank_count: int) -> str:
    """Return the method, and the number of recorded ranks."""
    size = _world_size(workers)
    if rank_count < size:
        verb = "represents" if rank_count == 1 else "represent"
        return f"{METHOD}; {count(rank_count, 'recorded rank')} of {size:,} {verb} all ranks."
    return f"{METHOD}."
