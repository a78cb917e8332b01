"""The picture of each finding shows the event that it cites, and the time that it claims there."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest

import tracebuild
from loading import SAMPLE_LOGS, SHARED_TRACES, shared_trace_names, trace_at, trace_of
from stepscope.advice.advised_findings import advised_findings
from stepscope.advice.example_times import GAP_PART, MOST_TIMES, joined_times
from stepscope.advice.savings import ResolvedFinding
from stepscope.advice.settings import DEFAULT
from stepscope.analyses.timeline.excerpts import MARGIN, MOST_ROWS, MOST_ROWS_OF_EVENT, PIXELS
from stepscope.analyses.timeline.timeline import timeline
from stepscope.api.endpoints.timeline_excerpts import (
    ExcerptLane,
    ExcerptQuery,
    TimelineExcerpt,
    timeline_excerpt,
)
from stepscope.base.errors import UnknownNameError, UsageError
from stepscope.base.findings import ClaimedTime, EventReference
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules.shared.claimable_time import usable_times

MOST_LANES = 4
SAMPLES = sorted(SAMPLE_LOGS.rglob("*.pt.trace.json.gz"))
TRACES = [
    *SAMPLES,
    *(pytest.param(SHARED_TRACES / name, marks=pytest.mark.slow) for name in shared_trace_names()),
]


def run_of(path: object) -> str | None:
    return f"{path.parent.name}/{path.name}" if isinstance(path, Path) else None


def claimed(trace: Trace, finding: ResolvedFinding) -> Intervals:
    times = (usable_times(trace, claim) for claim in finding.claims)
    return intervals.merged(intervals.EMPTY, *times)


def examples(finding: ResolvedFinding) -> tuple[ClaimedTime, ...]:
    claim = finding.outcome.claim
    return claim.example_times if claim else ()


def written(start_ns: int, end_ns: int) -> str:
    return f"{max(0, start_ns)}-{end_ns}"


def picture(trace: Trace, finding: ResolvedFinding) -> TimelineExcerpt | None:
    """What the page requests of a finding: nothing without an event and without a claimed time."""
    times, events = examples(finding), finding.outcome.events
    if not events and not times:
        return None
    query = ExcerptQuery(
        event=events[0].event if events else None,
        event_time=written(events[0].start_ns, end_of(events[0])) if events else "",
        time=tuple(written(time.start_ns, time.end_ns) for time in times),
    )
    return timeline_excerpt(trace, query)


def end_of(event: EventReference) -> int:
    return event.start_ns + event.duration_ns


def drawn_rows(lane: ExcerptLane) -> range:
    return range(lane.first_row, lane.first_row + lane.row_count)


# Every finding of every trace


@pytest.mark.parametrize("path", TRACES, ids=run_of)
def test_each_picture_shows_the_event_and_the_claimed_time(path: Path) -> None:
    trace = trace_at(path)
    for finding in advised_findings(trace, DEFAULT).findings:
        shown = picture(trace, finding)
        if shown is None:
            assert not finding.outcome.events
            assert not len(claimed(trace, finding))
            continue
        check_event(trace, finding.outcome.events, shown)
        check_claimed_time(trace, finding, shown)
        check_lanes(shown)
        assert msgspec.json.encode(shown)


def check_event(trace: Trace, events: Sequence[EventReference], shown: TimelineExcerpt) -> None:
    if not events:
        assert shown.event is None
        return
    cited, event, lane = events[0], shown.event, shown.lanes[0]
    assert event is not None
    assert (event.start_ns, event.end_ns) == (max(0, cited.start_ns), end_of(cited))
    assert shown.start_ns <= event.start_ns <= event.end_ns <= shown.end_ns
    assert event.row in drawn_rows(lane)
    if lane.track is None:
        assert cited.event is None
        return
    tracks = timeline(trace)
    assert cited.event is not None
    index = int(tracks.slice_of_event[cited.event])
    row = int(tracks.slices.row_of(np.array([index]))[0])
    assert tracks.slices.row_track[row] == lane.track
    assert tracks.slices.row_number[row] == event.row
    at_event = [
        lane.names[name]
        for name, number, start_ns, end_ns in zip(
            lane.name, lane.rows, lane.start_ns, lane.end_ns, strict=True
        )
        if number == event.row and start_ns <= event.start_ns and end_ns >= event.end_ns
    ]
    assert at_event
    if event.end_ns - event.start_ns > (shown.end_ns - shown.start_ns) / PIXELS:
        assert at_event == [cited.name]


def check_claimed_time(trace: Trace, finding: ResolvedFinding, shown: TimelineExcerpt) -> None:
    times, events = examples(finding), finding.outcome.events
    whole = claimed(trace, finding)
    assert bool(times) == bool(len(whole))
    if not times:
        return
    assert len(times) <= MOST_TIMES
    for time in times:
        assert shown.start_ns <= time.start_ns < time.end_ns <= shown.end_ns
        inside = intervals.clip(whole, time.start_ns, time.end_ns)
        assert intervals.duration_ns(inside) == time.claimed_ns
    assert all(one.end_ns < other.start_ns for one, other in pairwise(times))
    lengths_ns = whole[:, 1] - whole[:, 0]
    if not events:
        assert [time.claimed_ns for time in times] == [lengths_ns.max()]
        return
    start_ns, end_ns = events[0].start_ns, end_of(events[0])
    at_event = whole[(whole[:, 1] > start_ns) & (whole[:, 0] < end_ns)]
    if len(at_event):
        longest_ns = int((at_event[:, 1] - at_event[:, 0]).max())
        assert max(time.claimed_ns for time in times) >= longest_ns
        assert all(time.end_ns > start_ns and time.start_ns < end_ns for time in times)
    else:
        [time] = times
        distance_ns = np.maximum(whole[:, 0] - end_ns, start_ns - whole[:, 1]).min()
        assert max(time.start_ns - end_ns, start_ns - time.end_ns) == distance_ns


def check_lanes(shown: TimelineExcerpt) -> None:
    assert 0 < len(shown.lanes) <= MOST_LANES
    tracks = [lane.track for lane in shown.lanes]
    assert len(set(tracks)) == len(tracks)
    for number, lane in enumerate(shown.lanes):
        is_of_event = number == 0 and shown.event is not None
        assert 1 <= lane.row_count <= (MOST_ROWS_OF_EVENT if is_of_event else MOST_ROWS)
        assert set(lane.rows) <= set(drawn_rows(lane))
        assert lane.label or lane.track is None
        assert len(lane.names) == len(lane.categories)
        assert lane.row_count >= 3 or not (lane.first_row or lane.rows_below)
        assert all(end > shown.start_ns for end in lane.end_ns)
        assert all(start < shown.end_ns for start in lane.start_ns)
        assert len(lane.start_ns) or lane.track is None


@pytest.mark.every
def test_there_are_pictures_of_every_kind() -> None:
    """The samples hold findings with events on and off tracks, without events, and without both."""
    kinds = set()
    for path in SAMPLES:
        trace = trace_at(path)
        for finding in advised_findings(trace, DEFAULT).findings:
            events = finding.outcome.events
            is_indexed = bool(events) and events[0].event is not None
            kinds.add((bool(events), is_indexed, bool(examples(finding))))
    assert kinds == {
        (True, True, True),
        (True, True, False),
        (True, False, True),
        (False, False, True),
        (False, False, False),
    }


# One excerpt

US = 1_000
DEPTH = 12
ROWS: tuple[tracebuild.Row, ...] = (
    *(["cpu_op", f"level {depth}", depth, 1000 - 2 * depth] for depth in range(DEPTH)),
    ["cuda_runtime", "cudaLaunchKernel", 100, 5, {"correlation": 1}],
    ["kernel", "gemm", 200, 30, {"correlation": 1, "stream": 7}],
    *(["cpu_op", "short", 2000 + 10 * number, 1] for number in range(2000)),
)


@pytest.fixture(scope="module")
def trace() -> Trace:
    return trace_of(ROWS)


def test_a_deep_nest_is_cut_around_the_event(trace: Trace) -> None:
    shown = timeline_excerpt(trace, ExcerptQuery(event=6))
    lane = shown.lanes[0]
    assert shown.event is not None
    assert (shown.event.row, lane.first_row, lane.row_count) == (6, 4, 5)
    assert lane.rows_below == DEPTH + 1 - 9  # with the launch inside
    assert {lane.names[name] for name in lane.name} == {f"level {row}" for row in range(4, 9)}


@pytest.mark.parametrize(("event", "first"), [(0, 0), (1, 0), (11, 8), (12, 8)])
def test_as_many_rows_are_shown_at_either_end(trace: Trace, event: int, first: int) -> None:
    lane = timeline_excerpt(trace, ExcerptQuery(event=event)).lanes[0]
    assert (lane.first_row, lane.row_count) == (first, 5)


def test_other_tracks_follow_from_the_innermost_enclosing_row(trace: Trace) -> None:
    shown = timeline_excerpt(trace, ExcerptQuery(event=13))
    assert [lane.label for lane in shown.lanes][:2] == ["GPU 0 Stream 7", "Main thread"]
    assert [lane.first_row for lane in shown.lanes][:2] == [0, DEPTH - MOST_ROWS]


def test_many_short_slices_are_merged_and_the_event_stays(trace: Trace) -> None:
    shown = timeline_excerpt(trace, ExcerptQuery(event=14, time=(written(0, 22_000 * US),)))
    lane = shown.lanes[0]
    assert len(lane.name) <= 2 * PIXELS * MOST_ROWS_OF_EVENT
    assert sum(lane.count) == 2000 + 5
    assert shown.event is not None
    assert (shown.event.start_ns, shown.event.end_ns) == (2000 * US, 2001 * US)


def test_the_range_has_a_margin_and_begins_with_the_trace(trace: Trace) -> None:
    shown = timeline_excerpt(trace, ExcerptQuery(time=("100000-200000", "900000-1100000")))
    assert (shown.start_ns, shown.end_ns) == (0, 1_100_000 + round(MARGIN * 1_000_000))
    assert shown.event is None


def test_an_event_on_no_track_has_a_row_of_its_own(trace: Trace) -> None:
    shown = timeline_excerpt(trace, ExcerptQuery(event_time="1000-2000"))
    assert shown.event is not None
    assert (shown.event.start_ns, shown.event.end_ns) == (1000, 2000)
    lane = shown.lanes[0]
    assert (lane.track, lane.label, lane.row_count, lane.name) == (None, "", 1, ())


@pytest.mark.parametrize("time", ["5", "5-", "a-b", "7-3", "1-2-3", "-5-3", "1-12345678901234567"])
def test_what_is_no_time_is_refused(trace: Trace, time: str) -> None:
    with pytest.raises(UsageError, match="a time is START-END"):
        timeline_excerpt(trace, ExcerptQuery(time=(time,)))


def test_something_to_show_is_required(trace: Trace) -> None:
    with pytest.raises(UsageError, match="is required"):
        timeline_excerpt(trace, ExcerptQuery())
    with pytest.raises(UnknownNameError, match="no event 99999"):
        timeline_excerpt(trace, ExcerptQuery(event=99_999))


def test_near_claimed_times_are_joined() -> None:
    times = np.array([[0, 1000], [1001, 2000], [5000, 6000]], dtype=np.int64)
    assert GAP_PART * 6000 > 1
    assert joined_times(times) == (ClaimedTime(0, 2000, 1999), ClaimedTime(5000, 6000, 1000))
