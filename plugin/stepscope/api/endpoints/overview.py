"""Overview of one trace: step time by category, devices, idle causes and top operators."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import structs

from stepscope.advice import TraceAdvice, idle_per_step, worker_report
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.links import links
from stepscope.analyses.core.trace_cut import slice_trace
from stepscope.analyses.core.window import complete_steps, window
from stepscope.analyses.devices.device_metrics import device_metrics_in
from stepscope.analyses.idle.ledger import CAUSES, Ledger, idle_ledger
from stepscope.analyses.operators.operator_table import REPLAYED
from stepscope.analyses.steps.serving_phases import serving_phases
from stepscope.analyses.steps.step_breakdown import (
    CATEGORIES,
    exclusive_times,
    step_breakdown,
    whole_parts,
)
from stepscope.api.endpoint import TimeRangeQuery, trace_endpoint
from stepscope.api.endpoints.grouped_tables import kernels_table, operators_table
from stepscope.api.messages import (
    Category,
    IdleCause,
    Overview,
    ServingPhase,
    StepRow,
    Table,
    TopRow,
)
from stepscope.api.metrics import finite, whole
from stepscope.api.trace_environment import environment
from stepscope.base import formatting
from stepscope.base.report import DeviceReport, StepReport
from stepscope.model import intervals
from stepscope.model.intervals import Intervals
from stepscope.model.trace import Trace, computed

TOP_COUNT = 5


@computed
def overview(trace: Trace) -> Overview:
    """Return the overview without a verdict, which follows from the advice."""
    report = worker_report(trace)
    return Overview(
        trace=trace.id,
        worker=trace.worker,
        span=trace.span,
        verdict=report.verdict,
        dialect=trace.dialect.name,
        synthetic=trace.is_synthetic,
        device_label=trace.dialect.device,
        environment=environment(trace),
        window_ns=window(trace).duration_ns,
        step=report.step,
        categories=tuple(
            Category(id=key, label=label, help=meaning)
            for key, (label, meaning) in CATEGORIES.items()
        ),
        steps=_steps(trace),
        devices=report.devices,
        idle=_idle(trace, idle_per_step(trace), step_breakdown(trace).mean_ns),
        top_operators=_top(operators_table(trace, "name"), "operators"),
        top_kernels=_top(kernels_table(trace, "name"), "kernels"),
        longest_gaps=_longest_gaps(trace),
        health=report.health,
        settings=report.settings,
        serving=_serving(trace),
    )


def _serving(trace: Trace) -> tuple[ServingPhase, ...]:
    """Return the phases of a serving engine; none for other programs."""
    rows: list[Any] = serving_phases(trace).to_dict("records")
    return tuple(
        ServingPhase(
            phase=row["phase"],
            source=row["source"],
            iteration_count=int(row["iteration_count"]),
            request_count=whole(row["request_count"]),
            prompt_token_count=whole(row["prompt_token_count"]),
            output_token_count=whole(row["output_token_count"]),
            wall_ns=int(row["wall_ns"]),
            wall_share=float(row["wall_share"]),
            device_busy_ns=int(row["device_busy_ns"]),
            mean_ns=float(row["mean_ns"]),
            time_per_output_token_ns=finite(row["time_per_output_token_ns"]),
        )
        for row in rows
    )


def _steps(trace: Trace) -> tuple[StepRow, ...]:
    """Return one row per step; none where the trace marks no steps."""
    steps = step_breakdown(trace)
    if not steps.step_count:
        return ()
    at_host = complete_steps(trace).steps
    return tuple(
        StepRow(
            number=int(number),
            name=name,
            start_ns=int(start_ns),
            duration_ns=int(duration_ns),
            parts_ns=tuple(int(part) for part in parts),
            host_start_ns=int(host_start_ns),
            host_end_ns=int(host_end_ns),
        )
        for number, name, start_ns, duration_ns, parts, host_start_ns, host_end_ns in zip(
            steps.numbers,
            steps.names,
            steps.start_ns,
            steps.duration_ns,
            steps.parts_ns,
            at_host["start_ns"],
            at_host["end_ns"],
            strict=True,
        )
    )


def _idle(
    trace: Trace, per_step: Mapping[str, int], step_ns: int, span: Intervals | None = None
) -> tuple[IdleCause, ...]:
    """Return the causes with idle time, largest first."""
    costly = [(cause, idle) for cause, idle in per_step.items() if idle]
    return tuple(
        structs.replace(
            IdleCause(
                id=cause,
                label=CAUSES[cause][0],
                help=CAUSES[cause][1],
                idle_ns=idle_ns,
                share=_share(idle_ns, step_ns),
            ),
            **_longest_of_cause(trace, cause, span),
        )
        for cause, idle_ns in sorted(costly, key=lambda item: -item[1])
    )


def _longest_of_cause(trace: Trace, cause: str, span: Intervals | None) -> dict[str, int | None]:
    """Return the number of idle intervals of a cause and the longest, on the busiest device."""
    device = main_device(trace)
    if device is None:
        return {}
    ledger = idle_ledger(trace)[device.device]
    times = ledger.times[cause]
    if span is not None:
        times = intervals.intersection(times, span)
    if not len(times):
        return {}
    best = int(np.argmax(times[:, 1] - times[:, 0]))
    start_ns, end_ns = map(int, times[best])
    gap = int(np.searchsorted(ledger.gaps[:, 0], start_ns, side="right")) - 1
    return {
        "gap_count": len(times),
        "start_ns": start_ns,
        "end_ns": end_ns,
        "event": _event_after(trace, ledger, gap),
    }


def _event_after(trace: Trace, ledger: Ledger, gap: int) -> int | None:
    row = int(ledger.next_event[gap])
    return int(trace.device_events["event"].iloc[row]) if row >= 0 else None


def _share(part_ns: float, whole_ns: float) -> float:
    return part_ns / whole_ns if whole_ns > 0 else 0.0


def _top(table: Table, view: str) -> tuple[TopRow, ...]:
    """Return the top rows of a table, in the order of the page's table."""
    values = table.values[table.sort]
    unit = next(column.unit for column in table.columns if column.key == table.sort)
    kinds = table.values.get("kind", [""] * table.row_count)
    full_names = table.values.get("full_name", table.values["name"])
    shares = table.values.get("window_share")
    rows = [row for row in range(table.row_count) if kinds[row] != "annotation" and values[row]]
    longest = sorted(rows, key=lambda row: -values[row])[:TOP_COUNT]
    return tuple(
        TopRow(
            name=str(table.values["name"][row]),
            detail=formatting.count(table.values["call_count"][row], "call")
            + (" in replays" if kinds[row] == REPLAYED else ""),
            value=values[row],
            unit=unit,
            share=shares[row] if shares else _share(values[row], table.total_ns),
            view=view,
            search=str(table.values["name"][row]),
            full_name=str(full_names[row]),
            kind=str(kinds[row]),
        )
        for row in longest
    )


def _longest_gaps(trace: Trace, span: Intervals | None = None) -> tuple[TopRow, ...]:
    """Return the longest idle intervals of the busiest device."""
    device = main_device(trace)
    if device is None:
        return ()
    ledger = idle_ledger(trace)[device.device]
    lengths_ns = ledger.gaps[:, 1] - ledger.gaps[:, 0]
    if span is not None:
        lengths_ns = intervals.covered_ns(span, ledger.gaps[:, 0], ledger.gaps[:, 1])
    longest = np.argsort(-lengths_ns, kind="stable")[:TOP_COUNT]
    return tuple(_gap(trace, ledger, int(gap)) for gap in longest if lengths_ns[gap] > 0)


def _gap(trace: Trace, ledger: Ledger, gap: int) -> TopRow:
    length_ns = int(ledger.gaps[gap, 1] - ledger.gaps[gap, 0])
    event = int(ledger.next_event[gap])
    kernel = str(trace.device_events["name"].iloc[event]) if event >= 0 else ""
    owner = int(links(trace).owner_of_device_event[event]) if event >= 0 else -1
    operator = str(trace.host_calls["name"].iloc[owner]) if owner >= 0 else ""
    return TopRow(
        name=CAUSES[_cause(ledger, gap)][0],
        detail=_where(trace, int(ledger.gaps[gap, 0]), operator or kernel),
        value=length_ns,
        unit="ns",
        share=_share(length_ns, step_breakdown(trace).mean_ns),
        view="operators" if operator else "kernels",
        search=operator or kernel,
        start_ns=int(ledger.gaps[gap, 0]),
        end_ns=int(ledger.gaps[gap, 1]),
        event=_event_after(trace, ledger, gap),
    )


def _cause(ledger: Ledger, gap: int) -> str:
    """Return the cause of most of an idle interval."""
    inside = ledger.gaps[gap : gap + 1]
    parts = {
        cause: intervals.duration_ns(intervals.intersection(times, inside))
        for cause, times in ledger.times.items()
    }
    return max(parts, key=lambda cause: parts[cause])


def _where(trace: Trace, start_ns: int, before: str) -> str:
    steps = step_breakdown(trace)
    step = int(np.searchsorted(steps.start_ns, start_ns, side="right")) - 1
    in_step = f"step {steps.numbers[step]}" if steps.step_count and step >= 0 else ""
    return ", ".join(part for part in (f"before {before}" if before else "", in_step) if part)


def narrowed(trace: Trace, start_ns: int, end_ns: int) -> Overview:
    """Return the overview of the steps inside a time range of the host.

    Steps, idle times and devices are those of the whole trace in these steps; operators and kernels
    those that began in the range, or were launched in it. Without a whole step inside, all are of
    the range itself.
    """
    whole = overview(trace)
    rows = [
        row for row in whole.steps if start_ns <= row.host_start_ns and row.host_end_ns <= end_ns
    ]
    first_ns = min((row.start_ns for row in rows), default=start_ns)
    last_ns = max((row.start_ns + row.duration_ns for row in rows), default=end_ns)
    span = intervals.union(np.array([first_ns]), np.array([last_ns]))
    step = _step_report(rows) if rows else _range_report(trace, span)
    part = slice_trace(trace, start_ns, end_ns)
    devices = device_metrics_in(trace, first_ns, last_ns)
    return structs.replace(
        whole,
        verdict=_sentence(whole, rows, step, devices),
        window_ns=end_ns - start_ns,
        step=step,
        devices=devices,
        idle=_idle(trace, _idle_in(trace, span, max(1, len(rows))), step.mean_ns, span),
        top_operators=_top(operators_table(part, "name"), "operators"),
        top_kernels=_top(kernels_table(part, "name"), "kernels"),
        longest_gaps=_longest_gaps(trace, span),
        serving=_serving(part),
    )


def _step_report(rows: Sequence[StepRow]) -> StepReport:
    durations = np.array([row.duration_ns for row in rows])
    mean_ns = round(float(durations.mean()))
    weights = np.array([row.parts_ns for row in rows], dtype=np.int64).sum(axis=0)
    return StepReport(
        count=len(rows),
        mean_ns=mean_ns,
        standard_deviation_ns=round(float(durations.std())),
        breakdown_ns=dict(zip(CATEGORIES, whole_parts(weights, mean_ns), strict=True)),
    )


def _range_report(trace: Trace, span: Intervals) -> StepReport:
    """Return the parts of a range; time outside all steps is *other*."""
    parts = {
        name: intervals.duration_ns(intervals.intersection(times, span))
        for name, times in exclusive_times(trace).items()
    }
    length_ns = intervals.duration_ns(span)
    parts["other"] += length_ns - sum(parts.values())
    return StepReport(count=0, mean_ns=length_ns, standard_deviation_ns=0, breakdown_ns=parts)


def _idle_in(trace: Trace, span: Intervals, step_count: int) -> dict[str, int]:
    """Return the busiest device's idle time by cause, per step."""
    device = main_device(trace)
    if device is None:
        return {}
    times = idle_ledger(trace)[device.device].times
    return {
        cause: round(intervals.duration_ns(intervals.intersection(idle, span)) / step_count)
        for cause, idle in times.items()
    }


def _sentence(
    whole: Overview, rows: Sequence[StepRow], step: StepReport, devices: Sequence[DeviceReport]
) -> str:
    """Return the summary of some steps, compared with the mean step of the trace."""
    took = formatting.duration(step.mean_ns)
    busy = max((device.busy_share for device in devices), default=None)
    device = "" if busy is None else f"; the {whole.device_label} is busy {formatting.share(busy)}"
    if not rows:
        return f"The selected {took} contain no whole step{device}."
    subject = f"Step {rows[0].number} takes" if len(rows) == 1 else f"{len(rows)} steps take"
    average = "" if len(rows) == 1 else " on average"
    change = step.mean_ns / whole.step.mean_ns - 1 if whole.step.mean_ns else 0.0
    size = formatting.share(abs(change))
    compared = f", {size} {'less' if change < 0 else 'more'} than the mean step" if change else ""
    return f"{subject} {took}{average}{compared}{device}."


def details(trace: Trace, advice: TraceAdvice, query: TimeRangeQuery) -> Overview:
    """Return step time by category, devices, idle causes, and the longest operators and kernels."""
    if query.start_ns is None or query.end_ns is None:
        return structs.replace(overview(trace), verdict=advice.worker.verdict)
    return narrowed(trace, query.start_ns, query.end_ns)


ENDPOINTS = (trace_endpoint("overview", details, is_whole=True),)
