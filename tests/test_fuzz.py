"""`make fuzz` in small: the scanner under sanitizers, compared with the slow reader."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="the sanitizers come with gcc")
def test_mutated_traces_are_read_within_bounds_and_the_same_by_both_readers() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "--count", "5000", "--jobs", "1", "--seed", "3"],
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    counts = json.loads(done.stdout.partition(": ")[2].partition(";")[0])
    assert counts["inputs"] == counts["starved"] + counts["odd"] == 5000
    assert counts["events"] > 5000
    assert counts["compared"] == 50
