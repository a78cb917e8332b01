"""Reduces a document that fails to the events, arguments and header that the failure needs."""

from collections.abc import Callable
from time import monotonic
from typing import Any

Document = dict[str, Any]
MOST_DETAILED = 40
"""Events of a document whose single fields are tried."""


def smallest(document: Document, fails: Callable[[Document], bool], seconds: float) -> Document:
    """Return the smallest document found in some time that still fails."""
    end = monotonic() + seconds

    def still(smaller: Document) -> bool:
        return monotonic() < end and fails(smaller)

    events = _fewer(document["traceEvents"], lambda some: still({**document, "traceEvents": some}))
    document = {**document, "traceEvents": events}
    document = _fewer_keys(document, still)
    for index in range(len(events) if len(events) <= MOST_DETAILED else 0):
        document = _smaller_event(document, index, still)
    return document


def _fewer(items: list[Any], fails: Callable[[list[Any]], bool]) -> list[Any]:
    """Remove halves, quarters and so on, down to single items."""
    size = len(items) // 2
    while size:
        at = 0
        while at < len(items):
            fewer = items[:at] + items[at + size :]
            if fails(fewer):
                items = fewer
            else:
                at += size
        size //= 2
    return items


def _fewer_keys(document: Document, fails: Callable[[Document], bool]) -> Document:
    for key in [key for key in document if key != "traceEvents"]:
        fewer = {name: value for name, value in document.items() if name != key}
        if fails(fewer):
            document = fewer
    return document


def _smaller_event(document: Document, index: int, fails: Callable[[Document], bool]) -> Document:
    """Remove the keys of an event, and those of its arguments."""

    def with_event(event: Any) -> Document:
        events = document["traceEvents"]
        return {**document, "traceEvents": [*events[:index], event, *events[index + 1 :]]}

    event = document["traceEvents"][index]
    if not isinstance(event, dict):
        return document
    for key in [*event]:
        fewer = {name: value for name, value in event.items() if name != key}
        if fails(with_event(fewer)):
            event = fewer
            document = with_event(event)
    args = event.get("args")
    for key in [*args] if isinstance(args, dict) else ():
        fewer = {name: value for name, value in event["args"].items() if name != key}
        if fails(with_event(event | {"args": fewer})):
            event = event | {"args": fewer}
            document = with_event(event)
    return document
