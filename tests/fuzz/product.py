"""The whole product on changed documents: `python -m fuzz.product --seed 1 --count 100`.

A failure is an exception that is not one of ours, a rule or part that failed, a response of 5xx,
different columns of the two readers, a healthy trace of which a part is unreadable, or more of the
processor's time than the size justifies. It is printed once with the first seed that repeats it
(`--seed N --count 1 --whole`), and reduced to few events (`--keep FOLDER`).

Both readers see each document, the other surfaces a random part of them (`SHARES`); the numbers
are printed at the end, or on Ctrl-C.
"""

import argparse
import json
import logging
import os
import random
import re
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Any, TypeVar

import msgspec
from flask.testing import FlaskClient

from fuzz import documents, shrink, worst
from same_columns import differences
from stepscope import ingest
from stepscope.advice import advise, file_health
from stepscope.api.app import create_app
from stepscope.api.endpoint import all_endpoints
from stepscope.api.openapi import document as openapi
from stepscope.base.errors import StepscopeError, UnreadableError
from stepscope.base.report import HealthReport, Report, RunReport
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.options import CatalogOptions
from stepscope.comparison import TEST, compare
from stepscope.comparison.messages import ComparisonReport
from stepscope.comparison.samples import Sample, sample
from stepscope.ingest import reader
from stepscope.model.table import Table
from stepscope.model.trace import Run, Trace, trace_from_columns
from stepscope.readers.pool import InProcessReader
from stepscope.render.table_export import Form, Request, tabulate
from stepscope.rules import Rule, all_rules
from stepscope.storage import discover
from stepscope.tables import all_tables

T = TypeVar("T")
MOST_S = 2.0
"""Of the processor, for one part: one table, one response, the advice."""
MOST_S_PER_MB = 1.0
HANGING_S = 20
SHARES = {
    "advice": 1.0,
    "forms": 0.25,
    "health": 0.25,
    "tables": 1.0,
    "comparison": 0.05,
    "ranks": 0.1,
    "responses": 0.2,
}
"""Fractions of the documents that each surface sees."""
FEW_TABLES = 6
CSV_SHARE = 0.7
FEW_REQUESTS = 8
RANK_COUNT = 3
MOST_LOST = 0.05
"""Fraction of a healthy trace that may be unreadable."""
REDUCING_S = 30
OVER = " of at most "
REPORT_EVERY = 200
WORST_COUNT = 1_500
FORMS = ("text", "brief", "github", "html", "json", "markdown", "sarif")
SKIPPED = ("/runs/{run}/share", "/openapi.json", "/schema")
"""The first calls most other endpoints; the others do not depend on a trace."""
VALUES = {
    "sql": "select 1",
    "name": "aten::mm",
    "full_name": "gemm",
    "q": "a",
    "worker": "worker0",
    "event": "5",
    "track": "0",
    "level": "0",
    "tile": "0",
    "row": "0",
    "time_ns": "1000",
    "start_ns": "0",
    "end_ns": "1000000000",
    "direction": "next",
    "file": "x",
    "rule": "item-sync",
}
"""Of required parameters; those of the document's ids are added."""


class Overtime(BaseException):
    """A part takes too long; no handler of exceptions catches it."""


@dataclass
class Checks:
    """Runs the parts of the product on one document, and collects what fails."""

    size_bytes: int
    is_read_only: bool = False
    """Whether only the readers see the document."""
    is_whole: bool = True
    """Whether each surface sees the document, and all of its items."""
    rng: random.Random = field(default_factory=random.Random)
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")
    seen: Counter[str] = field(default_factory=Counter)

    def sees(self, surface: str) -> bool:
        """Return whether a surface sees this document."""
        return self.is_whole or self.rng.random() < SHARES[surface]

    def some(self, items: Iterable[T], count: int) -> list[T]:
        """Return all items, or a few."""
        items = list(items)
        return items if self.is_whole else self.rng.sample(items, min(count, len(items)))

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        """Return the result of some work; None where it fails."""
        self.seen[name.partition(" ")[0]] += 1
        began = process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, HANGING_S)
        try:
            return work()
        except StepscopeError:
            return None
        except (Exception, Overtime) as error:
            where = traceback.extract_tb(error.__traceback__)[-4:]
            lines = " < ".join(f"{Path(each.filename).name}:{each.lineno}" for each in where[::-1])
            self.failures.append(f"{name}: {type(error).__name__}: {str(error)[:300]} at {lines}")
            return None
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            took_s = process_time() - began
            self.slowest = max(self.slowest, (took_s, name))
            most_s = MOST_S + MOST_S_PER_MB * self.size_bytes / 1e6
            if took_s > most_s:
                self.failures.append(f"{name}: {took_s:.1f} s{OVER}{most_s:.1f} s")


def _overtime(_signal: int, frame: FrameType | None) -> None:
    raise Overtime(f"after {HANGING_S} s" if frame is None else f"in {frame.f_code.co_name}")


def _columns(path: Path, how: str) -> Any:
    os.environ[reader.FORCED] = how
    try:
        return ingest.read(str(path))
    except UnreadableError as error:
        return error.message
    finally:
        del os.environ[reader.FORCED]


def read(path: Path) -> Trace:
    """Return the trace of the compiled reader, after the comparison with the other.

    Raises:
        UnreadableError: Neither reads the file, for the same reason.
    """
    fast, slow = _columns(path, "0"), _columns(path, reader.ONE_BY_ONE)
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow, (fast, slow)
        raise UnreadableError(str(path), fast, "")
    assert differences(fast, slow) == [], differences(fast, slow)
    return trace_from_columns(fast, worker="worker0", span="1", identity="t", path=str(path))


@cache
def _undamaged() -> Sample:
    path = next((documents.ROOT / "sample_logs").glob("synthetic_dataloader/fix/*.json.gz"))
    return sample(read(path))


def _compared(checks: Checks, trace: Trace) -> None:
    own = checks.run("sample", lambda: sample(trace))
    if own is None:
        return
    for name, sides in (("to", (_undamaged(), own)), ("from", (own, _undamaged()))):
        compared = checks.run(f"compare {name}", partial(compare, "a", [sides[0]], "b", [sides[1]]))
        if compared is None:
            continue
        checks.failures += [
            f"compare {name}: {line}" for line in compared.warnings if "bug" in line
        ]
        report = ComparisonReport(comparisons=(compared,), test=TEST)
        checks.run("compare json", partial(msgspec.json.encode, report))
        for form in ("text", "markdown"):
            module = import_module(f"stepscope.render.comparison_{form}")
            checks.run(f"compare {form}", partial(module.render, report))


def _advised(
    checks: Checks, traces: Sequence[Trace], rules: Sequence[Rule[Any]] | None = None
) -> None:
    name = "advise" if len(traces) == 1 else "ranks"
    run = checks.run(name, lambda: advise(Run(name="r", workers=tuple(traces)), rules))
    if run is None:
        return
    checks.failures += _failed_parts(run)
    for worker, trace in zip(run.workers, traces, strict=True):
        if worker.standing is not None and worker.standing.state == "healthy":
            checks.failures += _unreadable_parts(trace)
    report = Report(runs=(run,))
    if checks.sees("forms"):
        for form in checks.some(FORMS, 2):
            module = import_module(f"stepscope.render.{form}")
            checks.run(f"form {form}", partial(module.render, report))


def _failed_parts(run: RunReport) -> Iterator[str]:
    """Yield the rules and parts of the advice that failed."""
    for outcome in run.outcomes:
        if outcome.status == "failed":
            yield f"rule {outcome.rule}: {outcome.reason}"
        method = outcome.claim.method if outcome.claim is not None else ""
        for text in (method, *outcome.doubts):
            if "simulation failed" in text or "stepscope failed" in text:
                yield f"rule {outcome.rule}: {text}"
    items = (item for worker in run.workers for item in worker.health)
    yield from (
        f"{item.kind}: {item.message}"
        for item in items
        if item.kind in ("failed-check", "failed-part")
    )


def _unreadable_parts(trace: Trace) -> Iterator[str]:
    """Yield the damage that lost much of the file."""
    for incident in trace.columns.incidents:
        lost = incident.lost_bytes / max(1, trace.columns.inflated_bytes)
        if incident.kind == "skipped-events":
            lost = max(lost, incident.count / (len(trace) + incident.count))
        if lost > MOST_LOST:
            yield f"healthy: though {incident.kind} lost {lost:.0%}"


def _judged(checks: Checks, trace: Trace) -> None:
    if not checks.sees("health"):
        return
    judged = checks.run("health", lambda: file_health(trace, run="r", file_bytes=1))
    if judged is not None:
        of_health = import_module("stepscope.render.health_report")
        report = HealthReport(files=(judged,))
        checks.run("health as text", lambda: of_health.text(report, width=100))
        checks.run("health as JSON", lambda: msgspec.json.encode(report))


def _exported(checks: Checks, trace: Trace, folder: str, only: str = "") -> None:
    tables = [
        name
        for name, table in all_tables().items()
        if isinstance(table, Table) and only in ("", name)
    ]
    form: Form = "csv" if checks.rng.random() < CSV_SHARE else "json"
    for name in checks.some(tables, FEW_TABLES) if checks.sees("tables") else ():
        request = Request(tables=(name,), form=form, run="r", folder=folder)
        results = checks.run(f"table {name}", partial(tabulate, trace, request))
        result = str((results or {}).get(name))
        if "stepscope failed" in result:
            checks.failures.append(f"table {name}: {result[:400]}")


class _AtOnce:
    def submit(self, job: Any, /) -> None:
        job()


@cache
def _server() -> tuple[Catalog, FlaskClient]:
    options = CatalogOptions(executor=_AtOnce(), reader=InProcessReader())
    catalog = Catalog([], options)
    catalog.start_reading()
    return catalog, create_app(catalog).test_client()


def _client(path: Path) -> FlaskClient:
    """Return the client of a server that has one file."""
    catalog, client = _server()
    catalog.adopt(discover.at(str(path)))
    return client


@cache
def _gets() -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """Return the path of each request of an endpoint, and where its parameters go."""
    paths = openapi(all_endpoints())["paths"]
    return tuple(
        (
            path,
            tuple(
                (each["name"], each["in"])
                for each in of["get"].get("parameters", ())
                if each.get("required")
            ),
        )
        for path, of in paths.items()
        if "get" in of and path not in SKIPPED
    )


def _answers(client: FlaskClient) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield a request for each endpoint."""
    runs = json.loads(client.get("/api/runs").data)["runs"]
    if not runs or not runs[0]["workers"]:
        return
    trace = runs[0]["workers"][0]["spans"][0]["trace"]
    values = VALUES | {"run": runs[0]["id"], "base_run": runs[0]["id"], "trace": trace}
    values["baseline"] = trace
    for path, parameters in _gets():
        url, query = path, {}
        for name, at in parameters:
            if at == "path":
                known = "operators" if name == "name" else values[name]
                url = url.replace(f"{{{name}}}", known)
            else:
                query[name] = values[name]
        yield path, partial(client.get, f"/api{url}", query_string=query)


def _served(checks: Checks, path: Path, only: str = "") -> None:
    if not checks.sees("responses"):
        return
    client = checks.run("serve", lambda: _client(path))
    if client is None:
        return
    answers = [(name, request) for name, request in _answers(client) if only in ("", name)]
    for name, request in checks.some(answers, FEW_REQUESTS):
        response = checks.run(f"GET {name}", request)
        if response is not None and response.status_code >= 500:
            checks.failures.append(f"GET {name}: {response.status_code} {response.data[:400]!r}")


def _analysed(checks: Checks, trace: Trace, folder: str) -> None:
    if checks.sees("advice"):
        _advised(checks, [trace])
    _judged(checks, trace)
    _exported(checks, trace, folder)
    if checks.sees("comparison"):
        _compared(checks, trace)


def check(checks: Checks, name: str, data: bytes, others: Sequence[Trace] = ()) -> Trace | None:
    """Run everything on one file, and the advice on it as a rank beside other traces."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "run", name)
        path.parent.mkdir()
        path.write_bytes(data)
        trace: Trace | None = checks.run("read", lambda: read(path))
        if checks.is_read_only:
            return trace
        if trace is not None:
            _analysed(checks, trace, folder)
            if others and checks.sees("ranks"):
                _advised(checks, [trace, *others])
        _served(checks, path)
    return trace


def checked(name: str, data: bytes) -> Checks:
    """Run everything on one file."""
    checks = Checks(size_bytes=len(data))
    check(checks, name, data)
    return checks


def analysed(name: str, data: bytes) -> Checks:
    """Run the advice, its forms, the tables and a comparison on one file; no responses."""
    checks = Checks(size_bytes=len(data))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, name)
        path.write_bytes(data)
        trace = checks.run("read", lambda: read(path))
        if trace is not None:
            _analysed(checks, trace, folder)
    return checks


def surface_failures(surface: str, data: bytes) -> list[str]:
    """Return the failures of one surface, as `failures` name it: a rule, a table, a response."""
    checks = Checks(size_bytes=len(data))
    kind, _, item = surface.partition(" ")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "run", "worker0.1.pt.trace.json")
        path.parent.mkdir()
        path.write_bytes(data)
        if kind == "GET":
            _served(checks, path, only=item)
            return checks.failures
        trace = checks.run("read", lambda: read(path))
        if trace is None or kind == "read":
            return checks.failures
        if kind == "table":
            _exported(checks, trace, folder, only=item)
        elif kind == "rule":
            _advised(checks, [trace], [rule for rule in all_rules() if rule.id == item])
        else:
            surfaces = {"sample": _compared, "compare": _compared, "health": _judged}
            surfaces.get(kind, _advised_alone)(checks, trace)
    return checks.failures


def _advised_alone(checks: Checks, trace: Trace) -> None:
    _advised(checks, [trace])


def signature(failure: str) -> str:
    """Return a failure without its numbers and paths: the surface, and where it failed."""
    failure = re.sub(rf"{re.escape(tempfile.gettempdir())}\S+", "", failure)
    surface = failure.partition(":")[0]
    error, _, where = failure.rpartition(" at ")
    kind = "too slow" if OVER in failure else re.sub(r"[^A-Za-z]+", " ", error)[:80]
    first = where.partition(" < ")[0] if error else ""
    return f"{first} {kind.partition(' ')[2]}" if first else f"{surface} {kind}"


def reduced(surface: str, data: bytes) -> bytes | None:
    """Return a smaller document that fails in the same way; None where it is not alone enough."""
    try:
        document = json.loads(data)
        events = document["traceEvents"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    wanted = {signature(each) for each in surface_failures(surface, data)}
    if not wanted or not isinstance(events, list):
        return None

    def fails(smaller: Any) -> bool:
        failures = surface_failures(surface, json.dumps(smaller).encode())
        return bool(wanted & {signature(each) for each in failures})

    return json.dumps(shrink.smallest(document, fails, REDUCING_S)).encode()


def _input(seed: int | str, more: Sequence[Path]) -> tuple[str, bytes]:
    if isinstance(seed, int):
        return documents.document(seed, more)
    return "worker0.1.pt.trace.json", json.dumps(worst.document(seed, WORST_COUNT)).encode()


@dataclass
class Log:
    """Prints each failure once, and keeps its reduced document."""

    folder: Path | None
    counts: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    failed_count: int = 0
    slowest: tuple[float, str] = (0.0, "")

    def add(self, seed: int | str, data: bytes, checks: Checks) -> None:
        """Record the checks of a document."""
        self.seen += checks.seen
        self.slowest = max(self.slowest, checks.slowest)
        self.failed_count += bool(checks.failures)
        for failure in checks.failures:
            key = signature(failure)
            self.counts[key] += 1
            if self.counts[key] == 1:
                sys.stdout.write(f"seed {seed}: {failure}\n")
                sys.stdout.flush()
                self._keep(seed, failure, data)

    def _keep(self, seed: int | str, failure: str, data: bytes) -> None:
        if self.folder is None:
            return
        surface = failure.partition(":")[0]
        smaller = reduced(surface, data)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / f"{seed}.bin").write_bytes(data)
        if smaller is not None:
            line = json.dumps({"surface": surface, "seed": seed, "failure": failure,
                               "document": json.loads(smaller)})  # fmt: skip
            with (self.folder / "reduced.jsonl").open("a") as file:
                file.write(line + "\n")

    def summary(self) -> str:
        """Return the numbers of documents that each surface saw, and of failures."""
        seen = ", ".join(f"{name} {count:,}" for name, count in sorted(self.seen.items()))
        again = "".join(f"\n  {count} times: {key}" for key, count in self.counts.most_common())
        return (
            f"{self.failed_count} failed; slowest part {self.slowest[0]:.2f} s "
            f"({self.slowest[1]}); calls: {seen}{again}\n"
        )


def _checked_input(
    seed: int | str, asked: argparse.Namespace, more: Sequence[Path], traces: deque[Trace]
) -> tuple[bytes, Checks]:
    """Return a document and its checks; twice where it was slow: the machine may have been."""
    name, data = _input(seed, more)

    def once() -> tuple[Checks, Trace | None]:
        rng = random.Random(f"{seed} surfaces")  # noqa: S311 (to be repeated)
        checks = Checks(size_bytes=len(data), is_whole=asked.whole, rng=rng)
        checks.is_read_only = rng.random() >= asked.advice
        return checks, check(checks, name, data, tuple(traces))

    checks, trace = once()
    if any(OVER in failure for failure in checks.failures):
        checks, trace = once()
    if trace is not None:
        trace.release_results()
        traces.append(trace)
    return data, checks


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fuzz.product", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--worst", action="store_true", help="check the worst documents instead")
    parser.add_argument("--whole", action="store_true", help="every surface sees every document")
    parser.add_argument("--advice", type=float, default=1.0, help="fraction not only read")
    parser.add_argument("--traces", type=Path, help="a folder with further traces to cut from")
    parser.add_argument("--keep", type=Path, help="write the documents that fail into this folder")
    return parser.parse_args()


def main() -> int:
    """Check documents from a seed on."""
    asked = _arguments()
    signal.signal(signal.SIGVTALRM, _overtime)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    logging.disable()
    paths = sorted(asked.traces.rglob("*.json.gz")) if asked.traces else []
    more = [path for path in paths if path.stat().st_size < documents.MOST_FILE_BYTES]
    _undamaged()
    checked(*documents.document(0))  # imports everything
    log, traces, done = Log(asked.keep), deque[Trace](maxlen=RANK_COUNT - 1), 0
    seeds = worst.CHANGES if asked.worst else range(asked.seed, asked.seed + asked.count)
    with suppress(KeyboardInterrupt):
        for seed in seeds:
            log.add(seed, *_checked_input(seed, asked, more, traces))
            done += 1
            if done % REPORT_EVERY == 0:
                sys.stdout.write(f"{done} documents from seed {asked.seed}: {log.summary()}")
                sys.stdout.flush()
    sys.stdout.write(f"{done} documents from seed {asked.seed}: {log.summary()}")
    return 1 if log.failed_count else 0


if __name__ == "__main__":
    sys.exit(main())
