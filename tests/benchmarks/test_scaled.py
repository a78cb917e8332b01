"""A repeated trace: later, with new numbers, otherwise the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import scaled
from loading import trace_at

STAMP = "1712195495505582.988"


def recording() -> dict[str, Any]:
    """A step of 10.5 us with an operator, and two events about the whole trace."""
    document = {
        "schemaVersion": 1,
        "traceEvents": [
            {"ph": "M", "name": "process_name", "ts": 0, "args": {"name": "python"}},
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": "ProfilerStep#7",
                "ts": STAMP,
                "dur": 10.5,
                "args": {"External id": 3, "Python id": 1, "Python parent id": None},
            },
            {
                "ph": "X",
                "cat": "cpu_op",
                "name": 'say "id": 5, 100 %d',
                "ts": STAMP,
                "dur": 1.0,
                "args": {"Python id": 2, "Python parent id": 1, "Share": [0.5]},
            },
            {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "ts": 1, "dur": 20},
        ],
        "traceName": "trace.json",
    }
    return scaled.parsed(json.dumps(document).replace(f'"{STAMP}"', STAMP).encode())


def replica(number: int) -> list[dict[str, Any]]:
    repeated = recording()["traceEvents"][1:3]
    text = scaled.replicas(repeated, period_us=11)[number]
    events: list[dict[str, Any]] = json.loads(f"[{text}]")
    return events


def test_the_first_replica_is_the_recording_itself() -> None:
    assert replica(0) == json.loads(f"[{scaled.events_text(recording()['traceEvents'][1:3])}]")


def test_later_replicas_are_later_and_numbered_on() -> None:
    step, operator = replica(2)
    assert step == {
        "ph": "X",
        "cat": "user_annotation",
        "name": "ProfilerStep#9",
        "ts": 1712195495505604.988,
        "dur": 10.5,
        "args": {"External id": 11, "Python id": 7, "Python parent id": None},
    }
    assert operator["name"] == 'say "id": 5, 100 %d'
    assert operator["args"] == {"Python id": 8, "Python parent id": 7, "Share": [0.5]}


def test_a_trace_has_the_requested_number_of_events_and_one_header() -> None:
    document = json.loads("".join(scaled.texts(recording(), "6k")).replace("\n", ""))
    assert len(document["traceEvents"]) == 2 + 6000
    assert [event["name"] for event in document["traceEvents"][-2:]] == [
        "process_name",
        "PyTorch Profiler (0)",
    ]
    assert document["traceEvents"][-1]["dur"] == 20 + 2999 * 11
    assert (document["schemaVersion"], document["traceName"]) == (1, "trace.json")


def test_a_shuffled_trace_has_the_same_events_in_another_order() -> None:
    def events(*, is_shuffled: bool) -> list[Any]:
        text = "".join(scaled.texts(recording(), "1k", is_shuffled=is_shuffled))
        listed: list[Any] = json.loads(text)["traceEvents"]
        return listed

    ordered, shuffled = events(is_shuffled=False), events(is_shuffled=True)
    assert ordered != shuffled
    assert sorted(map(str, ordered)) == sorted(map(str, shuffled))


def test_a_size_without_a_unit_is_refused() -> None:
    with pytest.raises(ValueError, match=r"43: a size is like 43MB or 2GB"):
        "".join(scaled.texts(recording(), "43"))


def test_a_file_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaled, "FOLDER", tmp_path)
    path = scaled.scaled("25k")
    written = path.stat()
    assert scaled.scaled("25k").stat().st_mtime_ns == written.st_mtime_ns
    assert list(tmp_path.iterdir()) == [path]
    assert len(trace_at(path).steps) == 5
