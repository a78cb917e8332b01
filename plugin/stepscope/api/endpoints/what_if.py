"""Endpoints of simulated steps: a prediction, its timeline, and the names that it can scale."""

from typing import Annotated

import msgspec
import numpy as np
import pandas as pd

from stepscope.advice import AdviceSettings
from stepscope.advice.fixes import fix_changes, fix_savings, predict_fixes
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.timeline.slice_categories import CATEGORIES
from stepscope.api.endpoint import Binary, Query, trace_endpoint
from stepscope.api.endpoints.downloads import CHROME_TRACE
from stepscope.api.messages import Response
from stepscope.api.packed_files import packed
from stepscope.model.frames.steps import STEP_NAME
from stepscope.model.trace import Trace
from stepscope.render import prediction as rendered
from stepscope.render import simulated_trace
from stepscope.replay.simulated_lanes import Blocks, step_lanes
from stepscope.replay.simulation import Simulation, simulate
from stepscope.replay.what_if import MOST_FACTOR, Prediction, WhatIf, changes_of, parse_scale

MOST_SCALES = 50
MOST_NAMES = 4_000
MOST_WORKERS = 1_000
Factor = Annotated[float, msgspec.Meta(ge=0, le=MOST_FACTOR)]


class WhatIfQuery(Query, frozen=True, kw_only=True):
    """Differences between the recorded program and the simulated one."""

    host: Factor = 1.0
    """Factor of all of the host's time."""
    device: Factor = 1.0
    """Factor of all device events."""
    scale: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_SCALES)] = ()
    """`kernels:PATTERN=FACTOR` or `operators:PATTERN=FACTOR`; can be repeated."""
    no_waits: bool = False
    """Whether no call waits for the device."""
    workers: Annotated[int, msgspec.Meta(ge=1, le=MOST_WORKERS)] | None = None
    """Worker processes that load batches; absent: as recorded."""
    cores: Annotated[int, msgspec.Meta(ge=1, le=MOST_WORKERS)] | None = None
    """Cores for the training loop and its workers; absent: as recorded."""
    fix: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_SCALES)] = ()
    """Rule whose findings are fixed; can be repeated."""


class WhatIfTimelineQuery(WhatIfQuery, frozen=True, kw_only=True):
    """The simulated step's timeline."""

    step: int | None = None
    """Number of a step; absent: a step of typical length."""
    pixels: Annotated[int, msgspec.Meta(ge=50, le=5_000)] = 1_000
    """Width of the picture; events shorter than a pixel are merged."""


class WhatIfPart(msgspec.Struct, frozen=True):
    """Time of one kind on the path that determines the end."""

    name: str
    recorded_ns: int
    simulated_ns: int


class WhatIfStep(Response, frozen=True, kw_only=True):
    """A simulated step and the recorded one; without steps, the times are of the whole trace."""

    headline: str
    """The result in one sentence."""
    limit: str
    """What takes most of the path to the simulated end; empty for an empty trace."""
    fidelity: str
    """How well the replay describes this trace."""
    step_count: int
    recorded_ns: int
    simulated_ns: int
    slowest_ns: int
    """The simulated time where the fixes save least; the same without fixes."""
    replay_error: float
    """Error of a replay with typical delays, as a fraction of the recorded time."""
    parts: tuple[WhatIfPart, ...]
    """They sum to the step."""
    matches: tuple[int, ...]
    """Number of events that each scale matches."""
    assumptions: tuple[str, ...]
    """What the prediction assumes, in sentences."""


class WhatIfFix(msgspec.Struct, frozen=True):
    """The fix of one rule's findings."""

    rule: str
    title: str
    is_applied: bool
    low_ns: int
    """The least time per step that it saves on top of the changes; if it is one of them, the least
    time that they save less without it."""
    high_ns: int
    """The most."""


class WhatIfFixes(Response, frozen=True, kw_only=True):
    """The fixes of a trace's findings that save time."""

    fixes: tuple[WhatIfFix, ...]


class ScalableNames(msgspec.Struct, frozen=True):
    """Names of events, longest total time first; the columns are parallel."""

    names: tuple[str, ...]
    """As the profiler wrote them, which is what patterns match."""
    times_ns: tuple[int, ...]
    """Sum of the events' durations."""
    counts: tuple[int, ...]
    """Number of events."""
    all_count: int
    """Number of all names."""


class WhatIfBlocks(msgspec.Struct, frozen=True):
    """Events of a lane by start, the short ones merged; the columns are parallel."""

    start_ns: tuple[int, ...]
    """From the step's start; below 0 for an event that began before."""
    end_ns: tuple[int, ...]
    names: tuple[int, ...]
    """Index of the first event's name in the lane's names."""
    categories: tuple[int, ...]
    """Index of the first event's category in the timeline's categories."""
    counts: tuple[int, ...]
    """Number of events."""
    changes_ns: tuple[int, ...]
    """Simulated minus recorded time of the events."""


class WhatIfLane(msgspec.Struct, frozen=True):
    """A row of events, as recorded and as simulated."""

    label: str
    names: tuple[str, ...]
    recorded: WhatIfBlocks
    simulated: WhatIfBlocks


class WhatIfTimeline(Response, frozen=True, kw_only=True):
    """One step as recorded and as simulated: the training loop, and the busiest streams."""

    step: int | None
    """The step's number; null in a trace without steps, of which the whole is shown."""
    steps: tuple[int, ...]
    """Numbers of all complete steps."""
    start_ns: int
    """Recorded start, in ns from the trace's first event."""
    recorded_ns: int
    """Length of the step on the host."""
    simulated_ns: int
    categories: tuple[str, ...]
    """Ids of the categories."""
    lanes: tuple[WhatIfLane, ...]


class WhatIfNames(Response, frozen=True, kw_only=True):
    """Contents of a trace that a simulation can change."""

    kernels: ScalableNames
    """Device events: kernels, copies and memory sets."""
    operators: ScalableNames
    """Operators and annotations on the host, without those of steps."""
    wait_count: int
    """Number of calls that wait for the device."""
    batch_count: int
    """Number of batches that were fetched from a DataLoader."""


def what_if(trace: Trace, settings: AdviceSettings, query: WhatIfQuery) -> WhatIfStep:
    """Return the step that a simulation predicts after changes.

    Raises:
        MissingDataError: the model does not describe this trace.
        UsageError: a scale has another form, a factor above 100, or matches no event; or a rule has
            no finding that saves time.
    """
    return _message(predict_fixes(trace, query.fix, _differences(query), settings=settings))


def fixes(trace: Trace, settings: AdviceSettings, query: WhatIfQuery) -> WhatIfFixes:
    """Return the fixes of a trace's findings, with what each saves on top of the changes.

    Raises:
        MissingDataError: the model does not describe this trace.
        UsageError: a scale has another form, a factor above 100, or matches no event; or a rule has
            no finding that saves time.
    """
    savings = fix_savings(trace, query.fix, changes_of(trace, _differences(query)), settings)
    steps = max(1, window(trace).step_count)
    return WhatIfFixes(
        fixes=tuple(
            WhatIfFix(
                rule=saving.rule.id,
                title=saving.rule.title,
                is_applied=saving.is_applied,
                low_ns=round(saving.low_ns / steps),
                high_ns=round(saving.high_ns / steps),
            )
            for saving in savings
        )
    )


def _differences(query: WhatIfQuery) -> WhatIf:
    return WhatIf(
        host=query.host,
        device=query.device,
        scales=tuple(map(parse_scale, query.scale)),
        is_unblocked=query.no_waits,
        workers=query.workers,
        cores=query.cores,
    )


def _message(prediction: Prediction) -> WhatIfStep:
    simulated_ns, slowest_ns = prediction.simulated_ns, prediction.slowest_ns
    return WhatIfStep(
        headline=rendered.headline(prediction),
        limit=rendered.limit(prediction),
        fidelity=rendered.fidelity(prediction),
        step_count=prediction.step_count,
        recorded_ns=prediction.recorded_ns,
        simulated_ns=simulated_ns,
        slowest_ns=simulated_ns if slowest_ns is None else slowest_ns,
        replay_error=prediction.replay_error,
        parts=tuple(
            WhatIfPart(part.name, part.recorded_ns, part.simulated_ns) for part in prediction.limits
        ),
        matches=prediction.matches,
        assumptions=prediction.assumptions,
    )


def timeline(trace: Trace, settings: AdviceSettings, query: WhatIfTimelineQuery) -> WhatIfTimeline:
    """Return the recorded and the simulated events of one step.

    Raises:
        MissingDataError: the model does not describe this trace.
        UnknownNameError: the trace has no such step.
        UsageError: a scale has another form, a factor above 100, or matches no event; or a rule has
            no finding that saves time.
    """
    simulation = _simulation(trace, settings, query)
    content = step_lanes(trace, simulation, step=query.step, pixels=query.pixels)
    return WhatIfTimeline(
        step=content.step,
        steps=content.steps,
        start_ns=content.start_ns,
        recorded_ns=content.recorded_ns,
        simulated_ns=content.simulated_ns,
        categories=tuple(CATEGORIES),
        lanes=tuple(
            WhatIfLane(lane.label, lane.names, _columns(lane.recorded), _columns(lane.simulated))
            for lane in content.lanes
        ),
    )


def _simulation(trace: Trace, settings: AdviceSettings, query: WhatIfQuery) -> Simulation:
    fix = fix_changes(trace, query.fix, settings)
    return simulate(trace, [*fix.most, *changes_of(trace, _differences(query))])


def _columns(blocks: Blocks) -> WhatIfBlocks:
    return WhatIfBlocks(*(tuple(column.tolist()) for column in blocks))


def file(trace: Trace, settings: AdviceSettings, query: WhatIfQuery) -> Binary:
    """Return recorded and simulated events as a gzipped Chrome trace.

    Raises:
        MissingDataError: the model does not describe this trace.
        UsageError: a scale has another form, a factor above 100, or matches no event; or a rule has
            no finding that saves time.
    """
    simulation = _simulation(trace, settings, query)
    body = packed(lambda sink: simulated_trace.write_events(trace, simulation, sink))
    name = f"{trace.worker}_what-if.{trace.span}.pt.trace.json.gz"
    return Binary(body=body, file_name=name)


def names(trace: Trace, _: Query) -> WhatIfNames:
    """Return the names of the events that scales can match, with their total times."""
    loading = data_loading(trace)
    return WhatIfNames(
        kernels=_scalable(trace.device_events),
        operators=_scalable(trace.host_calls),
        wait_count=len(synchronizations(trace).calls),
        batch_count=loading.single_process_count + loading.multi_process_count,
    )


def _scalable(events: pd.DataFrame) -> ScalableNames:
    categories = events["name"].cat.categories
    codes = events["name"].cat.codes.to_numpy()
    duration_ns = (events["end_ns"] - events["start_ns"]).to_numpy()
    is_named = codes >= 0
    count = np.bincount(codes[is_named], minlength=len(categories))
    total = np.bincount(codes[is_named], duration_ns[is_named], minlength=len(categories))
    count[[bool(STEP_NAME.match(str(name))) for name in categories]] = 0
    longest = np.argsort(-total, kind="stable")
    longest = longest[count[longest] > 0]
    shown = longest[:MOST_NAMES]
    return ScalableNames(
        names=tuple(str(categories[code]) for code in shown),
        times_ns=tuple(int(time) for time in total[shown]),
        counts=tuple(int(number) for number in count[shown]),
        all_count=len(longest),
    )


ENDPOINTS = (
    trace_endpoint("what-if", what_if),
    trace_endpoint("what-if/names", names),
    trace_endpoint("what-if/fixes", fixes),
    trace_endpoint("what-if/timeline", timeline),
    trace_endpoint("what-if/file", file, response=CHROME_TRACE),
)
