"""Workflow commands: what GitHub makes annotations of, and nothing that a trace could add."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from reports import COVERED, FAILED, FOUND, HOSTILE, REPORT, run_of, with_texts
from stepscope.base.findings import Outcome, SourceLine
from stepscope.base.report import Report
from stepscope.render import github

COMMAND = re.compile(r"::(error|warning|notice) ((?:\w+=[^,:\n]*,?)*)::([^\r\n]*)")


def commands(report: Report) -> list[tuple[str, dict[str, str], str]]:
    """Read the commands as a runner does; anything else in a line is an error."""
    found = []
    for line in github.render(report).splitlines():
        match = COMMAND.fullmatch(line)
        assert match, line
        properties = dict(each.split("=", 1) for each in match[2].split(","))
        found.append((match[1], properties, match[3]))
    return found


def of_severity(severity: str, *, number: int = 0) -> Outcome:
    return msgspec.structs.replace(
        FOUND, severity=severity, rule=f"rule-{number}", fingerprint=str(number)
    )


@pytest.mark.parametrize(
    ("severity", "command"), [("critical", "error"), ("warning", "warning"), ("info", "notice")]
)
def test_each_severity_has_its_command(severity: str, command: str) -> None:
    report = Report((run_of(of_severity(severity)),))
    assert command in [each for each, given, _ in commands(report) if "file" in given]


def test_a_finding_stands_at_its_source_line() -> None:
    [(_, given, message), *_] = commands(Report((run_of(FOUND),)))
    assert given == {
        "file": "train.py",
        "line": "42",
        "title": "The DataLoader runs in the training process [dataloader-no-workers]",
    }
    assert message.startswith("Saves 44.4–59.3 ms per step (25.4–33.9 %25);")
    assert message.endswith("Fix: Load in workers.")


def test_a_line_in_the_repository_is_named_from_its_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pathlib.Path.cwd", lambda: "/home/me/project")
    for path in ("/home/me/project/src/train.py", "./src/train.py", "src\\train.py"):
        outcome = msgspec.structs.replace(FOUND, locations=(SourceLine(path, 3),))
        [(_, given, _), *_] = commands(Report((run_of(outcome),)))
        assert given["file"] == "src/train.py"


def test_without_stacks_there_is_neither_file_nor_line() -> None:
    outcome = msgspec.structs.replace(FOUND, locations=())
    [(_, given, _), *_] = commands(Report((run_of(outcome),)))
    assert given.keys() == {"title"}


def test_github_shows_ten_of_a_kind_and_the_others_are_counted() -> None:
    outcomes = [of_severity("warning", number=number) for number in range(14)]
    lines = github.render(Report((run_of(*outcomes),))).splitlines()
    assert sum(line.startswith("::warning ") for line in lines) == 10
    assert "and 4 warnings more: GitHub shows 10 of a kind" in lines


def test_the_verdict_is_told_also_where_nothing_was_found() -> None:
    [(command, given, message)] = commands(Report((run_of(),)))
    assert (command, given["title"]) == ("notice", "stepscope%3A resnet50")
    assert message == "Step 178 ms (6 steps). The GPU is busy 56.6 %25."


def test_a_rule_that_failed_and_a_file_that_was_not_read_are_warnings() -> None:
    said = [(command, message) for command, _, message in commands(REPORT)]
    assert ("warning", "KeyError('x').") in said
    assert ("warning", "log/x.json: the file is empty. Record it again.") in said


def test_what_another_finding_counts_already_has_no_annotation_of_its_own() -> None:
    assert [given["title"] for _, given, _ in commands(Report((run_of(COVERED, FAILED),)))] == [
        "Failed%3A copy-heavy",
        "stepscope%3A resnet50",
    ]


def test_a_trace_cannot_add_a_command() -> None:
    lines = github.render(with_texts(HOSTILE)).splitlines()
    assert all(COMMAND.fullmatch(line) for line in lines)


@given(st.text(st.one_of(st.sampled_from(":,%#[]\r\n\x1b\u2028\x85"), st.characters())))
@examples(60)
def test_no_text_of_a_trace_breaks_out_of_a_command(found: str) -> None:
    rendered = github.render(with_texts(found))
    for line in rendered.removesuffix("\n").split("\n"):
        assert COMMAND.fullmatch(line), line
