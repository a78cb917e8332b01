"""What a terminal is told while a command looks for traces."""

import io
import sys
from pathlib import Path

import pytest

from logs import write_run
from stepscope.cli import input_files

WIPED = "\x1b[2K"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_run(tmp_path / "first", "a", "b")
    write_run(tmp_path / "second", "a")
    (tmp_path / "second" / "notes.txt").write_text("no trace")
    return tmp_path


def said(log: Path, monkeypatch: pytest.MonkeyPatch, to: io.StringIO) -> str:
    monkeypatch.setattr(sys, "stderr", to)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    found, problems = input_files.files_at([str(log)])
    assert ([file.worker for file in found], problems) == (["a", "b", "a"], [])
    return to.getvalue()


def test_a_long_look_says_what_it_has_come_across_on_a_line_that_goes_again(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_files, "SOON_SECONDS", 0.0)
    told = said(log, monkeypatch, Terminal())
    assert "4 files checked, 3 traces found" in told
    assert told.rstrip().endswith(WIPED)


def test_a_short_look_says_nothing(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "SOON_SECONDS", 1e9)
    assert said(log, monkeypatch, Terminal()) == ""


def test_a_file_is_told_nothing(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_files, "SOON_SECONDS", 0.0)
    assert said(log, monkeypatch, io.StringIO()) == ""
