"""The same constant tensors are computed in every step."""

from collections.abc import Sequence

import numpy as np

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.constant_chains import ConstantChains, constant_chains
from stepscope.analyses.operators.noted_calls import noted_rows, noted_times
from stepscope.analyses.settings.tensor_values import NotedLine, TensorValues, tensor_values
from stepscope.base.calibration import CONSTANTS_IN_THE_STEP
from stepscope.base.findings import EvidenceTable, Link
from stepscope.base.formatting import count, duration
from stepscope.model import intervals
from stepscope.model.arrays import Floats
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, noted_values, phrases

MOST_SHOWN = 10
MOST_LINES = 5
SMALL = 0.05
"""Lines with less of the constant operators' time are not named."""
NAMES_SHOWN = 8
ARROW = " → "


class Options(Thresholds):
    """Threshold of the chains' time."""

    least_share: float = option(
        0.02, "Fraction of the window in such chains.", origin="ours: half of less is not even 1 %"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report chains of operators whose results follow from numbers that no step changes."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    requirements.applies_if(window(trace).step_count > 1, "fewer than two steps were recorded")
    requirements.shapes(trace)
    if values := tensor_values(trace):
        yield from _by_values(trace, values, options)
        return
    chains, span = constant_chains(trace), window(trace)
    start_ns, end_ns = (trace.host_calls[name].to_numpy() for name in ("start_ns", "end_ns"))
    times = intervals.union(start_ns[chains.first], end_ns[chains.last])
    times = intervals.clip(times, span.start_ns, span.end_ns)
    time_ns = intervals.duration_ns(times)
    if not time_ns or phrases.fraction_of_window(trace, time_ns) < options.least_share:
        return
    costliest = _total_ns(trace, chains).argmax()
    text = _text(chains.chains[costliest])
    number = window(trace).per_step(len(chains.first))
    yield Finding(
        confidence="medium",
        message=f"{count(number, 'chain')} of operators {phrases.per_step(trace)} "
        f"{'computes' if number == 1 else 'compute'} from the same numbers in each step, which "
        f"takes {phrases.time_and_fraction(trace, time_ns)}: {text}.",
        evidence=(
            facts.count("Chains in total", len(chains.first)),
            facts.count("Operators in them in total", int(chains.length.sum())),
            facts.duration("Time in them in total", time_ns),
        ),
        tables=(_table(trace, chains),),
        events=call_costs.longest(trace, chains.first),
        locations=event_references.source_lines(
            event_references.line_of_host_call(trace, int(row))
            for row in chains.first[: call_costs.MOST_LINES]
        ),
        claims=(
            Claim(
                times,
                CONSTANTS_IN_THE_STEP,
                "From the first operator of each chain to its last; half of it at least.",
            ),
        ),
        subject=text,
    )


def _by_values(trace: Trace, values: TensorValues, options: Options) -> Results:
    """Report operators whose results were the same in two steps."""
    total_ns = sum(noted.time_ns for noted in values.constant)
    if total_ns < options.least_share * values.operators_ns:
        return
    named = [noted for noted in values.constant if noted.time_ns >= SMALL * total_ns]
    rows = noted_rows(trace, (calls for noted in named for calls in noted.calls))
    times = noted_times(trace, rows)
    number = sum(noted.count for noted in named)
    yield Finding(
        confidence="high",
        message=f"{count(number, 'operator')} per step had the same result in two steps, and took "
        f"{duration(total_ns)} of an unrecorded step, most of it in {named[0].line}.",
        evidence=(
            facts.count("Operators per step with a constant result", number),
            facts.duration("Time in them per unrecorded step", total_ns),
            facts.fraction("Of the time in all operators", total_ns / values.operators_ns),
            facts.duration("Recorded time in them in total", intervals.duration_ns(times)),
        ),
        tables=(_line_table(named),),
        events=call_costs.longest(trace, rows),
        locations=event_references.source_lines(noted.line for noted in named[:MOST_LINES]),
        claims=noted_values.claims(
            times,
            CONSTANTS_IN_THE_STEP,
            "The time of operators whose results no step changes, with the host code between "
            "them; half of it at least.",
        ),
        subject=named[0].line,
    )


def _line_table(lines: Sequence[NotedLine]) -> EvidenceTable:
    return facts.table(
        "Lines whose results no step changes",
        {
            "Source line": "code",
            "Operators per step": "count",
            "Time per unrecorded step": "ns",
            "Main operator": "code",
        },
        (
            (
                noted.line,
                noted.count,
                noted.time_ns,
                noted.calls[0].name if noted.calls else "",
            )
            for noted in lines
        ),
    )


def _total_ns(trace: Trace, chains: ConstantChains) -> Floats:
    start_ns, end_ns = (trace.host_calls[name].to_numpy() for name in ("start_ns", "end_ns"))
    return np.bincount(chains.chain, weights=end_ns[chains.last] - start_ns[chains.first]).astype(
        np.float64
    )


def _text(names: tuple[str, ...]) -> str:
    shown = [name.removeprefix("aten::") for name in names[:NAMES_SHOWN]]
    return ARROW.join([*shown, "…"] if len(names) > NAMES_SHOWN else shown)


def _table(trace: Trace, chains: ConstantChains) -> EvidenceTable:
    total_ns, number = _total_ns(trace, chains), np.bincount(chains.chain)
    order = np.argsort(-total_ns, kind="stable")[:MOST_SHOWN].tolist()
    return facts.table(
        "Chains of the same numbers",
        {"Operators": "code", "Calls": "count", "Time in total": "ns"},
        (
            facts.row(
                _text(chains.chains[index]),
                number[index],
                total_ns[index],
                link=Link(view="operators", search=chains.chains[index][0]),
            )
            for index in order
        ),
    )


RULE = Rule(
    id="loop-invariant-work",
    title="The same constant tensors are computed in every step",
    passed="No constant tensors are computed again in every step",
    category="operators",
    why="Positional encodings, masks, anchors and schedules of noise follow from sizes and numbers "
    "alone. Computed once, before the loop, they cost the step nothing.",
    detects="Chains of operators that Python calls one after the other: the first makes a tensor "
    "from numbers (aten::arange, aten::linspace, aten::eye; aten::ones and aten::full before "
    "aten::triu or aten::tril), and the others take only tensors of shapes that the chain made. "
    "It reports chains that occur in every step with the same numbers and shapes, from "
    "`least_share` of the window on. Where stepscope's recorder read the values of tensors "
    "(`stepscope record`), it reports instead all operators with a result that was the same in two "
    "successive steps.",
    silent=(
        "Chains whose numbers change from step to step, such as lengths of texts.",
        "Random numbers, and tensors of zeros or ones that may be filled later.",
        "Work on data that does not change (weights that are converted in each step, a normalised "
        "adjacency matrix) where values were not read.",
        "What follows an operator whose result's shape the rule does not know.",
        "Numbers that Python or NumPy computes in each step.",
    ),
    saving="The host's time from the first operator of each chain to its last; half of it at "
    "least, as in two pairs of traces.",
    fix=Fix(
        "Compute the tensors once, and keep them.",
        'self.register_buffer("waves", waves(length, width), persistent=False)    # in __init__\n'
        "waves = self.waves[:length]    # in forward; or functools.cache by size and device",
        verify="In the next trace the operators listed here are not called in each step.",
        caveats=(
            "If the tensor is changed in place later, take a clone of it.",
            "A tensor of another operator may by chance have the shape of the chain's: look at "
            "the lines before moving it.",
        ),
    ),
    effort="hour",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    links=("generated/torch.nn.Module.html",),
    origin="ours: loop-invariant code motion, as compilers do it",
    culprit="computing constants in each step",
)
