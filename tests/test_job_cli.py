"""The command line's words for the size of a job and the price of its devices."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from logs import ROWS, write_trace
from stepscope.base.report import JobReport, Report
from stepscope.cli import cli

TRAINING = (*ROWS, ["cpu_op", "autograd::engine::evaluate_function: MmBackward0", 500, 100])


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("log")
    write_trace(folder / "run" / "w0.1.pt.trace.json", TRAINING)
    return folder


def advise(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["advise", *map(str, arguments), "--no-plugins"])


def job_of(result: Result) -> JobReport:
    [run] = msgspec.json.decode(result.stdout, type=Report).runs
    assert run.job is not None
    return run.job


def test_devices_and_their_price_are_options(log: Path) -> None:
    told = job_of(advise(log, "--format", "json", "--isolated", "--gpus", "64", "--price", "2.5"))
    assert (told.gpu_count, told.gpu_hour_price, told.is_asked, told.withheld) == (
        64,
        2.5,
        True,
        "",
    )
    assert told.total is not None
    assert told.total.high_gpu_hours == pytest.approx(told.total.high_share * 64 * 24)
    assert told.total.high_money == pytest.approx((told.total.high_gpu_hours or 0) * 2.5)


def test_an_option_goes_before_the_file(log: Path, tmp_path: Path) -> None:
    config = tmp_path / "stepscope.toml"
    config.write_text("gpus = 8\nprice = 4\n")
    told = job_of(advise(log, "--format", "json", "--config", config, "--price", "2"))
    assert (told.gpu_count, told.gpu_source, told.gpu_hour_price) == (8, "set by --gpus", 2.0)


def test_what_was_recorded_is_told_unasked_and_not_shown(log: Path) -> None:
    told = job_of(advise(log, "--format", "json", "--isolated"))
    assert (told.gpu_count, told.gpu_source, told.is_asked) == (1, "as recorded", False)
    assert "GPU-hours" not in advise(log, "--isolated").stdout
    assert "on 1 GPU (as recorded)" in " ".join(
        advise(log, "--isolated", "--price", "1").stdout.split()
    )


@pytest.mark.parametrize(
    "wrong", [("--gpus", "0"), ("--price", "-1"), ("--price", "inf"), ("--price", "nan")]
)
def test_what_is_no_number_of_devices_or_no_price_is_refused(
    log: Path, wrong: tuple[str, str]
) -> None:
    result = advise(log, *wrong)
    assert result.exit_code == 2
    assert f"Invalid value for '{wrong[0]}'" in result.stderr
