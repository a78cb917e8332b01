"""Flame graph of modules: the time of their forward and backward passes."""

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
    """Return the modules' time; with all phases, and the time outside of modules, it is all time.

    Raises:
        MissingDataError: the trace holds no modules.
    """
    modules = module_tree(trace)
    self_ns = _self_ns(modules, measure, phase)
    rest = {
        UNASSIGNED: modules.unassigned_backward_ns[measure == "device"]
        if phase in {"all", "backward"}
        else 0
    }
    if phase == "all":
        flame = host_flame(trace)
        total_ns = flame.host_self_ns if measure == "host" else flame.device_self_ns
        rest[OUTSIDE] = int(total_ns.sum()) - int(self_ns.sum()) - rest[UNASSIGNED]
    rest = {name: value for name, value in rest.items() if value}
    count = len(modules)
    texts = [module.name for module in modules.modules]
    code_of = {text: code for code, text in enumerate(dict.fromkeys(texts))}
    names = (*code_of, *rest)
    kinds = np.full(len(names), CODES["module"], dtype=np.int8)
    kinds[len(code_of) :] = CODES["rest"]
    codes = [*(code_of[text] for text in texts), *range(len(code_of), len(names))]
    calls = modules.rerun_count if phase == "rerun" else modules.call_count
    added = len(rest)
    return FlameTree(
        parent=np.concatenate((modules.parent, np.full(added, NONE, dtype=np.int64))),
        name=np.array(codes, dtype=np.int64),
        names=names,
        kinds=kinds,
        self_values=np.concatenate((self_ns, np.array(list(rest.values()), dtype=np.int64)))[None],
        calls=np.concatenate((calls, np.zeros(added, dtype=np.int64)))[None],
        merged_count=np.zeros(count + added, dtype=np.int64),
        unit="ns",
    )


def _self_ns(modules: ModuleTree, measure: Literal["host", "device"], phase: Phase) -> Nodes:
    costs = {"forward": modules.forward, "backward": modules.backward, "rerun": modules.rerun}
    selected = costs.values() if phase == "all" else (costs[phase],)
    self_ns = np.zeros(len(modules), dtype=np.int64)
    for cost in selected:
        self_ns += cost.host_ns if measure == "host" else cost.device_ns
    return self_ns
