"""The DataLoader's workers are shut down and started anew in the middle of the run."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.data_stalls import data_stalls
from stepscope.analyses.idle.loader_restarts import LoaderRestarts, loader_restarts
from stepscope.analyses.settings.recorded_settings import RECORDED, common_value, recorded_settings
from stepscope.base.calibration import ALL_OF_IT
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, Fix, Link
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import facts, loading_costs

WORKERS = "_MultiProcessingDataLoaderIter"
PATTERN_COUNT = 2
"""From so many starts or ends of workers on, the recording holds a whole epoch."""
BATCH_BY_BATCH = 0.5
"""Restarts a call for a batch: the loop then makes an iterator for every batch or two."""
VERIFY = (
    "With stacks recorded, no `process.py: start` is left under `dataloader.py: __iter__`; the "
    "call that ends an epoch takes microseconds."
)


@dataclass(frozen=True, kw_only=True)
class Options:
    """From how much time on it speaks."""

    least_share: float = option(
        0.01,
        "Of the window, 0 to 1: shutting down and starting workers while no device works.",
        origin="ours: what all advice needs to be worth a word; the fix is one argument",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report workers that are started anew at the edges of epochs."""
    stalls = data_stalls(trace, WORKERS)
    if not len(stalls.rows):
        msg = "no batch was fetched from worker processes"
        raise NotApplicableError(msg)
    restarts = loader_restarts(trace)
    if not restarts.count:
        return
    busy = all_busy(trace)
    sure = intervals.difference(restarts.sure, busy)
    lost = intervals.duration_ns(sure) / window(trace).reference_ns
    evidence = tuple(_evidence(restarts, lost))
    if lost < options.least_share:
        yield RuledOut(message=_message(trace, restarts, sure), evidence=evidence)
        return
    yield Finding(
        severity=None if _is_pattern(restarts) else "info",
        confidence=loading_costs.confidence(trace, stalls) if _is_pattern(restarts) else "medium",
        message=_message(trace, restarts, sure),
        evidence=evidence,
        claims=(
            Claim(
                intervals.difference(restarts.all, busy),
                ALL_OF_IT,
                "Shutting down and starting the workers while no device works; at most also what "
                "the first batch behind it takes longer than most.",
                low_intervals=sure,
            ),
        ),
        fix=_fix(trace, restarts),
    )


def _is_pattern(restarts: LoaderRestarts) -> bool:
    """Tell whether it shows how often restarts come."""
    return max(restarts.count, len(restarts.shutdown)) >= PATTERN_COUNT


def _evidence(restarts: LoaderRestarts, lost: float) -> Iterator[Evidence]:
    link = Link(view="operators", search=WORKERS)
    yield facts.count("Restarts", restarts.count, link)
    yield facts.fraction("Exposed restarting", lost, "overview")
    if restarts.worker_counts:
        started = sum(restarts.worker_counts)
        yield facts.count("Processes started", started)
    for label, times in (
        ("Shutting down", restarts.shutdown),
        ("Making the iterator and its workers", restarts.start),
        ("First batches, beyond the usual", restarts.first_batch),
    ):
        yield facts.duration(label, intervals.duration_ns(times))
    yield facts.count("Batches fetched", restarts.batch_count, link)


def _message(trace: Trace, restarts: LoaderRestarts, sure: Intervals) -> str:
    within = window(trace)
    workers = max(restarts.worker_counts, default=0)
    processes = f", {count(workers, 'process', 'processes')} each time" if workers else ""
    whole_ns = intervals.duration_ns(restarts.sure)
    sure_ns = intervals.duration_ns(sure)
    alone = f"for {duration(sure_ns)} of that ({share(sure_ns / within.reference_ns)})"
    once = (
        " One restart does not tell how long an epoch is." if restarts.count < PATTERN_COUNT else ""
    )
    return (
        f"The DataLoader's workers are shut down and started anew "
        f"{count(restarts.count, 'time')}{processes}: {duration(whole_ns)} in all; {alone} nothing "
        f"else goes on.{once}"
    )


def _fix(trace: Trace, restarts: LoaderRestarts) -> Fix:
    if restarts.count >= BATCH_BY_BATCH * restarts.batch_count:
        return Fix(
            "Make the iterator once: the loop makes a new one for nearly every batch.",
            "batches = iter(loader)  # once, not next(iter(loader)) in the loop\n"
            "for step in range(steps):\n"
            "    batch = next(batches)",
            verify=VERIFY,
            caveats=("Where it is used up, StopIteration says so: then call iter() again.",),
        )
    if _are_all_persistent(trace):
        return _one_loader()
    workers = loading_costs.worker_count(trace)
    return Fix(
        "Keep the workers from epoch to epoch.",
        f"loader = DataLoader(dataset, {loading_costs.batch_argument(trace)}, "
        f"num_workers={workers or '...'},\n"
        "                    persistent_workers=True)",
        verify=VERIFY,
        caveats=(
            "The workers keep their copy of the data set: what the loop changes in it (an epoch's "
            "number, a curriculum) no longer reaches them.",
            "Their memory is kept between epochs; a validation loader has workers of its own.",
        ),
    )


def _are_all_persistent(trace: Trace) -> bool:
    """Tell whether every loader keeps its workers: one behind the loop may be what restarted."""
    return bool(
        common_value(
            loader.persistent_workers
            for loader in recorded_settings(trace).dataloaders
            if loader.worker_count != 0
        )
    )


def _one_loader() -> Fix:
    """Return what helps where the loader would keep its workers, were it kept itself."""
    return Fix(
        "Make the DataLoader once: it would keep its workers, but a new one is made.",
        "loader = DataLoader(dataset, ..., persistent_workers=True)  # before the epochs\n"
        "for epoch in range(epochs):\n"
        "    for batch in loader:  # not DataLoader(...) here",
        verify=VERIFY,
        caveats=(
            f"persistent_workers=True is set already ({RECORDED}).",
            "A framework that makes loaders anew has a setting of its own: Lightning's "
            "reload_dataloaders_every_n_epochs.",
        ),
    )


RULE = Rule(
    id="dataloader-worker-respawn",
    title="The DataLoader's workers are started anew every epoch",
    category="input pipeline",
    why="Without persistent_workers, the end of an epoch ends all worker processes, and the next "
    "one starts new ones, which load nothing until they are up. Most of that is in no call for a "
    "batch, so that tools that look at those miss it.",
    detects="With stacks, DataLoader.__iter__ in which processes are started once something was "
    "loaded, and _shutdown_workers; without, a call for a batch that takes 1 ms or more, behind "
    "which nothing happens but that a new iterator draws its seed. It speaks where that takes at "
    "least `least_share` of the window while no device works.",
    silent=(
        "The first iterator of the recording is made: that has to be done once.",
        "One restart alone is never more than info: it does not tell how long an epoch is.",
        "A device works meanwhile: nothing could be won.",
    ),
    saving="At least shutting down and starting the workers while no device works; at most also "
    "what the first call for a batch behind it takes longer than the median call.",
    fix=Fix(
        "Keep the workers from epoch to epoch.",
        "loader = DataLoader(dataset, num_workers=..., persistent_workers=True)",
        verify=VERIFY,
    ),
    effort="flag",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks"}),
    priority=10,
    culprit="restarting the DataLoader's workers",
    links=("https://docs.pytorch.org/docs/stable/data.html#torch.utils.data.DataLoader",),
    origin="PyTorch's documentation of persistent_workers; no other tool looks for it",
)
