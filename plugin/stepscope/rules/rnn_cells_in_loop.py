"""Recurrent cells are called one time step after the other in a Python loop."""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import requirements
from stepscope.analyses.core.frame_times import times
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.python_operators import backward_times
from stepscope.analyses.operators.recurrent_cells import CellRuns, cell_runs
from stepscope.base.calibration import (
    GRU_CELLS_ON_CPU,
    HALF_TO_ALL,
    LARGE_LSTM_CELLS_ON_CPU,
    LARGE_RNN_CELLS_ON_CPU,
    LSTM_CELLS_ON_CPU,
    SMALL_LSTM_CELLS_ON_CPU,
    SMALL_RNN_CELLS_ON_CPU,
    Factor,
    either,
)
from stepscope.base.findings import Link
from stepscope.base.formatting import duration
from stepscope.model import intervals
from stepscope.model.arrays import Ints
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases, product_evidence

CALL_NS = 50_000
"""Recorded time up to which a linear layer, dropout or embedding is mostly its call and those of
its inner operators, which one operator for the sequence costs once."""
SMALL, LARGE = 2**20, 2**24
"""Multiplications of a cell's input product, below and above which its measured factors differ."""
LSTM_FACTORS = (SMALL_LSTM_CELLS_ON_CPU, LSTM_CELLS_ON_CPU, LARGE_LSTM_CELLS_ON_CPU)
RNN_FACTORS = (SMALL_RNN_CELLS_ON_CPU, LARGE_RNN_CELLS_ON_CPU, LARGE_RNN_CELLS_ON_CPU)
FACTORS = {
    "lstm_cell": LSTM_FACTORS,
    "gru_cell": (GRU_CELLS_ON_CPU,) * 3,
    "rnn_tanh_cell": RNN_FACTORS,
    "rnn_relu_cell": RNN_FACTORS,
}
MODULES = {"lstm_cell": "LSTM", "gru_cell": "GRU", "rnn_tanh_cell": "RNN", "rnn_relu_cell": "RNN"}


class Options(Thresholds):
    """Threshold of cells in a row."""

    least_count: int = option(
        8,
        "Cells of one run, from which on it is a loop over a sequence.",
        origin="ours: stacked layers of one time step are 2 to 4 cells",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report runs of recurrent cells, by the time of their forward and backward passes."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    cells = cell_runs(trace)
    lengths = np.bincount(cells.run)
    index = np.flatnonzero(lengths[cells.run] >= options.least_count)
    if len(index):
        yield _finding(trace, cells, index, int(lengths.max()))


def _finding(trace: Trace, cells: CellRuns, index: Ints, longest: int) -> Finding:
    rows = cells.rows[index]
    kinds = sorted({cells.kind[number] for number in index.tolist()})
    module = MODULES[kinds[0]]
    claims = tuple(_claims(trace, cells, index))
    time_ns = intervals.duration_ns(intervals.merged(*(claim.intervals for claim in claims)))
    runs = len(np.unique(cells.run[index]))
    link = Link(view="operators", search=f"aten::{kinds[0]}")
    return Finding(
        message=f"A Python loop calls {phrases.joined([f'aten::{kind}' for kind in kinds])} "
        f"{window(trace).per_step(len(rows)):,} times {phrases.per_step(trace)}, once for each "
        f"time step; forward and backward take {phrases.time_and_fraction(trace, time_ns)}. "
        f"nn.{module} takes a whole sequence in one call.",
        evidence=(
            facts.count("Cells in total", len(rows), link),
            facts.count("Runs of cells in total", runs),
            facts.count("Cells of the longest run", longest),
            facts.duration("Time in forward and backward in total", time_ns),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Recurrent cells"),),
        events=call_costs.longest(trace, rows),
        locations=call_costs.lines(trace, rows),
        claims=claims,
        fix=replace(RULE.fix, code=_code(kinds[0])),
        subject=kinds[0],
    )


def _claims(trace: Trace, cells: CellRuns, index: Ints) -> Iterator[Claim]:
    """Claim the cells of each measured size, forward and backward."""
    groups: dict[tuple[str, Factor], list[int]] = {}
    for number in index.tolist():
        factor = _factor(trace, cells.kind[number], int(cells.product_size[number]))
        groups.setdefault((cells.kind[number], factor), []).append(number)
    span = window(trace)
    start_ns, end_ns = (trace.host_calls[name].to_numpy() for name in ("start_ns", "end_ns"))
    is_long = (end_ns - start_ns)[cells.between] > CALL_NS
    remains = times(trace.host_calls, cells.between[is_long])
    for (kind, factor), members in groups.items():
        rows = cells.rows[members]
        forward = intervals.union(start_ns[rows], cells.end_ns[members])
        short = cells.between[~is_long & np.isin(cells.cell_before, members)]
        backward = backward_times(trace, np.concatenate((rows, short)))
        whole = intervals.merged(intervals.difference(forward, remains), backward)
        yield Claim(
            intervals.clip(whole, span.start_ns, span.end_ns),
            factor,
            f"From each {kind} to the next, and the backward pass, without operators between them "
            f"that take more than {duration(CALL_NS)}: {_method(trace, factor)}.",
        )


def _factor(trace: Trace, kind: str, product_size: int) -> Factor:
    if len(trace.device_events):
        return HALF_TO_ALL
    if product_size < 0:
        return either(*FACTORS[kind])
    return FACTORS[kind][(product_size > SMALL) + (product_size > LARGE)]


def _method(trace: Trace, factor: Factor) -> str:
    if len(trace.device_events):
        return "half of the host's time at least, where the host is the limit"
    return f"one call for the sequence is {product_evidence.times(factor)} times as fast"


def _code(kind: str) -> str:
    module = MODULES[kind]
    is_relu = kind == "rnn_relu_cell"
    arguments = "width, hidden, nonlinearity='relu'" if is_relu else "width, hidden"
    state = "(h, c)" if module == "LSTM" else "h"
    return (
        f"layer = nn.{module}({arguments})    # instead of nn.{module}Cell\n"
        f"outputs, {state} = layer(inputs, {state})    # inputs: (time, batch, width)\n"
        "# weights: layer.weight_ih_l0.data.copy_(cell.weight_ih), and so on"
    )


RULE = Rule(
    id="rnn-cells-in-loop",
    title="Recurrent cells are called in a Python loop",
    passed="No recurrent cell is called in a loop over time",
    category="operators",
    why="Each time step calls a dozen operators, forward and backward, with Python between. A "
    "recurrent layer multiplies the inputs of all time steps at once, and goes through the steps "
    "in one operator.",
    detects="Calls of aten::lstm_cell, aten::gru_cell, aten::rnn_tanh_cell and aten::rnn_relu_cell "
    "by Python, `least_count` or more in a row. Between them are only operators that prepare "
    "inputs or store outputs, and linear layers whose output has another width than the cells' "
    "inputs.",
    silent=(
        "Loops in which an input may depend on the last output (attention, sampling, a linear "
        "layer of the inputs' width between the cells): there a cell is right.",
        "Loops that mask the state after each step: nn.LSTM takes packed sequences instead.",
        "Cells written by hand, of which the trace shows only products.",
    ),
    saving="On a CPU the time from cell to cell and of the backward nodes, less the time of one "
    "call, as measured for cells of their size. Longer operators between the cells are left out. "
    "On a device half of the host's time at least; no pair of traces measures it yet.",
    fix=Fix(
        "Call a recurrent layer once for the whole sequence.",
        _code("lstm_cell"),
        verify="In the next trace the cell's operator is gone, and aten::lstm, aten::gru or "
        "aten::rnn_tanh is called once per layer.",
        caveats=(
            "If the model feeds its output back as the next input, keep the cell.",
            "Dropout between the time steps is not the same as nn.LSTM(dropout=), which is "
            "between layers.",
            "Results differ in the last digits.",
        ),
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "steps"}),
    priority="device work",
    links=("generated/torch.nn.LSTM.html", "generated/torch.nn.LSTMCell.html"),
    origin="ours: PyTorch's documentation of nn.LSTM and nn.LSTMCell",
    culprit="recurrent cells in a loop",
)
