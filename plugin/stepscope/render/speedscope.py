"""A flame graph as speedscope reads it: https://www.speedscope.app/file-format-schema.json.

Each call path is one sample, weighted with its self time, for speedscope's "left heavy" and
"sandwich" views; there is no order of time.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stepscope._version import __version__
from stepscope.analyses.core.call_paths import preorder
from stepscope.analyses.flames.flame_tree import FlameTree
from stepscope.analyses.host.call_stacks import Metric
from stepscope.analyses.host.host_call_tree import Flame
from stepscope.base import formatting
from stepscope.model.call_tree import depth_of
from stepscope.render.json import escaped

SCHEMA_ADDRESS = "https://www.speedscope.app/file-format-schema.json"
PYTHON_FUNCTION = re.compile(r"^(?P<file>\S.*)\((?P<line>\d{1,9})\): (?P<name>.+)$", re.DOTALL)
TITLES = {"self-cpu": "host time", "self-device": "device time, by what launched it"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Samples:
    """Paths of frames with their weights."""

    parent: NDArray[np.int64]
    frame: NDArray[np.int64]
    """Index into `frames`, per node of the paths."""
    frames: Sequence[str]
    weight: NDArray[np.int64]
    unit: Literal["nanoseconds", "bytes"]


def parts(flame: Flame, metric: Metric, name: str) -> Iterator[str]:
    """Yield the parts of the document of a trace's host or device time."""
    samples = Samples(
        parent=flame.paths.parent,
        frame=flame.paths.name,
        frames=flame.names,
        weight=flame.host_self_ns if metric == "self-cpu" else flame.device_self_ns,
        unit="nanoseconds",
    )
    yield from _document(samples, name, f"{name}: {TITLES[metric]}")


def tree_parts(tree: FlameTree, name: str, title: str) -> Iterator[str]:
    """Yield the parts of a flame graph's document; merged smaller frames become one, counted."""
    texts = list(tree.names)
    frame = tree.name.copy()
    for node in np.flatnonzero(tree.is_smaller).tolist():
        frame[node] = len(texts)
        texts.append(formatting.count(int(tree.merged_count[node]), "smaller frame"))
    samples = Samples(
        parent=tree.parent,
        frame=frame,
        frames=texts,
        weight=tree.self_values[0],
        unit="nanoseconds" if tree.unit == "ns" else "bytes",
    )
    yield from _document(samples, name, f"{name}: {title}")


def _document(samples: Samples, name: str, title: str) -> Iterator[str]:
    nodes = _weighted_nodes(samples)
    head = {"$schema": SCHEMA_ADDRESS, "exporter": f"stepscope {__version__}", "name": name}
    yield escaped(json.dumps(head))[:-1]
    yield ', "activeProfileIndex": 0, "shared": {"frames": ['
    yield from _separated(escaped(json.dumps(_frame(text))) for text in samples.frames)
    yield f']}}, "profiles": [{{"type": "sampled", "name": {escaped(json.dumps(title))}, '
    yield f'"unit": "{samples.unit}", '
    yield f'"startValue": 0, "endValue": {int(samples.weight.sum())}, "samples": ['
    yield from _separated(json.dumps(_stack(samples, node)) for node in nodes)
    yield '], "weights": ['
    yield from _separated(str(int(samples.weight[node])) for node in nodes)
    yield "]}]}\n"


def _weighted_nodes(samples: Samples) -> list[int]:
    """Return the nodes with a weight in preorder, the order of speedscope's first view."""
    position = preorder(samples.parent, depth_of(samples.parent))
    nodes = np.flatnonzero(samples.weight > 0)
    return [int(node) for node in nodes[np.argsort(position[nodes])]]


def _separated(items: Iterator[str]) -> Iterator[str]:
    before = ""
    for item in items:
        yield before + item
        before = ", "


def _frame(name: str) -> dict[str, str | int]:
    function = PYTHON_FUNCTION.match(name)
    if function is None:
        return {"name": name}
    return {"name": function["name"], "file": function["file"], "line": int(function["line"])}


def _stack(samples: Samples, node: int) -> list[int]:
    """Return the frames of a path, outermost first."""
    stack: list[int] = []
    while node >= 0:
        stack.append(int(samples.frame[node]))
        node = int(samples.parent[node])
    return stack[::-1]
