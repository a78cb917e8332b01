"""The flame graph of modules: forward and backward passes by the module that they belong to."""

from typing import Literal

import numpy as np

from stepscope.analyses.flames.flame_tree import CODES, NONE, FlameTree, Nodes
from stepscope.analyses.host.host_flame import host_flame
from stepscope.analyses.host.module_tree import ModuleTree, module_tree
from stepscope.model.trace import Trace

Phase = Literal["all", "forward", "backward", "rerun"]
OUTSIDE = "outside of modules"
UNASSIGNED = "backward pass of no known module"


def modules_tree(trace: Trace, measure: Literal["host", "device"], phase: Phase) -> FlameTree:
    """Return the modules' time; with all phases, together with what is none's it is all time.

    Raises:
        MissingDataError: the recording holds no modules.
    """
    modules = module_tree(trace)
    own = _own(modules, measure, phase)
    rest = {
        UNASSIGNED: modules.unassigned_backward_ns[measure == "device"]
        if phase in {"all", "backward"}
        else 0
    }
    if phase == "all":
        flame = host_flame(trace)
        every = flame.host_self_ns if measure == "host" else flame.device_self_ns
        rest[OUTSIDE] = int(every.sum()) - int(own.sum()) - rest[UNASSIGNED]
    rest = {name: value for name, value in rest.items() if value}
    count = len(modules)
    texts = [module.name for module in modules.modules]
    place = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    names = (*place, *rest)
    kinds = np.full(len(names), CODES["module"], dtype=np.int8)
    kinds[len(place) :] = CODES["rest"]
    codes = [*(place[text] for text in texts), *range(len(place), len(names))]
    calls = modules.rerun_count if phase == "rerun" else modules.call_count
    added = len(rest)
    return FlameTree(
        parent=np.concatenate((modules.parent, np.full(added, NONE, dtype=np.int64))),
        name=np.array(codes, dtype=np.int64),
        names=names,
        kinds=kinds,
        self_values=np.concatenate((own, np.array(list(rest.values()), dtype=np.int64)))[None],
        calls=np.concatenate((calls, np.zeros(added, dtype=np.int64)))[None],
        merged_count=np.zeros(count + added, dtype=np.int64),
        unit="ns",
    )


def _own(modules: ModuleTree, measure: Literal["host", "device"], phase: Phase) -> Nodes:
    costs = {"forward": modules.forward, "backward": modules.backward, "rerun": modules.rerun}
    chosen = costs.values() if phase == "all" else (costs[phase],)
    own = np.zeros(len(modules), dtype=np.int64)
    for cost in chosen:
        own += cost.host_ns if measure == "host" else cost.device_ns
    return own
