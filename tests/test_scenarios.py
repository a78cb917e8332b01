"""The scripts of sample_logs/record/: those made for a GPU run on a CPU, and one call runs all."""

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from loading import SAMPLE_LOGS, trace_at
from stepscope.analyses.core.window import window

pytest.importorskip("torch")
pytestmark = pytest.mark.recording
every = __import__("all")  # sample_logs/record/all.py, whose name is a builtin's
SCRIPTS = SAMPLE_LOGS / "record"
HELPERS = {"all", "device_rates", "measure", "recording", "two_ranks", "zoo_runs"}
WITHOUT_DEVICE = {
    "pinned_copies": {"pageable": 8, "pinned": 8},
    "fragmentation": {"fixed_segments": 8, "growing_segments": 8},
    "tf32": {"float32": 6, "tf32": 6},
}
"""Runs of each, and how many steps they record."""


def step_counts(folder: Path) -> dict[str, int]:
    paths = sorted(folder.rglob("*.pt.trace.json.gz"))
    return {path.parent.name: window(trace_at(path)).step_count for path in paths}


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHOUT_DEVICE)
def test_a_script_for_a_gpu_records_on_a_cpu_what_it_would_there(tmp_path: Path, name: str) -> None:
    command = [sys.executable, str(SCRIPTS / f"{name}.py"), "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    assert step_counts(tmp_path / name) == WITHOUT_DEVICE[name]


@pytest.mark.slow
def test_what_is_replayed_on_a_gpu_is_compiled_on_a_cpu(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, torch, compiled\n"
        "compiled.record(pathlib.Path(sys.argv[1]), torch.device('cpu'), compiled.replayed)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "graphs")]
    subprocess.run(command, check=True, capture_output=True, cwd=SCRIPTS)
    assert step_counts(tmp_path) == {"graphs": 6}
    [path] = tmp_path.rglob("*.gz")
    names = trace_at(path).host_calls["name"].cat.categories
    assert any(str(name).startswith("Torch-Compiled Region") for name in names)


def test_every_script_that_records_is_called() -> None:
    is_named = {*every.SCENARIOS, *every.CUDA_ONLY}
    scripts = {
        path.stem for path in SCRIPTS.glob("*.py") if '__name__ == "__main__"' in path.read_text()
    }
    assert {name for name in scripts if not name.startswith("synthetic_")} - HELPERS == is_named


def test_an_optimizers_forms_are_recorded_again_where_steps_differ_outside_of_the_update() -> None:
    is_undisturbed = __import__("optimizer").is_undisturbed
    assert is_undisturbed([2.0, 2.9, 2.5])
    assert not is_undisturbed([2.0, 3.1, 2.5])


# One call for all


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Scripts in the place of the scenarios: the second fails, the third is left out."""
    write = "import pathlib; pathlib.Path({!r}).write_bytes(bytes({}))"
    traces = {name: str(tmp_path / f"{name}.1.pt.trace.json.gz") for name in ("good", "late")}
    scripts = {
        "good": write.format(traces["good"], 10),
        "bad": "raise SystemExit(3)",
        "elsewhere": f"raise SystemExit({every.LEFT_OUT})",
        "late": write.format(traces["late"], every.MOST_BYTES + 1),
        "endless": "import time; time.sleep(600)",
    }
    for name, script in scripts.items():
        (tmp_path / f"{name}.py").write_text(script)
    monkeypatch.setattr(every, "HERE", tmp_path)
    monkeypatch.setattr(every, "SCENARIOS", ("good", "bad", "elsewhere", "late"))
    return tmp_path


def asked(folder: Path, *names: str, device: str = "cpu") -> Namespace:
    return Namespace(names=list(names), device=device, out=folder)


def test_one_that_fails_stops_no_other_and_is_listed(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert every.main(asked(folder)) == 1
    assert capfd.readouterr().err.splitlines() == [
        "bad: exit status 3",
        "elsewhere: left out: this machine lacks a requirement",
        "late.1.pt.trace.json.gz: 2,000,001 bytes",
    ]


def test_what_the_machine_cannot_do_is_no_failure(folder: Path) -> None:
    assert every.main(asked(folder, "good", "elsewhere")) == 0


def test_one_that_does_not_end_is_ended(folder: Path) -> None:
    assert every.record("endless", asked(folder), str(folder), 0.6) == "ended after 1 s"


def test_on_a_gpu_nothing_begins_when_no_time_is_left(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(every, "WHOLE_CUDA_S", 0.0)
    assert every.main(asked(folder, "good", device="cuda")) == 0
    assert capfd.readouterr().err.splitlines() == ["good: left out: no time left"]
    assert not list(folder.glob("*.gz"))
