"""Phases of the main thread's outermost operators, and of the gaps between them.

A forward call has a backward call with its sequence number. An operator that computes without
autograd (`no_grad`, `inference_mode`) has no sequence number, and one that makes a node of autograd
raises the number of the next. In training a heavy operator (`model_calls`) without a number, or
with nodes that no backward pass runs, is therefore a forward without backward. Other operators
belong to the phase around them, if it is the same before and after. In inference all operators are
the forward pass.
"""

import re
from dataclasses import dataclass

import numpy as np

from stepscope.analyses.core import ancestry
from stepscope.analyses.core.compile_events import GRAPH, REGION, compile_events
from stepscope.analyses.core.data_loading import data_loading
from stepscope.analyses.core.forward_backward import WRAPPER, forward_backward
from stepscope.analyses.core.host_activity import main_thread
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.host.optimizer_updates import update_starts
from stepscope.analyses.host.phase_names import (
    BACKWARD,
    CHECKPOINT,
    COLLECTIVES,
    COMPILING,
    FORWARD,
    FORWARD_ONLY,
    HOST_CODE,
    LOADING,
    NOT_MODEL,
    OF_OPTIMIZER,
    OPTIMIZER,
    PHASES,
)
from stepscope.analyses.operators.model_calls import MODEL_OPERATOR
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed

CODES = {phase: code for code, phase in enumerate(PHASES)}
OF_BACKWARD = (WRAPPER, "torch.distributed.ddp.reducer::")
"""Calls of autograd's engine, and of DDP when the pass ends."""
COLLECTIVE = re.compile(r"^(?:c10d::|gloo:|nccl:|mpi:|record_param_comms|_c10d_functional::)")
READS = re.compile(r"^aten::(?:item|is_nonzero|_local_scalar_dense)$")
MOVES = re.compile(
    r"^aten::(?:detach|empty|new_empty|empty_strided|set_|copy_|clone|to|_to_copy|resize_|alias)$"
)
"""Operators of copying a state: `state_dict` detaches each tensor, `deepcopy` and `save` copy."""
FACTORY = re.compile(
    r"^aten::(?:empty|zeros|ones|full|arange|linspace|rand|randn|randint|randperm|tensor)(?:_like)?$"
)
"""Operators without a sequence number in any mode."""
STATE = "aten::detach"
NUMBER = re.compile(r"^\[\[1?\]")
"""First input of one number, such as a loss that is logged: no part of a model's state."""
LEAST_STATE = 4
"""Consecutive detached tensors that make a state: a loop detaches one or two for its log."""
LONG_GAP_NS = 1_000_000
"""Python of a model between two operators takes some 10 µs; from 1 ms on the host does something
else, as in `gpu-idle-gap`. Between nodes of a backward pass the loop cannot run."""
SHORT_GAP_NS = 100_000
"""Python at the border of two phases, which belongs to the second."""
READ_GAP_NS = 20_000
"""After a value was read Python uses it: shorter gaps are the call's cost."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OperatorPhases:
    """Outermost operators of the main thread in the order of time; arrays are parallel."""

    rows: Ints
    """Rows of `host_calls`."""
    start_ns: Ints
    end_ns: Ints
    phase: Ints
    """Index into `PHASES`."""
    gap_phase: Ints
    """Phase of the gap before each operator; the last is behind all."""
    is_certain: Mask
    """Whether an operator's phase is its own: others may serve any purpose, and have the phase
    around them."""


@computed
def operator_phases(trace: Trace) -> OperatorPhases:
    """Return the outermost operators with their phases."""
    calls = trace.host_calls
    is_call = calls["is_operator"].to_numpy() | name_mask(calls["name"], _is_compiled)
    parent = calls["parent"].to_numpy()
    is_inside = np.append(ancestry.nearest(parent, is_call), NONE)[parent] != NONE
    on_main = (calls["thread"] == main_thread(trace)).to_numpy()
    rows = np.flatnonzero(is_call & ~is_inside & on_main)
    start, end = (calls[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    step = np.searchsorted(trace.steps["start_ns"].to_numpy(), start, side="right")
    is_read = name_mask(calls["name"], READS.match)[rows]
    certain, is_certain = _certain_phases(trace, rows)
    phase = _without_neutral(certain, step, is_read)
    phase = _with_results(trace, rows, phase)
    phase = _with_states(trace, rows, phase)
    return OperatorPhases(
        rows=rows,
        start_ns=start,
        end_ns=np.maximum.accumulate(end) if len(end) else end,
        phase=phase,
        gap_phase=_gap_phases(trace, rows, phase),
        is_certain=is_certain,
    )


def _is_compiled(name: str) -> bool:
    return bool(REGION.match(name) or GRAPH.match(name))


def _certain_phases(trace: Trace, rows: Ints) -> tuple[Ints, Mask]:
    """Return each operator's phase, `NOT_MODEL` where only its neighbours can tell; and which do.

    In inference all operators are the forward pass, although light ones may serve other purposes.
    """
    calls = trace.host_calls
    start = calls["start_ns"].to_numpy()[rows]
    phase = np.full(len(rows), CODES[NOT_MODEL])
    is_heavy = _contains(trace, rows, name_mask(calls["name"], _is_model))
    unused, linked = _forward(trace, rows)
    if is_training(trace):
        phase[is_heavy] = CODES[FORWARD]
        phase[is_heavy & unused] = CODES[FORWARD_ONLY]
    else:
        phase[:] = CODES[FORWARD]
    phase[linked] = CODES[FORWARD]
    phase[_in_optimizer(trace, rows) & (phase != CODES[FORWARD])] = CODES[OPTIMIZER]
    is_node = forward_backward(trace).node[rows] != NONE
    is_node |= name_mask(calls["name"], lambda name: name.startswith(OF_BACKWARD))[rows]
    phase[is_node] = CODES[BACKWARD]
    phase[name_mask(calls["name"], COLLECTIVE.search)[rows] & ~is_node] = CODES[COLLECTIVES]
    phase[compile_events(trace).phase[rows] != NONE] = CODES[COMPILING]
    phase[intervals.covered_ns(data_loading(trace).times, start, start + 1) > 0] = CODES[LOADING]
    is_light = ~is_heavy & ~linked & (phase == CODES[FORWARD])
    return phase, (phase != CODES[NOT_MODEL]) & ~is_light


def _is_model(name: str) -> bool:
    return bool(MODEL_OPERATOR.search(name) or _is_compiled(name))


def _contains(trace: Trace, rows: Ints, is_selected: Mask) -> Mask:
    """Return which rows are selected, or have a selected call in them."""
    parent = trace.host_calls["parent"].to_numpy()
    (count,) = ancestry.with_descendants(parent, is_selected.astype(np.int64))
    return np.asarray(count[rows] > 0)


def _forward(trace: Trace, rows: Ints) -> tuple[Mask, Mask]:
    """Return which operators made nodes that no backward pass ran, or none; and which were run."""
    calls = trace.host_calls
    number = calls["sequence_number"].to_numpy()[rows]
    maker = forward_backward(trace).forward
    is_maker = np.zeros(len(calls), dtype=bool)
    is_maker[maker[maker != NONE]] = True
    linked = _contains(trace, rows, is_maker)
    nodes = np.flatnonzero(forward_backward(trace).node != NONE)
    last_ns = int(calls["start_ns"].to_numpy()[nodes].max(initial=-1))
    is_before = calls["end_ns"].to_numpy()[rows] <= last_ns
    following = _next_number(number)
    made = (number != NONE) & (following > number) & is_before
    has_numbers = bool((number != NONE).any())
    return ~linked & (made | ((number == NONE) & has_numbers)), linked


def _next_number(number: Ints) -> Ints:
    """Return the sequence number of the next operator that has one, or -1."""
    numbered = np.flatnonzero(number != NONE)
    position = np.searchsorted(numbered, np.arange(len(number)), side="right")
    return np.asarray(np.append(number, NONE)[np.append(numbered, len(number))[position]])


def _in_optimizer(trace: Trace, rows: Ints) -> Mask:
    """Return which operators run in a call of an optimizer, after its closure."""
    calls = trace.host_calls
    is_label = name_mask(calls["name"], OF_OPTIMIZER.match)
    label = ancestry.nearest_of(calls["parent"].to_numpy(), rows.copy(), is_label)
    begin_ns = np.append(update_starts(trace), NONE)[label]
    return np.asarray((label != NONE) & (calls["start_ns"].to_numpy()[rows] >= begin_ns))


SAME_AROUND = (FORWARD, FORWARD_ONLY, BACKWARD)
JOINS = {(BACKWARD, OPTIMIZER): OPTIMIZER, (FORWARD, BACKWARD): BACKWARD}
"""Phases of operators between two phases: clipping of gradients, the first gradient."""


def _without_neutral(phase: Ints, step: Ints, is_read: Mask) -> Ints:
    """Return the phases, with those of operators between two of the same phase of a step.

    What reads a value at the border of two phases belongs to neither. Operators before a backward
    pass without a heavy operator are its forward pass.
    """
    certain = np.flatnonzero(phase != CODES[NOT_MODEL])
    position = np.searchsorted(certain, np.arange(len(phase)), side="left")
    last = len(phase)
    after = np.append(certain, last)[position]
    before = np.append(certain, last)[position - 1]
    before[position == 0] = last
    phases, steps = np.append(phase, NONE), np.append(step, NONE)
    is_open = (phase == CODES[NOT_MODEL]) & (steps[before] == step) & (steps[after] == step)
    result = phase.copy()
    for name in SAME_AROUND:
        code = CODES[name]
        result[is_open & (phases[before] == code) & (phases[after] == code)] = code
    is_first = (steps[before] != step) | ~np.isin(phases[before], [CODES[FORWARD], CODES[BACKWARD]])
    is_next = (steps[after] == step) & (phases[after] == CODES[BACKWARD])
    result[(phase == CODES[NOT_MODEL]) & is_first & is_next & ~is_read] = CODES[FORWARD]
    for (first, second), joined in JOINS.items():
        fits = (phases[before] == CODES[first]) & (phases[after] == CODES[second])
        result[is_open & fits & ~is_read] = CODES[joined]
    return result


def _with_results(trace: Trace, rows: Ints, phase: Ints) -> Ints:
    """Return the phases; what follows a forward without backward and has none is its loss."""
    unused, _ = _forward(trace, rows)
    is_made = name_mask(trace.host_calls["name"], FACTORY.match)[rows]
    follows = (phase == CODES[NOT_MODEL]) & unused & ~is_made
    last = np.maximum.accumulate(np.where(follows, -1, np.arange(len(rows))))
    is_result = follows & (last >= 0) & (phase[last] == CODES[FORWARD_ONLY])
    return np.where(is_result, CODES[FORWARD_ONLY], phase)


def _with_states(trace: Trace, rows: Ints, phase: Ints) -> Ints:
    """Return the phases, with those of operators that copy the model's state."""
    names = trace.host_calls["name"]
    is_number = name_mask(trace.host_calls["input_dims"], NUMBER.match)[rows]
    is_state = name_mask(names, STATE.__eq__)[rows] & (phase == CODES[NOT_MODEL]) & ~is_number
    is_move = name_mask(names, MOVES.match)[rows] & (phase == CODES[NOT_MODEL])
    run = np.cumsum(np.append(True, ~(is_state[1:] & is_state[:-1]))[: len(rows)])
    states = np.bincount(run, weights=is_state)[run] >= LEAST_STATE if len(rows) else is_state
    starts = is_state & states
    moves = np.cumsum(~is_move)
    first = np.full(int(moves.max(initial=0)) + 1, len(rows))
    np.minimum.at(first, moves[starts], np.flatnonzero(starts))
    result = phase.copy()
    result[is_move & (np.arange(len(rows)) >= first[moves])] = CODES[CHECKPOINT]
    return result


def _gap_phases(trace: Trace, rows: Ints, phase: Ints) -> Ints:
    """Return the phase of the gap before each operator, and of the one behind all."""
    calls = trace.host_calls
    start, end = (calls[name].to_numpy()[rows] for name in ("start_ns", "end_ns"))
    before, after = np.append(NONE, phase), np.append(phase, NONE)
    if not len(rows):
        return np.array([CODES[HOST_CODE]])
    gap_ns = np.append(np.append(0, start[1:] - np.maximum.accumulate(end)[:-1]), 0)
    is_short = (gap_ns < LONG_GAP_NS) | (before == CODES[BACKWARD])
    inner = (before == after) & (before != CODES[NOT_MODEL]) & is_short
    is_read = np.append(False, name_mask(calls["name"], READS.match)[rows])
    inner &= ~is_read | (gap_ns < READ_GAP_NS)
    border = (before != NONE) & (after != NONE) & (gap_ns < SHORT_GAP_NS) & ~is_read
    result = np.full(len(rows) + 1, CODES[HOST_CODE])
    result[border] = after[border]
    result[inner] = before[inner]
    result[before == CODES[CHECKPOINT]] = CODES[CHECKPOINT]
    return result
