"""From rows, documents and files to traces, for tests."""

import json
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

import tracebuild
from stepscope import ingest
from stepscope.ingest import EventColumns
from stepscope.model.trace import Trace, trace_from_columns

ROOT = Path(__file__).resolve().parents[1]
SHARED_TRACES = ROOT.parent / "shared" / "traces"
SAMPLE_LOGS = ROOT / "sample_logs"


def shared_trace_names(under: str = "") -> list[str]:
    """The real traces beside the clone, by path from their folder; none where it is absent."""
    found = sorted((SHARED_TRACES / under).rglob("*.json.gz"))
    return [path.relative_to(SHARED_TRACES).as_posix() for path in found]


def columns_of(content: bytes | str, name: str = "trace.json") -> EventColumns:
    """What is read of a file of this content."""
    data = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(data)
        return ingest.read(str(path))


def trace_of(
    rows: Sequence[tracebuild.Row] = (), *, document: dict[str, Any] | None = None, **metadata: Any
) -> Trace:
    """The trace of `tracebuild` rows, or of a whole document."""
    whole = document or tracebuild.document(rows=rows, metadata=metadata)
    return trace_from_columns(columns_of(json.dumps(whole, default=str)), worker="worker")


def rows_of(table: pd.DataFrame) -> list[Any]:
    """A table's rows, a named tuple each."""
    return list(table.itertuples(index=False))


def trace_at(path: Path) -> Trace:
    """The trace in a file; a sample or one of the collection is read once, and keeps analyses."""
    if path.is_relative_to(SAMPLE_LOGS) or path.is_relative_to(SHARED_TRACES):
        return _kept_trace(path, path.stat().st_mtime_ns)
    return fresh_trace_at(path)


def fresh_trace_at(path: Path) -> Trace:
    """The trace in a file, read for this caller alone."""
    return trace_from_columns(ingest.read(str(path)), worker=path.name.split(".")[0])


@lru_cache(maxsize=96)
def _kept_trace(path: Path, _changed_ns: int) -> Trace:
    return fresh_trace_at(path)


def document_at(path: Path) -> Any:
    """The document in a YAML file, read by libyaml where it is there: eight times as fast."""
    text = path.read_text(encoding="utf-8")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(text, loader)  # noqa: S506 (both are safe)
