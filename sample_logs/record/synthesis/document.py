"""A recording as a Chrome trace document, in the current format or in that of 2021."""

from collections.abc import Mapping, Sequence
from typing import Any

from synthesis import legacy, modern
from synthesis.machines import MACHINES, Machine
from synthesis.schedule import Action, Schedule, read
from synthesis.simulation import simulate

FLAGS = {"memory": "profile_memory", "shapes": "record_shapes", "stacks": "with_stack"}


def synthesise(data: Schedule | Mapping[str, Any] | Sequence[Action]) -> dict[str, Any]:
    """Return the trace of a schedule, as `json.load` would return it."""
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
    """Return the mark of a synthetic trace, which was not recorded on a GPU."""
    return {
        "synthetic": True,
        "scenario": schedule.scenario,
        "schedule": schedule.about,
        "machine": schedule.machine,
        "seed": schedule.seed,
    }


def _flags(schedule: Schedule, machine: Machine) -> dict[str, int]:
    if machine.is_2021:  # that format does not hold the flags
        return {}
    return {FLAGS[name]: 1 for name in sorted(schedule.record)}
