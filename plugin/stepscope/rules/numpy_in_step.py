"""NumPy, pandas or PIL in the middle of the step."""

from collections.abc import Iterator
from dataclasses import dataclass

from stepscope.analyses.core import event_references
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.device_presence import device_presence
from stepscope.analyses.host.label_times import LabelTime, label_times
from stepscope.analyses.host.library_locations import (
    TORCH_EQUIVALENTS,
    ProgramLocation,
    costliest_functions,
    program_locations,
)
from stepscope.analyses.host.library_times import library_times, without_operators
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.calibration import NUMPY_TO_TENSORS, UNSEEN_PYTHON
from stepscope.base.errors import MissingDataError
from stepscope.base.findings import Evidence, EvidenceTable, Fix, Link
from stepscope.base.formatting import duration, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import INFO_SHARE, Claim, Finding, Rule, RuledOut, RuleResult, option
from stepscope.rules.shared import facts, phrases

RECORD_STACKS = "torch.profiler.profile(..., with_stack=True)"
SPELLED = {"numpy": "NumPy", "pandas": "pandas", "PIL": "PIL"}


@dataclass(frozen=True, kw_only=True)
class Options:
    """Thresholds of stretches in such functions."""

    mentioned_share: float = option(
        0.05,
        "Host time of the window in these libraries from which it is listed as rejected where the "
        "device works meanwhile.",
        origin="ours: a warning's share of the step, so that it would look like one",
    )
    empty_share: float = option(
        0.50,
        "Without stacks: of a label's time in no operator, from which something else fills it.",
        origin="ours: labels around torch's work have 0.02 to 0.18 in traces on the CPU, one "
        "around NumPy 0.99",
    )
    least_label_share: float = option(
        0.05,
        "Without stacks: such time of the window.",
        origin="ours: a warning's share of the step; Python between operators takes less",
    )


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report time of the step that goes to NumPy, pandas or PIL while nothing else works."""
    if not len(trace.python_calls):
        yield from _by_label(trace, options)
        return
    around = library_times(trace).with_gaps
    lost = _lost(trace, around)
    reference_ns = window(trace).reference_ns
    if intervals.duration_ns(lost) >= INFO_SHARE * reference_ns:
        yield _finding(trace, lost)
    elif intervals.duration_ns(around) >= options.mentioned_share * reference_ns:
        yield _rejected(trace, around)


def _lost(trace: Trace, times: Intervals) -> Intervals:
    """Return the part of some times in which no device works."""
    device = main_device(trace)
    return times if device is None else intervals.difference(times, device.busy)


def _finding(trace: Trace, lost: Intervals) -> Finding:
    where = program_locations(trace, lost)
    functions = costliest_functions(trace, lost)
    library = _library(functions)
    text = (
        f"The {trace.dialect.device} is idle for {_lasting(trace, lost)} while the host is in "
        f"{library}"
        if len(trace.device_events)
        else f"Instead of torch, {library} takes {_lasting(trace, lost)}"
    )
    device = device_presence(trace)
    return Finding(
        confidence="low" if device and not device.is_recorded else "high",
        message=f"{text}{_at(where[0])}{_mostly(lost, functions)}.",
        evidence=_evidence(trace, lost, where, functions),
        tables=(_table(where),),
        locations=event_references.source_lines(site.frame or "" for site in where),
        claims=(
            Claim(
                lost,
                NUMPY_TO_TENSORS,
                f"At least half of the time in {library}'s functions; at most all time around them "
                "in which nothing else works.",
                low_intervals=_lost(trace, library_times(trace).inside),
            ),
        ),
        fix=_fix(trace, where[0], functions),
    )


def _library(functions: tuple[tuple[str, str, int], ...]) -> str:
    return SPELLED.get(functions[0][0], functions[0][0]) if functions else "NumPy"


def _mostly(lost: Intervals, functions: tuple[tuple[str, str, int], ...]) -> str:
    """Say what most of the time is spent in; functions on arrays leave a trace, operators none."""
    named_ns, half_ns = sum(time_ns for _, _, time_ns in functions), intervals.duration_ns(lost) / 2
    if named_ns < half_ns:
        return ", most of it in operators on arrays"
    return (
        f", {'most of it' if functions[0][2] >= half_ns else 'first of all'} in {functions[0][1]}"
    )


def _lasting(trace: Trace, times: Intervals) -> str:
    span, total_ns = window(trace), intervals.duration_ns(times)
    part = share(total_ns / span.reference_ns)
    return f"{phrases.time(trace, total_ns)} ({part})"


def _at(site: ProgramLocation) -> str:
    label = f" under the label {site.label}" if site.label else ""
    return f"{label} at {site.frame}" if site.frame else label


def _evidence(
    trace: Trace,
    lost: Intervals,
    where: tuple[ProgramLocation, ...],
    functions: tuple[tuple[str, str, int], ...],
) -> tuple[Evidence, ...]:
    start, end = max(lost.tolist(), key=lambda pair: pair[1] - pair[0])
    inside = _lost(trace, library_times(trace).inside)
    return (
        facts.duration("In their functions, in total", intervals.duration_ns(inside)),
        facts.duration("With the Python around them, in total", intervals.duration_ns(lost)),
        facts.duration(
            "Longest stretch", end - start, Link(view="overview", start_ns=start, end_ns=end)
        ),
        *(
            facts.duration(f"In {SPELLED.get(library, library)}'s {name}", time)
            for library, name, time in functions[:3]
        ),
        *(facts.text("Label", label) for label in [where[0].label] if label),
    )


def _table(where: tuple[ProgramLocation, ...]) -> EvidenceTable:
    return facts.table(
        "Where, the costliest first",
        {"Function": "code", "Label": "text", "Takes": "ns"},
        (
            facts.row(
                site.frame,
                site.label,
                site.time_ns,
                link=Link(view="operators", source=site.frame),
            )
            for site in where
        ),
    )


def _fix(trace: Trace, site: ProgramLocation, functions: tuple[tuple[str, str, int], ...]) -> Fix:
    """Return the torch functions that stand for those seen."""
    lines = [
        f"{TORCH_EQUIVALENTS[name]}  # in place of {SPELLED.get(library, library)}'s {name}"
        for library, name, _ in functions
        if name in TORCH_EQUIVALENTS
    ]
    code = "\n".join(lines[:3]) or "result = torch.where(x > limit, x, 0)  # no .cpu().numpy()"
    at = f"# {site.frame}\n" if site.frame else ""
    where = f"the label {site.label}" if site.label else "this function"
    device = trace.dialect.device if len(trace.device_events) else "device of the model"
    return Fix(
        f"Do it with torch on the tensors themselves, on the {device}.",
        at + code,
        verify=f"The next trace has operators of torch in {where}, and no such functions.",
        caveats=(
            "NumPy computes in float64 where torch has float32: last digits of results differ.",
            "What torch has no function for belongs in DataLoader workers, or on a thread beside "
            "the step.",
            "Writers of logs and images use NumPy and PIL too: write every N steps.",
        ),
    )


def _rejected(trace: Trace, around: Intervals) -> RuledOut:
    functions = costliest_functions(trace, around)
    return RuledOut(
        message=f"The host is in {_library(functions)} for {_lasting(trace, around)}, but the "
        f"{trace.dialect.device} works meanwhile: moving it would save little now.",
        evidence=(
            facts.duration("Host in them", intervals.duration_ns(around)),
            facts.duration(
                f"{trace.dialect.device} idle meanwhile",
                intervals.duration_ns(_lost(trace, around)),
            ),
        ),
        tables=(_table(program_locations(trace, around)),),
    )


def _by_label(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report the user's labels that hold mostly time without operators; stacks are missing.

    Where a device works, its stalls tell more: `gpu-idle-gap` names the label.

    Raises:
        MissingDataError: time without operators is left, and nothing tells what it is.
    """
    least_ns = options.least_label_share * window(trace).reference_ns
    labels = [] if device_presence(trace) else label_times(trace)
    unexplained = [
        label
        for label in labels
        if label.empty_share >= options.empty_share
        and intervals.duration_ns(label.without_operators) >= least_ns
    ]
    yield from (_unseen(trace, label) for label in unexplained)
    if not unexplained and _untold_ns(trace) >= least_ns:
        msg = "no Python function was recorded"
        raise MissingDataError(msg, RECORD_STACKS)


def _untold_ns(trace: Trace) -> int:
    device = main_device(trace)
    if device is None:
        return intervals.duration_ns(without_operators(trace))
    return idle_ledger(trace)[device.device].idle_ns["host-stall"]


def _unseen(trace: Trace, label: LabelTime) -> Finding:
    empty_ns = intervals.duration_ns(label.without_operators)
    return Finding(
        confidence="low",
        message=f"Under the label {label.label} no operator of torch runs for "
        f"{_lasting(trace, label.without_operators)}. Stacks were not recorded, so nothing tells "
        "what does: NumPy, pandas, PIL or other Python.",
        evidence=(
            facts.text("Label", label.label, Link(view="operators", search=label.label)),
            facts.duration("Time under it", label.total_ns),
            facts.fraction("Of it in no operator", label.empty_share),
        ),
        claims=(
            Claim(
                label.without_operators,
                UNSEEN_PYTHON,
                f"At most all {duration(window(trace).per_step(empty_ns))} without operators, if "
                "they can go; nothing, if they are needed.",
            ),
        ),
        fix=Fix(
            "Record stacks to see what runs there, then do it with torch on the tensors.",
            f"{RECORD_STACKS}\ncells = torch.nonzero(x > limit)  # such as for np.argwhere",
            verify=f"The next trace names the functions under {label.label}.",
            caveats=("Stacks make each operator slower to record: keep the steps few.",),
        ),
        subject=label.label,
    )


RULE = Rule(
    id="numpy-in-step",
    title="NumPy, pandas or PIL in the middle of the step",
    category="host",
    why="They compute on the CPU, mostly on one thread, and torch sees nothing of it: values are "
    "read from the device, the device waits, and results are copied back.",
    detects="With stacks: time of the main thread within the window in functions of NumPy, pandas "
    "or PIL, while no device works; and, since NumPy's operators leave no function, time without "
    "an operator of torch which these functions fill for the most part, or between "
    "`tensor.numpy()` and `torch.from_numpy()` in one function. Without stacks, on the CPU: your "
    "labels (record_function) of which `empty_share` or more, and `least_label_share` of the "
    "window, is in no operator of torch; then its confidence is low.",
    silent=(
        "What a DataLoader does in its own process is loading: the DataLoader's rules tell of it.",
        (
            "Where the device works meanwhile, nothing is lost: from `mentioned_share` of the "
            "window on it is listed as rejected."
        ),
        "Labels that torch writes itself (optimizers, collectives, compiled code) are not yours.",
        "Where a device was available and not recorded, it may have worked meanwhile: the "
        "confidence "
        "is low.",
        "Without stacks, beside a device: gpu-idle-gap tells of its stalls, and names the label.",
    ),
    saving="At least half of the time in these functions: so much was won on the CPU in a pair of "
    "traces. At most all time around them. Without stacks from nothing to all.",
    fix=Fix(
        "Do it with torch on the tensors themselves.",
        "cells = torch.nonzero(x > limit)  # in place of np.argwhere(x.cpu().numpy() > limit)",
        verify="The next trace has no such function in its steps.",
    ),
    effort="hour",
    risk="numerics",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "clocks", "steps"}),
    priority=100,
    culprit="NumPy or other Python in the step",
    links=(
        "https://docs.pytorch.org/tutorials/beginner/profiler.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nonzero.html",
    ),
    origin="the PyTorch profiler tutorial's masking example",
)
