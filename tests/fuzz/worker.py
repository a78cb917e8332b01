"""Feeds the sanitized scanner, and compares some of what it takes with the slow reader."""

import argparse
import ctypes
import importlib.util
import json
import mmap
import os
import random
import re
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from fuzz import inputs
from same_columns import differences
from stepscope import ingest
from stepscope.base.errors import UnreadableError
from stepscope.ingest import EventColumns, compiled_reader, reader

EVENT = re.compile(rb'\{\s*"')
LAST_INPUT_BYTES = 1 << 20
PADDING = bytes(64)
MOST_ATTEMPTS = 50
FULL_SHARE = 0.05
"""Scanners that are full soon."""
MOST_IN_ONE = 40
"""Inputs that go into one scanner before it is emptied."""


def loaded(path: Path) -> ModuleType:
    """The sanitized module."""
    spec = importlib.util.spec_from_file_location("_scanner", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exactly(data: bytes) -> memoryview:
    """The data and its padding, and not a byte behind them that may be read."""
    padded = data + PADDING
    return memoryview((ctypes.c_char * len(padded)).from_buffer_copy(padded)).cast("B")


def scanned_to_the_end(scanner: Any, data: bytes, offset: int, *, is_comma_due: bool) -> int:
    """Scan as the reader does: behind what the scanner leaves, from the next event on."""
    buffer = exactly(data)
    at = 0
    for attempt in range(1, MOST_ATTEMPTS + 1):
        at = scanner.scan(buffer, at, offset, is_comma_due=is_comma_due)
        left = EVENT.search(data, at)
        behind = EVENT.search(data, left.end()) if left else None
        if scanner.is_starved or behind is None:
            return attempt
        at = behind.start()
    return MOST_ATTEMPTS


def emptied(scanner: Any) -> None:
    """Take everything out, as a reader does, and look at every byte of it."""
    scanner.notes()
    for column in scanner.take_columns():
        hash(bytes(column))
    for code in range(len(scanner.key_names())):
        for part in scanner.take_arguments_of(code)[:3]:
            hash(bytes(part))
    hash(bytes(scanner.take_strings()[0]))
    hash(bytes(scanner.take_texts()[0]))


def read(path: Path, how: str) -> EventColumns | str:
    os.environ[reader.FORCED] = how
    try:
        return ingest.read(str(path))
    except UnreadableError as error:
        return error.message


def compared(data: bytes, path: Path) -> None:
    """Both readers must say the same of a document with this among its events."""
    path.write_bytes(b'{"traceEvents": [' + data + b"]}")
    mine, slow = read(path, "0"), read(path, reader.ONE_BY_ONE)
    if isinstance(mine, str) or isinstance(slow, str):
        assert mine == slow, (mine, slow)
        return
    assert differences(mine, slow) == []


class Fuzzing:
    """Goes on feeding one scanner after another, and counts."""

    def __init__(self, module: ModuleType, seeds: list[bytes], seed: int) -> None:
        self._module = module
        self._seeds = seeds
        self._rng = random.Random(seed)  # noqa: S311 (to be repeated)
        self._document = Path(tempfile.mkdtemp(), "trace.json")
        self._scanner = module.Scanner()
        names = ("inputs", "bytes", "scans", "taking", "events", "starved", "odd", "compared")
        self.counts = dict.fromkeys(names, 0)

    def one(self, last: mmap.mmap, compare_every: int) -> None:
        rng = self._rng
        data = inputs.mutated(rng, self._seeds)[: LAST_INPUT_BYTES - 8]
        last[: 8 + len(data)] = len(data).to_bytes(8, "little") + data
        before = len(self._scanner)
        offset, is_comma_due = rng.randrange(2**40), rng.random() < 0.5
        scans = scanned_to_the_end(self._scanner, data, offset, is_comma_due=is_comma_due)
        event_count = len(self._scanner) - before
        self.counts["inputs"] += 1
        self.counts["bytes"] += len(data)
        self.counts["scans"] += scans
        self.counts["taking"] += event_count > 0
        self.counts["events"] += event_count
        self.counts["starved" if self._scanner.is_starved else "odd"] += 1
        if self.counts["inputs"] % MOST_IN_ONE == 0:
            emptied(self._scanner)
            self._scanner = self._module.Scanner(3 if rng.random() < FULL_SHARE else 2**30)
        if self.counts["inputs"] % compare_every == 0:
            compared(data, self._document)
            self.counts["compared"] += 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--module", type=Path, required=True)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compare-every", type=int, default=100)
    parser.add_argument("--last", type=Path, required=True)
    parser.add_argument("--input", type=Path)
    parser.add_argument("seeds", type=Path, nargs="*")
    asked = parser.parse_args()
    module = loaded(asked.module)
    compiled_reader._scanner = module  # type: ignore[attr-defined] # noqa: SLF001 (with sanitizers)
    if asked.input:
        one = asked.input.read_bytes()
        scanned_to_the_end(module.Scanner(), one, 0, is_comma_due=False)
        compared(one, Path(tempfile.mkdtemp(), "trace.json"))
        return
    fuzzing = Fuzzing(module, inputs.stretches(asked.seeds), asked.seed)
    asked.last.write_bytes(bytes(LAST_INPUT_BYTES))
    with asked.last.open("r+b") as file, mmap.mmap(file.fileno(), LAST_INPUT_BYTES) as last:
        while fuzzing.counts["inputs"] < asked.count:
            fuzzing.one(last, asked.compare_every)
    sys.stdout.write(json.dumps(fuzzing.counts) + "\n")


if __name__ == "__main__":
    main()
