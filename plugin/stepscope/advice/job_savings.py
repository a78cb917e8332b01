"""What a whole job could save: of its step, and in GPU-hours and money a day. An estimate.

The ranks of a synchronous job meet in every step: it lasts as long as for the rank that all others
wait for, so time that is saved on one rank is not yet time that the job saves. Of a finding, or of
all together, let a rank save s of a step, and wait for others for w while nothing computes. The
least w of all ranks is the waiting that no single rank is to blame for; what a rank waits beyond
that is its slack. Then

    saved share of the job's step = min over the ranks of (slack + s) / step

Where all ranks have to save, that is what the one saves that saves least; where one rank makes all
others wait, it is what that rank saves, as far as the others wait for it. Of a rule over the run,
which knows all ranks already, it is its claim. Of all findings together it is that law for the sums
of what each rank saves, or, where that is more, what rules over the run claim and what every rank
saves: never both, since the waiting for a late rank and what makes it late are the same time.

    GPU-hours a day = saved share × devices of the job × 24
    money a day     = GPU-hours a day × price of one

Taken for granted: the job runs all day as in the recording; what is saved is spent on the same job,
a step sooner; a rank that was not recorded is like those that were, and one that a rule could not
judge saves what the others save at least. Ranks whose waiting cannot be told, since those whom they
met were not recorded, are left out if they are the lesser part; else none is taken to wait. Damaged
recordings are left out, shares of recordings of one rank averaged. Nothing is told of runs without
steps, of inference (there a shorter step need not free a device), and of processes that are not
known to meet.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from stepscope.advice.merging import JUDGED
from stepscope.advice.undamaged import undamaged
from stepscope.base.findings import Outcome
from stepscope.base.formatting import count
from stepscope.base.report import JobReport, JobSaving, RunReport, WorkerReport

HOURS_A_DAY = 24
NOTHING = (0.0, 0.0)
METHOD = (
    "Estimated: the job runs all day as in the recording, and its step shortens by what the rank "
    "saves that saves least, waiting for others included"
)

Range = tuple[float, float]
"""A share of the step, at least and at most."""


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """What the user said of the job."""

    gpu_count: int | None = None
    gpu_hour_price: float | None = None


@dataclass(frozen=True, kw_only=True)
class RankSavings:
    """One rank: what it saves of its step by each rule, and what it waits beyond all others."""

    saved: Mapping[str, Range]
    slack_share: float = 0.0

    @property
    def total_saving(self) -> Range:
        """What all rules save, which share no time (`advice/savings.py`)."""
        lows, highs = zip(NOTHING, *self.saved.values(), strict=True)
        return min(1.0, sum(lows)), min(1.0, sum(highs))


def with_job(run: RunReport, asked: JobRequest) -> RunReport:
    """Return a run's report with what is known of its job."""
    if not run.workers:
        return run
    gpus, source = _gpus(run.workers, asked)
    job = JobReport(
        step_ns=max(worker.step.mean_ns for worker in undamaged(run.workers)),
        gpu_count=gpus,
        gpu_source=source,
        gpu_hour_price=asked.gpu_hour_price,
        is_asked=asked != JobRequest(),
        withheld=_untold(run.workers),
    )
    return msgspec.structs.replace(run, job=job)


@dataclass(frozen=True, kw_only=True)
class Savings:
    """What a run's job could save."""

    job: JobReport | None
    """With what it saves by all findings together."""
    by_rule: Mapping[str, JobSaving]
    """What it saves by each rule's findings alone; without rules that claim nothing."""


def job_savings(run: RunReport, outcomes: Sequence[Outcome]) -> Savings:
    """Return what a run's job could save; nothing where that is withheld."""
    job = run.job
    if job is None or job.withheld:
        return Savings(job=job, by_rule={})
    ranks, saved = _ranks(run.workers, outcomes), _of_run(outcomes)
    total = _priced(total_saving(ranks, saved.values()), job)
    for rule in dict.fromkeys(rule for rank in ranks for rule in rank.saved):
        own = [rank.saved[rule] for rank in ranks]
        if any(each != NOTHING for each in own):
            saved[rule] = job_saving(ranks, own)
    return Savings(
        job=msgspec.structs.replace(job, total=total, method=_method(run.workers, len(ranks))),
        by_rule={rule: _priced(share, job) for rule, share in saved.items()},
    )


# The law


def job_saving(ranks: Sequence[RankSavings], saved: Sequence[Range]) -> Range:
    """Return what the job saves where its ranks save that much each."""
    pairs = list(zip(ranks, saved, strict=True))
    return (
        min(rank.slack_share + low for rank, (low, _) in pairs),
        min(rank.slack_share + high for rank, (_, high) in pairs),
    )


def total_saving(ranks: Sequence[RankSavings], of_run: Iterable[Range]) -> Range:
    """Return what the job saves by all findings together."""
    own = [rank.total_saving for rank in ranks]
    lows, highs = zip(NOTHING, *of_run, strict=True)
    evened = (
        min(1.0, sum(lows) + min(low for low, _ in own)),
        min(1.0, sum(highs) + min(high for _, high in own)),
    )
    alone = job_saving(ranks, own)
    return max(alone[0], evened[0]), max(alone[1], evened[1])


def _priced(saved: Range, job: JobReport) -> JobSaving:
    low, high = saved
    if job.gpu_count is None:
        return JobSaving(low_share=low, high_share=high)
    hours = [share * job.gpu_count * HOURS_A_DAY for share in saved]
    price = job.gpu_hour_price
    money = [None, None] if price is None else [each * price for each in hours]
    return JobSaving(low, high, *hours, *money)


# What is known


def _ranks(workers: Iterable[WorkerReport], outcomes: Iterable[Outcome]) -> list[RankSavings]:
    """Return the ranks that can be relied upon; a rule that cannot tell of one is as elsewhere."""
    judged = _judged(outcomes)
    own = _by_rank(workers)
    waits = [_wait_share(each) for each in own]
    known_waits = [wait for wait in waits if wait is not None]
    if len(known_waits) * 2 <= len(own):
        waits, known_waits = [0.0] * len(own), [0.0]
    saved = [_means([judged.get(each.trace, {}) for each in recordings]) for recordings in own]
    elsewhere = _least(saved)
    return [
        RankSavings(saved=elsewhere | mine, slack_share=wait - min(known_waits))
        for mine, wait in zip(saved, waits, strict=True)
        if wait is not None
    ]


def _by_rank(workers: Iterable[WorkerReport]) -> list[list[WorkerReport]]:
    by_rank: dict[object, list[WorkerReport]] = {}
    for worker in _usable(workers):
        key = worker.name if worker.rank is None else worker.rank
        by_rank.setdefault(key, []).append(worker)
    return list(by_rank.values())


def _judged(outcomes: Iterable[Outcome]) -> dict[str, dict[str, Range]]:
    """Return what each rule that found something somewhere saves, by recording that it judged."""
    outcomes = [each for each in outcomes if each.trace and each.status in JUDGED]
    found = {each.rule for each in outcomes if each.status == "found"}
    judged: dict[str, dict[str, Range]] = {}
    for each in outcomes:
        if each.rule in found:
            of_trace = judged.setdefault(each.trace, {})
            low, high = of_trace.get(each.rule, NOTHING)
            more = _share(each) if each.status == "found" else NOTHING
            of_trace[each.rule] = low + more[0], high + more[1]
    return judged


def _least(ranks: Iterable[Mapping[str, Range]]) -> dict[str, Range]:
    """Return what rules save at least in any rank that they judged."""
    least: dict[str, Range] = {}
    for saved in ranks:
        for rule, (low, high) in saved.items():
            known_low, known_high = least.get(rule, (low, high))
            least[rule] = min(known_low, low), min(known_high, high)
    return least


def _usable(workers: Iterable[WorkerReport]) -> tuple[WorkerReport, ...]:
    """Return the recordings of training with steps that speak for the job."""
    return undamaged(worker for worker in workers if worker.step.count and worker.is_training)


def _wait_share(recordings: Iterable[WorkerReport]) -> float | None:
    """Return what a rank waits of its step; None where no recording of it tells."""
    shares = [
        min(1.0, each.wait_ns / max(1, each.step.mean_ns))
        for each in recordings
        if each.wait_ns is not None
    ]
    return _mean(shares) if shares else None


def _share(outcome: Outcome) -> Range:
    claim = outcome.claim
    if claim is None or claim.net_high_ns <= 0:
        return NOTHING
    return claim.net_share * claim.net_low_ns / claim.net_high_ns, claim.net_share


def _means(recordings: Sequence[Mapping[str, Range]]) -> dict[str, Range]:
    """Return what rules save in the mean recording of a rank, of those that they judged."""
    shares: dict[str, list[Range]] = {}
    for saved in recordings:
        for rule, share in saved.items():
            shares.setdefault(rule, []).append(share)
    return {
        rule: (_mean([low for low, _ in own]), _mean([high for _, high in own]))
        for rule, own in shares.items()
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _of_run(outcomes: Iterable[Outcome]) -> dict[str, Range]:
    """Return what rules over the run claim."""
    claims: dict[str, Range] = {}
    for each in outcomes:
        if each.status == "found" and not each.trace and (share := _share(each)) != NOTHING:
            low, high = claims.get(each.rule, NOTHING)
            claims[each.rule] = min(1.0, low + share[0]), min(1.0, high + share[1])
    return claims


def _untold(workers: Sequence[WorkerReport]) -> str:
    """Say why nothing can be told of the job; empty where something can."""
    is_alone = len({worker.name for worker in workers}) == 1
    is_met = any(worker.wait_ns is not None for worker in workers)
    reasons = (
        (
            not any(worker.step.count for worker in workers),
            "No steps were recorded, so that it is not known what a day of them would save.",
        ),
        (
            not _usable(workers),
            "It is no training: there a shorter step need not free a device.",
        ),
        (
            not (is_alone or is_met or _world_size(workers) > 1),
            "The recordings do not meet in collectives: they may be of several jobs.",
        ),
    )
    return next((reason for is_so, reason in reasons if is_so), "")


def _world_size(workers: Iterable[WorkerReport]) -> int:
    """Return how many ranks the job has; 0 where nothing tells, or recordings disagree."""
    sizes = {worker.world_size for worker in workers} - {None}
    size = sizes.pop() if len(sizes) == 1 else None
    return size or 0


def _gpus(workers: Sequence[WorkerReport], asked: JobRequest) -> tuple[int | None, str]:
    """Return the devices of the job, and what tells their number."""
    if asked.gpu_count is not None:
        return asked.gpu_count, "as you said"
    devices = max(len(worker.devices) for worker in workers)
    size = _world_size(workers)
    if not devices or not size:
        return None, ""
    if size > 1:
        return size, "one a rank, by the recorded world size"
    return devices, "as recorded"


def _method(workers: Sequence[WorkerReport], rank_count: int) -> str:
    """Say how it was reckoned, and for whom the recordings stand."""
    size = _world_size(workers)
    if rank_count < size:
        verb = "stands" if rank_count == 1 else "stand"
        return f"{METHOD}; {count(rank_count, 'recorded rank')} of {size:,} {verb} for all."
    return f"{METHOD}."
