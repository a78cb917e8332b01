"""The step waits for the next batch."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.hints import hints
from stepscope.analyses.idle.data_stalls import DataStalls, data_stalls, slowest
from stepscope.analyses.idle.loader_restarts import loader_restarts
from stepscope.analyses.idle.worker_waits import waiting_share
from stepscope.analyses.steps.window import window
from stepscope.quantities import count, duration, share, significant
from stepscope.report import Effort, Fix
from stepscope.rules import Answer, Finding, Rejected, Rule, _loading, option
from stepscope.rules._loading import CHEAP_BATCH_NS, exposed_share
from stepscope.trace import Trace

IN_PROCESS = "_SingleProcess"
BY_WORKERS = "_MultiProcessing"
VERIFY = "DataLoader's share of the step in Overview falls below 5 %."


@dataclass(frozen=True, kw_only=True)
class Options:
    """From how much time on it speaks."""

    least_share: float = option(
        0.05,
        "Of the window, 0 to 1: waiting for batches that no device hides.",
        origin="torch-tb-profiler and xprof speak at 5 %; an absolute time (msprof-analyze: 10 ms "
        "a batch) would ignore the step's length",
    )
    ready_below_share: float = option(
        0.5,
        "Of the calls for batches of workers, where stacks tell it: waiting for the workers, below "
        "which the batches were ready.",
        origin="ours: what takes most of the time is told",
    )


def check(trace: Trace, options: Options) -> Iterator[Answer]:
    """Report loading that no device hides."""
    stalls = data_stalls(trace)
    if not len(stalls.rows):
        return
    within = window(trace)
    exposed = exposed_share(trace, stalls)
    search = "enumerate(Data"
    if exposed < options.least_share:
        if stalls.total_ns >= options.least_share * within.reference_ns:
            batches = count(len(stalls.rows), "fetched batch", "fetched batches")
            yield Rejected(
                message=_loading.too_little(trace, stalls, batches),
                evidence=_loading.evidence(trace, stalls, "Batches fetched", search),
            )
        return
    tables, costs = _loading.work(trace, stalls)
    waiting = _waiting(trace, stalls)
    is_ready = waiting is not None and waiting < options.ready_below_share
    fix, effort = _fix(trace, stalls, exposed)
    if is_ready:
        fix, effort = _taking_over(stalls), "hour"
    yield Finding(
        confidence=_loading.confidence(stalls),
        message=(
            f"Waiting for data takes {duration(within.per_step(stalls.exposed_ns))}"
            f"{' of each step' if within.has_steps else ''} ({share(exposed)}) in which nothing "
            f"else goes on; {count(len(stalls.rows), 'batch', 'batches')} fetched by "
            f"{', '.join(stalls.iterators)}."
            + (_were_ready(waiting) if waiting is not None and is_ready else "")
        ),
        evidence=_loading.evidence(trace, stalls, "Batches fetched", search),
        tables=tables,
        events=slowest(trace, stalls),
        locations=_loading.lines(costs),
        claims=(_loading.claim(stalls),),
        fix=fix,
        effort=effort,
    )


def _waiting(trace: Trace, stalls: DataStalls) -> float | None:
    """Return the share of loading in which the loop waits for workers; None: unknown, or none."""
    has_workers = any(BY_WORKERS in name for name in stalls.iterators)
    return waiting_share(trace, stalls.rows) if has_workers else None


def _were_ready(waiting: float) -> str:
    return (
        f" Only {share(waiting)} of that is waiting for the workers: the batches were ready, and "
        "the rest is taking them over."
    )


def _taking_over(stalls: DataStalls) -> Fix:
    return Fix(
        summary="The workers keep up: hand fewer and larger tensors over, or load without workers.",
        code=(
            f"loader = DataLoader(dataset, ...{_loading.pinned_argument(stalls)})"
            f"{'   # a thread takes batches over' if stalls.has_device else ''}\n"
            "# in collate_fn: one tensor for all samples, in place of many small ones\n"
            "# where a sample is cheap, such as a row of a tensor: num_workers=0"
        ),
        verify=VERIFY,
        caveats=("Stacks were recorded, which slows just this: record again with_stack=False.",),
    )


def _fix(trace: Trace, stalls: DataStalls, exposed: float) -> tuple[Fix, Effort]:
    """Return what helps this iterator, and what it takes."""
    if any(BY_WORKERS in name for name in stalls.iterators):
        return _more_workers(trace, stalls, exposed), "flag"
    if any(IN_PROCESS in name for name in stalls.iterators):
        is_cheap = stalls.batch_ns < CHEAP_BATCH_NS
        return _whole_batches() if is_cheap else _workers(trace, stalls), "flag"
    return _in_a_thread(), "hour"


def _more_workers(trace: Trace, stalls: DataStalls, exposed: float) -> Fix:
    times = 1 / max(0.05, 1 - exposed)
    workers = hints(trace).num_workers or max(loader_restarts(trace).worker_counts, default=0)
    asked = f"{math.ceil(workers * times)}" if workers else "..."
    now = f" (now {workers})" if workers else ""
    return Fix(
        summary="The workers do not keep up: use more, let them prefetch, do less a sample.",
        code=(
            f"# to hide it, batches must come {significant(times)} times as fast{now}\n"
            f"loader = DataLoader(dataset, {_loading.batch_argument(trace)}, num_workers={asked},\n"
            f"                    prefetch_factor=4, persistent_workers=True"
            f"{_loading.pinned_argument(stalls)})"
        ),
        verify=VERIFY,
        caveats=(
            "More workers than free CPU cores make it slower.",
            "Where no core is free: decode and augment on the device (torchvision.transforms.v2 "
            "takes tensors there), or store the data set as it is needed.",
        ),
    )


def _workers(trace: Trace, stalls: DataStalls) -> Fix:
    return Fix(
        summary="Load in worker processes: see dataloader-no-workers.",
        code=(
            f"loader = DataLoader(dataset, {_loading.batch_argument(trace)}, num_workers=4,\n"
            f"                    persistent_workers=True{_loading.pinned_argument(stalls)})"
        ),
        verify=VERIFY,
    )


def _whole_batches() -> Fix:
    return Fix(
        summary=(
            "Take whole batches out of tensors at once: each takes too little for workers to help."
        ),
        code=(
            "for rows in torch.randperm(len(inputs)).split(batch_size):\n"
            "    x, y = inputs[rows], targets[rows]  # no sample by sample, no collate"
        ),
        verify=VERIFY,
        caveats=("The data set must fit into memory; on the device it saves the copy too.",),
    )


def _in_a_thread() -> Fix:
    return Fix(
        summary="Fetch the next batch in a thread or process while this one is used.",
        code=(
            "with ThreadPoolExecutor(1) as loading:\n"
            "    upcoming = loading.submit(next, batches, None)\n"
            "    while (batch := upcoming.result()) is not None:\n"
            "        upcoming = loading.submit(next, batches, None)\n"
            "        train_step(batch)"
        ),
        verify=VERIFY,
        caveats=("Python that never lets go of the interpreter's lock needs a process.",),
    )


RULE = Rule(
    id="dataloader-bound",
    title="The step waits for the DataLoader",
    category="input pipeline",
    why="The loop cannot go on before it has the next batch; the device stands still meanwhile.",
    detects=(
        "The calls for the next batch of torch's DataLoader and DataPipes and of Lightning's "
        "loops. It speaks where the part of them during which no device works is at least "
        "`least_share` of the window; on a CPU alone, all of them count. "
        "Where stacks show that the loop waits for workers for less than `ready_below_share` of "
        "the calls, it says that batches were ready."
    ),
    silent=("A device works while batches are fetched: nothing could be won.",),
    saving=(
        "All waiting during which no device works, of which faster loading won 77 and 84 % in "
        "torch-tb-profiler's pair of recordings. What a special cause has claimed "
        "(dataloader-worker-respawn, dataloader-no-workers) is counted there."
    ),
    fix=Fix(summary="Load faster, or earlier.", verify=VERIFY),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority=30,
    culprit="the DataLoader",
    links=("https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",),
    origin="torch-tb-profiler (DataLoader > 5 % of the step); xprof InputBound",
)
