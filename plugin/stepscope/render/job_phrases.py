"""Phrases of advice on a whole job: GPU-hours, money, related findings of blamed ranks."""

from collections.abc import Iterator

from stepscope.base.formatting import (
    capitalized,
    count,
    duration,
    duration_range,
    share_range,
    significant,
)
from stepscope.base.plain_text import plain
from stepscope.base.report import JobReport, JobSaving, RelatedFinding, RunReport
from stepscope.render.advice_sections import AdviceItem
from stepscope.render.phrases import sentences

LEAST_SHARE = 0.0005
"""Of the step: less would be shown as zero."""
NO_COUNT = "The job's number of GPUs is not known: give it with --gpus N"


def job(run: RunReport) -> str:
    """Return the saving of all findings for the job; empty where it is of no interest."""
    report = run.job
    if report is None or not _is_shown(report):
        return ""
    if report.withheld:
        reason = report.withheld[:1].lower() + report.withheld[1:]
        return sentences(f"The job's saving is not estimated: {reason}")
    if report.total is None or report.total.high_share < LEAST_SHARE:
        return "The findings save the job no measurable time." if report.is_asked else ""
    gpus = f" on {count(report.gpu_count, 'GPU')} ({report.gpu_source})" if report.gpu_count else ""
    return sentences(
        f"All findings together could save the job {_saving(report.total, report)}{gpus}",
        "" if report.gpu_count else NO_COUNT,
        report.method,
    )


def _is_shown(report: JobReport) -> bool:
    """Check whether the user asked for the job's saving, or runs on several devices."""
    return report.is_asked or (report.gpu_count or 0) > 1


def job_saving(item: AdviceItem, report: JobReport | None) -> str:
    """Return the saving of one rule's findings for the job; empty where it is of no interest."""
    saved = item.job_saving
    if saved is None or report is None or not _is_shown(report):
        return ""
    if saved.high_share < LEAST_SHARE:
        return "Alone it saves the job no time: other ranks determine the step."
    return f"It could save the job {_saving(saved, report)}."


def _saving(saved: JobSaving, report: JobReport) -> str:
    """Return a saving of step, hours and money: `2.0–4.1 % of its step: …`."""
    text = f"{share_range(saved.low_share, saved.high_share)} of its step"
    if hours := _amounts(saved.low_gpu_hours, saved.high_gpu_hours):
        text += f": {hours} GPU-hours per day"
    if money := _amounts(saved.low_money, saved.high_money):
        text += f", {money} at {significant(report.gpu_hour_price or 0)} per hour"
    return text


def _amounts(low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return ""
    least, most = significant(low), significant(high)
    return most if least == most else f"{least}–{most}"


def related(item: AdviceItem) -> tuple[str, ...]:
    """Return, for each set of blamed ranks, a sentence with the findings that only they have."""
    by_ranks: dict[str, list[RelatedFinding]] = {}
    for finding in item.related:
        by_ranks.setdefault(finding.where, []).append(finding)
    texts = [
        plain(f"{capitalized(where)}: see {'; '.join(map(_difference, findings))}.")
        for where, findings in by_ranks.items()
    ]
    if item.merged and item.merged.related_more:
        texts.append(f"And {count(item.merged.related_more, 'more finding')} on these ranks.")
    return tuple(texts)


def _difference(finding: RelatedFinding) -> str:
    if finding.is_only_there:
        return f"{finding.rule}, only there"
    there = duration_range(finding.low_ns or 0, finding.high_ns or 0)
    peers = duration(finding.peers_high_ns or 0)
    worst = "in the worst of them" if finding.trace_count > 1 else "there"
    return f"{finding.rule}, {there} {worst} and at most {peers} in the median peer"


def not_recorded(run: RunReport) -> Iterator[str]:
    """Yield the messages on ranks whose traces are missing or unreadable."""
    for outcome in run.outcomes:
        if outcome.status == "found" and outcome.reports_missing_data:
            yield plain(outcome.message)
