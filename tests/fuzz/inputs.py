"""Inputs for the scanner: stretches of real traces, changed here and there."""

import gzip
import json
import random
import re
from collections.abc import Callable
from pathlib import Path

MEMBER = re.compile(rb'"([^"\\]*)"\s*:\s*("[^"\\]*"|[-+.0-9eE]+|true|false|null)')
EVENT = re.compile(rb'\{\s*"(?:ph|name)"')
STRETCH_BYTES = 3000
STRETCHES_A_FILE = 60
TOKENS = (
    *(bytes([byte]) for byte in b'{}[],:"\\ \n\t-+.eE0917ntfN\x00\x1f\x80\xff'),
    b'"ph":"X",',
    b'"args":{',
    b'"ts":',
    b'"dur":"12.5",',
    b'"id":-0,',
    b'"schemaVersion":1,',
    b"null",
    b"true",
    b"false",
    b"NaN",
    b"1e400",
    b"-0.0",
    b"9" * 18,
    b"9" * 19,
    b"0." + b"3" * 40,
    b"1" * 400,
    b"\\u00e9",
    b"\\ud800",
    b"\\q",
    b"\xc3\xa9",
    b"},{",
    b"}}",
    b"]}",
    b" " * 17,
    b"[" * 70,
    b'{"a":' * 70,
    b'"a":1,' * 600,
)
KEYS = (
    *(b"ph", b"cat", b"name", b"pid", b"tid", b"id", b"ts", b"dur", b"args", b"s", b"bp"),
    *(b"stream", b"External id", b"", b"k" * 7, b"k" * 8, b"k" * 9, b"k" * 300, b"traceEvents"),
    *(b"schemaVersion", b"\\u0070h", b'a\\"b', "\u00e9\u20ac\U0001f600".encode()),
)
VALUES = (
    *(
        b"0",
        b"-0",
        b"7",
        b"-7",
        b"12.5",
        b"-12.5",
        b"0.001",
        b"1712195495505582.988",
        b"1e3",
        b"-1E-7",
    ),
    *(str(2**power + more).encode() for power in (31, 53, 62, 63, 64) for more in (-1, 0, 1)),
    *(b"9" * count for count in (15, 16, 17, 18, 19, 20, 299, 301)),
    *(b"0." + b"3" * count for count in (3, 14, 15, 16, 17, 18, 299)),
    *(b"1" * count + b".5" for count in (14, 15, 16, 17, 18)),
    *(
        b"null",
        b"true",
        b"false",
        b"[]",
        b"{}",
        b"[ ]",
        b"{ }",
        b'""',
        b'"5"',
        b'"5.25"',
        b'"-5"',
        b'" 5"',
    ),
    *(b'"' + b"x" * count + b'"' for count in (6, 7, 8, 9, 15, 16, 17, 63, 64, 65, 5000)),
    *(b'"\\n"', b'"\\u00e9\\ud83d\\ude00"', b'"\\ud800"', b'"a\\\\"', b'"\\""', b'"\x00\x1f\n"'),
    *('"\u00e9\u20ac\U0001f600"'.encode(), b'[1,2.5,"a",null,[true,{"b":{}}]]', b'{"a":[{}, []]}'),
    *(b"[" * depth + b"]" * depth for depth in (2, 31, 32, 63, 64, 65)),
    *(b'{"a":' * depth + b"1" + b"}" * depth for depth in (2, 63, 64, 65)),
    *(b"[" + b"1," * count + b"1]" for count in (7, 100, 3000)),
    *(b" " * count + b"1" + b"\n" * count for count in (1, 7, 8, 9, 65)),
)
MANY_ARGUMENTS = (510, 511, 512, 513)
Mutation = Callable[[random.Random, bytearray, list[bytes]], None]


def stretches(paths: list[Path]) -> list[bytes]:
    """Some events in a row, from several places of each file."""
    found: list[bytes] = []
    for path in paths:
        data = gzip.decompress(path.read_bytes())
        starts = [match.start() for match in EVENT.finditer(data)]
        step = max(1, len(starts) // STRETCHES_A_FILE)
        found += [data[start : start + STRETCH_BYTES] for start in starts[::step]]
    return found


def flip(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """Change one byte."""
    data[rng.randrange(len(data))] = rng.randrange(256)


def put(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """Put a token somewhere."""
    place = rng.randrange(len(data) + 1)
    data[place:place] = rng.choice(TOKENS)


def replace(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """Put a token over something."""
    place = rng.randrange(len(data))
    data[place : place + rng.randrange(12)] = rng.choice(TOKENS)


def drop(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """Take something out."""
    place = rng.randrange(len(data))
    del data[place : place + rng.choice((1, 1, 2, 8, 60))]


def repeat(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """Say something twice."""
    place, size = rng.randrange(len(data)), rng.choice((3, 20, 200))
    data[place:place] = data[place : place + size]


def revalue(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """Give some member another value: what was JSON stays so."""
    members = list(MEMBER.finditer(data))
    if members:
        start, end = rng.choice(members).span(2)
        data[start:end] = rng.choice(VALUES)


def rename(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """Give some member another key: one that its object has already, perhaps."""
    members = list(MEMBER.finditer(data))
    if members:
        start, end = rng.choice(members).span(1)
        data[start:end] = rng.choice(KEYS)


def add(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """Put members before another one."""
    members = list(MEMBER.finditer(data))
    if members:
        place = rng.choice(members).start()
        count = rng.choice(MANY_ARGUMENTS) if rng.random() < RARELY else 1
        keys = [rng.choice(KEYS)] if count == 1 else [b"n%d" % number for number in range(count)]
        data[place:place] = b"".join(b'"%b": %b, ' % (key, rng.choice(VALUES[:9])) for key in keys)


def splice(rng: random.Random, data: bytearray, others: list[bytes]) -> None:
    """Go on as another stretch does."""
    other = rng.choice(others)
    data[rng.randrange(len(data)) :] = other[rng.randrange(len(other)) :]


def cut(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """End early."""
    del data[rng.randrange(1, len(data) + 1) :]


def grow(rng: random.Random, data: bytearray, _others: list[bytes]) -> None:
    """Begin with events that hold many new keys and texts: tables have to widen."""
    name = rng.randrange(10**9)
    events = [
        {"ph": f"p{name + n}", "name": "n" * rng.randrange(90), "args": {f"k{name + n}": f"v{n}"}}
        | {"ts": name + n, "dur": n / 8, f"extra{n % 7}": [n, {"x": None}]}
        for n in range(rng.choice((3, 40, 300)))
    ]
    data[0:0] = json.dumps(events)[1:-1].encode() + b","


MUTATIONS: tuple[Mutation, ...] = (
    *(flip, put, replace, drop, repeat, splice, cut),
    *(revalue, revalue, revalue, rename, rename, add),
)
RARELY = 0.01


def mutated(rng: random.Random, seeds: list[bytes]) -> bytes:
    """A stretch with up to four changes."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3, 4))):
        if data:
            rng.choice(MUTATIONS)(rng, data, seeds)
    if rng.random() < RARELY:
        grow(rng, data, seeds)
    return bytes(data)
