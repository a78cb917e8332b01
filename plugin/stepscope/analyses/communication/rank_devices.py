"""The devices of one recording: which it used, what they are, and how busy they were."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stepscope.analyses.core.device_activity import device_activity
from stepscope.analyses.core.memory_peak import MOST_BYTES, device_properties
from stepscope.analyses.core.window import window
from stepscope.model import intervals
from stepscope.model.trace import Trace, whole_number


@dataclass(frozen=True, kw_only=True)
class RankDevice:
    """One device; None where the file does not tell."""

    number: int
    name: str | None
    memory_bytes: int | None
    compute_capability: str | None
    processor_count: int | None
    """Streaming multiprocessors, or compute units."""
    busy_share: float | None
    """Of the window; None where it was not used."""


def rank_devices(trace: Trace) -> tuple[RankDevice, ...]:
    """Return the devices that a recording used; where it used none, those that its file lists."""
    properties = device_properties(trace)
    whole_ns = window(trace).device_duration_ns
    busy = {each.device: intervals.duration_ns(each.busy) for each in device_activity(trace)}
    return tuple(
        _device(number, properties.get(number, {}), busy.get(number), whole_ns)
        for number in sorted(busy or properties)
    )


def _device(
    number: int, entry: Mapping[str, Any], busy_ns: int | None, whole_ns: int
) -> RankDevice:
    name, memory = entry.get("name"), whole_number(entry.get("totalGlobalMem"))
    major, minor = (whole_number(entry.get(f"compute{which}")) for which in ("Major", "Minor"))
    return RankDevice(
        number=number,
        name=str(name) if name else None,
        memory_bytes=memory if memory is not None and 0 < memory < MOST_BYTES else None,
        compute_capability=f"{major}.{minor}" if major is not None and minor is not None else None,
        processor_count=whole_number(entry.get("numSms")),
        busy_share=busy_ns / whole_ns if busy_ns is not None and whole_ns > 0 else None,
    )


def process_id(trace: Trace) -> int | None:
    """Return the number of the process that most of the recording's host calls are of."""
    usual = trace.host_calls["thread"].mode()
    return whole_number(str(usual.iloc[0]).partition("/")[0]) if len(usual) else None
