"""The step waits for the next batch."""

from collections.abc import Iterator
from dataclasses import dataclass

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
)
from stepscope.trace import Trace


@dataclass(frozen=True, kw_only=True)
class Options:
    """Share of the window, 0 to 1, from which to speak."""

    least_share: float = option(
        0.05,
        "torch-tb-profiler and xprof speak at 5 %; an absolute time would ignore the step's length.",
        origin="",
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report loading that no device hides."""
    stalls = data_stalls(trace)
    within = window(trace)
    exposed = stalls.exposed_ns / within.reference_ns
    if exposed < options.least_share:
        return
    yield Finding(
        confidence="high" if stalls.has_device else "medium",
        message=(
            f"Waiting for data takes {duration(within.per_step(stalls.exposed_ns))}"
            f"{' of each step' if within.has_steps else ''} ({share(exposed)}) in which nothing "
            f"else goes on; {count(len(stalls.rows), 'batch', 'batches')} fetched by "
            f"{', '.join(stalls.iterators)}."
        ),
        evidence=(
            Evidence(
                label="Exposed loading", value=exposed, unit="share", link=Link(view="overview")
            ),
            Evidence(label="Loading in all", value=stalls.total_ns, unit="ns"),
            Evidence(
                label="Batches fetched",
                value=len(stalls.rows),
                unit="count",
                link=Link(view="operators", search="enumerate(Data"),
            ),
        ),
        events=slowest(trace, stalls),
        claims=(_claim(stalls),),
        fix=_fix(stalls),
    )


def _claim(stalls: DataStalls) -> Claim:
    if stalls.has_device:
        method = "All loading time in which no device was busy; faster loading wins 75 to 100 %."
        return Claim(intervals=stalls.exposed, factor=EXPOSED_TIME, method=method)
    return Claim(
        intervals=stalls.exposed,
        factor=EXPOSED_TIME_WITHOUT_DEVICE,
        method="All loading time; on a CPU alone loading and computing share the cores.",
    )


def _fix(stalls: DataStalls) -> Fix:
    verify = "DataLoader's share of the step in Overview falls below 5 %."
    if any("_MultiProcessing" in name for name in stalls.iterators):
        return Fix(
            summary="The workers do not keep up: use more, let them prefetch, do less a sample.",
            code=(
                "loader = DataLoader(dataset, batch_size=..., num_workers=2 * workers,\n"
                "                    prefetch_factor=4, persistent_workers=True, pin_memory=True)"
            ),
            verify=verify,
            caveats=("More workers than free CPU cores make it slower.",),
        )
    if any("_SingleProcess" in name for name in stalls.iterators):
        return Fix(
            summary="Load in worker processes: see dataloader-no-workers.",
            code=(
                "loader = DataLoader(dataset, batch_size=...,\n"
                "                    num_workers=4, persistent_workers=True)"
            ),
            verify=verify,
        )
    return Fix(
        summary="Fetch the next batch in a thread or process while this one is used.", verify=verify
    )


RULE = Rule(
    id="dataloader-bound",
    title="The step waits for the DataLoader",
    category="input pipeline",
    why="The loop cannot go on before it has the next batch; the device stands still meanwhile.",
    fix=Fix(summary="Load faster, or earlier."),
    detects="",
    saving="",
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "clocks", "steps"}),
    priority=30,
    links=("https://docs.pytorch.org/docs/stable/data.html#multi-process-data-loading",),
    origin="torch-tb-profiler (DataLoader > 5 % of the step); xprof InputBound",
)
