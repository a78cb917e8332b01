"""Pickles are read without running them: plain values come out, all else is refused."""

import io
import os
import pickle
import pickletools
import struct
import sys
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from stepscope.ingest.plain_pickles import PickleLimits, PickleRefusedError, load

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64)
    | st.floats(allow_nan=False)
    | st.text()
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text(), inner)
    ),
    max_leaves=30,
)
PROTOCOLS = [2, 3, 4, 5]


@given(values, st.sampled_from(PROTOCOLS))
def test_what_pickle_writes_of_plain_values_is_read_as_pickle_reads_it(
    value: object, protocol: int
) -> None:
    data = pickle.dumps(value, protocol)
    assert load(data) == pickle.loads(data)  # noqa: S301 (ours)
    optimised = pickletools.optimize(data)
    assert load(optimised) == value


def test_what_is_used_twice_is_one_object() -> None:
    shared = {"name": "f"}
    loaded: Any = load(pickle.dumps([shared, shared]))
    assert loaded[0] is loaded[1]


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.system, ("touch /tmp/stepscope-was-here",)


class Stateful:
    def __init__(self) -> None:
        self.state = 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "value",
    [Evil(), [{"segments": Evil()}], print, Stateful(), {1, 2}, frozenset({1}), 1j, range(3)],
)
def test_what_names_code_is_refused(value: object, protocol: int) -> None:
    with pytest.raises(PickleRefusedError, match=r"It contains (code|an instruction)"):
        load(pickle.dumps(value, protocol))


@pytest.mark.parametrize(
    "value", [b"bytes", bytearray(b"b"), pickle.PickleBuffer(b"out"), {1: 2}, {(1, 2): 3}]
)
def test_what_no_snapshot_holds_is_refused(value: object) -> None:
    with pytest.raises(PickleRefusedError):
        load(pickle.dumps(value, 5))


def test_buffers_out_of_band_are_refused() -> None:
    data = pickle.dumps(pickle.PickleBuffer(b"x" * 99), 5, buffer_callback=lambda _: None)
    with pytest.raises(PickleRefusedError, match="NEXT_BUFFER"):
        load(data)


@pytest.mark.parametrize(
    "opcode", [op for op in pickletools.opcodes if op.name in {"EXT1", "EXT2", "INST", "BINPERSID"}]
)
def test_every_way_to_code_is_refused(opcode: Any) -> None:
    with pytest.raises(PickleRefusedError, match=f"contains code \\({opcode.name}\\)"):
        load(b"\x80\x02" + opcode.code.encode("latin-1") + b"\x01\x00\x00\x00")


def _head(rest: bytes) -> bytes:
    return b"\x80\x04" + rest


GREEDY = {
    "a text of 2^60 bytes": _head(b"\x8d" + struct.pack("<Q", 2**60) + b"x."),
    "a text of 4 GB": _head(b"X" + struct.pack("<I", 2**32 - 1) + b"x."),
    "a memo of 4 G places": _head(b"Nr" + struct.pack("<I", 2**32 - 1) + b"j\xff\xff\xff\xff."),
    "a frame of 2^60 bytes": _head(b"\x95" + struct.pack("<Q", 2**60) + b"N."),
    "a whole number of 2 GB": _head(b"\x8b" + struct.pack("<i", 2**31 - 1) + b"\x01."),
    "a whole number of -1 bytes": _head(b"\x8b" + struct.pack("<i", -1) + b"\x01."),
}


@pytest.mark.parametrize("data", GREEDY.values(), ids=GREEDY)
def test_nothing_is_made_larger_than_what_was_read(data: bytes) -> None:
    tracemalloc.start()
    with suppress(PickleRefusedError):
        load(data)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak_bytes < 2**20


def test_laughs_are_shared_not_multiplied() -> None:
    lol: Any = "lol"
    for _ in range(60):  # 2^60 of them, were it written out
        lol = [lol, lol]
    tracemalloc.start()
    loaded = load(pickle.dumps(lol))
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert isinstance(loaded, list)
    assert peak_bytes < 2**20


def test_a_list_that_holds_itself_is_read() -> None:
    loop: list[Any] = []
    loop.append(loop)
    loaded = load(pickle.dumps(loop))
    assert isinstance(loaded, list)
    assert loaded[0] is loaded


def test_depth_costs_no_stack() -> None:
    depth = 200_000
    nested = load(_head(b"]" * depth + b"a" * (depth - 1) + b"."))
    tuples = load(_head(b"N" + b"\x85" * depth + b"."))
    for outermost in (nested, tuples):
        inner: Any = outermost
        count = 0
        while inner:
            inner, count = inner[0], count + 1
        assert depth - 1 <= count <= depth


def test_too_many_values_are_refused() -> None:
    with pytest.raises(PickleRefusedError, match="more than 100 values"):
        load(_head(b"(" + b"]" * 101 + b"t."), PickleLimits(objects=100))
    with pytest.raises(PickleRefusedError, match="more than 100 values"):
        load(_head(b"N" + b"\x94" * 101 + b"."), PickleLimits(objects=100))
    with pytest.raises(PickleRefusedError, match="more than 100 values"):
        load(_head(b"(" * 101), PickleLimits(objects=100))
    with pytest.raises(PickleRefusedError, match="more than 100 instructions"):
        load(_head(b"(" + b"N" * 101 + b"t."), PickleLimits(instructions=100))


@pytest.mark.parametrize(
    "rest",
    [
        *(b"", b".", b"N", b"NN.", b"(N.", b"a.", b"]a.", b"Na.", b"NNa.", b"t.", b"\x87."),
        *(b"h\x00.", b"]Ns.", b"}(Nu.", b"}(K\x01Nu.", b"](Nu.", b"\x8c\x05ab.", b"K"),
        *(b"J\x00", b"\x94.", b"\x8a\x11", b"\xff"),
    ],
)
def test_damage_is_told(rest: bytes) -> None:
    with pytest.raises(PickleRefusedError, match=r"^It .*\.$"):
        load(_head(rest))


def test_protocols_that_torch_does_not_write_are_refused() -> None:
    with pytest.raises(PickleRefusedError, match="contains an instruction"):
        load(pickle.dumps([1], 0))
    with pytest.raises(PickleRefusedError, match="protocol"):
        load(b"\x80\x09N.")


SEED = pickle.dumps({"segments": [{"a": [1, 2.5, None], "b": ("x", True)}], "traces": [[]] * 3})


@examples(400)
@given(st.data())
def test_damaged_pickles_are_read_or_refused_and_nothing_else(data: st.DataObject) -> None:
    content = bytearray(SEED)
    for _ in range(data.draw(st.integers(1, 6))):
        place = data.draw(st.integers(0, len(content) - 1))
        content[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    try:
        load(bytes(content))
    except PickleRefusedError:
        return


@examples(400)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        load(_head(data))
    except PickleRefusedError:
        return


def test_nothing_was_run() -> None:
    data = io.BytesIO()
    pickle.dump(Evil(), data)
    before = set(sys.modules)
    with pytest.raises(PickleRefusedError, match="contains code"):
        load(data.getvalue())
    assert set(sys.modules) == before
    assert not os.path.exists("/tmp/stepscope-was-here")  # noqa: PTH110, S108
