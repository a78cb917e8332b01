"""The requests of the page that a shared file answers, the most important first.

They are what the views request when they are opened from their links, with the choices that change
no range: a test opens every view of a shared file. Names of rows come from earlier responses.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

Value = str | float | bool | Sequence[str]
Json = Any


@dataclass(frozen=True, kw_only=True, eq=False)
class Request:
    """A path below `api/`, and its parameters."""

    path: str
    parameters: Mapping[str, Value]


Get = Callable[[Request], Json]
"""Returns a response; None for a refusal."""
Requests = Iterator[Request]

IGNORED: Mapping[str, frozenset[str]] = {
    "timeline/tiles": frozenset({"tracks"}),
    "flame/graph": frozenset({"root"}),
    "memory/allocations": frozenset({"sort", "descending", "search", "limit"}),
}
"""Parameters that a response of the file does not depend on, as in `shared_file.ts`."""
OF_TABLES = frozenset({"sort", "descending", "search", "limit"})
MOST_ROWS = 1000
"""Rows of a public table in a file."""
DETAILED_ROWS = 25
"""Rows of operators, kernels and modules whose details are in a file."""
CURVE_PIXELS = 1600
WHAT_IF_PIXELS = 1200
ALLOCATION_ROWS = 2000
UNCHANGED: Mapping[str, Value] = {"host": 1, "device": 1, "no_waits": False}
METRICS = (
    "own",
    "late",
    "step",
    "computing",
    "waiting",
    "exposed",
    "overlap",
    "idle",
    "loading",
    "copies",
)
HOLDERS = ("operator", "module", "stack", "lifetime", "category")
EXPLAINED = frozenset({"found", "suppressed", "rejected"})
"""Statuses of outcomes whose rule's page is in a file."""


def request(path: str, **parameters: Value | None) -> Request:
    """Return a request; parameters that are None are not sent."""
    sent = {name: value for name, value in parameters.items() if value is not None}
    return Request(path=path, parameters=sent)


def key(of: Request) -> str:
    """Return a request's key in the file: path and parameters, without those that do not matter."""
    ignored = next((names for end, names in IGNORED.items() if of.path.endswith(end)), frozenset())
    if "tables" in of.path.split("/")[:-1]:
        ignored = OF_TABLES
    pairs = sorted(
        f"{name}={text}"
        for name, value in of.parameters.items()
        if name not in ignored
        for text in texts(value)
    )
    return f"{of.path}?{'&'.join(pairs)}" if pairs else of.path


def texts(value: Value) -> list[str]:
    """Return a parameter's values as the page writes them."""
    if isinstance(value, bool):
        return [str(value).lower()]
    if isinstance(value, str | int | float):
        return [str(value)]
    return list(value)


def of_page() -> Requests:
    """Yield what belongs to no run."""
    yield request("tools")
    yield request("tables")
    yield request("query-tables")


def advice(run: str, trace: str) -> Request:
    """Return the request of the advice on a trace and its run."""
    return request(f"runs/{run}/advice", trace=trace)


def of_advice(run: str, trace: str, get: Get) -> Requests:
    """Yield the advice on a trace and its run, the overview, and the pages of the found rules."""
    yield advice(run, trace)
    yield request(f"traces/{trace}/overview")
    outcomes = _outcomes(get(advice(run, trace)))
    rules = {outcome["rule"] for outcome in outcomes if _is_explained(outcome)}
    for rule in sorted(rules):
        yield request(f"rules/{rule}")


def of_findings(run: str, trace: str, get: Get) -> Requests:
    """Yield the pictures of a trace's findings, and the events that these name."""
    for outcome in _outcomes(get(advice(run, trace))):
        if outcome["trace"] == trace and _is_explained(outcome):
            yield from _excerpt(trace, outcome)
            for event in outcome["events"]:
                if event["event"] is not None:
                    yield request(f"traces/{trace}/timeline/slices/{event['event']}")


def _outcomes(report: Json) -> list[Json]:
    if report is None:
        return []
    merged = [finding["outcome"] for finding in report["merged"]]
    return [*merged, *report["outcomes"]]


def _is_explained(outcome: Json) -> bool:
    return outcome["status"] in EXPLAINED


def _excerpt(trace: str, outcome: Json) -> Requests:
    """Yield the picture of a finding, as `excerptParameters` of the page requests it."""
    event = next(iter(outcome["events"]), None)
    times = outcome["claim"]["example_times"] if outcome["claim"] else []
    if event is None and not times:
        return
    start_ns = event["start_ns"] if event else 0
    yield request(
        f"traces/{trace}/timeline/excerpt",
        event=event["event"] if event else None,
        event_time=_range(start_ns, start_ns + event["duration_ns"]) if event else None,
        time=[_range(time["start_ns"], time["end_ns"]) for time in times],
    )


def _range(start_ns: int, end_ns: int) -> str:
    return f"{max(0, start_ns)}-{end_ns}"


def candidates(run: str) -> Request:
    """Return the request of the runs to compare a run with."""
    return request("comparison/candidates", run=run)


def of_run(
    run: str,
    spans: Iterable[str],
    scopes: Iterable[str],
    sides: Iterable[Mapping[str, str]],
    get: Get,
) -> Requests:
    """Yield what the views of several traces request: ranks, trends, comparisons, memory files."""
    yield request(f"runs/{run}/memory-files")
    for span in spans:
        yield from _of_ranks(run, span, get)
    for scope in scopes:
        yield request("trends", run=run, scope=scope)
    yield candidates(run)
    for side in sides:
        yield request("comparison", **side)


def _of_ranks(run: str, span: str, get: Get) -> Requests:
    """Yield what the Distributed view requests."""
    for path in ("distributed", "distributed/ranks"):
        yield request(path, run=run, span=span)
    for metric in METRICS:
        yield request("distributed/steps", run=run, span=span, metric=metric)
    for by in ("kind", "each"):
        yield request("distributed/collectives", run=run, span=span, by=by)
    for path in ("distributed/groups", "distributed/devices"):
        yield request(path, run=run, span=span)
    summary = get(request("distributed", run=run, span=span))
    if summary is not None and summary["has_all_to_all"]:
        yield request("distributed/all-to-all", run=run, span=span)


def of_fixes(run: str, trace: str, get: Get) -> Requests:
    """Yield the simulation of the first fixes of a trace's advice, to which the advice links."""
    report = get(advice(run, trace))
    for worker in report["workers"] if report else ():
        if worker["trace"] == trace and worker["outlook"] is not None:
            fixes = {**UNCHANGED, "fix": worker["outlook"]["rules"]}
            yield from _what_if(f"traces/{trace}", fixes)


def _what_if(below: str, changes: Mapping[str, Value]) -> Requests:
    yield request(f"{below}/what-if", **changes)
    yield request(f"{below}/what-if/fixes", **changes)
    yield request(f"{below}/what-if/timeline", pixels=WHAT_IF_PIXELS, **changes)


def of_views(trace: str, get: Get) -> Requests:
    """Yield the tables and charts of the views of a trace."""
    below = f"traces/{trace}"
    yield request(f"{below}/operators")
    yield request(f"{below}/kernels")
    yield request(f"{below}/kernels/durations")
    yield request(f"{below}/modules", by="instance")
    yield from _flame(below)
    yield from _memory(below, get)
    yield request(f"{below}/what-if/names")
    yield from _what_if(below, UNCHANGED)
    yield request(f"{below}/modules", by="class")
    yield request(f"{below}/names")
    for path in ("operators", "kernels"):
        table = get(request(f"{below}/{path}"))
        for group in table["groups"] if table else ():
            yield request(f"{below}/{path}", group=group)


def _flame(below: str) -> Requests:
    for measure in (None, "device"):
        for path in ("graph", "functions"):
            yield request(f"{below}/flame/{path}", by_class=True, measure=measure)
    for path in ("graph", "functions"):
        yield request(f"{below}/flame/{path}", by_class=True, subject="memory")
        for measure in (None, "device"):
            yield request(f"{below}/flame/{path}", subject="modules", measure=measure)
    yield request(f"{below}/flame/graph", by_class=True, direction="callers")


def _memory(below: str, get: Get) -> Requests:
    first = request(f"{below}/memory/curve", pixels=CURVE_PIXELS)
    yield first
    curve = get(first)
    if curve is None:
        return
    for device in (entry["id"] for entry in curve["devices"]):
        if device != curve["device"]:
            yield request(f"{below}/memory/curve", pixels=CURVE_PIXELS, device=device)
        for by in HOLDERS:
            yield request(f"{below}/memory/holders", device=device, by=by)
        yield request(f"{below}/memory/allocations", device=device, limit=ALLOCATION_ROWS)
        for path in ("operators", "growth", "fragmentation"):
            yield request(f"{below}/memory/{path}", device=device)


def of_run_tables(run: str, get: Get) -> Requests:
    """Yield the first rows of each public table of a run."""
    for name in _table_names(get, is_of_run=True):
        yield request(f"runs/{run}/tables/{name}", limit=MOST_ROWS)


def of_trace_tables(trace: str, get: Get) -> Requests:
    """Yield the first rows of each public table of a trace."""
    for name in _table_names(get, is_of_run=False):
        yield request(f"traces/{trace}/tables/{name}", limit=MOST_ROWS)


def _table_names(get: Get, *, is_of_run: bool) -> list[str]:
    listed = get(request("tables"))
    tables = listed["tables"] if listed else []
    return [table["name"] for table in tables if table["is_of_run"] == is_of_run]


def of_details(trace: str, get: Get) -> Requests:
    """Yield the details of the first operators, kernels and modules."""
    below = f"traces/{trace}"
    for operator in _rows(get(request(f"{below}/operators")), "name", "kind"):
        name, kind = operator
        yield request(f"{below}/operators/details", name=name, kind=kind, group="name", label="")
    for (name,) in _rows(get(request(f"{below}/kernels")), "full_name"):
        yield request(f"{below}/kernels/details", full_name=name)
    modules = get(request(f"{below}/modules", by="instance"))
    for row in range(min(DETAILED_ROWS, modules["row_count"] if modules else 0)):
        yield request(f"{below}/modules/work", row=row, within=True)


def _rows(table: Json, *columns: str) -> Iterator[tuple[str, ...]]:
    """Yield cells of the first rows as the page orders them."""
    if table is None or not all(column in table["values"] for column in columns):
        return iter(())
    order = list(range(table["row_count"]))
    amounts = table["values"].get(table["sort"])
    if amounts is not None:
        order.sort(key=lambda row: -(amounts[row] or 0))
    cells = [table["values"][column] for column in columns]
    return islice((tuple(str(cell[row]) for cell in cells) for row in order), DETAILED_ROWS)
