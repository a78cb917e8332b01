"""Frames of a flame graph in which the host waits: for a lock, another process, time, or a device.

The names are those of Python's waiting functions, of the vendors' blocking calls, and of the
DataLoader's annotation around the wait for its workers. A frame that reads what it waited for, as
`multiprocessing/queues.py: get`, is not among them; its callee that waits is.
"""

import re
from dataclasses import replace
from functools import cache

import numpy as np

from stepscope.analyses.core.ancestry import nearest
from stepscope.analyses.flames.flame_tree import CODES, FlameTree
from stepscope.dialects import all_dialects
from stepscope.model.arrays import NONE, Mask

PYTHON = re.compile(
    r"^<built-in (?:method|function) (?:acquire|wait|poll|sleep|synchronize|accept|recv\w*"
    r"|select(?=>| of (?:module|select\.))|_cuda_synchronize)\b"
    r"|(?:^|/)(?:threading\.py\(\d+\): (?:wait|join|_wait_for_tstate_lock)"
    r"|multiprocessing/connection\.py\(\d+\): (?:wait|poll|_poll|recv_bytes|accept)"
    r"|selectors\.py\(\d+\): select"
    r"|concurrent/futures/_base\.py\(\d+\): (?:wait|result)"
    r"|torch/cuda/(?:__init__|streams)\.py\(\d+\): (?:synchronize|wait))$"
)
"""Python functions; what they call waits, too. `Tensor.select` is none of them."""
WORKERS = re.compile(r"^enumerate\(DataLoader\)#_MultiProcessingDataLoaderIter\.__next__$")
"""It also contains the work on a batch that arrived: only its own time is a wait."""


def waiting_nodes(tree: FlameTree) -> Mask:
    """Return the nodes in whose own time the host waits."""
    python = _named(tree, PYTHON, "python") | _named(tree, PYTHON, "user")
    waits = (python | _named(tree, _blocking_call(), "runtime"))[tree.name]
    workers = _named(tree, WORKERS, "dataloader")[tree.name]
    return np.asarray((nearest(tree.parent, waits) != NONE) | workers)


@cache
def _blocking_call() -> re.Pattern[str]:
    patterns = {dialect.blocking_call.pattern: None for dialect in all_dialects().values()}
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns))


def _named(tree: FlameTree, pattern: re.Pattern[str], kind: str) -> Mask:
    """Return which of the tree's names are of a kind and match."""
    is_kind = tree.kinds == CODES[kind]
    return np.array(
        [
            bool(fits and pattern.search(name))
            for name, fits in zip(tree.names, is_kind, strict=True)
        ],
        dtype=bool,
    )


def without_waits(tree: FlameTree) -> FlameTree:
    """Return the tree without the time in which the host waits."""
    return replace(tree, self_values=np.where(waiting_nodes(tree), 0, tree.self_values))
