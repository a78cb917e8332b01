"""What was found before is put aside; what is new, or has become worse, counts."""

import json
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import stepscope
from loading import SAMPLE_LOGS, trace_of
from stepscope.advice import advise
from stepscope.advice.baseline import (
    baseline_of,
    baseline_text,
    compare_with_baseline,
    fixed_findings,
    read_baseline,
)
from stepscope.api.app import create_app
from stepscope.base.errors import MissingDataError, UsageError
from stepscope.base.findings import SourceLine
from stepscope.base.report import Report
from stepscope.cli import cli
from stepscope.model.trace import Run
from stepscope.rules import Finding, Rule
from stepscope.storage import discover
from test_advice import TRACE, claiming, raising, rule
from test_catalog import catalog_of, read_all

FAULT = SAMPLE_LOGS / "synthetic_item_sync" / "fault"
FIX = SAMPLE_LOGS / "synthetic_item_sync" / "fix"


def report(*rules: Rule[Any]) -> Report:
    return Report(runs=(advise(Run(name="run", workers=(TRACE,)), rules),), version="1")


def reading(
    *, share: float, place: str = "aten::item", line: int = 7, folder: str = "/home/me/"
) -> Rule[Any]:
    end = round(share * 3_000_000)
    return rule(
        "reads",
        Finding(
            message=f"Reads cost {share}.",
            claims=claiming((0, end)).claims,
            severity="warning",
            subject=place,
            locations=(SourceLine(path=f"{folder}train.py", line=line, function="step"),),
        ),
    )


def judged(before: Report, after: Report) -> list[tuple[str, str]]:
    outcomes = compare_with_baseline(after, baseline_of(before), "known.json").runs[0].outcomes
    return [(each.status, each.baseline) for each in outcomes]


def test_what_the_baseline_knows_is_put_aside_and_says_so() -> None:
    before = report(reading(share=0.1))
    after = compare_with_baseline(report(reading(share=0.105)), baseline_of(before), "known.json")
    [outcome] = after.runs[0].outcomes
    assert (outcome.status, outcome.baseline, outcome.suppressed_by) == (
        "suppressed",
        "unchanged",
        "baseline",
    )
    assert outcome.reason == "In the baseline known.json."
    assert after.runs[0].merged == ()


@pytest.mark.parametrize(
    ("before", "after", "state"),
    [
        (0.10, 0.05, "unchanged"),
        (0.10, 0.109, "unchanged"),
        (0.10, 0.115, "worse"),
        (0.02, 0.029, "unchanged"),
        (0.02, 0.031, "worse"),
    ],
)
def test_what_costs_more_by_a_tenth_and_a_hundredth_of_the_step_is_worse(
    before: float, after: float, state: str
) -> None:
    [(_, told)] = judged(report(reading(share=before)), report(reading(share=after)))
    assert told == state


def test_a_fingerprint_is_of_the_code_not_of_numbers_lines_or_folders() -> None:
    def fingerprint(**options: Any) -> str:
        return report(reading(**options)).runs[0].outcomes[0].fingerprint

    one = fingerprint(share=0.1)
    assert fingerprint(share=0.3) == one
    assert fingerprint(share=0.1, line=99) == one
    for folder in ("", "/home/you/", "C:\\Users\\you\\"):
        assert fingerprint(share=0.1, folder=folder) == one
    assert fingerprint(share=0.1, place="aten::nonzero") != one
    assert one
    assert len(one) == 16


def test_what_is_gone_is_told_as_fixed() -> None:
    known = baseline_of(report(reading(share=0.1)))
    assert [each.rule for each in fixed_findings(report(rule("reads")), known)] == ["reads"]
    assert fixed_findings(report(), known) == (), "the rule was not asked"
    blind = raising("reads", MissingDataError("no stacks", "with_stack=True"))
    assert fixed_findings(report(blind), known) == (), "it could not look"
    assert fixed_findings(report(reading(share=0.01)), known) == ()
    assert judged(report(), report(reading(share=0.1))) == [("found", "new")]


def test_a_baseline_is_written_and_read_the_same(tmp_path: Path) -> None:
    known = baseline_of(report(reading(share=0.1)))
    path = tmp_path / "known.json"
    path.write_text(baseline_text(known))
    assert read_baseline(path) == known
    assert json.loads(path.read_text())["findings"][0]["share"] == 0.1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read"),
        ("{", "is not a baseline"),
        ('{"schema": 1}', "is not a baseline"),
        ('{"schema": 99, "findings": []}', "its schema is 99, this version reads 1"),
    ],
)
def test_a_file_that_is_no_baseline_is_refused(
    tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "known.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_baseline(path)


# On the command line


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["advise", "--isolated", *map(str, arguments)])


def found(result: Result) -> list[dict[str, Any]]:
    outcomes: list[dict[str, Any]] = json.loads(result.stdout)["runs"][0]["outcomes"]
    return [each for each in outcomes if each["status"] == "found"]


def test_the_gate_fails_on_what_is_new_only_and_after_all_is_written(tmp_path: Path) -> None:
    known, advice = tmp_path / "known.json", tmp_path / "advice.json"
    gate = ("--fail-on", "warning")
    assert run(FAULT, *gate, "--quiet", "--write-baseline", known).exit_code == 1
    assert known.exists(), "what was found is written before the exit"
    assert run(FAULT, *gate, "--quiet", "--baseline", known).exit_code == 0
    assert run(FIX, *gate, "--quiet").exit_code == 0
    done = run(FAULT, *gate, "--format", "json", "--output", advice)
    assert (done.exit_code, done.stdout) == (1, "")
    assert json.loads(advice.read_text())["runs"]


def test_what_was_fixed_is_told_on_standard_error(tmp_path: Path) -> None:
    known = tmp_path / "known.json"
    run(FAULT, "--quiet", "--write-baseline", known)
    done = run(FIX, "--quiet", "--baseline", known)
    assert "stepscope: Fixed since the baseline was written: item-sync. " in done.stderr
    assert done.stdout == ""


def test_no_more_findings_are_shown_than_asked_for() -> None:
    whole = run(FAULT, "--format", "json")
    one = run(FAULT, "--format", "json", "--max-findings", "1")
    assert len(found(one)) == 1
    assert found(one)[0] == found(whole)[0]
    assert len(found(whole)) > 1


def test_a_rule_can_be_chosen_set_and_ignored() -> None:
    only = run(FAULT, "--format", "json", "--select", "item-sync,launch-bound")
    outcomes = json.loads(only.stdout)["runs"][0]["outcomes"]
    assert {each["rule"] for each in outcomes} == {"item-sync", "launch-bound"}
    assert [each["rule"] for each in found(only)] == ["item-sync"]
    high = ("--set", "item-sync.least_idle_share=0.9")
    assert found(run(FAULT, "--format", "json", "--select", "item-sync", *high)) == []
    lower = ("--set", "item-sync.severity=info")
    assert run(FAULT, "--select", "item-sync", *lower, "--fail-on", "warning").exit_code == 0
    assert found(run(FAULT, "--format", "json", "--ignore", "all", "--preview")) == []


def test_the_nearest_configuration_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "stepscope.toml").write_text(
        'select = ["item-sync", "graph-breaks"]\n'
        '[[suppress]]\nrule = "item-sync"\nreason = "We know."\n'
        '[[suppress]]\nrule = "graph-breaks"\nreason = "Never so."\n'
    )
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli, ["advise", str(FAULT), "--format", "json"])
    *_, outcome = json.loads(done.stdout)["runs"][0]["outcomes"]
    assert (outcome["status"], outcome["reason"]) == ("suppressed", "We know.")
    assert "The suppression of graph-breaks (Never so.) suppresses nothing." in done.stderr
    other = tmp_path / "other.toml"
    other.write_text('ignore = ["item-sink"]')
    refused = CliRunner().invoke(cli, ["advise", str(FAULT), "--config", str(other)])
    assert refused.exit_code == 2
    assert (
        "'item-sink' is not a rule, category or severity. Did you mean item-sync" in refused.stderr
    )


def test_a_suppression_of_a_rule_that_there_is_not_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stepscope.toml"
    path.write_text('[[suppress]]\nrule = "item-sink"\nreason = "r"\n')
    done = CliRunner().invoke(cli, ["advise", str(FAULT), "--config", str(path)])
    assert (done.exit_code, "Did you mean item-sync" in done.stderr) == (2, True)


def test_hints_of_the_program_tell_the_batch() -> None:
    from stepscope.analyses.core.batch_size import batch_size
    from stepscope.analyses.settings.user_metadata import hints

    rows: list[list[Any]] = [["user_annotation", "ProfilerStep#1", 0, 1000]]
    trace = trace_of(rows, stepscope={"batch_size": 32, "num_workers": 0, "model": "resnet50"})
    told = hints(trace)
    assert (told.batch_size, told.num_workers, told.model) == (32, 0, "resnet50")
    batch = batch_size(trace)
    assert batch is not None
    assert (batch.size, batch.is_certain, batch.operator) == (32, True, "")
    odd: Any
    for odd in ({"batch_size": 0}, {"batch_size": "many"}, {"batch_size": True}, [], "x", None):
        assert hints(trace_of(rows, stepscope=odd)).batch_size is None


# In Python, TensorBoard and the page


def test_python_takes_the_same_choices(tmp_path: Path) -> None:
    loaded = stepscope.load(FAULT)
    only = stepscope.advise(loaded, select=["item-sync"]).report
    assert [(each.rule, each.status) for each in only.outcomes] == [("item-sync", "found")]
    high = {"item-sync": {"least_idle_share": 0.9}}
    [quiet] = stepscope.advise(loaded, select=["item-sync"], options=high).report.outcomes
    assert quiet.status != "found"
    path = tmp_path / "stepscope.toml"
    path.write_text('ignore = ["item-sync"]')
    rules = {each.rule for each in stepscope.advise(loaded, config=path).report.outcomes}
    assert "launch-bound" in rules
    assert "item-sync" not in rules
    with pytest.raises(UsageError, match="Did you mean item-sync"):
        stepscope.advise(loaded, select=["item-sink"])


def test_tensorboard_is_given_a_file(tmp_path: Path) -> None:
    from stepscope.tensorboard import plugin_advice

    path = tmp_path / "stepscope.toml"
    path.write_text('ignore = ["item-sync"]')
    assert plugin_advice(Namespace()) is None
    advice = plugin_advice(Namespace(stepscope_config=str(path)))
    assert advice is not None
    assert advice.changes.ignore == ("item-sync",)
    path.write_text('ignore = ["item-sink"]')
    with pytest.raises(UsageError, match="Did you mean item-sync"):
        plugin_advice(Namespace(stepscope_config=str(path)))


def test_the_page_shows_advice_by_the_settings_of_the_run(tmp_path: Path) -> None:
    from stepscope.advice.settings import AdviceSettings, Changes, Profile
    from stepscope.api.prefetch import prepare

    run_folder = tmp_path / "serve-1"
    shutil.copytree(FAULT, run_folder)
    quiet = Profile(runs=("serve-*",), changes=Changes(ignore=("item-sync",)))
    settings = AdviceSettings(
        profiles={"serving": quiet}, changes=Changes(ignore=("launch-bound",))
    )
    catalog, later = catalog_of(tmp_path, prepare=prepare, advice=settings)
    read_all(catalog, later)
    client = create_app(catalog).test_client()
    address = f"/api/runs/{discover.run_identifier(str(run_folder))}/advice"
    rules = {each["rule"] for each in client.get(address).get_json()["outcomes"]}
    assert "gpu-idle-gap" in rules
    assert not rules & {"item-sync", "launch-bound"}
