"""A line of Python runs many times in a step, each time for small operators."""

from collections.abc import Sequence

from stepscope.analyses.core import event_references
from stepscope.analyses.operators.noted_calls import noted_rows, noted_times
from stepscope.analyses.settings.tensor_values import NotedLine
from stepscope.base.calibration import LOOP_OF_OPERATORS
from stepscope.base.findings import EvidenceTable
from stepscope.base.formatting import count, duration
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases
from stepscope.rules.shared.noted_values import require_values

SMALL = 0.05
"""Lines with fewer of the operators in loops are not named."""
MOST_LINES = 5


class Options(Thresholds):
    """Thresholds of the loops."""

    least_runs: int = option(
        32, "Times that a step runs the line.", origin="ours: more than the layers of most models"
    )
    least_share: float = option(
        0.05, "Fraction of the window in such loops.", origin="ours: a warning's fraction"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report loops by the recorded time of their operators and of the Python between them."""
    values = require_values(trace)
    loops = [noted for noted in values.loops if noted.runs >= options.least_runs]
    number = sum(noted.count for noted in loops)
    named = sorted(
        (noted for noted in loops if noted.count >= SMALL * number), key=lambda noted: -noted.count
    )
    rows = noted_rows(trace, (calls for noted in named for calls in noted.calls))
    times = noted_times(trace, rows)
    time_ns = intervals.duration_ns(times)
    if not time_ns or phrases.fraction_of_window(trace, time_ns) < options.least_share:
        return
    first = named[0]
    yield Finding(
        confidence="high",
        message=f"{first.line} runs {first.runs:,} times per step, for "
        f"{count(first.count, 'operator')} of {duration(first.time_ns / first.count)} on average"
        f"{_others(named)}: with the Python between them, "
        f"{phrases.time_and_fraction(trace, time_ns)}.",
        evidence=(
            facts.count("Operators in such loops per step", number),
            facts.duration(
                "Time in them per unrecorded step", sum(noted.time_ns for noted in named)
            ),
            facts.duration("Recorded time with the Python between, in total", time_ns),
        ),
        tables=(_table(named),),
        events=call_costs.longest(trace, rows),
        locations=event_references.source_lines(
            line for noted in named[:MOST_LINES] for line in (noted.line, noted.first_line)
        ),
        claims=(
            Claim(
                times,
                LOOP_OF_OPERATORS,
                "From each loop's first operator to its last; half of it at least.",
            ),
        ),
        subject=first.line,
    )


def _others(named: Sequence[NotedLine]) -> str:
    return f", and {count(len(named) - 1, 'other line')} alike" if len(named) > 1 else ""


def _table(named: Sequence[NotedLine]) -> EvidenceTable:
    return facts.table(
        "Lines that run many times per step",
        {
            "Source line": "code",
            "Called from": "code",
            "Runs per step": "count",
            "Operators per step": "count",
            "Time in them per unrecorded step": "ns",
            "Main operator": "code",
        },
        (
            (
                noted.line,
                noted.first_line,
                noted.runs,
                noted.count,
                noted.time_ns,
                noted.calls[0].name if noted.calls else "",
            )
            for noted in named
        ),
    )


RULE = Rule(
    id="operators-in-python-loop",
    title="A Python loop calls small operators one by one",
    passed="No Python loop calls many small operators",
    category="host",
    why="Each call of an operator takes some microseconds of Python and of dispatch, however "
    "small its tensors are. One operator on a tensor with one more dimension does the work of "
    "all iterations.",
    detects="Source lines that ran `least_runs` times or more in an unrecorded step, each time for "
    "operators of 20 µs or less on average, outside of backward passes and of libraries, as "
    "stepscope's recorder noted them (`stepscope record`); reported where the operators and the "
    "Python between them take `least_share` of the window or more.",
    silent=(
        "Loops over layers, whose operators take longer.",
        "Loops inside libraries, such as an optimizer's.",
        "Loops without operators: hot-path names their lines.",
    ),
    saving="The recorded time of these operators with the Python between them; half of it at "
    "least.",
    fix=Fix(
        "Compute all iterations at once.",
        "losses = F.mse_loss(predictions, targets, reduction='none').mean(1)    # of all samples\n"
        "states = environments.step(actions)    # a batch of environments in one tensor\n"
        "results = torch.vmap(function)(inputs)    # where the loop's body is a function\n"
        "torch._foreach_lerp_(averages, parameters, 0.001)    # of lists of tensors",
        verify="Record again: the line runs a few times per step.",
        caveats=("An iteration that needs the one before cannot be batched: compile its body.",),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    after=("python-loop-indexing", "rnn-cells-in-loop", "model-called-per-sample"),
    links=("generated/torch.vmap.html",),
    origin="ours: vectorization, as NumPy's users know it",
    culprit="a Python loop",
)
