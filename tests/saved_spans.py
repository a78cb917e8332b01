"""The trace files that a callback left in a test's `log` folder, and what they hold."""

import gzip
import json
from pathlib import Path
from typing import Any

from stepscope.recording.settings import KEY


def recordings(tmp_path: Path) -> list[dict[str, Any]]:
    paths = sorted((tmp_path / "log").glob("*.pt.trace.json.gz"))
    return [json.loads(gzip.decompress(path.read_bytes())) for path in paths]


def steps(recording: dict[str, Any]) -> list[int]:
    names = [event["name"] for event in recording["traceEvents"]]
    return [int(name.partition("#")[2]) for name in names if name.startswith("ProfilerStep#")]


def count(recording: dict[str, Any], name: str) -> int:
    return sum(event["name"].startswith(name) for event in recording["traceEvents"])


def settings_of(recording: dict[str, Any]) -> Any:
    return recording[KEY]["settings"]
