"""Real traces of many machines and eras: all are read, and every figure adds up exactly."""

import inspect
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import msgspec
import numpy as np
import pytest

from loading import SHARED_TRACES, shared_trace_names, trace_at
from stepscope import analyses
from stepscope.advice import advise, worker_report
from stepscope.analyses.core.device_activity import device_activity
from stepscope.analyses.core.links import links
from stepscope.analyses.core.window import window
from stepscope.analyses.idle.ledger import idle_ledger
from stepscope.analyses.operators.operator_table import operator_table
from stepscope.analyses.steps.step_breakdown import step_breakdown
from stepscope.api.endpoints.grouped_tables import kernels_table, operators_table
from stepscope.base.errors import MissingDataError
from stepscope.model import intervals
from stepscope.model.trace import Run, Trace
from stepscope.render import table_export
from stepscope.render.table_export import Request
from stepscope.tables import all_tables

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", params=shared_trace_names() or [""])
def trace(request: pytest.FixtureRequest) -> Iterator[Trace]:
    """One real trace after the other; each is read and analysed once."""
    if not request.param:
        pytest.skip("the collection of real traces is not beside this clone (../shared/traces)")
    found = trace_at(SHARED_TRACES / request.param)
    yield found
    found.results.clear()


@cache
def _analyses() -> dict[str, Callable[[Trace], Any]]:
    """Every function of a trace that an analysis module makes public."""
    found: dict[str, Callable[[Trace], Any]] = {}
    prefix = f"{analyses.__name__}."
    for module in walk_packages(analyses.__path__, prefix):
        for name, function in vars(import_module(module.name)).items():
            is_own = getattr(function, "__module__", "") == module.name
            if not name.startswith("_") and inspect.isfunction(function) and is_own:
                parameters = list(inspect.signature(function).parameters.values())
                needed = [p.name for p in parameters if p.default is inspect.Parameter.empty]
                if needed == ["trace"]:
                    found[f"{module.name.removeprefix(prefix)}.{name}"] = function
    return found


def test_there_are_analyses_to_run() -> None:
    assert {"core.window.window", "devices.kernel_table.kernel_table"} <= set(_analyses())
    assert len(_analyses()) > 100


def test_nothing_had_to_be_repaired(trace: Trace) -> None:
    assert trace.columns.incidents == ()
    assert len(trace) > 0


def test_every_analysis_has_an_answer(trace: Trace) -> None:
    for name, analysis in _analyses().items():
        try:
            analysis(trace)
        except MissingDataError as missing:
            assert missing.reason, name  # noqa: PT017 (it may, but need not, be missing)


def test_every_step_is_broken_down_to_the_nanosecond(trace: Trace) -> None:
    steps = step_breakdown(trace)
    assert len(steps.duration_ns) >= 1
    assert (steps.parts_ns >= 0).all()
    assert (steps.parts_ns.sum(axis=1) == steps.duration_ns).all()
    assert sum(steps.mean_parts_ns.values()) == steps.mean_ns


def test_every_idle_nanosecond_has_one_cause(trace: Trace) -> None:
    span = window(trace)
    ledgers = idle_ledger(trace)
    for activity in device_activity(trace):
        idle_ns = span.duration_ns - intervals.duration_ns(activity.busy)
        causes = ledgers[activity.device].times.values()
        assert sum(ledgers[activity.device].idle_ns.values()) == idle_ns
        together = intervals.merged(*causes)
        assert intervals.duration_ns(together) == idle_ns
        assert len(intervals.intersection(together, activity.busy)) == 0


def test_operators_share_out_the_device_time_once(trace: Trace) -> None:
    table = operator_table(trace)
    by_shape = operator_table(trace, by="shape")
    launched = links(trace).call_of_device_event >= 0
    durations = trace.device_events["duration_ns"].to_numpy()
    assert table["device_self_ns"].sum() <= durations[launched].sum()
    columns = ["call_count", "host_self_ns", "host_total_ns", "device_self_ns", "device_total_ns"]
    assert (table[columns].sum() == by_shape[columns].sum()).all()
    assert (table["device_self_ns"] <= table["device_total_ns"]).all()
    assert (table["host_self_ns"] <= table["host_total_ns"]).all()
    assert (table[columns] >= 0).all(axis=None)


def test_tables_are_whole_and_can_be_sent(trace: Trace) -> None:
    tables = [
        *(operators_table(trace, group) for group in ("name", "shape")),
        *(kernels_table(trace, group) for group in ("name", "launch")),
    ]
    for table in tables:
        assert bool(table.empty) == (table.row_count == 0)
        assert set(table.values) == {column.key for column in table.columns}
        assert {len(values) for values in table.values.values()} == {table.row_count}
        assert table.sort in table.values
        sent = msgspec.json.decode(msgspec.json.encode(table))
        assert sent["values"] == table.values
    by_name, by_launch = tables[2:]
    for table in (by_name, by_launch):
        assert sum(table.values["total_ns"]) == trace.kernels["duration_ns"].sum()


def test_every_table_can_be_written(
    trace: Trace, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """One trace as CSV, the next as JSON, the next as Parquet."""
    forms = tuple(table_export.WRITERS)
    form = forms[request.node.callspec.indices["trace"] % len(forms)]
    wanted = Request(tables=tuple(all_tables()), form=form, run="r", folder=str(tmp_path))
    for table, tabulated in table_export.tabulate(trace, wanted).items():
        whole = table_export.gather(table, [("r", tabulated)], form, str(tmp_path))
        assert not whole.failed
        if whole.rows:
            table_export.write_file(whole, form, tmp_path / f"{table}.{form}")


def test_shares_are_shares(trace: Trace) -> None:
    report = worker_report(trace)
    for device in report.devices:
        assert 0 <= device.busy_share <= 1
        assert 0 <= device.kernel_busy_share <= 1
        for figure in ("sm_efficiency_share", "occupancy_share", "tensor_core_share"):
            value = getattr(device, figure)
            assert value is None or 0 <= value <= 1
            note = device.notes.get(figure, "")
            assert bool(note) == (value is None or note.startswith("At least"))
    assert all(np.isfinite(list(report.idle_ns.values())))
    msgspec.json.encode(report)


def test_no_rule_fails(trace: Trace) -> None:
    report = advise(Run(name="run", workers=(trace,)))
    assert [outcome for outcome in report.outcomes if outcome.status == "failed"] == []
    net_ns = sum(outcome.claim.net_high_ns for outcome in report.outcomes if outcome.claim)
    step_ns = window(trace).per_step(window(trace).duration_ns)
    assert net_ns <= step_ns + len(report.outcomes)
