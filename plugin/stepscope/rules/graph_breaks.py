"""torch.compile leaves its graph in the middle of a frame."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.compiled.compiled_regions import graph_break_table
from stepscope.analyses.compiled.graph_breaks import GraphBreaks, graph_breaks
from stepscope.analyses.core import event_references
from stepscope.analyses.core.compile_events import compile_events
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.errors import NotApplicableError
from stepscope.base.findings import Evidence, EvidenceTable, Fix, Link
from stepscope.base.formatting import count, duration
from stepscope.model import intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, option
from stepscope.rules.shared import facts, phrases, recorded_facts

MOST_ROWS = 10
MOST_NAMED = 3
READS = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero")


@dataclass(frozen=True, kw_only=True)
class Options:
    """From how many breaks on it speaks."""

    least_a_step: float = option(
        2.0,
        "Breaks a step (without steps: in all) from which it speaks.",
        origin="ours: three frames or more where one would do; a logging line makes one",
    )


def check(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report frames whose compiled code ends with a call of the rest of the frame.

    Raises:
        NotApplicableError: no compiled code was called.
    """
    region = compile_events(trace).region
    if not (region >= 0).any():
        msg = "no code compiled by torch.compile was called"
        raise NotApplicableError(msg)
    found, within = graph_breaks(trace), window(trace)
    number = len(found.entered)
    if number < options.least_a_step * max(1, within.step_count):
        return
    times = intervals.difference(found.times(trace), all_busy(trace))
    lost = duration(within.per_step(intervals.duration_ns(times)))
    breaks = count(within.per_step(number), "graph break")
    yield Finding(
        severity="info",
        confidence="high" if found.lines else "medium",
        message=f"{breaks} {phrases.per_step(trace)}: compiled code is left for Python and entered "
        f"again, {lost} {phrases.per_step(trace)} in between{_where(found)}.",
        evidence=(
            facts.count("Graph breaks", number),
            facts.duration(
                "Python between graphs",
                within.per_step(intervals.duration_ns(times)),
                Link(view="operators", search="Torch-Compiled Region"),
            ),
            *_in_code(trace),
        ),
        tables=(_table(trace),),
        events=tuple(
            event_references.host_call(trace, row)
            for row in np.unique(found.entered)[:MOST_ROWS].tolist()
        ),
        locations=found.lines[:MOST_ROWS],
        claims=(
            Claim(
                times, HALF_TO_ALL, "Python and guards between two graphs, while no device works."
            ),
        ),
        fix=_fix(found.between),
    )


def _in_code(trace: Trace) -> Iterator[Evidence]:
    """Yield at how many places the compiler broke a graph, where that was recorded."""
    places = recorded_settings(trace).compile.graph_break_count
    if places is not None:
        yield recorded_facts.evidence("Places where the compiler broke a graph", places, "count")


def _where(found: GraphBreaks) -> str:
    if not found.lines:
        return ""
    named = [f"{line.path}({line.line})" for line in found.lines[:MOST_NAMED]]
    more = ", …" if len(found.lines) > MOST_NAMED else ""
    return f", at {', '.join(named)}{more}"


def _table(trace: Trace) -> EvidenceTable:
    columns = ["region", "next_region", "count", "lookup_ns", "next_ns"]
    rows = graph_break_table(trace)[columns].head(MOST_ROWS).astype(object).to_numpy().tolist()
    return facts.table(
        "Breaks",
        {
            "Left": "text",
            "Entered": "text",
            "Times": "count",
            "Guards": "ns",
            "In what was entered": "ns",
        },
        (tuple(row) for row in rows),
    )


def _fix(between: tuple[str, ...]) -> Fix:
    code = "model = torch.compile(model, fullgraph=True)  # raises at each break, and says why"
    if set(between) & set(READS):
        code += (
            "\ntorch._dynamo.config.capture_scalar_outputs = True  # .item() stays in the graph\n"
            "x = torch.where(condition, a, b)  # instead of `if condition:` on a tensor"
        )
    else:
        code += (
            "\n# print and logging: outside of compiled code, or\n"
            "torch._dynamo.config.reorderable_logging_functions.add(print)"
        )
    return Fix(
        "Find what breaks the graph, and take it out of the compiled function.",
        code,
        verify="TORCH_LOGS=graph_breaks names every break; in the next trace no Torch-Compiled "
        "Region lies within another.",
        caveats=(
            "A compiled function that is called by name in another's graph break looks the same.",
        ),
    )


RULE = Rule(
    id="graph-breaks",
    title="torch.compile breaks its graph in the middle of a function",
    category="compile",
    why="Where the compiler meets what it cannot trace, the graph ends: Python runs that line, "
    "guards are checked, and another graph begins. Nothing is fused across, and the device may "
    "wait.",
    detects="Calls of a `Torch-Compiled Region` from within another: the rest of a frame behind a "
    "break. It speaks from `least_a_step` on.",
    silent=(
        "Several compiled modules called one after the other are no breaks.",
        "A single break, such as that of one line of logging, stays below the threshold.",
    ),
    saving="The Python and the guards between two graphs while no device works: half of it at "
    "least. What fusing across would win is not counted.",
    fix=_fix(between=()),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority=430,
    links=(
        "https://docs.pytorch.org/docs/stable/torch.compiler_faq.html#graph-breaks",
        "https://docs.pytorch.org/docs/stable/torch.compiler_troubleshooting.html",
    ),
    origin="torch.compile's own record of regions",
    culprit="Python between compiled graphs",
)
