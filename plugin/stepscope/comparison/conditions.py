"""Under what conditions a recording was made, as far as the file says it."""

from collections.abc import Iterator, Mapping

from stepscope.analyses.producer import producer
from stepscope.dialects import Kind
from stepscope.trace import Trace, whole_number

VERSION = "_version"


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
