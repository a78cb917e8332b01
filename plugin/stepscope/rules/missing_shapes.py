"""No input shapes were recorded, so results that need them are unknown."""

from stepscope.analyses.core import requirements
from stepscope.analyses.core.batch_size import batch_size
from stepscope.analyses.core.record_next import SHAPES
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace
from stepscope.rules.shared import facts


class Options(Thresholds):
    """No options: shapes are there or not."""


def check(trace: Trace, _options: Options) -> Results:
    """Report traces with operators and without their shapes."""
    operators = int(trace.host_calls["is_operator"].sum())
    requirements.applies_if(operators, "no operator was recorded")
    if trace.source.has(*SHAPES):
        return
    batch = "" if batch_size(trace) else "the batch size, "
    yield Finding(
        severity="info",
        message=f"None of {operators:,} operators has input shapes: {batch}types, alignment and "
        "FLOPs are unknown, and rules that need them are inconclusive.",
        evidence=(facts.count("Operators without shapes", operators),),
    )


RULE = Rule(
    id="missing-shapes",
    title="Input shapes were not recorded",
    passed="Input shapes were recorded",
    category="profiling",
    why="Shapes and types of inputs give the batch size, the expected cost of an operator, and "
    "whether it could run on faster units.",
    detects="Whether any operator has input shapes.",
    saving="None: it is about the trace, not about the program.",
    fix=Fix(
        "Record shapes.",
        "torch.profiler.profile(..., record_shapes=True)",
        verify="Operators can be grouped by input shape.",
        caveats=("It costs the host about a microsecond an operator, and makes files larger.",),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls"}),
    priority="trace",
    links=("profiler.html#torch.profiler.profile",),
    origin="the PyTorch profiler's record_shapes",
)
