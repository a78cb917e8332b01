"""Events of a synthetic job's traces: every piece at its position, with its numbers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.job_plan import DESCRIPTIONS, Job
from benchmarks.job_segments import COMM_STREAM, Collective, Event, Turn
from benchmarks.job_times import COMM, DEVICE, HOST, Clocks
from synthesis.modern import PROCESS_ID

Placed = tuple[int, Event]
"""Number of an event's clock, and the event."""
SEQUENCES_A_LAYER, SEQUENCES_A_STEP = 10, 1000
FIRST_STEP = 10
STEP_ID = 10_000_000
"""First external id of a step, beyond all others."""
ORDER = {"cpu_op": 0, "user_annotation": 0, "python_function": 1}
"""The profiler writes the events of torch before those of the driver."""
COUNTED_AS = {
    **{key: key for key in ("correlation", "External id", "Python id")},
    "Python parent id": "Python id",
}
"""Arguments that are unique per event, by the counter that numbers them."""


def events(job: Job, turns: Sequence[Turn]) -> list[Placed]:
    """Return all events of a trace; `<<...>>` marks values that differ between ranks."""
    placed: list[tuple[int, Placed]] = []
    numbers = _Numbers()
    for step in range(job.step_count):
        for at, turn in enumerate(turns):
            first_clock = Clocks.of_turn(step, len(turns), at, HOST)
            placed += _placed(turn, step, first_clock, numbers)
    step_clock = 3 * job.step_count * len(turns)
    placed += [(0, (step_clock + step, _step(step))) for step in range(job.step_count)]
    placed.sort(key=lambda entry: entry[0])
    frame_clock = step_clock + job.step_count
    return [*(event for _, event in placed), *((frame_clock, event) for event in _frame())]


@dataclass
class _Numbers:
    """Numbers that the previous pieces use."""

    used: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    sequence: Counter[str] = field(default_factory=Counter)
    """Collectives so far, by kind of group."""

    def of(self, counted: str, number: int) -> int:
        """Return a piece's number as one of the whole trace."""
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
    """Yield a piece's events at its position, each with its sort key in the file."""
    numbers.begin(turn)
    order = 0
    for event in turn.segment.events:
        is_arrow = event["ph"] in "sf"
        order = order if is_arrow else ORDER.get(event["cat"], 2)  # it follows its event
        lane = HOST if event["pid"] else COMM if event["tid"] == COMM_STREAM else DEVICE
        positioned = _on_lane(event, lane)
        if is_arrow:
            positioned["id"] = numbers.of("correlation", event["id"])
        else:
            positioned |= _name_and_arguments(event, turn, step, numbers)
        yield order, (first_clock + lane, positioned)


def _on_lane(event: Event, lane: int) -> Event:
    """Return an event with its lane and times for any rank; a collective lasts from 0 to 1."""
    if lane == HOST:
        thread = event["tid"] - PROCESS_ID
        return {**event, "pid": "<<process>>", "tid": f"<<thread {thread}>>"}
    times = {"ts": 0, "dur": 1} if lane == COMM else {}
    return {**event, "pid": "<<device>>", **{key: times[key] for key in times if key in event}}


def _name_and_arguments(event: Event, turn: Turn, step: int, numbers: _Numbers) -> Event:
    """Return an event's name and arguments at a position."""
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
    """Return the arguments that torch records for a collective."""
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
    position = {"pid": "<<process>>", "tid": "<<thread 0>>", "ts": 0, "dur": 1}
    name = {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{FIRST_STEP + step}"}
    return {**name, **position, "args": {"External id": STEP_ID + step}}


def _frame() -> Iterator[Event]:
    """Yield the names of processes and threads, and the begin and end of the recording."""
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
