"""Sentences on the step with the first fixes, and its limit then."""

from stepscope.base.formatting import duration, quantity_range, share
from stepscope.base.report import JobOutlook, JobReport, Outlook, WorkerReport
from stepscope.render.advice_sections import AdviceSections
from stepscope.render.phrases import plain, sentences
from stepscope.rules.shared.phrases import joined

LIMITS = {
    "host": "the host is",
    "device": "the device is",
    "data loading": "data loading is",
    "collectives": "collectives are",
    "launches and waits": "launches and waits are",
}


def outlook(advice: AdviceSections) -> str:
    """Return the sentences on the step after the first fixes; empty where none is predicted.

    Of a job of several ranks they are about the job's step, else about the shown trace.
    """
    lead, job = advice.lead, advice.run.job
    if job is not None and job.outlook is not None:
        return _of_job(job, job.outlook)
    return "" if lead is None or not advice.findings else _of_lead(lead, advice)


def _of_lead(lead: WorkerReport, advice: AdviceSections) -> str:
    if lead.outlook is not None:
        return _of_trace(lead, lead.outlook, is_single=advice.is_single)
    if not lead.outlook_withheld:
        return ""
    step = "step" if lead.step.count else "time"
    return sentences(f"The {step} with these fixes is not predicted: {lead.outlook_withheld}")


def _of_job(job: JobReport, outlook: JobOutlook) -> str:
    times = quantity_range(map(duration, (outlook.low_ns, outlook.high_ns)))
    return plain(
        f"Fix {joined(outlook.rules)}, and the job's step takes {times} "
        f"(now {duration(job.step_ns)})."
    )


def _of_trace(worker: WorkerReport, outlook: Outlook, *, is_single: bool) -> str:
    step = "step" if worker.step.count else "trace"
    now = duration(outlook.now_ns)
    if outlook.world == "unrecorded":
        step = f"unrecorded {step}"
    elif worker.step.count:
        now = f"{now} as recorded"
    subject = f"the {step}" if is_single else f"the {step} of {worker.name}"
    times = quantity_range(map(duration, (outlook.low_ns, outlook.high_ns)))
    return plain(
        f"Fix {joined(outlook.rules)}, and {subject} takes {times} (now {now})"
        f"{_limit(worker, outlook)}.{_next(outlook)}"
    )


def _limit(worker: WorkerReport, outlook: Outlook) -> str:
    """Return the limit as a clause; without a device, the host is no news."""
    if outlook.limit == "host" and not worker.devices:
        return ""
    fraction = share(outlook.limit_share)
    return f"; then {LIMITS[outlook.limit]} the limit ({fraction} of the path to its end)"


def _next(outlook: Outlook) -> str:
    if not outlook.next_rule:
        return ""
    return f" Next is {outlook.next_rule}: up to {duration(outlook.next_saving_ns)} more."
