"""DDP looks for unused parameters in every step."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope.analyses.communication.exposed_collectives import exposed_times
from stepscope.analyses.core.window import window
from stepscope.analyses.settings.recorded_settings import recorded_settings
from stepscope.base.calibration import EXPOSED_COMMUNICATION, HALF_TO_ALL
from stepscope.base.findings import Evidence, Fix, Link
from stepscope.base.formatting import count, duration, share
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace
from stepscope.rules import Claim, Finding, Rule, RuledOut, RuleResult, option, severity_of
from stepscope.rules.shared import call_costs, collective_costs, ddp, facts, phrases, recorded_facts

SEARCH = f"{ddp.REDUCER}search_unused_parameters"
BITMAP_TYPE = "int32"
"""Of the extra all-reduce: which parameters any rank used (reducer.cpp, `local_used_map_`)."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """When the search is worth a word."""

    least_forward_share: float = option(
        0.5,
        "Share of the forward passes behind which DDP searches.",
        origin="ours: with static_graph=True it may search once, in the first step",
    )
    least_share: float = option(
        0.001,
        "Share of the window lost to it below which it is only listed as harmless.",
        origin="ours: below a thousandth no measurement of a step would show the change",
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class _Cost:
    search: Intervals
    reduction: Intervals
    reduction_count: int

    @property
    def times(self) -> Intervals:
        return intervals.merged(self.search, self.reduction)


def check(trace: Trace, options: Options) -> Iterator[RuleResult]:
    """Report the search by the time in which nothing else went on, and that of its all-reduce."""
    ddp.require_ddp(trace)
    rows = ddp.calls(trace, SEARCH)
    forwards = ddp.forward_count(trace)
    if not len(rows) or len(rows) < options.least_forward_share * forwards:
        return
    cost = _cost(trace, rows)
    lost = intervals.duration_ns(cost.times) / window(trace).reference_ns
    words = f"{count(len(rows), 'search', 'searches')} for unused parameters"
    evidence = tuple(_evidence(trace, cost, rows))
    if lost < options.least_share:
        yield RuledOut(message=f"{words} hold nothing up: {share(lost)}.", evidence=evidence)
        return
    a_step = window(trace).per_step(intervals.duration_ns(cost.times))
    yield Finding(
        severity=severity_of(lost) or "info",
        message=f"{words}{_reductions(cost)} cost {duration(a_step)} {phrases.per_step(trace)} "
        f"({share(lost)}).",
        evidence=evidence,
        events=call_costs.longest(trace, rows),
        claims=(
            Claim(
                cost.search,
                HALF_TO_ALL,
                "The searches while no device worked, half of them at least.",
            ),
            Claim(
                cost.reduction,
                EXPOSED_COMMUNICATION,
                "Of the all-reduces of what they found, while nothing computed, 30 % at least: "
                "waiting for other ranks may move to the gradients.",
            ),
        ),
    )


def _reductions(cost: _Cost) -> str:
    if not cost.reduction_count:
        return ""
    return f" and {count(cost.reduction_count, 'all-reduce')} of what was found"


def _cost(trace: Trace, rows: NDArray[np.int64]) -> _Cost:
    frame = trace.collectives
    is_bitmap = np.asarray((frame["kind"] == "all_reduce") & (frame["dtype"] == BITMAP_TYPE))
    is_bitmap = is_bitmap & collective_costs.in_window(trace)
    return _Cost(
        search=ddp.host_loss(trace, rows),
        reduction=exposed_times(trace, is_bitmap),
        reduction_count=int(is_bitmap.sum()),
    )


def _evidence(trace: Trace, cost: _Cost, rows: NDArray[np.int64]) -> Iterator[Evidence]:
    host_ns = int(trace.host_calls["duration_ns"].to_numpy()[rows].sum())
    yield facts.count(
        "Searches", len(rows), Link(view="operators", search="search_unused_parameters")
    )
    yield facts.duration("Host time in them", host_ns)
    yield facts.duration("With no device at work", intervals.duration_ns(cost.search))
    yield facts.count("All-reduces of the result", cost.reduction_count)
    yield facts.duration("Exposed time of those", intervals.duration_ns(cost.reduction))
    said = recorded_settings(trace).distributed
    if said.find_unused_parameters is not None:
        label = "find_unused_parameters"
        yield recorded_facts.evidence(label, str(said.find_unused_parameters), "code")


RULE = Rule(
    id="ddp-find-unused-parameters",
    title="DDP searches for unused parameters in every step",
    category="communication",
    why="With find_unused_parameters=True, DistributedDataParallel walks the whole autograd graph "
    "after each forward, and all ranks agree on which parameters were used by one more all-reduce "
    "after each backward. A model that uses all its parameters gains nothing by it.",
    detects="Searches by the reducer (search_unused_parameters) while no device worked, and "
    "all-reduces of 32-bit whole numbers while nothing computed. It speaks where there is one "
    "behind `least_forward_share` of the forward passes, and both together take `least_share` of "
    "the window or more.",
    silent=(
        "With no DistributedDataParallel it does not apply.",
        "A search in the first step alone is what static_graph=True makes of it.",
        "A search behind which the device goes on working, and an all-reduce that is hidden, are "
        "listed as harmless.",
    ),
    saving="All of the searches' exposed time, at least half of it, and of the all-reduces' at "
    "least 30 %: a part of that may be waiting for other ranks, which then wait in the next one.",
    fix=Fix(
        "Do not search: where all parameters are used, or always the same ones.",
        "model = DDP(model)                      # find_unused_parameters=False, the default\n"
        "# where the same parameters stay unused in every step:\n"
        "model = DDP(model, static_graph=True)   # looks once, in the first step",
        verify="The next recording has no search_unused_parameters in Operators.",
        caveats=(
            "Where different steps use different parameters the search is needed: without it DDP "
            "raises an error in the next forward.",
            "static_graph=True asks that the graph is the same in every step.",
        ),
    ),
    effort="flag",
    risk="behaviour",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "device times", "steps"}),
    priority=190,
    links=(
        ddp.DOCUMENTATION,
        "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
    ),
    origin="torch's DDP documentation and tuning guide; the search is an event of the reducer",
    culprit="searching for unused parameters",
)
