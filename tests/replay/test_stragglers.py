"""The graph of many ranks gives the published answers of a what-if analysis of two real jobs.

"Understanding Stragglers in Large Model Training Using What-if Analysis" (OSDI 2025): step without
and with stragglers, and how much of the difference the slowest workers and the last stage explain.
"""

import json
from functools import cache
from typing import Any

import numpy as np
import pytest

from loading import SHARED_TRACES
from pipeline_job import PipelineJob

FOLDER = SHARED_TRACES / "stragglers"
JOBS = ["AR", "SE"]
pytestmark = pytest.mark.skipif(
    not FOLDER.exists(), reason="the jobs are not alongside this clone (../shared/traces)"
)


@cache
def job_named(name: str) -> PipelineJob:
    return PipelineJob(FOLDER / f"trace-{name}.parquet")


def published(kind: str, name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{kind}-{name}.json").read_text()))


@pytest.mark.parametrize("name", JOBS)
def test_the_step_of_a_job_is_the_published_one_with_stragglers_and_without(name: str) -> None:
    job, expected = job_named(name), published("mw", name)
    assert job.mean_step(job.duration_ns) == pytest.approx(expected["tori"], rel=1e-4)
    assert job.mean_step(job.ideal_ns) == pytest.approx(expected["tideal"], rel=1e-4)


@pytest.mark.parametrize("name", JOBS)
def test_the_slowest_workers_explain_as_much_as_published(name: str) -> None:
    job = job_named(name)
    is_slow = np.isin(job.table["rank"], job.slowest_workers())
    assert job.explained(is_slow) == pytest.approx(published("mw", name)["Mw"], abs=1e-3)


@pytest.mark.parametrize("name", JOBS)
def test_the_last_stage_explains_as_much_as_published(name: str) -> None:
    job = job_named(name)
    is_last = (job.table["stage"] == job.table["stage"].max()).to_numpy()
    assert job.explained(is_last) == pytest.approx(published("ms", name)["Ms"], abs=1e-3)


@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("column", ["dp_rank", "stage"])
def test_each_rank_and_stage_slows_the_ideal_job_as_published(name: str, column: str) -> None:
    expected = published("result", name)[f"blocking_decompose_by_{column}"]
    assert job_named(name).slowdowns(column) == pytest.approx(
        {int(number): ratio for number, ratio in expected.items()}, rel=1e-4
    )
