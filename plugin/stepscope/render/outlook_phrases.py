"""The sentences on the step with the first fixes, and its limit then."""

from stepscope.base.plain_text import plain
from stepscope.base.report import WorkerReport
from stepscope.render.advice_sections import AdviceSections
from stepscope.render.phrases import sentences


def outlook(advice: AdviceSections) -> str:
    """Return the sentences on the step after the first fixes; empty where none is predicted.

    Of a job of several ranks they are about the job's step, else about the shown trace.
    """
    lead, job = advice.lead, advice.run.job
    if job is not None and job.outlook is not None:
        return plain(job.outlook.message)
    return "" if lead is None or not advice.findings else _of_lead(lead, advice)


def _of_lead(lead: WorkerReport, advice: AdviceSections) -> str:
    if lead.outlook is not None:
        subject = "" if advice.is_single else f"{lead.name}: "
        return plain(f"{subject}{lead.outlook.message}")
    if not lead.outlook_withheld:
        return ""
    step = "step" if lead.step.count else "time"
    return sentences(f"The {step} with these fixes is not predicted: {lead.outlook_withheld}")
