"""What the program said of itself in the recording: `prof.add_metadata_json("stepscope", "{…}")`.

    prof.add_metadata_json("stepscope", json.dumps({
        "batch_size": 32, "num_workers": 4, "model": "resnet50",
        "ignore": {"item-sync": "The loss is logged every step, and that is accepted."},
    }))

What is not of the kind that is expected is left out: a recording is untrusted.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stepscope.model.trace import Trace, computed, whole_number

KEY = "stepscope"
MOST_TEXT = 500
"""Longer texts are cut: they are shown to people."""
MOST_IGNORED = 1000


@dataclass(frozen=True, kw_only=True)
class Hints:
    """What was said; None where it was not."""

    batch_size: int | None = None
    num_workers: int | None = None
    model: str = ""
    ignore: Mapping[str, str] = field(default_factory=dict)
    """Rule id to the reason why its findings are to be put aside."""


@computed
def hints(trace: Trace) -> Hints:
    """Return what the program said of itself; torch may have written it as an object or a text."""
    metadata = metadata_mapping(trace)
    ignored = metadata.get("ignore")
    return Hints(
        batch_size=_count(metadata.get("batch_size"), 1),
        num_workers=_count(metadata.get("num_workers"), 0),
        model=_text(metadata.get("model")),
        ignore=_reasons(ignored if isinstance(ignored, Mapping) else {}),
    )


def metadata_mapping(trace: Trace, key: str = KEY) -> Mapping[str, Any]:
    """Return what stands under a key, be it an object or the text of one; or nothing."""
    value = trace.metadata.get(key)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, Mapping) else {}


def _count(value: object, least: int) -> int | None:
    number = None if isinstance(value, bool) else whole_number(value)
    return number if number is not None and number >= least else None


def _text(value: object) -> str:
    return value[:MOST_TEXT] if isinstance(value, str) else ""


def _reasons(ignored: Mapping[Any, Any]) -> dict[str, str]:
    """Return the rules that are to be ignored with a reason; without one they are not."""
    texts = {
        _text(rule): _text(reason).strip() for rule, reason in list(ignored.items())[:MOST_IGNORED]
    }
    return {rule: reason for rule, reason in texts.items() if rule and reason}
