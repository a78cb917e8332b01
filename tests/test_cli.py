"""The command line: what it prints, where, and with which exit status."""

import contextlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

import stepscope
from logs import EVENT_COUNT, ROWS, write_run, write_trace
from programs import running
from stepscope import ingest
from stepscope.advice.trace_report import worker_report
from stepscope.api.messages import Runs
from stepscope.base import errors
from stepscope.base.report import Report, WorkerReport, json_schema
from stepscope.cli import cli
from stepscope.ingest import EventColumns
from stepscope.ingest.reader import Progress
from stepscope.model.trace import Trace
from stepscope.rules import all_rules
from waiting import LONG_SECONDS, until


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_run(tmp_path / "log" / "first", "a", "b")
    write_run(tmp_path / "log" / "second")
    return tmp_path / "log"


def report_of(result: Result) -> Report:
    return msgspec.json.decode(result.stdout, type=Report)


def test_advice_covers_every_run_below_a_path(log: Path) -> None:
    result = run("advise", log, "--format", "json")
    assert result.exit_code == 0
    assert result.stderr == ""
    report = report_of(result)
    names = [(run.name, [worker.name for worker in run.workers]) for run in report.runs]
    assert names == [("first", ["a", "b"]), ("second", ["worker0"])]
    assert report.version == stepscope.__version__


def test_the_published_schema_names_what_json_holds(log: Path) -> None:
    published = json.loads(run("schema").stdout)
    assert published == json.loads(json.dumps(json_schema()))
    printed = json.loads(run("advise", log, "--format", "json").stdout)
    assert set(printed) == set(published["$defs"]["Report"]["properties"])
    for part, name in (
        (printed["runs"][0], "RunReport"),
        (printed["runs"][0]["workers"][0], "WorkerReport"),
    ):
        assert set(part) == set(published["$defs"][name]["properties"])


def test_a_path_may_be_a_file_of_any_name(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "exported.json")
    [found] = report_of(run("advise", path, "--format", "json")).runs
    assert [worker.name for worker in found.workers] == ["exported"]


def test_overlapping_paths_count_once(log: Path) -> None:
    report = report_of(run("advise", log, log / "first", "--format", "json"))
    assert [len(run.workers) for run in report.runs] == [2, 1]


def test_runs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    before, after = (write_run(tmp_path / folder / "run") for folder in ("before", "after"))
    report = report_of(run("advise", before, after, "--format", "json"))
    assert [run.name for run in report.runs] == [str(before), str(after)]


def test_two_files_of_one_worker_named_singly_keep_their_own_advice(tmp_path: Path) -> None:
    later = write_trace(tmp_path / "run" / "w.20.pt.trace.json")
    first = write_trace(tmp_path / "run" / "w.3.pt.trace.json", ROWS[:4])
    [found] = report_of(run("advise", later, first, "--format", "json")).runs
    assert [(each.span, each.step.count) for each in found.workers] == [("1", 1), ("2", 4)]
    assert len({each.trace for each in found.workers}) == 2
    for worker in found.workers:
        own = [each.rule for each in found.outcomes if each.trace == worker.trace]
        assert own.count("item-sync") == 1
    assert report_of(run("advise", later.parent, first, "--format", "json")).runs == (found,)


def test_a_recording_that_cannot_be_analysed_costs_only_itself(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(trace: Trace, *others: object) -> WorkerReport:
        if trace.worker != "b":
            return worker_report(trace, *others)  # type: ignore[arg-type]
        msg = "a bug"
        raise ZeroDivisionError(msg)

    monkeypatch.setattr("stepscope.advice.trace_advice.worker_report", fail)
    result = run("advise", log, "--format", "json")
    assert result.exit_code == 0
    report = report_of(result)
    assert [[worker.name for worker in each.workers] for each in report.runs] == [
        ["a"],
        ["worker0"],
    ]
    [problem] = report.problems
    assert "b.1700000000000" in problem.path
    assert problem.message.startswith("stepscope failed on this file (ZeroDivisionError: a bug at ")
    assert "report it" in problem.remedy
    assert result.stderr.count("\n") == 1
    only = run("advise", log, "--worker", "b", "--format", "json")
    assert only.exit_code == 2
    assert report_of(only).runs == ()
    traced = run("--traceback", "advise", log)
    assert "Traceback" in traced.stderr
    with pytest.warns(UserWarning, match="a bug"):
        assert len(stepscope.advise(stepscope.load(log / "first")).report.workers) == 1


def test_a_failure_while_reading_costs_only_its_file(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = ingest.read

    def fail(path: str, progress: Progress | None = None) -> EventColumns:
        if Path(path).name.startswith("a."):
            raise MemoryError
        return real(path, progress)

    monkeypatch.setattr("stepscope.ingest.read", fail)
    report = report_of(run("advise", log, "--format", "json"))
    assert [len(each.workers) for each in report.runs] == [1, 1]
    [problem] = report.problems
    assert problem.message.startswith("This needs more memory than the ")
    assert "--memory" in problem.remedy


def test_a_path_that_cannot_be_looked_at_costs_only_itself(log: Path) -> None:
    os.mkfifo(log / "first" / "pipe.1.pt.trace.json")
    loop = log / "first" / "loop.1.pt.trace.json"
    loop.symlink_to(loop)
    result = run("advise", log, "n" * 300, "--format", "json")
    assert result.exit_code == 0
    report = report_of(result)
    assert [len(each.workers) for each in report.runs] == [2, 1]
    assert {problem.message for problem in report.problems} == {
        "This cannot be opened: File name too long.",
        "This cannot be read: it is a pipe, a socket or a device, not a file.",
        "This cannot be read: Too many levels of symbolic links.",
    }
    assert run("serve", "n" * 300).stderr == (
        f"stepscope: {'n' * 300}: This cannot be opened: File name too long. "
        "Pass the folder that contains the traces, or a trace (.json, .json.gz).\n"
    )


def test_only_the_wanted_worker_is_read(log: Path) -> None:
    report = report_of(run("advise", log, "--worker", "b", "--format", "json"))
    assert [[worker.name for worker in run.workers] for run in report.runs] == [["b"]]
    result = run("advise", log, "--worker", "c")
    assert result.exit_code == 2
    assert result.stderr == "stepscope: there is no worker 'c'. There is a, b, worker0\n"


def test_less_serious_findings_can_be_left_out(log: Path) -> None:
    write_trace(log / "short" / "w.1.pt.trace.json", ROWS[:4])  # one step: weak-step-coverage
    everything = report_of(run("advise", log, "--format", "json"))
    serious = report_of(run("advise", log, "--format", "json", "--min-severity", "critical"))
    found = [outcome for run in everything.runs for outcome in run.outcomes]
    kept = [outcome for run in serious.runs for outcome in run.outcomes]
    assert {outcome.severity for outcome in found} > {outcome.severity for outcome in kept}
    assert kept == [each for each in found if each.severity in {None, "critical"}]


def test_a_bad_file_is_told_and_the_others_go_on(log: Path) -> None:
    bad = log / "first" / "c.1.pt.trace.json"
    bad.write_text("")
    result = run("advise", log, "--format", "json")
    assert result.exit_code == 0
    assert result.stderr.startswith(f"stepscope: {bad}: The file is empty. ")
    assert result.stderr.count("\n") == 1
    report = report_of(result)
    assert [problem.path for problem in report.problems] == [str(bad)]
    assert len(report.runs[0].workers) == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.json", None, "There is no such file or folder."),
        ("empty.json", b"", "The file is empty."),
        ("text.json", b"hello", "This is text that is not JSON."),
        ("other.json", b'{"a": 1}', "This is not a trace: it is JSON without traceEvents."),
        ("noise.json.gz", b"\x1f\x8b\x08\x00garbage", ""),
        ("none.json", b'{"traceEvents": []}', "This is a trace without events."),
    ],
)
def test_nothing_readable_is_one_line_and_status_2(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    result = run("advise", path)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"stepscope: {path}: {said}")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr


def test_a_truncated_file_gives_what_it_holds(tmp_path: Path) -> None:
    whole = write_trace(tmp_path / "w.1.pt.trace.json").read_bytes()
    (tmp_path / "w.1.pt.trace.json").write_bytes(whole[: len(whole) * 3 // 4])
    result = run("advise", tmp_path)
    assert result.exit_code == 0
    assert "the file ends in the middle" in " ".join(result.stdout.split())


def test_a_folder_without_a_trace_says_how_to_record_one(tmp_path: Path) -> None:
    result = run("advise", tmp_path)
    assert result.exit_code == 2
    assert "pt.trace.json" in result.stderr
    assert "tensorboard_trace_handler" in result.stderr


def test_json_names_the_problems_even_where_nothing_was_read(tmp_path: Path) -> None:
    result = run("advise", tmp_path / "absent", "--format", "json")
    assert result.exit_code == 2
    assert [problem.path for problem in report_of(result).problems] == [str(tmp_path / "absent")]


def test_output_goes_into_a_file_without_colour(log: Path, tmp_path: Path) -> None:
    target = tmp_path / "advice.md"
    result = run("advise", log, "--format", "markdown", "--output", target)
    assert (result.exit_code, result.stdout) == (0, "")
    assert target.read_text(encoding="utf-8").startswith("## first\n")
    result = run("advise", log, "--output", tmp_path / "absent" / "advice.md")
    assert result.exit_code == 2
    assert result.stderr == (
        f"stepscope: {tmp_path / 'absent' / 'advice.md'}: No such file or directory\n"
    )


def test_an_unexpected_error_is_one_line(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        msg = "a bug"
        raise ZeroDivisionError(msg)

    monkeypatch.setattr("stepscope.storage.discover.at", fail)
    result = run("advise", log)
    assert result.exit_code == 3
    assert re.fullmatch(r"stepscope: failed \(\w+: .*\n", result.stderr)
    assert "--traceback" in result.stderr


def test_text_is_for_a_terminal_of_80_columns_and_plain_when_piped(log: Path) -> None:
    text = run("advise", log).stdout
    assert "\x1b" not in text
    words = [line for line in text.splitlines() if "torch.profiler." not in line]  # code is long
    assert max(map(len, words)) <= 80


def test_every_rule_is_listed() -> None:
    *lines, summary = run("rules").stdout.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith(" ")]
    assert sorted(listed) == sorted(rule.id for rule in all_rules())
    headings = [line.removesuffix(":") for line in lines if line and not line.startswith(" ")]
    assert headings == sorted({rule.category for rule in all_rules()})
    on = sum("(preview, off)" not in line for line in lines if line.startswith(" "))
    assert summary.startswith(f"{on} of {len(listed)} are on.")


def test_the_api_has_a_schema_too() -> None:
    document = json.loads(run("schema", "--api").stdout)
    assert "Overview" in document["components"]["schemas"]
    assert "/traces/{trace}/overview" in document["paths"]


@pytest.mark.parametrize("command", [[], ["advise"], ["serve"], ["schema"], ["rules"]])
def test_help_shows_an_example(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert f"  stepscope {' '.join(command)}".rstrip() in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_usage_errors_have_status_2() -> None:
    for arguments in (["advise"], ["advise", "x", "--format", "xml"], ["nope"]):
        assert run(*arguments).exit_code == 2


def modules_after(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


HEAVY = {
    "pandas",
    "numpy",
    "flask",
    "werkzeug",
    "waitress",
    "rich",
    "msgspec",
    "torch",
    "tensorboard",
}


def test_help_waits_for_nothing_heavy() -> None:
    assert not modules_after("import stepscope.cli") & HEAVY


def test_importing_the_library_is_cheap() -> None:
    assert not modules_after("import stepscope") & (HEAVY | {"click"})


NOT_FOR_ADVICE = {"torch", "tensorboard", "pyarrow", "flask", "pygments"}


def test_advice_waits_for_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "trace.json")
    arguments = ["advise", str(trace), "--output", str(tmp_path / "advice.txt")]
    advise = f"from stepscope.cli import cli; cli({arguments}, standalone_mode=False)"
    assert not modules_after(advise) & NOT_FOR_ADVICE
    pytest.importorskip("pyarrow")
    written_later = f"{advise}; import pyarrow; print(pyarrow.__name__)"
    assert "pyarrow" in modules_after(written_later)


def test_it_runs_as_a_module() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "stepscope", "--version"],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout == f"stepscope, version {stepscope.__version__}\n"


# --- serve -------------------------------------------------------------------------------------


# Who runs the tests in the background has Ctrl-C ignored, and children inherit that.
WITH_CTRL_C = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from stepscope.cli import main; main()"
)


@contextmanager
def served(*arguments: str | Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-c", WITH_CTRL_C, "serve", *map(str, arguments)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with running(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            found = re.search(r"http://\S+/", line)
            assert found, (line, process.stderr and process.stderr.read())
            yield process, found[0]
        finally:
            process.terminate()


def test_serve_answers_on_a_free_port_and_to_its_own_names_only(log: Path) -> None:
    with served(log, "--port", "0") as (_, address):
        assert address.startswith("http://127.0.0.1:")
        with urllib.request.urlopen(f"{address}api/runs", timeout=LONG_SECONDS) as response:  # noqa: S310
            runs = msgspec.json.decode(response.read(), type=Runs)
        assert runs.logdir == str(log)
        request = urllib.request.Request(f"{address}api/runs", headers={"Host": "evil.example"})  # noqa: S310
        with pytest.raises(urllib.error.HTTPError, match="403") as refused:
            urllib.request.urlopen(request, timeout=LONG_SECONDS)  # noqa: S310
        assert json.load(refused.value)["code"] == "host-not-allowed"
        refused.value.close()


def test_serve_reads_a_trace_of_any_name(tmp_path: Path) -> None:
    path = write_trace(tmp_path / "exported.json")
    with (
        served(path, "--port", "0") as (_, address),
        urllib.request.urlopen(f"{address}api/runs", timeout=LONG_SECONDS) as response,  # noqa: S310
    ):
        runs = msgspec.json.decode(response.read(), type=Runs)
    [run_state] = runs.runs
    assert (run_state.name, run_state.workers[0].name) == (tmp_path.name, "exported")


def test_serve_ends_quietly_with_ctrl_c(log: Path) -> None:
    with served(log, "--port", "0") as (process, _):
        process.send_signal(2)
        _, stderr = process.communicate(timeout=LONG_SECONDS)
    assert "Traceback" not in stderr


def test_a_port_in_use_is_one_clear_line(log: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", log, "--port", str(port))
    assert result.exit_code == 2
    assert "it is in use" in result.stderr
    assert "--port" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "said"),
    [("absent", "There is no such folder."), ("file", "This is a file, not a folder.")],
)
def test_serve_wants_a_folder_or_a_trace(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "file").touch()
    result = run("serve", tmp_path / name)
    assert result.exit_code == 2
    assert said in result.stderr


# --- large logs --------------------------------------------------------------------------------


def write_large(folder: Path, count: int) -> None:
    """Write files of 135 MB: together too much to be read in one process."""
    first = write_trace(folder / "0.1.pt.trace.json")
    head, events, tail = first.read_bytes().partition(b'{"ph"')
    filler = b'"note": "' + b"x" * 1_000_000 + b'", '
    first.write_bytes(head[:-17] + filler * 135 + head[-17:] + events + tail)
    for number in range(1, count):
        os.link(first, folder / f"{number}.1.pt.trace.json")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    write_large(folder, 2)
    (folder / "9.1.pt.trace.json").write_text("")
    return folder


def test_what_is_said_does_not_depend_on_the_number_of_jobs(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (log / "second" / "z.1.pt.trace.json").write_text("")
    for command in ("advise", "health"):
        in_one_process = run(command, log, "--format", "json")
        with monkeypatch.context() as patched:
            patched.setattr("stepscope.cli.file_reading.WORTH_PROCESSES_BYTES", -1)
            in_several = [
                run(command, log, "--format", "json", "--jobs", jobs) for jobs in ("1", "3")
            ]
        for result in in_several:
            assert result.stdout == in_one_process.stdout
            assert result.stderr == in_one_process.stderr != ""


@pytest.mark.slow
def test_a_file_that_takes_too_much_memory_is_told_so(tmp_path: Path) -> None:
    texts = ({"cpu_op": [number, "x" * 1_000_000]} for number in range(400))
    rows = (["cpu_op", f"op{place}", place, 1, text] for place, text in enumerate(texts))
    path = write_trace(tmp_path / "w.1.pt.trace.json", tuple(rows))
    os.link(path, tmp_path / "v.1.pt.trace.json")
    for given, count in ((path, 1), (tmp_path, 2)):
        result = run("advise", given, "--memory", "256M", "--jobs", "2")
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == count
        for line in result.stderr.splitlines():
            assert re.search(r": This needs more memory than the limit of \d+ MiB", line)
            assert line.endswith("(--memory 1G, or STEPSCOPE_MEMORY=1G), or record fewer steps.")


def test_a_budget_is_a_size_that_suffices_for_something(log: Path) -> None:
    for size, said in (
        ("1K", "less than 256M is too little"),
        ("much", "it must be a size, such as 8G or 512M"),
    ):
        result = run("advise", log, "--memory", size)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr == f"stepscope: --memory is {size!r}: {said}\n"


def children_of(process_id: int) -> list[int]:
    path = Path(f"/proc/{process_id}/task")
    return [
        int(child) for task in path.iterdir() for child in (task / "children").read_text().split()
    ]


def opens(process_id: int, folder: Path) -> bool:
    """Whether a process has a file of a folder open."""
    with contextlib.suppress(OSError):  # it ends, or closes some file, in the meantime
        opened = [each.readlink() for each in Path(f"/proc/{process_id}/fd").iterdir()]
        return any(each.is_relative_to(folder) for each in opened)
    return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes in /proc")
def test_ctrl_c_ends_everything_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    write_large(folder, 100)  # minutes of reading
    command = [sys.executable, "-c", WITH_CTRL_C, "advise", str(folder)]
    environment = {**os.environ, "STEPSCOPE_PURE_PYTHON": "1"}
    with running(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        until(lambda: any(opens(child, folder) for child in children_of(process.pid)))
        children = children_of(process.pid)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=LONG_SECONDS)
    assert (process.returncode, stdout, stderr) == (130, "", "")
    until(lambda: not any(Path(f"/proc/{child}").exists() for child in children))


@pytest.mark.skipif(os.name == "nt", reason="no such shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_are_closed_from_the_start_lead_to_nowhere(log: Path, closed: str) -> None:
    command = f"{shlex.quote(sys.executable)} -m stepscope advise {shlex.quote(str(log))} {closed}"
    done = subprocess.run(["sh", "-c", command], check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_is_told_how_far_it_is(log: Path) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "stepscope", "advise", str(log), "--format", "json"]
    with running(
        command,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
        env={**os.environ, "TERM": "xterm"},
    ) as process:
        stdout, _ = process.communicate(timeout=LONG_SECONDS)
    os.close(theirs)
    told = b""
    with contextlib.suppress(OSError):  # Linux says so at the end
        while part := os.read(ours, 65536):
            told += part
    os.close(ours)
    assert b"all 3 files" in told
    assert len(msgspec.json.decode(stdout, type=Report).runs) == 2


def test_what_was_kept_on_disk_gives_the_same_advice(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", str(tmp_path / "kept"))
    monkeypatch.setenv("STEPSCOPE_CACHE_FROM", "0")
    plain = run("advise", log, "--no-cache", "--format", "json")
    assert not (tmp_path / "kept").exists()
    for _ in range(2):
        assert run("advise", log, "--format", "json").stdout == plain.stdout
    assert len(list((tmp_path / "kept").iterdir())) == 3


# --- the library -------------------------------------------------------------------------------


def test_load_gives_the_one_run_with_its_frames(log: Path) -> None:
    loaded = stepscope.load(log / "first")
    assert loaded.name == "first"
    assert [trace.worker for trace in loaded.workers] == ["a", "b"]
    steps = [row for row in ROWS if row[1].startswith("ProfilerStep")]
    assert len(loaded.workers[0].steps) == len(steps)
    assert list(loaded.workers[0].operators["name"].unique()) == ["aten::mm"]


def test_load_does_not_choose_between_runs(log: Path) -> None:
    with pytest.raises(errors.UsageError, match=r"holds 2 runs \(first, second\)"):
        stepscope.load(log)
    assert [run.name for run in stepscope.load_all(log)] == ["first", "second"]


def test_load_warns_of_files_it_could_not_read(log: Path) -> None:
    (log / "second" / "z.1.pt.trace.json").write_text("")
    with pytest.warns(UserWarning, match="The file is empty"):
        assert len(stepscope.load(log / "second").workers) == 1


def test_load_refuses_where_nothing_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(errors.UnreadableError, match="no such file"):
        stepscope.load(tmp_path / "absent")
    (tmp_path / "z.1.pt.trace.json").write_text("")
    with pytest.raises(errors.UnreadableError, match="empty"):
        stepscope.load(str(tmp_path))


def test_advice_prints_as_the_command_line_does(log: Path) -> None:
    loaded = stepscope.load(log / "first")
    advice = stepscope.advise(loaded)
    assert str(advice) == run("advise", log / "first").stdout
    assert advice.report.name == "first"
    assert advice._repr_markdown_() == run("advise", log / "first", "--format", "markdown").stdout


def test_several_files_are_loaded_at_once(log: Path, large: Path) -> None:
    (here,) = stepscope.load_all(log / "first")
    (there,) = stepscope.load_all(log / "first", jobs=2)
    assert [trace.worker for trace in there.workers] == [trace.worker for trace in here.workers]
    with pytest.warns(UserWarning, match="The file is empty"):
        run_of_large = stepscope.load(large, jobs=2)
    assert [len(trace) for trace in run_of_large.workers] == [EVENT_COUNT] * 2
    assert stepscope.advise(there).report == stepscope.advise(here).report
