"""Anomaly detection, or a check of gradients, is on."""

import re

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core import ancestry, frame_times, requirements
from stepscope.analyses.core.call_paths import python_nesting
from stepscope.analyses.core.device_activity import all_busy, main_device
from stepscope.analyses.core.links import links
from stepscope.analyses.core.synchronizations import synchronizations
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.gpu_bound import exclusive_device_time
from stepscope.analyses.host.optimizer_updates import launched_work
from stepscope.analyses.host.profiler_cost import NodeStacks, anomaly_checks, node_stacks
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.base.calibration import ALL_OF_IT, CHECKS_FOR_NAN_ON_CPU
from stepscope.base.findings import Evidence, Link, severity_of
from stepscope.base.formatting import share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, phrases

FRAME = re.compile(r"\btorch[/\\]autograd[/\\](?P<tool>anomaly_mode|gradcheck)\.py\(")
COMPILER = re.compile(r"\btorch[/\\](?:_dynamo|_functorch)[/\\]")
"""AOTAutograd switches the mode on, without checks, while it traces (torch 2.13)."""
TOOLS = {"anomaly_mode": "Anomaly detection", "gradcheck": "gradcheck"}
Rows = NDArray[np.int64]


class Options(Thresholds):
    """Thresholds from which checks are the mode's, and not the program's."""

    least_checks: int = option(
        10,
        "Checks for NaN right in the engine's ranges of the backward pass, in the window.",
        origin="ours: the mode checks each result of each backward function, 76 in a small model; "
        "a program's hooks are few",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report anomaly detection by its checks, or by torch's frames on the stack."""
    requirements.applies_if(len(trace.host_calls), "no operator was recorded")
    checks = anomaly_checks(trace)
    tools = _tools(trace)
    if len(checks.nan_checks) >= options.least_checks:
        yield _checks_finding(trace, checks.nan_checks, checks.calls)
    elif tools:
        yield _tools_finding(trace, tools)


def _checks_finding(trace: Trace, questions: Rows, chain: Rows) -> Finding:
    host = frame_times.times(trace.host_calls, chain)
    idle, work = _lost(trace, host, chain)
    stacks = node_stacks(trace)
    least_ns = intervals.duration_ns(_idle_in(trace, stacks.least))
    lost_ns = intervals.duration_ns(idle) + intervals.duration_ns(work) + least_ns
    lost = phrases.fraction_of_window(trace, lost_ns)
    steps = max(1, window(trace).step_count)
    device = f"; {phrases.device(trace)} loses {share(lost)} of the time to it"
    return Finding(
        severity="critical" if severity_of(lost) == "critical" else "warning",
        message=f"Anomaly detection is on: the backward pass checks {len(questions) / steps:.3g} "
        f"results {phrases.per_step(trace)} for NaN and reads each answer, which takes the host "
        f"{phrases.time(trace, intervals.duration_ns(host))}"
        f"{device if len(trace.device_events) else ''}. In the forward pass it also records "
        f"{_stacks(trace, stacks)}.",
        evidence=(
            facts.count(
                "Checks for NaN in the backward pass in total",
                len(questions),
                Link(view="operators", search="aten::isnan"),
            ),
            *_stack_evidence(stacks),
            facts.fraction("Time lost to them", lost, "overview"),
        ),
        events=call_costs.longest(trace, questions),
        claims=(*_check_claims(trace, idle, work, chain), *_stack_claims(trace, stacks)),
        subject="checks for NaN",
    )


def _stacks(trace: Trace, stacks: NodeStacks) -> str:
    """Return the stacks that are recorded, as a phrase."""
    if not len(stacks.calls):
        return "a stack for every operator"
    number = len(stacks.calls) / max(1, window(trace).step_count)
    takes = phrases.time(trace, intervals.duration_ns(stacks.least))
    return f"{number:.3g} stacks, at least {takes}"


def _stack_evidence(stacks: NodeStacks) -> tuple[Evidence, ...]:
    if not len(stacks.calls):
        return ()
    time_ns = intervals.duration_ns(stacks.least)
    return (
        facts.count("Stacks recorded in the forward pass in total", len(stacks.calls)),
        facts.duration("Time to record them in total, at least", time_ns),
    )


def _check_claims(trace: Trace, idle: Intervals, work: Intervals, chain: Rows) -> tuple[Claim, ...]:
    if main_device(trace) is None:
        method = "At most the recorded time of the checks, which are many short operators."
        return (Claim(idle, CHECKS_FOR_NAN_ON_CPU, method, is_unslowed=True),)
    method = "The time of the checks, and the idle time of the device behind them."
    return (
        Claim(idle, ALL_OF_IT, method, calls=chain),
        Claim(work, ALL_OF_IT, is_device_work=True),
    )


def _stack_claims(trace: Trace, stacks: NodeStacks) -> tuple[Claim, ...]:
    if not len(stacks.calls):
        return ()
    return (
        Claim(
            _idle_in(trace, stacks.most),
            ALL_OF_IT,
            "Of each operator that made a node of autograd its self time, at least up to the lower "
            "quartile of all, at most up to the upper one.",
            low_intervals=_idle_in(trace, stacks.least),
            is_unslowed=True,
        ),
    )


def _idle_in(trace: Trace, times: Intervals) -> Intervals:
    """Return the part of the host's times in which no device works."""
    return intervals.difference(times, all_busy(trace))


def _lost(trace: Trace, host: Intervals, chain: Rows) -> tuple[Intervals, Intervals]:
    """Return the idle time of the device that the checks cause, and its work for them alone.

    Without a device it is the host's time.
    """
    device = main_device(trace)
    if device is None:
        return host, intervals.EMPTY
    ledger = idle_ledger(trace)[device.device]
    is_chain = np.zeros(len(trace.host_calls), dtype=bool)
    is_chain[chain] = True
    caller = links(trace).owner_of_call[synchronizations(trace).calls]
    caller = ancestry.nearest_of(trace.host_calls["parent"].to_numpy(), caller, is_chain)
    behind = ledger.gaps[np.isin(ledger.sync, np.flatnonzero(caller >= 0))]
    idle = intervals.merged(
        intervals.intersection(behind, ledger.times["post-sync"]),
        intervals.intersection(ledger.gaps, host),
    )
    work = exclusive_device_time(trace, launched_work(trace, chain).events)
    return idle, intervals.clip(work, window(trace).device_start_ns, window(trace).device_end_ns)


def _tools(trace: Trace) -> dict[str, Rows]:
    """Return the frames (rows of `python_calls`) of each tool that ran in the window."""
    calls, span = trace.python_calls, window(trace)
    rows = np.flatnonzero(name_mask(calls["name"], FRAME.search))
    begins = calls["start_ns"].to_numpy()[rows]
    rows = rows[(begins >= span.start_ns) & (begins < span.end_ns)]
    if len(rows):
        is_compiler = name_mask(calls["name"], COMPILER.search)
        rows = rows[ancestry.nearest_of(python_nesting(trace).parent, rows, is_compiler) < 0]
    names = calls["name"].iloc[rows].astype(str)
    tool = names.str.extract(FRAME.pattern)["tool"].to_numpy()
    return {name: rows[tool == name] for name in TOOLS if (tool == name).any()}


def _tools_finding(trace: Trace, tools: dict[str, Rows]) -> Finding:
    names = " and ".join(TOOLS[tool] for tool in tools)
    count = sum(len(rows) for rows in tools.values())
    return Finding(
        severity="warning",
        confidence="medium",
        message=f"{names} ran in the steps: its frames are on the stack {count:,} times.",
        evidence=(facts.count("Frames of it in total", count),),
        locations=call_costs.lines_around(
            trace, trace.python_calls, next(iter(tools.values()))[: call_costs.MOST_LINES].tolist()
        ),
        subject=names,
    )


RULE = Rule(
    id="debug-mode-on",
    title="A debugging mode of autograd is on",
    passed="No debugging mode of autograd is on",
    category="debugging",
    why="Anomaly detection checks every result of the backward pass for NaN, waits for the answer, "
    "and records a stack for every operator of the forward pass. gradcheck runs a function once "
    "for every input.",
    detects="Calls of aten::isnan right in autograd::engine::evaluate_function, where only the "
    "engine, or a hook on a gradient, makes them. It reports from `least_checks` on, or where "
    "frames of anomaly_mode.py or gradcheck.py are on the stack in the steps.",
    silent=(
        "Checks for NaN elsewhere, such as of the loss or of clipped gradients, belong to the "
        "program.",
        "torch.compile traces under anomaly detection: frames below its compiler do not count.",
        "With check_nan=False and without stacks the mode is invisible: the time to record stacks "
        "looks like that of operators.",
    ),
    saving="At least the idle time during the checks and right behind the reads, and the device's "
    "work for them; at most a step without the checks. On a CPU the time of the checks, less what "
    "recording them costs. In addition the time to record stacks in the forward pass, in which no "
    "device works: of each operator that made a node of the backward pass the self time, up to the "
    "lower quartile of all (at most: the upper one, and 200 µs). It takes 41 µs, and 4 µs for each "
    "Python function on the stack.",
    fix=Fix(
        "Switch it on to search for a NaN, and off again.",
        "torch.autograd.set_detect_anomaly(False)    # and no `with detect_anomaly():` around\n"
        "# Lightning: Trainer(detect_anomaly=False); accelerate, Hydra: check the config",
        verify="No aten::isnan runs below autograd::engine::evaluate_function.",
        caveats=("A NaN then shows later, in the loss: check the loss every N steps.",),
    ),
    effort="flag",
    risk="none",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "clocks"}),
    priority="runtime",
    after=("recompile-in-loop",),
    culprit="anomaly detection",
    links=(
        "autograd.html#anomaly-detection",
        "/tutorials/recipes/recipes/tuning_guide.html#disable-debugging-apis",
    ),
    origin="PyTorch's tuning guide, Disable debugging APIs",
)
