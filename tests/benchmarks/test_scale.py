"""The scaling benchmark on a small job: the advice names all faults."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks import job as jobs
from benchmarks import scale_page, scale_runs
from benchmarks.job_plan import Job
from benchmarks.process_tree import watched
from benchmarks.processes import FailedError
from benchmarks.scale_figures import Figure

ALLOCATED_BYTES = 100 << 20


@pytest.mark.slow
def test_advice_on_a_job_names_all_that_is_wrong_with_it(tmp_path: Path) -> None:
    output = tmp_path / "advice.json"
    scale_runs.advise(jobs.job(16, 0.2, tmp_path), output)
    report = json.loads(output.read_bytes())
    assert scale_runs.names(report, Job(rank_count=16)) == {
        "the straggler": True,
        "the cause of the straggler": True,
        "the missing ranks": True,
        "the damaged file": True,
    }
    elsewhere = {
        "the straggler": False,
        "the cause of the straggler": False,
        "the missing ranks": False,
        "the damaged file": False,
    }
    assert scale_runs.names(report, Job(rank_count=64)) == elsewhere


def test_memory_of_all_processes_counts_and_that_of_the_first_apart() -> None:
    script = f"data = b'x' * {ALLOCATED_BYTES}; import time; time.sleep(1)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {script!r}])"
    run = watched([sys.executable, "-c", parent])
    assert run.peak_bytes > ALLOCATED_BYTES > run.first_peak_bytes > 0
    assert run.seconds > 1


def test_a_command_that_fails_says_why() -> None:
    with pytest.raises(FailedError, match="No module named 'nosuch'"):
        watched([sys.executable, "-c", "import nosuch"])


@pytest.mark.parametrize(("power", "expected"), [(1, 1.0), (2, 2.0), (0, 0.0)])
def test_growth_is_the_exponent(power: int, expected: float) -> None:
    assert scale_runs.slope({n: 3.0 * n**power for n in (64, 128, 1024)}) == pytest.approx(expected)


def test_a_figure_is_shown_with_its_limit() -> None:
    over = Figure(key="x", text="Wall", value=3, unit="s", most=2)
    assert (over.bar, over.holds) == ("≤ 2", False)
    assert over.line().split() == ["Wall", "3", "s", "≤", "2:", "NO"]
    assert Figure(key="x", text="Wall", value=3, least=2).holds
    assert Figure(key="x", text="Wall", value=3).holds is None


def test_the_model_is_as_quick_as_the_slowest_of_its_parts() -> None:
    costs = scale_page.Costs(
        file_seconds=0.4,
        megabyte_seconds=0.01,
        rank_seconds=0.005,
        task_seconds=0.002,
        listing_seconds=0.0001,
        rank_megabytes=0.5,
        base_megabytes=100,
    )
    alone = costs.seconds(1000, 10, 2, is_cluster=False)
    assert alone == pytest.approx(0.1 + 250 + 5)
    assert costs.seconds(1000, 10, 1000, is_cluster=True) == pytest.approx(0.1 + 2 + 5)


def test_the_page_has_marks_for_every_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "scaling.md"
    page.write_text(scale_page.PAGE.read_text())
    monkeypatch.setattr(scale_page, "PAGE", page)
    scale_page.write()
    once = page.read_text()
    scale_page.write()
    assert page.read_text() == once
