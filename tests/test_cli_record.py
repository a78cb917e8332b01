"""`stepscope record`: what a command is started with, and what is said when it has ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import stepscope
from stepscope.cli import cli
from stepscope.recording.launch import STARTUP, environment_of
from stepscope.recording.messages import steps_text
from stepscope.recording.record_report import summary
from stepscope.recording.record_request import (
    ACCOUNTS,
    VARIABLE,
    Account,
    RecordedTrace,
    RecordRequest,
    accounts_in,
    parse_request,
)
from waiting import LONG_SECONDS

ORDER = RecordRequest(
    log_dir="/logs/run", skip=None, wait=200, warmup=2, active=8, repeat=1, seconds=5.0
)


def record(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["record", *arguments])


def run(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "stepscope", "record", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_an_order_comes_back_from_the_environment_as_it_was() -> None:
    environment = environment_of({"PYTHONPATH": "/mine", "HOME": "/home/me"}, ORDER, "/told")
    assert parse_request(environment.pop(VARIABLE)) == ORDER
    assert environment == {
        "HOME": "/home/me",
        "PYTHONPATH": f"{STARTUP}{os.pathsep}/mine",
        ACCOUNTS: "/told",
    }


def test_accounts_come_back_by_rank_and_a_damaged_one_costs_itself(tmp_path: Path) -> None:
    written = RecordedTrace(path="/logs/run/a.json.gz", first_step=6, step_count=8, is_whole=True)
    of_rank_1 = Account(process=10, rank=1, written=[written])
    of_rank_0 = Account(process=20, rank=0, has_torch=True)
    of_launcher = Account(process=5)
    for account in (of_rank_1, of_launcher, of_rank_0):
        account.save(str(tmp_path))
    (tmp_path / "7.json").write_text('{"process": 7')
    (tmp_path / "8.json").write_text('{"process": 8, "of another version": 1}')
    assert accounts_in(str(tmp_path)) == [of_rank_0, of_rank_1, of_launcher]
    assert accounts_in(str(tmp_path / "gone")) == []
    Account(process=1).save(str(tmp_path / "gone"))  # the command has ended: nobody reads it


@pytest.mark.parametrize(
    ("written", "words"),
    [
        (RecordedTrace(path="", first_step=6, step_count=8, is_whole=True), "steps 6 to 13"),
        (RecordedTrace(path="", first_step=6, step_count=1, is_whole=False), "step 6"),
        (RecordedTrace(path="", first_step=6, step_count=0, is_whole=False), "part of step 6"),
        (
            RecordedTrace(path="", first_step=0, step_count=0, is_whole=True),
            "the whole run, without steps",
        ),
    ],
)
def test_what_a_file_holds_is_said_in_words(written: RecordedTrace, words: str) -> None:
    assert steps_text(written) == words


def accounts(*given: Account) -> Sequence[Account]:
    return given


FILE = RecordedTrace(path="/logs/run/a.json.gz", first_step=6, step_count=8, is_whole=True)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((), "the command started no Python that reads PYTHONPATH"),
        ((Account(process=1),), "the script did not import torch"),
        (
            (Account(process=1, has_torch=True),),
            "no optimizer stepped and no DataLoader was read in a main thread",
        ),
        (
            (Account(process=1, has_torch=True), Account(process=2, has_torch=True, step_count=7)),
            "the script ended after 7 steps, before recording began",
        ),
        (
            (
                Account(process=1, has_torch=True),
                Account(process=2, has_torch=True, steps_from="batch"),
            ),
            "the script ended in its first step after the start (a step is one batch)",
        ),
        ((Account(process=1, has_torch=True, notes=["it broke"]),), "see the reason above"),
    ],
)
def test_where_nothing_was_recorded_the_reason_is_said(
    given: tuple[Account, ...], words: str
) -> None:
    first, *_ = summary(accounts(*given), ORDER)
    assert first.startswith("nothing was recorded")
    assert words in first


def test_where_something_was_recorded_the_next_command_is_said() -> None:
    lines = summary(accounts(Account(process=1, written=[FILE, FILE]), Account(process=2)), ORDER)
    assert lines == (
        "2 traces of 1 process in /logs/run",
        "to see what to change: stepscope advise /logs/run",
    )


def test_before_the_advice_no_command_for_it_is_said() -> None:
    recorded = accounts(Account(process=1, written=[FILE]))
    lines = summary(recorded, ORDER, is_advised=True)
    assert lines == ("1 trace of 1 process in /logs/run",)


def test_the_help_names_what_the_command_line_takes() -> None:
    result = record("--help")
    assert result.exit_code == 0
    assert "  stepscope record -- python train.py" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_options_behind_the_command_are_the_commands(tmp_path: Path) -> None:
    script = tmp_path / "say.py"
    script.write_text("import sys\nprint(sys.argv[1:])\nsys.exit(3)\n")
    done = run(tmp_path, "--log-dir", "log", "say.py", "--stop", "--", "--help")
    assert (done.returncode, done.stdout) == (3, "['--stop', '--', '--help']\n")
    assert done.stderr == "stepscope: nothing was recorded: the script did not import torch\n"
    assert not (tmp_path / "log").exists()


def test_recordings_go_to_a_folder_of_this_machine() -> None:
    result = record("--log-dir", "s3://bucket/log", "--", "python", "train.py")
    assert result.exit_code == 2
    assert "pass a local folder, and copy it afterwards" in result.output


def test_a_command_that_is_not_there_has_the_shells_status(tmp_path: Path) -> None:
    assert record().exit_code == 2
    missing = run(tmp_path, "--", "no-such-program")
    assert (missing.returncode, missing.stderr.count("\n")) == (127, 1)
    assert "no-such-program" in missing.stderr
    (tmp_path / "plain").write_text("")
    assert run(tmp_path, "--", "./plain").returncode == 126


def test_a_python_that_reads_no_environment_is_said_to_be_one(tmp_path: Path) -> None:
    done = run(tmp_path, "--", sys.executable, "-I", "-c", "print(1)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert "python -I, -E and -S" in done.stderr


def test_a_sitecustomize_of_the_user_runs_and_nothing_of_ours_stands_on_the_path(
    tmp_path: Path,
) -> None:
    (tmp_path / "sitecustomize.py").write_text("import builtins\nbuiltins.mine = __file__\n")
    (tmp_path / "show.py").write_text(
        "import sys, sitecustomize\nprint(mine, sitecustomize.__file__, sys.path, sep='\\n')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "show.py"]
    shown = [
        subprocess.run(
            each, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
        ).stdout
        for each in (command, [sys.executable, "-m", "stepscope", "record", "--", *command])
    ]
    assert shown[0] == shown[1]
    assert str(tmp_path / "sitecustomize.py") in shown[0]


def test_a_broken_sitecustomize_of_the_user_breaks_as_it_does_alone(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import no_such_module\n")
    environment = {**os.environ, "PYTHONPATH": f"{STARTUP}{os.pathsep}{tmp_path}"}
    done = subprocess.run(
        [sys.executable, "-c", "print(1)"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "1\n"
    assert "No module named 'no_such_module'" in done.stderr


def test_a_torch_that_cannot_be_imported_fails_as_it_does_alone(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcuda')\n")
    (tmp_path / "train.py").write_text(
        "for _ in range(2):\n"
        "    try:\n        import torch\n"
        "    except ImportError as error:\n        print(error)\n"
    )
    done = run(tmp_path, "--", sys.executable, "train.py")
    assert (done.returncode, done.stdout) == (0, "libcuda\nlibcuda\n")


def test_what_is_no_torch_of_ours_costs_the_recording_and_not_the_script(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "train.py").write_text("import torch\nprint(torch.__name__)\n")
    done = run(tmp_path, "--", sys.executable, "train.py")
    assert (done.returncode, done.stdout) == (0, "torch\n")
    assert done.stderr.startswith("stepscope: cannot record (")
    assert done.stderr.endswith("stepscope: nothing was recorded; see the reason above\n")


@pytest.mark.parametrize(
    "odd",
    [
        "shutil.rmtree(os.environ['STEPSCOPE_RECORD_ACCOUNTS'])",
        "del os.environ['STEPSCOPE_RECORD_ACCOUNTS']",
        "sys.stderr = None",
        "sys.meta_path.insert(1, Fixed)",
    ],
)
def test_no_import_of_torch_fails_for_us(tmp_path: Path, odd: str) -> None:
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "train.py").write_text(
        "import importlib.machinery, os, shutil, sys\n"
        "class Loader:\n"
        "    __slots__ = ()\n"
        "    def create_module(self, spec):\n        return None\n"
        "    def exec_module(self, module):\n        pass\n"
        "class Fixed:\n"
        "    @staticmethod\n"
        "    def find_spec(name, path=None, target=None):\n"
        "        own = name == 'torch'\n"
        "        return importlib.machinery.ModuleSpec(name, Loader()) if own else None\n"
        f"{odd}\nimport torch\nprint(torch.__name__)\n"
    )
    done = run(tmp_path, "--", sys.executable, "train.py")
    assert (done.returncode, done.stdout) == (0, "torch\n"), done.stderr


def test_advice_that_fails_leaves_the_scripts_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        message = "no such trace"
        raise ValueError(message)

    written = RecordedTrace(path="a.json.gz", first_step=6, step_count=8, is_whole=True)
    monkeypatch.setattr("stepscope.recording.launch.run", lambda *_: 5)
    monkeypatch.setattr(
        "stepscope.recording.record_request.accounts_in",
        lambda _: [Account(process=1, written=[written])],
    )
    monkeypatch.setattr(sys.modules["stepscope.cli.advise"], "files_at", fail)
    done = record("--advise", "--log-dir", str(tmp_path), "--", "python", "train.py")
    assert done.exit_code == 5
    assert done.stderr.endswith("stepscope: no advice (ValueError: no such trace)\n")


@pytest.mark.parametrize("own", [None, "older"])
def test_an_environment_without_our_recorder_is_given_it(tmp_path: Path, own: str | None) -> None:
    if own:
        (tmp_path / "stepscope").mkdir()
        (tmp_path / "stepscope" / "__init__.py").write_text(f"__version__ = {own!r}\n")
    (tmp_path / "show.py").write_text(
        "import importlib, importlib.util, runpy\n"
        f"startup = runpy.run_path({str(STARTUP / 'sitecustomize.py')!r})\n"
        "asked = []\n"
        "importlib.import_module = asked.append\n"
        "startup['recorder']()\n"
        "import stepscope\n"
        "order = importlib.util.find_spec('stepscope.recording.record_request')\n"
        "print(asked, stepscope.__version__, order.origin)\n"
    )
    done = subprocess.run(
        [sys.executable, "-S", "show.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    version = own or stepscope.__version__
    order = STARTUP.parent / "record_request.py"
    assert done.stdout == f"['stepscope.recording.script_hooks'] {version} {order}\n", done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_signals_are_passed_on_and_the_status_is_the_scripts(
    tmp_path: Path, number: signal.Signals
) -> None:
    (tmp_path / "wait.py").write_text(
        "import signal, sys, time\n"
        "def end(number, _):\n    print(signal.Signals(number).name)\n    sys.exit(7)\n"
        "for each in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1):\n"
        "    signal.signal(each, end)\n"
        "print('ready', flush=True)\ntime.sleep(1000)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "stepscope", "record", "--", sys.executable, "wait.py"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    assert process.stdout.read() == f"{number.name}\n"
    assert process.wait(LONG_SECONDS) == 7
    process.stdout.close()


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e300"])
def test_a_recording_time_is_one_of_timers(seconds: str) -> None:
    result = CliRunner().invoke(cli, ["record", "--seconds", seconds, "--", "true"])
    assert result.exit_code == 2
    assert "--seconds" in result.stderr
