"""The DataLoader's workers are shut down and restarted in the middle of the run."""

from collections.abc import Iterator

from msgspec.structs import replace

from stepscope.analyses.core import requirements
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.idle.data_stalls import data_stalls
from stepscope.analyses.idle.loader_restarts import LoaderRestarts, loader_restarts
from stepscope.analyses.idle.loader_workers import worker_count
from stepscope.analyses.settings.recorded_settings import RECORDED, common_value, recorded_settings
from stepscope.base.calibration import RESTARTED_WORKERS
from stepscope.base.findings import Evidence, Link
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, loading_costs, phrases

WORKERS = "_MultiProcessingDataLoaderIter"
PATTERN_COUNT = 2
"""Starts or ends of workers from which the trace contains a whole epoch."""
BATCH_BY_BATCH = 0.5
"""Restarts per call for a batch from which the loop makes an iterator for every batch or two."""
VERIFY = (
    "With stacks recorded, no `process.py: start` is left under `dataloader.py: __iter__`; the "
    "call that ends an epoch takes microseconds."
)


class Options(Thresholds):
    """Thresholds from which restarts are worth reporting."""

    least_share: float = option(
        0.01,
        "Fraction of the window spent shutting down and starting workers while no device works.",
        origin="ours: the least that any rule reports; the fix is one argument",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report workers that are restarted between epochs."""
    stalls = data_stalls(trace, WORKERS)
    requirements.applies_if(len(stalls.rows), "no batch was fetched from worker processes")
    restarts = loader_restarts(trace)
    if not restarts.count:
        return
    busy = all_busy(trace)
    certain = intervals.difference(restarts.sure, busy)
    lost = phrases.fraction_of_window(trace, intervals.duration_ns(certain))
    is_pattern = max(restarts.count, len(restarts.shutdown)) >= PATTERN_COUNT
    evidence, message = tuple(_evidence(restarts, lost)), _message(restarts, certain, lost)
    if lost < options.least_share:
        yield RuledOut(message=message, evidence=evidence)
        return
    yield Finding(
        severity=None if is_pattern else "info",
        confidence=loading_costs.confidence(trace, stalls) if is_pattern else "medium",
        message=message,
        evidence=evidence,
        claims=(
            Claim(
                intervals.difference(restarts.all, busy),
                RESTARTED_WORKERS,
                "Shutting down and starting the workers while no device works, and the time by "
                "which the loop's work on the next batch is slower for it; at most also the time "
                "by which that batch takes longer than most.",
                low_intervals=certain,
            ),
        ),
        fix=_fix(trace, restarts),
    )


def _evidence(restarts: LoaderRestarts, lost: float) -> Iterator[Evidence]:
    link = Link(view="operators", search=WORKERS)
    yield facts.count("Restarts in total", restarts.count, link)
    yield facts.fraction("Exposed restarting", lost, "overview")
    if restarts.worker_counts:
        yield facts.count("Processes started in total", sum(restarts.worker_counts))
    for label, times in (
        ("Shutting down in total", restarts.shutdown),
        ("Making the iterator and its workers in total", restarts.start),
        ("First batches beyond the usual in total", restarts.first_batch),
        ("Work on first batches beyond the usual in total", restarts.slow_work),
    ):
        yield facts.duration(label, intervals.duration_ns(times))
    yield facts.count("Batches fetched in total", restarts.batch_count, link)


def _message(restarts: LoaderRestarts, certain: Intervals, lost: float) -> str:
    workers = max(restarts.worker_counts, default=0)
    processes = f", {count(workers, 'process', 'processes')} each time" if workers else ""
    once = " One restart does not show the length of an epoch."
    slow_ns = intervals.duration_ns(restarts.slow_work)
    slower = (
        f" {duration(slow_ns)} is slower work on the batches after it: after a fork the loop "
        "copies memory that it writes."
        if slow_ns
        else ""
    )
    return (
        f"The DataLoader's workers are shut down and restarted {count(restarts.count, 'time')}"
        f"{processes}: {duration(intervals.duration_ns(restarts.sure))} in total; for "
        f"{duration(intervals.duration_ns(certain))} of that ({share(lost)}) nothing else goes on."
        f"{slower}{once if restarts.count < PATTERN_COUNT else ''}"
    )


def _fix(trace: Trace, restarts: LoaderRestarts) -> Fix:
    if restarts.count >= BATCH_BY_BATCH * restarts.batch_count:
        return ONE_ITERATOR
    if _are_all_persistent(trace):
        return ONE_LOADER
    workers = worker_count(trace)
    return replace(
        RULE.fix,
        code=f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={workers or '...'},\n"
        "                    persistent_workers=True)",
    )


def _are_all_persistent(trace: Trace) -> bool:
    """Return whether every loader keeps its workers: any loader may have restarted."""
    return bool(
        common_value(
            loader.persistent_workers
            for loader in recorded_settings(trace).dataloaders
            if loader.worker_count != 0
        )
    )


ONE_ITERATOR = Fix(
    "Make the iterator once: the loop makes a new iterator for nearly every batch.",
    "batches = iter(loader)  # once, not next(iter(loader)) in the loop\n"
    "for step in range(steps):\n"
    "    batch = next(batches)",
    verify=VERIFY,
    caveats=("At its end it raises StopIteration: then call iter() again.",),
)
ONE_LOADER = Fix(
    "Make the DataLoader once: it would keep its workers, but a new loader is made.",
    "loader = DataLoader(dataset, ..., persistent_workers=True)  # before the epochs\n"
    "for epoch in range(epochs):\n"
    "    for batch in loader:  # not DataLoader(...) here",
    verify=VERIFY,
    caveats=(
        f"persistent_workers=True is set already ({RECORDED}).",
        "A framework that remakes loaders has a setting for it: Lightning's "
        "reload_dataloaders_every_n_epochs.",
    ),
)
RULE = Rule(
    id="dataloader-worker-respawn",
    title="The DataLoader's workers are restarted every epoch",
    passed="DataLoader workers persist over epochs",
    category="input pipeline",
    why="Without persistent_workers, the end of an epoch ends all worker processes, and the next "
    "epoch starts new ones, which load nothing until they are up. Most of that is outside calls "
    "for a batch, so that tools that check only those calls miss it.",
    detects="With stacks, DataLoader.__iter__ calls that start processes after something was "
    "loaded, and _shutdown_workers; without, a call for a batch that takes 1 ms or more, after "
    "which nothing happens but that a new iterator draws its seed. It reports where that takes at "
    "least `least_share` of the window while no device works.",
    silent=(
        "The first iterator in the trace has to be made once.",
        "One restart alone is never more than info: it does not show the length of an epoch.",
        "A device works meanwhile: nothing could be saved.",
    ),
    saving="At least shutting down and starting the workers while no device works, and the time "
    "by which the work on the next batch, with as many calls as usual, takes longer (after a fork, "
    "the loop copies each page of memory that it writes); at most also the time by which the first "
    "call for a batch takes longer than the median of usual calls.",
    fix=Fix(
        "Keep the workers from epoch to epoch.",
        "loader = DataLoader(dataset, num_workers=..., persistent_workers=True)",
        verify=VERIFY,
        caveats=(
            "The workers keep their copy of the data set: changes that the loop makes to it (an "
            "epoch's number, a curriculum) no longer reach them.",
            "Their memory stays allocated between epochs; a validation loader has more workers.",
        ),
    ),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks"}),
    priority="loading",
    culprit="restarting the DataLoader's workers",
    links=("data.html#torch.utils.data.DataLoader",),
    origin="PyTorch's documentation of persistent_workers; no other tool checks it",
)
