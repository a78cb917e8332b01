"""A flame graph as speedscope reads it: https://www.speedscope.app/file-format-schema.json.

Each path of calls is one sample, weighted with its own time: speedscope's "left heavy" and
"sandwich" views show what there is; there is no order of time.
"""

import json
import re
from collections.abc import Iterator

import numpy as np

from stepscope._version import __version__
from stepscope.analyses.host.call_stacks import Metric
from stepscope.analyses.host.flame import Flame

SCHEMA_ADDRESS = "https://www.speedscope.app/file-format-schema.json"
PYTHON_FUNCTION = re.compile(r"^(?P<file>\S.*)\((?P<line>\d{1,9})\): (?P<name>.+)$", re.DOTALL)
TITLES = {"self-cpu": "host time", "self-device": "device time, by what launched it"}


def parts(flame: Flame, metric: Metric, name: str) -> Iterator[str]:
    """Yield the document in parts: a recording's host or device time, named after it."""
    own_ns = flame.host_self_ns if metric == "self-cpu" else flame.device_self_ns
    nodes = np.flatnonzero(own_ns > 0).tolist()
    head = {"$schema": SCHEMA_ADDRESS, "exporter": f"stepscope {__version__}", "name": name}
    yield json.dumps(head)[:-1]
    yield ', "activeProfileIndex": 0, "shared": {"frames": ['
    yield from _separated(json.dumps(_frame(text)) for text in flame.names)
    title = json.dumps(f"{name}: {TITLES[metric]}")
    yield f']}}, "profiles": [{{"type": "sampled", "name": {title}, "unit": "nanoseconds", '
    yield f'"startValue": 0, "endValue": {int(own_ns.sum())}, "samples": ['
    yield from _separated(json.dumps(_stack(flame, node)) for node in nodes)
    yield '], "weights": ['
    yield from _separated(str(int(own_ns[node])) for node in nodes)
    yield "]}]}\n"


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


def _stack(flame: Flame, node: int) -> list[int]:
    """Return a path's frames, the outermost first."""
    stack: list[int] = []
    while node >= 0:
        stack.append(int(flame.paths.name[node]))
        node = int(flame.paths.parent[node])
    return stack[::-1]
