"""The same constant tensors are computed in every step."""

import numpy as np

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.constant_chains import ConstantChains, constant_chains
from stepscope.base.calibration import CONSTANTS_IN_THE_STEP
from stepscope.base.findings import EvidenceTable, Link
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.arrays import Floats
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases

MOST_SHOWN = 10
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
    "`least_share` of the window on.",
    silent=(
        "Chains whose numbers change from step to step, such as lengths of texts.",
        "Random numbers, and tensors of zeros or ones that may be filled later.",
        "Work on data that does not change (weights that are converted in each step, a normalised "
        "adjacency matrix): the trace does not show that the values are the same.",
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
