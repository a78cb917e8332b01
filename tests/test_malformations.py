"""Files as bad exporters, broken disks and attackers write them: what is kept, and the report.

Each test is of every reader, and compares all that is reported: kind, count, lost bytes, and of
each example its place in the inflated file and its text.
"""

import gzip
import json
import random
import tracemalloc
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loading import columns_of
from stepscope.base.errors import UnreadableError
from stepscope.ingest import (
    EventColumns,
    compiled_reader,
    cursor,
    document_values,
    inflate,
    reader,
)
from stepscope.ingest.column_builder import as_text
from stepscope.ingest.repair import BeyondRepairError, Repaired, repair

READERS = {"compiled": "0", "batches": "1", "one-by-one": reader.ONE_BY_ONE}
Report = dict[str, tuple[int, int, dict[int, str]]]
"""By kind: the count, the lost bytes, and what stands at the places of the examples."""


@pytest.fixture(scope="module", params=READERS, autouse=True)
def _reader(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.param == "compiled" and not compiled_reader.IS_BUILT:
        pytest.skip("the scanner is not built here: no C compiler")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(reader.FORCED, READERS[request.param])
        yield


def _event(name: str, **fields: Any) -> str:
    return json.dumps({"ph": "X", "name": name, "ts": 1, "dur": 1} | fields)


def _events(names: str) -> str:
    return ",".join(map(_event, names))


HEAD = '{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"GPU"}],"traceEvents":['
TAIL = '],"traceName":"t"}'
METADATA = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceName": "t"}


def _document(names: str) -> str:
    """A document of one event for each letter, with what kineto writes around them."""
    return f"{HEAD}{_events(names)}{TAIL}"


def _names(columns: EventColumns) -> list[str | None]:
    return [columns.strings[code] if code >= 0 else None for code in columns.name]


def _report(columns: EventColumns) -> Report:
    return {
        incident.kind: (
            incident.count,
            incident.lost_bytes,
            {example.offset_bytes: example.text for example in incident.examples},
        )
        for incident in columns.incidents
    }


def _check(text: str | bytes, names: str, report: Report, metadata: dict[str, Any]) -> None:
    """Read a file; compare the events' names, a letter each, the report, and the metadata."""
    columns = columns_of(text)
    assert (_names(columns), _report(columns)) == (list(names), report)
    assert columns.metadata == metadata


# --- what can be mended ----------------------------------------------------------------------


@pytest.mark.parametrize("damaged", ['{"ph":"X","a":[{"b":1}}', '{"ph":"X","a":[1}', '{"a":[:1]}'])
def test_a_list_that_ends_as_an_object_costs_its_event(damaged: str) -> None:
    lost = f"{damaged},"
    at = len(f"[{_event('a')},")
    report = {"skipped-events": (1, len(lost), {at: lost})}
    _check(f"[{_event('a')},{lost}{_event('b')}]", "ab", report, {})


def test_many_damages_in_one_event_are_one_example() -> None:
    event = f'{{"ph":"X","a":[1{"," * 9}N/A,nan],"name":"a"}}'
    report = {"bare-word": (2, 0, {1: event}), "extra-comma": (8, 0, {1: event})}
    _check(f"[{event}]", "a", report, {})


def test_a_text_of_millions_of_escapes_costs_no_more_memory_than_it_is_long() -> None:
    text = '{"a":"' + "\\n" * 1_000_000
    tracemalloc.start()
    try:
        with pytest.raises(BeyondRepairError):
            repair(text)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak_bytes < len(text)


@pytest.mark.parametrize("brackets", [("[", "]"), ('{"a":', "}")], ids=["lists", "objects"])
@pytest.mark.parametrize(
    "event", ['{"ph":"X","name":"a","v":%s}', '{"name":"a","ts":%s}', '{"ph":%s,"name":"a"}', "%s"]
)
def test_brackets_of_every_depth_cost_at_most_their_event(
    event: str, brackets: tuple[str, str]
) -> None:
    for depth in range(800, 1000):  # `json` gives up somewhere there
        deep = event % (brackets[0] * depth + "1" + brackets[1] * depth)
        columns = columns_of(f"[{deep},{_event('b')}]")
        assert _names(columns)[-1] == "b"
        if _names(columns) == ["a", "b"] and "v" in columns.arguments:
            texts = columns.arguments["v"].texts
            assert texts is not None
            assert len(texts[0]) == depth * len("".join(brackets)) + 1


@given(
    st.recursive(st.integers() | st.text(), lambda v: st.lists(v) | st.dictionaries(st.text(), v))
)
def test_a_value_too_deep_for_json_is_the_same_text(value: Any) -> None:
    text = as_text([value])
    for _ in range(2000):
        value = [value]
    assert as_text(value) == "[" * 1999 + text + "]" * 1999


# --- documents that end in the middle --------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "cut"),
    [
        ("", ""),
        (",", ""),
        (', {"ph":"X","na', '{"ph":"X","na'),
        (', {"ph":"X","name":"x","ts":1,"dur":12', '{"ph":"X","name":"x","ts":1,"dur":12'),
        (', {"ph":"X","args":{"a":[1,{"b":"\\', '{"ph":"X","args":{"a":[1,{"b":"\\'),
        (', {"ph":"X","long":"' + "x" * 200, '{"ph":"X","long":"' + "x" * 200),
        ("]", ""),
        ("],", ""),
        ('],\n  "traceNa', '"traceNa'),
        ('],\n  "traceName"', ""),
        ('],\n  "traceName": ', ""),
        ('],\n  "traceName": "a', '"a'),
        ('],\n  "distributedInfo": {"rank": 0, "world', '{"rank": 0, "world'),
    ],
)
def test_a_document_cut_off_keeps_its_events_and_says_what_is_missing(end: str, cut: str) -> None:
    start = HEAD + _events("ab")
    report = {"truncated-json": (1, len(cut), {len(start + end) - len(cut): cut[:120]})}
    metadata = {key: value for key, value in METADATA.items() if key != "traceName"}
    _check(start + end, "ab", report, metadata)


def test_a_tail_of_zeros_as_a_crash_leaves_it_is_no_event() -> None:
    start = f"{HEAD}{_events('ab')},"
    zeros = "\0" * 5000
    report: Report = {
        "truncated-json": (1, 0, {len(start) + 5000: ""}),
        "skipped-events": (1, 5000, {len(start): "\0" * 120}),
    }
    metadata = {key: value for key, value in METADATA.items() if key != "traceName"}
    _check(start + zeros, "ab", report, metadata)


# --- two writers -----------------------------------------------------------------------------


@pytest.mark.parametrize("between", ["", "\n", "\0\0\n"])
def test_two_documents_one_behind_the_other_give_the_events_of_both(between: str) -> None:
    start = _document("ab") + between
    lost = len(HEAD) + len(TAIL)
    report = {"interleaved-documents": (1, lost, {len(start): HEAD})}
    _check(start + _document("cd"), "abcd", report, METADATA)


def test_each_of_many_documents_is_counted() -> None:
    whole = _document("ab")
    report = {
        "interleaved-documents": (
            9,
            9 * len(HEAD + TAIL),
            {len(whole) * number: HEAD for number in (1, 2, 3)},
        )
    }
    _check(whole * 10, "ab" * 10, report, METADATA)


@pytest.mark.parametrize("comma", ["", ",", " ,\n"])
def test_a_document_among_the_events_of_another_costs_neither_an_event(comma: str) -> None:
    start = HEAD + _events("a") + comma
    lost = len(HEAD) + len(TAIL) + 1  # with the comma behind it
    report = {"interleaved-documents": (1, lost, {len(start): HEAD})}
    _check(start + _document("bc") + f",{_events('d')}{TAIL}", "abcd", report, METADATA)


def test_a_document_in_the_middle_of_an_event_costs_that_event() -> None:
    start, first, rest = HEAD + _events("a"), ',{"ph":"X","na', 'me":"x"},'
    report: Report = {
        "skipped-events": (1, len(first) - 1, {len(start) + 1: first[1:]}),
        "interleaved-documents": (
            1,
            len(HEAD) + len(TAIL) + len(rest),
            {len(start + first): HEAD},
        ),
    }
    _check(f"{start}{first}{_document('bc')}{rest}{_events('d')}{TAIL}", "abcd", report, METADATA)


def test_documents_within_documents_within_documents() -> None:
    start = HEAD + _events("a") + ","
    second = HEAD + _events("b") + ","
    report = {
        "interleaved-documents": (
            2,
            2 * len(HEAD + TAIL + ","),
            {len(start): HEAD, len(start + second): HEAD},
        )
    }
    text = f"{start}{second}{_document('c')},{_events('d')}{TAIL},{_events('e')}{TAIL}"
    _check(text, "abcde", report, METADATA)


def test_another_document_that_ends_in_the_middle_ends_the_file_so() -> None:
    start = _document("ab")
    cut = _event("d")[:-5]
    text = f"{start}{HEAD}{_events('c')},{cut}"
    report: Report = {
        "truncated-json": (1, len(cut), {len(text) - len(cut): cut}),
        "interleaved-documents": (1, len(HEAD), {len(start): HEAD}),
    }
    _check(text, "abc", report, METADATA)


def test_a_short_file_written_over_a_long_one_gives_what_is_left_of_that() -> None:
    short, long = _document("ab"), _document("cdefgh")
    rest = long[len(short) :]
    lost = rest[: rest.index("{")]
    report: Report = {
        "interleaved-documents": (1, len(lost), {len(short): lost}),
        "trailing-data": (1, len(TAIL) - 1, {len(long) - len(TAIL) + 1: TAIL[1:]}),
    }
    _check(short + rest, "abfgh", report, METADATA)


def test_two_writers_in_blocks_cost_the_events_at_the_seams() -> None:
    one, other = _document("abcdef"), _document("ghijkl")
    size = 150
    blocks = [text[at : at + size] for at in range(0, len(one), size) for text in (one, other)]
    # what is left of `b` and of `l` gives nothing; `h` and `f` end as the other's: no one can tell
    start, seam = '{"ph": "X", "name": "b", "ts"', '{"p: 1, "dur": 1},'
    text = "".join(blocks)
    report: Report = {
        "skipped-events": (
            2,
            len(start + seam),
            {text.index(start): start, text.index(seam): seam},
        ),
        "interleaved-documents": (
            1,
            len(HEAD + TAIL) + len('h": "X", "name": "l", "ts": 1, "dur": 1}'),
            {size: HEAD},
        ),
    }
    _check(text, "aghcdeijkf", report, METADATA)


@pytest.mark.parametrize("between", ["", "\n", " , "])
def test_events_behind_a_list_that_another_writer_closed_are_taken(between: str) -> None:
    closed = f"{HEAD}{_events('a')}],{between}"
    rest = f"{_events('bc')}{TAIL}"
    report = {"interleaved-documents": (1, 0, {len(closed): rest[:120]})}
    _check(closed + rest, "abc", report, METADATA)


def test_events_behind_half_a_key_of_another_writer_are_taken() -> None:
    start = f"{HEAD}{_events('a')}]"
    lost = ',"trac' + _events("b") + ","
    rest = f"{_events('c')}{TAIL}"
    at = start + lost[: lost.index("ph")]  # what stands before is read as a key
    report: Report = {
        "damaged-metadata": (1, len(start + lost) - len(at), {len(at): lost[lost.index("ph") :]}),
        "interleaved-documents": (1, 0, {len(start + lost): rest[:120]}),
    }
    _check(start + lost + rest, "ac", report, METADATA)


def test_what_looks_like_a_device_is_no_event() -> None:
    lost = '[{"id":0,"name":"an "unescaped" quote"},{"name":"GPU"}],'
    start = '{"deviceProperties":'
    report = {"damaged-metadata": (1, len(lost), {len(start): lost})}
    text = f'{start}{lost}"traceEvents":[{_events("a")}]}}'
    _check(text, "a", report, {})


# --- bytes and gzip --------------------------------------------------------------------------


def _noise(size: int) -> str:
    """Text that gzip cannot make much smaller."""
    return random.Random(0).randbytes(size * 3 // 4).hex()[:size]  # noqa: S311 (no secret)


def test_bytes_that_are_no_utf8_are_replaced_and_what_follows_is_where_it_is() -> None:
    broken = b"ab\xff\xfec\xe2\x82d\xed\xa0\x80\xf8"
    text = f"{HEAD}{_events('a')},".encode() + b'{"ph":"X","name":"' + broken + b'"},'
    whole = text + f"{_events('b')}{TAIL}".encode()
    columns = columns_of(whole)
    assert _names(columns) == ["a", "ab\ufffd\ufffdc\ufffd\ufffdd\ufffd\ufffd\ufffd\ufffd", "b"]
    assert columns.offset_bytes.tolist() == [
        len(HEAD),
        len(f"{HEAD}{_events('a')},"),
        len(text),
    ]
    assert columns.inflated_bytes == len(whole)
    at = text.index(b"\xff")
    before = '": 1},{"ph":"X","name":"ab'[-24:]
    shown = {
        at: f"{before}\ufffd",
        at + 1: f"{before[1:]}\ufffd\ufffd",
        at + 3: f"{before[3:]}\ufffd\ufffdc\ufffd",
    }
    assert _report(columns) == {"invalid-utf8": (8, 0, shown)}


def test_what_stands_behind_a_byte_order_mark_is_where_it_is() -> None:
    columns = columns_of(b"\xef\xbb\xbf" + _document("ab").encode())
    assert columns.offset_bytes.tolist() == [3 + len(HEAD), 3 + len(f"{HEAD}{_events('a')},")]
    assert columns.inflated_bytes == 3 + len(_document("ab"))
    assert _report(columns) == {}


def test_only_one_byte_order_mark_is_left_out() -> None:
    with pytest.raises(UnreadableError):
        columns_of(b"\xef\xbb\xbf" * 2 + _document("ab").encode())


@pytest.mark.parametrize("read_bytes", [1, 2, 3, 50, 1 << 20])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_gzip_members_of_any_size_are_one_document(
    monkeypatch: pytest.MonkeyPatch, read_bytes: int, size: int
) -> None:
    monkeypatch.setattr(inflate, "READ_BYTES", read_bytes)
    text = _document("abc").encode()
    parts = [gzip.compress(text[at : at + size]) for at in range(0, len(text), size)]
    _check(b"".join(parts), "abc", {}, METADATA)
    _check(gzip.compress(b"").join(parts) + b"\0" * 300, "abc", {}, METADATA)


def test_what_follows_gzip_and_is_none_is_told() -> None:
    text = _document("ab").encode()
    half = len(text) - len(f"{_event('b')}{TAIL}")
    damaged = bytearray(gzip.compress(text[half:]))
    damaged[0] ^= 1
    cut: Report = {
        "truncated-gzip": (1, 0, {half: "the rest is not gzip"}),
        "truncated-json": (1, 0, {half: ""}),
    }
    metadata = {key: value for key, value in METADATA.items() if key != "traceName"}
    _check(gzip.compress(text[:half]) + damaged, "a", cut, metadata)
    tail: Report = {"truncated-gzip": (1, 0, {len(text): "the rest is not gzip"})}
    _check(gzip.compress(text) + b"\0\0signature", "ab", tail, METADATA)


@pytest.mark.parametrize("cut_bytes", [1, 100, 40_000])
@pytest.mark.parametrize("piece_bytes", [1000, inflate.PIECE_BYTES])
def test_a_damaged_gzip_member_keeps_what_came_before(
    monkeypatch: pytest.MonkeyPatch, cut_bytes: int, piece_bytes: int
) -> None:
    monkeypatch.setattr(inflate, "PIECE_BYTES", piece_bytes)
    start = f"{HEAD}{_events('ab')},".encode()
    cut = _event("c", text=_noise(60_000))[:cut_bytes]
    member = zlib.compressobj(wbits=inflate.GZIP_WINDOW)
    damaged = member.compress(cut.encode()) + member.flush(zlib.Z_FULL_FLUSH) + b"\7" * 9000
    report: Report = {
        "truncated-gzip": (
            1,
            0,
            {len(start) + cut_bytes: "Error -3 while decompressing data: invalid block type"},
        ),
        "truncated-json": (1, cut_bytes, {len(start): cut[:120]}),
    }
    metadata = {key: value for key, value in METADATA.items() if key != "traceName"}
    _check(gzip.compress(start) + damaged, "ab", report, metadata)


def test_gzip_cut_off_keeps_what_can_be_inflated_of_every_length() -> None:
    text = f"{HEAD}{_events('a')},{_event('b', text=_noise(300))},{_events('c')}{TAIL}".encode()
    packed = gzip.compress(text, 0)  # stored: what was inflated is what was read
    head_size = packed.index(HEAD.encode())
    for size in range(head_size + len(HEAD) + len(_event("a")), len(packed) - 8, 7):
        columns = columns_of(packed[:size])
        inflated_bytes = size - head_size
        assert columns.inflated_bytes == inflated_bytes
        report = _report(columns)
        assert report["truncated-gzip"] == (1, 0, {inflated_bytes: "it ends in the middle"})
        ends = [text.index(f'"{name}"'.encode(), len(HEAD)) for name in "abc"]
        assert _names(columns) == list("abc"[: len(columns)])
        assert sum(end < inflated_bytes for end in ends) - len(columns) in {0, 1}


def test_an_empty_file_in_gzip_is_an_empty_file() -> None:
    with pytest.raises(UnreadableError, match="The file is empty"):
        columns_of(gzip.compress(b""))


def test_thousands_of_small_gzip_members_are_inflated_in_time_of_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copied_bytes = 0
    share = inflate.Inflater._share  # noqa: SLF001

    def counted(inflater: inflate.Inflater, most_bytes: int) -> bytes:
        nonlocal copied_bytes
        found = share(inflater, most_bytes)
        copied_bytes += len(found)
        return found

    monkeypatch.setattr(inflate.Inflater, "_share", counted)
    packed = gzip.compress(b"") * 20_000 + gzip.compress(_document("a").encode())
    _check(packed, "a", {}, METADATA)
    assert copied_bytes < 20_000 * (inflate.FIRST_SHARE_BYTES + 1)


# --- hostile files: the work is a multiple of the size ---------------------------------------

SIZE = 80_000
LONG_LEVEL = '{"ph":[' + "1," * 2000
HOSTILE = {
    "lists": "[",
    "objects": '{"ph":',
    "objects in lists": '{"ph":[',
    "long levels": LONG_LEVEL,
    "60 levels, then a fault": '{"ph":[' * 60 + "1," * 2000 + "!",
    "quotes": '"',
    "an open text": '{"ph":"X',
    "backslashes": '{"ph":"' + "\\" * SIZE,
    "commas": ",",
    "commas in an event": '{"ph":N/A,"a":[' + "," * SIZE,
    "spaces": '{"ph": ' + " " * SIZE,
    "closing brackets": "}]",
    "words": '{"ph":N/A},',
    "words in large events": '{"ph":[' + "N/A," * 5000 + "1]},",
    "escapes": r'{"ph":"\q"},',
    "unescaped quotes": '{"ph":"X","name":"a "b" c"},',
    "numbers": "1,",
    "digits": '{"ts":' + "9" * 5000 + "},",
    "documents": '{"traceEvents":[{"ph":"X"},',
    "lists that end": '{"ph":"X"}],',
    "keys": '],\n"a":[',
    "nested keys": '],\n"a":{' + '\n"a":{' * SIZE,
    "bad keys": '],\n"a":N/A,!',
}


@pytest.mark.parametrize("unit", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("before", ["", _event("long", text="x" * SIZE) + ","])
def test_hostile_files_cost_no_more_than_a_multiple_of_their_size(
    monkeypatch: pytest.MonkeyPatch, unit: str, before: str
) -> None:
    walked_characters = 0
    decode = json.JSONDecoder.raw_decode

    def counted_decode(self: json.JSONDecoder, text: str, idx: int = 0) -> Any:
        nonlocal walked_characters
        try:
            value, end = decode(self, text, idx)
        except json.JSONDecodeError as error:
            walked_characters += 2 * error.pos - idx  # it counts the lines from the start on
            raise
        except RecursionError:
            walked_characters += min(len(text) - idx, 1000 * len(unit))
            raise
        walked_characters += end - idx
        return value, end

    def counted_mend(text: str) -> Repaired:
        nonlocal walked_characters
        walked_characters += len(text)
        return repair(text)

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counted_decode)
    monkeypatch.setattr(document_values, "repair", counted_mend)
    text = HEAD + before + (unit * (SIZE // len(unit) + 1))[:SIZE]
    try:
        columns_of(text)
    except UnreadableError:
        assert not before
    # each damaged event costs a walk through the small buffer that it stands in
    event_count = len(text) // min(len(unit), 40)
    assert walked_characters < 30 * len(text) + event_count * 3 * cursor.SMALL_BUFFER_BYTES
