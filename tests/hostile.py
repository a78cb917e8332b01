"""Logs of an attacker: samples whose every text acts wherever text can act.

A text keeps its beginning, by which rules and analyses recognize it, so that each part of the
product has something to show.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from logs import write_long_ago

MARKUP = (
    "<img src=x onerror=alert(1)><script>alert(1)</script><svg/onload=alert(1)>"
    "\"'`></style></script><!--]]> javascript:alert(1) {{7*7}}${7*7}"
)
MARKDOWN = (
    "[x](javascript:alert(1)) ![x](https://evil.example/x.png) "
    "https://evil.example @octocat | # *x*"
)
TERMINAL = "\x1b[31m\x1b]0;owned\x07\x9b2J\r\b\u202e\u2066\u200f"
COMMANDS = "\n::error::owned\r\n::stop-commands::owned\n##[add-mask]owned %0A::warning::owned"
PAYLOAD = f"{MARKUP}{MARKDOWN}{TERMINAL}{COMMANDS}"
FORMULA = '=HYPERLINK("https://evil.example")'
NAME = "<img src=x onerror=alert(1)> [x](javascript:alert(1)) @octocat ##[x] \x1b[31m\x9b2J\u202e"
"""A file's name: as `PAYLOAD`, without slashes and line breaks, and shorter than 255 bytes."""
FOLDER = f"{NAME}\n::error::owned"
STAY = frozenset({"cat", "ph", "ts", "dur", "s", "bp", "id", "pid", "tid"})
"""Fields by which an event is understood."""
SAMPLE_LOGS = Path(__file__).resolve().parents[1] / "sample_logs"
STRUCTURAL_STARTS = ("ProfilerStep#",)


def hostile(value: Any) -> Any:
    """Return a JSON value with the payload behind each of its texts."""
    if isinstance(value, str):
        return value if value.startswith(STRUCTURAL_STARTS) else value + PAYLOAD
    if isinstance(value, list):
        return [hostile(item) for item in value]
    if isinstance(value, dict):
        return {key: hostile(item) for key, item in value.items()}
    return value


def _event(event: dict[str, Any], count: int) -> dict[str, Any]:
    changed = {key: item if key in STAY else hostile(item) for key, item in event.items()}
    if isinstance(changed.get("tid"), str):
        changed["tid"] += MARKUP
    if event.get("ph") == "X":
        changed["args"] = {**changed.get("args", {}), f"key{PAYLOAD}": FORMULA}
        if count % 50 == 0 and event.get("cat") in ("kernel", "cpu_op"):
            changed["name"] = FORMULA + changed["name"]
    return changed


def document(trace: dict[str, Any]) -> dict[str, Any]:
    """Return a trace with a hostile text in each field."""
    events = [_event(event, count) for count, event in enumerate(trace["traceEvents"])]
    more = {key: hostile(value) for key, value in trace.items() if key != "traceEvents"}
    return {**more, f"key{MARKUP}": PAYLOAD, "traceEvents": events}


def write(sample: Path, folder: Path) -> Path:
    """Write the traces of a sample's run as hostile ones; return the run's folder."""
    for path in sorted(sample.glob("*.pt.trace.json.gz")):
        trace = json.loads(gzip.decompress(path.read_bytes()))
        worker, _, rest = path.name.partition(".")
        content = json.dumps(document(trace)).encode()
        write_long_ago(folder / f"{worker}{NAME}.{rest}", gzip.compress(content, 1))
    return folder


SAMPLES = ("tf32_cuda/float32", "masking/numpy")
"""With a device, and with stacks; small."""


def run_name(sample: str) -> str:
    """Return the name of a sample's run."""
    return sample.replace("/", "_")


def write_log(folder: Path) -> Path:
    """Write a log directory with a hostile run of each sample."""
    for name in SAMPLES:
        write(SAMPLE_LOGS / name, folder / FOLDER / run_name(name))
    return folder
