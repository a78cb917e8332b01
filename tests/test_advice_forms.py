"""`stepscope advise --format …`: every form of the answer, from recordings on disk."""

import json
from importlib import import_module
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from logs import write_run
from stepscope.base.report import Report
from stepscope.cli import cli

BEGINS = {
    "text": "run ─",
    "markdown": "## run\n",
    "brief": "stepscope ",
    "json": '{\n  "runs"',
    "sarif": '{\n "$schema"',
    "html": "<!doctype html>\n",
    "github": "::",
}


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_run(tmp_path / "log" / "run")
    return tmp_path / "log"


@pytest.mark.parametrize("form", BEGINS)
def test_every_form_tells_of_the_same_finding(log: Path, form: str) -> None:
    result = run("advise", log, "--format", form)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith(BEGINS[form])
    assert "gpu-idle-gap" in result.stdout


@pytest.mark.parametrize("form", BEGINS)
def test_every_form_can_be_written_to_a_file(log: Path, tmp_path: Path, form: str) -> None:
    target = tmp_path / "answer"
    printed = run("advise", log, "--format", form)
    assert run("advise", log, "--format", form, "--output", target).stdout == ""
    assert target.read_text(encoding="utf-8") == printed.stdout


def test_where_nothing_can_be_read_code_scanning_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "bad.pt.trace.json").write_text("")
    result = run("advise", tmp_path, "--format", "sarif")
    assert result.exit_code == 2
    [said] = json.loads(result.stdout)["runs"]
    [notification] = said["invocations"][0]["toolExecutionNotifications"]
    assert notification["level"] == "error"
    assert notification["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


@pytest.mark.parametrize("form", ["text", "html"])
def test_a_finding_that_a_form_fails_to_show_costs_no_other(
    log: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    render = import_module(f"stepscope.render.{form}").render

    def failing(report: Report, **options: object) -> str:
        outcomes = [outcome for run in report.runs for outcome in run.outcomes]
        if any(each.rule == "gpu-idle-gap" and each.status == "found" for each in outcomes):
            raise LookupError
        if any(worker.budget for run in report.runs for worker in run.workers):
            raise LookupError
        shown: str = render(report, **options)
        return shown

    monkeypatch.setattr(f"stepscope.render.{form}.render", failing)
    result = run("advise", log, "--format", form)
    assert result.exit_code == 0, result.output
    shown = " ".join(result.stdout.split())
    assert "ts result cannot be shown: stepscope failed (LookupError" in shown
    assert "The time budget is left out" in shown
