"""The step waits for the next batch."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core.window import window
from stepscope.analyses.idle.data_stalls import (
    DataStalls,
    data_stalls,
    slowest_calls,
    worker_wait_share,
)
from stepscope.base.findings import Effort, Fix
from stepscope.base.formatting import count, duration, share, significant
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import loading_costs, recorded_facts
from stepscope.rules.shared.loading_costs import CHEAP_BATCH_NS, exposed_share

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
    ready_call_ns: int = option(
        2_000_000,
        "Nanoseconds. Median and mean call for a batch of workers, where no stacks tell what it "
        "waits for: below it takes no longer than to take over a batch that is ready. The mean is "
        "larger where one batch in a few is late.",
        origin="measured on two cores with two workers that were ahead (torch 2.13, 32 to 256 "
        "images of 12 kB a batch): 1.0 to 1.7 ms a call",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
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
            yield RuledOut(
                message=loading_costs.too_little(trace, stalls, batches),
                evidence=loading_costs.evidence(trace, stalls, "Batches fetched", search),
            )
        return
    costs = loading_costs.costs(trace, stalls)
    waiting = _waiting(trace, stalls)
    were_ready = _were_ready(waiting, stalls, options)
    fix, effort = _fix(trace, stalls, exposed)
    if were_ready:
        fix, effort = _taking_over(stalls, has_stacks=waiting is not None), "hour"
    yield Finding(
        confidence=loading_costs.confidence(trace, stalls),
        message=(
            f"Waiting for data takes {duration(within.per_step(stalls.exposed_ns))}"
            f"{' of each step' if within.has_steps else ''} ({share(exposed)}) in which nothing "
            f"else goes on; {count(len(stalls.rows), 'batch', 'batches')} fetched by "
            f"{', '.join(stalls.iterators)}.{were_ready}"
        ),
        evidence=loading_costs.evidence(trace, stalls, "Batches fetched", search),
        tables=(loading_costs.table(stalls, costs),),
        events=slowest_calls(trace, stalls),
        locations=loading_costs.lines(costs),
        claims=(loading_costs.claim(stalls),),
        fix=fix,
        effort=effort,
    )


def _waiting(trace: Trace, stalls: DataStalls) -> float | None:
    """Return the share of loading in which the loop waits for workers; None: unknown, or none."""
    return worker_wait_share(trace, stalls.rows) if _has_workers(stalls) else None


def _has_workers(stalls: DataStalls) -> bool:
    return any(BY_WORKERS in name for name in stalls.iterators)


def _were_ready(waiting: float | None, stalls: DataStalls, options: Options) -> str:
    """Say that batches of workers were ready, where that is seen or likely; else nothing."""
    if waiting is not None:
        return (
            f" Only {share(waiting)} of that is waiting for the workers: the batches were ready, "
            "and the rest is taking them over."
            if waiting < options.ready_below_share
            else ""
        )
    if not _has_workers(stalls) or max(stalls.median_ns, stalls.batch_ns) >= options.ready_call_ns:
        return ""
    return (
        f" A call takes {duration(stalls.median_ns)} in the median, no longer than to take over a "
        "batch that is ready: most likely the workers keep up."
    )


def _taking_over(stalls: DataStalls, *, has_stacks: bool) -> Fix:
    stacks = "Stacks were recorded, which slows just this: record again with_stack=False."
    unseen = "Stacks would tell whether the workers are late: record with_stack=True."
    return Fix(
        "The workers keep up: hand fewer and larger tensors over, or load without workers.",
        f"loader = DataLoader(dataset, ...{loading_costs.pinned_argument(stalls)})"
        f"{'   # a thread takes batches over' if stalls.has_device else ''}\n"
        "# larger batches: each is taken over once, however many samples it has\n"
        "# in collate_fn: one tensor for all samples, in place of many small ones\n"
        "# where a sample is cheap, such as a row of a tensor: num_workers=0",
        verify=VERIFY,
        caveats=(stacks if has_stacks else unseen,),
    )


def _fix(trace: Trace, stalls: DataStalls, exposed: float) -> tuple[Fix, Effort]:
    """Return what helps this iterator, and what it takes."""
    if _has_workers(stalls):
        return _more_workers(trace, stalls, exposed), "flag"
    if any(IN_PROCESS in name for name in stalls.iterators):
        is_cheap = stalls.batch_ns < CHEAP_BATCH_NS
        return _whole_batches() if is_cheap else _workers(trace, stalls), "flag"
    return _in_a_thread(), "hour"


def _more_workers(trace: Trace, stalls: DataStalls, exposed: float) -> Fix:
    times = 1 / max(0.05, 1 - exposed)
    workers = loading_costs.worker_count(trace)
    cpus = recorded_facts.usable_cpus(trace)
    if workers and cpus is not None and workers >= cpus:
        return _less_work(trace, workers, times)
    asked = f"{recorded_facts.bounded(trace, math.ceil(workers * times))}" if workers else "..."
    now = f" (now {workers})" if workers else ""
    ahead = recorded_facts.loader_setting(
        trace, lambda loader: loader.prefetch_factor, has_workers=True
    )
    return Fix(
        "The workers do not keep up: use more, let them prefetch, do less a sample.",
        f"# to hide it, batches must come {significant(times)} times as fast{now}\n"
        f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={asked},\n"
        f"                    prefetch_factor={max(ahead or 0, 4)}, persistent_workers=True"
        f"{loading_costs.pinned_argument(stalls)})",
        verify=VERIFY,
        caveats=(
            "More workers than free CPU cores make it slower."
            if cpus is None
            else loading_costs.cpu_caveat(trace),
            "Where no core is free: decode and augment on the device (torchvision.transforms.v2 "
            "takes tensors there), or store the data set as it is needed.",
        ),
    )


def _less_work(trace: Trace, workers: int, times: float) -> Fix:
    """Return what helps where every CPU has a worker already."""
    return Fix(
        "Every CPU has a worker, and they do not keep up: do less a sample.",
        f"# {workers} workers; batches must come {significant(times)} times as fast\n"
        "# decode and augment on the device: torchvision.transforms.v2 takes tensors there\n"
        "# or store the data set as it is needed: resized, decoded, tokenized",
        verify=VERIFY,
        caveats=(
            loading_costs.cpu_caveat(trace),
            "Where loading waits for a disk, more workers help still.",
        ),
    )


def _workers(trace: Trace, stalls: DataStalls) -> Fix:
    advised = recorded_facts.bounded(trace, 4)
    return Fix(
        "Load in worker processes: see dataloader-no-workers.",
        f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={advised},\n"
        f"                    persistent_workers=True{loading_costs.pinned_argument(stalls)})",
        verify=VERIFY,
    )


def _whole_batches() -> Fix:
    return Fix(
        "Take whole batches out of tensors at once: each takes too little for workers to help.",
        "for rows in torch.randperm(len(inputs)).split(batch_size):\n"
        "    x, y = inputs[rows], targets[rows]  # no sample by sample, no collate",
        verify=VERIFY,
        caveats=("The data set must fit into memory; on the device it saves the copy too.",),
    )


def _in_a_thread() -> Fix:
    return Fix(
        "Fetch the next batch in a thread or process while this one is used.",
        "with ThreadPoolExecutor(1) as loading:\n"
        "    upcoming = loading.submit(next, batches, None)\n"
        "    while (batch := upcoming.result()) is not None:\n"
        "        upcoming = loading.submit(next, batches, None)\n"
        "        train_step(batch)",
        verify=VERIFY,
        caveats=("Python that never lets go of the interpreter's lock needs a process.",),
    )


RULE = Rule(
    id="dataloader-bound",
    title="The step waits for the DataLoader",
    category="input pipeline",
    judges="dataloader",
    why="The loop cannot go on before it has the next batch; the device stands still meanwhile.",
    detects="The calls for the next batch of torch's DataLoader and DataPipes and of Lightning's "
    "loops. It speaks where the part of them during which no device works is at least "
    "`least_share` of the window; on a CPU alone, all of them count. Where stacks show that the "
    "loop waits for workers for less than `ready_below_share` of the calls, or where there are no "
    "stacks a call takes less than `ready_call_ns` in the median and in the mean, it says that "
    "batches were ready.",
    silent=("A device works while batches are fetched: nothing could be won.",),
    saving="All waiting during which no device works, of which faster loading won 77 and 84 % in "
    "torch-tb-profiler's pair of recordings. What a special cause has claimed "
    "(dataloader-worker-respawn, dataloader-no-workers) is counted there.",
    fix=Fix("Load faster, or earlier.", verify=VERIFY),
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
