"""A trace document's top level, walked as it streams in: events one by one, the rest as metadata.

The document is an object with `traceEvents` among other keys, in any order, or a bare list of
events. An event that is no valid JSON is repaired where its damage is a known one, else skipped;
reading goes on at the next event. Whatever was not as it should be is in the incident log, with
its place in the document.

What is found depends on the document alone, not on how much of it is read at once. And it is found
in time of the document's length, whatever is in it: no text is read more than a few times.
"""

import json
import re
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from stepscope.ingest.columns import readable
from stepscope.ingest.cursor import LONGEST_VALUE_CHARACTERS, SMALL_BUFFER_BYTES, Cursor, whole_end
from stepscope.ingest.incidents import EXAMPLE_CHARACTERS, IncidentLog
from stepscope.ingest.repair import BeyondRepairError, Repaired, repair

EVENTS_KEY = "traceEvents"
BUFFER_BYTES = 1 << 20
JOINT_BYTES = 1 << 16
"""How much of the next piece goes behind the last one's rest, so that most is never copied."""
PADDING = bytes(64)
"""A scanner looks this far ahead."""
MENDED_CHARACTERS = 1 << 12
"""How much of a damaged value is looked at first."""
MOST_MENDED_CHARACTERS = 1 << 18
"""Mending is slow: what is longer is skipped."""
MOST_VAIN_CHARACTERS = 1 << 18
"""When more than this and an eighth of the document was looked at in vain, nothing is mended."""
BEGINNINGS = string.digits + string.ascii_letters + '{["-+.'
"""What a value, or a word in its place, may begin with."""
MOST_TRIES = 4
"""So many values are tried that begin before the place where another one turned out damaged."""
MOST_MENDED_TRIES = 1
"""And so many of them are mended."""
MOST_METADATA_CHARACTERS = 64 << 20
"""Beside the events, in all. Real ones have a few million."""
NEAR_END = 16
"""A literal or number cut by the text's end fails at most this far before it."""
NEAR_END_MENDED = 64
"""The same of damaged ones: longer than a word that is mended."""
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
"""Where an event begins (an object after a colon is another's arguments), or another document, or
where the list of events ends."""
LATER_EVENT = re.compile(rf"(?<=[\[,}}]){GAP}(?={EVENT})|(?={DOCUMENT})")
"""Where an event begins behind the end of the document."""
SURE_EVENT = rf'(?<=[\[,}}]){GAP}(?=\{{{GAP}"(?:ph|cat|pid|tid|ts|dur)"{GAP}:)'
"""Where an event begins that is no device: those have an `id` and a `name`, too."""
FIRST_EVENT = re.compile(rf'"{EVENTS_KEY}"{GAP}:{GAP}\[|{SURE_EVENT}')
"""Where the events of another document begin."""
NEXT_KEY = re.compile(
    rf'\n\s{{0,4}}(?="[^"\n]{{1,200}}"{GAP}:)|(?="{EVENTS_KEY}"{GAP}:{GAP}\[)|{SURE_EVENT}'
)
"""Where a top-level key stands: at the start of a line, or the one that matters anywhere. Or an
event, which another writer left there."""
SECOND_WRITER = re.compile(rf'"(?:traceEvents|schemaVersion|deviceProperties)"{GAP}:')
DEEP = re.compile(r"(?:[^\[{]*+[\[{]){500}")
"""Where brackets have been opened so often: half as deep as `json` goes."""
LONG_NUMBER = re.compile(r"(?<!\d)\d{4301,}", re.ASCII)
"""Python refuses to read it as a whole number."""
Buffer = bytes | memoryview


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event as JSON gives it, and the byte of the document where it begins."""

    fields: dict[str, Any]
    offset: int


class Scanner(Protocol):
    """Reads well-formed events from bytes, faster than this module, to the same result."""

    def scan(self, data: Buffer, at: int, offset: int, *, is_comma_due: bool) -> int:
        """Take events from `data[at:]` on, up to the first that is not whole or not plain.

        `offset` is the document's byte that `data[0]` is. `is_comma_due` says whether an event
        was taken before. Returns the place behind the last event taken, `at` if there was none.
        The last 64 bytes of the data are looked at, but never begin or end an event.
        """

    @property
    def is_starved(self) -> bool:
        """Whether it stopped because the data ended, not because of what stands there."""


class _DamagedError(Exception):
    """A value is no valid JSON."""

    def __init__(self, reach: int, *, is_cut_off: bool) -> None:
        super().__init__()
        self.reach = reach
        """How many characters ahead that turned out."""
        self.is_cut_off = is_cut_off
        """Whether it is the document's end that made it so."""


class _CutOffError(Exception):
    """The document ends in the middle."""


def _nothing() -> None:
    """Be told of progress, and do nothing."""


class Document:
    """Walks a document given as pieces of valid UTF-8, each whole characters.

    `progress` is called for each piece.
    """

    def __init__(
        self,
        pieces: Iterator[bytes],
        log: IncidentLog,
        scanner: Scanner | None = None,
        progress: Callable[[], None] = _nothing,
    ) -> None:
        self._cursor = Cursor(pieces, SMALL_BUFFER_BYTES if scanner else BUFFER_BYTES, progress)
        self._log = log
        self._scanner = scanner
        self._is_comma_due = False
        self._is_comma_missing = False
        self._not_a_number_count = 0
        self._metadata_characters = 0
        self._vain_characters = 0
        self._reached = 0
        """The byte furthest ahead at which a value turned out damaged."""
        self._tries = 0
        """How many damaged values began before that."""
        self.metadata: dict[str, Any] = {}
        self.has_events_key = False
        self.is_json = False
        decoder = json.JSONDecoder(
            strict=False, parse_float=str.encode, parse_constant=self._not_a_number
        )
        self._decoded = decoder.raw_decode

    @property
    def read_bytes(self) -> int:
        """How much of the document has been gone through."""
        return self._cursor.offset

    def events(self) -> Iterator[Event]:
        """Yield every event that no scanner took; `metadata` is complete afterwards."""
        try:
            yield from self._document()
            if self.is_json:
                yield from self._behind_the_end()
        except _CutOffError:
            if self.is_json:
                self._skip("truncated-json", self._cursor.rest)

    def _not_a_number(self, _text: str) -> None:
        self._not_a_number_count += 1

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
            if self._stands_at_item():
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

    def _stands_at_item(self) -> bool:
        """Tell, and note, whether an event or a document comes next where a key belongs."""
        is_event = self._cursor.stands_at(AN_EVENT)
        if is_event:
            excerpt = self._cursor.excerpt(EXAMPLE_CHARACTERS)
            self._log.add("interleaved-documents", self._cursor.offset, excerpt)
        is_item = is_event or self._cursor.stands_at(A_DOCUMENT)
        self.is_json |= is_item
        return is_item

    def _key(self, character: str) -> str | None:
        """Return the key at the cursor and step behind its colon; None where there is none."""
        if not character:
            raise _CutOffError
        if character != '"':
            return None
        try:
            found = self._value()
        except _DamagedError as error:
            if error.is_cut_off:
                raise _CutOffError from error
            return None
        self._cursor.at += found.end
        colon = self._cursor.next_character()
        if not colon:
            raise _CutOffError
        if colon != ":":
            return None
        self._cursor.at += 1
        return readable(str(found.value))

    def _skipped_to_key(self) -> bool:
        """Pass over what is no key to the next one; False at the end of the document."""
        if not self.is_json:
            return False
        distance = self._cursor.distance(NEXT_KEY)
        is_last = distance is None and self._cursor.has_ended
        is_whole = is_last and self._cursor.text.rstrip(SPACES_AND_ZERO).endswith("}")
        self._skip("damaged-metadata", distance)
        self._cursor.shrink()
        if is_last and not is_whole:
            raise _CutOffError
        return not is_last

    def _add_metadata(self, key: str) -> None:
        """Keep the value at the cursor; repair it, or go to the next key, where it is damaged."""
        try:
            self._keep(key, self._value())
        except _DamagedError as error:
            try:
                self._keep(key, self._mended(BEGINNINGS))
            except _DamagedError as beyond:
                self._skip("damaged-metadata", self._distance(NEXT_KEY, error, beyond))
            self._cursor.shrink()

    def _keep(self, key: str, found: Repaired) -> None:
        """Keep a value beside the events, unless there are too many or it is nested too deeply."""
        self._metadata_characters += found.end
        try:
            plain = _plain(found.value)
        except RecursionError:
            self._skip("damaged-metadata", found.end)
            return
        if self._metadata_characters > MOST_METADATA_CHARACTERS:
            self._skip("damaged-metadata", found.end)
            return
        self._note(found)
        self.metadata[key] = plain
        self._cursor.at += found.end

    def _behind_the_end(self) -> Iterator[Event]:
        """Take the events of another document or writer behind the end; count what gives none."""
        while self._cursor.next_character(over=SPACE_AND_PADDING):
            if not self._cursor.stands_at(A_DOCUMENT):
                is_event = self._cursor.stands_at(AN_EVENT)
                distance = 0 if is_event else self._cursor.distance(LATER_EVENT)
                if distance is None:
                    self._skip_all("trailing-data")
                    return
                self._skip("interleaved-documents", distance)
            yield from self._list(is_end_expected=False)

    # --- the events -------------------------------------------------------------------------------

    def _list(self, *, is_end_expected: bool = True) -> Iterator[Event]:
        """Yield the events up to the list's end, and those of other documents within it."""
        self._is_comma_due = False
        inner_count = 0
        while True:
            self._scan_ahead()
            character = self._next_item()
            if not character:
                break
            if self._cursor.stands_at(A_DOCUMENT):
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
            raise _CutOffError

    def _next_item(self) -> str:
        """Step over what separates two items; return the character there, or "" at the end."""
        start = self._cursor.offset
        commas = 0
        while True:
            found = SPACE_AND_COMMAS.match(self._cursor.text, self._cursor.at)
            if found:
                commas += found[0].count(",")
                self._cursor.at = found.end()
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
        """Pass over what another document holds behind its events."""
        start = self._cursor.offset
        distance = self._cursor.distance(NEXT_EVENT)
        self._cursor.at += self._cursor.rest if distance is None else distance
        self._log.more("interleaved-documents", lost_bytes=self._cursor.offset - start)
        self._is_comma_due = False

    def _event(self) -> Event | None:
        """Return the event at the cursor, repaired if need be; None where there is none."""
        offset = self._cursor.offset
        try:
            found: Repaired | None = self._value()
        except _DamagedError as error:
            found = self._salvaged(error)
            self._cursor.buffer_bytes = SMALL_BUFFER_BYTES  # where one is damaged, many may be
        self._is_comma_due = found is not None
        if found is None:
            self._cursor.shrink()
            return None
        if self._is_comma_missing:
            self._log.add("missing-comma", offset, self._cursor.excerpt(found.end))
        self._note(found)
        if not isinstance(found.value, dict):
            self._skip("not-an-event", found.end)
            return None
        self._cursor.at += found.end
        if found.kinds:
            self._cursor.shrink()
        return Event(fields=found.value, offset=offset)

    def _salvaged(self, error: _DamagedError) -> Repaired | None:
        """Repair the event at the cursor; or skip it and go to the next one."""
        try:
            return self._mended("{")
        except _DamagedError as beyond:
            distance = self._distance(NEXT_EVENT, error, beyond)
            stop = self._cursor.at + (self._cursor.rest if distance is None else distance)
            is_another = SECOND_WRITER.search(self._cursor.text, self._cursor.at, stop)
            self._skip("interleaved-documents" if is_another else "skipped-events", distance)
            return None

    # --- one value --------------------------------------------------------------------------------

    def _value(self) -> Repaired:
        """Return the value at the cursor; read more text as it needs.

        Raises:
            _DamagedError: it is no valid JSON.
        """
        cursor = self._cursor
        while True:
            self._not_a_number_count = 0
            try:
                value, end = self._decoded(cursor.text, cursor.at)
            except (ValueError, RecursionError) as error:
                if not self._is_cut(error):
                    raise _DamagedError(_reach(error, cursor), is_cut_off=False) from error
                if cursor.has_ended:
                    raise _DamagedError(cursor.rest, is_cut_off=True) from error
            else:
                if end < len(cursor.text) - NEAR_END or cursor.has_ended:
                    count = self._not_a_number_count
                    kinds = {"not-a-number": count} if count else {}
                    return Repaired(value=value, end=end - cursor.at, kinds=kinds)
            cursor.fill()  # what was cut there, such as a number, may go on in the next piece

    def _is_cut(self, error: ValueError | RecursionError) -> bool:
        """Tell whether an error is due to the end of what was read."""
        text = self._cursor.text
        if self._cursor.rest > LONGEST_VALUE_CHARACTERS:
            return False
        if isinstance(error, json.JSONDecodeError):
            is_open_text = error.msg.startswith("Unterminated string")
            return is_open_text or error.pos >= len(text) - NEAR_END
        # of a number of thousands of digits, a point may follow: then it is no whole one
        runs = LONG_NUMBER.finditer(text, self._cursor.at) if isinstance(error, ValueError) else ()
        return not self._cursor.has_ended and any(run.end() == len(text) for run in runs)

    def _mended(self, begins: str) -> Repaired:
        """Return the damaged value at the cursor, as it was meant, if it begins with one of these.

        Raises:
            _DamagedError: that cannot be told.
        """
        cursor = self._cursor
        if cursor.excerpt(1) not in begins:
            raise _DamagedError(1, is_cut_off=False)
        is_within = self._tries > MOST_MENDED_TRIES and cursor.offset < self._reached
        if is_within or self._vain_characters > MOST_VAIN_CHARACTERS + cursor.offset // 8:
            raise _DamagedError(1, is_cut_off=True)
        size = MENDED_CHARACTERS
        vain = 0
        while True:
            cursor.look_ahead(size)
            text = cursor.text[cursor.at : cursor.at + size]
            is_all = cursor.has_ended and cursor.rest <= size
            try:
                found = repair(text)
                if is_all or found.end < len(text) - NEAR_END_MENDED:
                    return found
                reach = found.end
            except BeyondRepairError as error:
                reach = error.at
            vain += reach
            if is_all or size >= MOST_MENDED_CHARACTERS or reach < len(text) - NEAR_END_MENDED:
                self._vain_characters += vain
                raise _DamagedError(reach, is_cut_off=is_all and reach >= len(text))
            size *= 2

    def _distance(
        self, pattern: re.Pattern[str], error: _DamagedError, beyond: _DamagedError
    ) -> int | None:
        """Return how far ahead reading can go on after a value that was no JSON, nor mended.

        That is the next match behind the value's first character: within it, if it is another
        writer that damaged it. Values within values cannot be tried for ever, though: after some,
        the search begins where they turned out damaged.

        Raises:
            _CutOffError: nowhere, and it is the document's end that damaged it.
        """
        reach = max(error.reach, beyond.reach)
        if self._cursor.offset >= self._reached:
            self._tries = 0
        self._reached = max(self._reached, self._cursor.offset_ahead(reach))
        self._tries += 1
        distance = self._cursor.distance(
            pattern, beyond=1 if self._tries <= MOST_TRIES else max(1, reach)
        )
        if distance is None and error.is_cut_off and beyond.is_cut_off:
            raise _CutOffError
        return distance

    # --- what a scanner takes ---------------------------------------------------------------------

    def _scan_ahead(self) -> None:
        """Let the scanner take what it can from here, and go on behind that."""
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
        cursor.go_on_in(data, at, offset)

    def _scanned(self, scanner: Scanner, data: Buffer, at: int, offset: int) -> int:
        end = scanner.scan(data, at, offset, is_comma_due=self._is_comma_due)
        self._is_comma_due |= end > at
        return end

    # --- what is told -----------------------------------------------------------------------------

    def _skip(self, kind: str, characters: int | None) -> None:
        """Step over so much, or all that was read, and note that it gave nothing."""
        size = self._cursor.rest if characters is None else characters
        start, excerpt = self._cursor.offset, self._cursor.excerpt(size)
        self._cursor.at += size
        self._log.add(kind, start, excerpt, lost_bytes=self._cursor.offset - start)

    def _skip_all(self, kind: str) -> None:
        """Step over the rest of the document, and note that it gave nothing."""
        self._cursor.look_ahead(EXAMPLE_CHARACTERS)
        start, excerpt = self._cursor.offset, self._cursor.excerpt(EXAMPLE_CHARACTERS)
        self._cursor.drain()
        self._log.add(kind, start, excerpt, lost_bytes=self._cursor.offset - start)

    def _note(self, found: Repaired) -> None:
        for kind, count in found.kinds.items():
            self._log.add(kind, self._cursor.offset, self._cursor.excerpt(found.end), count=count)


def comma_excerpt(commas: int) -> str:
    """Return so many commas, as many as an example shows."""
    return "," * min(commas, EXAMPLE_CHARACTERS)


def _reach(error: Exception, cursor: Cursor) -> int:
    """Return how far ahead `json` came, or at least so far."""
    if isinstance(error, json.JSONDecodeError):
        return error.pos - cursor.at
    deep = DEEP.match(cursor.text, cursor.at) if isinstance(error, RecursionError) else None
    return deep.end() - cursor.at if deep else 1


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Turn numbers kept as text into floats and broken text into whole, all the way down."""
    match value:
        case str():
            plain: Any = readable(value)
        case bytes():
            plain = float(value)
        case list():
            plain = [_plain(item) for item in value]
        case dict():
            plain = {readable(key): _plain(item) for key, item in value.items()}
        case _:
            plain = value
    return plain
