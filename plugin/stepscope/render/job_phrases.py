"""What advice on a whole job is called, in every form alike: hours, money, blamed ranks."""

from collections.abc import Iterator

from stepscope.base.formatting import count, duration, share, significant
from stepscope.base.report import JobReport, JobSaving, RelatedFinding, RunReport
from stepscope.render.advice_sections import Told
from stepscope.render.phrases import capitalised, plain, sentences

LEAST_SHARE = 0.0005
"""Of the step: less would be told as nothing."""
MISSING_RANKS = "missing-ranks"
NO_COUNT = "How many devices the job has is not known: say it by --gpus N"


def job(run: RunReport) -> str:
    """Say what all findings together could save the job; empty where that is of no interest."""
    about = run.job
    if about is None or not _is_told(about):
        return ""
    if about.withheld:
        return sentences(f"What the job could save is not told: {_lowered(about.withheld)}")
    if about.total is None or about.total.high_share < LEAST_SHARE:
        return "" if not about.is_asked else "The findings save the job nothing that can be told."
    gpus = f" on {count(about.gpu_count, 'GPU')} ({about.gpu_source})" if about.gpu_count else ""
    return sentences(
        f"All findings together could save the job {_saving(about.total, about)}{gpus}",
        "" if about.gpu_count else NO_COUNT,
        about.method,
    )


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]


def _is_told(about: JobReport) -> bool:
    """Tell whether anybody wants to know: who asked, or who runs on several devices."""
    return about.is_asked or (about.gpu_count or 0) > 1


def job_saving(each: Told, about: JobReport | None) -> str:
    """Say what one rule's findings could save the job; empty where that is of no interest."""
    saved = each.job_saving
    if saved is None or about is None or not _is_told(about):
        return ""
    if saved.high_share < LEAST_SHARE:
        return "By itself it saves the job nothing: other ranks bound its step."
    return f"It could save the job {_saving(saved, about)}."


def _saving(saved: JobSaving, about: JobReport) -> str:
    """Say it as a share of the step, in hours and in money: `2.0 % to 4.1 % of its step: …`."""
    text = f"{_range(share(saved.low_share), share(saved.high_share))} of its step"
    if hours := _amounts(saved.low_gpu_hours, saved.high_gpu_hours):
        text += f": {hours} GPU-hours a day"
    if money := _amounts(saved.low_money, saved.high_money):
        text += f", {money} at {significant(about.gpu_hour_price or 0)} an hour"
    return text


def _amounts(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else _range(significant(low), significant(high))


def _range(low: str, high: str) -> str:
    if low == high:
        return low
    return f"up to {high}" if low in ("0", share(0)) else f"{low} to {high}"


def related(each: Told) -> tuple[str, ...]:
    """Return a sentence for each set of recordings that is blamed, of what they alone say."""
    by_place: dict[str, list[RelatedFinding]] = {}
    for one in each.related:
        by_place.setdefault(one.where, []).append(one)
    said = [
        plain(f"{capitalised(where)}: see {'; '.join(map(_difference, own))}.")
        for where, own in by_place.items()
    ]
    more_count = each.merged.related_more if each.merged else 0
    more = [f"And {count(more_count, 'more finding')} of their own."] if more_count else []
    return (*said, *more)


def _difference(one: RelatedFinding) -> str:
    if one.is_only_there:
        return f"{one.rule}, only there"
    mine, theirs = duration(one.net_high_ns or 0), duration(one.peers_net_high_ns or 0)
    most = "up to " if one.trace_count > 1 else ""
    return f"{one.rule}, {most}{mine} there and {theirs} in the median peer"


def not_recorded(run: RunReport) -> Iterator[str]:
    """Yield what is said of ranks that were not recorded, or cannot be read."""
    for each in run.outcomes:
        if each.rule == MISSING_RANKS and each.status == "found":
            yield plain(each.message)
