"""The actions of a schedule as Python functions: each returns the plain data of one action."""

from collections.abc import Sequence
from typing import Any

Action = dict[str, Any]


def steps(count: int, *body: Action, gap_us: float = 0) -> Action:
    """Return `count` profiled steps with `body` in each."""
    return {"steps": count, "gap_us": gap_us, "body": list(body)}


def repeat(count: int, *body: Action) -> Action:
    """Return `body`, repeated `count` times."""
    return {"repeat": count, "body": list(body)}


def thread(name: str, *body: Action) -> Action:
    """Return `body` on another host thread, while this one waits."""
    return {"thread": name, "body": list(body)}


def annotation(name: str, *body: Action, us: float = 0) -> Action:
    """Return `body` inside a `record_function`."""
    return {"annotation": name, "us": us, "body": list(body)}


def python(frame: str, *body: Action, us: float = 0) -> Action:
    """Return `body` inside a Python frame with a self time of `us`."""
    return {"python": frame, "us": us, "body": list(body)}


def op(name: str, *body: Action, us: float = 5, **options: object) -> Action:
    """Return an operator call; options: after_us, dims, types, concrete, seq."""
    return {"op": name, "us": us, **options, "body": list(body)}


def dataloader(workers: int, us: float, *body: Action) -> Action:
    """Return one `next()` of a DataLoader."""
    return {"dataloader": workers, "us": us, "body": list(body)}


def host(us: float) -> Action:
    """Return host time without an event."""
    return {"host": us}


def kernel(name: str, us: float, **options: object) -> Action:
    """Return a kernel launch; options: grid, block, registers, shared, stream, launch_us, by."""
    return {"kernel": name, "us": us, **options}


def graph(*kernels: Action, us: float = 10) -> Action:
    """Return the launch of a captured graph."""
    return {"graph": list(kernels), "us": us}


def copy(direction: str, size_bytes: int, **options: object) -> Action:
    """Return a bare copy; options: memory, us, stream, blocking, launch_us."""
    return {"copy": direction, "bytes": size_bytes, **options}


def sync(what: str, **options: object) -> Action:
    """Return a wait for a `stream`, the `device` or an `event`."""
    return {"sync": what, **options}


def event(name: str, **options: object) -> Action:
    """Return the recording of a CUDA event in a stream."""
    return {"event": name, **options}


def wait(name: str, stream: int) -> Action:
    """Return `stream` waiting for an event."""
    return {"wait": name, "stream": stream}


def alloc(size_bytes: int, name: str) -> Action:
    """Return an allocation of device memory under a name."""
    return {"alloc": size_bytes, "as": name}


def free(name: str) -> Action:
    """Return the release of a named allocation."""
    return {"free": name}


def item(size_bytes: int = 4, **options: object) -> Action:
    """Return `tensor.item()`."""
    return {"item": size_bytes, **options}


def to_cpu(size_bytes: int, dims: Sequence[int] = (), **options: object) -> Action:
    """Return `tensor.cpu()`."""
    return {"to_cpu": size_bytes, "dims": list(dims), **options}


def to_cuda(size_bytes: int, dims: Sequence[int] = (), **options: object) -> Action:
    """Return `tensor.to("cuda")`; options: pinned, non_blocking, stream, type."""
    return {"to_cuda": size_bytes, "dims": list(dims), **options}
