"""What is measured, each in a process of its own: `python -m benchmarks.subjects NAME FILE`.

A subject prints how many seconds each phase took, as JSON in its last line.
"""

import gzip
import json
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

SCAN_SECONDS = 0.5
Phases = dict[str, float]


@contextmanager
def _timed(seconds: Phases, phase: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[phase] = time.perf_counter() - start


def load(path: Path, seconds: Phases) -> None:
    """Read a trace into columns: compiled, or in Python with STEPSCOPE_PURE_PYTHON=1."""
    with _timed(seconds, "import"):
        from stepscope import ingest
    with _timed(seconds, "load"):
        ingest.read(str(path))


def scan(path: Path, seconds: Phases) -> None:
    """Scan a trace that lies in memory, inflated; the seconds are of a gigabyte, at best."""
    from stepscope.ingest.documents import Document
    from stepscope.ingest.incidents import IncidentLog
    from stepscope.ingest.scanned import ScannedColumns

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


def torch_tb_profiler(path: Path, seconds: Phases) -> None:
    """Parse a trace as torch-tb-profiler does, and make what its pages show."""
    with _timed(seconds, "import"):
        from torch_tb_profiler.profiler.data import RunProfileData
        from torch_tb_profiler.profiler.run_generator import RunGenerator
    with tempfile.TemporaryDirectory() as cache:
        with _timed(seconds, "load"):
            data = RunProfileData.parse("worker", "1", str(path), cache)
        with _timed(seconds, "generate"):
            RunGenerator("worker", "1", data).generate_run_profile()


def hta(path: Path, seconds: Phases) -> None:
    """Load a trace as HolisticTraceAnalysis does."""
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
    each.__name__: each for each in (load, scan, torch_tb_profiler, hta, orjson)
}


def main() -> None:
    """Run the subject that the command line names."""
    seconds: Phases = {}
    SUBJECTS[sys.argv[1]](Path(sys.argv[2]), seconds)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
