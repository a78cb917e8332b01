"""Batches are loaded in the training process itself."""

from stepscope.analyses.core.window import window
from stepscope.analyses.idle.data_stalls import DataStalls, data_stalls, slowest_calls
from stepscope.base.formatting import count, duration, share
from stepscope.rules import Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import loading_costs, recorded_facts
from stepscope.rules.shared.loading_costs import CHEAP_BATCH_NS, MOST_WORKERS, exposed_share

ITERATOR = "_SingleProcessDataLoaderIter"
LABEL = "Batches loaded in the process in total"


class Options(Thresholds):
    """From which time on workers are worth it."""

    least_share: float = option(
        0.01,
        "Fraction of the window in loading that no device hides.",
        origin="ours: below it, workers cost more than they save; xprof and torch-tb-profiler "
        "report loading in general from 5 % on",
    )
    least_batch_ns: int = option(
        CHEAP_BATCH_NS,
        "Median time to make a batch; a worker does not hand over a cheaper batch faster.",
        origin="ours, measured on two cores with torch 2.13: taking a batch of one to four tensors "
        "from a worker that is ahead takes 0.7 to 1.6 ms",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report loading by a DataLoader with `num_workers=0` that no device hides."""
    stalls = data_stalls(trace, ITERATOR)
    if not len(stalls.rows):
        return
    exposed = exposed_share(trace, stalls)
    is_cheap = stalls.median_ns < options.least_batch_ns
    if exposed < options.least_share or is_cheap:
        yield _ruled_out(trace, stalls, is_cheap=is_cheap)
        return
    costs = loading_costs.costs(trace, stalls)
    span = window(trace)
    step = f" of each {duration(span.per_step(span.reference_ns))} step" if span.has_steps else ""
    needed, workers = loading_costs.advised_workers(trace, stalls)
    claim = loading_costs.claim(trace, stalls, stalls.exposed, workers)
    finding = Finding(
        severity=loading_costs.severity(trace, stalls, claim),
        confidence=loading_costs.confidence(trace, stalls),
        message=f"{count(len(stalls.rows), 'batch was', 'batches were')} loaded in the training "
        f"process (num_workers=0): loading takes {duration(span.per_step(stalls.exposed_ns))}"
        f"{step} ({share(exposed)}), in which nothing else goes on.",
        evidence=loading_costs.evidence(trace, stalls, LABEL, ITERATOR),
        tables=(loading_costs.table(stalls, costs),),
        events=slowest_calls(trace, stalls),
        locations=loading_costs.lines(trace, costs),
        claims=(claim,),
        fix=_fix(trace, stalls, needed, workers),
    )
    if not loading_costs.are_workers_advised(trace, stalls, claim):
        yield finding.ruled_out(
            f"{finding.message} But torch computes on all CPUs of this process: workers would take "
            "time from it, and may save nothing. Do less work per sample instead."
        )
        return
    yield loading_costs.ruled_out(trace, finding) or finding


def _ruled_out(trace: Trace, stalls: DataStalls, *, is_cheap: bool) -> RuledOut:
    batches = count(len(stalls.rows), "batch", "batches")
    if is_cheap:
        message = (
            f"{batches} are made in the training process (num_workers=0), but take only "
            f"{duration(stalls.median_ns)} each: a worker would not hand them over faster."
        )
    else:
        made = f"{batches} made in the training process (num_workers=0)"
        message = loading_costs.too_little(trace, stalls, made)
    evidence = loading_costs.evidence(trace, stalls, LABEL, ITERATOR)
    return RuledOut(message=message, evidence=evidence)


def _fix(trace: Trace, stalls: DataStalls, needed: int, workers: int) -> Fix:
    rest_ns = loading_costs.rest_ns(trace, stalls)
    threads = loading_costs.fewer_threads(trace, stalls, workers)
    caveats = [
        "Without fewer threads the loop gets slower: of 24 scripts on two cores, 23 did with "
        "workers beside two threads of torch."
        if threads
        else "If loading already uses all CPU cores, workers alone do not help.",
        loading_costs.cpu_caveat(trace),
        "Where processes are spawned (Windows, macOS), starting them takes seconds per epoch.",
        "An IterableDataset must divide its work between workers (get_worker_info).",
    ]
    if needed > min(MOST_WORKERS, recorded_facts.bounded(trace, needed)):
        caveats.insert(0, "Workers alone do not keep up: do less work per sample too.")
    return Fix(
        "Load in worker processes, so that the next batch is ready when the step ends.",
        f"# a batch takes {duration(stalls.batch_ns)}, the rest of its step "
        f"{duration(rest_ns)}: {count(needed, 'worker')} would just keep up\n{threads}"
        f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={workers},\n"
        f"                    persistent_workers=True{loading_costs.pinned_argument(stalls)})",
        verify=RULE.fix.verify,
        caveats=tuple(caveats),
    )


RULE = Rule(
    id="dataloader-no-workers",
    title="The DataLoader runs in the training process",
    passed="The DataLoader runs in worker processes, or takes little time",
    category="input pipeline",
    why="With num_workers=0 the training loop itself reads, decodes and collates every batch, and "
    "computing waits for it.",
    detects=f"The calls {ITERATOR}.__next__, which only a DataLoader with num_workers=0 makes. It "
    "reports where the part of them during which no device works is at least `least_share` of the "
    "window, and the median batch takes `least_batch_ns` or more.",
    silent=(
        "The median batch takes less than `least_batch_ns`: a data set in memory needs no workers.",
        "A device works during the loading: nothing could be saved.",
        "On a CPU alone, torch computes on all cores of the process, and leaving some to workers "
        "saves less than half of the loading for sure: dataloader-bound reports it.",
    ),
    saving="The trace is replayed with the advised number of workers, on the recorded number of "
    "cores (with a device and no number: enough). The loop waits where they are late, and is "
    "slowed by 0 to 30 % per busy worker, as measured. Where torch computes on all cores, its "
    "operators get fewer threads: with half of them the loop takes longer by 0.25 to 1.3 times the "
    "part of long operators, as measured. To receive a batch it takes 0.3 ms and 0.2 ms per tensor "
    "in steps of 3 ms, up to twice as long in steps of 24 ms; 25 % less to 25 % more, as measured. "
    "On a CPU without a recorded number of cores: a fifth to all of the loading.",
    fix=Fix(
        "Load in worker processes.",
        "loader = DataLoader(dataset, batch_size=..., num_workers=4, persistent_workers=True)",
        verify="enumerate(DataLoader)#_MultiProcessingDataLoaderIter is below 1 % of the step.",
    ),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority="loading",
    after=("dataloader-worker-respawn",),
    culprit="the DataLoader",
    links=(
        "data.html#single-and-multi-process-data-loading",
        "/tutorials/recipes/recipes/tuning_guide.html",
    ),
    origin="torch.profiler SynchronizedDataLoaderPattern; PyTorch tuning guide; torch-tb-profiler",
)
