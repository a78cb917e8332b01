"""DDP searches for unused parameters in every step."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.core.exposed_communication import exposed_times, running_times
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import ALL_OF_IT, HALF_TO_ALL, PARALLEL_REDUCTION
from stepscope.base.findings import Evidence, Link, severity_of
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.frames.name_masks import name_mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, RuledOut, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, collective_costs, ddp, facts, phrases, recorded_facts

SEARCH = f"{ddp.REDUCER}search_unused_parameters"
BITMAP_TYPE = "int32"
"""Data type of the extra all-reduce of the parameters in use (reducer.cpp, `local_used_map_`)."""

ACCUMULATE = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
MARKS = frozenset({"aten::select", "aten::fill_"})
"""Operators by which the reducer's hook marks a parameter as used."""
ALL_REDUCE = "c10d::allreduce_"


class Options(Thresholds):
    """Thresholds from which the search is worth reporting."""

    least_forward_share: float = option(
        0.5,
        "Fraction of the forward passes after which DDP searches.",
        origin="ours: with static_graph=True it may search once, in the first step",
    )
    least_share: float = option(
        0.001,
        "Fraction of the window lost to it below which it is ruled out.",
        origin="ours: below a thousandth no measurement of a step would show the change",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report the search by the time in which nothing else went on, and that of its all-reduce."""
    ddp.require_ddp(trace)
    rows = ddp.calls(trace, SEARCH)
    if not len(rows) or len(rows) < options.least_forward_share * ddp.forward_count(trace):
        return
    frame = trace.collectives
    is_bitmap = np.asarray((frame["kind"] == "all_reduce") & (frame["dtype"] == BITMAP_TYPE))
    is_bitmap = is_bitmap & collective_costs.in_window(trace)
    search, reduction = ddp.host_loss(trace, rows), exposed_times(trace, is_bitmap)
    reductions = int(is_bitmap.sum())
    lost_ns = intervals.duration_ns(intervals.merged(search, reduction))
    lost = phrases.fraction_of_window(trace, lost_ns)
    text = f"{count(len(rows), 'search', 'searches')} for unused parameters"
    evidence = (*_evidence(trace, rows, search, reduction, reductions), *_setting(trace))
    if lost < options.least_share:
        yield RuledOut(message=f"{text} delay nothing: {share(lost)}.", evidence=evidence)
        return
    result = f" and {count(reductions, 'all-reduce')} of the result" if reductions else ""
    yield Finding(
        severity=severity_of(lost) or "info",
        message=f"{text}{result} cost {phrases.time_and_fraction(trace, lost_ns)}.",
        evidence=evidence,
        events=call_costs.longest(trace, rows),
        claims=(
            Claim(
                intervals.merged(search, _bookkeeping(trace, is_bitmap)),
                ALL_OF_IT,
                "The searches, the marks of used parameters and the requests of the all-reduces, "
                "while no device worked.",
            ),
            *_reductions(trace, is_bitmap, reduction),
        ),
    )


def _bookkeeping(trace: Trace, is_bitmap: collective_costs.Mask) -> Intervals:
    """Return the times in which the host marks used parameters and requests the all-reduces."""
    span, calls, parent = window(trace), trace.host_calls, trace.host_calls["parent"].to_numpy()
    start_ns = calls["start_ns"].to_numpy()
    in_hook = np.append(name_mask(calls["name"], ACCUMULATE.__eq__), False)[parent]
    is_inside = (start_ns >= span.start_ns) & (start_ns < span.end_ns)
    marks = np.flatnonzero(in_hook & is_inside & name_mask(calls["name"], MARKS.__contains__))
    requests = np.sort(ddp.calls(trace, ALL_REDUCE))
    begun_ns = trace.collectives["start_ns"].to_numpy()[is_bitmap]
    before = np.searchsorted(start_ns[requests], begun_ns, side="right") - 1
    return ddp.host_loss(trace, np.union1d(marks, requests[before[before >= 0]]))


def _reductions(
    trace: Trace, is_bitmap: collective_costs.Mask, exposed: Intervals
) -> tuple[Claim, Claim]:
    """Claim the all-reduces of the results: alone, and while other messages are sent."""
    others = running_times(trace, collective_costs.in_window(trace) & ~is_bitmap)
    return (
        Claim(
            intervals.difference(exposed, others),
            HALF_TO_ALL,
            "The all-reduces of their results while nothing computed and nothing else was sent, at "
            "least half: waiting for other ranks may move to the gradients.",
        ),
        Claim(
            intervals.intersection(exposed, others),
            PARALLEL_REDUCTION,
            "While other messages were sent, at most half.",
        ),
    )


def _evidence(
    trace: Trace, rows: NDArray[np.int64], search: Intervals, reduction: Intervals, reductions: int
) -> Iterator[Evidence]:
    host_ns = int(trace.host_calls["duration_ns"].to_numpy()[rows].sum())
    link = Link(view="operators", search="search_unused_parameters")
    yield facts.count("Searches in total", len(rows), link)
    yield facts.duration("Host time in them in total", host_ns)
    yield facts.duration("While no device works, in total", intervals.duration_ns(search))
    yield facts.count("All-reduces of the result in total", reductions)
    yield facts.duration("Exposed time of those in total", intervals.duration_ns(reduction))


def _setting(trace: Trace) -> Iterator[Evidence]:
    value = recorded_settings(trace).distributed.find_unused_parameters
    if value is not None:
        yield recorded_facts.evidence("find_unused_parameters", str(value), "code")


RULE = Rule(
    id="ddp-find-unused-parameters",
    title="DDP searches for unused parameters in every step",
    passed="DDP does not search for unused parameters",
    category="communication",
    why="With find_unused_parameters=True, DistributedDataParallel walks the whole autograd graph "
    "after each forward, and all ranks agree on the used parameters by one more all-reduce after "
    "each backward. A model that uses all its parameters gains nothing.",
    detects="Searches by the reducer (search_unused_parameters) while no device worked, and "
    "all-reduces of 32-bit whole numbers while nothing computed. It reports where a search follows "
    "`least_forward_share` of the forward passes, and both together take `least_share` of the "
    "window or more.",
    silent=(
        "With no DistributedDataParallel it does not apply.",
        "With static_graph=True there is a search in the first step alone.",
        "A search during which the device goes on working, and an all-reduce that is hidden, are "
        "ruled out.",
    ),
    saving="The exposed time of the searches, of the marks of used parameters and of the host's "
    "requests of the all-reduces; of the all-reduces' time 50 to 100 % while nothing else was "
    "sent, since ranks may then wait in the next collective, and at most 50 % while gradients were "
    "sent as well.",
    fix=Fix(
        "Do not search where all parameters are used, or always the same ones.",
        "model = DDP(model)                      # find_unused_parameters=False, the default\n"
        "# where the same parameters stay unused in every step:\n"
        "model = DDP(model, static_graph=True)   # searches once, in the first step",
        verify="The next trace has no search_unused_parameters in Operators.",
        caveats=(
            "Where different steps use different parameters the search is needed: without it DDP "
            "raises an error in the next forward.",
            "static_graph=True requires the same graph in every step.",
        ),
    ),
    effort="flag",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority="communication",
    after=("ddp-missing-no-sync",),
    links=(ddp.DOCUMENTATION, "/tutorials/recipes/recipes/tuning_guide.html"),
    origin="torch's DDP documentation and tuning guide; the search is an event of the reducer",
    culprit="searching for unused parameters",
)
