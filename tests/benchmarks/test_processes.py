"""What is told of a process: its time, its phases, its memory, and why it failed."""

import sys

import pytest

from benchmarks.processes import FailedError, measured

HELD_BYTES = 200 << 20


def test_a_process_is_charged_with_its_time_and_its_memory() -> None:
    told = 'print("warming up"); print(\'{"load": 1.5}\')'
    script = f"import time; held = bytearray({HELD_BYTES}); time.sleep(0.2); {told}"
    found = measured([sys.executable, "-c", script])
    assert found.seconds["load"] == 1.5
    assert found.seconds["whole"] > 0.2
    assert found.cpu_seconds < found.seconds["whole"]
    assert HELD_BYTES < found.peak_bytes < 2 * HELD_BYTES


def test_a_process_is_not_charged_with_what_its_starter_holds() -> None:
    held = bytearray(HELD_BYTES)
    assert measured([sys.executable, "-c", "pass"]).peak_bytes < len(held)


def test_a_process_that_tells_no_phases_has_its_whole_time() -> None:
    assert list(measured([sys.executable, "-c", "print('{not JSON}')"]).seconds) == ["whole"]


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(FailedError, match=r"^ModuleNotFoundError: No module named 'no_such'$"):
        measured([sys.executable, "-c", "import no_such"])
