"""Reports of the analyses on one trace and on one file, without advice."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from stepscope.advice.duplicate_ranks import fingerprint
from stepscope.advice.parts import Parts
from stepscope.advice.settings import DEFAULT, selected_rules
from stepscope.analyses.core.device_activity import main_device
from stepscope.analyses.core.producer import producer
from stepscope.analyses.core.record_next import profile_call, record_next
from stepscope.analyses.core.window import window
from stepscope.analyses.devices.device_metrics import device_metrics
from stepscope.analyses.health import PARTS, damaged_parts, doubts, health
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.settings.setting_rows import run_settings
from stepscope.analyses.settings.unrecorded_steps import measured_steps
from stepscope.analyses.steps.step_breakdown import step_breakdown, whole_parts
from stepscope.base import urls
from stepscope.base.report import (
    DeviceReport,
    FileHealth,
    HealthItem,
    StepReport,
    UnrecordedStepReport,
    WorkerReport,
)
from stepscope.ingest import is_compiled
from stepscope.model.trace import Trace
from stepscope.rules import Rule, all_rules

METRICS_OF_TIMES = (
    "busy_share",
    "kernel_busy_share",
    "sm_efficiency_share",
    "occupancy_share",
    "tensor_core_share",
)
"""Device metrics that rest on the times of kernels."""
DUPLICATES = frozenset({"duplicate-file", "duplicate-rank"})
"""Kinds of damage to a run that leave the trace itself intact."""


def worker_report(trace: Trace, rules: Sequence[Rule[Any]] | None = None) -> WorkerReport:
    """Return the report of one trace, without advice and its verdict.

    Its health names the rules (by default of all) that rest on damaged parts.
    """
    steps = step_breakdown(trace)
    parts = Parts(urls.redacted(trace.path) or trace.worker)
    report = WorkerReport(
        trace=trace.id,
        name=trace.worker,
        span=trace.span,
        rank=trace.rank,
        events=len(trace),
        dialect=trace.dialect.name,
        synthetic=trace.is_synthetic,
        verdict="",
        step=StepReport(
            count=steps.step_count,
            mean_ns=steps.mean_ns,
            standard_deviation_ns=steps.standard_deviation_ns,
            breakdown_ns=steps.mean_parts_ns,
            unrecorded=parts.of("The unrecorded step", lambda: _unrecorded(trace), None),
        ),
        devices=parts.of("Device metrics", lambda: _device_reports(trace), ()),
        idle_ns=parts.of("The causes of idle time", lambda: idle_per_step(trace), {}),
        health=trace_health(trace, _usual_rules() if rules is None else rules),
        inflated_bytes=trace.columns.inflated_bytes,
        reader=_reader(),
        producer=producer(trace).name,
        fingerprint=fingerprint(trace),
        record_next=parts.of("What to record next", lambda: record_next(trace), ()),
        profile_call=parts.of("The call that records it", lambda: _profile_call(trace), ""),
        file=urls.name(urls.redacted(trace.path)) if trace.path else "",
        settings=parts.of("The list of settings", lambda: run_settings(trace), ()),
    )
    return parts.with_failures(report)


def _unrecorded(trace: Trace) -> UnrecordedStepReport | None:
    steps = measured_steps(trace)
    if steps is None:
        return None
    return UnrecordedStepReport(
        count=steps.count,
        median_ns=steps.median_ns,
        first_quartile_ns=steps.first_quartile_ns,
        third_quartile_ns=steps.third_quartile_ns,
        mean_ns=steps.mean_ns,
    )


def _device_reports(trace: Trace) -> tuple[DeviceReport, ...]:
    """Return the devices' metrics, with notes on those that damage makes unreliable."""
    damage = doubts(trace, ("device times",), "withheld") or doubts(trace, ("device times",), "low")
    if not damage:
        return device_metrics(trace)
    reliability = "Not reliable" if damage[0].effect == "withheld" else "In doubt"
    note = f"{reliability}: {damage[0].message}."
    return tuple(
        msgspec.structs.replace(report, notes=report.notes | _notes_on_times(report, note))
        for report in device_metrics(trace)
    )


def _notes_on_times(report: DeviceReport, note: str) -> dict[str, str]:
    return {name: note for name in METRICS_OF_TIMES if getattr(report, name) is not None}


def file_health(trace: Trace, *, run: str, file_bytes: int) -> FileHealth:
    """Return the health of one file."""
    return FileHealth(
        path=urls.redacted(trace.path),
        run=run,
        name=trace.worker,
        span=trace.span,
        rank=trace.rank,
        file_bytes=file_bytes,
        inflated_bytes=trace.columns.inflated_bytes,
        events=len(trace),
        reader=_reader(),
        dialect=trace.dialect.name,
        producer=producer(trace).name,
        synthetic=trace.is_synthetic,
        fingerprint=fingerprint(trace),
        health=trace_health(trace, _usual_rules()),
        record_next=record_next(trace),
        profile_call=_profile_call(trace),
        settings=run_settings(trace),
    )


def _usual_rules() -> tuple[Rule[Any], ...]:
    """Return the rules that run by default."""
    return selected_rules(DEFAULT.changes, all_rules())


def _reader() -> str:
    return "compiled scanner" if is_compiled() else "Python reader"


def _profile_call(trace: Trace) -> str:
    return profile_call(trace) if record_next(trace) else ""


def trace_health(trace: Trace, rules: Sequence[Rule[Any]]) -> tuple[HealthItem, ...]:
    """Return a trace's health, with the rules that each item makes unreliable."""
    return tuple(
        msgspec.structs.replace(item, affects=(*_ids_resting_on(item, rules), *item.affects))
        for item in health(trace)
    )


def _ids_resting_on(item: HealthItem, rules: Sequence[Rule[Any]]) -> tuple[str, ...]:
    if item.effect == "none":
        return ()
    damaged = damaged_parts().get(item.kind, PARTS)
    return tuple(rule.id for rule in rules if rule.rests_on & damaged)


def idle_per_step(trace: Trace) -> dict[str, int]:
    """Return the busiest device's idle time by cause, per step; the causes sum to its idle time."""
    device = main_device(trace)
    if device is None:
        return {}
    idle = idle_ledger(trace)[device.device].idle_ns
    total = window(trace).per_step(sum(idle.values()))
    return dict(zip(idle, whole_parts(np.array(list(idle.values())), total), strict=True))


def undamaged(workers: Iterable[WorkerReport]) -> tuple[WorkerReport, ...]:
    """Return the traces without damage; all traces where each is damaged."""
    workers = tuple(workers)
    return tuple(worker for worker in workers if not _is_damaged(worker)) or workers


def _is_damaged(worker: WorkerReport) -> bool:
    return any(
        item.nature == "damage" and item.effect != "none" and item.kind not in DUPLICATES
        for item in worker.health
    )
