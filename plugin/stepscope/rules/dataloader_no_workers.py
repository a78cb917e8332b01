"""Batches are loaded in the training process itself."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core.window import window
from stepscope.analyses.idle.data_stalls import DataStalls, data_stalls, slowest_calls
from stepscope.base.findings import Fix
from stepscope.base.formatting import count, duration, share
from stepscope.model.trace import Trace
from stepscope.rules import Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import loading_costs, recorded_facts
from stepscope.rules.shared.loading_costs import CHEAP_BATCH_NS, exposed_share

ITERATOR = "_SingleProcessDataLoaderIter"
MOST_WORKERS = 16
"""What is advised at most: what needs more should do less a sample."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """From how much time on workers are worth it."""

    least_share: float = option(
        0.01,
        "Of the window, 0 to 1: loading that no device hides.",
        origin="ours: below it, workers cost more than they save; xprof and torch-tb-profiler "
        "speak of loading in general from 5 % on",
    )
    least_batch_ns: int = option(
        CHEAP_BATCH_NS,
        "Median time to make a batch; one that takes less is not handed over faster by a worker.",
        origin="ours, measured on two cores with a data set in memory: 0.3 ms a batch without "
        "workers, 1.8 ms with one",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report loading by a DataLoader with `num_workers=0` that no device hides."""
    stalls = data_stalls(trace, ITERATOR)
    if not len(stalls.rows):
        return
    exposed = exposed_share(trace, stalls)
    is_cheap = stalls.median_ns < options.least_batch_ns
    if exposed < options.least_share or is_cheap:
        yield _rejected(trace, stalls, is_cheap=is_cheap)
        return
    tables, costs = loading_costs.work(trace, stalls)
    within = window(trace)
    yield Finding(
        confidence=loading_costs.confidence(trace, stalls),
        message=(
            f"{count(len(stalls.rows), 'batch was', 'batches were')} loaded in the training "
            f"process (num_workers=0): {duration(within.per_step(stalls.exposed_ns))}"
            f"{' of each step' if within.has_steps else ''}, {share(exposed)}, in which nothing "
            "else goes on."
        ),
        evidence=loading_costs.evidence(trace, stalls, "Batches loaded in the process", ITERATOR),
        tables=tables,
        events=slowest_calls(trace, stalls),
        locations=loading_costs.lines(costs),
        claims=(loading_costs.claim(stalls),),
        fix=_fix(trace, stalls),
    )


def _rejected(trace: Trace, stalls: DataStalls, *, is_cheap: bool) -> RuledOut:
    batches = count(len(stalls.rows), "batch", "batches")
    if is_cheap:
        message = (
            f"{batches} are made in the training process (num_workers=0), but in "
            f"{duration(stalls.median_ns)} each: a worker would not hand them over faster."
        )
    else:
        made = f"{batches} made in the training process (num_workers=0)"
        message = loading_costs.too_little(trace, stalls, made)
    label = "Batches loaded in the process"
    return RuledOut(
        message=message, evidence=loading_costs.evidence(trace, stalls, label, ITERATOR)
    )


def _fix(trace: Trace, stalls: DataStalls) -> Fix:
    rest_ns = max(1.0, (window(trace).reference_ns - stalls.exposed_ns) / len(stalls.rows))
    needed = math.ceil(stalls.batch_ns / rest_ns)
    advised = recorded_facts.bounded(trace, min(MOST_WORKERS, max(2, needed + 1)))
    caveats = [
        "If loading already uses all CPU cores, workers alone do not help.",
        loading_costs.room(trace),
        "Where processes are spawned (Windows, macOS), starting them takes seconds an epoch.",
        "An IterableDataset must share its work between workers (get_worker_info).",
    ]
    if needed > min(MOST_WORKERS, recorded_facts.bounded(trace, needed)):
        caveats.insert(0, "Workers alone do not keep up: do less a sample too.")
    return Fix(
        "Load in worker processes, so that the next batch is ready when the step ends.",
        f"# a batch takes {duration(stalls.batch_ns)}, the rest of its step "
        f"{duration(rest_ns)}: {count(needed, 'worker')} would just keep up\n"
        f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={advised},\n"
        f"                    persistent_workers=True{loading_costs.pinned_argument(stalls)})",
        verify="enumerate(DataLoader)#_MultiProcessingDataLoaderIter is below 1 % of the step.",
        caveats=tuple(caveats),
    )


RULE = Rule(
    id="dataloader-no-workers",
    title="The DataLoader runs in the training process",
    category="input pipeline",
    why="With num_workers=0 the loop itself reads, decodes and collates every batch, and the rest "
    "waits for it.",
    detects=f"The calls {ITERATOR}.__next__, which only a DataLoader with num_workers=0 makes. It "
    "speaks where the part of them during which no device works is at least `least_share` of the "
    "window, and the median batch takes `least_batch_ns` or more.",
    silent=(
        "The median batch takes less than `least_batch_ns`: a data set in memory is right without "
        "workers.",
        "A device works during the loading: nothing could be won.",
    ),
    saving="All loading during which no device works. Workers win most of it: 77 and 84 % in "
    "torch-tb-profiler's pair of recordings, a quarter to all on a CPU whose cores they share.",
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
    priority=20,
    culprit="the DataLoader",
    links=(
        "https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading",
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    origin="torch.profiler SynchronizedDataLoaderPattern; PyTorch tuning guide; torch-tb-profiler",
)
