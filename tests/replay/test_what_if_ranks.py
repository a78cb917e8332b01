"""`stepscope whatif` of a run's folder: the step without a straggler, and refusals."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import stepscope
from loading import SAMPLE_LOGS
from stepscope.cli import cli

RANKS = SAMPLE_LOGS / "ranks"
SLOW = str(RANKS / "one_slow_rank")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["whatif", *arguments])


def test_without_the_slow_rank_the_step_is_half_and_nobody_waits() -> None:
    """Rank 1 works 59.4 ms and rank 0 only 13.1 ms of each 60.2 ms."""
    result = json.loads(run(SLOW, "--without-rank", "1", "--format", "json").output)
    assert result["recorded_ns"] == pytest.approx(60.2e6, rel=0.01)
    assert result["simulated_ns"] == pytest.approx(13.9e6, rel=0.02)
    first, second = result["ranks"]
    assert first["recorded_wait_ns"] == pytest.approx(46.3e6, rel=0.01)
    assert first["simulated_wait_ns"] == pytest.approx(0, abs=0.2e6)
    assert second["recorded_work_ns"] == pytest.approx(59.4e6, rel=0.01)
    assert second["simulated_work_ns"] == pytest.approx(13.1e6, rel=0.02)


@pytest.mark.parametrize("name", ["balanced", "becomes_slow", "one_slow_rank"])
def test_real_runs_are_replayed_within_the_bound(name: str) -> None:
    prediction = stepscope.run_what_if(stepscope.load(RANKS / name)).prediction
    assert prediction.replay_error < 0.015
    assert prediction.simulated_ns == pytest.approx(prediction.recorded_ns, rel=0.01)
    for rank in prediction.ranks:
        assert rank.recorded_work_ns + rank.recorded_wait_ns <= 1.01 * rank.recorded_ns


def test_the_library_prints_what_the_command_prints() -> None:
    result = stepscope.run_what_if(stepscope.load(SLOW), without_ranks=[1], network=2)
    assert str(result) == run(SLOW, "--without-rank", "1", "--network", "2").output


def test_the_terminal_gives_the_step_its_parts_and_the_ranks() -> None:
    lines = run(SLOW, "--ranks-alike").output.splitlines()
    assert lines[0] == (
        "The step of the run takes 37.0 ms instead of 60.2 ms: it saves 23.1 ms (38.5 %)."
    )
    named = ("Mean step", "of it work", "of it waiting for other ranks", "of it transfer")
    assert [line for name in named for line in lines if line.startswith(name)] == [
        "Mean step                       60.2 ms    37.0 ms  -23.1 ms",
        "of it work                      36.3 ms    36.3 ms     +0 ns",
        "of it waiting for other ranks   23.2 ms    35.5 µs  -23.1 ms",
        "of it transfer                   759 µs     745 µs  -13.7 µs",
    ]
    assert "Rank 1  59.4 ms    36.3 ms     0 ns    13.4 µs" in lines
    assert lines[-2].startswith("6 recorded steps of 2 ranks. Replayed without changes")


def test_the_folder_of_a_run_without_changes_shows_what_its_ranks_wait() -> None:
    lines = run(SLOW).output.splitlines()
    assert lines[0] == "The step of the run takes 60.2 ms, as recorded."
    assert "Rank 0  13.1 ms    13.1 ms  46.3 ms    46.3 ms" in lines


def test_markdown_has_both_tables() -> None:
    output = run(SLOW, "--network", "2", "--format", "markdown").output
    assert output.startswith("**The step of the run takes ")
    assert "| Mean step | 60.2 ms | " in output
    assert "| Rank 1 | 59.4 ms | 59.4 ms | 0 ns | 0 ns |" in output


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ((SLOW, "--without-rank", "17"), "there is no rank 17; the run has ranks 0-1"),
        ((SLOW, "--stage", "1=2"), "no pipeline stage 1: the run has no pipeline stages"),
        ((SLOW, "--stage", "2"), "is not of the form STAGE=FACTOR"),
        ((SLOW, "--ranks-alike", "--host", "0.5"), "give those of one kind"),
        ((SLOW, "--worker", "rank0", "--ranks-alike"), "only one rank was recorded"),
        ((SLOW, "--host", "0.5"), "this command needs one trace, but there are 2"),
        ((str(RANKS), "--ranks-alike"), "there are several runs (balanced, becomes_slow, one_slow"),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_the_reason(
    arguments: tuple[str, ...], reason: str
) -> None:
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert reason in refused.output


def test_a_rank_whose_file_is_damaged_is_reported_and_missing(tmp_path: Path) -> None:
    for path in Path(SLOW).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "rank2.1795247510731121390.pt.trace.json.gz").write_bytes(b"no trace")
    result = run(str(tmp_path), "--ranks-alike")
    assert result.exit_code == 0
    assert "rank2" in result.output
    assert "saves 23.1 ms" in result.output


def test_the_fix_of_a_straggler_is_the_run_without_it() -> None:
    assert run(SLOW, "--fix", "straggler-rank").output == run(SLOW, "--without-rank", "1").output


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("rank-compute-imbalance", "rank-compute-imbalance has no finding in this run"),
        ("missing-ranks", "missing-ranks has no finding in this run"),
        ("straggler-rank,item-sync", "give those of one kind"),
    ],
)
def test_a_fix_that_the_run_does_not_need_or_a_trace_is_refused(rules: str, message: str) -> None:
    refused = run(SLOW, "--fix", rules)
    assert refused.exit_code == 2
    assert message in " ".join(refused.output.split())


def test_a_disabled_rule_over_the_run_has_no_fix(tmp_path: Path) -> None:
    (tmp_path / "stepscope.toml").write_text('ignore = ["straggler-rank"]')
    config = str(tmp_path / "stepscope.toml")
    refused = run(SLOW, "--fix", "straggler-rank", "--config", config)
    assert (refused.exit_code, "straggler-rank has no finding" in refused.output) == (2, True)
