"""All ways to read a file give the same: compiled, in batches, one by one, in buffers of any size.

Reading one event at a time in large buffers is what the others must equal, on every trace at hand
and on documents that hypothesis makes up, whole and damaged.
"""

import gzip
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from generated import examples
from loading import ROOT, SHARED_TRACES, shared_trace_names
from same_columns import differences
from stepscope import ingest
from stepscope.base.errors import UnreadableError
from stepscope.ingest import (
    EventColumns,
    compiled_reader,
    cursor,
    document_values,
    documents,
    inflate,
    reader,
)

READERS = {"compiled": "0", "batches": "1", "one-by-one": reader.ONE_BY_ONE}
Outcome = EventColumns | str


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How much is read at once, in bytes."""

    buffer: int = document_values.BUFFER_BYTES
    small_buffer: int = cursor.SMALL_BUFFER_BYTES
    joint: int = documents.JOINT_BYTES
    read: int = inflate.READ_BYTES
    piece: int = inflate.PIECE_BYTES


USUAL = Sizes()


@contextmanager
def _reading(how: str, sizes: Sizes) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(reader.FORCED, how)
        patch.setattr(document_values, "BUFFER_BYTES", sizes.buffer)
        for module in (document_values, documents, cursor):
            patch.setattr(module, "SMALL_BUFFER_BYTES", sizes.small_buffer)
        patch.setattr(documents, "JOINT_BYTES", sizes.joint)
        patch.setattr(inflate, "READ_BYTES", sizes.read)
        patch.setattr(inflate, "PIECE_BYTES", sizes.piece)
        yield


def _read(data: bytes, how: str = reader.ONE_BY_ONE, sizes: Sizes = USUAL) -> Outcome:
    """The columns, or what the refusal says."""
    with tempfile.TemporaryDirectory() as folder, _reading(how, sizes):
        path = Path(folder, "trace.json")
        path.write_bytes(data)
        try:
            return ingest.read(str(path))
        except UnreadableError as error:
            return f"{error.message} {error.remedy}"


def _unlike(expected: Outcome, found: Outcome) -> list[str]:
    if isinstance(expected, EventColumns) and isinstance(found, EventColumns):
        return differences(expected, found)
    return [] if expected == found else [f"{expected} is not {found}"]


def _unlike_in_buffers(data: bytes, packed: bytes, how: str, sizes: Sizes) -> list[str]:
    expected, found = _read(data), _read(packed, how, sizes)
    if sizes != USUAL and isinstance(expected, str) and isinstance(found, str):
        return []  # what a refusal says rests on the first 64 KiB: more than these buffers
    return _unlike(expected, found)


@pytest.fixture(params=READERS)
def how(request: pytest.FixtureRequest) -> str:
    """A way to read."""
    if request.param == "compiled" and not compiled_reader.IS_BUILT:
        pytest.skip("the scanner is not built here: no C compiler")
    return READERS[request.param]


# --- every trace at hand ---------------------------------------------------------------------

SCENARIOS = sorted(path for path in (ROOT / "sample_logs").iterdir() if any(path.rglob("*.gz")))
SAMPLES = [
    min(path.rglob("*.json.gz"), key=lambda each: each.stat().st_size).relative_to(ROOT).as_posix()
    for path in SCENARIOS
]
"""The smallest of each scenario: one script recorded them all, and one profiler wrote them."""


OTHERS = ("compiled", "batches")
"""What is held against reading one by one, which takes longest and is done once a trace."""


@lru_cache(maxsize=1)
def _one_by_one(path: Path) -> Outcome:
    return _read(path.read_bytes())


@pytest.mark.parametrize("how", OTHERS, indirect=True)
@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_are_read_the_same(name: str, how: str) -> None:
    assert _unlike(_one_by_one(ROOT / name), _read((ROOT / name).read_bytes(), how)) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", OTHERS, indirect=True)
@pytest.mark.parametrize("name", shared_trace_names())
def test_real_traces_are_read_the_same(name: str, how: str) -> None:
    path = SHARED_TRACES / name
    assert _unlike(_one_by_one(path), _read(path.read_bytes(), how)) == []


# --- what fuzzing found ----------------------------------------------------------------------

CORPUS = sorted((ROOT / "tests" / "fuzz" / "corpus").iterdir())
NARROW = (1, 2, 7, 40)


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_what_was_read_wrongly_once_is_read_the_same(path: Path, how: str) -> None:
    data = path.read_bytes()
    for bytes_ in (1 << 20, *NARROW):
        sizes = Sizes(buffer=bytes_, small_buffer=bytes_, joint=bytes_, read=bytes_, piece=bytes_)
        assert _unlike_in_buffers(data, data, how, sizes) == []


# --- documents, as text: every way that JSON has to write a thing -----------------------------

GAPS = st.sampled_from(["", "", "", " ", "\n", "\t", "\r\n", " " * 9, "\n" + " " * 17])
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.integers(0, 99).map(str),
    st.from_regex(r"-?(?:0|[1-9][0-9]{0,18})\.[0-9]{1,17}", fullmatch=True),
    st.from_regex(r"-?(?:0|[1-9][0-9]{0,4})(?:\.[0-9]{1,3})?[eE][-+]?[0-9]{1,3}", fullmatch=True),
    st.sampled_from(["0", "-0", "-0.0", "1712195495505582.988", "9" * 18, "9" * 19, "1e400"]),
    st.sampled_from(
        [str(2**power + more) for power in (31, 32, 53, 63, 64) for more in (-1, 0, 1)]
    ),
    st.sampled_from(["1" * 290, "1" * 310, "0." + "1" * 320, "1" * 4000 + ".5"]),
)
CHARACTERS = st.one_of(
    st.characters(codec="utf-8", exclude_characters='"\\'),
    st.sampled_from("aé\u0100\u07ff\u0800\uffff\U00010000\U0010ffff\x00\x1f\x7f\u2028\ufeff"),
    st.sampled_from([r"\"", r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t", r"\u0041", r"\u00e9"]),
    st.sampled_from([r"\ud83d\ude00", r"\ud800", r"\udfff", r"\uD834\uDD1E", r"\u0000", r"\\u"]),
)
TEXTS = st.one_of(
    st.sampled_from(["aten::mm", "cpu_op", "X", "", "5", "1.5", "true", "null", "{}", "a" * 70]),
    st.lists(CHARACTERS, max_size=12).map("".join),
).map('"{}"'.format)
WORDS = st.sampled_from(["true", "false", "null"])
SCALARS = st.one_of(NUMBERS, TEXTS, WORDS)


def _joined(items: list[str], gaps: list[str], brackets: str) -> str:
    return gaps[0].join((brackets[0], f"{gaps[1]},{gaps[2]}".join(items), brackets[1]))


def _lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        _joined,
        st.lists(values, max_size=3),
        st.lists(GAPS, min_size=3, max_size=3),
        st.just("[]"),
    )


def _objects(
    keys: st.SearchStrategy[str], values: st.SearchStrategy[str], *, most: int = 3
) -> st.SearchStrategy[str]:
    members = st.builds("{}{}:{}{}".format, keys, GAPS, GAPS, values)
    return st.builds(
        _joined,
        st.lists(members, max_size=most),
        st.lists(GAPS, min_size=3, max_size=3),
        st.just("{}"),
    )


DEEP = st.builds(
    lambda depth, bracket: bracket[0] * depth + "1" + bracket[1] * depth,
    st.sampled_from([2, 31, 32, 63, 64, 65, 66, 130, 300]),
    st.sampled_from([("[", "]"), ('{"a":', "}")]),
)
VALUES = st.one_of(
    st.recursive(SCALARS, lambda inner: st.one_of(_lists(inner), _objects(TEXTS, inner))), DEEP
)
ARGUMENT_KEYS = st.one_of(
    st.sampled_from(
        ['"stream"', '"External id"', '"Input Dims"', '"name"', '"ph"', '"args"', '""']
    ),
    TEXTS,
)
MANY = st.integers(500, 530).map(
    lambda count: "{" + ",".join(f'"key {number}":{number}' for number in range(count)) + "}"
)
ARGUMENTS = st.one_of(
    _objects(ARGUMENT_KEYS, VALUES, most=5), _objects(ARGUMENT_KEYS, SCALARS), MANY
)
TIMES = st.one_of(
    st.integers(0, 10**12).map(lambda whole: f"{whole // 1000}.{whole % 1000:03}"),
    NUMBERS,
    st.builds('"{}"'.format, NUMBERS),
    st.sampled_from(["null", "true", '"soon"', '" 5"', '"nan"', "[1]", '""', '"1_0"']),
)
FIELD = st.one_of(TEXTS, st.integers(0, 99).map(str), SCALARS, VALUES)
MEMBERS = st.one_of(
    st.tuples(st.sampled_from(['"ph"', '"cat"', '"name"', '"pid"', '"tid"', '"id"']), FIELD),
    st.tuples(st.sampled_from(['"ts"', '"dur"']), TIMES),
    st.tuples(st.just('"args"'), st.one_of(ARGUMENTS, VALUES)),
    st.tuples(st.one_of(st.sampled_from(['"s"', '"bp"', r'"\u0070h"']), TEXTS), VALUES),
)


def _event(members: list[tuple[str, str]], gaps: list[str]) -> str:
    return _joined([f"{key}{gaps[0]}:{gaps[1]}{value}" for key, value in members], gaps, "{}")


@st.composite
def _usual_events(draw: st.DrawFn) -> str:
    """Events as kineto writes them, so that many are alike."""
    number = draw(st.integers(0, 999))
    arguments = draw(st.one_of(st.just('{"External id": 7}'), ARGUMENTS))
    name = draw(st.sampled_from(["aten::mm", "aten::add", "gemm"]))
    times = f'"ts": {number}.{number:03}, "dur": {number}'
    tid = draw(st.sampled_from(["2", "3", '"stream 7"']))
    fields = f'"ph": "X", "cat": "kernel", "name": "{name}", "pid": 0, "tid": {tid}'
    return f'{{{fields}, {times}, "args": {arguments}}}'


EVENTS = st.one_of(
    _usual_events(),
    st.builds(_event, st.lists(MEMBERS, max_size=9), st.lists(GAPS, min_size=3, max_size=3)),
)
METADATA = st.builds("{}{}:{}{}".format, TEXTS, GAPS, GAPS, VALUES)


@st.composite
def _documents(draw: st.DrawFn) -> str:
    gap, before, after = draw(GAPS), draw(GAPS), draw(GAPS)
    events = f"{before},{after}".join(draw(st.lists(EVENTS, max_size=8)))
    found = f"[{gap}{events}{gap}]"
    if draw(st.integers(0, 4)) == 0:
        return found
    members = [
        *draw(st.lists(METADATA, max_size=2)),
        f'"traceEvents"{gap}:{before}{found}',
        *draw(st.lists(METADATA, max_size=2)),
    ]
    return gap + "{" + f",{gap}".join(members) + after + "}" + gap


DOCUMENTS = _documents().map(str.encode)
SIZES = st.one_of(
    st.just(USUAL),
    st.builds(
        Sizes,
        buffer=st.integers(1, 300),
        small_buffer=st.integers(1, 300),
        joint=st.integers(1, 300),
        read=st.integers(1, 300),
        piece=st.integers(1, 300),
    ),
)
SEARCH = examples(
    150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@SEARCH
@given(DOCUMENTS, SIZES)
def test_what_is_well_formed_is_read_the_same(how: str, data: bytes, sizes: Sizes) -> None:
    assert _unlike_in_buffers(data, data, how, sizes) == []


@SEARCH
@given(DOCUMENTS)
def test_each_event_is_where_it_is_said_to_be(how: str, data: bytes) -> None:
    columns = _read(data, how)
    if isinstance(columns, str):
        return
    decoder = json.JSONDecoder(strict=False)
    text = data.decode()
    whole = decoder.decode(text)
    events = whole if isinstance(whole, list) else whole["traceEvents"]
    found = [
        decoder.raw_decode(data[offset:].decode())[0] for offset in columns.offset_bytes.tolist()
    ]
    assert json.dumps(found) == json.dumps(events)


# --- damage ----------------------------------------------------------------------------------

TOKENS = st.one_of(
    st.sampled_from([*b'",:{}[]\\', 0, 0x20, 0x0A, 0x30, 0x80, 0xC3, 0xE2, 0xF0, 0xFF]).map(
        lambda byte: bytes([byte])
    ),
    st.sampled_from([b"N/A", b"nan", b"NaN", b"-Infinity", b"true", b"null", b"1", b".5", b"e9"]),
    st.sampled_from([b'{"ph":', b'"traceEvents":[', b'"name":"', b"},{", b"]}", b'\n"key":']),
    st.sampled_from([b'{"schemaVersion":1,', b'"deviceProperties":[{"id":0}],', b"\0" * 70]),
    st.sampled_from(
        [b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xe2\x82", b"\xf0\x9f\x98\x80", b" " * 300]
    ),
    st.binary(max_size=4),
)
PLACES = st.integers(0, 10_000)


def _put(data: bytes, place: int, size: int, token: bytes) -> bytes:
    """Put a token in the place of some bytes."""
    at = place % (len(data) + 1)
    return data[:at] + token + data[at + size :]


def _repeated(data: bytes, place: int, size: int, elsewhere: int) -> bytes:
    """Write some bytes once more, elsewhere."""
    at = place % (len(data) + 1)
    return _put(data, elsewhere, 0, data[at : at + size])


@st.composite
def _damaged(draw: st.DrawFn) -> bytes:
    data = draw(DOCUMENTS)
    for _ in range(draw(st.integers(1, 4))):
        how_so = draw(st.integers(0, 9))
        if how_so <= 4:
            data = _put(data, draw(PLACES), draw(st.integers(0, 2)), draw(TOKENS))
        elif how_so <= 6:
            data = _put(data, draw(PLACES), draw(st.integers(1, 60)), b"")
        elif how_so == 7:
            data = _repeated(data, draw(PLACES), draw(st.integers(1, 200)), draw(PLACES))
        elif how_so == 8:
            data = data[: draw(PLACES) % (len(data) + 1)]
        else:
            data = _put(data, draw(st.sampled_from([-1, draw(PLACES)])), 0, draw(DOCUMENTS))
    return data


DAMAGED = _damaged()


@SEARCH
@given(DAMAGED, SIZES)
def test_what_is_damaged_is_read_the_same(how: str, data: bytes, sizes: Sizes) -> None:
    assert _unlike_in_buffers(data, data, how, sizes) == []


@SEARCH
@given(DAMAGED, SIZES, st.integers(0, 9))
def test_gzip_changes_nothing(how: str, data: bytes, sizes: Sizes, level: int) -> None:
    assert _unlike_in_buffers(data, gzip.compress(data, level), how, sizes) == []


@SEARCH
@given(DAMAGED)
def test_each_event_begins_where_it_is_said_to_begin(how: str, data: bytes) -> None:
    columns = _read(data, how)
    if isinstance(columns, str):
        return
    offsets = columns.offset_bytes.tolist()
    assert offsets == sorted(set(offsets))
    assert {data[offset : offset + 1] for offset in offsets} <= {b"{"}
    assert columns.inflated_bytes == len(data)
    for incident in columns.incidents:
        for shown in incident.examples:
            assert 0 <= shown.offset_bytes <= len(data)
            assert len(shown.text) <= 120
