"""Under what conditions a recording was made, as far as the file says it."""

from collections.abc import Iterator, Mapping

from stepscope.analyses.core.producer import producer
from stepscope.analyses.settings.setting_rows import GROUPS, NOT_SHOWN, SettingRow, setting_rows
from stepscope.base.formatting import size
from stepscope.dialects import Kind
from stepscope.model.trace import Trace, whole_number

VERSION = "_version"
OWN = frozenset({("distributed", "rank"), ("distributed", "local_rank")})
"""Settings that differ between the ranks of one run."""


def conditions(trace: Trace) -> dict[str, str]:
    """Return each condition's name and state; one that the file does not tell is left out."""
    return dict(_conditions(trace))


def _conditions(trace: Trace) -> Iterator[tuple[str, str]]:
    yield "the profiler", producer(trace).name
    yield "the kind of device", trace.dialect.name
    if names := _device_names(trace):
        yield "the device", names
    for key, value in sorted(trace.metadata.items()):
        if key.endswith(VERSION):
            yield f"{key.removesuffix(VERSION).replace('_', ' ')} version", str(value)
    info = trace.metadata.get("distributedInfo")
    if isinstance(info, Mapping) and (size := whole_number(info.get("world_size"))) is not None:
        yield "the number of ranks", str(size)
    for name, is_set in _flags(trace):
        yield name, "on" if is_set else "off"


def settings(trace: Trace) -> dict[str, tuple[str, str]]:
    """Return each recorded setting's name, as `dataloaders[0].worker_count`, label and value.

    What the profiler was told is a condition, and what tells ranks apart no setting.
    """
    return {
        _name(row): (f"{GROUPS[row.subject]}, {row.label}", _value(row))
        for row in setting_rows(trace)
        if row.subject != "profiler"
        and row.name not in NOT_SHOWN
        and (row.subject, row.name) not in OWN
    }


def _name(row: SettingRow) -> str:
    return f"{row.subject}{f'[{row.index}]' if row.index >= 0 else ''}.{row.name}"


def _value(row: SettingRow) -> str:
    if isinstance(row.value, bool):
        return "on" if row.value else "off"
    if isinstance(row.value, str):
        return row.value
    return size(row.value) if row.unit == "bytes" else f"{row.value:,}"


def _device_names(trace: Trace) -> str:
    """Return the distinct names of the devices; a machine of equal ones has one name."""
    listed = trace.metadata.get("deviceProperties")
    devices = listed if isinstance(listed, list) else []
    names = {str(each["name"]) for each in devices if isinstance(each, Mapping) and "name" in each}
    return ", ".join(sorted(names))


def _flags(trace: Trace) -> Iterator[tuple[str, bool]]:
    """Yield what the profiler was told to record, which costs time, by what is in the file."""
    calls, kinds = trace.host_calls, trace.source.kinds
    yield "record_shapes", bool((calls["input_dims"].cat.codes >= 0).any())
    stacks = (calls["call_stack"].cat.codes >= 0).any() or len(trace.python_calls)
    yield "with_stack", bool(stacks)
    yield "profile_memory", bool((kinds == int(Kind.MEMORY)).any())
