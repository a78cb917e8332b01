"""Steps of the host with another step's number."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.health._check import examples
from stepscope.base.formatting import count, duration
from stepscope.base.report import HealthItem
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.steps import STEP_NAME
from stepscope.model.trace import Trace


def check(trace: Trace) -> Iterator[HealthItem]:
    """Report copies of a running step, and steps of another loop with the same numbers."""
    steps, calls = trace.steps, trace.host_calls
    is_step = name_mask(calls["name"], STEP_NAME.match) & (calls["duration_ns"].to_numpy() > 0)
    events = calls["event"].to_numpy()[is_step]
    copies = events[~np.isin(events, steps["event"].to_numpy())]
    number = steps["number"]
    again = steps["event"].to_numpy()[(number.duplicated() & (number >= 0)).to_numpy()]
    repeated = np.concatenate((again, copies))
    if not len(repeated):
        return
    starts = trace.columns.start_ns
    yield HealthItem(
        kind="repeated-steps",
        severity="warning" if len(again) else "info",
        count=len(repeated),
        of_count=len(events),
        nature="damage" if len(again) else "note",
        message=(
            f"{count(len(repeated), 'step')} of {len(events):,} "
            f"{'has' if len(repeated) == 1 else 'have'} the number of another"
            + (": two loops, or two traces, are in one file" if len(again) else "")
        ),
        action=(
            "those at another time count as separate steps"
            if len(again)
            else "copies of a running step were left out"
        ),
        remedy="Call prof.step() in one loop only." if len(again) else "",
        examples=examples(
            trace, repeated, lambda n: f"begins at {duration(int(starts[repeated[n]]))}"
        ),
    )


DAMAGES = {"repeated-steps": {"steps"}}
