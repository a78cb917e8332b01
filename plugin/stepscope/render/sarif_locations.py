"""Locations of SARIF results: source lines, trace files, and logical locations."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from stepscope.base.findings import Outcome, SourceLine
from stepscope.base.report import Report, RunReport, WorkerReport

LOG = "LOG"
"""Base of the URIs of traces: the log directory, or the folder given on the command line."""
OPERATORS_NAMED = 3

Json = dict[str, Any]


class Locations:
    """The trace files of a report, and the locations of its outcomes."""

    def __init__(self, report: Report) -> None:
        self.artifacts: list[Json] = []
        self._index: dict[str, int] = {}
        for run in report.runs:
            for worker in run.workers:
                self._add(_trace_address(run, worker))

    def _add(self, uri: str) -> None:
        if uri not in self._index:
            self._index[uri] = len(self.artifacts)
            location = {"uri": uri, "uriBaseId": LOG}
            self.artifacts.append({"location": location, "roles": ["analysisTarget"]})

    def of(self, run: RunReport, outcome: Outcome) -> Json:
        """Return the location properties of a result; `locations` is never empty."""
        worker = _worker(run, outcome)
        trace = self._trace(_trace_address(run, worker))
        lines = [_line(line) for line in outcome.locations]
        first = lines[0] if lines else {"artifactLocation": trace, "region": {"startLine": 1}}
        logical = list(_logical_locations(run, worker, outcome))
        more = [
            {"id": number, "physicalLocation": line} for number, line in enumerate(lines[1:], 1)
        ]
        return {
            "locations": [{"physicalLocation": first, "logicalLocations": logical}],
            **({"relatedLocations": more} if more else {}),
            "analysisTarget": trace,
        }

    def unread(self, path: str) -> Json:
        """Return the location of a file that could not be read."""
        return {"physicalLocation": {"artifactLocation": {"uri": address(below_repository(path))}}}

    def _trace(self, uri: str) -> Json:
        index = {"index": self._index[uri]} if uri in self._index else {}
        return {"uri": uri, "uriBaseId": LOG, **index}


def _worker(run: RunReport, outcome: Outcome) -> WorkerReport | None:
    """Return the worker of an outcome; of a rule over the run, the first."""
    workers = (worker for worker in run.workers if worker.trace == outcome.trace)
    return next(workers, run.workers[0] if run.workers else None)


def _trace_address(run: RunReport, worker: WorkerReport | None) -> str:
    """Return a trace's URI, relative to the log directory."""
    name = (worker.file or worker.name) if worker else ""
    return address(f"{run.name}/{name}".lstrip("/\\"))


def _line(line: SourceLine) -> Json:
    path = below_repository(line.path)
    return {
        "artifactLocation": {"uri": address(path)},
        "region": {"startLine": max(1, line.line)},
    }


def _logical_locations(
    run: RunReport, worker: WorkerReport | None, outcome: Outcome
) -> Iterator[Json]:
    """Yield the function, operators, rank and trace of an outcome."""
    for line in outcome.locations[:1]:
        if line.function:
            yield {"name": line.function, "kind": "function"}
    for name in _operators(outcome):
        yield {"name": name, "kind": "operator"}
    if worker is None:
        yield {"name": run.name, "kind": "run"}
        return
    if worker.rank is not None:
        yield {"name": f"rank {worker.rank}", "kind": "rank"}
    full = f"{run.name}/{worker.name}/{worker.span}"
    yield {"name": worker.name, "fullyQualifiedName": full, "kind": "recording"}


def _operators(outcome: Outcome) -> list[str]:
    """Return the first operators that the evidence links to."""
    rows = (row.link for table in outcome.tables for row in table.rows)
    links = (*(fact.link for fact in outcome.evidence), *rows)
    names = (link.search for link in links if link is not None and link.view == "operators")
    return list(dict.fromkeys(name for name in names if name))[:OPERATORS_NAMED]


WINDOWS = re.compile(r"[A-Za-z]:/")
SAFE = "/-._~"


def below_repository(path: str, root: str = "") -> str:
    """Return a path relative to the repository `root` (the working directory by default).

    A path outside stays as it is.
    """
    posix = path.replace("\\", "/")
    folder = (root or str(Path.cwd())).replace("\\", "/").rstrip("/")
    below = posix.removeprefix(f"{folder}/")
    return below.removeprefix("./")


def address(path: str) -> str:
    """Return a path as a URI, relative where the path is, without `..` or empty parts."""
    posix = path.replace("\\", "/")
    parts = [part for part in posix.split("/") if part not in ("", ".", "..")]
    quoted = quote("/".join(parts), safe=SAFE, errors="replace") or "unknown"
    if WINDOWS.match(posix):
        return f"file:///{posix[0]}:/{quote('/'.join(parts[1:]), safe=SAFE, errors='replace')}"
    return f"file:///{quoted}" if posix.startswith("/") else quoted
