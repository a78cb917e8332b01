"""Inference that records gradients, or runs in training mode."""

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import requirements
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.operators.model_calls import training_layers
from stepscope.base.calibration import RECORDING_GRADIENTS
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Link
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.replay.fresh_memory import computing_ns, result_pages
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, step_savings

RECORDING_NS = 3_000
"""Greatest time in which an operator makes its node for the backward pass and stores what that
needs."""
KEPT_PAGE_NS = 400
"""Greatest time that a page (4 KiB) of its result takes more, since results are kept: the next one
gets no memory that is in a cache."""
RECORD_OPERATORS = "torch.profiler.profile(activities=[ProfilerActivity.CPU, ...])"
Rows = NDArray[np.int64]


class Options(Thresholds):
    """Thresholds of operators recorded for a backward pass."""

    least_share: float = option(
        0.10,
        "Operators that have a sequence number, of all operators.",
        origin="ours: under no_grad none has one; custom operators of vLLM leave 1.3 %, inference "
        "with gradients 36 %",
    )
    least_count: int = option(
        10, "How many of them there are at least.", origin="ours: fewer say nothing about a model"
    )


def check(trace: Trace, options: Options) -> Results:
    """Report inference with gradients on, and layers that train in it."""
    if not trace.host_calls["is_operator"].any():
        reason = "no operator was recorded"
        raise MissingDataError(reason, RECORD_OPERATORS)
    requirements.applies_if(
        not is_training(trace),
        "a backward pass or an optimizer's step was recorded: this is training",
    )
    calls = trace.host_calls
    is_recorded = (calls["sequence_number"].to_numpy() >= 0) & calls["is_operator"].to_numpy()
    recorded = np.flatnonzero(is_recorded)
    operator_count = int(calls["is_operator"].sum())
    is_recording = len(recorded) >= max(options.least_count, options.least_share * operator_count)
    if is_recording:
        yield _with_gradients(trace, recorded, len(recorded) / operator_count)
    rows = training_layers(trace)
    if len(rows):
        yield _in_training_mode(trace, rows, is_recording=is_recording)


def _with_gradients(trace: Trace, recorded: Rows, recorded_share: float) -> Finding:
    number = count(len(recorded), "operator")
    claims = (_claim(trace, recorded),)
    return Finding(
        severity="info",
        message=f"{number} ({share(recorded_share)}) were recorded for a backward pass that never "
        "comes: gradients are on. Results of these operators may be kept in memory for it.",
        evidence=(
            facts.count("Operators recorded for a backward pass", len(recorded)),
            facts.fraction("Of all operators", recorded_share),
        ),
        tables=(
            call_costs.by_name(
                trace.host_calls, recorded, "Operators recorded for a backward pass"
            ),
        ),
        locations=call_costs.lines(trace, recorded),
        claims=claims if step_savings.is_worth_reporting(trace, claims) else (),
        fix=GRADIENTS_OFF,
        subject="gradients",
    )


def _claim(trace: Trace, recorded: Rows) -> Claim:
    start_ns, end_ns = (
        trace.host_calls[name].to_numpy()[recorded] for name in ("start_ns", "end_ns")
    )
    retained_ns = np.minimum(computing_ns(trace), KEPT_PAGE_NS * result_pages(trace))[recorded]
    claimed_ns = RECORDING_NS + retained_ns.astype(np.int64)
    return Claim(
        intervals.union(start_ns, np.minimum(end_ns, start_ns + claimed_ns)),
        RECORDING_GRADIENTS,
        "The first 3 µs of each operator that is recorded for a backward pass, and 0.4 µs per "
        "4 KiB of its result, where shapes show it; 40 % of it at least.",
    )


def _in_training_mode(trace: Trace, rows: Rows, *, is_recording: bool) -> Finding:
    names = trace.host_calls["name"].iloc[rows].astype(str)
    named = ", ".join(sorted(set(names)))
    text = (
        f"{count(len(rows), 'call')} of {named} behave as in training, though nothing trains: "
        "results are random, or depend on what else is in the batch."
    )
    if is_recording:
        text += " If this is the forward pass of a training, record its backward pass too."
    return Finding(
        severity="info" if is_recording else "warning",
        confidence="medium",
        message=text,
        evidence=(
            facts.count(
                "Calls in training mode", len(rows), Link(view="operators", search=names.iloc[0])
            ),
        ),
        tables=(call_costs.by_name(trace.host_calls, rows, "Layers in training mode"),),
        events=call_costs.longest(trace, rows),
        locations=call_costs.lines(trace, rows),
        fix=EVALUATING,
        risk="behaviour",
        subject="training mode",
    )


GRADIENTS_OFF = Fix(
    "Switch gradients off for inference.",
    "model.eval()\n"
    "with torch.inference_mode():    # or torch.no_grad(), where results are trained on later\n"
    "    output = model(batch)",
    verify="Operators carry no sequence number, and the peak of memory is lower.",
    caveats=("What inference_mode returns cannot take part in a backward pass later.",),
)
EVALUATING = Fix(
    "Put the model into evaluation mode before inference.",
    "model.eval()    # and model.train() again before training goes on",
    verify="aten::dropout calls nothing, and aten::batch_norm has training=False.",
    caveats=("Monte Carlo dropout wants this: then suppress the rule with that reason.",),
)

RULE = Rule(
    id="inference-mode-off",
    title="Inference records gradients or runs in training mode",
    passed="Inference runs without gradients and in evaluation mode",
    category="inference",
    why="With gradients on, each operator makes a node for the backward pass and keeps what that "
    "would need. In training mode dropout drops, and normalisation takes the batch's own "
    "statistics and changes the model's.",
    detects="Looks at traces without a backward pass and without an optimizer. It reports where "
    "`least_share` of the operators, and `least_count`, have a sequence number, which torch gives "
    "where gradients are on; and where dropout or batch normalisation were called to train.",
    silent=(
        "In training: a backward pass or an optimizer's step was recorded.",
        "Batch normalisation without running statistics has no other mode.",
        "Without record_shapes=True the mode of batch normalisation is unknown.",
    ),
    saving="With gradients on, about 1 to 3 µs of each operator that is recorded for a backward "
    "pass, and where shapes show its result, 0.2 to 0.4 µs per 4 KiB of it, where that is 1 % or "
    "more. In training mode nothing is claimed: it costs correctness.",
    fix=GRADIENTS_OFF,
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting"}),
    priority="runtime",
    links=(
        "notes/autograd.html#locally-disabling-gradient-computation",
        "/tutorials/recipes/recipes/tuning_guide.html",
    ),
    origin="PyTorch's tuning guide: disable gradient calculation for validation or inference",
    culprit="recording gradients",
)
