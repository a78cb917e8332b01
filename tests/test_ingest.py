"""Reading a file: every field and argument, exact times, any layout, any damage."""

import gzip
import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generated import examples
from loading import columns_of
from stepscope import ingest
from stepscope.base.config import FileLimits
from stepscope.base.errors import UnreadableError
from stepscope.ingest import (
    EventColumns,
    compiled_reader,
    cursor,
    document_values,
    inflate,
    reader,
)
from stepscope.ingest.exact_numbers import NO_TIME, nanoseconds

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 2, "ts": 10, "dur": 5}


@pytest.fixture(scope="module", params=["compiled", "python", "one-by-one"], autouse=True)
def _reader(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test is of both readers."""
    if request.param == "compiled" and not compiled_reader.IS_BUILT:
        pytest.skip("the scanner is not built here: no C compiler")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(
            reader.FORCED, {"compiled": "0", "python": "1"}.get(request.param, reader.ONE_BY_ONE)
        )
        yield


def _event(**fields: Any) -> dict[str, Any]:
    return EVENT | fields


def _text(column: Any, columns: EventColumns) -> list[str | None]:
    return [columns.strings[code] if code >= 0 else None for code in column]


def _names(columns: EventColumns) -> list[str | None]:
    return _text(columns.name, columns)


def _argument(columns: EventColumns, key: str) -> dict[int, Any]:
    column = columns.arguments[key]
    values = column.values.tolist()
    shown = values if column.texts is None else [column.texts[code] for code in values]
    return dict(zip(column.rows.tolist(), shown, strict=True))


def _incidents(columns: EventColumns) -> dict[str, int]:
    return {incident.kind: incident.count for incident in columns.incidents}


def _whole(columns: EventColumns) -> list[dict[str, Any]]:
    """Everything that was read, an event a mapping."""
    text = {
        "ph": columns.phase,
        "cat": columns.category,
        "name": columns.name,
        "pid": columns.pid,
        "tid": columns.tid,
        "id": columns.identifier,
    }
    events: list[dict[str, Any]] = []
    for row in range(len(columns)):
        event: dict[str, Any] = {
            key: columns.strings[codes[row]] for key, codes in text.items() if codes[row] >= 0
        }
        if columns.start_ns[row] != NO_TIME:
            event["ts"] = int(columns.start_ns[row]) + columns.origin_ns
        if columns.duration_ns[row] != NO_TIME:
            event["dur"] = int(columns.duration_ns[row])
        events.append(event)
    for key in columns.arguments:
        for row, value in _argument(columns, key).items():
            events[row].setdefault("args", {})[key] = value
    return events


# --- whole answers ---------------------------------------------------------------------------

DOCUMENT = json.dumps(
    {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "GPU", "warp": 32.5}],
        "traceEvents": [
            _event(args={"External id": 7, "Input Dims": [[2, 3], []], "flag": True, "none": None}),
            {"ph": "i", "name": "[memory]", "ts": 12.5, "s": "t", "args": {"Bytes": -512}},
            {"ph": "M", "name": "process_name", "pid": "Spans", "args": {"name": "python"}},
            {"ph": "s", "id": 5, "cat": "ac2g", "ts": 11.25, "bp": "e"},
        ],
        "traceName": "a/b.json",
        "distributedInfo": {"rank": 0},
    }
)


def _check_document(columns: EventColumns) -> None:
    assert _whole(columns) == [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mm",
            "pid": "1",
            "tid": "2",
            "ts": 10_000,
            "dur": 5_000,
            "args": {"External id": 7, "Input Dims": "[[2,3],[]]", "flag": "true"},
        },
        {"ph": "i", "name": "[memory]", "ts": 12_500, "args": {"s": "t", "Bytes": -512}},
        {"ph": "M", "name": "process_name", "pid": "Spans", "args": {"name": "python"}},
        {"ph": "s", "id": "5", "cat": "ac2g", "ts": 11_250, "args": {"bp": "e"}},
    ]
    assert columns.metadata == {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "GPU", "warp": 32.5}],
        "traceName": "a/b.json",
        "distributedInfo": {"rank": 0},
    }
    assert columns.incidents == ()
    assert columns.origin_ns == 10_000


@pytest.mark.parametrize("name", ["t.pt.trace.json", "t.json.gz", "no extension", "x.txt"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_plain_or_gzip_is_told_by_content_not_by_name(
    name: str, pack: Callable[[bytes], bytes]
) -> None:
    _check_document(columns_of(pack(DOCUMENT.encode()), name))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: "\ufeff" + text,
        lambda text: "\n\t " + text + "\n\n",
        lambda text: json.dumps(json.loads(text), indent=2),
        lambda text: text.replace(", ", ","),
        lambda text: text.replace("{", "{\r\n").replace("}", "\r\n}"),
        lambda text: json.dumps(dict(reversed(json.loads(text).items()))),
        lambda text: text + "\0\0",
    ],
    ids=["as is", "BOM", "space", "indented", "compact", "CRLF", "keys reversed", "padded"],
)
def test_the_layout_does_not_matter(change: Callable[[str], str]) -> None:
    _check_document(columns_of(change(DOCUMENT)))


@pytest.mark.parametrize("buffer", [1, 7, 50, 333])
@pytest.mark.parametrize("piece", [2, 13, 100])
def test_buffers_smaller_than_an_event_change_nothing(
    monkeypatch: pytest.MonkeyPatch, buffer: int, piece: int
) -> None:
    monkeypatch.setattr(document_values, "BUFFER_BYTES", buffer)
    monkeypatch.setattr(inflate, "PIECE_BYTES", piece)
    _check_document(columns_of(DOCUMENT))
    _check_document(columns_of(gzip.compress(DOCUMENT.encode())))


def test_gzip_members_follow_one_another_and_padding_ends_them() -> None:
    half = len(DOCUMENT) // 2
    members = gzip.compress(DOCUMENT[:half].encode()) + gzip.compress(DOCUMENT[half:].encode())
    _check_document(columns_of(members))
    _check_document(columns_of(members + b"\0" * 512))


def test_a_bare_list_of_events_is_a_trace() -> None:
    columns = columns_of(json.dumps([EVENT, EVENT]))
    assert (_names(columns), columns.metadata, columns.incidents) == (["aten::mm"] * 2, {}, ())


def test_traceEvents_within_a_text_is_a_text() -> None:  # noqa: N802 (the key's name)
    text = json.dumps({"note": '"traceEvents": [{"ph": "X"}]', "traceEvents": [EVENT]})
    columns = columns_of(text)
    assert _names(columns) == ["aten::mm"]
    assert columns.metadata == {"note": '"traceEvents": [{"ph": "X"}]'}


# --- times and numbers -----------------------------------------------------------------------


def test_absolute_stamps_keep_their_nanoseconds() -> None:
    text = '{"traceEvents": [{"ph":"X","ts":1712195495505582.988,"dur":0.001},'
    text += '{"ph":"X","ts":1712195495505583.001,"dur":1000000.5}]}'
    columns = columns_of(text)
    assert columns.origin_ns == 1712195495505582988
    assert columns.start_ns.tolist() == [0, 13]
    assert columns.duration_ns.tolist() == [1, 1_000_000_500]


@pytest.mark.parametrize(
    ("written", "expected_ns"),
    [
        (5, 5_000),
        (-5, -5_000),
        ("1712195495505582.988", 1712195495505582988),
        ("7", 7_000),
        ("0.5", 500),
        ("-0.25", -250),
        ("1.5e3", 1_500_000),
        ("0.0004", 0),
        ("0.0006", 1),
        ("1e400", NO_TIME),
        ("1e999999999", NO_TIME),
        ("nan", NO_TIME),
        ("inf", NO_TIME),
        ("", NO_TIME),
        ("soon", NO_TIME),
        ("1.²", NO_TIME),
        (None, NO_TIME),
        (True, NO_TIME),
        ([1], NO_TIME),
    ],
)
def test_times_in_microseconds_become_nanoseconds(written: object, expected_ns: int) -> None:
    assert nanoseconds(written) == expected_ns


def test_stamps_beyond_all_time_are_no_time() -> None:
    events = [_event(ts=10**20), _event(dur=10**30), _event()]
    columns = columns_of(json.dumps({"traceEvents": events}))
    assert columns.start_ns.tolist() == [NO_TIME, 0, 0]
    assert columns.duration_ns.tolist() == [5_000, NO_TIME, 5_000]


def test_ids_beyond_floats_stay_exact() -> None:
    big = 2**53 + 1
    args = [{"a": big, "b": big, "c": 2**64 - 1, "d": str(big)}, {"b": 0.5, "c": 1}]
    columns = columns_of(json.dumps([_event(id=big, args=each) for each in args]))
    assert _text(columns.identifier, columns) == [str(big), str(big)]
    assert _argument(columns, "a") == {0: big}
    assert _argument(columns, "b") == {0: str(big), 1: "0.5"}
    assert _argument(columns, "c") == {0: str(2**64 - 1), 1: "1"}
    assert _argument(columns, "d") == {0: str(big)}


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_json_words_for_no_number_count_as_not_recorded(word: str) -> None:
    text = (
        f'{{"x": {word}, "traceEvents": [{{"ph":"X","ts":{word},"dur":1,"args":{{"v":{word}}}}}]}}'
    )
    columns = columns_of(text)
    assert columns.start_ns.tolist() == [NO_TIME]
    assert columns.arguments == {}
    assert columns.metadata == {"x": None}
    assert _incidents(columns) == {"not-a-number": 3}


@pytest.mark.parametrize("word", ["N/A", "nan", "-nan", "inf", "-inf", "undefined"])
def test_other_words_for_no_number_are_repaired(word: str) -> None:
    text = (
        f'{{"x": {word}, "y": 2, "traceEvents": [{{"ph":"X","name":"a","ts":1,"dur":1,'
        f'"args":{{"v":{word},"w":[1,{word}],"z":"N/A"}}}},{{"ph":"X","name":"b","ts":2,"dur":1}}]}}'
    )
    columns = columns_of(text)
    assert _names(columns) == ["a", "b"]
    assert _argument(columns, "w") == {0: "[1,null]"}
    assert _argument(columns, "z") == {0: "N/A"}
    assert "v" not in columns.arguments
    assert columns.metadata == {"x": None, "y": 2}
    assert _incidents(columns) == {"bare-word": 3}


def test_a_number_of_thousands_of_digits_costs_its_event_alone() -> None:
    text = f'[{{"ph":"X","name":"a","ts":{"9" * 5000}}},{json.dumps(EVENT)}]'
    columns = columns_of(text)
    assert _names(columns) == ["aten::mm"]
    assert _incidents(columns) == {"skipped-events": 1}


def test_brackets_thousands_deep_cost_their_event_alone() -> None:
    deep = "[" * 200_000 + "]" * 200_000
    columns = columns_of(f'[{{"ph":"X","args":{{"a":{deep}}}}},{json.dumps(EVENT)}]')
    assert _names(columns) == ["aten::mm"]
    assert _incidents(columns) == {"skipped-events": 1}


# --- damage ----------------------------------------------------------------------------------

BEFORE, AFTER = _event(name="before"), _event(name="after", args={"x": 1})


def _around(damaged: str, *, tail: str = "") -> str:
    inner = f"{json.dumps(BEFORE)},{damaged},{json.dumps(AFTER)}"
    return f'{{"schemaVersion":1,"traceEvents":[{inner}]{tail}}}'


@pytest.mark.parametrize(
    ("damaged", "name", "kind"),
    [
        (r'{"ph":"X","name":"C:\temp\q","ts":1}', "C:\temp\\q", "invalid-escape"),
        (r'{"ph":"X","name":"C:\\temp\q\\","ts":1}', "C:\\temp\\q\\", "invalid-escape"),
        (r'{"ph":"X","name":"\u12","ts":1}', r"\u12", "invalid-escape"),
        ('{"ph":"X","name":"a","ts": ,"dur":1}', "a", "empty-value"),
        ('{"ph":"X","name":"a","args":{"stream": }}', "a", "empty-value"),
        ('{"ph":"X","name":"a","args":{"x":1,},}', "a", "extra-comma"),
        ('{"ph":"X","name":"a","ts":1 "dur":2}', "a", "missing-comma"),
        ('{"ph":"X","name":"a","ts":007}', "a", "bare-word"),
    ],
)
def test_known_damage_is_repaired(damaged: str, name: str, kind: str) -> None:
    for text in (_around(damaged), _around(damaged, tail=',"traceName":"x"')):
        columns = columns_of(text)
        assert _names(columns) == ["before", name, "after"]
        assert _argument(columns, "x")[2] == 1
        assert set(_incidents(columns)) == {kind}
        [incident] = columns.incidents
        assert incident.examples[0].offset_bytes == text.index(damaged)
        assert incident.examples[0].text.startswith(damaged)
        assert (incident.message, incident.action, incident.lost_bytes) > ("", "", -1)


@pytest.mark.parametrize(
    "damaged",
    [
        '{"ph":"X","name":"an "unescaped" quote","ts":1,"args":{"name":"x"}}',
        '{"ph":"X","name":"open, "ts":1,"args": {"name":"x"}}',
        '{"ph":"X","name":',
        '{"ph" "X"}',
        "{]",
        "nonsense",
    ],
)
def test_other_damage_costs_one_event(damaged: str) -> None:
    for text in (_around(damaged), _around(damaged, tail=',"traceName":"x"')):
        columns = columns_of(text)
        assert _names(columns) == ["before", "after"]
        assert columns.metadata["schemaVersion"] == 1
        [incident] = columns.incidents
        assert (incident.kind, incident.count) == ("skipped-events", 1)
        assert len(damaged) <= incident.lost_bytes <= len(damaged) + 1  # the comma
        assert [example.offset_bytes for example in incident.examples] == [text.index(damaged)]


@pytest.mark.parametrize("tail", ["", ',"traceName":"x","n":{"a":1}'])
def test_damage_in_the_last_event_keeps_what_follows_the_events(tail: str) -> None:
    for damaged in (r'{"ph":"X","name":"\q"}', '{"ph":"X","name":"an "unescaped" quote"}'):
        text = f'{{"traceEvents":[{json.dumps(BEFORE)},{damaged}]{tail}}}'
        columns = columns_of(text)
        assert _names(columns)[0] == "before"
        assert ("traceName" in columns.metadata) == bool(tail)
        assert "truncated-json" not in _incidents(columns)


@pytest.mark.parametrize("buffer", [1, 20, 100])
def test_damage_does_not_depend_on_the_buffer(monkeypatch: pytest.MonkeyPatch, buffer: int) -> None:
    monkeypatch.setattr(document_values, "BUFFER_BYTES", buffer)
    monkeypatch.setattr(inflate, "PIECE_BYTES", buffer + 1)
    columns = columns_of(_around(r'{"ph":"X","name":"\q","args":{"long":"' + "x" * 300 + '"}}'))
    assert _names(columns) == ["before", "\\q", "after"]
    assert _incidents(columns) == {"invalid-escape": 1}


@pytest.mark.parametrize("value", ["{'a': 1}", "[1, 2", '"a "quote" b"', "{'traceEvents': 1}"])
def test_a_damaged_top_level_value_costs_itself_alone(value: str) -> None:
    text = f'{{\n"bad": {value},\n"traceEvents":[{json.dumps(EVENT)}],\n"good": 2}}'
    columns = columns_of(text)
    assert _names(columns) == ["aten::mm"]
    assert columns.metadata.get("good") == 2
    assert _incidents(columns) == {"damaged-metadata": 1}


def test_empty_top_level_values_are_null() -> None:
    text = f'{{"a": ,"traceEvents":[{json.dumps(EVENT)}],"b": }}'
    columns = columns_of(text)
    assert columns.metadata == {"a": None, "b": None}
    assert _incidents(columns) == {"empty-value": 2}


def test_a_file_full_of_damage_is_read_in_time_of_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    # json walks through all text before an error to count its lines: not the whole file each time
    walked = []
    scan = json.JSONDecoder.raw_decode

    def counted(self: json.JSONDecoder, text: str, idx: int = 0) -> Any:
        try:
            return scan(self, text, idx)
        except json.JSONDecodeError as error:
            walked.append(error.pos)
            raise

    monkeypatch.setattr(json.JSONDecoder, "raw_decode", counted)
    event = json.dumps(EVENT | {"args": {"x": "y" * 100}}).replace("aten::mm", r"\q")
    columns = columns_of("[" + ",".join([event] * 5_000) + "]")
    assert _incidents(columns) == {"invalid-escape": 5_000}
    assert max(walked[1:]) < 3 * cursor.SMALL_BUFFER_BYTES
    assert sum(walked) < 5_000 * cursor.SMALL_BUFFER_BYTES


def test_control_characters_in_names_are_kept() -> None:
    columns = columns_of(_around('{"ph":"X","name":"a\x01\t\nb"}'))
    assert _names(columns) == ["before", "a\x01\t\nb", "after"]
    assert columns.incidents == ()


def test_bytes_that_are_no_utf8_are_replaced_and_counted() -> None:
    text = _around('{"ph":"X","name":"a@b"}').encode().replace(b"@", b"\xff\xfe")
    columns = columns_of(text)
    assert _names(columns) == ["before", "a\ufffd\ufffdb", "after"]
    assert _incidents(columns) == {"invalid-utf8": 2}


def test_halves_of_surrogate_pairs_can_be_written_again() -> None:
    event = r'{"ph":"X","name":"\ud800","args":{"a":"\udfff","b":"\ud83d\ude00"}}'
    columns = columns_of(f'{{"m":{{"\\ud800":"\\ud800"}},"traceEvents":[{event}]}}')
    assert json.loads(json.dumps(_whole(columns)).encode()) == _whole(columns)
    "".join((*columns.strings, *map(str, columns.metadata["m"].items()))).encode()
    assert _argument(columns, "b") == {0: "\N{GRINNING FACE}"}


def test_unreadable_names_of_arguments_become_readable_and_may_become_one() -> None:
    first = r'{"ph":"C","name":"c","args":{"v\ud800":1,"w":2}}'
    second = r'{"ph":"C","name":"c","args":{"v\ud800":3,"v\udfff":4}}'
    columns = columns_of(f"[{first},{second}]")
    assert [*columns.arguments] == ["v?", "w"]
    assert _argument(columns, "v?") == {0: 1, 1: 4}


def test_things_among_the_events_that_are_none_are_counted() -> None:
    columns = columns_of(f'{{"traceEvents":[1,"a",null,[],{json.dumps(EVENT)}]}}')
    assert _names(columns) == ["aten::mm"]
    assert _incidents(columns) == {"not-an-event": 4}
    assert [example.text for example in columns.incidents[0].examples] == ["1", '"a"', "null"]


def test_a_number_of_an_event_that_was_skipped_widens_no_column() -> None:
    small, large = ({"ph": "X", "args": {"a": value}} for value in (1, 2**40))
    damaged = json.dumps(large).replace('"X"', '"X" "')
    columns = columns_of(f"[{json.dumps(small)},{damaged},{json.dumps(small)}]")
    assert _argument(columns, "a") == {0: 1, 1: 1}
    assert columns.arguments["a"].values.dtype == np.int32
    late = json.dumps(large | {"name": "x"}).replace('"name": "x"', '"name" "x"')
    columns = columns_of(f"[{json.dumps(small)},{late},{json.dumps(small)}]")
    assert columns.arguments["a"].values.dtype == np.int32


def test_arguments_that_are_no_object_are_kept() -> None:
    columns = columns_of(json.dumps([_event(args=[1, 2])]))
    assert _argument(columns, "args") == {0: "[1,2]"}


SMALL = json.dumps(
    {
        "schemaVersion": 1,
        "traceEvents": [_event(name=f"op {n}", ts=n + 0.5, args={"n": n}) for n in range(4)],
        "traceName": "x",
    }
)


def _complete_events(prefix: str) -> int:
    """How many of SMALL's events end within the prefix: each is the only one with its name."""
    whole = json.loads(SMALL)["traceEvents"]
    ends = [SMALL.index(json.dumps(event)) + len(json.dumps(event)) for event in whole]
    return sum(end <= len(prefix) for end in ends)


def test_cut_anywhere_the_complete_events_are_kept() -> None:
    for size in range(len(SMALL)):
        prefix = SMALL[:size]
        count = _complete_events(prefix)
        if count == 0:
            with pytest.raises(UnreadableError):
                columns_of(prefix)
            continue
        columns = columns_of(prefix)
        assert _names(columns) == [f"op {n}" for n in range(count)], prefix
        assert _argument(columns, "n") == {n: n for n in range(count)}
        assert "truncated-json" in _incidents(columns)


def test_gzip_cut_anywhere_gives_what_can_be_inflated() -> None:
    packed = gzip.compress(SMALL.encode(), compresslevel=0)  # stored: nothing hides in the block
    seen = set()
    for size in range(len(packed)):
        try:
            columns = columns_of(packed[:size])
        except UnreadableError as error:
            assert not error.message.startswith("This is not a trace") or size < 2  # noqa: PT017
            continue
        assert "truncated-gzip" in _incidents(columns)
        assert _names(columns) == [f"op {n}" for n in range(len(columns))]
        seen.add(len(columns))
    assert seen == {1, 2, 3, 4}


def test_a_damaged_byte_in_gzip_keeps_what_came_before() -> None:
    events = [_event(name=f"op {n}", args={"text": f"{n * 7919 % 1000:b}" * 9}) for n in range(900)]
    packed = bytearray(gzip.compress(json.dumps(events).encode()))
    packed[len(packed) // 2 : len(packed) // 2 + 8] = b"\xff" * 8
    columns = columns_of(bytes(packed))
    assert 100 < len(columns) < 900
    assert _names(columns)[:100] == [f"op {n}" for n in range(100)]
    assert "truncated-gzip" in _incidents(columns)


def test_a_wrong_checksum_loses_nothing() -> None:
    packed = bytearray(gzip.compress(DOCUMENT.encode()))
    packed[-5] ^= 1
    columns = columns_of(bytes(packed))
    assert len(columns) == 4
    assert _incidents(columns) == {"truncated-gzip": 1}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "The file is empty."),
        (b"   \n", "text that is not JSON"),
        (b"hello", "text that is not JSON"),
        (b"\x00\x01\x02", "it is not JSON"),
        (b"<html></html>", "This is .*page"),
        (gzip.compress(b"hello", mtime=0), "text that is not JSON"),
        (b"{}", "JSON without traceEvents"),
        (b'{"nodes": [1], "version": 2}', "a graph of nodes, without events"),
        (b'{"traceEvents": {"a": 1}}', "JSON without traceEvents"),
        (b'{"traceEvents": []}', "without events"),
        (b"[]", "without events"),
        (b"[1, 2]", "None of its events"),
        (b'[{"ph": "X", "name": "a" b"}]', "None of its events"),
        (b'{"traceEvents": [{"ph": "X"', "ends before its first event"),
        (b'{"schemaVersion": 1, "devi', "ends before its first event"),
        (gzip.compress(DOCUMENT.encode(), mtime=0)[:20], "ends before its first event"),
    ],
)
def test_what_is_no_trace_says_so(content: bytes, says: str) -> None:
    with pytest.raises(UnreadableError, match=says) as caught:
        columns_of(content, "file.json")
    assert caught.value.remedy
    assert "file.json" in str(caught.value)


def test_a_file_that_is_not_there_or_a_folder_says_so(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.json", tmp_path):
        with pytest.raises(UnreadableError, match="cannot be read"):
            ingest.read(str(path))


def test_a_file_that_inflates_beyond_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(json.dumps([EVENT] * 50_000).encode()))
    with pytest.raises(UnreadableError, match=r"more than 1\.00 MiB of JSON.*STEPSCOPE_MAX_JSON"):
        ingest.read(str(path), limits=FileLimits(json_bytes=1 << 20))


def test_a_file_that_inflates_far_beyond_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(json.dumps([EVENT]).encode() + b" " * (40 << 20)))
    monkeypatch.setattr(inflate, "FREE_BYTES", 1 << 20)
    with pytest.raises(UnreadableError, match=r"250 times as large.*STEPSCOPE_MAX_RATIO"):
        ingest.read(str(path))
    monkeypatch.setenv("STEPSCOPE_MAX_RATIO", "2000")
    assert len(ingest.read(str(path))) == 1


def test_a_file_of_too_many_events_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "many.json"
    path.write_text(json.dumps([{}] * 101))
    with pytest.raises(
        UnreadableError, match=r"more than 100 events.*STEPSCOPE_MAX_EVENTS"
    ) as caught:
        ingest.read(str(path), limits=FileLimits(events=100))
    assert caught.value.remedy
    assert len(ingest.read(str(path), limits=FileLimits(events=101))) == 101


def test_progress_comes_while_reading(tmp_path: Path) -> None:
    path = tmp_path / "many.json"
    path.write_text(json.dumps([EVENT] * 200_000))
    told: list[tuple[int, int, int]] = []
    ingest.read(str(path), lambda *progress: told.append(progress))
    assert len(told) >= 3
    assert [count for _, _, count in told] == sorted(count for _, _, count in told)
    assert 50_000 < told[-1][2] <= 200_000
    assert all(0 <= done <= total == path.stat().st_size for done, total, _ in told)


# --- the property: what is written is read ---------------------------------------------------

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
FRACTIONS = st.decimals(-(10**9), 10**15, places=3).map(lambda number: number + 0)
SCALARS = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | FRACTIONS | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)
)
FIELD = st.none() | TEXT | st.integers(-(2**60), 2**60)
KEYS = st.sampled_from(["stream", "External id", "Input Dims", "name", "ph", "a b", "\u00e9", ""])
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "ph": st.sampled_from("XiMsf"),
        "cat": TEXT,
        "name": TEXT,
        "pid": FIELD,
        "tid": FIELD,
        "id": FIELD,
        "ts": FRACTIONS | st.integers(0, 10**15),
        "dur": FRACTIONS | st.integers(0, 10**12),
        "args": st.dictionaries(KEYS, VALUES, max_size=4),
    },
)
METADATA = st.dictionaries(TEXT.map("m{}".format), VALUES, max_size=3)


class _Writer(json.JSONEncoder):
    """Writes decimals as numbers, digit by digit."""

    def __init__(self, **layout: Any) -> None:
        super().__init__(**layout)
        self._decimals: list[str] = []

    def default(self, value: Any) -> Any:
        assert isinstance(value, Decimal)
        self._decimals.append(format(value, "f"))
        return f"\ue000{len(self._decimals) - 1}\ue001"

    def written(self, value: Any) -> str:
        text = self.encode(value)
        for index, digits in enumerate(self._decimals):
            for mark in (f'"\ue000{index}\ue001"', f'"\\ue000{index}\\ue001"'):
                text = text.replace(mark, digits)
        return text


LAYOUTS: list[dict[str, Any]] = [
    {},
    {"separators": (",", ":")},
    {"indent": 1},
    {"ensure_ascii": False},
    {"ensure_ascii": False, "indent": 0, "separators": (" , ", " : ")},
]


def _expected_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value)


def _same(found: Any, written: Any) -> bool:
    """Whether an argument is as it was written: exact, but for decimals as floats."""
    if isinstance(written, Decimal):
        return Decimal(found) == written if isinstance(found, str) else found == float(written)
    if isinstance(written, bool) or not isinstance(written, str | int):
        return bool(_plain(json.loads(found, parse_float=Decimal)) == _plain(written))
    return found == written or str(found) == str(written) or found == float(written)


def _plain(value: Any) -> Any:
    """Containers hold their numbers with a fraction as text: nothing is rounded."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


@examples(200)
@given(
    st.lists(EVENTS, min_size=1, max_size=5),
    METADATA,
    METADATA,
    st.sampled_from(LAYOUTS),
    st.sampled_from([bytes, gzip.compress]),
)
@example([{"args": {"a b": Decimal("0.1")}}, {"args": {"a b": 2**60}}], {}, {}, {}, bytes)
def test_every_field_and_argument_is_given_back(
    events: list[dict[str, Any]],
    before: dict[str, Any],
    after: dict[str, Any],
    layout: dict[str, Any],
    pack: Callable[[bytes], bytes],
) -> None:
    document = {**before, "traceEvents": events, **{f"z{key}": v for key, v in after.items()}}
    data = _Writer(**layout).written(document).encode()
    columns = columns_of(pack(data))
    assert columns.incidents == ()
    assert len(columns) == len(events)
    found = _whole(columns)
    for read, written in zip(found, events, strict=True):
        for key in ("ph", "cat", "name", "pid", "tid", "id"):
            assert read.get(key) == _expected_text(written.get(key))
        for key in ("ts", "dur"):
            exact = written.get(key)
            assert read.get(key) == (None if exact is None else int(exact * 1000))
        arguments = {k: v for k, v in written.get("args", {}).items() if v is not None}
        assert set(read.get("args", {})) == set(arguments)
        for key, value in arguments.items():
            assert _same(read["args"][key], value), (key, read["args"][key], value)
    assert set(columns.metadata) == set(document) - {"traceEvents"}
