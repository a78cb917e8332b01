"""torch.compile compiles again and again while the loop runs."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from stepscope.analyses.compiled.compilations import (
    ChangingInputs,
    changing_inputs,
    compilation_table,
    compiling_calls,
)
from stepscope.analyses.core import event_references, frame_times
from stepscope.analyses.core.compile_events import compile_events
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import COMPILING_AGAIN
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import INFO_SHARE, Evidence, EvidenceTable, Link, SourceLine
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases, recorded_facts

NONE = -1
MOST_ROWS = 10
FRAME = r"^(?P<frame>\d{1,9})/(?P<number>\d{1,9})"
FRAME_PHASE = "_compile.compile_inner"
MOST_SIZES = 5
VERIFY = (
    "TORCH_LOGS=recompiles names every guard that failed; in the next trace nothing is compiled "
    "after the warm-up."
)
LIMIT = (
    "After torch._dynamo.config.recompile_limit (8) compilations a frame runs uncompiled; raising "
    "the limit only delays that."
)
GUARDS = Fix(
    "Find the guard that fails, and make it hold.",
    "# TORCH_LOGS=recompiles python train.py\n"
    "model = torch.compile(model, dynamic=True)  # where it is a shape",
    verify=VERIFY,
    caveats=(LIMIT,),
)


class Options(Thresholds):
    """Threshold of steps without recompilation."""

    settled_share: float = option(
        0.50,
        "Fraction of the steps, the last ones, without a recompilation from which it was warm-up.",
        origin="ours: after one change of shape torch.compile makes the dimension dynamic, and "
        "needs no other",
    )
    least_compiling_share: float = option(
        0.90,
        "Of the calls that compile and the first runs of their code: fraction of compiling from "
        "which all of their time may be saved.",
        origin="ours: computing in such calls cannot be separated from running cold, and stays "
        "in part; so no more than a tenth is claimed for it. 0.998 in a trace on the CPU",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report compilations of frames that were compiled before.

    Raises:
        NotApplicableError: nothing is compiled here.
    """
    again, rows = _recompilations(trace)
    span = window(trace)
    took = frame_times.times(trace.host_calls, rows)
    time_ns = intervals.duration_ns(intervals.clip(took, span.start_ns, span.end_ns))
    if time_ns < max(1, INFO_SHARE * span.duration_ns):
        return
    recorded = again["compile_id"].dropna()
    number = len(set(recorded)) or len(again)  # where some are told, the others are given up
    lasting = duration(span.per_step(time_ns))
    inputs = changing_inputs(trace, _numbers(again)["frame"].tolist())
    message = (
        f"{count(number, 'recompilation takes', 'recompilations take')} {lasting} "
        f"{phrases.per_step(trace)} ({share(time_ns / span.duration_ns)})"
    )
    settled = _settled_share(trace, again)
    if settled >= options.settled_share:
        yield RuledOut(message=f"{message}, and the last {share(settled)} of the steps need none.")
        return
    yield Finding(
        confidence="high" if len(recorded) else "medium",
        message=f"{message}: {_cause(inputs)}",
        evidence=tuple(_evidence(trace, again, number, time_ns)),
        tables=(_table(again),),
        events=tuple(event_references.host_call(trace, row) for row in rows[:MOST_ROWS].tolist()),
        locations=_lines(again),
        claims=(_claim(trace, took, compiling_calls(trace, rows, set(recorded)), options),),
        fix=_fix(inputs),
    )


def _claim(trace: Trace, took: Intervals, calls: Intervals, options: Options) -> Claim:
    """Claim the compiling, and at most the calls that compile, where they do little else."""
    sure = intervals.difference(took, all_busy(trace))
    around = intervals.difference(calls, all_busy(trace))
    compiling_share = intervals.duration_ns(sure) / max(1, intervals.duration_ns(around))
    if compiling_share < options.least_compiling_share:
        return Claim(
            sure,
            COMPILING_AGAIN,
            "The time in which frames are compiled again and no device works.",
        )
    return Claim(
        around,
        COMPILING_AGAIN,
        "At least the time in which frames are compiled again and no device works; at most also "
        "what dynamo and autograd do around that, and the first run of the new code, which is "
        "slower than later ones.",
        low_intervals=sure,
    )


def _recompilations(trace: Trace) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return the compilations within the window that are not a frame's first.

    Beside them their rows of `host_calls`. Where torch does not tell (before 2.12), what is
    compiled behind the first step counts.
    """
    table, events = compilation_table(trace), compile_events(trace)
    if not len(table) and not (events.region != NONE).any():
        msg = "no code compiled by torch.compile was called or compiled"
        raise NotApplicableError(msg)
    rows = np.flatnonzero(events.phase == np.arange(len(events.phase)))
    span = window(trace)
    first_end = min(trace.steps["end_ns"], default=span.end_ns)
    start = table["start_ns"].to_numpy()
    recorded = table["is_recompilation"].to_numpy()
    is_again = np.where(pd.isna(recorded), start >= first_end, recorded == True)  # noqa: E712 (None too)
    is_recompilation = is_again.astype(bool) & (start >= span.start_ns) & (start < span.end_ns)
    return table[is_recompilation], rows[is_recompilation]


def _settled_share(trace: Trace, again: pd.DataFrame) -> float:
    """Return which share of the steps, the last ones, have no recompilation."""
    starts, step_count = trace.steps["start_ns"].to_numpy(), window(trace).step_count
    last = np.searchsorted(starts, again["start_ns"].to_numpy().max(), side="right")
    return max(0, step_count - int(last)) / max(1, step_count)


def _numbers(again: pd.DataFrame) -> pd.DataFrame:
    """Return the numbers of the frame and of its compilation, if recorded."""
    return again["compile_id"].astype("str").str.extract(FRAME).dropna().astype("int64")


def _evidence(trace: Trace, again: pd.DataFrame, number: int, time_ns: int) -> Iterator[Evidence]:
    span = window(trace)
    yield facts.count("Recompilations", number)
    yield facts.fraction(
        "Compiling again", time_ns / span.duration_ns, Link(view="operators", search=FRAME_PHASE)
    )
    times = _numbers(again)["number"]
    if len(times):
        yield facts.count("Compilations of one frame", int(times.max()) + 1)
    compile_settings = recorded_settings(trace).compile
    if compile_settings.recompile_count is not None:
        yield recorded_facts.evidence(
            "Recompilations since the start", compile_settings.recompile_count, "count"
        )


def _table(again: pd.DataFrame) -> EvidenceTable:
    """Return the recompilations in the order they began."""
    columns = ("compile_id", "step", "source_line", "duration_ns")
    shown = again[list(columns)].astype(object)
    cells = shown.where(shown.notna(), None).to_numpy().tolist()[:MOST_ROWS]
    return facts.table(
        "Recompilations",
        {"Frame and compilation": "text", "Step": "text", "Called from": "text", "Time": "ns"},
        (tuple(row) for row in cells),
    )


def _lines(again: pd.DataFrame) -> tuple[SourceLine, ...]:
    return event_references.source_lines(str(text) for text in again["source_line"].dropna())[
        :MOST_ROWS
    ]


def _cause(inputs: ChangingInputs) -> str:
    """Return the change between the calls, as a sentence."""
    if inputs.change == "sizes":
        sizes = ", ".join(str(size) for size in inputs.sizes[:MOST_SIZES])
        more = ", …" if len(inputs.sizes) > MOST_SIZES else ""
        return f"dimension {inputs.dimension} of an input changes ({sizes}{more})."
    if inputs.change == "dimensions":
        return "an input changes its number of dimensions."
    if inputs.change == "none":
        return "no input changes its shape, so a Python value or a mode does."
    return "which guard failed was not recorded."


def _fix(inputs: ChangingInputs) -> Fix:
    """Return the fix that makes the guards hold."""
    if inputs.change == "sizes":
        return Fix(
            "Mark the dimension that changes, so that one compilation holds for all its sizes.",
            f"torch._dynamo.mark_dynamic(batch, {inputs.dimension})  # before the compiled call"
            "\n# or pad to a few sizes, or torch.compile(model, dynamic=True)",
            verify=VERIFY,
            caveats=(LIMIT, "Code for any size may be somewhat slower than for one."),
        )
    if inputs.change == "none":
        return Fix(
            "Keep Python values that change out of compiled code, or pass them as tensors.",
            "scale = torch.tensor(step, device=device)  # instead of a Python int or float\n"
            "output = compiled(batch, scale)",
            verify=VERIFY,
            caveats=(
                LIMIT,
                "Modes count as well: train() and eval(), with and without gradients are compiled "
                "once each.",
            ),
        )
    return GUARDS


RULE = Rule(
    id="recompile-in-loop",
    title="torch.compile compiles again while the loop runs",
    passed="torch.compile does not recompile in the loop",
    category="compile",
    why="Compiled code holds for the shapes and values that it was compiled for. Where a guard on "
    "them fails, the frame is compiled again, for seconds often; after eight times it is given up "
    "and runs uncompiled.",
    detects="Compilations of frames that were compiled before (`compile_id=0/1` and higher; before "
    "torch 2.12 whatever is compiled behind the first step). It reports where they take 1 % of the "
    "window or more.",
    silent=(
        "A frame's first compilation is warm-up.",
        "Where the last steps, `settled_share` of all, run without one, it is ruled out: that was "
        "warm-up.",
    ),
    saving="The time in which frames are compiled again while no device works: all of it, since it "
    "vanishes once guards hold. At most also the rest of the calls that compile (dynamo's and "
    "autograd's work around it) and the first run of the new code, which runs cold: where "
    "compiling is `least_compiling_share` of all that.",
    fix=GUARDS,
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="runtime",
    after=("python-gc-pauses",),
    links=("torch.compiler_dynamic_shapes.html", "torch.compiler_troubleshooting.html"),
    origin="torch.compile's own record of phases and ids",
    culprit="compiling again",
)
