"""What a damaged file costs is said by every command that hands out figures of it."""

import gzip
from pathlib import Path

import pytest
from click.testing import CliRunner

from loading import ROOT
from stepscope.cli import cli

SAMPLES = ROOT / "sample_logs"
BREAKS_OFF = "The gzip stream breaks off or is damaged"


@pytest.fixture
def cut_off(tmp_path: Path) -> Path:
    [whole] = (SAMPLES / "synthetic_item_sync" / "fault").glob("*.gz")
    path = tmp_path / "log" / "worker.1.pt.trace.json.gz"
    path.parent.mkdir()
    content = whole.read_bytes()
    path.write_bytes(content[: len(content) * 9 // 10])
    return path


@pytest.mark.parametrize(
    "command",
    [
        ["export", "--table", "steps"],
        ["memory"],
        ["cut", "--start", "0", "--end", "1", "--output", "part.json"],
        ["scalars"],
    ],
)
def test_standard_error_tells_that_a_file_is_damaged(
    cut_off: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, [*command, str(cut_off)])
    assert result.exit_code == 0
    assert f"{cut_off}: {BREAKS_OFF}"[:60] in result.stderr
    assert BREAKS_OFF.lower() in result.stderr.lower()
    assert BREAKS_OFF.lower() not in result.stdout.lower()


def test_a_comparison_minds_damage(cut_off: Path) -> None:
    whole = str(SAMPLES / "synthetic_item_sync" / "fault")
    for paths, which in (([whole, str(cut_off)], "after"), ([str(cut_off), whole], "before")):
        shown = CliRunner().invoke(cli, ["compare", *paths, "--format", "markdown"]).stdout
        assert f"The traces {which} are damaged: the gzip stream breaks off" in shown


def test_of_a_whole_file_nothing_is_told(tmp_path: Path) -> None:
    [whole] = (SAMPLES / "synthetic_item_sync" / "fault").glob("*.gz")
    path = tmp_path / "worker.1.pt.trace.json"
    path.write_bytes(gzip.decompress(whole.read_bytes()))
    assert CliRunner().invoke(cli, ["export", "--table", "steps", str(path)]).stderr == ""
