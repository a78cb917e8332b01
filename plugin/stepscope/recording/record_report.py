"""The result of `stepscope record` as text, from the accounts of its processes."""

import os
import shlex
from collections.abc import Iterator, Sequence

from stepscope.recording.record_request import Account, Order

EARLIER = "--skip 0 --warmup 1 --active 3"


def summary(accounts: Sequence[Account], order: Order) -> tuple[str, ...]:
    """Return the lines to print when the command has ended."""
    here = order.log_dir
    with_files = [one for one in accounts if one.written]
    if not with_files:
        return tuple(_why_nothing(accounts, order))
    files = sum(len(one.written) for one in with_files)
    shown = shlex.quote(os.path.relpath(here) if here.startswith(os.getcwd() + os.sep) else here)  # noqa: PTH109
    what = f"{_counted(files, 'trace')} of {_counted(len(with_files), 'process', 'es')}"
    return (f"{what} in {shown}", f"what to change: stepscope advise {shown}")


def _counted(count: int, noun: str, ending: str = "s") -> str:
    return f"1 {noun}" if count == 1 else f"{count:,} {noun}{ending}"


def _why_nothing(accounts: Sequence[Account], order: Order) -> Iterator[str]:
    """Yield the reason for the missing trace, and the remedy."""
    if any(one.notes for one in accounts):
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
        yield f"to begin earlier: stepscope record {EARLIER} -- …"
    else:
        yield f"nothing was recorded: {_missing(order)}"
        yield "to record without steps, from the import of torch: --steps-from none"


def _nearness(account: Account) -> tuple[int, bool]:
    return account.step_count, account.has_torch


def _missing(order: Order) -> str:
    if order.steps_from == "optimizer":
        return "no optimizer stepped in a main thread"
    if order.steps_from == "dataloader":
        return "no DataLoader was read in a main thread"
    return "no optimizer stepped and no DataLoader was read in a main thread"
