"""Measurements of a process: its time, its phases, its memory, and its error."""

import sys

import pytest

from benchmarks.processes import FailedError, measured

ALLOCATED_BYTES = 200 << 20


def test_a_process_is_charged_with_its_time_and_its_memory() -> None:
    output = 'print("warming up"); print(\'{"load": 1.5}\')'
    script = f"import time; held = bytearray({ALLOCATED_BYTES}); time.sleep(0.2); {output}"
    run = measured([sys.executable, "-c", script])
    assert run.seconds["load"] == 1.5
    assert run.seconds["whole"] > 0.2
    assert run.cpu_seconds < run.seconds["whole"]
    assert ALLOCATED_BYTES < run.peak_bytes < 2 * ALLOCATED_BYTES


def test_a_process_is_not_charged_with_what_its_starter_holds() -> None:
    allocated = bytearray(ALLOCATED_BYTES)
    assert measured([sys.executable, "-c", "pass"]).peak_bytes < len(allocated)


def test_a_process_that_tells_no_phases_has_its_whole_time() -> None:
    assert list(measured([sys.executable, "-c", "print('{not JSON}')"]).seconds) == ["whole"]


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(FailedError, match=r"^ModuleNotFoundError: No module named 'no_such'$"):
        measured([sys.executable, "-c", "import no_such"])
