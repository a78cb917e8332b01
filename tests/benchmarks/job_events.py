"""The events of a synthetic job's recordings: every piece at its place, with its own numbers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.job_plan import DESCRIPTIONS, Job
from benchmarks.job_segments import COMM_STREAM, Collective, Event, Turn
from benchmarks.job_times import COMM, DEVICE, HOST, Clocks
from synthesis.modern import PROCESS_ID

Placed = tuple[int, Event]
"""The number of the clock by which an event goes, and the event."""
SEQUENCES_A_LAYER, SEQUENCES_A_STEP = 10, 1000
FIRST_STEP = 10
STEP_ID = 10_000_000
"""External ids of steps begin behind all others."""
ORDER = {"cpu_op": 0, "user_annotation": 0, "python_function": 1}
"""The profiler writes what torch saw before what the driver saw."""
COUNTED_AS = {
    **{key: key for key in ("correlation", "External id", "Python id")},
    "Python parent id": "Python id",
}
"""Arguments that no two events share, by what they count."""


def events(job: Job, turns: Sequence[Turn]) -> list[Placed]:
    """Return all events of a recording; `<<...>>` stands for what differs from rank to rank."""
    found: list[tuple[int, Placed]] = []
    numbers = _Numbers()
    for step in range(job.step_count):
        for at, turn in enumerate(turns):
            first_clock = Clocks.of_turn(step, len(turns), at, HOST)
            found += _placed(turn, step, first_clock, numbers)
    step_clock = 3 * job.step_count * len(turns)
    found += [(0, (step_clock + step, _step(step))) for step in range(job.step_count)]
    found.sort(key=lambda each: each[0])
    frame_clock = step_clock + job.step_count
    return [*(each for _, each in found), *((frame_clock, each) for each in _frame())]


@dataclass
class _Numbers:
    """Which numbers the pieces before have taken."""

    used: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    sequence: Counter[str] = field(default_factory=Counter)
    """Collectives so far, by kind of group."""

    def of(self, counted: str, number: int) -> int:
        """Return a piece's number as one of the whole recording."""
        self.most[counted] = max(self.most[counted], number)
        return number + self.used[counted]

    def begin(self, turn: Turn) -> None:
        """Go on to the next piece."""
        self.used += self.most
        self.most.clear()
        if (meeting := turn.segment.collective) is not None:
            self.sequence[meeting.group] += 1


def _placed(
    turn: Turn, step: int, first_clock: int, numbers: _Numbers
) -> Iterator[tuple[int, Placed]]:
    """Yield a piece's events at its place, each behind what sorts it in the file."""
    numbers.begin(turn)
    order = 0
    for event in turn.segment.events:
        is_arrow = event["ph"] in "sf"
        order = order if is_arrow else ORDER.get(event["cat"], 2)  # it stands behind its event
        what = HOST if event["pid"] else COMM if event["tid"] == COMM_STREAM else DEVICE
        own = _on_lane(event, what)
        if is_arrow:
            own["id"] = numbers.of("correlation", event["id"])
        else:
            own |= _told(event, turn, step, numbers)
        yield order, (first_clock + what, own)


def _on_lane(event: Event, what: int) -> Event:
    """Return an event where and when it is on any rank; a collective lasts from 0 to 1."""
    if what == HOST:
        thread = event["tid"] - PROCESS_ID
        return {**event, "pid": "<<process>>", "tid": f"<<thread {thread}>>"}
    times = {"ts": 0, "dur": 1} if what == COMM else {}
    return {**event, "pid": "<<device>>", **{key: times[key] for key in times if key in event}}


def _told(event: Event, turn: Turn, step: int, numbers: _Numbers) -> Event:
    """Return an event's name and arguments at a place."""
    arguments = {key: value for key, value in event["args"].items() if key != "Ev Idx"}
    for key, counted in COUNTED_AS.items():
        if arguments.get(key):
            arguments[key] = numbers.of(counted, arguments[key])
    if "Sequence number" in arguments:
        arguments["Sequence number"] += SEQUENCES_A_LAYER * turn.layer + SEQUENCES_A_STEP * step
    if "device" in arguments:
        arguments["device"] = "<<device>>"
    name, meeting = event["name"], turn.segment.collective
    if name.startswith("nn.Module: "):
        name = f"nn.Module: Block_{turn.layer}"
        arguments["Python module id"] = turn.layer
    if meeting is not None and name.startswith(("nccl", "record_param_comms")):
        arguments |= _message(meeting, numbers.sequence[meeting.group])
    return {"name": name, "args": arguments}


def _message(meeting: Collective, sequence: int) -> Mapping[str, object]:
    """Return what torch notes of a collective."""
    return {
        "Collective name": meeting.name,
        "In msg nelems": meeting.element_count,
        "Out msg nelems": meeting.element_count,
        "Group size": f"<<size {meeting.group}>>",
        "dtype": "BFloat16",
        "Process Group Name": f"<<name {meeting.group}>>",
        "Process Group Description": DESCRIPTIONS[meeting.group],
        "Process Group Ranks": f"<<ranks {meeting.group}>>",
        "Rank": f"<<rank {meeting.group}>>",
        "Seq": sequence,
        "Is asynchronized op": not meeting.is_waited_for,
    }


def _step(step: int) -> Event:
    place = {"pid": "<<process>>", "tid": "<<thread 0>>", "ts": 0, "dur": 1}
    name = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{FIRST_STEP + step}"}
    return {**name, **place, "args": {"External id": STEP_ID + step}}


def _frame() -> Iterator[Event]:
    """Yield the names of processes and threads, and when the recording began and ended."""
    for pid, label in (("<<process>>", "CPU"), ("<<device>>", "<<device label>>")):
        at = {"ts": 0, "pid": pid, "tid": 0}
        yield {"ph": "M", "name": "process_name", **at, "args": {"name": "python"}}
        yield {"ph": "M", "name": "process_labels", **at, "args": {"labels": label}}
    for thread in range(2):
        at = {"ts": 0, "pid": "<<process>>", "tid": f"<<thread {thread}>>"}
        yield {"ph": "M", "name": "thread_name", **at, "args": {"name": f"<<name of {thread}>>"}}
    for stream in (7, COMM_STREAM):
        at = {"ts": 0, "pid": "<<device>>", "tid": stream}
        yield {"ph": "M", "name": "thread_name", **at, "args": {"name": f"stream {stream} "}}
    yield {
        "ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans",
        "tid": "PyTorch Profiler", "ts": 0, "dur": 1, "args": {"Op count": 0},
    }  # fmt: skip
    yield {
        "ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces",
        "tid": "Trace PyTorch Profiler", "ts": 0,
    }  # fmt: skip
    yield {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 1}
