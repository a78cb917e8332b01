"""Damage in the text of a file: its kind, count, and examples."""

from collections.abc import Iterator
from dataclasses import dataclass, field

MOST_EXAMPLES = 3
EXAMPLE_CHARACTERS = 120
RECORD_AGAIN = "Record it again, or copy it again from the original location."


@dataclass(frozen=True, kw_only=True)
class Example:
    """One location of an incident."""

    offset_bytes: int
    """From the start of the inflated document."""
    text: str
    """The text there, at most 120 characters."""


@dataclass(frozen=True, kw_only=True)
class Incident:
    """Something in the file's text that was repaired, skipped or is missing."""

    kind: str
    count: int
    message: str
    """Description that follows a count."""
    action: str
    """The reader's reaction."""
    remedy: str = ""
    lost_bytes: int = 0
    """Bytes of the inflated document that contribute no result."""
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class Meaning:
    """User-facing text of a kind of incident."""

    message: str
    action: str
    remedy: str = ""


REPORT_TO_TORCH = "Update torch: newer versions write these values as valid JSON."
ONE_WRITER = "Give each process its own worker_name, or its own file."
MEANINGS = {
    "truncated-gzip": Meaning(
        "the gzip stream breaks off or is damaged",
        "the part before the damage is shown",
        RECORD_AGAIN,
    ),
    "truncated-json": Meaning(
        "the file ends in the middle",
        "the complete events before are shown",
        "Let the training process finish writing; do not kill it in on_trace_ready.",
    ),
    "invalid-utf8": Meaning(
        "pieces of text are not valid UTF-8", "the broken characters were replaced"
    ),
    "invalid-escape": Meaning(
        "backslashes do not begin a valid JSON escape",
        "the backslash was kept as a character",
        REPORT_TO_TORCH,
    ),
    "bare-word": Meaning(
        "values are words without quotes, such as N/A or nan",
        "they count as not recorded",
        REPORT_TO_TORCH,
    ),
    "not-a-number": Meaning(
        "values are NaN or Infinity, which are not valid JSON", "they count as not recorded"
    ),
    "empty-value": Meaning("keys have no value", "they count as not recorded", REPORT_TO_TORCH),
    "extra-comma": Meaning("there are superfluous commas", "they were ignored"),
    "missing-comma": Meaning("commas are missing between events or fields", "they were filled in"),
    "skipped-events": Meaning(
        "events are damaged beyond repair, as by an unescaped quote in a name",
        "they were left out; reading went on at the next event",
        "Avoid quotes and backslashes in record_function names, or update torch.",
    ),
    "not-an-event": Meaning("items among the events are not events", "they were left out"),
    "damaged-metadata": Meaning("metadata values are damaged beyond repair", "they were left out"),
    "interleaved-documents": Meaning(
        "another document begins in the middle: two processes wrote this file",
        "the complete events of both processes are shown",
        ONE_WRITER,
    ),
    "trailing-data": Meaning(
        "more data follows after the document's end", "it was left out", ONE_WRITER
    ),
    "text-times": Meaning("times are written as text", "they were read as numbers"),
    "impossible-times": Meaning(
        "times are not numbers, or more than 146 years away", "they count as not recorded"
    ),
}


@dataclass
class _Occurrences:
    count: int = 0
    lost_bytes: int = 0
    examples: list[Example] = field(default_factory=list)


class IncidentLog:
    """Collects the incidents of one file while it is read."""

    def __init__(self) -> None:
        self._by_kind: dict[str, _Occurrences] = {}

    def add(
        self, kind: str, offset_bytes: int, text: str, *, count: int = 1, lost_bytes: int = 0
    ) -> None:
        """Log `count` occurrences, the first at an offset with this text."""
        occurrences = self._by_kind.setdefault(kind, _Occurrences())
        occurrences.count += count
        occurrences.lost_bytes += lost_bytes
        if (
            len(occurrences.examples) < MOST_EXAMPLES
            or offset_bytes < occurrences.examples[-1].offset_bytes
        ):
            occurrences.examples.append(
                Example(offset_bytes=offset_bytes, text=text[:EXAMPLE_CHARACTERS])
            )
            occurrences.examples.sort(key=lambda example: example.offset_bytes)
            del occurrences.examples[MOST_EXAMPLES:]

    def more(self, kind: str, *, count: int = 0, lost_bytes: int = 0) -> None:
        """Log further occurrences of a logged kind, without an offset."""
        self._by_kind[kind].count += count
        self._by_kind[kind].lost_bytes += lost_bytes

    def count(self, *kinds: str) -> int:
        """Return the number of occurrences of these kinds."""
        return sum(self._by_kind[kind].count for kind in kinds if kind in self._by_kind)

    def incidents(self) -> Iterator[Incident]:
        """Yield each kind that occurred, once."""
        for kind, meaning in MEANINGS.items():
            if (occurrences := self._by_kind.get(kind)) is not None:
                yield Incident(
                    kind=kind,
                    count=occurrences.count,
                    message=meaning.message,
                    action=meaning.action,
                    remedy=meaning.remedy,
                    lost_bytes=occurrences.lost_bytes,
                    examples=tuple(occurrences.examples),
                )
