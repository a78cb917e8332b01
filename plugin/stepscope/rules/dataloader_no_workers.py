"""Batches are loaded in the training process itself."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.batch_size import batch_size
from stepscope.analyses.idle.data_stalls import DataStalls, data_stalls, slowest
from stepscope.analyses.steps.window import window
from stepscope.calibration import EXPOSED_TIME, EXPOSED_TIME_WITHOUT_DEVICE
from stepscope.quantities import count, duration, share
from stepscope.report import Evidence, Fix, Link
from stepscope.rules import (
    Claim,
    Finding,
    Rule,
    option,
    severity_of,
)
from stepscope.trace import Trace

ITERATOR = "_SingleProcessDataLoaderIter"


@dataclass(frozen=True, kw_only=True)
class Options:
    """Share of the window, 0 to 1, from which to speak."""

    least_share: float = option(
        0.01,
        "Below 1 % workers cost more than they save: a data set in memory is right without them.",
        origin="",
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report loading by a DataLoader with `num_workers=0` that no device hides."""
    stalls = data_stalls(trace, ITERATOR)
    within = window(trace)
    exposed = stalls.exposed_ns / within.reference_ns
    if exposed < options.least_share:
        return
    yield Finding(
        severity=severity_of(exposed) or "info",
        confidence="high" if stalls.has_device else "medium",
        message=(
            f"{count(len(stalls.rows), 'batch was', 'batches were')} loaded in the training "
            f"process (num_workers=0): {duration(within.per_step(stalls.exposed_ns))}"
            f"{' of each step' if within.has_steps else ''}, {share(exposed)}, in which nothing "
            "else goes on."
        ),
        evidence=(
            Evidence(
                label="Exposed loading", value=exposed, unit="share", link=Link(view="overview")
            ),
            Evidence(label="Loading in all", value=stalls.total_ns, unit="ns"),
            Evidence(
                label="Batches loaded in the process",
                value=len(stalls.rows),
                unit="count",
                link=Link(view="operators", search=ITERATOR),
            ),
        ),
        events=slowest(trace, stalls),
        claims=(_claim(stalls),),
        fix=_fix(trace),
    )


def _claim(stalls: DataStalls) -> Claim:
    if stalls.has_device:
        return Claim(
            intervals=stalls.exposed,
            factor=EXPOSED_TIME,
            method=(
                "All loading time in which no device was busy; with workers it overlaps the step. "
                "Realised in a measured pair: 77 and 84 % of it."
            ),
        )
    return Claim(
        intervals=stalls.exposed,
        factor=EXPOSED_TIME_WITHOUT_DEVICE,
        method=(
            "All loading time; on a CPU alone the workers take cores from computing. Realised with "
            "two workers on two cores: 46 to 56 % of it."
        ),
    )


def _fix(trace: Trace) -> Fix:
    batch = batch_size(trace)
    size = f"batch_size={batch.size}" if batch and batch.is_certain else "batch_size=..."
    return Fix(
        summary="Load in worker processes, so that the next batch is ready when the step ends.",
        code=(
            "import os\n"
            f"loader = DataLoader(dataset, {size}, shuffle=True,\n"
            "                    num_workers=min(8, os.cpu_count()),  # shared by all GPUs\n"
            "                    persistent_workers=True, pin_memory=True)"
        ),
        verify="enumerate(DataLoader)#_MultiProcessingDataLoaderIter is below 1 % of the step.",
        caveats=(
            "If loading already uses all CPU cores, workers alone do not help.",
            "Where processes are spawned (Windows, macOS), starting them takes seconds an epoch.",
            "An IterableDataset must share its work between workers (get_worker_info).",
        ),
    )


RULE = Rule(
    id="dataloader-no-workers",
    title="The DataLoader runs in the training process",
    category="input pipeline",
    why=(
        "With num_workers=0 the loop itself reads, decodes and collates every batch, and the rest "
        "waits for it."
    ),
    fix=Fix(summary="Load in worker processes."),
    detects="",
    saving="",
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority=20,
    links=("https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading",),
    origin="torch.profiler SynchronizedDataLoaderPattern; PyTorch tuning guide",
)
