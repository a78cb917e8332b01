"""Metadata of a trace for the overview: devices, versions, recorded options."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from stepscope.base import formatting
from stepscope.model.trace import Trace

FLAGS = {
    "record_shapes": "Shapes",
    "with_stack": "Stacks",
    "with_modules": "Modules",
    "profile_memory": "Memory",
    "with_flops": "FLOPs",
}
VERSIONS = {
    "pytorch_version": "PyTorch",
    "torch_version": "PyTorch",
    "cuda_runtime_version": "CUDA runtime",
    "cuda_driver_version": "CUDA driver",
    "hip_runtime_version": "HIP runtime",
    "hip_driver_version": "HIP driver",
}
DISTRIBUTED = {"backend": "Backend", "rank": "Rank", "world_size": "World size"}


def environment(trace: Trace) -> dict[str, str]:
    """Return labels and values of the trace's header."""
    metadata = trace.metadata
    return {
        **_texts(metadata, VERSIONS),
        **_devices(metadata),
        **_distributed(metadata),
        **{
            label: "recorded" if metadata[key] else "not recorded"
            for key, label in FLAGS.items()
            if key in metadata
        },
        "Events": f"{len(trace):,}",
    }


def _texts(values: Mapping[str, Any], labels: Mapping[str, str]) -> dict[str, str]:
    return {
        label: _version(values[key]) if key.endswith("_version") else str(values[key])
        for key, label in labels.items()
        if isinstance(values.get(key), str | int) and not isinstance(values[key], bool)
    }


def _version(value: str | int) -> str:
    """Return a version; CUDA and HIP write 12.4 as 12040."""
    if isinstance(value, int) and 1000 <= value < 1_000_000:
        return f"{value // 1000}.{value % 1000 // 10}"
    return str(value)


def _devices(metadata: Mapping[str, Any]) -> dict[str, str]:
    properties = metadata.get("deviceProperties")
    if not isinstance(properties, list):
        return {}
    devices = [device for device in properties if isinstance(device, Mapping)]
    counts = Counter(_device(device) for device in devices)
    names = [
        f"{count} \N{MULTIPLICATION SIGN} {name}" if count > 1 else name
        for name, count in counts.items()
    ]
    return {"Devices": ", ".join(names)} if names else {}


def _device(properties: Mapping[str, Any]) -> str:
    memory = properties.get("totalGlobalMem")
    name = str(properties.get("name", "unnamed"))
    return f"{name} ({formatting.size(memory)})" if isinstance(memory, int) else name


def _distributed(metadata: Mapping[str, Any]) -> dict[str, str]:
    information = metadata.get("distributedInfo")
    return _texts(information, DISTRIBUTED) if isinstance(information, Mapping) else {}
