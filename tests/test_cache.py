"""What was read of large traces is kept on disk, never trusted, and never in the way."""

import errno
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loading import SHARED_TRACES, shared_trace_names
from logs import ROWS, write_trace
from same_columns import differences
from stepscope import ingest, storage
from stepscope.base.config import CacheSettings, settings
from stepscope.base.errors import UsageError
from stepscope.ingest import EventColumns
from stepscope.ingest.reader import FORCED
from stepscope.readers import column_cache
from stepscope.storage import cache_folder
from waiting import LONG_SECONDS

KEY = {"of": "a test"}


class Counted:
    """Reads a file, and counts how often."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.count = 0

    def __call__(self) -> EventColumns:
        self.count += 1
        return ingest.read(str(self.path))


@pytest.fixture
def trace(tmp_path: Path) -> Counted:
    return Counted(write_trace(tmp_path / "log" / "w.1.pt.trace.json"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


def settings_of(folder: Path, **more: Any) -> CacheSettings:
    return CacheSettings(folder=str(folder), worth_bytes=0, **more)


def columns_of(trace: Counted, folder: Path, **more: Any) -> EventColumns:
    path = str(trace.path)
    return column_cache.columns_of(path, storage.stamp(path), settings_of(folder, **more), trace)


def entry_in(folder: Path) -> Path:
    [entry] = folder.iterdir()
    return entry


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "stepscope.readers.column_cache"
    ]


@pytest.fixture(autouse=True)
def nothing_said_yet() -> None:
    cache_folder.warn_once.cache_clear()


def round_trip(columns: EventColumns) -> EventColumns:
    return column_cache.decoded(b"".join(column_cache.encoded(columns, KEY)), KEY)


@pytest.mark.parametrize("is_python", [False, True])
def test_what_is_kept_is_what_was_read(
    trace: Counted, folder: Path, monkeypatch: pytest.MonkeyPatch, *, is_python: bool
) -> None:
    monkeypatch.setenv(FORCED, "1" if is_python else "")
    read = columns_of(trace, folder)
    kept = columns_of(trace, folder)
    assert trace.count == 1
    assert differences(kept, read) == []


@pytest.mark.parametrize("name", shared_trace_names())
def test_real_traces_come_back_as_they_were(name: str) -> None:
    columns = ingest.read(str(SHARED_TRACES / name))
    assert differences(round_trip(columns), columns) == []


def test_odd_texts_metadata_and_incidents_come_back(tmp_path: Path) -> None:
    path = tmp_path / "odd.json"
    path.write_bytes(
        b'{"odd": [1e400, null, "\\ud800", {"a": 12345678901234567890}], "traceEvents": ['
        b'{"ph": "X", "name": "\\u0000\\ud800 \xff", "ts": 1, "dur": 2,'
        b' "args": {"\\udc00": "x", "n": 1.5, "big": 12345678901234567890, "list": [1, "two"]}},'
        b'{"ph": "X", "name": N/A, "ts": 5.001, "dur": 2},'
    )
    columns = ingest.read(str(path))
    assert columns.incidents
    assert differences(round_trip(columns), columns) == []


def test_the_file_that_was_read_is_known_from_the_cache(trace: Counted, folder: Path) -> None:
    columns_of(trace, folder)
    again = columns_of(trace, folder)
    assert trace.count == 1
    assert again.stamp is not None
    assert again.stamp.is_same_file(storage.stamp(str(trace.path)))
    write_trace(folder / "other.json").replace(trace.path)
    assert not again.stamp.is_same_file(storage.stamp(str(trace.path)))


def test_nothing_is_kept_unless_it_is_wanted(trace: Counted, folder: Path) -> None:
    stamp = storage.stamp(str(trace.path))
    small = CacheSettings(folder=str(folder))
    for each, at in ((CacheSettings(), stamp), (small, stamp), (settings_of(folder), None)):
        column_cache.columns_of(str(trace.path), at, each, trace)
        assert not folder.exists()


def test_a_file_that_changed_is_read_again_and_takes_the_place_of_what_it_was(
    trace: Counted, folder: Path
) -> None:
    columns_of(trace, folder)
    write_trace(trace.path, ROWS[:4])
    assert len(columns_of(trace, folder)) == len(columns_of(trace, folder)) == 4
    assert trace.count == 2
    assert len(list(folder.iterdir())) == 1


def test_a_file_that_changes_while_it_is_read_is_not_kept(trace: Counted, folder: Path) -> None:
    stamp = storage.stamp(str(trace.path))

    def read_and_change() -> EventColumns:
        columns = trace()
        write_trace(trace.path, ROWS[:4])
        return columns

    column_cache.columns_of(str(trace.path), stamp, settings_of(folder), read_and_change)
    assert not folder.exists()


def test_another_version_is_not_used(
    trace: Counted, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns_of(trace, folder)
    monkeypatch.setattr(column_cache, "COLUMNS_VERSION", column_cache.COLUMNS_VERSION + 1)
    columns_of(trace, folder)
    assert trace.count == 2


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "cut in the head": lambda data: data[:30],
    "cut in the middle": lambda data: data[: len(data) // 2],
    "cut at the end": lambda data: data[:-1],
    "one bit": lambda data: data[:900] + bytes([data[900] ^ 4]) + data[901:],
    "something behind it": lambda data: data + b"x",
    "something else": lambda _: b"PAR1 this is no such file",
    "a pickle": lambda _: b"cos\nsystem\n(S'false'\ntR.",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_removed_and_the_trace_read(
    trace: Counted,
    folder: Path,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[bytes], bytes],
) -> None:
    read = columns_of(trace, folder)
    entry = entry_in(folder)
    entry.write_bytes(damage(entry.read_bytes()))
    assert differences(columns_of(trace, folder), read) == []
    assert trace.count == 2
    [said] = warnings_in(caplog)
    assert said.startswith(f"the cache entry of {trace.path} was damaged and is removed: ")
    columns_of(trace, folder)
    assert trace.count == 2, "it was kept again"


def forged(columns: EventColumns, **lists: Any) -> bytes:
    """An entry with a digest that is right, and lists that are not."""
    import pyarrow as pa

    _, _, body = column_cache.encoded(columns, KEY)
    batch = pa.ipc.open_file(pa.py_buffer(body)).get_batch(0)
    names = batch.schema.names
    for name, values in lists.items():
        kind = pa.large_string() if name.startswith("texts") else None
        array = column_cache.as_one_value(pa.array(values, kind))
        batch = batch.set_column(names.index(name), name, array)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content = memoryview(sink.getvalue())
    return b"".join((column_cache.MAGIC, column_cache.digest(content), content))


FORGERIES: dict[str, Callable[[EventColumns], dict[str, Any]]] = {
    "a code beyond the texts": lambda c: {"name": np.full_like(c.name, len(c.strings))},
    "a code below none": lambda c: {"pid": np.full_like(c.pid, -2)},
    "a column that is shorter": lambda c: {"start_ns": c.start_ns[:-1]},
    "a column of another type": lambda c: {"duration_ns": c.duration_ns.astype(np.float64)},
    "a column with a gap": lambda c: {"category": [None, *c.category[1:].tolist()]},
    "a row beyond the events": lambda c: {"rows 0": c.arguments["correlation"].rows + len(c)},
    "rows in no order": lambda c: {"rows 0": c.arguments["correlation"].rows[::-1].copy()},
    "a value too few": lambda c: {"values 0": c.arguments["correlation"].values[1:]},
    "values of another type": lambda c: {
        "values 0": c.arguments["correlation"].values.astype(np.uint8)
    },
}


@pytest.mark.parametrize("forgery", FORGERIES.values(), ids=FORGERIES)
def test_what_is_in_an_entry_is_not_believed(
    trace: Counted, forgery: Callable[[EventColumns], dict[str, Any]]
) -> None:
    columns = trace()
    assert next(iter(columns.arguments)) == "correlation"
    assert len(column_cache.decoded(forged(columns), KEY)) == len(columns)
    with pytest.raises(cache_folder.DamagedError):
        column_cache.decoded(forged(columns, **forgery(columns)), KEY)


def test_what_was_used_least_lately_makes_way(tmp_path: Path, folder: Path) -> None:
    traces = [Counted(write_trace(tmp_path / f"{n}.1.pt.trace.json")) for n in range(3)]
    columns_of(traces[0], folder)
    size = entry_in(folder).stat().st_size
    (folder / "something of the user's").write_bytes(bytes(10 * size))
    for place, each in enumerate((*traces, traces[0])):
        columns_of(each, folder, bound_bytes=5 * size // 2)
        for entry in folder.glob("*.columns"):
            os.utime(entry, ns=(10**9 * place, entry.stat().st_mtime_ns - 10**9))
    for each in traces:
        each.count = 0
        columns_of(each, folder)
    assert [each.count for each in traces] == [0, 1, 0]
    assert (folder / "something of the user's").exists()


def test_what_a_killed_writer_left_goes_with_time(trace: Counted, folder: Path) -> None:
    folder.mkdir()
    for name, age_s in (("old.columns.part", 7200), ("new.columns.part", 10)):
        (folder / name).touch()
        time = (folder / name).stat().st_mtime - age_s
        os.utime(folder / name, (time, time))
    columns_of(trace, folder)
    assert {path.name for path in folder.glob("*.part")} == {"new.columns.part"}


@contextmanager
def full_disk(most_bytes: int) -> Iterator[None]:
    """Let no file grow beyond so much."""
    import signal

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_full_disk_costs_a_line_in_the_log(
    trace: Counted, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with full_disk(100):
        assert len(columns_of(trace, folder)) == len(columns_of(trace, folder))
    assert list(folder.iterdir()) == [], "nothing unfinished is left"
    assert warnings_in(caplog) == [
        f"nothing can be cached in {folder} ({os.strerror(errno.EFBIG)})"
    ], "once, not for every file"


def test_a_folder_that_cannot_be_one_costs_a_line_in_the_log(
    trace: Counted, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder.write_text("a file")
    assert len(columns_of(trace, folder)) == len(columns_of(trace, folder))
    assert len(warnings_in(caplog)) == 2
    assert folder.read_text() == "a file"


WRITER = """
import sys
from stepscope import ingest, storage
from stepscope.readers import column_cache as cache
from stepscope.base.config import CacheSettings
path, folder = sys.argv[1:]
chosen = CacheSettings(folder=folder, worth_bytes=0)
for _ in range(40):
    columns = ingest.read(path)
    entry = cache.CacheEntry(folder=folder, path=path, stamp=storage.stamp(path))
    cache.store(entry, columns, 10**9)
    assert len(cache.columns_of(path, storage.stamp(path), chosen, lambda: 1 / 0)) == len(columns)
"""


def test_two_that_write_at_once_do_not_harm_each_other(trace: Counted, folder: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(trace.path), str(folder)]
    writers = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    assert [writer.communicate(timeout=LONG_SECONDS)[1] for writer in writers] == ["", ""]
    assert entry_in(folder).suffix == ".columns"


def test_it_is_off_unless_it_is_asked_for() -> None:
    assert settings({}).cache.folder is None
    assert settings({"STEPSCOPE_CACHE": "0"}).cache.folder is None
    assert settings({"STEPSCOPE_CACHE": "/here"}, cache="0").cache.folder is None
    assert settings({"STEPSCOPE_CACHE": "1"}).cache.folder == ""
    chosen = settings(
        {
            "STEPSCOPE_CACHE": "/here",
            "STEPSCOPE_CACHE_FROM": "1G",
            "STEPSCOPE_CACHE_SIZE": "2G",
        }
    )
    expected = CacheSettings(folder="/here", worth_bytes=2**30, bound_bytes=2**31)
    assert chosen.cache == expected


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.base.config.find_spec", lambda _: None)
    assert settings({}).cache.folder is None
    with pytest.raises(UsageError, match=r"pip install 'stepscope\[cache\]'"):
        settings({}, cache="1")


def test_it_lies_in_the_users_own_folder_unless_one_is_named(
    trace: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    path = str(trace.path)
    own = CacheSettings(folder="", worth_bytes=0)
    column_cache.columns_of(path, storage.stamp(path), own, trace)
    assert entry_in(tmp_path / "home" / "stepscope").suffix == ".columns"
    assert (tmp_path / "home" / "stepscope").stat().st_mode & 0o077 == 0


@pytest.mark.skipif(os.name == "nt", reason="folders have no such owners")
def test_the_users_own_folder_is_not_used_if_others_can_write_to_it(
    trace: Counted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    own = tmp_path / "own"
    monkeypatch.setattr(cache_folder, "user_cache_folder", lambda: str(own))
    columns_of(trace, own)
    assert own.stat().st_mode & 0o777 == 0o700
    for mode in (0o777, 0o770):
        own.chmod(mode)
        columns_of(trace, own)
    own.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: own.stat().st_uid + 1)
    columns_of(trace, own)
    assert trace.count == 4
    assert f"other users can write to {own}: delete it" in " ".join(warnings_in(caplog))


@pytest.mark.skipif(os.name == "nt", reason="folders have no such owners")
def test_the_users_own_folder_may_lie_in_one_that_all_can_write_to(
    trace: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o1777)
    own = tmp_path / "own"
    monkeypatch.setattr(cache_folder, "user_cache_folder", lambda: str(own))
    columns_of(trace, own)
    columns_of(trace, own)
    assert trace.count == 1
