"""Where results of SARIF are: source lines, files of traces, and what has a name but no line."""

from collections.abc import Iterator
from typing import Any

from stepscope.base.findings import Outcome, SourceLine
from stepscope.base.report import Report, RunReport, WorkerReport
from stepscope.render.repository_paths import address, below_repository

LOG = "LOG"
"""What addresses of traces are relative to: the log directory, or the folder that was named."""
OPERATORS_NAMED = 3

Json = dict[str, Any]


class Places:
    """The files of a report's traces, and the places of its outcomes."""

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
        """Return the properties of a result that say where it is; a place is always among them."""
        worker = _worker(run, outcome)
        trace = self._trace(_trace_address(run, worker))
        lines = [_line(each) for each in outcome.locations]
        first = lines[0] if lines else {"artifactLocation": trace, "region": {"startLine": 1}}
        named = list(_named(run, worker, outcome))
        more = [
            {"id": number, "physicalLocation": each} for number, each in enumerate(lines[1:], 1)
        ]
        return {
            "locations": [{"physicalLocation": first, "logicalLocations": named}],
            **({"relatedLocations": more} if more else {}),
            "analysisTarget": trace,
        }

    def elsewhere(self, path: str) -> Json:
        """Return the place of a file that could not be read."""
        return {"physicalLocation": {"artifactLocation": {"uri": address(below_repository(path))}}}

    def _trace(self, uri: str) -> Json:
        known = {"index": self._index[uri]} if uri in self._index else {}
        return {"uri": uri, "uriBaseId": LOG, **known}


def _worker(run: RunReport, outcome: Outcome) -> WorkerReport | None:
    """Return whose recording it is about; of the whole run, the first."""
    mine = (worker for worker in run.workers if worker.trace == outcome.trace)
    return next(mine, run.workers[0] if run.workers else None)


def _trace_address(run: RunReport, worker: WorkerReport | None) -> str:
    """Return a trace's address, relative to the log directory."""
    name = (worker.file or worker.name) if worker else ""
    return address(f"{run.name}/{name}".lstrip("/\\"))


def _line(line: SourceLine) -> Json:
    path = below_repository(line.path)
    return {
        "artifactLocation": {"uri": address(path)},
        "region": {"startLine": max(1, line.line)},
    }


def _named(run: RunReport, worker: WorkerReport | None, outcome: Outcome) -> Iterator[Json]:
    """Yield what a finding is about that has no line: function, operators, rank, recording."""
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
    """Return the operators that its evidence leads to, the first of them."""
    rows = (row.link for table in outcome.tables for row in table.rows)
    links = (*(fact.link for fact in outcome.evidence), *rows)
    names = (link.search for link in links if link is not None and link.view == "operators")
    return list(dict.fromkeys(name for name in names if name))[:OPERATORS_NAMED]
