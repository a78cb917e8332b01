"""The command line for newcomers: a folder without a command, misspelt names, completion, exits."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

import stepscope
from logs import write_run, write_trace
from stepscope.cli import cli, output
from stepscope.model.trace import Run
from stepscope.rules import all_rules


def run(*arguments: str | Path, **options: Any) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], **options)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def log(folder: Path) -> Path:
    write_run(folder / "log" / "first run", "a", "b")
    write_run(folder / "log" / "second")
    return Path("log")


# --- without a command -------------------------------------------------------------------------


def test_a_folder_without_traces_shows_how_to_record_its_script(folder: Path) -> None:
    assert "stepscope record --advise -- python train.py" in run().stdout
    (folder / "main.py").touch()
    result = run()
    assert (result.exit_code, result.stderr) == (0, "")
    assert "stepscope record --advise -- python main.py" in result.stdout


def test_a_folder_with_traces_shows_the_next_commands_for_them(log: Path) -> None:
    write_trace(log / "second" / "w.1800000000000.pt.trace.json")
    lines = run().stdout.splitlines()
    assert "4 traces in 2 runs, the newest first:" in lines
    commands = [line.strip() for line in lines if line.startswith("  stepscope")]
    assert commands == [
        "stepscope advise log/second",
        "stepscope compare 'log/first run' log/second",
        "stepscope serve log --open",
    ]


def test_traces_in_the_folder_itself_and_in_any_other_folder_are_found(folder: Path) -> None:
    write_trace(folder / "w.1.pt.trace.json")
    write_run(folder / "experiments" / "deep" / "run")
    text = run().stdout
    assert "2 traces in 2 runs" in text
    assert "experiments/deep/run" in text


def test_a_trace_of_another_name_is_named(folder: Path) -> None:
    (folder / "package.json").touch()
    assert "may be one" not in run().stdout
    write_trace(folder / "trace.json")
    commands = [line.strip() for line in run().stdout.splitlines() if "trace.json" in line]
    assert "stepscope advise trace.json" in commands
    assert "stepscope serve trace.json --open" in commands


def test_unrelated_runs_are_not_offered_for_comparison(folder: Path) -> None:
    write_run(folder / "tests" / "data")
    write_run(folder / "experiment")
    assert "stepscope compare" not in run().stdout
    write_run(folder / "version_0" / "experiment")
    assert "stepscope compare" in run().stdout


def test_the_search_for_traces_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["stepscope.cli.overview"], "SEARCH_SECONDS", 0)
    for number in range(30):
        (folder / "data" / f"{number:02}").mkdir(parents=True)
    assert "No traces were found in a short search of this folder." in run().stdout
    write_run(folder / "data" / "00", "a", "b")
    write_run(folder / "data" / "29")
    assert "2 traces in 1 run (there may be more: the search was cut short)" in run().stdout


def test_names_of_folders_move_no_cursor(folder: Path) -> None:
    write_run(folder / "log" / "\x1b[2J")
    assert "\x1b" not in run().stdout


# --- misspelt names ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["advize", "log"], "Did you mean advise?"),
        (["log"], "log is a path, not a command. Try: stepscope advise log"),
        (["quux"], "`stepscope --help` lists all commands"),
        (["advise", "log", "--slect", "all"], "--select"),
        (["advise", "lgo"], "Did you mean log?"),
        (["advise", "log/secnd/w.json"], f"Did you mean {Path('log', 'second')}?"),
        (["serve", "lgo"], "Did you mean log?"),
        (["advise", "log", "--run", "secon"], "Did you mean second?"),
        (["advise", "log", "--worker", "worker"], "Did you mean worker0?"),
        (["advise", "log", "--select", "item-synk"], "Did you mean item-sync"),
        (["advise", "log", "--set", "item-sync.least_idle=1"], "Did you mean least_idle_share"),
        (["explain", "Item-Sync"], "Did you mean item-sync"),
        (["whatif", "log/second", "--fix", "item-synk"], "Did you mean item-sync"),
        (["export", "log", "--table", "operatrs"], "Did you mean operators"),
        (["export", "--describe", "Kernel"], "Did you mean kernels"),
        (["query", "--describe", "kernel_runs"], "Did you mean kernel"),
        (["memory", "log/second", "--format", "csv", "--table", "x"], "memory"),
    ],
)
def test_the_nearest_name_is_suggested(log: Path, arguments: list[str], hint: str) -> None:
    del log
    result = run(*arguments)
    assert result.exit_code == 2
    assert hint in result.stderr
    assert "Traceback" not in result.stderr


def test_an_error_names_some_of_many_runs(folder: Path) -> None:
    for number in range(14):
        write_trace(folder / "log" / f"run{number:02}" / "w.1.pt.trace.json")
    message = run("advise", "log", "--run", "zzz").stderr
    assert message.endswith("run08, run09 and 4 more\n")


# --- completion --------------------------------------------------------------------------------


def completions(*arguments: str) -> list[str]:
    *before, last = arguments
    items = ShellComplete(cli, {}, "stepscope", "_C").get_completions(before, last)
    return [item.value if item.type == "plain" else item.type for item in items]


def test_shells_complete_names(log: Path) -> None:
    del log
    assert completions("explain", "") == sorted(rule.id for rule in all_rules())
    assert completions("advise", "log", "--select", "launch-bound,item-") == [
        "launch-bound,item-sync"
    ]
    assert completions("export", "log", "--table", "graph-op") == ["graph-operators"]
    assert completions("query", "--describe", "graph_op") == ["graph_operators"]
    assert completions("compare", "log", "--run", "") == ["first run", "second"]
    assert completions("advise", "log", "--worker", "") == ["a", "b", "worker0"]
    assert completions("advise", "lo") == ["file"]
    assert "advise" in completions("adv")


# --- encodings, pipes, exits -------------------------------------------------------------------


def written(text: str, encoding: str) -> str:
    content = io.BytesIO()
    stream = io.TextIOWrapper(content, encoding=encoding, errors="stepscope")
    stream.write(text)
    stream.flush()
    return content.getvalue().decode(encoding)


def test_an_encoding_without_a_character_gets_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="cp1252"))
    output.prepare_streams()
    assert sys.stdout.errors == "stepscope"
    assert written("── 3 µs ≤ 4 → ½ 中", "cp1252") == "-- 3 µs <= 4 -> ½ ?"
    assert written("5 – 6 µs…", "ascii") == "5 - 6 us..."


def test_documents_in_pipes_are_utf_8(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trace(log / "中" / "w.1.pt.trace.json")
    runner = CliRunner(charset="cp1252")
    result = runner.invoke(cli, ["advise", "log", "--format", "json"])
    assert result.exit_code == 0
    assert '"name":"中"'.encode() in result.stdout_bytes.replace(b": ", b":")
    monkeypatch.setattr("os.linesep", "\r\n")
    assert b"\r" not in runner.invoke(cli, ["rules", "--format", "json"]).stdout_bytes


@pytest.mark.parametrize("arguments", [["--help"], []])
def test_a_closed_pipe_ends_quietly(folder: Path, arguments: list[str]) -> None:
    del folder
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "stepscope", *arguments],
        check=False,
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


def test_ctrl_c_during_imports_ends_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope import __main__

    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("stepscope.cli.main", interrupted)
    with pytest.raises(SystemExit, match="130"):
        __main__.main()


def test_help_lists_the_exit_statuses() -> None:
    text = run("--help").stdout
    for status in (0, 1, 2, 3, 130, 141):
        assert f"    {status} " in text


def test_record_without_a_command_shows_one() -> None:
    result = run("record", "--")
    assert result.exit_code == 2
    assert "stepscope record -- python train.py" in result.stderr


def test_an_unknown_name_of_a_rule_leads_to_the_list(log: Path) -> None:
    assert "`stepscope rules` lists them" in run("advise", log, "--select", "qqqqqq").stderr


@pytest.mark.parametrize("name", sorted(cli.commands))
def test_comments_of_examples_fit_into_eighty_columns(name: str) -> None:
    lines = run(name, "--help", terminal_width=80).stdout.splitlines()
    assert [line for line in lines if " # " in line and len(line) > 80] == []


# --- the Python prompt -------------------------------------------------------------------------


def test_the_python_prompt_shows_runs_and_traces_in_a_line_and_results_as_text(log: Path) -> None:
    run = stepscope.load(log / "first run")
    assert repr(run) == "<Run first run: 2 traces>"
    assert repr(run.workers[0]).startswith("<Trace a, span 1: ")
    assert repr(run.workers[0]).endswith(" events, cuda>")
    assert repr(Run(name="\x1b[2J of others")) == "<Run \ufffd[2J of others: 0 traces>"
    advice = stepscope.advise(run)
    assert repr(advice) == str(advice)
