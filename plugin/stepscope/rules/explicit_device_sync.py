"""The program itself waits for the device in the loop."""

import re

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from stepscope.analyses.core.event_references import user_calls
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.base.findings import Link
from stepscope.dialects import SYNCHRONIZE_NAME
from stepscope.model import call_tree
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.frames.spans import spans
from stepscope.rules import Fix, Results, Rule, Trace
from stepscope.rules.shared import sync_waits
from stepscope.rules.shared.sync_waits import Options, Texts, Waits

CALL = re.compile(SYNCHRONIZE_NAME)
OF_PROFILER = re.compile(r"^torch[/\\](?:profiler|autograd[/\\]profiler)")
MEASURES = re.compile(
    r"^(?:(?!\): ).)*\): .*(?:profil|timer|benchmark|elapsed)"
    r"|(?:^|[/\\])\w*(?:timer|profiler)s?\.py\(",
    re.IGNORECASE,
)
"""Functions of the user that wait in order to measure, by their names or their files' names."""
TEXTS = Texts(
    counted="Explicit waits in total",
    happens=lambda number: f"The program itself waits for the device {sync_waits.times(number)}",
    less="waiting less",
    link=Link(view="overview"),
)


def check(trace: Trace, options: Options) -> Results:
    """Report `torch.cuda.synchronize()` and the like by the idle time that they cause."""
    waits = sync_waits.waits(trace, "explicit", options, _of_program(trace))
    if waits is not None:
        yield sync_waits.result(trace, waits, TEXTS, _fix(trace, waits))


def _of_program(trace: Trace) -> NDArray[np.bool_]:
    """Return a mask of `synchronizations`: by the program, not by a profiler or a benchmark.

    Where there are no steps, a wait until the device's last work has ended is the end of recording.
    """
    syncs, calls = synchronizations(trace), trace.runtime_calls
    waits = spans(calls.iloc[syncs.calls])
    python, functions = trace.python_calls, user_calls(trace)
    profiler = python[name_mask(python["name"], OF_PROFILER.search)]
    innermost = call_tree.enclosing(spans(functions), waits)
    measures = np.append(name_mask(functions["name"], MEASURES.search), False)[innermost]
    measures |= call_tree.enclosing(spans(profiler), waits) >= 0
    is_call = name_mask(calls["name"], CALL.search)[syncs.calls]
    return np.asarray(is_call & ~measures & (syncs.end_ns <= window(trace).device_end_ns))


def _fix(trace: Trace, waits: Waits) -> Fix:
    calls, syncs = trace.runtime_calls["name"], synchronizations(trace)
    names = calls.iloc[syncs.calls[waits.cost.rows]].astype(str).value_counts()
    listed = ", ".join(f"{name} ({number})" for name, number in list(names.items())[:3])
    module = trace.dialect.terms.get("module", "accelerator")
    return replace(
        RULE.fix,
        code=RULE.fix.code.replace("without ", f"without torch.{module}."),
        summary=f"Take the waits out of the loop: {listed}.",
        verify=f"{names.index[0]} is gone from the loop, and `After a sync` in Overview is near 0.",
    )


RULE = Rule(
    id="explicit-device-sync",
    title="The program waits for the device in the loop (torch.cuda.synchronize())",
    passed="No explicit synchronization drains the device",
    category="synchronization",
    why="The host waits until the device has finished everything. By then nothing is queued, so "
    "the device is idle until the host has launched again.",
    detects="Calls that wait for a device, a stream or an event and that no operator made. "
    f"{sync_waits.DETECTS}",
    silent=(
        *sync_waits.SILENT,
        "Waits that a function makes in order to measure (`profil`, `timer`, `benchmark` or "
        "`elapsed` in its name) are not counted where stacks were recorded.",
        "Without steps, a wait for the device's last work is the end of recording.",
    ),
    saving=sync_waits.SAVING,
    fix=Fix(
        "Take the waits out of the loop.",
        "# without synchronize() in the loop; to measure, record events:\n"
        "begin, end = (torch.Event(enable_timing=True) for _ in range(2))\n"
        "begin.record(); loss = step(batch); end.record()\n"
        "...                             # read begin.elapsed_time(end) a hundred steps later\n"
        "stream.wait_event(event)        # one stream waits for another: the host need not",
        caveats=(
            "Keep a wait that protects memory which the host reads or frees, or wait for an event.",
        ),
        verify="In the next trace `After a sync` in Overview is near 0.",
    ),
    effort="flag",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="synchronization",
    after=("blocking-d2h-copy",),
    links=(
        "/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization",
        "notes/cuda.html#asynchronous-execution",
    ),
    origin="Nsight Systems cuda_api_sync and MindStudio's synchronize rule, here by idle time",
    culprit="waiting for the device on purpose",
)
