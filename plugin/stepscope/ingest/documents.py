"""The top level of a streamed trace document: events one by one, the rest as metadata.

The document is an object with `traceEvents` among other keys, in any order, or a bare list of
events. An event that is not valid JSON is repaired if its damage is of a known kind, otherwise
skipped; reading continues at the next event. All damage is recorded in the incident log, with its
offset.

The result depends on the document only, not on the size of the pieces. The time is linear in the
document's length, whatever its contents: no text is read more than a few times.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from stepscope.ingest.columns import readable
from stepscope.ingest.cursor import LONGEST_VALUE_CHARACTERS, SMALL_BUFFER_BYTES, whole_end
from stepscope.ingest.document_values import (
    BEGINNINGS,
    Buffer,
    CutOffError,
    DamagedError,
    DocumentValues,
    Event,
    Scanner,
    plain_json,
)
from stepscope.ingest.incidents import EXAMPLE_CHARACTERS, IncidentLog
from stepscope.ingest.repair import Repaired

EVENTS_KEY = "traceEvents"
JOINT_BYTES = 1 << 16
"""Bytes of the next piece that are appended to the rest of the last one; others are not copied."""
PADDING = bytes(64)
"""A scanner reads this far ahead."""
MOST_METADATA_CHARACTERS = 64 << 20
"""Size limit of all metadata; real metadata has a few million characters."""
GAP = r"\s{0,200}"
SPACE = re.compile(r"\s*")
SPACE_AND_COMMAS = re.compile(r"[\s,]*")
SPACE_AND_PADDING = re.compile(r"[\s\0]*")
SPACES_AND_ZERO = " \t\r\n\0"
EVENT = rf'\{{{GAP}"(?:ph|name|cat|pid|tid|ts|dur|args|id)"{GAP}:'
DOCUMENT = rf'\{{{GAP}"(?:schemaVersion|traceEvents)"{GAP}:'
AN_EVENT = re.compile(EVENT)
A_DOCUMENT = re.compile(DOCUMENT)
NEXT_EVENT = re.compile(
    rf"(?<=[\[,}}]){GAP}(?={EVENT})|(?={DOCUMENT})"
    rf'|(?<=\}}){GAP}(?=\]{GAP}(?:,{GAP}"|\}}|$))'
)
"""Start of an event (an object after a colon is another's arguments), start of another document, or
end of the list of events."""
LATER_EVENT = re.compile(rf"(?<=[\[,}}]){GAP}(?={EVENT})|(?={DOCUMENT})")
"""Start of an event after the end of the document."""
SURE_EVENT = rf'(?<=[\[,}}]){GAP}(?=\{{{GAP}"(?:ph|cat|pid|tid|ts|dur)"{GAP}:)'
"""Start of an event, but not of a device, which also has an `id` and a `name`."""
FIRST_EVENT = re.compile(rf'"{EVENTS_KEY}"{GAP}:{GAP}\[|{SURE_EVENT}')
"""Start of the events of another document."""
NEXT_KEY = re.compile(
    rf'\n\s{{0,4}}(?="[^"\n]{{1,200}}"{GAP}:)|(?="{EVENTS_KEY}"{GAP}:{GAP}\[)|{SURE_EVENT}'
)
"""A top-level key, at the start of a line, or `traceEvents` anywhere; or an event of another
writer.
"""
SECOND_WRITER = re.compile(rf'"(?:traceEvents|schemaVersion|deviceProperties)"{GAP}:')


class Document(DocumentValues):
    """Walks the top level of a document."""

    def __init__(
        self,
        pieces: Iterator[bytes],
        log: IncidentLog,
        scanner: Scanner | None = None,
        progress: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(pieces, log, scanner, progress)
        self._is_comma_due = False
        self._is_comma_missing = False
        self._metadata_characters = 0
        self.metadata: dict[str, Any] = {}
        self.has_events_key = False
        self.is_json = False

    @property
    def read_bytes(self) -> int:
        """Offset of the next unread byte of the document."""
        return self._cursor.offset

    def events(self) -> Iterator[Event]:
        """Yield every event that the scanner did not read; `metadata` is complete afterwards."""
        try:
            yield from self._document()
            if self.is_json:
                yield from self._after_end()
        except CutOffError:
            if self.is_json:
                self._skip("truncated-json", self._cursor.rest)

    # --- the top level ----------------------------------------------------------------------------

    def _document(self) -> Iterator[Event]:
        first = self._cursor.next_character()
        if first == "[":
            self._cursor.at += 1
            self.has_events_key = self.is_json = True
            yield from self._list()
        elif first == "{":
            self._cursor.at += 1
            yield from self._object()

    def _object(self) -> Iterator[Event]:
        while (character := self._cursor.next_character()) != "}":
            if self._is_at_item():
                yield from self._list()
                continue
            key = self._key(character)
            if key is None:
                if not self._skipped_to_key():
                    return
                continue
            self.is_json = True
            starts_with = self._cursor.next_character(over=SPACE)
            if key == EVENTS_KEY and starts_with == "[":
                self._cursor.at += 1
                self.has_events_key = True
                yield from self._list()
            elif starts_with in {",", "}"}:
                self.metadata[key] = None  # `"key": ,` (pytorch#172353)
                self._log.add("empty-value", self._cursor.offset, f"{json.dumps(key)}:")
            else:
                self._add_metadata(key)
        self.is_json = True
        self._cursor.at += 1

    def _is_at_item(self) -> bool:
        """Return whether an event or a document follows instead of a key, and log it."""
        is_event = self._cursor.is_at(AN_EVENT)
        if is_event:
            excerpt = self._cursor.excerpt(EXAMPLE_CHARACTERS)
            self._log.add("interleaved-documents", self._cursor.offset, excerpt)
        is_item = is_event or self._cursor.is_at(A_DOCUMENT)
        self.is_json |= is_item
        return is_item

    def _key(self, character: str) -> str | None:
        """Return the key at the cursor and skip its colon; None if there is no key."""
        if not character:
            raise CutOffError
        if character != '"':
            return None
        try:
            key = self._value()
        except DamagedError as error:
            if error.is_cut_off:
                raise CutOffError from error
            return None
        self._cursor.at += key.end
        colon = self._cursor.next_character()
        if not colon:
            raise CutOffError
        if colon != ":":
            return None
        self._cursor.at += 1
        return readable(str(key.value))

    def _skipped_to_key(self) -> bool:
        """Skip to the next key; return False at the end of the document."""
        if not self.is_json:
            return False
        distance = self._cursor.distance(NEXT_KEY)
        is_last = distance is None and self._cursor.has_ended
        is_whole = is_last and self._cursor.text.rstrip(SPACES_AND_ZERO).endswith("}")
        self._skip("damaged-metadata", distance)
        self._cursor.shrink()
        if is_last and not is_whole:
            raise CutOffError
        return not is_last

    def _add_metadata(self, key: str) -> None:
        """Store the value at the cursor; repair it, or skip to the next key, if it is damaged."""
        try:
            self._store(key, self._value())
        except DamagedError as error:
            try:
                self._store(key, self._repaired(BEGINNINGS))
            except DamagedError as beyond:
                self._skip("damaged-metadata", self._distance(NEXT_KEY, error, beyond))
            self._cursor.shrink()

    def _store(self, key: str, value: Repaired) -> None:
        """Store metadata, unless there is too much or it is nested too deeply."""
        self._metadata_characters += value.end
        try:
            plain = plain_json(value.value)
        except RecursionError:
            self._skip("damaged-metadata", value.end)
            return
        if self._metadata_characters > MOST_METADATA_CHARACTERS:
            self._skip("damaged-metadata", value.end)
            return
        self._note(value)
        self.metadata[key] = plain
        self._cursor.at += value.end

    def _after_end(self) -> Iterator[Event]:
        """Yield events of another document or writer after the end; log all other data."""
        while self._cursor.next_character(over=SPACE_AND_PADDING):
            if not self._cursor.is_at(A_DOCUMENT):
                is_event = self._cursor.is_at(AN_EVENT)
                distance = 0 if is_event else self._cursor.distance(LATER_EVENT)
                if distance is None:
                    self._skip_all("trailing-data")
                    return
                self._skip("interleaved-documents", distance)
            yield from self._list(is_end_expected=False)

    # --- the events -------------------------------------------------------------------------------

    def _list(self, *, is_end_expected: bool = True) -> Iterator[Event]:
        """Yield the events up to the list's end, including those of nested documents."""
        self._is_comma_due = False
        inner_count = 0
        while True:
            self._scan_ahead()
            character = self._next_item()
            if not character:
                break
            if self._cursor.is_at(A_DOCUMENT):
                inner_count += 1
                self._skip("interleaved-documents", self._cursor.distance(FIRST_EVENT))
                self._is_comma_due = False
            elif character != "]":
                event = self._event()
                if event is not None:
                    yield event
            elif inner_count:
                inner_count -= 1
                self._leave_other_document()
            else:
                self._cursor.at += 1
                return
        if is_end_expected or inner_count:
            raise CutOffError

    def _next_item(self) -> str:
        """Skip the separator of two items; return the next character, or "" at the end."""
        start = self._cursor.offset
        commas = 0
        while True:
            separator = SPACE_AND_COMMAS.match(self._cursor.text, self._cursor.at)
            if separator:
                commas += separator[0].count(",")
                self._cursor.at = separator.end()
            if self._cursor.rest or self._cursor.has_ended:
                break
            self._cursor.fill()
        character = self._cursor.excerpt(1)
        due = 1 if self._is_comma_due and character != "]" else 0
        if commas > due:
            self._log.add("extra-comma", start, comma_excerpt(commas), count=commas - due)
        self._is_comma_missing = commas < due
        return character

    def _leave_other_document(self) -> None:
        """Skip the rest of another document after its events."""
        start = self._cursor.offset
        distance = self._cursor.distance(NEXT_EVENT)
        self._cursor.at += self._cursor.rest if distance is None else distance
        self._log.more("interleaved-documents", lost_bytes=self._cursor.offset - start)
        self._is_comma_due = False

    def _event(self) -> Event | None:
        """Return the event at the cursor, repaired if necessary; None if there is none."""
        offset = self._cursor.offset
        try:
            value: Repaired | None = self._value()
        except DamagedError as error:
            value = self._salvaged(error)
            self._cursor.buffer_bytes = SMALL_BUFFER_BYTES  # damage often occurs in groups
        self._is_comma_due = value is not None
        if value is None:
            self._cursor.shrink()
            return None
        if self._is_comma_missing:
            self._log.add("missing-comma", offset, self._cursor.excerpt(value.end))
        self._note(value)
        if not isinstance(value.value, dict):
            self._skip("not-an-event", value.end)
            return None
        self._cursor.at += value.end
        if value.kinds:
            self._cursor.shrink()
        return Event(fields=value.value, offset=offset)

    def _salvaged(self, error: DamagedError) -> Repaired | None:
        """Return the repaired event at the cursor; otherwise skip to the next and return None."""
        try:
            return self._repaired("{")
        except DamagedError as beyond:
            distance = self._distance(NEXT_EVENT, error, beyond)
            stop = self._cursor.at + (self._cursor.rest if distance is None else distance)
            is_another = SECOND_WRITER.search(self._cursor.text, self._cursor.at, stop)
            self._skip("interleaved-documents" if is_another else "skipped-events", distance)
            return None

    # --- the scanner ------------------------------------------------------------------------------

    def _scan_ahead(self) -> None:
        """Let the scanner read as many events as possible, and continue after them."""
        scanner, cursor = self._scanner, self._cursor
        if scanner is None:
            return
        data, at, offset = memoryview(cursor.text[cursor.at :].encode()), 0, cursor.offset
        while True:
            at = self._scanned(scanner, data, at, offset)
            if not scanner.is_starved:
                break
            rest = bytes(data[at:])
            offset += at
            joint = max(JOINT_BYTES, len(rest))
            more = cursor.next_bytes(joint) if len(rest) <= LONGEST_VALUE_CHARACTERS else None
            if more is None:
                at = self._scanned(scanner, rest + PADDING, 0, offset)
                data = memoryview(rest)
                break
            # only the seam is copied, unless an event is longer than that
            joint = whole_end(more, joint)
            seam = memoryview(rest + bytes(more[:joint]))
            at = self._scanned(scanner, seam, 0, offset)
            if at >= len(rest):
                data, at, offset = more, at - len(rest), offset + len(rest)
            else:
                data = seam
                cursor.put_back(more[joint:])
        cursor.continue_in(data, at, offset)

    def _scanned(self, scanner: Scanner, data: Buffer, at: int, offset: int) -> int:
        end = scanner.scan(data, at, offset, is_comma_due=self._is_comma_due)
        self._is_comma_due |= end > at
        return end


def comma_excerpt(commas: int) -> str:
    """Return the excerpt for an example of this many commas."""
    return "," * min(commas, EXAMPLE_CHARACTERS)
