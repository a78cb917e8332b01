"""Sentences on the step with the first fixes, as every form and the page show them."""

import msgspec

from stepscope.base.formatting import duration, duration_range, share
from stepscope.base.report import JobOutlook, Outlook
from stepscope.rules.shared.phrases import joined

LIMITS = {
    "host": "the host is",
    "device": "the device is",
    "data loading": "data loading is",
    "collectives": "collectives are",
    "launches and waits": "launches and waits are",
}


def with_message(
    outlook: Outlook, titles: dict[str, str], *, has_steps: bool, has_device: bool
) -> Outlook:
    """Return an outlook with its sentences; `titles` are those of the rules' findings."""
    step = "step" if has_steps else "trace"
    now = duration(outlook.now_ns)
    if outlook.world == "unrecorded":
        step = f"unrecorded {step}"
    elif has_steps:
        now = f"{now} as recorded"
    times = duration_range(outlook.low_ns, outlook.high_ns)
    message = (
        f"With {_fixed(outlook.rules, titles)} fixed, the {step} takes {times} (now {now})"
        f"{_limit(outlook, has_device=has_device)}.{_next(outlook, titles)}"
    )
    return msgspec.structs.replace(outlook, message=message)


def with_job_message(outlook: JobOutlook, titles: dict[str, str], step_ns: int) -> JobOutlook:
    """Return a job's outlook with its sentence; `step_ns` is the job's step without the fixes."""
    times = duration_range(outlook.low_ns, outlook.high_ns)
    message = (
        f"With {_fixed(outlook.rules, titles)} fixed, the job's step takes {times} "
        f"(now {duration(step_ns)})."
    )
    return msgspec.structs.replace(outlook, message=message)


def _fixed(rules: tuple[str, ...], titles: dict[str, str]) -> str:
    return joined([f"“{titles[rule]}”" for rule in rules])


def _limit(outlook: Outlook, *, has_device: bool) -> str:
    """Return the limit as a clause; without a device, it is the host anyway."""
    if outlook.limit == "host" and not has_device:
        return ""
    fraction = share(outlook.limit_share)
    return f"; then {LIMITS[outlook.limit]} the limit ({fraction} of its critical path)"


def _next(outlook: Outlook, titles: dict[str, str]) -> str:
    if not outlook.next_rule:
        return ""
    more = duration_range(outlook.next_saving_low_ns, outlook.next_saving_ns)
    return f" Next, the fix of “{titles[outlook.next_rule]}” saves {more} more."
