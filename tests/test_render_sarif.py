"""SARIF 2.1.0: valid by the standard's own schema, and telling what the report tells."""

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from generated import examples
from reports import (
    FOUND,
    HOSTILE,
    PASSED,
    RANKS,
    REPORT,
    SUPPRESSED,
    run_of,
    with_texts,
)
from stepscope.advice import advise
from stepscope.base.findings import Outcome, SourceLine
from stepscope.base.report import Problem, Report
from stepscope.library import load
from stepscope.render import sarif
from stepscope.rules import all_rules

SCHEMA = Draft7Validator(
    json.loads((Path(__file__).parent / "schemas" / "sarif-2.1.0.json").read_text())
)
SAMPLES = Path(__file__).parents[1] / "sample_logs"


def log_of(report: Report) -> dict[str, Any]:
    """Return the only run of the log, once it is known to be valid."""
    log = json.loads(sarif.render(report))
    SCHEMA.validate(log)
    [run] = log["runs"]
    assert isinstance(run, dict)
    return run


def result_of(*outcomes: Outcome) -> dict[str, Any]:
    [result] = log_of(Report((run_of(*outcomes),)))["results"]
    assert isinstance(result, dict)
    return result


def uris(value: Any) -> list[str]:
    """Return every address of a log."""
    if isinstance(value, list):
        return [uri for each in value for uri in uris(each)]
    if not isinstance(value, dict):
        return []
    own = [value[key] for key in ("uri", "helpUri") if key in value]
    return own + [uri for each in value.values() for uri in uris(each)]


def test_each_kind_of_answer_has_its_kind_of_result() -> None:
    run = log_of(REPORT)
    said = {each["ruleId"]: (each["kind"], each["level"]) for each in run["results"]}
    assert said == {
        "dataloader-no-workers": ("fail", "error"),
        "dataloader-bound": ("fail", "error"),
        "acme/low-watts": ("fail", "note"),
        "item-sync": ("informational", "none"),
        "launch-bound": ("pass", "none"),
        "tiny-batch-size": ("open", "none"),
        "ddp-bucket-copy": ("notApplicable", "none"),
        "pageable-h2d-copy": ("fail", "warning"),
    }


def test_a_finding_tells_what_it_costs_and_what_to_do() -> None:
    result = result_of(FOUND)
    assert result["message"]["text"] == (
        "The DataLoader runs in the training process. "
        "Saves 44.4–59.3 ms per step (25.4–33.9 %). "
        "6 batches were loaded in the training process. Fix: Load in workers."
    )
    assert result["rank"] == 33.9
    assert result["partialFingerprints"] == {"stepscopeFinding/v1": "f1"}
    assert result["properties"]["claim"]["net_high_ns"] == 59_300_000
    assert result["properties"]["effort"] == "flag"
    assert result["properties"]["evidence"][0]["label"] == "Exposed loading"


def test_a_finding_stands_at_its_source_line() -> None:
    result = result_of(FOUND)
    [place] = result["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "train.py"},
        "region": {"startLine": 42},
    }
    assert {"name": "main", "kind": "function"} in place["logicalLocations"]
    [other] = result["relatedLocations"]
    assert other["physicalLocation"]["artifactLocation"] == {"uri": "data/images.py"}


def test_without_stacks_it_stands_in_the_file_of_the_trace() -> None:
    result = result_of(msgspec.structs.replace(FOUND, locations=()))
    [place] = result["locations"]
    trace = {"uri": "resnet50/worker0.1.pt.trace.json.gz", "uriBaseId": "LOG", "index": 0}
    assert place["physicalLocation"] == {"artifactLocation": trace, "region": {"startLine": 1}}
    assert result["analysisTarget"] == trace
    assert place["logicalLocations"] == [
        {"name": "aten::to", "kind": "operator"},
        {"name": "rank 3", "kind": "rank"},
        {"name": "worker0", "fullyQualifiedName": "resnet50/worker0/1", "kind": "recording"},
    ]


@pytest.mark.parametrize("report", [REPORT, RANKS, with_texts(HOSTILE)], ids=["1", "8", "odd"])
def test_every_result_has_a_place_with_a_line(report: Report) -> None:
    for result in log_of(report)["results"]:
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"]
        assert place["region"]["startLine"] >= 1


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("/opt/lib/my code.py", "file:///opt/lib/my%20code.py"),
        ("C:\\jobs\\train.py", "file:///C:/jobs/train.py"),
        ("../../etc/passwd", "etc/passwd"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
    ],
)
def test_a_path_elsewhere_is_an_address_too(path: str, uri: str) -> None:
    result = result_of(msgspec.structs.replace(FOUND, locations=(SourceLine(path, 0),)))
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}}


def test_the_same_finding_of_several_recordings_is_one_result() -> None:
    [found] = [each for each in log_of(RANKS)["results"] if each["kind"] == "fail"]
    assert found["occurrenceCount"] == 6
    assert [each["rank"] for each in found["properties"]["recordings"]] == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("by", "kind"),
    [("configuration", "external"), ("baseline", "external"), ("recording", "inSource")],
)
def test_what_is_put_aside_is_suppressed_with_its_reason(by: str, kind: str) -> None:
    outcome = msgspec.structs.replace(SUPPRESSED, suppressed_by=by, reason="a reason")
    [suppression] = result_of(outcome)["suppressions"]
    assert (suppression["kind"], suppression["status"]) == (kind, "accepted")
    assert suppression["justification"].endswith(": a reason")


@pytest.mark.parametrize(
    ("state", "said"), [("new", "new"), ("worse", "updated"), ("unchanged", "unchanged")]
)
def test_it_says_how_a_finding_stands_to_the_baseline(state: str, said: str) -> None:
    assert result_of(msgspec.structs.replace(FOUND, baseline=state))["baselineState"] == said
    assert "baselineState" not in result_of(FOUND)


def test_failures_and_unread_files_are_notifications() -> None:
    report = msgspec.structs.replace(REPORT, notes=("a suppression is unused",))
    [invocation] = log_of(report)["invocations"]
    assert invocation["executionSuccessful"]
    said = [
        (each["level"], each["message"]["text"])
        for each in invocation["toolExecutionNotifications"]
    ]
    assert said == [
        ("error", "copy-heavy failed: KeyError('x')."),
        ("error", "Not read: the file is empty. Record it again."),
        ("note", "a suppression is unused."),
    ]
    assert invocation["toolExecutionNotifications"][0]["associatedRule"]["id"] == "copy-heavy"


def test_where_nothing_was_read_the_log_says_that_it_failed() -> None:
    run = log_of(Report((), (Problem("log/x.json", "the file is empty", "Record it"),)))
    assert not run["invocations"][0]["executionSuccessful"]
    assert run["results"] == []


def test_rules_are_described_by_their_own_words() -> None:
    run = log_of(REPORT)
    rules = run["tool"]["driver"]["rules"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    described = {each["id"]: each for each in rules}
    [known] = [rule for rule in all_rules() if rule.id == "dataloader-no-workers"]
    described_known = described["dataloader-no-workers"]
    assert described_known["shortDescription"]["text"] == f"{known.title}."
    assert described_known["helpUri"] == known.links[0]
    assert described_known["help"]["markdown"].startswith("# dataloader-no-workers\n")
    assert described_known["properties"]["tags"][0] == known.category
    assert described["acme/low-watts"]["shortDescription"]["text"] == (
        "The device draws little power."
    ), "of a rule that is not installed, what the report holds"


def test_every_rule_can_be_described() -> None:
    outcomes = [msgspec.structs.replace(PASSED, rule=rule.id) for rule in all_rules()]
    rules = log_of(Report((run_of(*outcomes),)))["tool"]["driver"]["rules"]
    assert [each["id"] for each in rules] == sorted(rule.id for rule in all_rules())
    assert all(urlsplit(uri).scheme == "https" for uri in uris(rules))


@given(st.text(st.one_of(st.sampled_from("[](){}\\/:%?#\r\n\x1b\u202e"), st.characters())))
@example(r"[x\](y)")
@examples(30)
def test_no_text_of_a_trace_breaks_the_log(found: str) -> None:
    rendered = sarif.render(with_texts(found))
    rendered.encode()
    run = log_of(with_texts(found))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", rendered)
    for result in run["results"]:
        assert not re.search(r"(?<!\\)(\\\\)*\]\(", result["message"]["text"])
    for uri in uris(run["results"]) + uris(run["artifacts"]):
        assert re.fullmatch(r"(file:///([A-Za-z]:/)?)?[\w.~%/-]+", uri, re.ASCII), uri


@pytest.mark.parametrize("name", ["dataloader/no_workers", "synthetic_item_sync/fault", "ranks"])
def test_the_log_of_a_real_recording_is_valid(name: str) -> None:
    folders = [SAMPLES / name] if name != "ranks" else sorted((SAMPLES / name).iterdir())
    report = Report(tuple(advise(load(folder)) for folder in folders), version="1.2.3")
    run = log_of(report)
    assert {each["kind"] for each in run["results"]} >= {"fail", "pass", "notApplicable"}
    uri = run["artifacts"][0]["location"]["uri"]
    assert (SAMPLES / name.split("/", maxsplit=1)[0] / uri).is_file()
