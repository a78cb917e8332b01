"""No finding of the shared traces promises more than the replay without its work."""

import sys
from pathlib import Path

import pytest

from replay.bounds import table
from replay.test_bounds import bounded


@pytest.mark.slow
@pytest.mark.parametrize("collection", ["kineto/", "hta/", "tracelens/"])
def test_no_finding_of_a_shared_trace_promises_more_than_its_bound(
    collection: str, shared_traces: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shared_traces.is_dir()
    findings = bounded(collection)
    with capsys.disabled():
        sys.stdout.write(f"\n{table(findings)}\n")
    assert len(findings) > 10
    assert [finding for finding in findings if not finding.is_kept] == []


def test_mixed_precision_saves_next_to_nothing_where_the_host_is_the_limit(
    shared_traces: Path,
) -> None:
    """The sum of times was 22 to 50 ms of 141; all kernels at zero time save 1.4 ms."""
    assert shared_traces.is_dir()
    for finding in bounded("kineto/resnet50_num_workers_4/worker0.1623212756351"):
        if finding.rule == "no-mixed-precision":
            assert finding.recorded.alone_ns <= finding.recorded.bound_ns < 2_000_000
