"""A Python loop calls a model for one sample after the other."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.product_shapes import distinct, shape
from stepscope.analyses.operators.python_operators import backward_times, python_operators
from stepscope.analyses.operators.sample_loops import LAYER, LINEAR, SampleLoops, sample_loops
from stepscope.base.calibration import (
    HALF_TO_ALL,
    LONG_LAYERS_PER_SAMPLE_ON_CPU,
    ROWS_PER_SAMPLE_ON_CPU,
    SHORT_LAYERS_PER_SAMPLE_ON_CPU,
    Factor,
)
from stepscope.base.findings import EventReference, EvidenceTable, Link
from stepscope.base.formatting import count
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.model.frames.name_masks import name_mask
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases

MOST_SHOWN = 10
LONG_NS = 400_000
"""Mean time of a layer beyond which it computes most of the time, for one sample as well."""
PAUSE_NS = 20_000
"""Time without an operator up to which it is Python between operators; a longer one is work of the
program (an environment's step), which remains."""


READS = (
    " Python reads a result of each call: if the next call depends on it, as with the steps of one "
    "environment, it has to wait."
)


class Options(Thresholds):
    """Threshold of iterations."""

    least_repeats: int = option(
        4,
        "Iterations of one loop.",
        origin="ours: a model is called for two or three views of a batch, not for four",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report loops over samples, by the time of all but their first iteration."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    requirements.shapes(trace)
    loops = sample_loops(trace, options.least_repeats)
    if not len(loops.first):
        return
    requirements.conclusive_if(
        window(trace).has_steps,
        f"the model is called {int(loops.repeats.max())} times in a row, for requests or for the "
        "samples of one step",
        requirements.RECORD_STEPS,
    )
    yield _finding(trace, loops)


def _finding(trace: Trace, loops: SampleLoops) -> Finding:
    claims = tuple(_claims(trace, loops))
    time_ns = intervals.duration_ns(intervals.merged(*(claim.intervals for claim in claims)))
    iterations = int(loops.repeats.sum())
    longest = int((loops.repeats * loops.layers).argmax())
    first = int(loops.first[longest])
    name, dims = _layer(trace, first)
    reads = loops.reads_results[longest]
    varying = " of changing size" if loops.has_varying_sizes[longest] else ""
    return Finding(
        confidence="low" if reads else "medium",
        message=f"A Python loop calls the same {count(int(loops.layers[longest]), 'layer')} for "
        f"one sample{varying} after the other, {window(trace).per_step(iterations):,} times "
        f"{phrases.per_step(trace)}; all but the first call of each loop take "
        f"{phrases.time_and_fraction(trace, time_ns)}.{READS if reads else ''}",
        evidence=(
            facts.count("Loops in total", len(loops.first)),
            facts.count("Iterations in total", iterations),
            facts.code(
                "First layer", f"{name} {dims}", Link(view="operators", search=name, group="shape")
            ),
            facts.duration("Time of all but the first iterations in total", time_ns),
        ),
        tables=(_table(trace, loops),),
        events=_events(trace, loops),
        locations=call_costs.lines(trace, loops.second),
        claims=claims,
        fix=_fix(has_varying_sizes=bool(loops.has_varying_sizes[longest])),
        subject=name,
    )


def _claims(trace: Trace, loops: SampleLoops) -> Iterator[Claim]:
    """Claim all but the first iteration of the loops of each measured kind."""
    span, rows = window(trace), np.sort(python_operators(trace).rows)
    layers = rows[name_mask(trace.host_calls["name"], LAYER.match)[rows]]
    factors = [
        _factor(trace, layers[slice(*np.searchsorted(layers, (first, last + 1)))])
        for first, last in zip(loops.first.tolist(), loops.last.tolist(), strict=True)
    ]
    begin_ns, end_ns = (trace.host_calls[name].to_numpy() for name in ("start_ns", "end_ns"))
    busy = times(trace.host_calls, rows)
    pauses = intervals.complement(busy, span.start_ns, span.end_ns)
    long_pauses = pauses[np.diff(pauses, axis=1)[:, 0] > PAUSE_NS]
    for factor, method in dict.fromkeys(factors):
        members = [number for number, other in enumerate(factors) if other == (factor, method)]
        second, last = loops.second[members], loops.last[members]
        repeated = [
            rows[slice(*np.searchsorted(rows, (begin, end + 1)))]
            for begin, end in zip(second.tolist(), last.tolist(), strict=True)
        ]
        forward = intervals.difference(intervals.union(begin_ns[second], end_ns[last]), long_pauses)
        whole = intervals.merged(forward, backward_times(trace, np.concatenate(repeated)))
        yield Claim(
            intervals.clip(whole, span.start_ns, span.end_ns),
            factor,
            "From each loop's second iteration to its last layer, without longer pauses between "
            f"operators, and the backward pass of these: {method}.",
        )


def _factor(trace: Trace, layers: Ints) -> tuple[Factor, str]:
    """Return the factor of a loop with these layers, and its meaning."""
    if len(trace.device_events):
        return HALF_TO_ALL, "half of the host's time at least, where the host is the limit"
    calls = trace.host_calls
    _, shapes = distinct(trace, layers)
    if all(name == LINEAR and shape(dims, 0)[:-1] == (1,) for name, dims in shapes):
        return ROWS_PER_SAMPLE_ON_CPU, "at least 90 %, of linear layers of one row"
    if calls["duration_ns"].to_numpy()[layers].mean() <= LONG_NS:
        return SHORT_LAYERS_PER_SAMPLE_ON_CPU, "at least 60 %, of layers of up to 400 µs"
    return LONG_LAYERS_PER_SAMPLE_ON_CPU, "20 to 60 %, of layers of more than 400 µs"


def _layer(trace: Trace, row: int) -> tuple[str, str]:
    """Return a layer's name and its input's and weight's shapes."""
    [(name, dims)] = distinct(trace, np.array([row]))[1]
    return name, " × ".join(str(list(shape(dims, index))) for index in (0, 1))


def _table(trace: Trace, loops: SampleLoops) -> EvidenceTable:
    kinds: dict[tuple[str, str, int], list[int]] = {}
    for number, row in enumerate(loops.first.tolist()):
        kinds.setdefault((*_layer(trace, row), int(loops.layers[number])), []).append(number)
    end, begin = (trace.host_calls[name].to_numpy() for name in ("end_ns", "start_ns"))
    rows = [
        (
            name,
            dims,
            layers,
            len(members),
            int(loops.repeats[members].sum()),
            int((end[loops.last[members]] - begin[loops.first[members]]).sum()),
        )
        for (name, dims, layers), members in kinds.items()
    ]
    return facts.table(
        "Loops over samples",
        {
            "First layer": "code",
            "Shapes": "text",
            "Layers of an iteration": "count",
            "Loops": "count",
            "Iterations": "count",
            "Forward time in total": "ns",
        },
        sorted(rows, key=lambda row: -row[-1])[:MOST_SHOWN],
        "operators",
    )


def _events(trace: Trace, loops: SampleLoops) -> tuple[EventReference, ...]:
    order: Ints = np.argsort(-loops.repeats * loops.layers, kind="stable")[:MOST_SHOWN]
    return tuple(
        event_references.host_call(
            trace,
            int(loops.first[number]),
            detail=f"loop of {count(int(loops.repeats[number]), 'iteration')}",
        )
        for number in order.tolist()
    )


def _fix(*, has_varying_sizes: bool) -> Fix:
    if not has_varying_sizes:
        return RULE.fix
    return replace(
        RULE.fix,
        code="batch = Batch.from_data_list(graphs)    # torch_geometric: one graph of all\n"
        "outputs = model(batch)                  # instead of [model(graph) for graph in graphs]\n"
        "# sequences: pad_sequence(samples, batch_first=True) and a mask, or a nested tensor",
    )


RULE = Rule(
    id="model-called-per-sample",
    title="A Python loop calls a model for one sample after the other",
    passed="Models are called for batches, not for one sample after the other",
    category="operators",
    why="Each call costs its operators, forward and backward, some microseconds each, and reads "
    "all weights again. One call for all samples costs that once.",
    detects="Linear and convolutional layers that Python calls in the same order `least_repeats` "
    "times or more in a row in one step, with a batch of one that the loop takes out of a tensor "
    "or makes (`x[i]`, `unsqueeze`, a new tensor), where the last layer's output cannot be the "
    "first one's input. In a forward pass with gradients also inputs whose sizes go up and down; "
    "there fewer weights get gradients than layers are called.",
    silent=(
        "Layers that follow each other: the output of one is the input of the next.",
        "Token by token generation, recurrent networks and other loops that join a state to the "
        "input.",
        "Loops whose output has the shape of their input, such as sampling from a diffusion model: "
        "each iteration may need the one before.",
        "Without gradients several models (experts, ensembles) of one shape look like one; only "
        "with a batch of one they are reported.",
        "Loops without layers are those of python-loop-indexing.",
    ),
    saving="On a CPU the time of all iterations but the first, and of their backward passes, of "
    "which at least 90 % goes for linear layers of one row, 60 % for layers of up to 0.4 ms and 20 "
    "% for longer ones, as measured. Pauses of more than 20 µs between operators remain. On a "
    "device half of the host's time at least; no pair of traces measures it yet.",
    fix=Fix(
        "Call the model once for all samples, if one does not depend on the other.",
        "outputs = model(torch.stack(samples))    # instead of [model(x[None]) for x in samples]\n"
        "outputs = torch.vmap(function)(batch)    # what is written for one sample\n"
        "envs = gymnasium.make_vec(name, num_envs=n)    # one call of the policy for all",
        verify="The layers in Operators have the batch as their first size, and are called once "
        "per step.",
        caveats=(
            "If an iteration needs the result of the one before, it has to stay.",
            "Batch normalisation in training mode takes other statistics of a batch than of one "
            "sample.",
            "A batch needs memory for the results of all samples at once.",
        ),
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    links=("generated/torch.vmap.html", "generated/torch.stack.html"),
    origin="ours: PyTorch's tutorial on torch.vmap and model ensembling",
    culprit="calling the model once per sample",
)
