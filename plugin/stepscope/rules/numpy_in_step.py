"""NumPy, pandas or PIL compute within the step."""

from collections.abc import Iterator

from stepscope.analyses.core import event_references, requirements
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.device_presence import device_presence
from stepscope.analyses.host.library_detection import (
    TORCH_EQUIVALENTS,
    LabelTime,
    ProgramLocation,
    costliest_functions,
    label_times,
    library_times,
    program_locations,
    without_operators,
)
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.calibration import (
    NUMPY_TO_DEVICE,
    NUMPY_TO_TENSORS,
    UNSEEN_ARRAYS,
    UNSEEN_PYTHON,
)
from stepscope.base.findings import INFO_SHARE, EvidenceTable, Link, Unit
from stepscope.base.formatting import duration
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import facts, phrases

RECORD_STACKS = "torch.profiler.profile(..., with_stack=True)"
NAMES = {"numpy": "NumPy"}
"""Names of libraries that are not spelled as their package."""
Functions = tuple[tuple[str, str, int], ...]
"""Library, function and time, the costliest first."""


class Options(Thresholds):
    """Thresholds of the time in such functions."""

    mentioned_share: float = option(
        0.05,
        "Fraction of the window in these libraries from which it is listed as ruled out where "
        "the device works meanwhile.",
        origin="ours: a warning's fraction of the step",
    )
    empty_share: float = option(
        0.50,
        "Without stacks: fraction of a label's time outside operators from which something else "
        "fills it.",
        origin="ours: labels around torch's work have 0.02 to 0.18 in traces on the CPU, "
        "one around NumPy 0.99",
    )
    least_label_share: float = option(
        0.05,
        "Without stacks: fraction of the window under a label and outside operators.",
        origin="ours: a warning's fraction of the step; Python between operators takes less",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report time of the step in NumPy, pandas or PIL while no device works."""
    if not len(trace.python_calls):
        yield from _by_label(trace, options)
        return
    around = library_times(trace).with_gaps
    lost = _without_device_work(trace, around)
    if phrases.fraction_of_window(trace, intervals.duration_ns(lost)) >= INFO_SHARE:
        yield _finding(trace, lost)
        return
    total_ns = intervals.duration_ns(around)
    if phrases.fraction_of_window(trace, total_ns) < options.mentioned_share:
        return
    library = _library(costliest_functions(trace, around))
    yield RuledOut(
        message=f"The host is in {library} for {phrases.time_and_fraction(trace, total_ns)}, but "
        f"{phrases.device(trace)} works meanwhile: moving this work would save little now.",
        evidence=(
            facts.duration("Host in them in total", total_ns),
            facts.duration(
                f"{trace.dialect.device} idle meanwhile in total", intervals.duration_ns(lost)
            ),
        ),
        tables=(_table(program_locations(trace, around)),),
    )


def _without_device_work(trace: Trace, times: Intervals) -> Intervals:
    device = main_device(trace)
    return times if device is None else intervals.difference(times, device.busy)


def _finding(trace: Trace, lost: Intervals) -> Finding:
    sites, functions = program_locations(trace, lost), costliest_functions(trace, lost)
    library, device = _library(functions), device_presence(trace)
    inside = _without_device_work(trace, library_times(trace).inside)
    has_device = bool(len(trace.device_events))
    start, end = max(lost.tolist(), key=lambda pair: pair[1] - pair[0])
    return Finding(
        confidence="low" if device and not device.is_recorded else "high",
        message=_message(trace, lost, sites[0], functions),
        evidence=(
            facts.duration("In their functions in total", intervals.duration_ns(inside)),
            facts.duration("With the Python around them in total", intervals.duration_ns(lost)),
            facts.duration(
                "Longest stretch", end - start, Link(view="overview", start_ns=start, end_ns=end)
            ),
            *(
                facts.duration(f"In {NAMES.get(package, package)}'s {name} in total", time_ns)
                for package, name, time_ns in functions[:3]
            ),
            *(facts.text("Label", label) for label in [sites[0].label] if label),
        ),
        tables=(_table(sites),),
        locations=event_references.source_lines(site.frame or "" for site in sites),
        claims=(
            Claim(
                lost,
                NUMPY_TO_DEVICE if has_device else NUMPY_TO_TENSORS,
                f"At least {'three quarters' if has_device else 'half'} of the time in {library}'s "
                "functions; at most all time around them in which no device works.",
                low_intervals=inside,
            ),
        ),
        fix=_fix(trace, sites[0], functions),
    )


def _library(functions: Functions) -> str:
    return NAMES.get(functions[0][0], functions[0][0]) if functions else "NumPy"


def _message(trace: Trace, lost: Intervals, site: ProgramLocation, functions: Functions) -> str:
    library, lost_ns = _library(functions), intervals.duration_ns(lost)
    takes = phrases.time_and_fraction(trace, lost_ns)
    text = f"{library} takes {takes} on the CPU"
    if len(trace.device_events):
        text = f"The {trace.dialect.device} is idle for {takes} while the host is in {library}"
    label = f" under the label {site.label}" if site.label else ""
    location = f" at {site.frame}" if site.frame else ""
    mostly = "most of it in operators on arrays"  # which leave no function in the trace
    if 2 * sum(time_ns for _, _, time_ns in functions) >= lost_ns:
        _, name, time_ns = functions[0]
        mostly = f"{'most of it' if 2 * time_ns >= lost_ns else 'mainly'} in {name}"
    return f"{text}{label}{location}, {mostly}."


def _table(sites: tuple[ProgramLocation, ...]) -> EvidenceTable:
    rows = (
        facts.row(
            site.frame, site.label, site.time_ns, link=Link(view="operators", source=site.frame)
        )
        for site in sites
    )
    columns: dict[str, Unit] = {"Function": "code", "Label": "text", "Time in total": "ns"}
    return facts.table("Functions that use these libraries", columns, rows)


def _fix(trace: Trace, site: ProgramLocation, functions: Functions) -> Fix:
    """Return the torch functions that replace the recorded ones."""
    lines = [
        f"{TORCH_EQUIVALENTS[name]}  # in place of {NAMES.get(library, library)}'s {name}"
        for library, name, _ in functions
        if name in TORCH_EQUIVALENTS
    ]
    code = "\n".join(lines[:3]) or "result = torch.where(x > limit, x, 0)  # no .cpu().numpy()"
    where = f"the label {site.label}" if site.label else "this function"
    device = trace.dialect.device if len(trace.device_events) else "device of the model"
    return Fix(
        f"Do it with torch on the tensors themselves, on the {device}.",
        (f"# {site.frame}\n" if site.frame else "") + code,
        verify=f"The next trace has operators of torch in {where}, and no such functions.",
        caveats=(
            "NumPy computes in float64 where torch has float32: last digits of results differ.",
            "Do in DataLoader workers, or on another thread, what torch has no function for.",
            "Writers of logs and images use NumPy and PIL too: write every N steps.",
        ),
    )


def _by_label(trace: Trace, options: Options) -> Iterator[Finding]:
    """Report labels whose time is mostly outside operators; no stacks were recorded.

    With a device, `gpu-idle-gap` names the label of its idle time.

    Raises:
        MissingDataError: there is time outside operators, and no label for it.
    """
    least_ns = options.least_label_share * window(trace).reference_ns
    labels = [
        label
        for label in ([] if device_presence(trace) else label_times(trace))
        if label.empty_share >= options.empty_share
        and intervals.duration_ns(label.without_operators) >= least_ns
    ]
    yield from (_unknown_functions(trace, label) for label in labels)
    requirements.conclusive_if(
        labels or _unexplained_ns(trace) < least_ns,
        "no Python function was recorded",
        RECORD_STACKS,
    )


def _unexplained_ns(trace: Trace) -> int:
    device = main_device(trace)
    if device is None:
        return intervals.duration_ns(without_operators(trace))
    return idle_ledger(trace)[device.device].idle_ns["host-stall"]


def _unknown_functions(trace: Trace, label: LabelTime) -> Finding:
    time_ns = intervals.duration_ns(label.without_operators)
    is_array = 2 * intervals.duration_ns(label.handed_over) >= time_ns
    unknown = "NumPy, pandas, PIL or other Python may run there"
    made = "it ends in arrays that become tensors, as NumPy, pandas or PIL make them"
    per_step = duration(window(trace).per_step(time_ns))
    return Finding(
        confidence="medium" if is_array else "low",
        message=f"Under the label {label.label} no operator of torch runs for "
        f"{phrases.time_and_fraction(trace, time_ns)}. Stacks were not recorded: "
        f"{made if is_array else unknown}.",
        evidence=(
            facts.text("Label", label.label, Link(view="operators", search=label.label)),
            facts.duration("Time under it in total", label.total_ns),
            facts.fraction("Fraction of it outside operators", label.empty_share),
        ),
        claims=(
            Claim(
                label.without_operators,
                UNSEEN_ARRAYS if is_array else UNSEEN_PYTHON,
                f"At most all {per_step} without operators; at least two fifths of the part right "
                "before an array becomes a tensor."
                if is_array
                else f"At most all {per_step} without operators; nothing, if that work is needed.",
                low_intervals=label.handed_over if is_array else None,
                is_unslowed=True,
            ),
        ),
        fix=Fix(
            "Record stacks to see the functions, then do it with torch on the tensors.",
            f"{RECORD_STACKS}\ncells = torch.nonzero(x > limit)  # such as for np.argwhere",
            verify=f"The next trace names the functions under {label.label}.",
            caveats=(
                "Recording stacks slows down each operator: record few steps.",
                "If the program waits there, for a request or a file, nothing is saved.",
            ),
        ),
        subject=label.label,
    )


RULE = Rule(
    id="numpy-in-step",
    title="NumPy, pandas or PIL compute within the step",
    passed="NumPy, pandas and PIL take little time within the step",
    category="host",
    why="They compute on the CPU, mostly on one thread. Values are read from the device, the "
    "device waits, and results are copied back.",
    detects="With stacks: time of the main thread within the window in functions of NumPy, pandas "
    "or PIL while no device works. Since NumPy's operators leave no function in the trace, time "
    "without operators of torch also counts where these functions fill most of it, and between "
    "`tensor.numpy()` and `torch.from_numpy()` in one function. Without stacks, on the CPU: your "
    "labels (record_function) of which `empty_share` or more, and `least_label_share` of the "
    "window, is outside operators; then its confidence is low, or medium if most of that time ends "
    "in `torch.from_numpy` or `torch.as_tensor` (`aten::lift_fresh`).",
    silent=(
        "The DataLoader loads in its process: the DataLoader's rules report that.",
        "The device works meanwhile: from `mentioned_share` of the window on it is listed as "
        "ruled out.",
        "The label is written by torch itself (optimizers, collectives, compiled code).",
        "Without stacks and with a device, gpu-idle-gap reports its idle time and names the label.",
        "A device that was available and not recorded may have worked meanwhile: the confidence "
        "is low.",
    ),
    saving="At least half of the time in these functions, as a pair of traces on the CPU shows; "
    "at most all time around them. Without stacks from nothing to all, or at least two fifths "
    "of the time right before arrays become tensors. NumPy's temporary arrays also take memory "
    "that the next operators then touch for the first time: on a CPU they may become faster too.",
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
    priority="synchronization",
    after=("create-on-cpu-then-copy",),
    culprit="NumPy or other Python in the step",
    links=("/tutorials/beginner/profiler.html", "generated/torch.nonzero.html"),
    origin="the PyTorch profiler tutorial's masking example",
)
