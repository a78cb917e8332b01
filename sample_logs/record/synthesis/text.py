"""Text of a Chrome trace document, in Kineto's layout or compact."""

import gzip
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

TIMES = ("ts", "dur")
TRAILING = ("traceName",)  # Kineto writes it after the events


def text(document: dict[str, Any], *, layout: str = "kineto") -> str:
    """Return a document's text; layout `kineto` (one key per line) or `compact`."""
    layouts = {"kineto": _kineto, "compact": _compact}
    return layouts[layout](document)


def write(document: dict[str, Any], path: Path, *, layout: str = "kineto") -> None:
    """Write a document to a `.json` or `.json.gz`; the same document gives the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = text(document, layout=layout).encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, compresslevel=9, mtime=0)
    path.write_bytes(content)


def _kineto(document: dict[str, Any]) -> str:
    head = [
        f'    "{key}": {_value(key, value)},\n'
        for key, value in document.items()
        if key != "traceEvents" and key not in TRAILING
    ]
    events = ",".join(f"\n  {_kineto_event(event)}" for event in document["traceEvents"])
    tail = "".join(f',"{key}": {json.dumps(document[key])} ' for key in TRAILING if key in document)
    return " {\n" + "".join(head) + '    "traceEvents": [\n    ' + events + "\n  ]" + tail + "}"


def _kineto_event(event: dict[str, Any]) -> str:
    lines = [f'"{key}": {_value(key, event[key])}' for key in event if key != "args"]
    body = ",\n    ".join(lines)
    if "args" in event:
        # All arguments are on one line, after a line with a comma.
        body += f'\n    ,\n    "args": {{\n      {_arguments(event["args"])}\n    }}'
    return "{\n    " + body + "\n  }"


def _arguments(arguments: dict[str, Any]) -> str:
    return ", ".join(f"{json.dumps(key)}: {_value(key, value)}" for key, value in arguments.items())


def _compact(document: dict[str, Any]) -> str:
    head = "".join(
        f'"{key}":{_value(key, value)},' for key, value in document.items() if key != "traceEvents"
    )
    events = ",".join(
        "{" + ",".join(f'"{key}":{_value(key, value)}' for key, value in event.items()) + "}"
        for event in document["traceEvents"]
    )
    return "{" + head + '"traceEvents":[' + events + "]}"


def _value(key: str, value: object) -> str:
    """Return a value's JSON; times keep all three decimals, as Kineto writes them."""
    if key in TIMES and isinstance(value, float | Decimal):
        return f"{value:.3f}"
    return json.dumps(value, ensure_ascii=False)
