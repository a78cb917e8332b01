"""Steps of the host whose number occurs more than once."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.health._check import Check, examples
from stepscope.base.formatting import count, duration
from stepscope.base.report import HealthItem
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import STEP_NAME
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report copies of a step that runs, and steps of another loop with the same numbers."""
    steps, calls = trace.steps, trace.host_calls
    is_step = name_mask(calls["name"], STEP_NAME.match) & (calls["duration_ns"].to_numpy() > 0)
    events = calls["event"].to_numpy()[is_step]
    copies = events[~np.isin(events, steps["event"].to_numpy())]
    number = steps["number"]
    again = steps["event"].to_numpy()[(number.duplicated() & (number >= 0)).to_numpy()]
    found = np.concatenate((again, copies))
    if not len(found):
        return
    starts = trace.columns.start_ns
    yield HealthItem(
        kind="repeated-steps",
        severity="warning" if len(again) else "info",
        count=len(found),
        of_count=len(events),
        nature="damage" if len(again) else "note",
        message=(
            f"{count(len(found), 'step')} of {len(events):,} "
            f"{'has' if len(found) == 1 else 'have'} the number of another"
            + (": two loops, or two recordings, are in one file" if len(again) else "")
        ),
        action=(
            "those at another time count as steps of their own"
            if len(again)
            else "copies of a step that still runs were left out"
        ),
        remedy="Call prof.step() in one loop only." if len(again) else "",
        examples=examples(trace, found, lambda n: f"begins at {duration(int(starts[found[n]]))}"),
    )


CHECK = Check(damages={"repeated-steps": frozenset({"steps"})}, check=check)
