"""A recording as a Chrome trace document, in today's format or in that of 2021."""

from collections.abc import Mapping, Sequence
from typing import Any

from synthesis import legacy, modern
from synthesis.machines import MACHINES, Machine
from synthesis.schedule import Action, Schedule, read
from synthesis.simulation import simulate

FLAGS = {"memory": "profile_memory", "shapes": "record_shapes", "stacks": "with_stack"}


def synthesise(data: Schedule | Mapping[str, Any] | Sequence[Action]) -> dict[str, Any]:
    """Return the trace that a schedule would have left, as `json.load` would give it."""
    schedule = read(data)
    recording = simulate(schedule)
    machine = MACHINES[schedule.machine]
    form = legacy if machine.is_2021 else modern
    return {
        "schemaVersion": 1,
        "deviceProperties": [dict(machine.properties)] if machine.properties else [],
        **_flags(schedule, machine),
        **machine.metadata,
        **schedule.metadata,
        "stepscope": origin(schedule),
        **form.METADATA,
        "traceEvents": form.trace_events(recording, machine),
    }


def origin(schedule: Schedule) -> dict[str, Any]:
    """Return the mark that tells a reader that nobody's GPU made this trace."""
    return {
        "synthetic": True,
        "scenario": schedule.scenario,
        "schedule": schedule.about,
        "machine": schedule.machine,
        "seed": schedule.seed,
    }


def _flags(schedule: Schedule, machine: Machine) -> dict[str, int]:
    if machine.is_2021:  # that format did not say what it recorded
        return {}
    return {FLAGS[each]: 1 for each in sorted(schedule.record)}
