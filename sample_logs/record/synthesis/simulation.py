"""Simulation of a schedule: the host performs the actions in order, the device follows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from synthesis.details import kernel_details, launch_details, operator_details
from synthesis.device import Device
from synthesis.expansion import EXPANSIONS
from synthesis.host import MAIN_THREAD, Host
from synthesis.machines import CALLBACK_IDS, MACHINES, copy_name
from synthesis.memory import Allocator
from synthesis.mirrors import Mirrors
from synthesis.recording import DEVICE_KINDS, Record, Recording
from synthesis.schedule import Action, Schedule, ScheduleError, kind_of

# From the last step's end to the profiler's wait for the device, as in real traces.
PROFILER_STOP_US = 47.0
SYNC_US = 2.0
SEQUENCES_PER_STEP = 1000


def simulate(schedule: Schedule) -> Recording:
    """Return the recording of a schedule by a profiler."""
    simulation = Simulation(schedule)
    simulation.play(schedule.actions)
    return simulation.finish()


def _order(record: Record) -> tuple[int, int]:
    """Return a sort key by start: outer host scopes first, device work as queued."""
    return record.start_ns, 0 if record.kind in DEVICE_KINDS else -record.dur_ns


@dataclass(frozen=True, kw_only=True)
class Work:
    """One work item of the device."""

    kind: str
    name: str
    us: float
    details: Mapping[str, Any]


class Simulation:
    """The simulated host and device; `play` advances both."""

    def __init__(self, schedule: Schedule) -> None:
        if schedule.machine not in MACHINES:
            names = ", ".join(MACHINES)
            msg = f"unknown machine {schedule.machine!r}; known: {names}"
            raise ScheduleError(msg)
        self._schedule = schedule
        self._machine = MACHINES[schedule.machine]
        self._host = Host(schedule)
        self._device = Device(
            gap_ns=round(schedule.gap_us * 1000), queue_depth=schedule.queue_depth
        )
        self._allocator = Allocator(self._machine.memory_type, schedule.reserved_bytes)
        self._mirrors = Mirrors()
        self._device_records: list[Record] = []
        self._events_ns: dict[str, int] = {}
        self._step = schedule.first_step
        self._correlations = count(1)

    def play(self, actions: Sequence[Action]) -> None:
        """Perform the actions in order."""
        for action in actions:
            kind = kind_of(action)
            if kind in EXPANSIONS:
                self.play(EXPANSIONS[kind](action, self._machine))
            else:
                DOERS[kind](self, action)

    def finish(self) -> Recording:
        """Stop the profiler, which waits for the device, and return the recording."""
        host, device = self._host, self._device
        if self._machine.has_device and self._schedule.profiler_sync:
            host.now_ns += round(PROFILER_STOP_US * 1000)
            self._call(self._name("sync_device"), SYNC_US, wait_until_ns=device.drained_ns())
        records = [*host.records, *self._device_records]
        records.extend(self._mirrors.records(host.records))
        return Recording(
            records=tuple(sorted(records, key=_order)),
            threads={thread.number: name for name, thread in host.threads.items()},
            streams=tuple(device.streams),
            start_ns=round(self._schedule.start_us * 1000),
            end_ns=max(host.now_ns, device.drained_ns()),
        )

    # Structure

    def steps(self, action: Action) -> None:
        """Perform a body in a number of profiled steps."""
        for _ in range(action["steps"]):
            with self._host.scope("annotation", f"ProfilerStep#{self._step}", {}):
                self.play(action.get("body", ()))
            self._step += 1
            self._host.pass_us(action.get("gap_us", 0))

    def repeat(self, action: Action) -> None:
        """Perform a body a number of times."""
        for _ in range(action["repeat"]):
            self.play(action.get("body", ()))

    def thread(self, action: Action) -> None:
        """Perform a body on another thread."""
        with self._host.on_thread(action["thread"]):
            self.play(action.get("body", ()))

    def annotation(self, action: Action) -> None:
        """Perform a body inside a `record_function`."""
        with self._host.scope("annotation", action["annotation"], {}):
            self._inside(action, default_us=0)

    def dataloader(self, action: Action) -> None:
        """Take the next batch."""
        how = "MultiProcessing" if action["dataloader"] else "SingleProcess"
        name = f"enumerate(DataLoader)#_{how}DataLoaderIter.__next__"
        with self._host.scope("annotation", name, {}):
            self._inside(action, default_us=80)

    def op(self, action: Action) -> None:
        """Call an operator."""
        details = operator_details(action, self._schedule.record)
        thread = self._host.thread
        if "seq" in action:
            details["Sequence number"] = self._step * SEQUENCES_PER_STEP + int(action["seq"])
            is_node = not action["op"].startswith("aten::")
            if is_node and thread is not self._host.threads[MAIN_THREAD]:
                details["Fwd thread id"] = 1
        if self._machine.is_2021 and "stacks" in self._schedule.record:
            details["Call stack"] = ";".join(name for _, name in reversed(thread.frames))
        with self._host.scope("operator", action["op"], details):
            self._inside(action, default_us=5)

    def python(self, action: Action) -> None:
        """Enter a Python frame."""
        # The old format has no frames: operators hold theirs as text.
        is_recorded = "stacks" in self._schedule.record and not self._machine.is_2021
        with self._host.frame(action["python"], is_recorded=is_recorded):
            self._inside(action, default_us=0)

    def host(self, action: Action) -> None:
        """Spend time on the host without an event."""
        self._host.pass_us(action["host"])

    def _inside(self, action: Action, *, default_us: float) -> None:
        self._host.pass_us(action.get("us", default_us))
        self.play(action.get("body", ()))
        self._host.pass_us(action.get("after_us", 0))

    # The device

    def kernel(self, action: Action) -> None:
        """Launch a kernel."""
        call = action.get("by", self._name("kernel"))
        details = kernel_details(action, self._machine)
        work = Work(kind="kernel", name=action["kernel"], us=action.get("us", 10), details=details)
        if call == "none":  # launched before the recording began
            self._do(work, self._stream(action), self._host.now_ns, None)
        else:
            noted = launch_details(work.name, details, self._machine)
            is_blocking = action.get("blocking", False)
            self._submit(call, action, [work], noted=noted, is_blocking=is_blocking)

    def graph(self, action: Action) -> None:
        """Launch a captured graph."""
        works = [
            Work(
                kind="kernel",
                name=kernel["kernel"],
                us=kernel.get("us", 10),
                details=kernel_details(kernel, self._machine),
            )
            for kernel in action["graph"]
        ]
        placed = {**action, "launch_us": action.get("us", 10)}
        self._submit(self._name("graph"), placed, works)

    def copy(self, action: Action) -> None:
        """Queue a copy."""
        direction, memory = action["copy"], action.get("memory", "pinned")
        is_blocking = action.get("blocking", memory == "pageable" and direction != "DtoD")
        rates = self._machine.bytes_per_us
        rate = rates.get("DtoD" if direction == "DtoD" else memory, 1)
        us = action.get("us", max(1.0, action["bytes"] / rate))
        work = Work(
            kind="copy",
            name=copy_name(self._machine, direction, memory),
            us=us,
            details={} if self._machine.is_nvidia else {"kind": direction},
        )
        call = self._name("blocking_copy" if is_blocking else "copy")
        self._submit(call, action, [work], is_blocking=is_blocking)

    def memset(self, action: Action) -> None:
        """Queue a memset."""
        us = action.get("us", 1.0)
        work = Work(kind="memset", name="Memset (Device)", us=us, details={})
        self._submit(self._name("memset"), {**action, "bytes": action["memset"]}, [work])

    def _submit(
        self,
        call: str,
        action: Action,
        works: Sequence[Work],
        *,
        is_blocking: bool = False,
        noted: Mapping[str, Any] | None = None,
    ) -> None:
        """Call the runtime, which queues the works; a blocking call returns when they are done."""
        stream, correlation = self._stream(action), next(self._correlations)
        start_ns = self._host.now_ns
        admitted_ns = self._device.admitted_ns(stream, start_ns)
        launch_us = action.get("launch_us", self._schedule.launch_us)
        self._host.now_ns = admitted_ns + self._host.varied_ns(launch_us)
        ready_ns = self._host.now_ns + round(self._schedule.latency_us * 1000)
        for work in works:
            self._do(work, stream, ready_ns, correlation, size_bytes=action.get("bytes"))
        if is_blocking:
            self._host.now_ns = max(self._host.now_ns, self._device.drained_ns(stream))
        self._record_call(call, start_ns, correlation, noted or {})

    def _do(
        self,
        work: Work,
        stream: int,
        ready_ns: int,
        correlation: int | None,
        size_bytes: int | None = None,
    ) -> None:
        """Run work on the device once it is ready and its stream is free."""
        dur_ns = self._host.varied_ns(work.us)
        start_ns = self._device.run(stream, ready_ns, dur_ns)
        details = dict(work.details)
        if size_bytes is not None:
            details["bytes"] = size_bytes
            details["memory bandwidth (GB/s)"] = size_bytes / max(1, dur_ns)
        record = Record(
            kind=work.kind,
            name=work.name,
            start_ns=start_ns,
            dur_ns=dur_ns,
            lane=stream,
            external_id=self._host.external_id if correlation else None,
            correlation=correlation,
            details=details,
        )
        self._device_records.append(record)
        if correlation:
            self._mirrors.note(record, self._host.thread.annotation_ids)

    # Waiting, and other calls

    def sync(self, action: Action) -> None:
        """Wait for a stream, the device or an event."""
        what, us = action["sync"], action.get("us", SYNC_US)
        if what == "event":
            until_ns = self._recorded(action["event"])
        else:
            stream = self._stream(action) if what == "stream" else None
            until_ns = self._device.drained_ns(stream)
        self._call(self._name(f"sync_{what}"), us, wait_until_ns=until_ns)

    def event(self, action: Action) -> None:
        """Record an event in a stream."""
        self._call(self._name("event"), action.get("us", 1))
        drained_ns = self._device.drained_ns(self._stream(action))
        self._events_ns[action["event"]] = max(self._host.now_ns, drained_ns)

    def wait(self, action: Action) -> None:
        """Let a stream wait for an event."""
        self._call(self._name("wait"), action.get("us", 1))
        self._device.block(self._stream(action), self._recorded(action["wait"]))

    def call(self, action: Action) -> None:
        """Call another function of the runtime."""
        self._call(action["call"], action.get("us", 1))

    def malloc(self, action: Action) -> None:
        """Reserve memory from the driver."""
        self._call(self._name("malloc"), action.get("us", 100))
        self._allocator.reserve(action["malloc"])

    def release(self, action: Action) -> None:
        """Release memory to the driver, which waits for the device."""
        until_ns = self._device.drained_ns()
        self._call(self._name("release"), action.get("us", 100), wait_until_ns=until_ns)
        self._allocator.reserve(-action["release"])

    def alloc(self, action: Action) -> None:
        """Allocate from the caching allocator."""
        name, device = action["as"], action.get("on", "device")
        self._note_memory(self._allocator.allocate(name, action["alloc"], device))

    def free(self, action: Action) -> None:
        """Free memory of the caching allocator."""
        self._note_memory(self._allocator.free(action["free"]))

    def _note_memory(self, details: Mapping[str, Any]) -> None:
        if "memory" in self._schedule.record:
            self._host.record(("memory", "[memory]"), self._host.now_ns, details=details)

    def _call(self, call: str, us: float, *, wait_until_ns: int = 0) -> None:
        start_ns = self._host.now_ns
        self._host.now_ns = max(start_ns, wait_until_ns) + self._host.varied_ns(us)
        self._record_call(call, start_ns, next(self._correlations), {})

    def _record_call(
        self, call: str, start_ns: int, correlation: int, noted: Mapping[str, Any]
    ) -> None:
        is_driver = call.startswith("cu") and not call.startswith("cuda")
        id_key = "cbid" if self._machine.is_nvidia else "cid"
        ids = {id_key: CALLBACK_IDS[call]} if call in CALLBACK_IDS else {}
        self._host.record(
            ("driver" if is_driver else "runtime", call),
            start_ns,
            external_id=self._host.external_id,
            correlation=correlation,
            details={**ids, **noted},
        )

    def _recorded(self, event: str) -> int:
        if event not in self._events_ns:
            msg = f"event {event!r} is waited for but never recorded"
            raise ScheduleError(msg)
        return self._events_ns[event]

    def _stream(self, action: Action) -> int:
        return int(action.get("stream", self._machine.default_stream))

    def _name(self, call: str) -> str:
        if not self._machine.has_device:
            msg = f"machine {self._machine.name!r} has no device for a {call}"
            raise ScheduleError(msg)
        if call not in self._machine.calls:
            msg = f"cannot {call!r}; known: {', '.join(self._machine.calls)}"
            raise ScheduleError(msg)
        return self._machine.calls[call]


DOERS: Mapping[str, Callable[[Simulation, Action], None]] = {
    "steps": Simulation.steps,
    "repeat": Simulation.repeat,
    "thread": Simulation.thread,
    "annotation": Simulation.annotation,
    "dataloader": Simulation.dataloader,
    "op": Simulation.op,
    "python": Simulation.python,
    "host": Simulation.host,
    "kernel": Simulation.kernel,
    "graph": Simulation.graph,
    "copy": Simulation.copy,
    "memset": Simulation.memset,
    "sync": Simulation.sync,
    "event": Simulation.event,
    "wait": Simulation.wait,
    "call": Simulation.call,
    "malloc": Simulation.malloc,
    "release": Simulation.release,
    "alloc": Simulation.alloc,
    "free": Simulation.free,
}
