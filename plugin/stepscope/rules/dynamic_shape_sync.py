"""An operator whose result's shape depends on values makes the host wait for the device."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import DYNAMIC, ancestor_named, synchronizations
from stepscope.base.findings import Link
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Fix, Results, Rule, Trace
from stepscope.rules.shared import sync_waits
from stepscope.rules.shared.sync_waits import Options, Texts, Waits

TEXTS = Texts(
    counted="Waits for a shape in total",
    happens=lambda number: (
        f"The host waits {sync_waits.times(number)} to learn the shape of an operator's result"
    ),
    less="fixed shapes",
    link=Link(view="operators", search="aten::nonzero"),
)
MASK = (
    "x = torch.where(mask, x, 0)                    # instead of x[mask]: the shape stays\n"
    "total = (x * mask).sum() / mask.sum()          # instead of x[mask].mean()"
)
UNIQUE = "# unique: on the CPU, in the DataLoader's workers, before the batch is copied"
NONZERO = "index = torch.nonzero_static(mask, size=most)  # instead of torch.nonzero(mask)"
INSTEAD = {
    "aten::index": MASK,
    "aten::masked_select": MASK,
    "aten::index_put": "x = torch.where(mask, value, x)               # instead of x[mask] = value",
    "aten::nonzero": NONZERO,
    "aten::argwhere": NONZERO,
    "aten::repeat_interleave": "torch.repeat_interleave(x, repeats, output_size=n)",
    "aten::one_hot": "torch.nn.functional.one_hot(x, num_classes=n)",
    "aten::bincount": (
        "torch.zeros(n, device=x.device).index_add_(0, x, torch.ones_like(x, dtype=torch.float))"
        "  # instead of torch.bincount(x)"
    ),
    "aten::unique": UNIQUE,
}
"""Prefix of an operator's name to code with the same result and a shape that is known before."""


def check(trace: Trace, options: Options) -> Results:
    """Report boolean masks, nonzero, unique and the like by the idle time that they cause."""
    waits = sync_waits.waits(trace, "dynamic", options)
    if waits is not None:
        operators = _operators(trace, waits)
        waits = replace(waits, operators=operators)
        yield sync_waits.result(trace, waits, TEXTS, _fix(trace, operators))


def _operators(trace: Trace, waits: Waits) -> NDArray[np.int64]:
    """Return the outermost operator of a dynamic shape around each wait (`host_calls` rows)."""
    syncs, calls = synchronizations(trace), trace.host_calls
    is_dynamic = np.append(name_mask(calls["name"], DYNAMIC.__contains__), False)
    parent = np.append(calls["parent"].to_numpy(), -1)
    caller = links(trace).owner_of_call[syncs.calls[waits.cost.rows]]
    row = ancestor_named(trace, caller, DYNAMIC)
    while is_dynamic[parent[row]].any():
        row = np.where(is_dynamic[parent[row]], parent[row], row)
    return row


def _fix(trace: Trace, operators: NDArray[np.int64]) -> Fix:
    names, counts = np.unique(
        trace.host_calls["name"].iloc[operators].astype(str).to_numpy(), return_counts=True
    )
    plain = [str(name).replace("aten::_", "aten::") for name in names[np.argsort(-counts)]]
    longest_first = sorted(INSTEAD.items(), key=lambda item: -len(item[0]))
    lines = dict.fromkeys(
        text for name in plain for prefix, text in longest_first if name.startswith(prefix)
    )
    listed = ", ".join(dict.fromkeys(plain))
    return Fix(
        f"Give {listed} a result whose shape does not depend on values.",
        "\n".join(tuple(lines)[:3] or (MASK,)),
        verify=f"In the next trace no wait lies below {listed}, and `After a sync` in Overview is "
        "near 0.",
        caveats=RULE.fix.caveats,
    )


RULE = Rule(
    id="dynamic-shape-sync",
    title="Results of unknown shape (nonzero, boolean masks, unique) drain the device",
    passed="No operator with a result of unknown shape drains the device",
    category="synchronization",
    why="The host needs the size of the result before it can go on, so it waits for the device to "
    "count. By then nothing is queued, and the device is idle.",
    detects="Waits of the host below `aten::nonzero`, `aten::masked_select`, `aten::unique`, "
    "`aten::repeat_interleave`, `aten::bincount`, `aten::one_hot` and indexing with a boolean "
    f"mask. {sync_waits.DETECTS}",
    silent=(
        *sync_waits.SILENT,
        "These operators count only where they really wait: indexing with integers does not.",
    ),
    saving=sync_waits.SAVING,
    fix=Fix(
        "Give the result a shape that does not depend on values.",
        "\n".join((MASK, NONZERO)),
        caveats=("Masked arithmetic also computes the elements that are masked.",),
        verify="In the next trace `After a sync` in Overview is near 0.",
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="synchronization",
    after=("numpy-in-step",),
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
        "generated/torch.nonzero.html",
    ),
    origin="PyTorch tuning guide (nonzero), here by idle time",
    culprit="waiting for shapes",
)
