"""The result of `stepscope record` as text, from the accounts of its processes."""

import os
from collections.abc import Iterator, Sequence

from stepscope.base.urls import shell_argument
from stepscope.recording.record_request import Account, RecordRequest


def summary(
    accounts: Sequence[Account], request: RecordRequest, *, is_advised: bool = False
) -> tuple[str, ...]:
    """Return the lines to print when the command has ended; `is_advised`: the advice follows."""
    log_dir = request.log_dir
    with_files = [account for account in accounts if account.written]
    if not with_files:
        return tuple(_reason_for_nothing(accounts, request))
    files = sum(len(account.written) for account in with_files)
    is_below = log_dir.startswith(os.getcwd() + os.sep)  # noqa: PTH109 (a text is compared)
    shown = shell_argument(os.path.relpath(log_dir) if is_below else log_dir)
    counts = f"{_counted(files, 'trace')} of {_counted(len(with_files), 'process', 'es')}"
    hint = () if is_advised else (f"to see what to change: stepscope advise {shown}",)
    return (f"{counts} in {shown}", *hint)


def _counted(count: int, noun: str, ending: str = "s") -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}{ending}"


def _reason_for_nothing(accounts: Sequence[Account], request: RecordRequest) -> Iterator[str]:
    """Yield the reason for the missing trace, and the remedy."""
    if any(account.notes for account in accounts):
        yield "nothing was recorded; see the reason above"
        return
    nearest = max(accounts, key=_nearness, default=None)
    if nearest is None:
        yield (
            "nothing was recorded: the command started no Python that reads PYTHONPATH (python "
            "-I, -E and -S ignore it; sudo and containers drop it)"
        )
    elif not nearest.has_torch:
        yield "nothing was recorded: the script did not import torch"
    elif nearest.step_count:
        yield (
            f"nothing was recorded: the script ended after {_counted(nearest.step_count, 'step')}, "
            "before recording began"
        )
        if request.skip is not None:
            yield "to begin earlier: leave out --skip"
    elif nearest.steps_from:
        yield (
            f"nothing was recorded: the script ended in its first step after the start (a step is"
            f" one {nearest.steps_from})"
        )
        yield "to record all of it, from the import of torch: --steps-from none"
    else:
        yield f"nothing was recorded: {_missing(request)}"
        yield "to record without steps, from the import of torch: --steps-from none"


def _nearness(account: Account) -> tuple[int, bool, bool]:
    return account.step_count, bool(account.steps_from), account.has_torch


def _missing(request: RecordRequest) -> str:
    if request.steps_from == "optimizer":
        return "no optimizer stepped in a main thread"
    if request.steps_from == "dataloader":
        return "no DataLoader was read in a main thread"
    return "no optimizer stepped and no DataLoader was read in a main thread"
