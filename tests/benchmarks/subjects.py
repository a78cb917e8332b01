"""Subjects of the benchmarks, for separate processes: `python -m benchmarks.subjects NAME FILE`.

A subject prints the seconds of each phase, as JSON in its last line.
"""

import gzip
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SCAN_SECONDS = 0.5
FRAMES = (
    "host_calls",
    "runtime_calls",
    "device_events",
    "kernels",
    "copies",
    "memory",
    "python_calls",
    "steps",
)
Phases = dict[str, float]


@contextmanager
def _timed(
    seconds: Phases, phase: str, clock: Callable[[], float] = time.perf_counter
) -> Iterator[None]:
    start = clock()
    yield
    seconds[phase] = clock() - start


def load(path: Path, seconds: Phases) -> None:
    """Read a trace into columns: compiled, or in Python with STEPSCOPE_PURE_PYTHON=1."""
    with _timed(seconds, "import"):
        from stepscope import ingest
    with _timed(seconds, "load"):
        ingest.read(str(path))


def scan(path: Path, seconds: Phases) -> None:
    """Scan an uncompressed trace in memory; stores the least seconds per gigabyte."""
    from stepscope.ingest.compiled_reader import ScannedColumns
    from stepscope.ingest.documents import Document
    from stepscope.ingest.incidents import IncidentLog

    data = gzip.decompress(path.read_bytes())
    rates: list[float] = []
    until = time.perf_counter() + SCAN_SECONDS
    while not rates or time.perf_counter() < until:
        log = IncidentLog()
        scanner = ScannedColumns(log, 10**9)
        start = time.perf_counter()
        for event in Document(iter([data]), log, scanner).events():
            scanner.add(event)
        rates.append((time.perf_counter() - start) / len(data) * 1e9)
    seconds["a gigabyte"] = min(rates)


def analyses(path: Path, seconds: Phases) -> None:
    """Build every public table of a trace, in CPU seconds; frames count separately."""
    from stepscope import ingest
    from stepscope.advice import advise
    from stepscope.base.errors import MissingDataError
    from stepscope.model.trace import Run, trace_from_columns
    from stepscope.tables import RunTable, all_tables

    tables = all_tables()
    trace = trace_from_columns(ingest.read(str(path)), worker="worker")
    for frame in FRAMES:
        with _timed(seconds, f"frame {frame}", time.process_time):
            getattr(trace, frame)
    for name, table in tables.items():
        with _timed(seconds, f"table {name}", time.process_time), suppress(MissingDataError):
            if isinstance(table, RunTable):
                table.build([table.part(trace)])
            else:
                table.build(trace)
    with _timed(seconds, "rules and health", time.process_time):
        advise(Run(name="run", workers=(trace,)))


def rules(path: Path, seconds: Phases) -> None:
    """Run every rule twice, in CPU seconds: with its analyses, and after them."""
    from stepscope import ingest
    from stepscope.advice import rule_outcomes, worker_report
    from stepscope.model.trace import trace_from_columns
    from stepscope.rules import all_rules

    trace = trace_from_columns(ingest.read(str(path)), worker="worker")
    with _timed(seconds, "worker report", time.process_time):
        worker_report(trace)
    for kind in ("first", "again"):
        for rule in all_rules():
            with _timed(seconds, f"{kind} {rule.id}", time.process_time):
                rule_outcomes(trace, (rule,))


def torch_tb_profiler(path: Path, seconds: Phases) -> None:
    """Parse a trace with torch-tb-profiler, and generate its pages."""
    with _timed(seconds, "import"):
        from torch_tb_profiler.profiler.data import RunProfileData
        from torch_tb_profiler.profiler.run_generator import RunGenerator
    with tempfile.TemporaryDirectory() as cache:
        with _timed(seconds, "load"):
            data = RunProfileData.parse("worker", "1", str(path), cache)
        with _timed(seconds, "generate"):
            RunGenerator("worker", "1", data).generate_run_profile()


def hta(path: Path, seconds: Phases) -> None:
    """Load a trace with HolisticTraceAnalysis."""
    with _timed(seconds, "import"):
        from hta.trace_analysis import TraceAnalysis
    logging.disable()
    with _timed(seconds, "load"):
        TraceAnalysis(trace_files={0: str(path.resolve())}, trace_dir="/")


def orjson(path: Path, seconds: Phases) -> None:
    """Read a trace as Python objects with the fastest general JSON reader."""
    with _timed(seconds, "import"):
        import orjson as library
    with _timed(seconds, "load"):
        library.loads(gzip.decompress(path.read_bytes()))


SUBJECTS: dict[str, Callable[[Path, Phases], None]] = {
    subject.__name__: subject
    for subject in (load, scan, analyses, rules, torch_tb_profiler, hta, orjson)
}


def main() -> None:
    """Run the subject that the command line names."""
    seconds: Phases = {}
    SUBJECTS[sys.argv[1]](Path(sys.argv[2]), seconds)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
