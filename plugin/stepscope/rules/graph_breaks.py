"""torch.compile leaves its graph in the middle of a frame."""

from collections.abc import Iterator

import numpy as np

from stepscope.analyses.compiled.compiled_regions import (
    GraphBreaks,
    graph_break_table,
    graph_breaks,
)
from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.compile_events import compile_events
from stepscope.analyses.core.device_activity import all_busy
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import HALF_TO_ALL
from stepscope.base.findings import Evidence, EvidenceTable, Link
from stepscope.base.formatting import count, duration
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases, recorded_facts

MOST_ROWS = 10
MOST_NAMED = 3
READS = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero")


class Options(Thresholds):
    """Thresholds from which breaks are worth reporting."""

    least_a_step: float = option(
        2.0,
        "Breaks per step (without steps: in total) from which they are reported.",
        origin="ours: three frames or more where one would do; a logging line makes one",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report frames whose compiled code ends with a call of the rest of the frame.

    Raises:
        NotApplicableError: no compiled code was called.
    """
    is_compiled = (compile_events(trace).region >= 0).any()
    requirements.applies_if(is_compiled, "no code compiled by torch.compile was called")
    breaks, span = graph_breaks(trace), window(trace)
    number = len(breaks.entered)
    if number < options.least_a_step * max(1, span.step_count):
        return
    times = intervals.difference(breaks.times(trace), all_busy(trace))
    lost_ns = span.per_step(intervals.duration_ns(times))
    scope = phrases.per_step(trace)
    yield Finding(
        severity="info",
        confidence="high" if breaks.lines else "medium",
        message=f"{count(span.per_step(number), 'graph break')} {scope}: compiled code is left for "
        f"Python and entered again, {duration(lost_ns)} {scope} in between{_where(breaks)}.",
        evidence=(
            facts.count("Graph breaks in total", number),
            facts.duration(
                f"Python between graphs {scope}",
                lost_ns,
                Link(view="operators", search="Torch-Compiled Region"),
            ),
            *_recorded(trace),
        ),
        tables=(_table(trace),),
        events=tuple(
            event_references.host_call(trace, row)
            for row in np.unique(breaks.entered)[:MOST_ROWS].tolist()
        ),
        locations=breaks.lines[:MOST_ROWS],
        claims=(
            Claim(
                times, HALF_TO_ALL, "Python and guards between two graphs, while no device works."
            ),
        ),
        fix=_fix(breaks.between),
    )


def _recorded(trace: Trace) -> Iterator[Evidence]:
    """Yield the number of lines at which the compiler broke a graph, where it was recorded."""
    number = recorded_settings(trace).compile.graph_break_count
    if number is not None:
        yield recorded_facts.evidence("Lines with a graph break", number, "count")


def _where(breaks: GraphBreaks) -> str:
    if not breaks.lines:
        return ""
    named = [f"{line.path}({line.line})" for line in breaks.lines[:MOST_NAMED]]
    more = ", …" if len(breaks.lines) > MOST_NAMED else ""
    return f", at {', '.join(named)}{more}"


def _table(trace: Trace) -> EvidenceTable:
    columns = ["region", "next_region", "count", "lookup_ns", "next_ns"]
    return facts.table(
        "Breaks",
        {
            "Left": "text",
            "Entered": "text",
            "Breaks": "count",
            "Guards in total": "ns",
            "In the entered region in total": "ns",
        },
        graph_break_table(trace)[columns].head(MOST_ROWS),
    )


def _fix(between: tuple[str, ...]) -> Fix:
    code = "model = torch.compile(model, fullgraph=True)  # raises at each break, with the reason"
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
        "Find the code that breaks the graph, and move it out of the compiled function.",
        code,
        verify="TORCH_LOGS=graph_breaks names every break; in the next trace no Torch-Compiled "
        "Region is inside another.",
        caveats=("A compiled function that another's graph break calls by name looks the same.",),
    )


RULE = Rule(
    id="graph-breaks",
    title="torch.compile breaks its graph in the middle of a function",
    passed="torch.compile compiles functions without costly graph breaks",
    category="compile",
    why="Where the compiler cannot trace the code, the graph ends: Python runs that line, guards "
    "are checked, and another graph begins. Nothing is fused across, and the device may wait.",
    detects="Calls of a `Torch-Compiled Region` from inside another: the rest of a frame after a "
    "break. It reports from `least_a_step` on.",
    silent=(
        "Several compiled modules called one after the other are no breaks.",
        "A single break, such as one line of logging, stays below the threshold.",
    ),
    saving="The Python and the guards between two graphs while no device works: at least half of "
    "it. The saving of fusing across breaks is not counted.",
    fix=_fix(between=()),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="launches",
    links=("torch.compiler_faq.html#graph-breaks", "torch.compiler_troubleshooting.html"),
    origin="torch.compile's own record of regions",
    culprit="Python between compiled graphs",
)
