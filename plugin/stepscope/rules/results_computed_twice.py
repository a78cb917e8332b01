"""The step computes results again that it has computed before."""

from collections.abc import Sequence

from stepscope.analyses.core import event_references
from stepscope.analyses.operators.noted_calls import noted_rows, noted_times
from stepscope.analyses.settings.tensor_values import NotedLine
from stepscope.base.calibration import COMPUTED_ONCE
from stepscope.base.findings import EvidenceTable
from stepscope.base.formatting import count, duration
from stepscope.model import intervals
from stepscope.rules import Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts
from stepscope.rules.shared.noted_values import claims, require_values

SMALL = 0.05
"""Lines with less of the repeated time are not named."""
MOST_LINES = 5


class Options(Thresholds):
    """Threshold of the repeated work."""

    least_share: float = option(
        0.02, "Fraction of the operators' time that is repeated.", origin="ours: below, not seen"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report operators whose result an earlier operator of the same step had."""
    values = require_values(trace)
    lines = [noted for noted in values.repeated if not noted.is_recomputed]
    total_ns = sum(noted.time_ns for noted in lines)
    if total_ns < options.least_share * values.operators_ns:
        return
    named = [noted for noted in lines if noted.time_ns >= SMALL * total_ns]
    rows = noted_rows(trace, (calls for noted in named for calls in noted.calls))
    times = noted_times(trace, rows)
    first = named[0]
    number = sum(noted.count for noted in named)
    yield Finding(
        confidence="high",
        message=f"{count(number, 'operator')} per step had the same result as an earlier one of "
        f"the step, and took {duration(total_ns)} of an unrecorded step: {first.line} computes "
        f"again what {_elsewhere(first)} has computed.",
        evidence=(
            facts.count("Operators per step with a result of before", number),
            facts.duration("Time in them per unrecorded step", total_ns),
            facts.fraction("Of the time in all operators", total_ns / values.operators_ns),
            facts.duration("Recorded time in them in total", intervals.duration_ns(times)),
        ),
        tables=(_table(named),),
        events=call_costs.longest(trace, rows),
        locations=event_references.source_lines(
            line for noted in named[:MOST_LINES] for line in (noted.line, noted.inner_line)
        ),
        claims=claims(
            times,
            COMPUTED_ONCE,
            "The time of operators whose result the step had before, with the host code "
            "between them; six tenths at least.",
        ),
        subject=first.line,
    )


def _elsewhere(noted: NotedLine) -> str:
    return "the same line" if noted.first_line == noted.line else noted.first_line


def _table(lines: Sequence[NotedLine]) -> EvidenceTable:
    return facts.table(
        "Lines that compute known results",
        {
            "Source line": "code",
            "Computed before in": "code",
            "Operators per step": "count",
            "Time per unrecorded step": "ns",
            "Main operator": "code",
        },
        (
            (
                noted.line,
                noted.first_line,
                noted.count,
                noted.time_ns,
                noted.calls[0].name if noted.calls else "",
            )
            for noted in lines
        ),
    )


RULE = Rule(
    id="results-computed-twice",
    title="The step computes the same results twice",
    passed="No large part of a step computes results that it had before",
    category="operators",
    why="A second forward pass on the same batch for a metric, a loss that is computed again for "
    "the log, or weights that each call converts anew give numbers that the step already has.",
    detects="Operators of an unrecorded step whose result has the same shape and bytes as that of "
    "an earlier call of the same operator in the step, as stepscope's recorder read them "
    "(`stepscope record`). It reports them from `least_share` of the operators' time on, by the "
    "outermost lines in which the two differ.",
    silent=(
        "Results that no step changes: loop-invariant-work reports those.",
        "Operators that activation checkpointing computes again.",
        "Results that differ by random numbers, such as dropout, or by updates in between.",
        "Results of fewer than 16 elements, or of equal elements.",
    ),
    saving="The time of these operators in the recorded steps, with the host code between them; "
    "six tenths at least.",
    fix=Fix(
        "Keep the first result, and use it again.",
        "logits = model(inputs)\n"
        "loss = criterion(logits, labels)\n"
        "accuracy = (logits.detach().argmax(1) == labels).float().mean()    # no second pass\n"
        "total += loss.detach()",
        verify="Record again: the line no longer computes known results.",
        caveats=(
            "Keeping a result for the backward pass takes memory; detach what only a log uses.",
        ),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="runtime",
    links=("generated/torch.Tensor.detach.html",),
    origin="ours: common subexpressions, as compilers find them",
    culprit="computing results twice",
)
