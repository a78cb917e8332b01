"""What the machine has, what files need of it, and who gets how much."""

import gzip
import json
import threading
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tracebuild
from loading import trace_of
from logs import ROWS
from stepscope import storage
from stepscope.api.prefetch import prepare
from stepscope.base import host_limits
from stepscope.base.config import CacheSettings, Settings, file_limits, settings, size_bytes
from stepscope.base.errors import UnreadableError, UsageError
from stepscope.readers import memory_estimate, memory_size
from stepscope.readers.eta import Clock, EtaEstimator
from stepscope.readers.memory_budget import MemoryBudget
from stepscope.readers.requests import CancelledError, ReadProgress, Stop
from stepscope.storage import FileStamp

MIB, GIB = 2**20, 2**30


# --- the machine -------------------------------------------------------------------------------


def root_of(folder: Path, **files: str) -> Path:
    """A root folder with such files; `__` stands for `/`."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return folder


MEMINFO = "MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n"


def test_memory_is_what_the_machine_says_is_available(tmp_path: Path) -> None:
    assert host_limits.available_bytes(root_of(tmp_path, proc__meminfo=MEMINFO)) == 8_000_000 * 1024


def test_memory_is_guessed_where_the_machine_does_not_say(tmp_path: Path) -> None:
    assert 2**28 < host_limits.available_bytes(tmp_path) < 2**50


def test_a_container_of_today_bounds_memory_and_cores(tmp_path: Path) -> None:
    root = root_of(
        tmp_path,
        proc__meminfo=MEMINFO,
        proc__self__cgroup="0::/outer/inner\n",
        sys__fs__cgroup__outer__memory_DOT_max=f"{GIB}\n",
        sys__fs__cgroup__outer__memory_DOT_current=f"{GIB // 2}\n",
        sys__fs__cgroup__outer__memory_DOT_stat=f"anon 1\ninactive_file {GIB // 8}\n",
        sys__fs__cgroup__outer__inner__memory_DOT_max="max\n",
        sys__fs__cgroup__outer__inner__cpu_DOT_max="150000 100000\n",
        sys__fs__cgroup__outer__cpu_DOT_max="max 100000\n",
    )
    assert host_limits.available_bytes(root) == GIB - GIB // 2 + GIB // 8
    assert host_limits.core_count(root) == min(2, host_limits.core_count(tmp_path / "none"))


def test_a_container_of_version_1_whose_path_is_the_hosts_bounds_them_too(tmp_path: Path) -> None:
    root = root_of(
        tmp_path,
        proc__meminfo=MEMINFO,
        proc__self__cgroup="3:cpu:/docker/a\n2:memory,x:/docker/a\n1:name=systemd:/\n",
        sys__fs__cgroup__memory__memory_DOT_limit_in_bytes=f"{GIB}",
        sys__fs__cgroup__memory__memory_DOT_usage_in_bytes="0",
        sys__fs__cgroup__cpu__cpu_DOT_cfs_quota_us="50000\n",
        sys__fs__cgroup__cpu__cpu_DOT_cfs_period_us="100000\n",
    )
    assert host_limits.available_bytes(root) == GIB
    assert host_limits.core_count(root) == 1


@pytest.mark.skipif(
    host_limits.private_bytes() is None, reason="the platform does not limit memory"
)
def test_a_limit_holds_within_its_block_and_not_behind_it() -> None:
    with host_limits.data_limit(64 * MIB):
        np.empty(16 * MIB, dtype=np.uint8)
        with pytest.raises(MemoryError):
            np.empty(128 * MIB, dtype=np.uint8)
    assert len(np.empty(128 * MIB, dtype=np.uint8)) == 128 * MIB


# --- settings ----------------------------------------------------------------------------------


def test_settings_come_from_options_then_the_environment_then_the_machine() -> None:
    found = settings({})
    assert (found.jobs, found.cache) == (min(host_limits.core_count(), 16), CacheSettings())
    assert found.memory_bytes == pytest.approx(host_limits.available_bytes() / 2, rel=0.2)
    said = {
        "STEPSCOPE_JOBS": "3",
        "STEPSCOPE_MEMORY": "2G",
        "STEPSCOPE_RESCAN_SECONDS": "1",
        "STEPSCOPE_SUMMARIES": "0",
    }
    assert settings(said) == Settings(jobs=3, memory_bytes=2 * GIB, rescan_seconds=1)
    given = settings(said, jobs=5, memory="512M")
    assert given == Settings(jobs=5, memory_bytes=512 * MIB, rescan_seconds=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("512M", 512 * MIB), ("8G", 8 * GIB), ("1.5GiB", 3 * GIB // 2), ("2 gb", 2 * GIB), ("7", 7)],
)
def test_sizes_have_units_in_powers_of_1024(text: str, expected: int) -> None:
    assert size_bytes(text, "x") == expected


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("STEPSCOPE_MEMORY", "much", "must be a size, such as 8G"),
        ("STEPSCOPE_MEMORY", "-1G", "must be a size, such as 8G"),
        ("STEPSCOPE_MEMORY", "1M", "less than 256M is too little"),
        ("STEPSCOPE_JOBS", "many", "must be a whole number above zero"),
        ("STEPSCOPE_JOBS", "0", "must be a whole number above zero"),
        ("STEPSCOPE_JOBS", "\u0660", "must be a whole number above zero"),
        ("STEPSCOPE_CACHE_SIZE", "G", "must be a size, such as 8G"),
    ],
)
def test_what_is_no_setting_is_refused_by_its_name(name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"^{name} is '{text}': .*{said}"):
        settings({name: text})


def test_a_setting_beyond_all_machines_is_no_limit() -> None:
    many = "9" * 5000
    limits = {"STEPSCOPE_MAX_EVENTS": many, "STEPSCOPE_MAX_JSON": f"{many}T"}
    huge = settings({"STEPSCOPE_JOBS": many, "STEPSCOPE_MEMORY": many, **limits})
    assert huge.memory_bytes == file_limits(limits).json_bytes == 2**60
    assert huge.jobs == file_limits(limits).events == 9 * 10**9
    assert settings({"STEPSCOPE_JOBS": "0" * 1000 + "5"}).jobs == 5
    assert settings({}, response_seconds=10**30).response_seconds < threading.TIMEOUT_MAX


def test_jobs_are_at_least_one() -> None:
    with pytest.raises(UsageError, match=r"^jobs is '-1': it must be a whole number above zero"):
        settings({}, jobs=-1)


# --- what a file needs -------------------------------------------------------------------------


def inflated(path: Path) -> int:
    return memory_estimate.inflated_bytes(str(path), storage.stamp(str(path)))


def test_a_file_says_how_much_json_it_holds(tmp_path: Path) -> None:
    rows = [["cpu_op", "aten::mm", place, place**3 % 9973] for place in range(5000)]
    text = json.dumps(tracebuild.document(rows=rows)).encode()
    (tmp_path / "plain").write_bytes(text)
    (tmp_path / "packed").write_bytes(gzip.compress(text, 1))
    assert inflated(tmp_path / "plain") == inflated(tmp_path / "packed") == len(text)


@pytest.mark.parametrize(
    ("said", "size", "expected"),
    [
        (700 * MIB, 60 * MIB, 700 * MIB),
        (100 * MIB, 300 * MIB, 4 * GIB + 100 * MIB),
        (7, 100 * MIB, 1500 * MIB),
        (0xFFFFFFFF, 1 * MIB, 15 * MIB),
    ],
    ids=["as it says", "counted modulo 4 GiB", "several members", "cut off"],
)
def test_a_packed_file_that_cannot_be_right_is_guessed(
    tmp_path: Path, said: int, size: int, expected: int
) -> None:
    path = tmp_path / "packed"
    with path.open("wb") as stream:
        stream.write(b"\x1f\x8b")
        stream.seek(size - 4)
        stream.write(said.to_bytes(4, "little"))
    assert inflated(path) == expected


def test_a_remote_file_is_judged_by_its_name_alone() -> None:
    stamp = FileStamp(size_bytes=10, modified_ns=1)
    assert memory_estimate.inflated_bytes("s3://none/w.json.gz", stamp) == 150
    assert memory_estimate.inflated_bytes("s3://none/w.json", stamp) == 10


def test_only_what_surely_does_not_fit_is_refused() -> None:
    stamp = FileStamp(size_bytes=GIB, modified_ns=1)
    memory_estimate.require_fits("w.json", stamp, GIB, GIB // 3)
    memory_estimate.require_fits("w.json.gz", stamp, 15 * GIB, 3 * GIB)
    with pytest.raises(
        UnreadableError, match=r"more than 2\.40 GiB of memory, but the limit is 2\.00"
    ):
        memory_estimate.require_fits("w.json.gz", stamp, 15 * GIB, 2 * GIB)


# --- who gets how much -------------------------------------------------------------------------


def in_background(action: object) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread


def test_a_reading_that_does_not_fit_waits_and_those_behind_it_wait_with_it() -> None:
    room = MemoryBudget(100)
    seen: list[int] = []

    def take(wanted: int) -> None:
        with room.reserve(wanted, Stop()):
            seen.append(wanted)

    with room.reserve(60, Stop()):
        waiting = []
        for wanted in (70, 20, 10):
            waiting.append(in_background(lambda wanted=wanted: take(wanted)))
            waiting[-1].join(0.05)
        assert seen == []
    for thread in waiting:
        thread.join(10)
    assert seen == [70, 20, 10]


def test_one_that_wants_more_than_there_is_gets_all_when_it_is_alone() -> None:
    room = MemoryBudget(100)
    with room.reserve(1000, Stop()) as granted:
        assert granted == 100
    room.set_retained(30)
    with room.reserve(1000, Stop()) as granted:
        assert granted == 70
    room.set_retained(90)
    with room.reserve(1000, Stop()) as granted:
        assert granted == 50, "what is kept gives way"


def test_what_is_kept_is_asked_to_give_way_first() -> None:
    asked: list[int] = []

    def let_go(missing_bytes: int) -> None:
        asked.append(missing_bytes)
        room.set_retained(room.retained_bytes - missing_bytes)

    room = MemoryBudget(100, let_go)
    room.set_retained(60)
    with room.reserve(40, Stop()):
        assert asked == []
    with room.reserve(55, Stop()) as granted:
        assert (asked, granted) == ([15], 55)


def test_waiting_ends_when_it_is_cancelled() -> None:
    room, stop = MemoryBudget(100), Stop()
    ended: list[str] = []

    def wait() -> None:
        try:
            with room.reserve(50, stop):
                ended.append("granted")
        except CancelledError:
            ended.append("cancelled")

    with room.reserve(80, Stop()):
        waiting = in_background(wait)
        time.sleep(0.05)
        stop.set()
        waiting.join()
    assert ended == ["cancelled"]


# --- how long it takes -------------------------------------------------------------------------

HALF = ReadProgress(bytes_done=50, bytes_total=100)


def test_the_time_left_follows_from_the_rate() -> None:
    assert EtaEstimator().left_s(HALF, Clock(began=10.0), 14.0) == pytest.approx(4.0)


def test_nothing_is_said_before_anything_is_known() -> None:
    pace, clock = EtaEstimator(), Clock(began=10.0)
    assert pace.left_s(HALF, clock, 10.1) is None
    assert pace.left_s(ReadProgress(), clock, 20.0) is None
    assert pace.left_s(ReadProgress(phase="waiting"), clock, 20.0) is None
    assert pace.left_s(ReadProgress(phase="analysing"), clock.at("analysing", 20.0), 21.0) is None


def test_analyses_take_as_long_as_they_did_for_other_files() -> None:
    pace = EtaEstimator()
    first = Clock(began=0.0).at("reading", 1.0).at("analysing", 4.0).at("advising", 5.0)
    pace.finished(first, 12.0)  # four seconds of reading, then eight
    clock = Clock(began=20.0)
    assert pace.left_s(HALF, clock, 22.0) == pytest.approx(2.0 + 2 * 4.0)
    clock = clock.at("analysing", 24.0)
    told = ReadProgress(phase="analysing", bytes_done=100, bytes_total=100)
    assert pace.left_s(told, clock, 26.0) == pytest.approx(6.0)
    assert pace.left_s(told, clock, 99.0) is None, "it takes longer than the other"


def test_time_spent_waiting_does_not_count() -> None:
    clock = Clock(began=0.0).at("waiting", 50.0).at("reading", 51.0)
    assert EtaEstimator().left_s(HALF, clock, 54.0) == pytest.approx(4.0)


# --- what a recording takes --------------------------------------------------------------------


def test_a_recording_takes_what_its_arrays_and_what_was_computed_of_it_take() -> None:
    trace = trace_of(ROWS)
    columns = memory_size.columns_bytes(trace)
    assert columns > trace.columns.nbytes
    assert memory_size.results_bytes(trace) < 1000
    prepare(trace)
    frames = sum(
        int(np.sum(each.memory_usage()))
        for each in trace.results.values()
        if isinstance(each, pd.DataFrame)
    )
    assert frames < memory_size.results_bytes(trace) < 40 * frames  # with outcomes of all rules
    trace.results.clear()
    assert memory_size.columns_bytes(trace) == pytest.approx(columns, rel=0.2)


class Measured:
    """It notes that it was asked for its size."""

    def __init__(self) -> None:
        self.is_measured = False

    def __sizeof__(self) -> int:
        self.is_measured = True
        return 100


def test_long_lists_are_measured_by_some_of_their_items() -> None:
    texts = ["x" * 1000] * 3 + [f"{number:01000}" for number in range(100_000)]
    assert memory_size.size_bytes(texts) == pytest.approx(1050 * len(texts), rel=0.1)
    assert memory_size.size_bytes(items := [Measured() for _ in range(100_000)]) > len(items)
    assert 1000 <= sum(each.is_measured for each in items) <= 2000


def test_what_is_held_twice_counts_once() -> None:
    array = np.zeros(10_000)
    assert memory_size.size_bytes((array, array, {"again": array})) < 81_000
