"""The benchmark of stored ranks reads summaries, and no trace."""

import pytest

from benchmarks import stored_ranks


@pytest.mark.slow
def test_a_run_is_predicted_from_its_summaries(capsys: pytest.CaptureFixture[str]) -> None:
    stored_ranks.measure(16, 2)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("16 ranks of 2 steps; their summaries have 0.")
    assert lines[1].endswith("at most 60: yes")
