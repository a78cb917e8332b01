"""No number contradicts itself: each quantity is read wherever it is shown, and compared.

`SHOWN` lists each quantity with its places: views, tables, queries, and reports as text. A place
returns its values by key, such as the name of an operator; a place that has nothing to show returns
none. Places agree where they have equal values for the keys that they share, as they are shown: to
the nanosecond, or to the rounding of a time per step.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Any

import flask.testing
import msgspec
import pytest

from loading import SAMPLE_LOGS, SHARED_TRACES, shared_trace_names
from stepscope.api.app import create_app
from stepscope.api.prefetch import prepare
from stepscope.base import formatting
from stepscope.base.findings import ClaimReport
from stepscope.base.report import Report, RunReport, WorkerReport
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.pool import InProcessReader
from stepscope.render import markdown, text
from waiting import until

Values = Mapping[Any, float | str | None]
NO_DATA = {"not-recorded", "not-found"}
PER_STEP = 1
"""Rounding of a time per step, in ns."""
EXACT = 1e-6
"""Rounding of fractions of times per step."""


class AtOnce:
    """Runs each job when it is submitted."""

    def submit(self, job: Callable[[], None], /) -> None:
        """Run the job."""
        job()


class Shown:
    """What the page, the reports and the queries show of a trace; each answer is requested once."""

    def __init__(self, client: flask.testing.FlaskClient, run: dict[str, Any], trace: str) -> None:
        self.client, self.run, self.trace = client, run, trace
        self.answers: dict[str, Any] = {}

    def get(self, path: str, **query: object) -> Any:
        """Return an answer; None where the trace has no data for it."""
        key = f"{path}?{sorted(query.items())}"
        if key not in self.answers:
            response = self.client.get(f"/api/{path}", query_string=query)
            answer = msgspec.json.decode(response.data)
            has_data = response.status_code == 200
            assert has_data or answer["code"] in NO_DATA, (path, answer)
            self.answers[key] = answer if has_data else None
        return self.answers[key]

    def of_trace(self, path: str, **query: object) -> Any:
        """Return an answer on the trace."""
        return self.get(f"traces/{self.trace}/{path}", **query)

    def rows(self, path: str, **query: object) -> list[dict[str, Any]]:
        """Return the rows of a table of the trace; none where it has no such table."""
        return rows_of(self.of_trace(path, **query))

    def table(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a public table in the view Tables."""
        return self.rows(f"tables/{name}", limit=10_000)

    def sql(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a query in the view Tables, which `stepscope query` runs as well."""
        run = self.run["id"]
        return rows_of(self.get(f"runs/{run}/query", trace=self.trace, sql=sql))

    @cached_property
    def overview(self) -> dict[str, Any]:
        """The Overview."""
        answer: dict[str, Any] = self.of_trace("overview")
        return answer

    @cached_property
    def report(self) -> RunReport:
        """The advice on the run, as the page and `stepscope advise` show it."""
        return msgspec.convert(self.get(f"runs/{self.run['id']}/advice"), RunReport)

    @cached_property
    def worker(self) -> WorkerReport:
        """The trace in that advice."""
        return next(worker for worker in self.report.workers if worker.trace == self.trace)

    @property
    def is_single(self) -> bool:
        """True of the only trace of a run, of which the run's results are."""
        return len(self.report.workers) == 1

    @cached_property
    def result(self) -> dict[str, Any]:
        """The run's result in the list of runs; empty where the run has several traces."""
        result: dict[str, Any] = self.run["result"] if self.is_single else {}
        return result

    @cached_property
    def texts(self) -> dict[str, str]:
        """The advice on a run of one trace as text and as Markdown; else none."""
        report = Report(runs=(self.report,))
        forms = {"text": text.render(report, width=1000), "markdown": markdown.render(report)}
        return forms if self.is_single else {}

    @cached_property
    def claims(self) -> dict[str, ClaimReport]:
        """The claims of the trace's findings, by rule; of rules with several findings, none."""
        found = [
            outcome
            for outcome in self.report.outcomes
            if outcome.trace == self.trace and outcome.status == "found" and outcome.claim
        ]
        count = Counter(outcome.rule for outcome in found)
        return {
            outcome.rule: outcome.claim
            for outcome in found
            if outcome.claim is not None and count[outcome.rule] == 1
        }

    @property
    def step_ns(self) -> int:
        """The mean step; without steps, the window."""
        return self.worker.step.mean_ns

    @property
    def has_steps(self) -> bool:
        """True where the trace marks steps."""
        return self.worker.step.count > 0


def rows_of(table: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return a table's rows by the keys of its columns."""
    if table is None:
        return []
    values = table["values"]
    return [{key: of[row] for key, of in values.items()} for row in range(table["row_count"])]


def by(rows: Iterable[Mapping[str, Any]], key: str | tuple[str, ...], value: str) -> Values:
    """Return a column by the values of other columns."""
    keys = (key,) if isinstance(key, str) else key
    return {tuple(row[name] for name in keys): row[value] for row in rows}


def only(rows: Iterable[Mapping[str, Any]], value: str) -> Values:
    """Return a value of the only row; none without a row."""
    row = next(iter(rows), None)
    return {"": row[value]} if row else {}


def summed(rows: Iterable[Mapping[str, Any]], key: str, value: str) -> Values:
    """Return the sums of a column by the values of another."""
    sums: Counter[Any] = Counter()
    for row in rows:
        sums[row[key],] += row[value]
    return sums


# Steps and the window


def mean(values: Iterable[float]) -> float | None:
    """Return the mean; None of nothing."""
    values = list(values)
    return sum(values) / len(values) if values else None


def step_texts(it: Shown, form: str) -> Values:
    """Return the mean step in the first words of a report."""
    words = r"(?:Step|Recorded steps take) (\d\S* \S+?)[ ;,.(]|window is (\S+ \S+) long"
    said = re.search(words, it.texts.get(form, ""))
    return {"": said[1] or said[2]} if said else {}


def whole_row(it: Shown) -> Values:
    """Return the total of the budget in Markdown."""
    said = re.search(r"\| \*\*(?:Mean step|Total)\*\* \| (.*?) \|", it.texts.get("markdown", ""))
    return {"": said[1]} if said else {}


def rank_rows(it: Shown) -> Iterator[dict[str, Any]]:
    """Yield the row of the trace in the view Distributed."""
    if it.is_single or len({worker.span for worker in it.report.workers}) > 1:
        return
    answer = it.get("distributed/ranks", run=it.run["id"])
    names = [row["worker"] for row in answer["rows"]] if answer else []
    if names.count(it.worker.name) == 1:
        yield answer["rows"][names.index(it.worker.name)]


def of_run(it: Shown, table: str) -> list[dict[str, Any]]:
    """Return the rows of the trace in a table of the run."""
    rows = rows_of(it.get(f"runs/{it.run['id']}/tables/{table}", limit=10_000))
    return [
        row
        for row in rows
        if row["worker"] == it.worker.name and str(row["span"]) == it.worker.span
    ]


# Operators and kernels


def functions(it: Shown, measure: str, kind: str, value: str) -> Values:
    """Return a value of the Flame graph's functions of a kind, by name."""
    answer = it.of_trace("flame/functions", measure=measure)
    kinds = [of["id"] for of in answer["kinds"]]
    is_kind = [kinds[code] == kind for code in answer["name_kinds"]]
    names = zip(answer["names"], answer[value], is_kind, strict=True)
    return {(name,): of for name, of, is_of_kind in names if is_of_kind}


def operators(it: Shown, value: str, group: str = "name") -> Values:
    """Return a value of the view Operators by name, without annotations."""
    rows = it.rows("operators", group=group)
    return summed((row for row in rows if row["kind"] == "operator"), "name", value)


def replayed_operators(it: Shown, value: str, group: str = "name") -> Values:
    """Return a value of the operators whose kernels ran in replays of graphs, by name."""
    rows = it.rows("operators", group=group)
    return summed((row for row in rows if row["kind"] == "replayed"), "name", value)


def replayed_in_tables(it: Shown, value: str) -> Values:
    """Return the same by the table of the run, if the operators of the trace are not of another."""
    rows = of_run(it, "graph-operators") if replayed_operators(it, "call_count") else []
    return summed((row for row in rows if row["operator"]), "operator", value)


def operators_device_ns(it: Shown) -> Values:
    """Return the device time of all operators and annotations, where all of it is of a step."""
    rows = it.rows("operators")
    is_whole = rows and it.overview["devices"] and not it.sql(WITHOUT_STEP)
    return {"": sum(row["device_self_ns"] for row in rows)} if is_whole else {}


WITHOUT_STEP = """
select 1 from "device-events" device left join "runtime-calls" calls
on device.correlation = calls.correlation and device.correlation >= 0
left join "host-calls" steps
on steps.name like 'ProfilerStep%' and steps.thread = calls.thread
and steps.start_ns <= calls.start_ns and calls.start_ns < steps.end_ns
where steps.name is null limit 1
"""
"""Device work that no step's thread launched."""


def flame_totals(it: Shown, measure: str) -> Values:
    """Return the Flame graph's time of operators whose calls nest, and not in one another.

    Times of operators that call themselves are summed over all their calls in Operators, as in
    `key_averages()`, and counted once in the Flame graph, as both say. A call that ends after the
    start of a later one, but before its end, is drawn until that start.
    """
    others = {row["name"] for row in (*it.sql(RECURSIVE), *it.sql(CROSSING))}
    totals = functions(it, measure, "operator", "total")
    return {key: total for key, total in totals.items() if key[0] not in others}


CROSSING = """
with calls as (
    select name, thread, start_ns, end_ns from "host-calls"
    union all select name, thread, start_ns, end_ns from "runtime-calls"
    union all select name, thread, start_ns, end_ns from "python-calls"
), apart as (
    select name, start_ns + shift as begin, end_ns + shift as until from (
        select *, dense_rank() over (order by thread) * 1000000000000000 as shift from calls
    )
)
select distinct a.name as name from apart a join apart b
on a.begin < b.begin and b.begin < a.until and a.until < b.until
"""
"""Names of calls that cross a later one on their thread; threads are put apart in time."""
RECURSIVE = """
with recursive calls as (
    select row_number() over () - 1 as row, name, parent from "host-calls"
), ancestors as (
    select name, parent from calls
    union all
    select below.name, calls.parent from ancestors below join calls on below.parent = calls.row
)
select distinct below.name from ancestors below join calls on below.parent = calls.row
where below.name = calls.name
"""
"""Names of operators that run in another call of the same name."""


def top(it: Shown, title: str, key: str, value: str) -> Values:
    """Return a value of a short list of the Overview, of rows that ran outside graphs."""
    rows = it.overview[f"top_{title}"]
    return {(row[key],): row[value] for row in rows if row["kind"] != "replayed"}


def replayed_top(it: Shown, value: str) -> Values:
    """Return a value of the operators of graphs in the short list of the Overview."""
    rows = it.overview["top_operators"]
    return {(row["name"],): row[value] for row in rows if row["kind"] == "replayed"}


def names(it: Shown, kind: str) -> Values:
    """Return the times of names in the search of names."""
    kinds = [of for of in it.of_trace("names", limit=20_000)["kinds"] if of["kind"] == kind]
    return {
        (name,): ns for of in kinds for name, ns in zip(of["names"], of["times_ns"], strict=True)
    }


def sampled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first and the last rows, whose details are requested."""
    return rows[:2] + rows[2:][-1:]


def operator_details(it: Shown, *path: str) -> Values:
    """Return a number of the details of some operators."""
    rows = [row for row in it.rows("operators") if row["kind"] == "operator"]
    details = (it.of_trace("operators/details", name=row["name"]) for row in sampled(rows))
    return {(of["name"],): field(of, path) for of in details}


def kernel_details(it: Shown, *path: str) -> Values:
    """Return a number of the details of some kernels."""
    rows = sampled(it.rows("kernels"))
    details = (it.of_trace("kernels/details", full_name=row["full_name"]) for row in rows)
    return {(of["full_name"],): field(of, path) for of in details}


def field(answer: Any, path: Iterable[str]) -> Any:
    """Return a nested field; None where one of them is null."""
    for name in path:
        answer = answer[name] if answer is not None else None
    return answer


def kernels(it: Shown, value: str, group: str = "name") -> Values:
    """Return a value of the view Kernels by full name."""
    return summed(it.rows("kernels", group=group), "full_name", value)


# Devices and savings


def busiest(devices: Iterable[Mapping[str, Any]]) -> Values:
    """Return the busy fraction of the busiest device."""
    shares = [device["busy_share"] for device in devices]
    return {"": max(shares)} if shares else {}


def busy_texts(it: Shown, form: str) -> Values:
    """Return the busy fraction of the device in the first words of a report."""
    said = re.search(r"is busy (\S+ %)", it.texts.get(form, ""))
    return {"": said[1]} if said else {}


def single_streams(it: Shown) -> Values:
    """Return the busy fraction of the Timeline's stream, where there is only one."""
    answer = it.of_trace("timeline/tracks")
    busy = [track["busy_ns"] for track in answer["tracks"] if track["kind"] == "stream"]
    return {"": busy[0] / answer["window_ns"]} if len(busy) == 1 else {}


def idle_ns(it: Shown) -> float | None:
    """Return the busiest device's idle time per step, by its busy fraction."""
    shares = busiest(it.overview["devices"])
    return (1 - float(shares[""] or 0)) * it.step_ns if shares else None


def table_idle(it: Shown) -> Values:
    """Return the idle time per step by cause in the tables, of the only device."""
    rows = it.table("idle") if len(it.overview["devices"]) == 1 else []
    return {row["cause"]: row["idle_ns"] / max(1, it.worker.step.count) for row in rows}


def saving_texts(it: Shown, form: str) -> Values:
    """Return what a report says that a finding saves, by rule: the time and the fraction."""
    if form == "text":
        return {}
    said = re.findall(
        r"\*\*Saves up to (\S+ \S+) (?:per [a-z ]+|in total) \((.*? %)\).*? · `([a-z0-9-]+)`",
        it.texts.get(form, ""),
    )
    count = Counter(rule for _, _, rule in said)
    return {rule: f"{time} {fraction}" for time, fraction, rule in said if count[rule] == 1}


def unrecorded_ns(it: Shown) -> float | None:
    """Return the step without the profiler that the page shows; None where it is not known."""
    measured = it.worker.step.unrecorded
    return (measured.mean_ns or measured.median_ns) if measured else None


def outlook_savings(it: Shown, end: str) -> Values:
    """Return what the outlook's fixes save together, where these are all fixes."""
    outlook = it.worker.outlook
    fixes = {rule for rule, claim in it.claims.items() if claim.decisive.high_ns}
    if outlook is None or set(outlook.rules) != fixes:
        return {}
    return {"": outlook.now_ns - getattr(outlook, end)}


def device_id(row: Mapping[str, Any]) -> str:
    """Return the id of a device of memory as in the view Memory."""
    kind = str(row["device_type"])
    return kind if kind == "CPU" else f"{kind} {row['device']}"


def compare(it: Shown, part: str) -> list[dict[str, Any]]:
    """Return a part of the view Compare, of a run of one trace with itself."""
    run = it.run["id"]
    answer = it.get("comparison", run=run, base_run=run) if it.is_single else None
    found = answer["comparison"][part] if answer else []
    return found if isinstance(found, list) else [found]


def heat(it: Shown) -> Values:
    """Return the steps of the trace in the view Distributed, where they are sent in ns."""
    rows = [row["worker"] for row in rank_rows(it)]
    answer = it.get("distributed/steps", run=it.run["id"], metric="step") if rows else None
    if answer is None or answer["scale"] != 1:
        return {}
    values = answer["values"][answer["workers"].index(rows[0])]
    return {(step,): value for step, value in zip(answer["steps"], values, strict=True)}


def module_functions(it: Shown, value: str) -> Values:
    """Return a value of the Flame graph of the modules' forward passes, by the modules' names."""
    answer = it.of_trace("flame/functions", subject="modules", phase="forward")
    if answer is None:
        return {}
    return {(name,): of for name, of in zip(answer["names"], answer[value], strict=True)}


LAST_WORK = """
select max(end_ns) as end_ns from (
    select end_ns from "host-calls" union all select end_ns from "runtime-calls"
    union all select end_ns from "python-calls" union all select end_ns from "device-events"
    union all select end_ns from "device-annotation-events"
    union all select end_ns from "synchronization-events"
)
"""
Read = Callable[[Shown], Values]
SHOWN: dict[str, dict[str, Read]] = {
    "mean step, ns": {
        "Overview": lambda it: {"": it.overview["step"]["mean_ns"]},
        "Overview: window over steps": lambda it: {
            "": it.overview["window_ns"] / max(1, it.overview["step"]["count"])
        },
        "Overview: mean of the steps": lambda it: {
            "": mean(step["duration_ns"] for step in it.overview["steps"])
        },
        "Overview: sum of the parts": lambda it: {
            "": sum(it.overview["step"]["breakdown_ns"].values())
        },
        "Advice": lambda it: {"": it.worker.step.mean_ns},
        "Advice: sum of the budget": lambda it: {
            "": sum(line.time_ns for line in it.worker.budget) if it.worker.budget else None
        },
        "Runs": lambda it: {"": it.result.get("step_ns")},
        "Timeline: whole of shares over steps": lambda it: {
            "": it.of_trace("timeline/tracks")["window_ns"] / max(1, it.worker.step.count)
        },
        "Operators: whole of shares over steps": lambda it: {
            "": it.of_trace("operators")["total_ns"] / max(1, it.worker.step.count)
        },
        "Kernels: whole of shares over steps": lambda it: {
            "": it.of_trace("kernels")["total_ns"] / max(1, it.worker.step.count)
        },
        "Modules: whole of shares over steps": lambda it: {
            "": modules["total_ns"] / max(1, it.worker.step.count)
            if (modules := it.of_trace("modules"))
            else None
        },
        "Tables: steps": lambda it: {
            "": mean(row["duration_ns"] for row in it.table("steps")) if it.has_steps else None
        },
        "What-if": lambda it: {"": it.of_trace("what-if")["recorded_ns"]},
        "Compare": lambda it: only(compare(it, "after"), "mean_step_ns"),
        "Distributed": lambda it: only(rank_rows(it), "duration_ns"),
        "Tables: ranks": lambda it: only(of_run(it, "ranks"), "step_ns"),
        "Tables: trends": lambda it: only(of_run(it, "trends"), "step_ns"),
    },
    "mean step, as text": {
        "Overview": lambda it: {"": formatting.duration(it.overview["step"]["mean_ns"])},
        "Advice as text": lambda it: step_texts(it, "text"),
        "Advice in Markdown": lambda it: step_texts(it, "markdown"),
        "Advice in Markdown: budget": whole_row,
    },
    "steps": {
        "Overview": lambda it: {"": it.overview["step"]["count"]},
        "Overview: rows": lambda it: {"": len(it.overview["steps"])},
        "Advice": lambda it: {"": it.worker.step.count},
        "Runs": lambda it: {"": it.result.get("step_count")},
        "Timeline": lambda it: {"": len(it.of_trace("timeline/tracks")["steps"])},
        "Flame graph": lambda it: {"": it.of_trace("flame/functions")["steps"]},
        "What-if": lambda it: {"": it.of_trace("what-if")["step_count"]},
        "Tables: steps": lambda it: {"": len(it.table("steps"))},
        "Distributed": lambda it: only(rank_rows(it), "step_count"),
        "Tables: ranks": lambda it: only(of_run(it, "ranks"), "step_count"),
        "Tables: trends": lambda it: only(of_run(it, "trends"), "step_count"),
    },
    "a step, ns": {
        "Overview": lambda it: by(it.overview["steps"], "number", "duration_ns"),
        "Tables: steps": lambda it: by(it.table("steps"), "number", "duration_ns"),
        "query": lambda it: by(it.sql("select * from steps"), "number", "duration_ns"),
        "Distributed": heat,
    },
    "median step, ns": {
        "Overview": lambda it: {
            "": median(step["duration_ns"] for step in it.overview["steps"])
            if it.has_steps
            else None
        },
        "Compare": lambda it: only(compare(it, "after"), "median_step_ns"),
        "Tables: trends": lambda it: only(of_run(it, "trends"), "median_step_ns"),
    },
    "events": {
        "Advice": lambda it: {"": it.worker.events},
        "Runs": lambda it: only(
            (
                span
                for worker in it.run["workers"]
                for span in worker["spans"]
                if span["trace"] == it.trace
            ),
            "events",
        ),
    },
    "end of the last work, ns": {
        "Timeline": lambda it: {"": it.of_trace("timeline/tracks")["end_ns"]},
        "Tables": lambda it: {"": it.sql(LAST_WORK)[0]["end_ns"]},
    },
    "a part of the mean step, ns": {
        "Overview": lambda it: it.overview["step"]["breakdown_ns"],
        "Advice": lambda it: it.worker.step.breakdown_ns,
        "Advice: budget": lambda it: {line.category: line.time_ns for line in it.worker.budget},
        "Tables: trends": lambda it: {
            name: row[f"{name}_ns"]
            for row in of_run(it, "trends")
            for name in it.worker.step.breakdown_ns
        },
        "Compare": lambda it: {
            part["id"]: part["change"]["after"] for part in compare(it, "waterfall")
        },
    },
    "a part of a step, ns": {
        "Overview": lambda it: {
            (step["number"], category["id"]): ns
            for step in it.overview["steps"]
            for category, ns in zip(it.overview["categories"], step["parts_ns"], strict=True)
        },
        "Tables: step-breakdown": lambda it: by(
            it.table("step-breakdown"), ("number", "category"), "duration_ns"
        ),
    },
    "a part of the mean step, fraction": {
        "Overview": lambda it: {
            name: time_ns / it.step_ns
            for name, time_ns in it.overview["step"]["breakdown_ns"].items()
        },
        "Advice: budget": lambda it: {line.category: line.share for line in it.worker.budget},
    },
    "calls of an operator": {
        "Operators": lambda it: operators(it, "call_count"),
        "Operators: by shape": lambda it: operators(it, "call_count", "shape"),
        "Operators: details": lambda it: operator_details(it, "host", "count"),
        "Flame graph": lambda it: functions(it, "host", "operator", "calls"),
        "Tables: operators": lambda it: by(
            (row for row in it.table("operators") if row["kind"] == "operator"),
            "name",
            "call_count",
        ),
        "query": lambda it: by(
            it.sql("select name, call_count from operators where kind = 'operator'"),
            "name",
            "call_count",
        ),
    },
    "calls of an operator, as text": {
        "Operators": lambda it: {
            key: formatting.count(int(calls or 0), "call")
            for key, calls in operators(it, "call_count").items()
        },
        "Overview": lambda it: top(it, "operators", "name", "detail"),
    },
    "host time of an operator, ns": {
        "Operators": lambda it: operators(it, "host_total_ns"),
        "Operators: by shape": lambda it: operators(it, "host_total_ns", "shape"),
        "Operators: details": lambda it: operator_details(it, "host", "total_ns"),
        "names": lambda it: names(it, "operator"),
        "Flame graph": lambda it: flame_totals(it, "host"),
        "Tables: operators": lambda it: by(
            (row for row in it.table("operators") if row["kind"] == "operator"),
            "name",
            "host_total_ns",
        ),
    },
    "device time of an operator, ns": {
        "Operators": lambda it: operators(it, "device_total_ns") if it.overview["devices"] else {},
        "Operators: details": lambda it: operator_details(it, "device", "total_ns"),
        "Flame graph": lambda it: flame_totals(it, "device"),
    },
    "device time of an operator in replayed graphs, ns": {
        "Operators": lambda it: replayed_operators(it, "device_self_ns"),
        "Operators: by shape": lambda it: replayed_operators(it, "device_self_ns", "shape"),
        "Tables: graph-operators": lambda it: replayed_in_tables(it, "total_ns"),
        "Overview": lambda it: replayed_top(it, "value"),
    },
    "calls of an operator in replayed graphs": {
        "Operators": lambda it: replayed_operators(it, "call_count"),
        "Operators: by shape": lambda it: replayed_operators(it, "call_count", "shape"),
        "Tables: operators": lambda it: by(
            (row for row in it.table("operators") if row["kind"] == "replayed"),
            "name",
            "call_count",
        ),
    },
    "time of an operator in the Overview": {
        "Operators": lambda it: operators(it, it.of_trace("operators")["sort"]),
        "Overview": lambda it: top(it, "operators", "name", "value"),
    },
    "fraction of an operator in the Overview": {
        "Operators": lambda it: operators(
            it, it.of_trace("operators")["sort"].replace("_ns", "_share")
        ),
        "Overview": lambda it: top(it, "operators", "name", "share"),
    },
    "calls of a kernel": {
        "Kernels": lambda it: kernels(it, "call_count"),
        "Kernels: by launch": lambda it: kernels(it, "call_count", "launch"),
        "Kernels: by stream": lambda it: kernels(it, "call_count", "stream"),
        "Kernels: details": lambda it: kernel_details(it, "durations", "count"),
        "Flame graph": lambda it: functions(it, "device", "kernel", "calls"),
        "Tables: kernels": lambda it: by(it.table("kernels"), "full_name", "call_count"),
    },
    "time of a kernel, ns": {
        "Kernels": lambda it: kernels(it, "total_ns"),
        "Kernels: by launch": lambda it: kernels(it, "total_ns", "launch"),
        "Kernels: by stream": lambda it: kernels(it, "total_ns", "stream"),
        "Kernels: details": lambda it: kernel_details(it, "durations", "total_ns"),
        "Overview": lambda it: top(it, "kernels", "full_name", "value"),
        "Flame graph": lambda it: functions(it, "device", "kernel", "total"),
        "query": lambda it: by(it.sql("select * from kernels"), "full_name", "total_ns"),
    },
    "fraction of a kernel": {
        "Kernels": lambda it: kernels(it, "window_share"),
        "Overview": lambda it: top(it, "kernels", "full_name", "share"),
    },
    "time of a short kernel name, ns": {
        "Kernels": lambda it: summed(it.rows("kernels"), "name", "total_ns"),
        "names": lambda it: names(it, "kernel"),
    },
    "device time in all, ns": {
        "query": lambda it: only(
            it.sql('select sum(duration_ns)::bigint as total from "device-events"'), "total"
        ),
        "Flame graph": lambda it: {"": it.of_trace("flame/functions", measure="device")["whole"]},
        "Operators": operators_device_ns,
        "Tables: kernels, copies and memory sets": lambda it: {
            "": sum(
                row["total_ns"]
                for name in ("kernels", "copies", "memory-sets")
                for row in it.table(name)
            )
        },
    },
    "calls of a module": {
        "Modules": lambda it: summed(it.rows("modules"), "module", "call_count"),
        "Flame graph": lambda it: module_functions(it, "calls"),
        "Tables: modules": lambda it: summed(it.table("modules"), "module", "call_count"),
    },
    "host time of a module without its modules, ns": {
        "Modules": lambda it: summed(it.rows("modules"), "module", "forward_host_self_ns"),
        "Flame graph": lambda it: module_functions(it, "own"),
    },
    "host time of a module, ns": {
        "Tables: modules": lambda it: by(it.table("modules"), "path", "forward_host_total_ns"),
        "names": lambda it: names(it, "module"),
        "Modules": lambda it: {
            (path,): ns
            for answer in [it.of_trace("modules")]
            if answer
            for path, ns in zip(
                answer["path"], answer["values"]["forward_host_total_ns"], strict=True
            )
        },
    },
    "busy fraction of the busiest device": {
        "Overview": lambda it: busiest(it.overview["devices"]),
        "Advice": lambda it: busiest([msgspec.to_builtins(of) for of in it.worker.devices]),
        "Runs": lambda it: {"": it.result.get("busy_share")},
        "Timeline": single_streams,
        "Overview: without idle time": lambda it: {
            "": 1 - sum(of["share"] for of in it.overview["idle"])
            if it.overview["devices"]
            else None
        },
        "Tables: trends": lambda it: only(of_run(it, "trends"), "busy_share"),
    },
    "busy fraction, as text": {
        "Overview": lambda it: {
            key: formatting.share(float(of or 0))
            for key, of in busiest(it.overview["devices"]).items()
        },
        "Advice as text": lambda it: busy_texts(it, "text"),
        "Advice in Markdown": lambda it: busy_texts(it, "markdown"),
    },
    "idle time per step, ns": {
        "Overview: idle causes": lambda it: {
            "": sum(of["idle_ns"] for of in it.overview["idle"]) if it.overview["devices"] else None
        },
        "Overview: devices": lambda it: {"": idle_ns(it)},
        "Tables: ranks": lambda it: only(of_run(it, "ranks"), "idle_ns"),
        "Distributed": lambda it: only(rank_rows(it), "idle_ns"),
    },
    "idle time per step by cause, ns": {
        "Overview": lambda it: {of["id"]: of["idle_ns"] for of in it.overview["idle"]},
        "Advice": lambda it: it.worker.idle_ns,
        "Tables: idle": table_idle,
    },
    "saving of a finding, fraction": {
        "Advice": lambda it: {rule: claim.share for rule, claim in it.claims.items()},
        "Advice: time over the step": lambda it: {
            rule: min(1.0, claim.high_ns / it.step_ns) for rule, claim in it.claims.items()
        },
    },
    "saving of a finding without the profiler, fraction": {
        "Advice": lambda it: {rule: claim.unrecorded_share for rule, claim in it.claims.items()},
        "Advice: time over the step": lambda it: {
            rule: min(1.0, claim.unrecorded_high_ns / step_ns)
            for rule, claim in it.claims.items()
            if (step_ns := unrecorded_ns(it)) and claim.unrecorded_high_ns is not None
        },
    },
    "saving of a finding, as text": {
        "Advice": lambda it: {
            rule: f"{formatting.duration(of.high_ns)} {formatting.share(of.share)}"
            for rule, claim in it.claims.items()
            if (of := claim.decisive).high_ns
        },
        "Advice in Markdown": lambda it: saving_texts(it, "markdown"),
    },
    "saving of all findings, ns": {
        "Advice: budget": lambda it: {
            "": sum(line.recoverable_high_ns for line in it.worker.budget)
        },
        "Advice": lambda it: {"": it.worker.saving.high_ns if it.worker.saving else 0},
        "Outlook": lambda it: outlook_savings(it, "low_ns"),
        "Runs": lambda it: {"": saving["high_ns"] if (saving := it.result.get("saving")) else None},
    },
    "least saving of all findings, ns": {
        "Advice: budget": lambda it: {
            "": sum(line.recoverable_low_ns for line in it.worker.budget)
        },
        "Advice": lambda it: {"": it.worker.saving.low_ns if it.worker.saving else 0},
        "Outlook": lambda it: outlook_savings(it, "high_ns"),
    },
    "saving of all findings, fraction": {
        "Runs": lambda it: {"": saving["share"] if (saving := it.result.get("saving")) else None},
        "Advice": lambda it: {"": it.worker.saving.high_share if it.worker.saving else 0.0},
        "Tables: trends": lambda it: only(of_run(it, "trends"), "recoverable_share"),
    },
    "step without the fixes, ns": {
        "Outlook": lambda it: {of.world: of.now_ns for of in [it.worker.outlook] if of},
        "Advice": lambda it: {"recorded": it.step_ns, "unrecorded": unrecorded_ns(it)},
    },
    "saving of a fix, ns": {
        "Advice": lambda it: {rule: claim.high_ns for rule, claim in it.claims.items()},
        "What-if": lambda it: {
            of["rule"]: of["high_ns"] for of in it.of_trace("what-if/fixes")["fixes"]
        },
    },
    "memory peak, bytes": {
        "Memory": lambda it: (
            {of["id"]: of["peak_bytes"] for of in memory["devices"]}
            if (memory := it.of_trace("memory/curve"))
            else {}
        ),
        "Flame graph": lambda it: (
            {memory["device"]: memory["whole"]}
            if (memory := it.of_trace("flame/graph", subject="memory"))
            else {}
        ),
        "Tables: memory-peak": lambda it: {
            device_id(row): row["allocated_bytes"] for row in it.table("memory-peak")
        },
        "query: memory-curve": lambda it: (
            {
                device_id(row): row["most"]
                for row in it.sql(
                    'select device_type, device, max(allocated_bytes) as most from "memory-curve"'
                    " group by all"
                )
            }
            if it.of_trace("memory/curve")
            else {}
        ),
    },
    "memory that torch took from a device, bytes": {
        "Overview": lambda it: {of["id"]: of["memory_peak_bytes"] for of in it.overview["devices"]},
        "Memory": lambda it: {
            int(of["id"].split()[-1]): of["most_reserved_bytes"] or of["peak_bytes"]
            for of in (it.of_trace("memory/curve") or {"devices": []})["devices"]
            if of["has_totals"] and of["id"] != "CPU"
        },
    },
    "communication of a rank per step, ns": {
        "Distributed": lambda it: {
            name: row[name]
            for row in rank_rows(it)
            for name in ("communication_ns", "exposed_ns", "wait_ns", "transfer_ns")
        },
        "Tables: ranks": lambda it: {
            name: row[name]
            for row in of_run(it, "ranks")
            for name in ("communication_ns", "exposed_ns", "wait_ns", "transfer_ns")
        },
    },
}


EVERY = "STEPSCOPE_EVERY_SAMPLE"
"""Variable with which all samples and traces are tested, which takes some minutes more."""
ALIKE = re.compile(r"num_workers_4/|1623143566756|sampled_rank-1|event_sync_multi|/mi300/")
"""Traces that are recorded as others are."""
FEW = re.compile(r"alexnet|nccl_parser|b200|vllm|num_workers_0/worker0.1623143089861")
TRACES = [
    pytest.param(name, marks=pytest.mark.slow if FEW.search(name) else pytest.mark.every)
    for name in shared_trace_names()
    if EVERY in os.environ or not ALIKE.search(name)
]
QUICK = (
    "synthetic_dataloader/fault",
    "masking/numpy",
    "ranks/one_slow_rank",
    "metrics/item_each_step",
)
"""Samples of a device, of stacks, of ranks, and of savings that differ without the profiler."""
RUNS = sorted({path.parent for path in SAMPLE_LOGS.rglob("*.pt.trace.json.gz")})


def samples() -> Iterator[Any]:
    """Yield the folders of the quick samples, and one of each other scenario."""
    scenarios = {name.split("/")[0] for name in QUICK}
    for folder in RUNS:
        name = folder.relative_to(SAMPLE_LOGS).as_posix()
        scenario = name.split("/")[0]
        if name in QUICK:
            yield pytest.param(folder, id=name)
        elif scenario not in scenarios or EVERY in os.environ:
            scenarios.add(scenario)
            yield pytest.param(folder, id=name, marks=pytest.mark.every)


def contradictions(it: Shown) -> list[str]:
    """Return the quantities that differ between two places, with their values."""
    return [
        f"{name}{f' of {key}' if key else ''}: {first}: {one}, {place}: {other}"
        for name, places in SHOWN.items()
        for first, place, key, one, other in compared(it, places)
        if not agree(one, other, PER_STEP if name.endswith(", ns") else 0)
    ]


def compared(
    it: Shown, places: Mapping[str, Read]
) -> Iterator[tuple[str, str, Any, float | str, float | str]]:
    """Yield each value with the value of the first place that shows it."""
    first: dict[Any, tuple[str, float | str]] = {}
    for place, read in places.items():
        for key, value in read(it).items():
            if value is not None:
                shown_at, one = first.setdefault(key, (place, value))
                yield shown_at, place, key, one, value


def agree(one: float | str, other: float | str, rounding: float) -> bool:
    """Return whether two values are equal, but for rounding."""
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return abs(one - other) <= max(rounding, EXACT)


def listing(client: flask.testing.FlaskClient) -> dict[str, Any]:
    """Return the list of runs."""
    answer: dict[str, Any] = msgspec.json.decode(client.get("/api/runs").data)
    return answer


def shown_in(folder: Path) -> Iterator[Shown]:
    """Yield what is shown of each trace of a run."""
    catalog = Catalog(
        [LogDirectory(path=str(folder))],
        CatalogOptions(executor=AtOnce(), reader=InProcessReader(), prepare=prepare),
    )
    catalog.scan()
    catalog.start_reading()
    client = create_app(catalog).test_client()

    until(lambda: not listing(client)["has_pending_results"])
    for run in listing(client)["runs"]:
        for worker in run["workers"]:
            for span in worker["spans"]:
                yield Shown(client, run, span["trace"])


@pytest.mark.parametrize("folder", list(samples()))
def test_no_number_of_a_sample_contradicts_itself(folder: Path) -> None:
    for it in shown_in(folder):
        assert contradictions(it) == [], it.worker.file


@pytest.mark.parametrize("name", TRACES)
def test_no_number_of_a_real_trace_contradicts_itself(name: str, tmp_path: Path) -> None:
    for it in shown_in(linked(name, tmp_path)):
        assert contradictions(it) == []


def linked(name: str, folder: Path) -> Path:
    """Return a run with a real trace, under a name that the scan looks for."""
    run = folder / Path(name).parent.name
    run.mkdir()
    (run / f"{Path(name).name.split('.')[0]}.pt.trace.json.gz").symlink_to(SHARED_TRACES / name)
    return run
