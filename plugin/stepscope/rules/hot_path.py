"""Functions, lines or phases that no training step needs take much of the step."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from stepscope.analyses.core import event_references
from stepscope.analyses.core.training_detection import is_training
from stepscope.analyses.core.window import window
from stepscope.analyses.host.phase_costs import PhaseCost, lines_of, phase_costs
from stepscope.analyses.host.phase_names import (
    CHECKPOINT,
    FORWARD,
    FORWARD_ONLY,
    HOST_CODE,
    LOGGING,
    NOT_MODEL,
    PHASES,
)
from stepscope.analyses.host.sampled_lines import lines_in
from stepscope.analyses.host.step_phases import step_phases
from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.base.calibration import LOCATED_WORK, UP_TO_ALL
from stepscope.base.findings import CRITICAL_SHARE, Severity
from stepscope.base.formatting import capitalized, duration, share
from stepscope.model import intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases
from stepscope.rules.shared.sampled_work import SURE_SHARE, SampledWork, sampled_work
from stepscope.rules.shared.step_phases import (
    is_in_most_steps,
    is_validation,
    line_table,
    phase_table,
    phase_takes,
    require_host_phases,
    sampled_table,
)
from stepscope.rules.shared.step_savings import unrecorded_reference_ns

CLAIMED = (
    HOST_CODE, LOGGING, "tokenizing", "images", "json", "network", "files", "sleep", "locks",
)  # fmt: skip
"""Phases of Python that no other rule names."""
NAMED = CLAIMED[1:]
"""Phases that functions name."""
NAMED_IN_MESSAGE = 2
UNSAMPLED = (FORWARD_ONLY, CHECKPOINT)
"""Phases that samples of lines do not tell from others."""
SURE_SAMPLES = 6
"""Fewer on a place may be of one long step."""
MOST_LINES = 5
"""Sampled lines of a phase that a finding names."""
SLOW_CALL_NS = 1_000
"""Calls as short as this are slowed severalfold: recording one takes some 0.2 to 0.5 µs."""
SLOWED = "Recording many short Python calls slows them: record without stacks to see their time."
RECORD_STACKS = "profile(..., with_stack=True)  # names the function that takes the time"


class Options(Thresholds):
    """Fractions of the window, from 0 to 1."""

    least_share: float = option(
        0.05, "Time in one phase from which it is named.", origin="ours: a warning's fraction"
    )
    sure_share: float = option(
        SURE_SHARE,
        "Lower end of the samples' confidence interval from which the work is a warning.",
        origin="ours: from 0.05 on, 3 of 60 healthy scripts in sample_logs/record/zoo had one for "
        "a few samples on lines that they need",
    )
    warning_share: float = option(
        CRITICAL_SHARE,
        "Time in such phases of Python together from which it is a warning; critical, where "
        "samples or functions name the work.",
        origin="ours: a critical finding's fraction; it names a location, not a cause",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report phases besides forward, backward and optimizer that no other rule names."""
    require_host_phases(trace)
    sampled = [work for work in sampled_work(trace) if work.share >= options.least_share]
    for work in sampled:
        yield _sampled_finding(trace, work, options)
    phases = UNSAMPLED if sampled else (*UNSAMPLED, *CLAIMED, NOT_MODEL)
    costs = [
        cost
        for cost in phase_costs(trace)
        if cost.share >= options.least_share
        and cost.phase in phases
        and _is_unnamed(trace, cost.phase)
    ]
    if costs:
        yield _finding(trace, costs, options)


def _sampled_finding(trace: Trace, work: SampledWork, options: Options) -> Finding:
    spot, step_ns = work.spot, _unrecorded_step_ns(trace)
    return Finding(
        severity=_sampled_severity(work, options),
        confidence="medium" if spot.count >= SURE_SAMPLES else "low",
        message=_sampled_message(work, step_ns),
        evidence=(
            facts.duration("Time in each unrecorded step", work.share * step_ns),
            facts.fraction("At least, of the step (95 % confidence)", work.low),
            facts.fraction("At most, of the step", work.high),
            facts.count("Samples", spot.count),
            facts.text("Kind of work", PHASES[spot.phase]),
            *((facts.code("Called from", spot.caller),) if spot.caller else ()),
        ),
        tables=(phase_table(trace), *sampled_table(trace)),
        locations=event_references.source_lines(spot.lines),
        claims=work.claims,
        fix=_sampled_fix(trace, work),
        subject=spot.name,
    )


def _unrecorded_step_ns(trace: Trace) -> float:
    steps = measured_steps(trace)
    return steps.step_ns if steps else window(trace).per_step(unrecorded_reference_ns(trace))


def _sampled_severity(work: SampledWork, options: Options) -> Severity:
    """Return the severity: of few long operators a hint, which the program may need."""
    if not work.is_python or work.low < options.sure_share:
        return "info"
    return "critical" if work.share >= options.warning_share else "warning"


def _sampled_message(work: SampledWork, step_ns: float) -> str:
    spot = work.spot
    lines = event_references.source_lines(spot.lines)
    numbers = list(dict.fromkeys(str(line.line) for line in lines))
    noun = "line" if len(numbers) == 1 else "lines"
    time = f"{duration(work.share * step_ns)} of each unrecorded step ({share(work.share)})"
    subject = spot.lines[0].partition("(")[0]
    function = spot.name.rpartition(": ")[2].partition(" #")[0]
    code = "the training loop" if not spot.caller else function
    where = ""
    if spot.is_callback:
        where = f" It is a callback of {spot.caller}."
    elif spot.caller:
        where = f" It is called in {spot.caller}."
    verb = "take" if len(numbers) > 1 else "takes"
    return (
        f"{capitalized(noun)} {phrases.joined(numbers)} of {subject} ({code}) {verb} {time}, by "
        f"{spot.count} samples: {PHASES[spot.phase]}.{where}"
    )


def _sampled_fix(trace: Trace, work: SampledWork) -> Fix:
    in_inference = ON_DEVICE if len(trace.device_events) else IN_INFERENCE
    general = RULE.fix if is_training(trace) else in_inference
    fix = FIXES.get(work.spot.phase, general)
    summary = f"{fix.summary} It is in {work.spot.lines[0]}."
    return replace(fix, summary=summary, verify=VERIFY)


def _is_unnamed(trace: Trace, phase: str) -> bool:
    """Return whether no other rule names a phase."""
    if phase == FORWARD_ONLY:
        return not is_validation(trace)
    if phase == CHECKPOINT:
        return not is_in_most_steps(trace, CHECKPOINT)
    return phase in (*CLAIMED, NOT_MODEL)


def _finding(trace: Trace, costs: list[PhaseCost], options: Options) -> Finding:
    claimed = [cost for cost in costs if cost.phase in CLAIMED]
    is_slowed = _is_slowed(trace, claimed)
    locations = [cost.location for cost in costs]
    return Finding(
        severity=_severity(trace, claimed, options, is_slowed=is_slowed),
        confidence="low" if is_slowed else "medium",
        message=_message(trace, costs),
        evidence=(
            *(
                facts.duration(f"{capitalized(cost.label)} per step", _per_step(trace, cost))
                for cost in costs
            ),
            facts.fraction("Of the steps with it", step_phases(trace).steps_with(costs[0].phase)),
        ),
        tables=(phase_table(trace), line_table(trace, costs), *sampled_table(trace)),
        locations=event_references.source_lines(
            (
                *(text for location in locations for text in (location.line, location.activity)),
                *(
                    line.frame
                    for cost in costs
                    for line in lines_of(trace, cost.phase)[:MOST_LINES]
                ),
            )
        ),
        claims=() if is_slowed else tuple(_claims(trace, claimed)),
        fix=_with_caveat(_fix(trace, costs[0])) if is_slowed else _fix(trace, costs[0]),
        subject=costs[0].phase,
    )


def _severity(
    trace: Trace, costs: Sequence[PhaseCost], options: Options, *, is_slowed: bool
) -> Severity:
    """Return the severity: critical where functions name phases that no step needs."""
    named = sum(cost.share for cost in costs if cost.phase != HOST_CODE)
    if not named:
        sampled = [line for line in lines_in(trace, HOST_CODE) if line.phase in NAMED]
        named = sum(line.interval[0] for line in sampled)
    if named >= options.warning_share and not is_slowed:
        return "critical"
    is_large = sum(cost.share for cost in costs) >= options.warning_share
    return "warning" if is_large else "info"


def _per_step(trace: Trace, cost: PhaseCost) -> int:
    return window(trace).per_step(cost.time_ns)


def _is_slowed(trace: Trace, costs: Iterable[PhaseCost]) -> bool:
    """Return whether recording Python calls may be most of a phase's time."""
    start = trace.python_calls["start_ns"].to_numpy()
    times = intervals.merged(intervals.EMPTY, *(cost.times for cost in costs))
    calls = np.count_nonzero(intervals.covered_ns(times, start, start + 1))
    return bool(calls * SLOW_CALL_NS > intervals.duration_ns(times))


def _with_caveat(fix: Fix) -> Fix:
    return replace(fix, caveats=(*fix.caveats, SLOWED))


def _claims(trace: Trace, costs: Iterable[PhaseCost]) -> Iterator[Claim]:
    """Claim the phases; surely a half of those whose line or function is recorded."""
    times = intervals.merged(intervals.EMPTY, *(cost.times for cost in costs))
    if not len(times):
        return
    located = [cost for cost in costs if cost.phase != HOST_CODE or _has_recorded_line(trace, cost)]
    sure = intervals.merged(intervals.EMPTY, *(cost.times for cost in located))
    method = "An upper bound: all time in these phases in which no device works"
    if not len(sure):
        yield Claim(times, UP_TO_ALL, f"{method}.", is_unslowed=True)
        return
    method = f"{method}; at least half of it where a function or a line is known."
    yield Claim(times, LOCATED_WORK, method, low_intervals=sure, is_unslowed=True)


def _has_recorded_line(trace: Trace, cost: PhaseCost) -> bool:
    return bool(cost.location.line and len(trace.python_calls))


def _message(trace: Trace, costs: list[PhaseCost]) -> str:
    clauses = [phase_takes(trace, cost) for cost in costs[:NAMED_IN_MESSAGE]]
    return f"{capitalized('; '.join(clauses))}."


EVERY_FIFTY = "if step % 50 == 0:\n    {call}"
FIXES: dict[str, Fix] = {
    LOGGING: Fix(
        "Log every 50 steps, of tensors that were collected in between.",
        EVERY_FIFTY.format(call="writer.add_scalar('loss', torch.stack(losses).mean(), step)"),
    ),
    "tokenizing": Fix(
        "Tokenize the data set once, before training, or in the DataLoader's workers.",
        "dataset = dataset.map(tokenize, batched=True, num_proc=8)",
    ),
    "images": Fix(
        "Decode and transform images in the DataLoader's workers; write pictures every 50 steps.",
        "loader = DataLoader(dataset, ..., num_workers=4)  # the work goes into __getitem__\n"
        + EVERY_FIFTY.format(call="save_picture(step)"),
    ),
    "json": Fix(
        "Write every 50 steps, and only the lines that are new.",
        EVERY_FIFTY.format(call="file.write(''.join(json.dumps(row) + '\\n' for row in new))"),
    ),
    "network": Fix(
        "Fetch or send in another thread, ahead of the step that needs it.",
        "upcoming = pool.submit(fetch, next_key)  # and upcoming.result() in the next step",
    ),
    "files": Fix(
        "Read ahead in the DataLoader's workers, and write every 50 steps.",
        EVERY_FIFTY.format(call="file.writelines(lines)"),
    ),
    "sleep": Fix("Remove the sleep, or wait for the event itself.", "ready.wait()"),
    "locks": Fix(
        "Find the thread or process that the loop waits for, and start it a step earlier.",
        "upcoming = pool.submit(work, next_batch)  # and upcoming.result() in the next step",
    ),
    NOT_MODEL: Fix(
        "Compute metrics every 50 steps, and make inputs in the DataLoader's workers.",
        EVERY_FIFTY.format(call="accuracy = (logits.argmax(1) == targets).float().mean()"),
    ),
    FORWARD: Fix(
        "Make it once, outside of the forward pass, or with operators on whole tensors.",
        "self.register_buffer('mask', mask, persistent=False)  # in __init__",
    ),
    FORWARD_ONLY: Fix(
        "Compute it less often, in larger batches, or once for all steps if it does not change.",
        "with torch.inference_mode():\n    features = teacher(inputs)  # once, and store them",
    ),
    CHECKPOINT: Fix(
        "Save less often, or copy the state to the CPU and write it in a thread.",
        EVERY_FIFTY.format(call="torch.save(model.state_dict(), path)"),
    ),
}
VERIFY = "In the next trace the phase takes less than 5 % of the step."
IN_INFERENCE = Fix(
    "Prepare once, before the first call, what does not change, and compute the rest with "
    "operators on whole batches.",
    "model = load_model()    # at start, not in each call",
    verify=VERIFY,
)
ON_DEVICE = replace(
    IN_INFERENCE,
    summary="Prepare once, before the first call, what does not change, and compute the rest on "
    "the device, with operators on whole batches.",
    code="result = hidden.mean(1).cpu()    # not hidden.cpu().numpy().mean(1)",
)


def _fix(trace: Trace, cost: PhaseCost) -> Fix:
    sampled = lines_in(trace, cost.phase) if cost.phase == HOST_CODE else ()
    fix = FIXES.get(sampled[0].phase if sampled else cost.phase, RULE.fix)
    has_line = bool(cost.location.line or len(trace.python_calls))
    if not has_line and cost.phase == HOST_CODE:
        return replace(fix, code=RECORD_STACKS)
    if cost.location.line:
        summary = f"{fix.summary} It is in {cost.location.line}."
        return replace(fix, summary=summary, verify=VERIFY)
    return replace(fix, verify=VERIFY)


RULE = Rule(
    id="hot-path",
    title="Work besides the model takes much of the step",
    passed="No work without a rule of its own takes much of the step",
    category="host",
    why="A step needs a batch and the model's forward pass; in training also the backward pass and "
    "the optimizer. Everything else in the loop can be done less often, once, or in another "
    "process.",
    detects="Where the recorder sampled unrecorded steps: each function or group of lines outside "
    "the model, its backward pass and the optimizer with `least_share` of the step or more, as far "
    "as the trace confirms that so much time is no training; in a forward pass functions whose "
    "Python takes the time. It is a warning where the confidence interval begins at `sure_share` "
    "or above, and critical from `warning_share` on. Without samples: phases of the main thread "
    "besides forward, backward and optimizer that take `least_share` of the window or more while "
    "no device works, and that no other rule names: Python outside operators, logging, tokenizing, "
    "images, JSON, network, files, sleep, locks, operators outside the model, forward passes "
    "without a backward pass and checkpoints. Functions name the phase where stacks were recorded; "
    "otherwise operators, sequence numbers, annotations and the gaps between operators do. From "
    "`warning_share` in such phases of Python on it is a warning.",
    silent=(
        "Data loading, NumPy, pandas, garbage collection, compiling and collectives have rules of "
        "their own.",
        "Validation and checkpoints in most steps are reported by validation-in-step and "
        "checkpoint-in-step.",
        "A sampled function with fewer than three samples may be chance.",
        "A sampled function of which the trace confirms less than 40 % may be a model that is no "
        "nn.Module.",
        "Fewer than 50 operators per step that take half of such time do real work: a hint.",
        "Python between two operators of one phase belongs to it up to 1 ms.",
        "Without samples, gaps between operators that few steps have (the median step less than "
        "half of the mean) may be other processes: step-time-jitter reports such steps.",
        "What happens while a device works costs nothing.",
    ),
    saving="By samples: the confidence interval (95 %) of the fraction of the step on these lines, "
    "at least 0.75 of its lower end; where a device works, at most the time in the trace that is "
    "no training. It was fitted on 17 faults of the scripts in sample_logs/record/zoo. Without "
    "samples: all time in these phases of Python, at least half of it where a function or a line "
    "is known. Operators are then only listed: the program may need them. Nothing is "
    "claimed where more than one Python call per microsecond was recorded, since recording slows "
    "them.",
    fix=Fix(
        "Do every 50 steps what the training does not use. Prepare once what does not change, and "
        "compute the rest with operators on whole tensors.",
        EVERY_FIFTY.format(call="report(step)"),
        verify=VERIFY,
        caveats=("Python that prepares the next step's input can run in a DataLoader's worker.",),
    ),
    effort="hour",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "clocks", "steps"}),
    priority="program",
    after=("no-gpu-work",),
    links=("/tutorials/recipes/recipes/tuning_guide.html",),
    origin="ours: every step has the same three phases",
    culprit="work besides the model",
)
