"""`stepscope compare`: what it prints, of what, and with which exit status."""

import json
import re
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from loading import ROOT
from logs import ROWS, STEP_US, write_run, write_trace
from stepscope.cli import cli
from stepscope.comparison.messages import Change, ComparisonReport, Row
from stepscope.model.trace import Trace
from stepscope.render import comparison_markdown, comparison_phrases, comparison_text

SAMPLES = ROOT / "sample_logs"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["compare", *(str(argument) for argument in arguments)])


def slowed(factor: float) -> tuple[list[object], ...]:
    """The rows of `logs`, each time a factor longer."""
    return tuple([row[0], row[1], row[2] * factor, row[3] * factor, *row[4:]] for row in ROWS)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    write_run(tmp_path / "log" / "before")
    write_trace(tmp_path / "log" / "after" / "worker0.1.pt.trace.json.gz", slowed(1.2))
    return tmp_path / "log"


def test_steps_of_one_run_are_compared(log: Path) -> None:
    result = run(log / "before", "--baseline-steps", "1", "--steps", "2", "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    [found] = report_of(result).comparisons
    assert (found.before.name, found.after.name) == ("before, step 1", "before, step 2")
    assert found.before.step_count == found.after.step_count == 1


def test_steps_of_two_runs_are_compared(log: Path) -> None:
    result = run(log / "before", log / "after", "--steps", "1-2", "--format", "json")
    [found] = report_of(result).comparisons
    assert (found.before.name, found.after.name) == ("before, steps 1-2", "after, steps 1-2")
    assert (found.before.step_count, found.after.step_count) == (2, 2)
    assert (found.step.before, found.step.after) == (STEP_US * 1000, STEP_US * 1200)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "1"], "or steps of it (--baseline-steps 5 --steps 9)"),
        (["--baseline-steps", "99", "--steps", "1"], "there is no step 99: the complete steps are"),
        (["--baseline-steps", "b", "--steps", "1"], "--baseline-steps takes a number, or two as"),
    ],
)
def test_steps_that_cannot_be_compared_are_an_error(
    log: Path, arguments: list[str], message: str
) -> None:
    result = run(log / "before", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def report_of(result: Result) -> ComparisonReport:
    return msgspec.json.decode(result.stdout, type=ComparisonReport)


def test_two_runs_are_compared(log: Path) -> None:
    result = run(log / "before", log / "after", "--format", "json")
    assert (result.exit_code, result.stderr) == (0, "")
    [found] = report_of(result).comparisons
    assert (found.before.name, found.after.name) == ("before", "after")
    assert (found.step.before, found.step.after) == (STEP_US * 1000, STEP_US * 1200)
    assert found.step.verdict == "more"


def test_the_published_schema_names_what_json_holds(log: Path) -> None:
    published = json.loads(CliRunner().invoke(cli, ["schema", "--compare"]).stdout)["$defs"]
    printed = json.loads(run(log / "before", log / "after", "--format", "json").stdout)
    assert set(printed) == set(published["ComparisonReport"]["properties"])
    [found] = printed["comparisons"]
    assert set(found) == set(published["Comparison"]["properties"])
    assert set(found["device_work"][0]) == set(published["Row"]["properties"])


@pytest.mark.parametrize("width", [80, 120])
def test_text_says_what_changed_within_the_width(log: Path, width: int) -> None:
    from stepscope.render import comparison_text

    report = report_of(run(log / "before", log / "after", "--format", "json"))
    text = comparison_text.render(report, width=width)
    assert "before → after" in text
    assert "The step takes 2.00 ms more: 10.0 ms → 12.0 ms (+20.0 %), statistically" in text
    assert "95 % confidence interval of the difference: +" in text
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert "\x1b[" in comparison_text.render(report, width=width, is_coloured=True)


@pytest.fixture
def other_device(tmp_path: Path) -> Path:
    """Two runs of different devices, the second one slower."""
    for name, factor in (("A100", 1.0), ("H100", 1.2)):
        properties = [{"id": 0, "name": name}]
        path = tmp_path / name / "worker0.1.pt.trace.json.gz"
        write_trace(path, slowed(factor), deviceProperties=properties)
    return tmp_path


def test_what_is_not_comparable_is_neither_better_nor_worse(other_device: Path) -> None:
    sides = other_device / "A100", other_device / "H100"
    sentence = "The devices are different: A100 before, H100 after."
    text = run(*sides).stdout
    assert sentence in text
    assert text.index("Not comparable") < text.index("The step: 10.0 ms → 12.0 ms, not comparable")
    assert "slower" not in text
    markdown = run(*sides, "--format", "markdown").stdout
    assert f"> **Not comparable:** {sentence}" in markdown
    assert "slower" not in markdown
    report = report_of(run(*sides, "--format", "json"))
    [found] = report.comparisons
    assert (found.comparability.level, found.comparability.reasons) == (
        "not-comparable",
        (sentence,),
    )
    coloured = comparison_text.render(report, is_coloured=True)
    assert not {"\x1b[31m", "\x1b[32m", "\x1b[1;32m"} & set(re.findall(r"\x1b\[[\d;]*m", coloured))


def test_a_regression_cannot_be_excluded_of_what_is_not_comparable(other_device: Path) -> None:
    sides = other_device / "A100", other_device / "H100"
    found = run(*sides, "--fail-on-regression", "5")
    assert found.exit_code == 2
    assert "A100 and H100 are not comparable: The devices are different" in found.stderr
    assert run(*sides).exit_code == 0


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_of_one_step_no_spread_is_told(tmp_path: Path, form: str) -> None:
    for name, factor in (("a", 1), ("b", 2)):
        write_trace(tmp_path / name / "w.1.pt.trace.json", slowed(factor)[:4])
    shown = run(tmp_path / "a", tmp_path / "b", "--format", form).stdout
    assert "1 step of 10.0 ms" in shown
    assert "±" not in shown


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_advice_that_promised_nothing_is_held_against_nothing(log: Path, form: str) -> None:
    followed = SAMPLES / "synthetic_item_sync"
    assert (
        "estimated per step"
        in run(followed / "fault", followed / "fix", "--format", "markdown").stdout
    )
    report = report_of(run(log / "after", log / "before", "--format", "json"))
    [found] = report.comparisons
    none = [msgspec.structs.replace(each, predicted_high_ns=0) for each in found.savings]
    rules = [msgspec.structs.replace(each, rules=("tiny-batch",)) for each in none]
    report = msgspec.structs.replace(
        report, comparisons=(msgspec.structs.replace(found, savings=tuple(rules)),)
    )
    renderer = comparison_text if form == "text" else comparison_markdown
    assert "median step less" not in renderer.render(report)


@pytest.mark.parametrize(
    ("p", "words"),
    [
        (0.0005, "statistically significant (p < 0.001)"),
        (0.012, "statistically significant (p = 0.012)"),
    ],
)
def test_a_chance_is_written_as_one_reads_it(p: float, words: str) -> None:
    change = Change(before=2.0, after=1.0, unit="ns", p=p, verdict="less")
    assert comparison_phrases.significance(change) == words


@pytest.mark.parametrize(
    ("after", "words"),
    [(0.50001, "< 0.01 points"), (0.4, f"{comparison_phrases.MINUS}10.0 points"), (0.5, "0")],
)
def test_points_that_mean_nothing_are_not_counted(after: float, words: str) -> None:
    assert comparison_phrases.delta(Change(before=0.5, after=after, unit="share")) == words


def test_markdown_is_fit_for_a_pull_request(log: Path, tmp_path: Path) -> None:
    path = tmp_path / "changes.md"
    assert run(log / "before", log / "after", "--format", "markdown", "--output", path).stdout == ""
    text = path.read_text()
    assert "**The step takes 2.00 ms more" in text
    assert "| Kernel | 4.00 ms | 4.80 ms | +800 µs |" in text
    assert "| `gemm` by aten::mm | slower | 1 | 4.00 ms | 4.80 ms | +800 µs |" in text


@pytest.mark.parametrize(
    ("factor", "percent", "status"), [(1.2, "5", 1), (1.2, "30", 0), (1.0, "0", 0), (0.8, "0", 0)]
)
def test_a_regression_can_fail_a_job(log: Path, factor: float, percent: str, status: int) -> None:
    after = write_trace(log / "other" / "worker0.1.pt.trace.json", slowed(factor))
    result = run(log / "before", after.parent, "--fail-on-regression", percent)
    assert result.exit_code == status


def test_what_is_not_told_from_noise_fails_no_job(log: Path) -> None:
    short = write_trace(log / "short" / "w.1.pt.trace.json", slowed(1.5)[:8])
    result = run(log / "before", short.parent, "--fail-on-regression", "5")
    assert result.exit_code == 0
    assert "not enough steps to compare" in " ".join(result.stdout.split())


def test_runs_workers_and_spans_below_one_path_can_be_compared(log: Path) -> None:
    [runs] = report_of(run(log, "--by", "run", "--format", "json")).comparisons
    assert (runs.before.name, runs.after.name) == ("run after", "run before")
    folder = SAMPLES / "ranks" / "one_slow_rank"
    [ranks] = report_of(run(folder, "--by", "worker", "--format", "json")).comparisons
    assert (ranks.before.name, ranks.after.name) == ("worker rank0", "worker rank1")
    folder = SAMPLES / "language_model" / "long_job"
    [spans] = report_of(run(folder, "--by", "span", "--format", "json")).comparisons
    assert (spans.before.name, spans.after.name) == ("span 1", "span 2")


def test_the_first_is_compared_with_each_other(log: Path) -> None:
    write_run(log / "third")
    names = [log / name for name in ("before", "after", "third")]
    found = report_of(run(*names, "--format", "json")).comparisons
    assert [(each.before.name, each.after.name) for each in found] == [
        ("before", "after"),
        ("before", "third"),
    ]


def test_what_cannot_be_compared_is_said(log: Path) -> None:
    for arguments, reason in (
        ([log / "before"], "pass two paths"),
        ([log / "before", log / "before"], "both paths are the same"),
        ([log / "before", "--by", "span"], "there is only span 1"),
        ([log, log / "before"], "has 2 runs (after, before)"),
        ([log / "before", log / "after", "--worker", "x"], "there is no worker 'x'"),
        ([log / "before", log / "after", "--rows", "-1"], "-1 is not in the range x>=0"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert reason in result.stderr


def test_an_unreadable_file_costs_itself_and_an_unreadable_side_the_comparison(log: Path) -> None:
    (log / "after" / "w.2.pt.trace.json").write_text("nonsense")
    result = run(log / "before", log / "after", "--format", "json")
    assert result.exit_code == 0
    assert len(report_of(result).problems) == 1
    (log / "bad").mkdir()
    (log / "bad" / "w.2.pt.trace.json").write_text("nonsense")
    result = run(log / "before", log / "bad", "--format", "json")
    assert result.exit_code == 2
    assert report_of(result).comparisons == ()
    assert run(log / "before", log / "nowhere").exit_code == 2


def test_processes_give_the_same_answer(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = run(log / "before", log / "after", "--format", "json")
    monkeypatch.setattr("stepscope.cli.file_reading.WORTH_PROCESSES_BYTES", 0)
    there = run(log / "before", log / "after", "--format", "json", "--jobs", "2")
    assert there.stdout == here.stdout


def test_names_of_a_trace_do_not_act(tmp_path: Path) -> None:
    for name, kernel in (("a", "\x1b[2Jevil|`"), ("b", "other")):
        rows = tuple([*row[:1], kernel if row[1] == "gemm" else row[1], *row[2:]] for row in ROWS)
        write_trace(tmp_path / name / "w.1.pt.trace.json", rows)
    for form in ("text", "markdown"):
        assert "\x1b" not in run(tmp_path / "a", tmp_path / "b", "--format", form).stdout


def test_what_is_sampled_is_small_beside_the_trace() -> None:
    import pickle

    from stepscope import ingest
    from stepscope.comparison.samples import sample
    from stepscope.model.read import trace_of
    from stepscope.storage import discover

    [file, *_] = discover.at(str(SAMPLES / "compiled" / "eager"))
    trace: Trace = trace_of(file, ingest.read(file.path))
    assert len(pickle.dumps(sample(trace))) < 0.2 * trace.columns.inflated_bytes


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_part_that_a_form_fails_to_show_costs_no_other(
    log: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name_of = comparison_phrases.row_name

    def failing(row: Row) -> str:
        if row.name == "aten::mm":
            raise LookupError
        return name_of(row)

    whole = run(log / "before", log / "after", "--format", form).stdout.splitlines()
    monkeypatch.setattr(comparison_phrases, "row_name", failing)
    result = run(log / "before", log / "after", "--format", form)
    assert result.exit_code == 0, result.output
    assert "Operators: 1 left out, stepscope failed (LookupError" in " ".join(result.stdout.split())
    gone = set(whole) - set(result.stdout.splitlines())
    assert any("aten::mm" in line for line in gone)
    assert len(gone) < 5, gone
