"""`make fuzz` in small: the scanner under sanitizers, and the whole product on changed traces."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import documents, product, worst

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


@pytest.mark.frames
@pytest.mark.parametrize("name", worst.CHANGES)
def test_the_worst_documents_cost_little(name: str) -> None:
    data = json.dumps(worst.document(name, 150)).encode()
    assert product.analysed("worker0.1.pt.trace.json", data).failures == []


@pytest.mark.frames
@pytest.mark.parametrize("seed", range(1, 6))
def test_changed_traces_have_all_their_answers(seed: int) -> None:
    assert product.checked(*documents.document(seed)).failures == []


@pytest.mark.frames
def test_a_trace_with_findings_may_number_its_steps_below_zero() -> None:
    [path] = (ROOT / "sample_logs" / "synthetic_dataloader" / "fault").glob("*.json.gz")
    text = gzip.decompress(path.read_bytes()).replace(b"ProfilerStep#", b"ProfilerStep#-")
    assert product.analysed("worker0.1.pt.trace.json", text).failures == []


def test_a_seed_makes_the_same_document_again() -> None:
    assert documents.document(7) == documents.document(7)
    assert documents.document(7) != documents.document(8)


@pytest.mark.frames
def test_failures_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_arguments: object, **_more: object) -> None:
        raise ValueError

    name, data = documents.document(1)
    monkeypatch.setattr("stepscope.advice.trace_advice.outlook", fail)
    monkeypatch.setattr(product, "tabulate", fail)
    monkeypatch.setattr(product, "MOST_S", -10.0)
    failures = "\n".join(product.analysed(name, data).failures)
    assert "failed-part: The outlook is left out" in failures
    assert "table host-breakdown: ValueError" in failures
    assert " s of at most -" in failures
