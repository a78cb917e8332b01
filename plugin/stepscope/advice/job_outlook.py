"""The step of a job of several ranks with the first fixes of its advice."""

from collections.abc import Sequence

import msgspec

from stepscope.advice.job_savings import Savings, net, rank_savings, run_claims, total_saving
from stepscope.advice.outlook import MOST_FIXES
from stepscope.advice.outlook_sentences import with_job_message
from stepscope.base.findings import INFO_SHARE, Outcome
from stepscope.base.report import JobOutlook, RunReport, WorkerReport


def job_outlook(run: RunReport, outcomes: Sequence[Outcome], savings: Savings) -> JobOutlook | None:
    """Return the outlook of a run's job; see `JobReport.outlook`.

    The saving of the fixes together follows the law of `job_savings`: the job's step is that of
    its slowest rank.

    Args:
        run: The run's report.
        outcomes: Its outcomes, in the order of the advice.
        savings: The job's savings.
    """
    job = savings.job
    if job is None or job.withheld or len({worker.name for worker in run.workers}) < 2:
        return None
    listed = dict.fromkeys(outcome.rule for outcome in outcomes if outcome.status == "found")
    by_rule = savings.by_rule
    costly = [
        rule for rule in listed if rule in by_rule and by_rule[rule].high_share >= INFO_SHARE
    ][:MOST_FIXES]
    if not costly:
        return None
    of_rules = [o for o in outcomes if o.rule in costly]
    ranks, claims = rank_savings(run.workers, of_rules, net), run_claims(of_rules)
    low, high = total_saving(ranks, claims.values())
    predicted = JobOutlook(
        rules=tuple(costly),
        low_ns=round(job.step_ns * (1 - min(1.0, high))),
        high_ns=round(job.step_ns * (1 - min(1.0, low))),
    )
    return with_job_message(predicted, {o.rule: o.title for o in of_rules}, job.step_ns)


def with_valid_outlook(worker: WorkerReport, saving_rules: frozenset[str]) -> WorkerReport:
    """Return a trace's report without its outlook if a rule of it has no saving any more.

    `saving_rules` are the rules with a finding in the trace that is neither suppressed nor hidden,
    and not counted elsewhere.
    """
    if worker.outlook is None or saving_rules.issuperset(worker.outlook.rules):
        return worker
    return msgspec.structs.replace(worker, outlook=None)
