"""Expansion of one line of Python into the actions of PyTorch."""

from synthesis.machines import Machine
from synthesis.schedule import Action

ITEM_US = 3.0
SYNC_US = 2.0


def item(action: Action, machine: Machine) -> list[Action]:
    """Expand `tensor.item()`: a copy of one element, then a wait for the whole stream."""
    stream = action.get("stream", machine.default_stream)
    direction, memory = machine.item_copy
    copy = _copy(direction, action["item"], memory, stream)
    if machine.is_nvidia:
        body: list[Action] = [{**copy, "blocking": memory == "pageable"}, _wait(stream)]
    else:  # HIP's copy blocks
        body = [{**copy, "blocking": True}]
    us = action.get("us", ITEM_US)
    inner = {"op": "aten::_local_scalar_dense", "us": us, "after_us": 1, "dims": [[]], "body": body}
    return [{"op": "aten::item", "us": us, "after_us": 1, "dims": [[]], "body": [inner]}]


def to_cpu(action: Action, machine: Machine) -> list[Action]:
    """Expand `tensor.cpu()`: a copy to pageable memory, for which the host waits."""
    stream = action.get("stream", machine.default_stream)
    copy = _copy("DtoH", action["to_cpu"], "pageable", stream)
    waits = [_wait(stream)] if machine.is_nvidia else []
    return [_to(action, [copy, *waits])]


def to_cuda(action: Action, machine: Machine) -> list[Action]:
    """Expand `tensor.to("cuda")`: pageable and blocking, unless the options say otherwise."""
    stream = action.get("stream", machine.default_stream)
    memory = "pinned" if action.get("pinned") else "pageable"
    is_blocking = not action.get("non_blocking")
    copy = _copy("HtoD", action["to_cuda"], memory, stream)
    if is_blocking and not machine.is_nvidia:
        copy = {**copy, "blocking": True}
    waits = [_wait(stream)] if is_blocking and machine.is_nvidia else []
    return [_to(action, [copy, *waits])]


def _to(action: Action, body: list[Action]) -> Action:
    us = action.get("us", 4)
    given = {"dims": [list(action.get("dims", ()))], "types": [action.get("type", "float")]}
    empty = {"op": "aten::empty_strided", "us": us}
    copy = {
        "op": "aten::copy_",
        "us": us,
        "dims": given["dims"] * 2,
        "types": given["types"] * 2,
        "body": body,
    }
    inner = {"op": "aten::_to_copy", "us": us, "after_us": 1, **given, "body": [empty, copy]}
    return {"op": "aten::to", "us": us, "after_us": 1, **given, "body": [inner]}


def _copy(direction: str, size_bytes: int, memory: str, stream: int) -> Action:
    return {"copy": direction, "bytes": size_bytes, "memory": memory, "stream": stream}


def _wait(stream: int) -> Action:
    return {"sync": "stream", "stream": stream, "us": SYNC_US}


EXPANSIONS = {"item": item, "to_cpu": to_cpu, "to_cuda": to_cuda}
