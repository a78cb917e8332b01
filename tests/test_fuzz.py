"""`make fuzz` in small: the scanner under sanitizers, and the whole product on changed traces."""

import gzip
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import documents, product, regressions, shrink, worst

ROOT = Path(__file__).resolve().parents[1]
TRACE = "worker0.1.pt.trace.json"


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


@pytest.mark.slow
@pytest.mark.frames
@pytest.mark.parametrize("name", worst.CHANGES)
def test_the_worst_documents_cost_little(name: str) -> None:
    data = json.dumps(worst.document(name, 150)).encode()
    assert product.checked(TRACE, data).failures == []


@pytest.mark.slow
@pytest.mark.frames
@pytest.mark.parametrize("seed", range(1, 6))
def test_changed_traces_have_all_their_answers(seed: int) -> None:
    assert product.checked(*documents.document(seed)).failures == []


@pytest.mark.frames
def test_some_of_all_surfaces_see_a_changed_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "SHARES", dict.fromkeys(product.SHARES, 1.0))
    name, data = documents.document(1)
    rng = random.Random(1)  # noqa: S311 (to be repeated)
    checks = product.Checks(size_bytes=len(data), is_whole=False, rng=rng)
    product.check(checks, name, data)
    assert checks.failures == []
    assert checks.seen["table"] == product.FEW_TABLES
    assert checks.seen["GET"] == product.FEW_REQUESTS


@pytest.mark.frames
def test_documents_that_differ_in_outcomes_fail_nothing() -> None:
    corpus = regressions.regressions()
    assert len(corpus) > 100
    assert [line for document in corpus for line in document.failures()] == []


@pytest.mark.frames
def test_a_trace_with_findings_may_number_its_steps_below_zero() -> None:
    [path] = (ROOT / "sample_logs" / "synthetic_dataloader" / "fault").glob("*.json.gz")
    text = gzip.decompress(path.read_bytes()).replace(b"ProfilerStep#", b"ProfilerStep#-")
    assert product.surface_failures("advise", text) == []


def test_a_seed_makes_the_same_document_again() -> None:
    assert documents.document(7) == documents.document(7)
    assert documents.document(7) != documents.document(8)


@pytest.mark.frames
def test_failures_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_more: object) -> None:
        raise ValueError

    data = json.dumps(worst.document("deep operators", 5)).encode()
    monkeypatch.setattr("stepscope.advice.trace_advice.outlook", fail)
    [failure] = product.surface_failures("advise", data)
    assert failure.startswith("failed-part: The outlook is left out")
    monkeypatch.setattr(product, "tabulate", fail)
    [failure] = product.surface_failures("table kernels", data)
    assert failure.startswith("table kernels: ValueError")
    monkeypatch.setattr(product, "MOST_S", -10.0)
    slow = product.surface_failures("read", data)
    assert all(product.OVER in line for line in slow)
    assert slow


def test_a_document_is_reduced_to_the_events_that_fail() -> None:
    document = worst.document("deep operators", 20) | {"other": 1}

    def fails(smaller: shrink.Document) -> bool:
        return any(event.get("name") == "op14" for event in smaller["traceEvents"])

    smaller = shrink.smallest(document, fails, seconds=5.0)
    [event] = smaller["traceEvents"]
    assert set(smaller) == {"traceEvents"}
    assert set(event) <= {"name", "args"}
