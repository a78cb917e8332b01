"""What a reader met in a file that is not as it should be: what, how often, where."""

from collections.abc import Iterator
from dataclasses import dataclass, field

EXAMPLES_KEPT = 3
EXAMPLE_CHARACTERS = 120
RECORD_AGAIN = "Record it again, or copy it again from where it was written."


@dataclass(frozen=True, kw_only=True)
class Example:
    """One place where it was met."""

    offset_bytes: int
    """From the start of the inflated document."""
    text: str
    """What stands there, at most 120 characters."""


@dataclass(frozen=True, kw_only=True)
class Incident:
    """Something in the file's text that was repaired, skipped or is missing."""

    kind: str
    count: int
    message: str
    """What was found, so that a count can stand before it."""
    action: str
    """What was done about it."""
    remedy: str = ""
    lost_bytes: int = 0
    """Bytes of the inflated document that gave nothing."""
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Meaning:
    """What a kind of incident is, for people."""

    message: str
    action: str
    remedy: str = ""


REPORT_TO_TORCH = "Update torch: newer versions write these values as valid JSON."
ONE_WRITER = "Give each process its own worker_name, or its own file."
MEANINGS = {
    "truncated-gzip": Meaning(
        message="the gzip stream breaks off or is damaged",
        action="what could be inflated before that is shown",
        remedy=RECORD_AGAIN,
    ),
    "truncated-json": Meaning(
        message="the file ends in the middle",
        action="the complete events before are shown",
        remedy="Let the training process finish writing; do not kill it in on_trace_ready.",
    ),
    "invalid-utf8": Meaning(
        message="pieces of text are no UTF-8", action="the broken characters were replaced"
    ),
    "invalid-escape": Meaning(
        message="backslashes begin no escape that JSON knows",
        action="the backslash was kept as a character",
        remedy=REPORT_TO_TORCH,
    ),
    "bare-word": Meaning(
        message="values are words without quotes, such as N/A or nan",
        action="they count as not recorded",
        remedy=REPORT_TO_TORCH,
    ),
    "not-a-number": Meaning(
        message="values are NaN or Infinity, which JSON does not know",
        action="they count as not recorded",
    ),
    "empty-value": Meaning(
        message="keys have no value", action="they count as not recorded", remedy=REPORT_TO_TORCH
    ),
    "extra-comma": Meaning(message="commas stand where none belongs", action="they were ignored"),
    "missing-comma": Meaning(
        message="commas are missing between events or fields", action="they were filled in"
    ),
    "skipped-events": Meaning(
        message="events are damaged beyond repair, as by an unescaped quote in a name",
        action="they were left out; reading went on at the next event",
        remedy="Avoid quotes and backslashes in record_function names, or update torch.",
    ),
    "not-an-event": Meaning(
        message="items among the events are no events", action="they were left out"
    ),
    "damaged-metadata": Meaning(
        message="values beside the events are damaged beyond repair", action="they were left out"
    ),
    "interleaved-documents": Meaning(
        message="another document begins in the middle: two processes wrote this file",
        action="the events that are whole are shown, of whichever process",
        remedy=ONE_WRITER,
    ),
    "trailing-data": Meaning(
        message="more data follows behind the document's end",
        action="it was left out",
        remedy=ONE_WRITER,
    ),
    "text-times": Meaning(message="times are written as text", action="they were read as numbers"),
    "impossible-times": Meaning(
        message="times are no numbers, or more than 146 years away",
        action="they count as not recorded",
    ),
}


@dataclass
class _Seen:
    count: int = 0
    lost_bytes: int = 0
    examples: list[Example] = field(default_factory=list)


class IncidentLog:
    """Collects incidents of one file while it is read."""

    def __init__(self) -> None:
        self._seen: dict[str, _Seen] = {}

    def add(
        self, kind: str, offset_bytes: int, text: str, *, count: int = 1, lost_bytes: int = 0
    ) -> None:
        """Note that something was met `count` times, first at an offset where `text` stands."""
        seen = self._seen.setdefault(kind, _Seen())
        seen.count += count
        seen.lost_bytes += lost_bytes
        if len(seen.examples) < EXAMPLES_KEPT or offset_bytes < seen.examples[-1].offset_bytes:
            seen.examples.append(Example(offset_bytes=offset_bytes, text=text[:EXAMPLE_CHARACTERS]))
            seen.examples.sort(key=lambda example: example.offset_bytes)
            del seen.examples[EXAMPLES_KEPT:]

    def more(self, kind: str, *, count: int = 0, lost_bytes: int = 0) -> None:
        """Add to something that was noted before, without a place."""
        self._seen[kind].count += count
        self._seen[kind].lost_bytes += lost_bytes

    def count(self, *kinds: str) -> int:
        """Return how often these were met."""
        return sum(self._seen[kind].count for kind in kinds if kind in self._seen)

    def incidents(self) -> Iterator[Incident]:
        """Yield what was met, each kind once."""
        for kind, meaning in MEANINGS.items():
            if (seen := self._seen.get(kind)) is not None:
                yield Incident(
                    kind=kind,
                    count=seen.count,
                    message=meaning.message,
                    action=meaning.action,
                    remedy=meaning.remedy,
                    lost_bytes=seen.lost_bytes,
                    examples=tuple(seen.examples),
                )
