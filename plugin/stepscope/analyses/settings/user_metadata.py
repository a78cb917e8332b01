"""Metadata that the program added to the trace: `prof.add_metadata_json("stepscope", "{…}")`.

    prof.add_metadata_json("stepscope", json.dumps({
        "batch_size": 32, "num_workers": 4, "model": "resnet50",
        "ignore": {"item-sync": "The loss is logged every step, and that is accepted."},
    }))

Values of the wrong kind are left out: traces are untrusted.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepscope.ingest.document_values import plain_json
from stepscope.model.trace import Trace, computed, whole_number

KEY = "stepscope"
MOST_TEXT = 500
"""Longer texts are cut."""
MOST_IGNORED = 1000


@dataclass(frozen=True, kw_only=True)
class Hints:
    """The program's metadata; None: absent."""

    batch_size: int | None = None
    num_workers: int | None = None
    model: str = ""
    ignore: Mapping[str, str] = field(default_factory=dict)
    """Rule id to the reason for suppressing its findings."""


@computed
def hints(trace: Trace) -> Hints:
    """Return the program's metadata; torch writes it as an object or as a text."""
    metadata = metadata_mapping(trace)
    ignored = metadata.get("ignore")
    return Hints(
        batch_size=_count(metadata.get("batch_size"), 1),
        num_workers=_count(metadata.get("num_workers"), 0),
        model=_text(metadata.get("model")),
        ignore=_reasons(ignored if isinstance(ignored, Mapping) else {}),
    )


def metadata_mapping(trace: Trace, key: str = KEY) -> Mapping[str, Any]:
    """Return the mapping under a key, as an object or as its JSON text; else an empty one."""
    value = trace.metadata.get(key)
    if isinstance(value, str):
        try:
            value = plain_json(json.loads(value))
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}


def _count(value: object, least: int) -> int | None:
    number = None if isinstance(value, bool) else whole_number(value)
    return number if number is not None and number >= least else None


def _text(value: object) -> str:
    return value[:MOST_TEXT] if isinstance(value, str) else ""


def _reasons(ignored: Mapping[Any, Any]) -> dict[str, str]:
    texts = {
        _text(rule): _text(reason).strip() for rule, reason in list(ignored.items())[:MOST_IGNORED]
    }
    return {rule: reason for rule, reason in texts.items() if rule and reason}
