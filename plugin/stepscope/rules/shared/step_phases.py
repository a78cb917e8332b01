"""Phases of steps in sentences, and which of them most steps have."""

import re
from collections.abc import Iterable

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.window import window
from stepscope.analyses.host.phase_costs import PhaseCost
from stepscope.analyses.host.phase_names import FORWARD_ONLY, PHASES, PLURAL, phase_of_label
from stepscope.analyses.host.phase_operators import CODES, operator_phases
from stepscope.analyses.host.sampled_lines import (
    LEAST_SAMPLES,
    lines_in,
    sampled_lines,
)
from stepscope.analyses.host.step_phases import step_phases
from stepscope.base.findings import EvidenceTable, Unit
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.trace import Trace, computed
from stepscope.rules.shared import facts, phrases

MOST_STEPS = 0.5
"""Of the steps: what happens in fewer is done every so many steps already."""
LOSS = re.compile(
    r"^aten::(?:\w*cross_entropy\w*|\w*nll_loss\w*|\w*(?:mse|l1|huber|hinge|margin|bce|ctc)_loss\w*"
    r"|\w*_embedding_loss)$"
)
"""A loss that no backward pass uses is a number to look at."""
MODE = re.compile(r"(?:^|/)torch/nn/modules/module\.py\(\d+\): eval$")
FUNCTION = re.compile(r": (\w+)$")


def require_host_phases(trace: Trace) -> None:
    """Check that the trace has steps, and operators in them.

    Raises:
        NotApplicableError: no steps are marked.
        MissingDataError: no operator was recorded.
    """
    requirements.applies_if(window(trace).has_steps, "no steps are marked")
    requirements.conclusive_if(
        trace.host_calls["is_operator"].any(),
        "no operator was recorded",
        "profile(activities=[ProfilerActivity.CPU, ...])",
    )


def phase_takes(trace: Trace, cost: PhaseCost) -> str:
    """Return a clause: `JSON takes 3 ms per step (9.3 %), most of it in train.py(9): log`."""
    verb = "take" if cost.phase in PLURAL else "takes"
    location = cost.location.line or cost.location.activity.strip("<>")
    preposition = "" if location.startswith("after ") else "in "
    where = f", most of it {preposition}{location}" if location else ""
    return f"{cost.label} {verb} {phrases.time_and_fraction(trace, cost.time_ns)}{where}"


def is_in_most_steps(trace: Trace, phase: str) -> bool:
    """Return whether at least half of the steps have a phase."""
    return step_phases(trace).steps_with(phase) >= MOST_STEPS


@computed
def is_validation(trace: Trace) -> bool:
    """Return whether forward passes without a backward pass validate, in most steps.

    Then they end in a loss, the program switches to the evaluation mode, or the user's function or
    label says so. A teacher, a frozen model or a rollout does none of that.
    """
    if not is_in_most_steps(trace, FORWARD_ONLY):
        return False
    phases = operator_phases(trace)
    rows = phases.rows[phases.phase == CODES[FORWARD_ONLY]]
    if name_mask(trace.host_calls["name"], LOSS.match)[rows].any():
        return True
    if lines_in(trace, FORWARD_ONLY):
        return True
    cut = step_phases(trace).stretches
    of_phase = cut.phase == CODES[FORWARD_ONLY]
    texts = [cut.lines[line] for line in np.unique(cut.line[of_phase]).tolist()]
    texts += [cut.activities[row] for row in np.unique(cut.activity[of_phase]).tolist()]
    return any(MODE.search(text) or _says_so(text) for text in texts)


def _says_so(text: str) -> bool:
    function = FUNCTION.search(text)
    return phase_of_label(function[1] if function else text) == FORWARD_ONLY


WORTH_LISTING = 0.01
REST = "between the host's steps, or after the last"
MOST_LINES = 10


def phase_table(trace: Trace) -> EvidenceTable:
    """Return all phases of the host, with forward, backward and optimizer, and the rest."""
    phases, span = step_phases(trace), window(trace)
    columns: dict[str, Unit] = {
        "Phase": "text",
        "Host time per step": "ns",
        "Of the step": "share",
        "Largest line": "code",
        "Largest activity": "code",
    }
    rows = []
    for phase in sorted(PHASES, key=lambda phase: -phases.total_ns(phase)):
        total_ns = phases.total_ns(phase)
        share = total_ns / span.reference_ns
        if share >= WORTH_LISTING:
            location = phases.locations(phase)[0]
            time_ns = span.per_step(total_ns)
            rows.append((PHASES[phase], time_ns, share, location.line, location.activity))
    rest_ns = span.reference_ns - int(phases.duration_ns.sum())
    if rest_ns >= WORTH_LISTING * span.reference_ns:
        rows.append((REST, span.per_step(rest_ns), rest_ns / span.reference_ns, "", ""))
    return facts.table("Phases of a step on the host", columns, rows)


def line_table(trace: Trace, costs: Iterable[PhaseCost]) -> EvidenceTable:
    """Return the largest lines of some phases."""
    phases = step_phases(trace)
    rows = [
        (location.line, location.activity, cost.label, location.time_ns)
        for cost in costs
        for location in phases.locations(cost.phase, MOST_LINES)
        if location.time_ns >= WORTH_LISTING * phases.total_ns(cost.phase)
    ]
    columns: dict[str, Unit] = {
        "Source line": "code",
        "Activity": "code",
        "Phase": "text",
        "Host time in total": "ns",
    }
    ordered = sorted(rows, key=lambda row: -row[3])[:MOST_LINES]
    return facts.table("Lines that take this time", columns, ordered)


def sampled_table(trace: Trace) -> tuple[EvidenceTable, ...]:
    """Return the largest lines of unrecorded steps in all phases; nothing without samples."""
    lines = [line for line in sampled_lines(trace) if line.count >= LEAST_SAMPLES]
    columns: dict[str, Unit] = {
        "Source line": "code",
        "Phase": "text",
        "Of the step": "share",
        "At least": "share",
        "At most": "share",
        "Samples": "count",
    }
    rows = [
        (line.frame, PHASES[line.phase], line.share, *line.interval, line.count)
        for line in lines[:MOST_LINES]
    ]
    title = "Lines of unrecorded steps, by samples (95 % confidence)"
    return (facts.table(title, columns, rows),) if rows else ()
