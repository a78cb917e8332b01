"""`stepscope health`: what it prints of sound, damaged and unreadable files, and how it ends."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result

from logs import ROWS, write_run, write_trace
from stepscope.base.report import FileHealth, HealthReport, Report
from stepscope.cli import cli
from stepscope.rules import all_rules

LOST = tuple(row for place, row in enumerate(ROWS) if place not in {7, 11})
"""Two launches in the middle left no kernel."""


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def report_of(*arguments: str | Path) -> HealthReport:
    result = run("health", *arguments, "--format", "json")
    return msgspec.json.decode(result.stdout, type=HealthReport)


def effects(file: FileHealth) -> dict[str, str]:
    return {item.kind: item.effect for item in file.health if item.effect != "none"}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_run(tmp_path / "log" / "sound")
    write_trace(tmp_path / "log" / "lost" / "w.1.pt.trace.json", LOST)
    return tmp_path / "log"


def test_each_file_below_a_path_is_told_of(log: Path) -> None:
    files = report_of(log).files
    assert [(Path(file.path).name, file.run) for file in files] == [
        ("w.1.pt.trace.json", "lost"),
        ("worker0.1700000000000.pt.trace.json.gz", "sound"),
    ]
    lost, sound = files
    assert effects(sound) == {}
    assert effects(lost) == {"device-records-lost": "withheld"}


def test_it_says_what_was_read(log: Path) -> None:
    path = log / "sound" / "worker0.1700000000000.pt.trace.json.gz"
    [file] = report_of(path).files
    assert file.file_bytes == path.stat().st_size
    assert file.inflated_bytes == len(gzip.decompress(path.read_bytes()))
    assert (file.events, file.dialect, file.producer) == (16, "cuda", "torch.profiler")
    assert file.reader in {"compiled scanner", "Python reader"}
    said = " ".join(run("health", path).stdout.split())
    assert "16 events · cuda · written by torch.profiler · read by the" in said
    assert "Its figures are reliable." in said


def test_an_example_is_found_at_its_byte(log: Path) -> None:
    path = log / "lost" / "w.1.pt.trace.json"
    [file] = report_of(path).files
    [item] = [each for each in file.health if each.effect != "none"]
    event, _ = json.JSONDecoder().raw_decode(path.read_text()[item.examples[0].offset_bytes :])
    assert (event["name"], event["args"]["correlation"]) == ("cudaLaunchKernel", 2)
    assert f"At byte {item.examples[0].offset_bytes:,}: cudaLaunchKernel" in run(
        "health", path
    ).stdout.replace("\n", " ")


def test_advice_has_the_same_in_json(log: Path) -> None:
    files = report_of(log).files
    advice = msgspec.json.decode(run("advise", log, "--format", "json").stdout, type=Report)
    workers = [worker for each in advice.runs for worker in each.workers]
    shared = set(FileHealth.__struct_fields__) & set(type(workers[0]).__struct_fields__)
    assert shared >= {"health", "record_next", "profile_call", "inflated_bytes", "reader"}
    for file, worker in zip(files, workers, strict=True):
        for name in shared:
            assert getattr(file, name) == getattr(worker, name), name


def test_no_rule_is_in_doubt_that_is_not_asked(log: Path) -> None:
    [file] = report_of(log / "lost").files
    said = {rule for item in file.health for rule in item.affects}
    assert said
    assert not said & {rule.id for rule in all_rules() if rule.life_cycle == "preview"}


def test_recordings_of_a_run_that_double_each_other_say_so(tmp_path: Path) -> None:
    write_run(tmp_path / "run", "a", "b")
    write_trace(tmp_path / "other" / "c.1.pt.trace.json")
    kinds = [[item.kind for item in file.health] for file in report_of(tmp_path).files]
    assert ["duplicate-file" in each for each in kinds] == [False, True, True]


def test_a_file_that_cannot_be_read_is_told_and_the_others_go_on(log: Path) -> None:
    bad = log / "sound" / "bad.1.pt.trace.json"
    bad.write_text("")
    result = run("health", log)
    assert result.exit_code == 0
    assert result.stderr.startswith(f"stepscope: {bad}: The file is empty. ")
    assert result.stdout.count("─\n") == 2
    report = report_of(log)
    assert ([problem.path for problem in report.problems], len(report.files)) == ([str(bad)], 2)


def test_a_truncated_file_is_told_with_what_is_left(log: Path) -> None:
    whole = (log / "sound" / "worker0.1700000000000.pt.trace.json.gz").read_bytes()
    (log / "cut").mkdir()
    cut = log / "cut" / "w.1.pt.trace.json.gz"
    cut.write_bytes(whole[:-40])
    [file] = report_of(cut).files
    assert 0 < file.events < 16
    assert effects(file)["truncated-gzip"] == "low"
    said = " ".join(run("health", cut).stdout.split())
    assert "WARNING truncated-gzip 1 The gzip stream" in said
    assert "In doubt: activation-checkpointing, allocator-calls-in-loop, " in said


@pytest.mark.parametrize(
    ("name", "status"), [("sound", 0), ("lost", 1), ("sound lost", 1), ("flags", 0)]
)
def test_in_ci_damage_fails_and_missing_flags_do_not(log: Path, name: str, status: int) -> None:
    write_trace(log / "flags" / "w.1.pt.trace.json", (("cpu_op", "aten::mm", 0, 10),))
    paths = [log / part for part in name.split()]
    assert run("health", *paths, "--fail-on", "damage").exit_code == status
    assert run("health", *paths).exit_code == 0


def test_in_ci_an_unreadable_file_fails(log: Path) -> None:
    (log / "sound" / "bad.1.pt.trace.json").write_text("")
    assert run("health", log / "sound").exit_code == 0
    assert run("health", log / "sound", "--fail-on", "damage").exit_code == 1


def test_nothing_readable_ends_with_2(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("")
    result = run("health", bad, tmp_path / "absent")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count("\n") == 2
    report = report_of(bad)
    assert (report.files, len(report.problems)) == ((), 1)


def test_a_bug_on_one_file_costs_only_that_file(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepscope import advice

    real = advice.file_health

    def fail(trace: Any, *, run: str, file_bytes: int) -> FileHealth:
        if run == "lost":
            msg = "a bug"
            raise ZeroDivisionError(msg)
        return real(trace, run=run, file_bytes=file_bytes)

    monkeypatch.setattr(advice, "file_health", fail)
    report = report_of(log)
    assert [file.run for file in report.files] == ["sound"]
    assert report.problems[0].message.startswith("stepscope failed on this file")


def test_names_of_events_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    rows = (("kernel", "\x1b[31mred\x07\u202e\nforged", 10, -5), ("kernel", "gemm", 20, 5))
    path = write_trace(tmp_path / "w.1.pt.trace.json", rows)
    for form in ("text", "markdown"):
        said = run("health", path, "--format", form).stdout
        assert "red" in said
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", said)
        assert not re.search(r"^\s*forged", said, re.MULTILINE)


def test_it_can_be_written_to_a_file(log: Path, tmp_path: Path) -> None:
    output = tmp_path / "health.md"
    result = run("health", log, "--format", "markdown", "--output", output)
    assert (result.exit_code, result.stdout) == (0, "")
    assert output.read_text().count("## ") >= 2


def test_the_help_teaches() -> None:
    said = run("health", "--help").stdout
    for part in (
        "--fail-on",
        "inconclusive",
        "low confidence",
        "stepscope health log/",
        "exit status",
    ):
        assert part in said
    assert "stepscope health log/" in run("--help").stdout
