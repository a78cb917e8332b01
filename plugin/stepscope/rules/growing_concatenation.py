"""A tensor grows by concatenation: each call copies all of it again."""

from dataclasses import replace

import numpy as np

from stepscope.analyses.core import requirements
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.operators.growing_concatenations import (
    GrowingConcatenations,
    growing_concatenations,
)
from stepscope.base.calibration import GROWN_TENSORS, part_of
from stepscope.base.findings import Evidence, EvidenceTable
from stepscope.base.formatting import count, share
from stepscope.model import intervals
from stepscope.model.arrays import NONE, Ints, Mask
from stepscope.model.intervals import Intervals
from stepscope.rules import Claim, Finding, Fix, Results, Rule, Thresholds, Trace, option
from stepscope.rules.shared import call_costs, facts, kernel_time, phrases

MOST_SHOWN = 10
METHOD = "The time of the calls, for the part that earlier calls had copied already."


class Options(Thresholds):
    """Thresholds of the calls, and of their time."""

    least_calls: int = option(
        6,
        "Calls that append to growing tensors.",
        origin="ours: a tensor that grows in a loop has as many as the loop has rounds",
    )
    least_share: float = option(
        0.02,
        "Fraction of the window in the copies of what earlier calls had copied.",
        origin="ours: as no-kv-cache",
    )


def check(trace: Trace, options: Options) -> Results:
    """Report concatenations whose output is the next one's input."""
    requirements.applies_if(trace.host_calls["is_operator"].any(), "no operator was recorded")
    requirements.shapes(trace)
    grown = growing_concatenations(trace)
    if len(grown.rows) < options.least_calls:
        return
    factor = part_of(GROWN_TENSORS, grown.old_share)
    if not len(trace.device_events):
        times = _host_times(trace, grown.rows)
        if _is_enough(trace, grown, times, options):
            claims = (Claim(times, factor, METHOD),)
            yield _finding(trace, grown, intervals.duration_ns(times), claims)
        return
    rows = kernel_time.rows_in_window(trace)
    work = kernel_time.work_of(trace, rows, _launched_by(trace, grown.rows))
    claim = kernel_time.claim(trace, work, factor, METHOD)
    if _is_enough(trace, grown, claim.intervals, options):
        finding = _finding(trace, grown, work.time_ns, (claim,))
        events, lines = kernel_time.longest(trace, work), kernel_time.lines(trace, work)
        yield kernel_time.result(trace, replace(finding, events=events, locations=lines))


def _is_enough(
    trace: Trace, grown: GrowingConcatenations, times: Intervals, options: Options
) -> bool:
    needless_ns = intervals.duration_ns(times) * grown.old_share
    return phrases.fraction_of_window(trace, needless_ns) >= options.least_share


def _host_times(trace: Trace, rows: Ints) -> Intervals:
    """Return the times of some host calls in the window."""
    calls, span = trace.host_calls, window(trace)
    start, end = calls["start_ns"].to_numpy(), calls["end_ns"].to_numpy()
    return intervals.clip(intervals.union(start[rows], end[rows]), span.start_ns, span.end_ns)


def _launched_by(trace: Trace, rows: Ints) -> Mask:
    """Return a mask of `device_events`: launched by some calls, or by operators in them."""
    owner = links(trace).owner_of_device_event
    parent = np.append(trace.host_calls["parent"].to_numpy(), NONE)
    return np.asarray(np.isin(owner, rows) | np.isin(parent[owner], rows))


def _finding(
    trace: Trace, grown: GrowingConcatenations, time_ns: int, claims: tuple[Claim, ...]
) -> Finding:
    largest = int(np.argmax([np.prod(sizes, dtype=float) for sizes in grown.shapes]))
    return Finding(
        confidence="medium",
        message=f"{count(len(grown.rows), 'call')} of aten::cat append to "
        f"{count(grown.tensor_count, 'tensor')}, such as one of {list(grown.shapes[largest])} that "
        f"grows in dimension {grown.dimensions[largest]}, and copy all of it each time: "
        f"{phrases.time_and_fraction(trace, time_ns)}, {share(grown.old_share)} of it for what "
        "earlier calls had copied.",
        evidence=tuple(_evidence(grown, time_ns)),
        tables=(_table(grown),),
        events=call_costs.longest(trace, grown.rows),
        locations=call_costs.lines(trace, grown.rows),
        claims=claims,
    )


def _evidence(grown: GrowingConcatenations, time_ns: int) -> tuple[Evidence, ...]:
    return (
        facts.count("Calls in total", len(grown.rows), "operators"),
        facts.count("Growing tensors", grown.tensor_count),
        facts.duration("Time of the copies in total", time_ns),
        facts.fraction("Of it for what was copied before", grown.old_share),
    )


def _table(grown: GrowingConcatenations) -> EvidenceTable:
    """Return the growing tensors by shape, those with the most calls first."""
    calls = np.bincount(grown.tensor, minlength=grown.tensor_count).tolist()
    rows: dict[tuple[str, int], list[int]] = {}
    for sizes, dimension, number in zip(grown.shapes, grown.dimensions, calls, strict=True):
        total = rows.setdefault((str(list(sizes)), dimension), [0, 0])
        total[0] += 1
        total[1] += number
    ordered = sorted(rows.items(), key=lambda item: -item[1][1])[:MOST_SHOWN]
    return facts.table(
        "Growing tensors",
        {"Last shape": "code", "Dimension": "count", "Tensors": "count", "Calls": "count"},
        ((text, dimension, *numbers) for (text, dimension), numbers in ordered),
    )


RULE = Rule(
    id="growing-concatenation",
    title="A tensor grows by concatenation",
    passed="No tensor grows by concatenation",
    category="operators",
    why="torch.cat allocates a new tensor and copies all its inputs. Where its result is an input "
    "of the next call, each call copies all that was there before: twice the length takes four "
    "times the copying.",
    detects="Calls of aten::cat whose largest input has the shape of an earlier call's output, "
    "with an appended part of the same shape, four or more in a row. It reports from `least_calls` "
    "such calls on, and where copying what earlier calls had copied takes `least_share` of the "
    "window.",
    silent=(
        "Inputs of the same shapes in each call, such as skip connections or a window of "
        "constant length.",
        "Features that grow from layer to layer, as in a dense network: convolutions, "
        "normalizations or linear layers take them.",
        "Appended parts of different shapes.",
        "np.concatenate and np.vstack, which the profiler does not record.",
        "Where the host is the limit it is ruled out.",
    ),
    saving="The time of the copies, times the fraction that earlier calls had copied; nine tenths "
    "of it at least.",
    fix=Fix(
        "Allocate the tensor at its greatest length, and write the new part in place.",
        "cache = torch.empty(batch, heads, most, size, device=k.device, dtype=k.dtype)  # once\n"
        "cache[:, :, position] = k      # instead of cache = torch.cat((cache, k), dim=2)\n"
        "keys = cache[:, :, : position + 1]\n"
        "# results: parts.append(part) in the loop, and one torch.cat(parts) after it\n"
        "# transformers: model.generate(..., cache_implementation='static')",
        verify="In the next trace no aten::cat has inputs that grow.",
        caveats=(
            "The tensor takes the memory of its greatest length from the start.",
            "Autograd does not record writes in place into a tensor that it still needs: collect "
            "the parts in a list there.",
        ),
    ),
    effort="hour",
    risk="memory",
    options=Options(),
    check=check,
    rests_on=frozenset({"host calls", "nesting", "device times", "launches", "steps"}),
    priority="device work",
    links=("generated/torch.cat.html", "generated/torch.Tensor.index_copy_.html"),
    origin="ours: a script that generates texts with a key-value cache by torch.cat",
    culprit="concatenating growing tensors",
)
