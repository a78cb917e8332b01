"""Names of collectives, of their libraries and of their types in traces of torch.

`ProcessGroupNCCL` and similar classes open an annotation `nccl:all_reduce` around each call, and
since torch 2.1 a `record_param_comms` whose `Collective name` is `allreduce`
(torch/csrc/distributed/c10d, torch/csrc/profiler/util.cpp `saveNcclMeta`); the kernels' names
contain `AllReduce`. All match the same patterns, ignoring case and underscores.
"""

import json
import re
from collections.abc import Sequence

from stepscope.model.frames.data_types import BYTES, data_type

KINDS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), kind)
    for pattern, kind in (
        (r"^(?:wait|init)", ""),
        (r"barrier", "barrier"),
        (r"reducescatter", "reduce_scatter"),
        (r"allreduce|crossdevicereduce", "all_reduce"),
        (r"allgather", "all_gather"),
        (r"alltoallv", "all_to_allv"),
        (r"alltoall|all2all", "all_to_all"),
        (r"sendrecv", "send_recv"),
        (r"broadcast", "broadcast"),
        (r"coalesc", "coalesced"),
        (r"recv|receive", "recv"),
        (r"send", "send"),
        (r"gather", "gather"),
        (r"scatter", "scatter"),
        (r"reduce", "reduce"),
    )
)
"""The order matters, since a kind's pattern may be part of another's. A wait is not a collective.
"""
UNKNOWN_KIND = "other"
VAGUE_KINDS = frozenset({"", "coalesced", UNKNOWN_KIND})
"""Kinds that the kernel's name overrides."""
ANNOTATION = re.compile(r"^(nccl|rccl|gloo|mpi|ucc|xccl|hccl|ccl|oneccl):(.+)$", re.IGNORECASE)
HOST_BACKENDS = frozenset({"gloo", "mpi"})
"""Their annotations last as long as the transfer; those of device libraries only as long as the
call.
"""
CALL_NAME = "record_param_comms"
FUNCTION = re.compile(
    # operators of torch and other projects that launch collectives without a process group
    r"^c10d(?:_functional)?::|symm_mem::|::\w*(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)"
)
DIRECT_KERNEL: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"cross_device_reduce"), "custom"),
    (re.compile(r"multimem|symm_mem|(?:one|two)_shot"), "symm_mem"),
)
"""Kernels that access other devices' memory directly: vLLM's and SGLang's custom all-reduce,
torch's symmetric memory.
"""
PEERS = re.compile(r"\b(send|recv) (\d{1,9}) ?(->|<-) ?(\d{1,9})")
NUMBERS = re.compile(r"\d{1,9}")


def kind_of(words: str) -> str:
    """Return the kind of collective in a name, `other` if there is no match."""
    flat = re.sub(r"[^a-z0-9]", "", words.lower())
    return next((kind for pattern, kind in KINDS if pattern.search(flat)), UNKNOWN_KIND)


def type_of(words: str) -> tuple[str, int] | None:
    """Return torch's name of an element's type and its size in bytes; None if not a tensor's."""
    name = data_type(words)
    return None if name is None else (name, BYTES[name])


def first_type(text: str) -> tuple[str, int] | None:
    """Return the first tensor type in a list of input types (JSON)."""
    items = _json_list(text)
    return next((data for item in items if (data := type_of(str(item)))), None)


def elements_of(text: str) -> list[float]:
    """Return the number of elements of each input of these shapes (JSON)."""
    return [_elements(item) for item in _json_list(text)]


def _json_list(text: str) -> Sequence[object]:
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return items if isinstance(items, list) else ()


def _elements(shape: object) -> float:
    """Return the product of a shape, or the sum over several shapes; 0 for an empty one."""
    if not isinstance(shape, list) or not shape:
        return 0.0
    if isinstance(shape[0], list):
        return sum(map(_elements, shape))
    product = 1.0
    for size in shape:
        product *= size if isinstance(size, int) and 0 <= size < 2**63 else 0
    return product


def peers_of(words: str) -> tuple[int, int] | None:
    """Return source and destination of `send 0->1` or `recv 1<-0`, as ranks of the group."""
    match = PEERS.search(words)
    if match is None:
        return None
    rank, peer = int(match[2]), int(match[4])
    return (rank, peer) if match[1] == "send" else (peer, rank)
