"""The step waits for the next batch."""

import math
from dataclasses import dataclass

from stepscope.analyses.core.data_loading import handover_ns, tensor_count
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.data_stalls import (
    DataStalls,
    data_stalls,
    slowest_calls,
    worker_wait_share,
)
from stepscope.analyses.idle.loader_restarts import begins_epoch
from stepscope.analyses.idle.loader_workers import worker_count
from stepscope.analyses.settings.host_samples import worker_samples
from stepscope.analyses.settings.recorded_settings import usable_cpus
from stepscope.base.calibration import HANDOVERS, LOCATED_WORK
from stepscope.base.findings import Effort, Evidence
from stepscope.base.formatting import count, duration, share, significant
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, loading_costs, phrases, recorded_facts
from stepscope.rules.shared.loading_costs import CHEAP_BATCH_NS, exposed_share

IN_PROCESS = "_SingleProcess"
BY_WORKERS = "_MultiProcessing"
MOST_EPOCHS = 0.5
"""Epochs per batch from which the loop makes an iterator for every batch or two."""
MOSTLY = 0.5
"""Fraction of the workers' time in waiting from which more of them are no sure remedy."""
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
    late_handovers: float = option(
        2.0,
        "Calls for a batch of workers that take longer than so many typical handovers of a ready "
        "batch waited for it, where no stacks show it.",
        origin="measured on two cores: calls for ready batches took 0.7 to 1.3 of the typical "
        "handover for their step and number of tensors",
    )
    least_handover_share: float = option(
        0.2,
        "Fraction of the window in handovers of ready batches that is worth reporting.",
        origin="ours: larger batches, which it advises, change the training",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Waits:
    """Exposed times in which the loop waits for batches; other loaders hand over nothing."""

    late: Intervals
    """For batches that workers could have made ahead."""
    first: Intervals
    """For the first batches of epochs, which no worker can make ahead."""
    handover: Intervals
    """The rest of the calls: the loop takes batches that are ready."""


def check(trace: Trace, options: Options) -> Results:
    """Report loading that no device hides."""
    stalls = data_stalls(trace)
    if not len(stalls.rows):
        return
    span, exposed = window(trace), exposed_share(trace, stalls)
    evidence = loading_costs.evidence(trace, stalls, "Batches fetched in total", "enumerate(Data")
    has_workers = _has_workers(stalls)
    if has_workers:
        evidence += loading_costs.worker_evidence(trace)
    if exposed < options.least_share:
        if phrases.fraction_of_window(trace, stalls.total_ns) >= options.least_share:
            batches = count(len(stalls.rows), "fetched batch", "fetched batches")
            message = loading_costs.too_little(trace, stalls, batches)
            yield RuledOut(message=message, evidence=evidence)
        return
    waits = _waits(trace, stalls, options)
    were_ready = _were_ready(trace, stalls, waits, options)
    step = f" of each {duration(span.per_step(span.reference_ns))} step" if span.has_steps else ""
    message = (
        f"Data loading takes {duration(span.per_step(stalls.exposed_ns))}{step} "
        f"({share(exposed)}), in which nothing else goes on; "
        f"{count(len(stalls.rows), 'batch', 'batches')} fetched by {', '.join(stalls.iterators)}."
        f"{were_ready}{loading_costs.worker_summary(trace) if has_workers else ''}"
    )
    if were_ready and _share(trace, waits.handover) < options.least_handover_share:
        yield RuledOut(message=message, evidence=evidence)
        return
    fix, effort, claim = _remedy(trace, stalls, waits, is_ready=bool(were_ready))
    severity = loading_costs.severity(trace, stalls, claim)
    costs = loading_costs.costs(trace, stalls)
    finding = Finding(
        severity=severity,
        confidence=loading_costs.confidence(trace, stalls),
        message=message,
        evidence=evidence if were_ready or not has_workers else evidence + _waiting_workers(trace),
        tables=(
            *(loading_costs.worker_table(trace) if has_workers else ()),
            loading_costs.table(stalls, costs),
        ),
        events=slowest_calls(trace, stalls),
        locations=(has_workers and loading_costs.worker_lines(trace))
        or loading_costs.lines(trace, costs),
        claims=(claim,),
        fix=fix,
        effort=effort,
    )
    yield loading_costs.ruled_out(trace, finding) or finding


def _remedy(
    trace: Trace, stalls: DataStalls, waits: Waits, *, is_ready: bool
) -> tuple[Fix, Effort, Claim]:
    """Return the fix, its effort and what it saves."""
    if is_ready:
        method = "All handovers of batches: twice the batch halves them; without workers all go."
        claim = Claim(waits.handover, HANDOVERS, method)
        return _cheaper_handover(trace, stalls), "hour", claim
    exposed = exposed_share(trace, stalls)
    workers = _advised_workers(trace, stalls, exposed)
    claim = loading_costs.claim(trace, stalls, waits.late, workers)
    is_in_loop = bool(workers) and not _has_workers(stalls)
    if is_in_loop and not loading_costs.are_workers_advised(trace, stalls, claim):
        method = "All loading time; half of it at least."
        return CHEAPER_SAMPLES, "hour", Claim(waits.late, LOCATED_WORK, method)
    fix = _fix(trace, stalls, exposed, workers)
    return fix, "hour" if fix is IN_A_THREAD else "flag", claim


def _waiting_workers(trace: Trace) -> tuple[Evidence, ...]:
    """Return that workers mostly wait too, where samples show it."""
    samples = worker_samples(trace)
    if samples is None or samples.waiting_share < MOSTLY:
        return ()
    text = (
        "They mostly wait for indices: a few slow batches, starts of epochs or the transfer of "
        "batches delay the loop more than the work per sample."
    )
    return (facts.text("Workers while the loop waits", text),)


def _has_workers(stalls: DataStalls) -> bool:
    return any(BY_WORKERS in name for name in stalls.iterators)


def _waits(trace: Trace, stalls: DataStalls, options: Options) -> Waits:
    if not _has_workers(stalls) or worker_wait_share(trace, stalls.rows) is not None:
        return Waits(late=stalls.exposed, first=intervals.EMPTY, handover=stalls.exposed)
    ready_ns = _typical_handover_ns(trace, stalls)
    calls = trace.host_calls.iloc[stalls.rows]
    start_ns, end_ns = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    is_wait = end_ns - start_ns >= options.late_handovers * ready_ns
    is_first = begins_epoch(trace, stalls.rows)
    if is_first.sum() >= MOST_EPOCHS * len(is_first):
        is_first[:] = False  # an iterator for every batch: its workers could be ahead
    late, first = (
        intervals.intersection(
            intervals.union(start_ns[selected] + ready_ns, end_ns[selected]), stalls.exposed
        )
        for selected in (is_wait & ~is_first, is_wait & is_first)
    )
    handover = intervals.difference(stalls.exposed, intervals.merged(late, first))
    return Waits(late=late, first=first, handover=handover)


def _typical_handover_ns(trace: Trace, stalls: DataStalls) -> int:
    return handover_ns(loading_costs.rest_ns(trace, stalls), tensor_count(trace))


def _share(trace: Trace, times: Intervals) -> float:
    return phrases.fraction_of_window(trace, intervals.duration_ns(times))


def _were_ready(trace: Trace, stalls: DataStalls, waits: Waits, options: Options) -> str:
    """Return a sentence where batches of workers were ready, certainly or probably, else ""."""
    if not _has_workers(stalls):
        return ""
    waiting = worker_wait_share(trace, stalls.rows)
    if waiting is not None:
        return (
            f" Only {share(waiting)} of that is waiting for the workers: the batches were ready, "
            "and the rest is their handover."
            if waiting < options.ready_below_share
            else ""
        )
    if _share(trace, waits.late) >= options.least_share:
        return ""
    tensors = count(tensor_count(trace), "tensor")
    first_ns = intervals.duration_ns(waits.first)
    epochs = (
        f" {duration(first_ns)} in total are waits for the first batches of epochs, which workers "
        "cannot make ahead."
        if first_ns
        else ""
    )
    return (
        f" The median call takes {duration(stalls.median_ns)}; the handover of a ready batch of "
        f"{tensors} takes about {duration(_typical_handover_ns(trace, stalls))}: most likely the "
        f"workers keep up.{epochs}"
    )


def _cheaper_handover(trace: Trace, stalls: DataStalls) -> Fix:
    has_stacks = worker_wait_share(trace, stalls.rows) is not None
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


def _fix(trace: Trace, stalls: DataStalls, exposed: float, workers: int) -> Fix:
    """Return the fix for this iterator, with the advised number of workers."""
    if _has_workers(stalls):
        return _more_workers(trace, stalls, exposed, workers)
    if not any(IN_PROCESS in name for name in stalls.iterators):
        return IN_A_THREAD
    if stalls.batch_ns < CHEAP_BATCH_NS:
        return WHOLE_BATCHES
    return _with_workers(trace, stalls, workers)


def _with_workers(trace: Trace, stalls: DataStalls, workers: int) -> Fix:
    code = (
        f"{loading_costs.fewer_threads(trace, stalls, workers)}"
        f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={workers},\n"
        f"                    persistent_workers=True{loading_costs.pinned_argument(stalls)})"
    )
    return Fix("Load in worker processes: see dataloader-no-workers.", code, verify=VERIFY)


def _advised_workers(trace: Trace, stalls: DataStalls, exposed: float) -> int:
    """Return the number of workers that the fix names; 0: it is another fix, or names none."""
    if _has_workers(stalls):
        if _are_cpus_taken(trace, stalls):
            return 0
        needed = math.ceil(worker_count(trace) * _needed_speedup(exposed))
        most = loading_costs.most_workers(trace, stalls)
        return needed if most is None else min(needed, most)
    is_cheap = stalls.batch_ns < CHEAP_BATCH_NS
    if is_cheap or not any(IN_PROCESS in name for name in stalls.iterators):
        return 0
    return loading_costs.advised_workers(trace, stalls)[1]


def _are_cpus_taken(trace: Trace, stalls: DataStalls) -> bool:
    """Return whether no CPU is free for a worker more than the recorded ones."""
    workers, cpus = worker_count(trace), usable_cpus(trace)
    is_full = not loading_costs.has_free_core(trace, stalls, workers)
    return bool(workers) and cpus is not None and (workers >= cpus or is_full)


def _needed_speedup(exposed: float) -> float:
    return 1 / max(0.05, 1 - exposed)


def _more_workers(trace: Trace, stalls: DataStalls, exposed: float, advised: int) -> Fix:
    speedup = _needed_speedup(exposed)
    workers = worker_count(trace)
    cpus = usable_cpus(trace)
    if _are_cpus_taken(trace, stalls):
        return _less_work(trace, workers, speedup)
    now = f" (now {workers})" if workers else ""
    ahead = recorded_facts.loader_setting(
        trace, lambda loader: loader.prefetch_factor, has_workers=True
    )
    return Fix(
        "The workers do not keep up: use more, let them prefetch, do less work per sample.",
        f"# to hide it, batches must come {significant(speedup)} times as fast{now}\n"
        f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={advised or '...'},\n"
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
    """Return the fix where no CPU is free for another worker."""
    return Fix(
        "The workers do not keep up, and no CPU is free for more: do less work per sample.",
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
CHEAPER_SAMPLES = Fix(
    "Do less work per sample: torch computes on all CPUs, and none is free for workers.",
    "class Samples(Dataset):\n"
    "    def __init__(self, files):    # once: decode, resize, tokenize, compute features\n"
    "        self.samples = torch.stack([prepared(file) for file in files])\n"
    "    def __getitem__(self, index):\n"
    "        return self.samples[index]",
    verify=VERIFY,
    caveats=(
        "Too large for memory: store the prepared samples in a file, and map it "
        "(np.load(..., mmap_mode='r')).",
        "Where operators gain little from threads, try a worker and one thread of torch fewer "
        "(torch.set_num_threads): of 14 scripts on two cores, eight got faster, six slower.",
    ),
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
    "stacks calls of at least `late_handovers` typical handovers wait for less than `least_share` "
    "of the window, batches were ready. A typical handover takes 0.3 ms and 0.2 ms per tensor in "
    "steps of 3 ms, up to twice as long in steps of 24 ms, as measured. Samples of forked workers "
    "in unrecorded steps, where the recorder took them, name their function and its lines.",
    silent=(
        "A device works while batches are fetched: nothing could be saved.",
        "Batches of workers were ready, and their handovers take less than `least_handover_share` "
        "of the window.",
        "The first batch of an epoch is late: no worker can make it ahead.",
    ),
    saving="Where the fix is a number of workers, the trace is replayed with them, as by "
    "dataloader-no-workers. Else all waiting during which no device works, without the handover of "
    "a batch of workers; faster loading saved 77 and 84 % in torch-tb-profiler's pair of traces. "
    "Where batches were ready, half of their handovers or all; where the loop makes them and no "
    "core is free for workers, half of the loading or all. The claims of a special cause "
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
