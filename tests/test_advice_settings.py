"""Which rules are asked, with which options, and what is put aside: files, options, profiles."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from loading import trace_of
from stepscope.advice.settings import (
    AdviceSettings,
    Changes,
    Profile,
    Suppression,
    available_rules,
    selected_rules,
)
from stepscope.advice.settings_files import nearest_file, option_changes, read_settings
from stepscope.advice.suppression import suppress, unused_suppressions
from stepscope.advice.trace_advice import advise_trace_by
from stepscope.base.errors import UsageError
from stepscope.base.findings import Outcome
from stepscope.rules import Finding, Rule, option
from test_advice import TRACE, claiming, rule

DAY = "2026-06-01"


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What a rule may be told."""

    least_share: float = option(0.05, "Of the step.", origin="The test.")
    least_count: int = option(3, "How many.", origin="The test.")
    is_strict: bool = option(default=False, meaning="Whether.", origin="The test.")


def named(name: str, category: str = "fake", **more: Any) -> Rule[Any]:
    return dataclasses.replace(rule(name), category=category, options=Thresholds(), **more)


KNOWN = (
    named("loading", "input pipeline"),
    named("copies", "transfer", aliases=("old-copies",)),
    named("reads", "synchronization"),
    named("on-trial", "transfer", life_cycle="preview"),
)


def ids(changes: Changes) -> list[str]:
    return [each.id for each in selected_rules(changes, KNOWN)]


# Which rules


@pytest.mark.parametrize(
    ("changes", "chosen"),
    [
        (Changes(), ["loading", "copies", "reads"]),
        (Changes(preview=True), ["loading", "copies", "reads", "on-trial"]),
        (Changes(select=("on-trial",)), ["on-trial"]),
        (Changes(select=("transfer",)), ["copies"]),
        (Changes(select=("transfer",), preview=True), ["copies", "on-trial"]),
        (Changes(select=("input-pipeline", "reads")), ["loading", "reads"]),
        (Changes(select=("old-copies",)), ["copies"]),
        (Changes(ignore=("copies",)), ["loading", "reads"]),
        (Changes(select=("all",), ignore=("input pipeline",)), ["copies", "reads"]),
        (Changes(select=("warning",)), ["loading", "copies", "reads"]),
        (Changes(ignore=("all",)), []),
    ],
)
def test_rules_are_chosen_by_id_alias_category_and_trial(
    changes: Changes, chosen: list[str]
) -> None:
    assert ids(changes) == chosen


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            Changes(select=("loaading",)),
            "'loaading' is not a rule, category or severity. Did you mean loading",
        ),
        (Changes(ignore=("transfers",)), "Did you mean transfer"),
        (Changes(options={"read": {}}), "there is no rule 'read'. Did you mean reads"),
        (Changes(severities={"nothing-like-it": "info"}), "there is no rule 'nothing-like-it'"),
        (
            Changes(options={"reads": {"least_shar": 0.1}}),
            "reads has no option 'least_shar'. Did you mean least_share",
        ),
        (Changes(options={"reads": {"xyz": 1}}), "It has least_share, least_count, is_strict"),
    ],
)
def test_a_name_that_there_is_not_is_an_error_with_the_nearest(
    changes: Changes, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        selected_rules(changes, KNOWN)
    assert message in str(refused.value)


# Options


def test_options_are_given_to_the_rule_and_to_no_other() -> None:
    changes = Changes(options={"old-copies": {"least_share": 0.5, "is_strict": True}})
    chosen = {each.id: each.options for each in selected_rules(changes, KNOWN)}
    assert chosen["copies"] == Thresholds(least_share=0.5, is_strict=True)
    assert chosen["reads"] == Thresholds()


def test_options_by_the_old_and_the_new_name_are_all_given() -> None:
    changes = Changes(options={"old-copies": {"least_share": 0.5}, "copies": {"least_count": 9}})
    [chosen] = selected_rules(dataclasses.replace(changes, select=("copies",)), KNOWN)
    assert chosen.options == Thresholds(least_share=0.5, least_count=9)


def test_a_whole_number_is_a_number() -> None:
    [chosen] = selected_rules(
        Changes(select=("reads",), options={"reads": {"least_share": 1}}), KNOWN
    )
    assert repr(chosen.options.least_share) == "1.0"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("least_share", "much", "it must be a number"),
        ("least_share", True, "it must be a number"),
        ("least_share", 5.0, "it must be a fraction from 0 to 1: 5 % is 0.05"),
        ("least_share", -0.1, "must not be negative"),
        ("least_share", float("nan"), "must not be negative or infinite"),
        ("least_share", 10**400, "must not be negative or infinite"),
        ("least_count", 10**400, "must not be negative or infinite"),
        ("least_count", 2.5, "it must be a whole number"),
        ("least_count", True, "it must be a whole number"),
        ("is_strict", 1, "it must be true or false"),
    ],
)
def test_a_value_that_does_not_fit_is_an_error(name: str, value: Any, message: str) -> None:
    with pytest.raises(UsageError, match=f"^reads.{name} is .*"):
        selected_rules(Changes(options={"reads": {name: value}}), KNOWN)
    with pytest.raises(UsageError) as refused:
        selected_rules(Changes(options={"reads": {name: value}}), KNOWN)
    assert message in str(refused.value)


@pytest.mark.parametrize("own", available_rules(has_packages=False), ids=lambda each: each.id)
def test_every_option_of_every_rule_takes_its_own_default(own: Rule[Any]) -> None:
    values = dataclasses.asdict(own.options)
    assert selected_rules(Changes(select=(own.id,), options={own.id: values}), [own]) == (own,)


# Severities


def found(changes: Changes) -> list[tuple[str, Any]]:
    rules = [rule("a", Finding(message="m", severity="critical")), rule("b", Finding(message="m"))]
    outcomes = advise_trace_by(TRACE, rules, changes).outcomes
    return [(each.rule, each.severity) for each in outcomes]


def test_findings_are_chosen_by_severity() -> None:
    assert found(Changes()) == [("a", "critical"), ("b", "info")]
    assert found(Changes(select=("critical",))) == [("a", "critical")]
    assert found(Changes(ignore=("info",))) == [("a", "critical")]


def test_a_rule_can_be_given_another_severity() -> None:
    assert found(Changes(severities={"a": "info"})) == [("a", "info"), ("b", "info")]
    of_both = Changes(ignore=("info",), severities={"b": "warning", "a": "info"})
    assert found(of_both) == [("b", "warning")]


def test_the_verdict_goes_by_the_severity_that_was_given() -> None:
    waiting = dataclasses.replace(
        rule("a", claiming((0, 2_000_000), severity=None)), culprit="waiting"
    )
    assert "waiting alone costs 500–667 µs" in advise_trace_by(TRACE, [waiting]).worker.verdict
    verdict = advise_trace_by(TRACE, [waiting], Changes(severities={"a": "info"})).worker.verdict
    assert "waiting" not in verdict


def test_what_a_severity_leaves_out_is_no_rule_that_did_not_look() -> None:
    advice = advise_trace_by(TRACE, [rule("a"), rule("b")], Changes(select=("critical",)))
    assert [each.status for each in advice.outcomes] == ["passed", "passed"]
    assert advice.worker.standing is not None
    assert advice.worker.standing.state == "healthy"


def test_what_was_put_aside_is_told_where_nothing_else_was_found() -> None:
    aside = Changes(suppressions=(Suppression(rule="a", reason="r"),))
    costly = rule("a", claiming((0, 900_000), severity=None))
    worker = advise_trace_by(TRACE, [costly, rule("b")], aside).worker
    assert worker.standing is not None
    assert worker.standing.message == (
        "2 checks found nothing that costs 5 % or more. 1 more finding is suppressed."
    )
    alone = advise_trace_by(TRACE, [costly], aside).worker.standing
    assert alone is not None
    assert alone.state == "healthy"


def test_of_findings_that_are_told_alike_only_those_shown_are_in_the_budget() -> None:
    both = rule("a", claiming((0, 900_000), severity="critical"), claiming((900_000, 1_000_000)))
    advice = advise_trace_by(TRACE, [both], Changes(select=("critical",)))
    assert sum(line.recoverable_high_ns for line in advice.worker.budget) == 300_000


# Later goes before earlier


def test_what_is_said_later_goes_before_what_was_said_before() -> None:
    before = Changes(
        select=("all",),
        ignore=("reads",),
        preview=True,
        options={"copies": {"least_share": 0.1, "least_count": 9}},
        severities={"copies": "info"},
    )
    later = Changes(ignore=("loading",), options={"copies": {"least_share": 0.2}}, preview=False)
    both = before.then(later)
    assert both.ignore == ("reads", "loading")
    assert both.options == {"copies": {"least_share": 0.2, "least_count": 9}}
    assert (both.preview, both.select, both.severities) == (False, ("all",), {"copies": "info"})
    assert before.then(Changes()) == before
    assert before.then(Changes(select=("reads",))).ignore == (), "a new choice begins anew"


# Profiles


PROFILES = AdviceSettings(
    changes=Changes(ignore=("copies",)),
    profiles={
        "serving": Profile(runs=("serve*",), changes=Changes(ignore=("loading",))),
        "training": Profile(changes=Changes(ignore=("reads",))),
    },
)


@pytest.mark.parametrize(
    ("settings", "run", "is_training", "ignored"),
    [
        (PROFILES, "serve-7", False, ("copies", "loading")),
        (PROFILES, "serve-7", True, ("copies", "loading", "reads")),
        (PROFILES, "other", False, ("copies",)),
        (PROFILES, "other", True, ("copies", "reads")),
        (dataclasses.replace(PROFILES, profile="serving"), "other", True, ("copies", "loading")),
        (dataclasses.replace(PROFILES, profile="training"), "serve-7", False, ("copies", "reads")),
    ],
)
def test_profiles_are_for_runs_of_a_name_and_recordings_of_a_kind(
    settings: AdviceSettings,
    run: str,
    is_training: bool,  # noqa: FBT001 (a case)
    ignored: tuple[str, ...],
) -> None:
    assert settings.for_run(run).for_trace(is_training=is_training).ignore == ignored


def test_what_is_said_last_goes_before_profiles_too() -> None:
    last = PROFILES.then(Changes(select=("reads",), options={"reads": {"least_count": 1}}))
    serving = Profile(
        runs=("serve*",),
        changes=Changes(select=("all",), options={"reads": {"least_count": 9}}),
    )
    of_file = dataclasses.replace(PROFILES, profiles={"serving": serving})
    for settings in (last, of_file.then(last.changes)):
        changes = settings.for_run("serve-7").for_trace(is_training=True)
        assert changes.select == ("reads",)
        assert changes.options == {"reads": {"least_count": 1}}


# Suppressions


def outcome(name: str, fingerprint: str = "f", status: Any = "found") -> Outcome:
    return Outcome(
        rule=name,
        title="t",
        category="c",
        status=status,
        worker="w",
        span="1",
        fingerprint=fingerprint,
        severity="warning",
    )


def test_what_is_put_aside_stays_to_be_seen_with_reason_and_by_whom() -> None:
    known = Suppression(rule="a", reason="We know.")
    aside, other, passed = suppress(
        [outcome("a"), outcome("b"), outcome("a", status="passed")], [known], DAY
    )
    assert (aside.status, aside.reason, aside.suppressed_by) == (
        "suppressed",
        "We know.",
        "configuration",
    )
    assert aside.severity == "warning"
    assert (other.status, passed.status) == ("found", "passed")


def test_a_suppression_may_be_of_one_finding_and_until_a_day() -> None:
    one = Suppression(rule="a", reason="r", fingerprint="f")
    assert [each.status for each in suppress([outcome("a"), outcome("a", "g")], [one], DAY)] == [
        "suppressed",
        "found",
    ]
    for last, status in (("2026-06-01", "suppressed"), ("2026-05-31", "found")):
        until = Suppression(rule="a", reason="r", expires=last)
        assert [each.status for each in suppress([outcome("a")], [until], DAY)] == [status]


def test_a_suppression_may_name_a_rule_by_an_alias() -> None:
    renamed = dataclasses.replace(rule("new", Finding(message="m")), aliases=("old",))
    changes = Changes(suppressions=(Suppression(rule="old", reason="r"),))
    [told] = advise_trace_by(TRACE, [renamed], changes).outcomes
    assert (told.rule, told.status) == ("new", "suppressed")


def test_a_suppression_that_puts_nothing_aside_is_told() -> None:
    all_of_them = [
        Suppression(rule="not-asked", reason="nobody looked"),
        Suppression(rule="a", reason="used"),
        Suppression(rule="b", reason="gone"),
        Suppression(rule="a", reason="old", expires="2020-01-01"),
    ]
    outcomes = suppress([outcome("a"), outcome("b", status="passed")], all_of_them, DAY)
    assert unused_suppressions(all_of_them, outcomes, DAY) == (
        "The suppression of b (gone) suppresses nothing.",
        "The suppression of a expired on 2020-01-01.",
    )


def test_suppressions_are_for_runs_of_a_name() -> None:
    settings = AdviceSettings(
        changes=Changes(suppressions=(Suppression(rule="a", reason="r", runs="debug*"),))
    )
    assert len(settings.for_run("debug-1").changes.suppressions) == 1
    assert settings.for_run("main").changes.suppressions == ()
    of_kind = AdviceSettings(profiles={"training": Profile(changes=settings.changes)})
    for run, count in (("debug-1", 1), ("main", 0)):
        assert len(of_kind.for_run(run).for_trace(is_training=True).suppressions) == count


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        ({"ignore": {"a": "Accepted."}}, "suppressed", "Accepted."),
        ('{"ignore": {"a": "Accepted."}}', "suppressed", "Accepted."),
        ({"ignore": {"a": "  "}}, "found", None),
        ({"ignore": ["a"]}, "found", None),
        ("no JSON", "found", None),
        (7, "found", None),
    ],
)
def test_the_program_itself_can_put_a_rule_aside(said: Any, status: str, reason: Any) -> None:
    trace = trace_of([["user_annotation", "ProfilerStep#1", 0, 1000]], stepscope=said)
    advice = advise_trace_by(trace, [rule("a", claiming((0, 500_000), severity=None))])
    [told] = advice.outcomes
    assert (told.status, told.reason) == (status, reason)
    won = sum(line.recoverable_high_ns for line in advice.worker.budget)
    assert won == (0 if status == "suppressed" else 500_000)


# Files


FILE = """
select = ["all"]
ignore = ["copies"]
preview = true
gpus = 1024
price = 2

[rules.reads]
least_share = 0.2
severity = "info"

[profiles.serving]
runs = ["serve*"]
ignore = ["loading"]
gpus = 8

[[suppress]]
rule = "loading"
reason = "In memory."
runs = "debug*"
expires = "2027-01-31"
"""


def test_a_file_says_all_that_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "stepscope.toml"
    path.write_text(FILE)
    assert read_settings(path) == AdviceSettings(
        changes=Changes(
            select=("all",),
            ignore=("copies",),
            preview=True,
            options={"reads": {"least_share": 0.2}},
            severities={"reads": "info"},
            suppressions=(
                Suppression(
                    rule="loading", reason="In memory.", runs="debug*", expires="2027-01-31"
                ),
            ),
            gpus=1024,
            price=2.0,
        ),
        profiles={
            "serving": Profile(runs=("serve*",), changes=Changes(ignore=("loading",), gpus=8))
        },
    )


def test_pyproject_says_the_same_below_tool_stepscope(tmp_path: Path) -> None:
    own, project = tmp_path / "stepscope.toml", tmp_path / "pyproject.toml"
    own.write_text(FILE)
    lines = FILE.replace("[[suppress]]", "[[tool.stepscope.suppress]]")
    lines = lines.replace("[rules", "[tool.stepscope.rules")
    lines = lines.replace("[profiles", "[tool.stepscope.profiles")
    project.write_text(f"[project]\nname = 'x'\n[tool.stepscope]{lines}")
    assert read_settings(project) == read_settings(own)


def test_the_day_of_a_suppression_may_be_a_date_or_a_text_in_toml(tmp_path: Path) -> None:
    path = tmp_path / "stepscope.toml"
    for day in ("2027-01-31", "'2027-01-31'"):
        path.write_text(f"[[suppress]]\nrule = 'a'\nreason = 'b'\nexpires = {day}")
        assert read_settings(path).changes.suppressions[0].expires == "2027-01-31"


def test_the_nearest_file_counts(tmp_path: Path) -> None:
    below = tmp_path / "project" / "src"
    below.mkdir(parents=True)
    (tmp_path / "stepscope.toml").write_text("")
    assert nearest_file(below) == tmp_path / "stepscope.toml"
    (below.parent / "pyproject.toml").write_text("[tool.other]\n")
    assert nearest_file(below) == tmp_path / "stepscope.toml", "it says nothing of stepscope"
    (below.parent / "pyproject.toml").write_text("tool = 3\n")
    assert nearest_file(below) == tmp_path / "stepscope.toml", "that is no table"
    (below.parent / "pyproject.toml").write_text("[tool.stepscope]\n")
    assert nearest_file(below) == below.parent / "pyproject.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selcet_ = []", "unknown key 'selcet_'. Did you mean select?"),
        ("select = 'all'", "select: Expected `array`, got `str`"),
        (
            "[rules.reads]\nseverity = 'fatal'",
            "reads.severity is 'fatal': it must be critical or warning or info",
        ),
        ("[profiles.a]\nrun = []", "profiles[...]: unknown key 'run'. Did you mean runs"),
        ("[[suppress]]\nrule = 'a'", "Object missing required field `reason`"),
        (
            "[[suppress]]\nrule = 'a'\nreasn = 'b'\nreason = 'c'",
            "unknown key 'reasn'. Did you mean reason",
        ),
        ("profile = 'trainin'", "there is no profile 'trainin'. Did you mean training"),
        ("select = [", "is not valid TOML"),
        (f"select = {'[' * 5000}", "is not valid TOML"),
        ("gpus = 0", "gpus: Expected `int` >= 1"),
        ("gpus = 1.5", "gpus: Expected `int`, got `float`"),
        ("price = -1", "price: Expected `float` >= 0"),
        ("price = inf", "price: Expected `float` <= 1000000000.0"),
        ("price = nan", "price: Expected `float` >= 0"),
        ("price = 'much'", "price: Expected `float`, got `str`"),
        (f"[rules.reads]\nleast_count = {'9' * 5000}", "is not valid TOML"),
        ("[[suppress]]\nrule = 'a'\nreason = 'b'\nexpires = '31.1.2027'", "expires: "),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "stepscope.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_settings(path)
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{path}: ")


def test_a_byte_order_mark_is_no_text_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stepscope.toml"
    path.write_text("preview = true", encoding="utf-8-sig")
    assert read_settings(path) != AdviceSettings()


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read_settings(tmp_path / "none.toml")


# On the command line


def test_set_gives_options_as_toml_reads_them() -> None:
    changes = option_changes(
        [
            "reads.least_share=0.2",
            "reads.is_strict = true",
            "acme/own.words=plain text",
            "a.severity=info",
        ]
    )
    assert changes.options == {
        "reads": {"least_share": 0.2, "is_strict": True},
        "acme/own": {"words": "plain text"},
        "a": {},
    }
    assert changes.severities == {"a": "info"}


@pytest.mark.parametrize("text", ["reads", "reads=1", "reads.=1", ".x=1", ""])
def test_set_that_is_no_assignment_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"write it as rule\.option=value"):
        option_changes([text])
