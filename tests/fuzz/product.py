"""The whole product on changed documents: `python -m fuzz.product --seed 1 --count 100`.

A failure is an exception that is not one of ours, a rule or part that failed, a response of 5xx,
different columns of the two readers, or more of the processor's time than the size justifies. It is
printed with the seed that repeats it: `--seed N --count 1`.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from time import process_time
from types import FrameType
from typing import Any

import msgspec
from flask.testing import FlaskClient

from fuzz import documents, worst
from same_columns import differences
from stepscope import ingest
from stepscope.advice import advise, file_health
from stepscope.api.app import create_app
from stepscope.api.endpoint import all_endpoints
from stepscope.api.openapi import document as openapi
from stepscope.base.errors import StepscopeError, UnreadableError
from stepscope.base.report import HealthReport, Report
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.comparison import TEST, compare
from stepscope.comparison.messages import ComparisonReport
from stepscope.comparison.samples import Sample, sample
from stepscope.ingest import reader
from stepscope.model.table import Table
from stepscope.model.trace import Run, Trace, trace_from_columns
from stepscope.readers.pool import InProcessReader
from stepscope.render.table_export import Request, tabulate
from stepscope.tables import all_tables

MOST_S = 1.0
"""Of the processor, for one part: one table, one response, the advice."""
MOST_S_PER_MB = 1.0
HANGING_S = 60
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
    failures: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")

    def run(self, name: str, work: Callable[[], Any]) -> Any:
        """Return the result of some work; None where it fails."""
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
                self.failures.append(f"{name}: {took_s:.1f} s of at most {most_s:.1f} s")


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


def _both_readers(path: Path) -> None:
    fast, slow = _columns(path, "0"), _columns(path, reader.ONE_BY_ONE)
    if isinstance(fast, str) or isinstance(slow, str):
        assert fast == slow, (fast, slow)
        return
    assert differences(fast, slow) == []


def _trace(path: Path) -> Trace:
    return trace_from_columns(
        ingest.read(str(path)), worker="worker0", span="1", identity="t", path=str(path)
    )


@cache
def _undamaged() -> Sample:
    path = next((documents.ROOT / "sample_logs").glob("synthetic_dataloader/fix/*.json.gz"))
    return sample(_trace(path))


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


def _advised(checks: Checks, trace: Trace) -> None:
    run = checks.run("advise", lambda: advise(Run(name="r", workers=(trace,))))
    if run is None:
        return
    checks.failures += [
        f"rule {each.rule}: {each.reason}" for each in run.outcomes if each.status == "failed"
    ]
    checks.failures += [
        f"{item.kind}: {item.message}"
        for item in run.workers[0].health
        if item.kind in ("failed-check", "failed-part")
    ]
    checks.failures += [
        f"saving of {each.rule}: {doubt}"
        for each in run.outcomes
        for doubt in each.doubts
        if "stepscope failed" in doubt
    ]
    checks.failures += [
        f"{each.rule}: {each.claim.method}"
        for each in run.outcomes
        if each.claim is not None and "the simulation failed" in each.claim.method
    ]
    report = Report(runs=(run,))
    for form in FORMS:
        module = import_module(f"stepscope.render.{form}")
        checks.run(f"advise as {form}", partial(module.render, report))
    judged = checks.run("health", lambda: file_health(trace, run="r", file_bytes=1))
    if judged is not None:
        of_health = import_module("stepscope.render.health_report")
        report_of_health = HealthReport(files=(judged,))
        checks.run("health as text", lambda: of_health.text(report_of_health, width=100))
        checks.run("health as JSON", lambda: msgspec.json.encode(report_of_health))


def _exported(checks: Checks, trace: Trace, folder: str) -> None:
    for name, table in all_tables().items():
        if isinstance(table, Table):
            request = Request(tables=(name,), form="csv", run="r", folder=folder)
            results = checks.run(f"table {name}", partial(tabulate, trace, request))
            result = str((results or {}).get(name))
            if "stepscope failed" in result:
                checks.failures.append(f"table {name}: {result[:400]}")


class _AtOnce:
    def submit(self, job: Any, /) -> None:
        job()


def _client(folder: Path) -> FlaskClient:
    catalog = Catalog(
        [LogDirectory(path=str(folder))],
        CatalogOptions(executor=_AtOnce(), reader=InProcessReader()),
    )
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog).test_client()


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


def _served(checks: Checks, folder: Path) -> None:
    client = checks.run("serve", lambda: _client(folder))
    if client is None:
        return
    for name, request in _answers(client):
        response = checks.run(f"GET {name}", request)
        if response is not None and response.status_code >= 500:
            checks.failures.append(f"GET {name}: {response.status_code} {response.data[:400]!r}")


def checked(name: str, data: bytes) -> Checks:
    """Run everything on one file."""
    checks = Checks(size_bytes=len(data))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, "log", "run", name)
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        checks.run("readers", lambda: _both_readers(path))
        trace = checks.run("read", lambda: _trace(path))
        if trace is not None:
            _analysed(checks, trace, folder)
        _served(checks, Path(folder, "log"))
    return checks


def _inputs(first: int, count: int) -> Iterator[int | str]:
    """Yield the seeds; from the first seed on, also the names of the worst documents."""
    yield from range(first, first + count)
    yield from worst.CHANGES if count > 1 else ()


def _input(seed: int | str) -> tuple[str, bytes]:
    if isinstance(seed, int):
        return documents.document(seed)
    return "worker0.1.pt.trace.json", json.dumps(worst.document(seed, WORST_COUNT)).encode()


def analysed(name: str, data: bytes) -> Checks:
    """Run the advice, its forms, the tables and a comparison on one file; no responses."""
    checks = Checks(size_bytes=len(data))
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder, name)
        path.write_bytes(data)
        trace = checks.run("read", lambda: _trace(path))
        if trace is not None:
            _analysed(checks, trace, folder)
    return checks


def _analysed(checks: Checks, trace: Trace, folder: str) -> None:
    _advised(checks, trace)
    _exported(checks, trace, folder)
    _compared(checks, trace)


def main() -> int:
    """Check documents from a seed on."""
    parser = argparse.ArgumentParser(prog="fuzz.product", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="write the documents that fail into this folder")
    asked = parser.parse_args()
    signal.signal(signal.SIGVTALRM, _overtime)
    _undamaged()
    checked(*documents.document(0))  # imports everything
    failed_count, slowest = 0, (0.0, "")
    for seed in _inputs(asked.seed, asked.count):
        name, data = _input(seed)
        checks = checked(name, data)
        slowest = max(slowest, checks.slowest)
        failed_count += bool(checks.failures)
        for failure in checks.failures:
            sys.stdout.write(f"seed {seed}: {failure}\n")
        if checks.failures and asked.keep:
            asked.keep.mkdir(parents=True, exist_ok=True)
            (asked.keep / name).write_bytes(data)
        sys.stdout.flush()
    sys.stdout.write(
        f"{asked.count} documents from seed {asked.seed}: {failed_count} failed; slowest part "
        f"{slowest[0]:.2f} s ({slowest[1]})\n"
    )
    return 1 if failed_count else 0


if __name__ == "__main__":
    sys.exit(main())
