"""The step waits for the next batch."""

import math

from stepscope.analyses.core.window import window
from stepscope.analyses.idle.data_stalls import (
    DataStalls,
    data_stalls,
    slowest_calls,
    worker_wait_share,
)
from stepscope.analyses.idle.loader_workers import worker_count
from stepscope.analyses.settings.recorded_settings import usable_cpus
from stepscope.base.findings import Effort
from stepscope.base.formatting import count, duration, share, significant
from stepscope.rules import Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import loading_costs, phrases, recorded_facts
from stepscope.rules.shared.loading_costs import CHEAP_BATCH_NS, exposed_share

IN_PROCESS = "_SingleProcess"
BY_WORKERS = "_MultiProcessing"
WORKERS_IN_PLACE_OF_NONE = 4
VERIFY = "The fraction of DataLoader in Overview falls below 5 %."


class Options(Thresholds):
    """Thresholds from which waiting for batches is worth reporting."""

    least_share: float = option(
        0.05,
        "Fraction of the window spent waiting for batches that no device hides.",
        origin="torch-tb-profiler and xprof report at 5 %; an absolute time (msprof-analyze: 10 ms "
        "per batch) would ignore the step's length",
    )
    ready_below_share: float = option(
        0.5,
        "Fraction of the calls for batches spent waiting for the workers, where stacks show it, "
        "below which the batches were ready.",
        origin="ours: the message names the cause of most of the time",
    )
    ready_call_ns: int = option(
        2_000_000,
        "Nanoseconds. Median and mean call for a batch of workers, where no stacks show its cause: "
        "below it a call takes no longer than the handover of a batch that is ready. The mean is "
        "larger where one batch in a few is late.",
        origin="measured on two cores with two workers that were ahead (torch 2.13, 32 to 256 "
        "images of 12 kB per batch): 1.0 to 1.7 ms per call",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report loading that no device hides."""
    stalls = data_stalls(trace)
    if not len(stalls.rows):
        return
    span, exposed = window(trace), exposed_share(trace, stalls)
    evidence = loading_costs.evidence(trace, stalls, "Batches fetched in total", "enumerate(Data")
    if exposed < options.least_share:
        if phrases.fraction_of_window(trace, stalls.total_ns) >= options.least_share:
            batches = count(len(stalls.rows), "fetched batch", "fetched batches")
            message = loading_costs.too_little(trace, stalls, batches)
            yield RuledOut(message=message, evidence=evidence)
        return
    costs = loading_costs.costs(trace, stalls)
    waiting = worker_wait_share(trace, stalls.rows) if _has_workers(stalls) else None
    were_ready = _were_ready(waiting, stalls, options)
    fix, effort = _fix(trace, stalls, exposed)
    workers = _advised_workers(trace, stalls, exposed)
    if were_ready:
        fix, effort = _cheaper_handover(stalls, has_stacks=waiting is not None), "hour"
        workers = 0
    step = f" of each {duration(span.per_step(span.reference_ns))} step" if span.has_steps else ""
    finding = Finding(
        confidence=loading_costs.confidence(trace, stalls),
        message=f"Data loading takes {duration(span.per_step(stalls.exposed_ns))}{step} "
        f"({share(exposed)}), in which nothing else goes on; "
        f"{count(len(stalls.rows), 'batch', 'batches')} fetched by {', '.join(stalls.iterators)}."
        f"{were_ready}",
        evidence=evidence,
        tables=(loading_costs.table(stalls, costs),),
        events=slowest_calls(trace, stalls),
        locations=loading_costs.lines(costs),
        claims=(loading_costs.claim(trace, stalls, workers),),
        fix=fix,
        effort=effort,
    )
    yield loading_costs.ruled_out(trace, finding) or finding


def _has_workers(stalls: DataStalls) -> bool:
    return any(BY_WORKERS in name for name in stalls.iterators)


def _were_ready(waiting: float | None, stalls: DataStalls, options: Options) -> str:
    """Return a sentence where batches of workers were ready, certainly or probably, else ""."""
    if waiting is not None:
        return (
            f" Only {share(waiting)} of that is waiting for the workers: the batches were ready, "
            "and the rest is their handover."
            if waiting < options.ready_below_share
            else ""
        )
    if not _has_workers(stalls) or max(stalls.median_ns, stalls.batch_ns) >= options.ready_call_ns:
        return ""
    return (
        f" The median call takes {duration(stalls.median_ns)}, no longer than the handover of a "
        "batch that is ready: most likely the workers keep up."
    )


def _cheaper_handover(stalls: DataStalls, *, has_stacks: bool) -> Fix:
    stacks = "Recording stacks slows the handover: record again with_stack=False."
    unseen = "Stacks would show whether the workers are late: record with_stack=True."
    return Fix(
        "The workers keep up: hand over fewer and larger tensors, or load without workers.",
        f"loader = DataLoader(dataset, ...{loading_costs.pinned_argument(stalls)})"
        f"{'   # a thread takes batches over' if stalls.has_device else ''}\n"
        "# larger batches: one handover each, however many samples they have\n"
        "# in collate_fn: one tensor for all samples, in place of many small tensors\n"
        "# where a sample is cheap, such as a row of a tensor: num_workers=0",
        verify=VERIFY,
        caveats=(stacks if has_stacks else unseen,),
    )


def _fix(trace: Trace, stalls: DataStalls, exposed: float) -> tuple[Fix, Effort]:
    """Return the fix for this iterator, and its effort."""
    if _has_workers(stalls):
        return _more_workers(trace, stalls, exposed), "flag"
    if not any(IN_PROCESS in name for name in stalls.iterators):
        return IN_A_THREAD, "hour"
    if stalls.batch_ns < CHEAP_BATCH_NS:
        return WHOLE_BATCHES, "flag"
    code = (
        f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={_advised_workers(trace, stalls, exposed)},\n"
        f"                    persistent_workers=True{loading_costs.pinned_argument(stalls)})"
    )
    return Fix("Load in worker processes: see dataloader-no-workers.", code, verify=VERIFY), "flag"


def _advised_workers(trace: Trace, stalls: DataStalls, exposed: float) -> int:
    """Return the number of workers that the fix names; 0: it is another fix, or names none."""
    if _has_workers(stalls):
        workers, cpus = worker_count(trace), usable_cpus(trace)
        if cpus is not None and workers >= cpus:
            return 0
        return recorded_facts.bounded(trace, math.ceil(workers * _needed_speedup(exposed)))
    is_cheap = stalls.batch_ns < CHEAP_BATCH_NS
    if is_cheap or not any(IN_PROCESS in name for name in stalls.iterators):
        return 0
    return recorded_facts.bounded(trace, WORKERS_IN_PLACE_OF_NONE)


def _needed_speedup(exposed: float) -> float:
    return 1 / max(0.05, 1 - exposed)


def _more_workers(trace: Trace, stalls: DataStalls, exposed: float) -> Fix:
    speedup = _needed_speedup(exposed)
    workers = worker_count(trace)
    cpus = usable_cpus(trace)
    if workers and cpus is not None and workers >= cpus:
        return _less_work(trace, workers, speedup)
    needed = _advised_workers(trace, stalls, exposed) or "..."
    now = f" (now {workers})" if workers else ""
    ahead = recorded_facts.loader_setting(
        trace, lambda loader: loader.prefetch_factor, has_workers=True
    )
    return Fix(
        "The workers do not keep up: use more, let them prefetch, do less work per sample.",
        f"# to hide it, batches must come {significant(speedup)} times as fast{now}\n"
        f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={needed},\n"
        f"                    prefetch_factor={max(ahead or 0, 4)}, persistent_workers=True"
        f"{loading_costs.pinned_argument(stalls)})",
        verify=VERIFY,
        caveats=(
            "More workers than free CPU cores make it slower."
            if cpus is None
            else loading_costs.cpu_caveat(trace),
            "Where no core is free: decode and augment on the device (torchvision.transforms.v2 "
            "accepts tensors there), or store the data set preprocessed.",
        ),
    )


def _less_work(trace: Trace, workers: int, speedup: float) -> Fix:
    """Return the fix where every CPU has a worker already."""
    return Fix(
        "Every CPU has a worker, and they do not keep up: do less work per sample.",
        f"# {workers} workers; batches must come {significant(speedup)} times as fast\n"
        "# decode and augment on the device: torchvision.transforms.v2 accepts tensors there\n"
        "# or store the data set preprocessed: resized, decoded, tokenized",
        verify=VERIFY,
        caveats=(
            loading_costs.cpu_caveat(trace),
            "Where loading waits for a disk, more workers still help.",
        ),
    )


WHOLE_BATCHES = Fix(
    "Take whole batches out of tensors at once: each is too cheap for workers to help.",
    "for rows in torch.randperm(len(inputs)).split(batch_size):\n"
    "    x, y = inputs[rows], targets[rows]  # no sample by sample, no collate",
    verify=VERIFY,
    caveats=("The data set must fit into memory; on the device it saves the copy too.",),
)
IN_A_THREAD = Fix(
    "Fetch the next batch in a thread or process while the current batch is used.",
    "with ThreadPoolExecutor(1) as loading:\n"
    "    upcoming = loading.submit(next, batches, None)\n"
    "    while (batch := upcoming.result()) is not None:\n"
    "        upcoming = loading.submit(next, batches, None)\n"
    "        train_step(batch)",
    verify=VERIFY,
    caveats=("Python code that never releases the interpreter's lock needs a process.",),
)
RULE = Rule(
    id="dataloader-bound",
    title="The step waits for the DataLoader",
    passed="The DataLoader keeps up with the step",
    category="input pipeline",
    judges="dataloader",
    why="The loop cannot go on before it has the next batch; the device is idle meanwhile.",
    detects="The calls for the next batch of torch's DataLoader and DataPipes and of Lightning's "
    "loops. It reports where the part of them during which no device works is at least "
    "`least_share` of the window; on a CPU alone, all of them count. Where stacks show that the "
    "loop waits for workers for less than `ready_below_share` of the calls, or where without "
    "stacks a call takes less than `ready_call_ns` in the median and in the mean, the message says "
    "that batches were ready.",
    silent=("A device works while batches are fetched: nothing could be saved.",),
    saving="Where the fix is a number of workers, the trace is replayed with them, as by "
    "dataloader-no-workers. Else all waiting during which no device works, of which faster loading "
    "saved 77 and 84 % in torch-tb-profiler's pair of traces. The claims of a special cause "
    "(dataloader-worker-respawn, dataloader-no-workers) are counted there.",
    fix=Fix("Load faster, or earlier.", verify=VERIFY),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority="loading",
    after=("main-thread-pin-memory",),
    culprit="the DataLoader",
    links=("data.html#multi-process-data-loading",),
    origin="torch-tb-profiler (DataLoader > 5 % of the step); xprof InputBound",
)
