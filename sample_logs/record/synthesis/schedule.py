"""A schedule: its settings and its actions, checked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

Action = Mapping[str, Any]

BODY = frozenset({"body"})
PLACEMENT = frozenset({"stream", "launch_us", "us"})
# Kind of action -> its options. The kind is the action's first key.
OPTIONS: Mapping[str, frozenset[str]] = {
    "steps": BODY | {"gap_us"},
    "repeat": BODY,
    "thread": BODY,
    "annotation": BODY | {"us", "after_us"},
    "python": BODY | {"us", "after_us"},
    "op": BODY | {"us", "after_us", "dims", "types", "concrete", "seq"},
    "dataloader": BODY | {"us"},
    "host": frozenset(),
    "kernel": PLACEMENT
    | {"grid", "block", "registers", "shared", "by", "blocks_per_sm", "occupancy", "blocking"},
    "graph": frozenset({"us", "stream"}),
    "copy": PLACEMENT | {"bytes", "memory", "blocking"},
    "memset": PLACEMENT,
    "sync": frozenset({"us", "stream", "event"}),
    "event": frozenset({"us", "stream"}),
    "wait": frozenset({"us", "stream"}),
    "call": frozenset({"us"}),
    "alloc": frozenset({"as", "on"}),
    "free": frozenset(),
    "malloc": frozenset({"us"}),
    "release": frozenset({"us"}),
    "item": frozenset({"us", "stream"}),
    "to_cpu": frozenset({"us", "dims", "type", "stream"}),
    "to_cuda": frozenset({"us", "dims", "type", "stream", "pinned", "non_blocking"}),
}
RECORDABLE = ("shapes", "memory", "stacks")


class ScheduleError(ValueError):
    """A schedule has an unknown setting, action or option."""


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Actions of the host, and the settings of the trace."""

    actions: Sequence[Action]
    machine: str = "h100"
    record: Sequence[str] = ()
    start_us: float = 0
    latency_us: float = 3
    launch_us: float = 5
    gap_us: float = 0
    around_us: float = 0
    queue_depth: int = 1024
    jitter: float = 0
    seed: int = 0
    first_step: int = 1
    profiler_sync: bool = True
    reserved_bytes: int = 0
    scenario: str = ""
    about: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def read(data: Schedule | Mapping[str, Any] | Sequence[Action]) -> Schedule:
    """Return the schedule that plain data describes.

    Raises:
        ScheduleError: it has an error; the message names its position.
    """
    if isinstance(data, Schedule):
        schedule = data
    elif isinstance(data, Mapping):
        names = [field.name for field in fields(Schedule)]
        _insist(data.keys() <= set(names), f"unknown setting {data.keys() - set(names)}: {names}")
        _insist("actions" in data, "a schedule needs `actions`")
        schedule = Schedule(**data)
    else:
        schedule = Schedule(actions=data)
    unknown = set(schedule.record) - set(RECORDABLE)
    _insist(not unknown, f"cannot record {sorted(unknown)}; recordable: {', '.join(RECORDABLE)}")
    _check(schedule.actions, "actions")
    return schedule


def kind_of(action: Action) -> str:
    """Return the kind of an action: its first key."""
    return next(iter(action))


def _check(actions: Sequence[Action], path: str) -> None:
    for number, action in enumerate(actions):
        where = f"{path}[{number}]"
        _insist(action, f"{where}: {action!r} is no action")
        kind = kind_of(action)
        _insist(kind in OPTIONS, f"{where}: {kind!r} is no action; known: {', '.join(OPTIONS)}")
        wrong = sorted(set(action) - OPTIONS[kind] - {kind})
        options = ", ".join(sorted(OPTIONS[kind])) or "none"
        _insist(not wrong, f"{where}: {kind!r} has no option {wrong}; it has: {options}")
        _check(action.get("body", ()), f"{where}.body")
        if kind == "graph":
            _check(action["graph"], f"{where}.graph")


def _insist(holds: object, message: str) -> None:
    if not holds:
        raise ScheduleError(message)
