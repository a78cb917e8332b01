"""Arguments that a profiler records for an operator, a kernel or a copy."""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from synthesis.machines import Machine
from synthesis.schedule import Action

THREADS_PER_BLOCK = 256
REGISTERS_PER_THREAD = 32


def operator_details(action: Action, record: Sequence[str]) -> dict[str, Any]:
    """Return an operator's shapes, where shapes are recorded and the schedule gives them."""
    if "shapes" not in record or "dims" not in action:
        return {}
    dims = action["dims"]
    return {
        "Concrete Inputs": action.get("concrete", [""] * len(dims)),
        "Input type": action.get("types", ["float"] * len(dims)),
        "Input Strides": [_contiguous(shape) for shape in dims],
        "Input Dims": dims,
    }


def kernel_details(action: Action, machine: Machine) -> dict[str, Any]:
    """Return a kernel's launch configuration, and the occupancy that follows from it."""
    grid = _three(action.get("grid", 1))
    block = _three(action.get("block", THREADS_PER_BLOCK))
    if not machine.is_nvidia:  # roctracer has no occupancy, and the grid is in blocks here
        return {"kind": "Dispatch Kernel", "grid": grid, "block": block}
    properties = machine.properties or {}
    registers = action.get("registers", REGISTERS_PER_THREAD)
    shared = action.get("shared", 0)
    blocks = action.get("blocks_per_sm", prod(grid) / properties["numSms"])
    resident = _resident_blocks(prod(block), registers, shared, properties)
    threads = min(blocks, resident) * prod(block)
    occupancy = round(100 * threads / properties["maxThreadsPerMultiprocessor"])
    return {
        "registers per thread": registers,
        "shared memory": shared,
        "blocks per SM": round(blocks, 6),
        "warps per SM": round(blocks * -(-prod(block) // properties["warpSize"]), 6),
        "grid": grid,
        "block": block,
        "est. achieved occupancy %": action.get("occupancy", occupancy),
    }


def launch_details(name: str, details: dict[str, Any], machine: Machine) -> dict[str, Any]:
    """Return the arguments of a kernel on its launch: HIP repeats them, CUDA does not."""
    if machine.is_nvidia:
        return {}
    return {"kernel": name, "grid": details["grid"], "block": details["block"], "shared memory": 0}


def _resident_blocks(
    threads: int, registers: int, shared: int, properties: Mapping[str, int]
) -> int:
    """Return how many blocks of this shape fit into one SM at once."""
    limits = [
        properties["maxThreadsPerMultiprocessor"] // threads,
        properties["regsPerMultiprocessor"] // max(1, registers * threads),
    ]
    if shared:
        limits.append(properties["sharedMemPerMultiprocessor"] // shared)
    return max(1, min(limits))


def _contiguous(dims: Sequence[int]) -> list[int]:
    return [prod(dims[index + 1 :]) for index in range(len(dims))]


def _three(size: int | Sequence[int]) -> list[int]:
    given = [size] if isinstance(size, int) else list(size)
    return given + [1] * (3 - len(given))
