"""Each rule against its own cases, `tests/rules/<name>.yml`, and the laws that all rules keep.

A case is a sentence with a trace (`trace:` rows, `schedule:`, or both; see `tracebuild`) and the
whole answer: `finds:` every finding, `rejects:` what is acquitted, `not_applicable:` a part of the
reason, or `cannot_tell:` the same with `remedy:`, a part of the code that would record it. A case
of a rule over a run has `ranks:`, a list of such traces, or `plan:` (see `rankbuild`). A finding
says

    severity, confidence   as they are shown
    saves_ns               [gross, least net, most net] a step; left out where nothing is claimed
    evidence               label: value, for the labels that matter; null: there is no such label
    message                the whole sentence; or `says:` parts of it
    fix_says, fix_omits    parts of the fix's words and code, and what must not be in them
    effort, risk, tables   where the case is about them; of tables, their labels
    rows                   label of a table: its rows, each a list of cells
    links                  label of a table: where its rows lead; null: nowhere
    lines                  the first of the user's lines: `train.py:12`
    events                 the first of the events: [name, what is said of it]
    method                 the whole sentences on how the saving was reckoned

`settings:` are those of the run, as the trace handler recorded them (`analyses/settings`).
`dialect: generic` has the same events told by a device of which no more is known than that.
`near: least_share` says that the trace lies close to that option's threshold: the answer must be
another one when the threshold is moved by a tenth (by one, where it is a small number).
"""

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import loading
import rankbuild
import tracebuild
from rules.kept import RANKS, SAID, TRACES, documents
from stepscope import dialects, rules
from stepscope.advice import advise, rule_outcomes
from stepscope.analyses.core.window import window
from stepscope.base.findings import Outcome
from stepscope.model.trace import Run, Trace
from stepscope.rules import Rule

HERE = Path(__file__).parent
PACKAGE = Path(rules.__path__[0]).parent
RULES = {rule.id.replace("-", "_"): rule for rule in rules.all_rules()}
ABOUT_THE_RULE = (
    "rule",
    "real",
    "samples",
    "never_not_applicable",
    "never_in_2021",
    "never_on_amd",
)
"""Keys of a document that are no cases; `test_real_traces.py` reads `real`."""
SMALL = 20


def cases_of(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: case for name, case in document.items() if name not in ABOUT_THE_RULE}


def cases() -> Iterator[Any]:
    for stem, document in documents().items():
        for name, case in cases_of(document).items():
            yield pytest.param(stem, case, id=f"{stem}: {name}")


def trace_of(case: dict[str, Any]) -> Trace:
    """Return a case's trace, which is made once: analyses keep their results with it."""
    if id(case) not in TRACES:
        TRACES[id(case)] = (case, _trace_of(case))
    return TRACES[id(case)][1]


def _trace_of(case: dict[str, Any]) -> Trace:
    document = tracebuild.document(
        rows=case.get("trace", ()),
        schedule=case.get("schedule"),
        metadata=case.get("metadata"),
        settings=case.get("settings"),
    )
    trace = loading.trace_of(document=document)
    if "dialect" not in case:
        return trace
    dialect = dialects.all_dialects()[case["dialect"]]
    return dataclasses.replace(trace, source=dataclasses.replace(trace.source, dialect=dialect))


def outcomes(rule: Rule[Any], trace: Trace) -> list[Outcome]:
    return rule_outcomes(trace, [rule])


def answers(rule: Rule[Any], case: dict[str, Any]) -> list[Outcome]:
    """Return what a rule says of a case, or of the ranks of one."""
    if rule.scope == "recording":
        return outcomes(rule, trace_of(case))
    report = advise(Run(name="run", workers=tuple(ranks_of(case))), [rule])
    return [each for each in report.outcomes if not each.trace]


def said_of(stem: str, case: dict[str, Any]) -> list[Outcome]:
    """Return what a rule, as it is, says of a case, which is asked once."""
    if id(case) not in SAID:
        SAID[id(case)] = (case, answers(RULES[stem], case))
    return SAID[id(case)][1]


def ranks_of(case: dict[str, Any]) -> list[Trace]:
    """Return the recordings of a case's ranks, of which `rankbuild` makes those of a `plan:`."""
    if id(case) not in RANKS:
        plan = case.get("plan")
        found = planned(plan) if plan else [trace_of(rank) for rank in case["ranks"]]
        named = [
            dataclasses.replace(trace, worker=f"rank{number}", id=str(number))
            for number, trace in enumerate(found)
        ]
        RANKS[id(case)] = (case, named)
    return RANKS[id(case)][1]


def planned(plan: dict[str, Any]) -> list[Trace]:
    size = plan["world_size"]
    everybody = [rankbuild.Group(name="all", ranks=tuple(range(size)))]
    truth = rankbuild.run(rankbuild.Plan(**{"groups": everybody, "jitter": 0.0, **plan}))
    return [loading.trace_of(document=rankbuild.document(truth, rank)) for rank in range(size)]


@pytest.mark.frames
@pytest.mark.parametrize(("stem", "case"), list(cases()))
def test_a_case_has_the_answer_that_it_states(stem: str, case: dict[str, Any]) -> None:
    check_answer(said_of(stem, case), case)


def check_case(rule: Rule[Any], case: dict[str, Any]) -> None:
    check_answer(answers(rule, case), case)


def check_answer(said: list[Outcome], case: dict[str, Any]) -> None:
    for key, status in (("not_applicable", "not-applicable"), ("cannot_tell", "cannot-tell")):
        if key in case:
            [outcome] = said
            assert outcome.status == status, outcome
            assert case[key] in (outcome.reason or "")
            assert case.get("remedy", "") in (outcome.remedy or "")
            assert bool(outcome.remedy) == ("remedy" in case)
            return
    finds, rejects = case.get("finds", []), case.get("rejects", [])
    found = [outcome for outcome in said if outcome.status == "found"]
    rejected = [outcome for outcome in said if outcome.status == "rejected"]
    assert (len(found), len(rejected)) == (len(finds), len(rejects)), said
    others = [outcome.status for outcome in said if outcome not in found + rejected]
    assert others == ([] if found or rejected else ["passed"]), said
    assert "finds" in case or rejects, "a case says what is found, or that nothing is"
    for outcome, expected in zip(found, finds, strict=True):
        check_finding(outcome, expected)
    for outcome, expected in zip(rejected, rejects, strict=True):
        known = {"message", "says", "evidence", "rows", "links", "events"}
        assert expected.keys() <= known, expected.keys()
        check_words(outcome, expected)
        check_what_is_shown(outcome, expected)


def check_finding(outcome: Outcome, expected: dict[str, Any]) -> None:
    known = {"severity", "confidence", "saves_ns", "evidence", "message", "says"}
    known |= {"fix_says", "fix_omits", "effort", "risk", "tables", "method"}
    known |= {"rows", "links", "lines", "events"}
    assert expected.keys() <= known, expected.keys()
    assert (outcome.severity, outcome.confidence) == (expected["severity"], expected["confidence"])
    claim = outcome.claim
    saved = claim and [claim.high_ns, claim.net_low_ns, claim.net_high_ns]
    assert saved == expected.get("saves_ns")
    assert "method" not in expected or (claim and claim.method == expected["method"])
    check_words(outcome, expected)
    assert outcome.effort == expected.get("effort", outcome.effort)
    assert outcome.risk == expected.get("risk", outcome.risk)
    tables = [table.label for table in outcome.tables]
    assert tables == expected.get("tables", tables)
    check_what_is_shown(outcome, expected)
    fix = outcome.fix
    assert fix is not None
    words = "\n".join((fix.summary, fix.code, fix.verify, *fix.caveats))
    for part in expected.get("fix_says", ()):
        assert part in words
    for part in expected.get("fix_omits", ()):
        assert part not in words


def check_words(outcome: Outcome, expected: dict[str, Any]) -> None:
    values = {evidence.label: evidence.value for evidence in outcome.evidence}
    for label, value in expected.get("evidence", {}).items():
        if value is None:
            assert label not in values, (label, values)
            continue
        assert label in values, (label, values)
        assert values[label] == about(value), label
    if "message" in expected:
        assert outcome.message == expected["message"]
    for part in expected.get("says", ()):
        assert part in outcome.message


def about(value: Any) -> Any:
    return pytest.approx(value, rel=1e-3) if isinstance(value, int | float) else value


def check_what_is_shown(outcome: Outcome, expected: dict[str, Any]) -> None:
    tables = {table.label: table.rows for table in outcome.tables}
    for label, rows in expected.get("rows", {}).items():
        assert [list(row.cells) for row in tables[label]] == [
            [about(x) for x in row] for row in rows
        ]
    for label, links in expected.get("links", {}).items():
        assert [row.link and msgspec.to_builtins(row.link) for row in tables[label]] == links
    lines = [f"{line.path}:{line.line}" for line in outcome.locations]
    assert lines[: len(expected.get("lines", ()))] == expected.get("lines", [])
    events = [[event.name, event.detail] for event in outcome.events]
    assert events[: len(expected.get("events", ()))] == expected.get("events", [])


def near_cases() -> Iterator[Any]:
    for stem, document in documents().items():
        for name, case in cases_of(document).items():
            if "near" in case:
                yield pytest.param(stem, case, id=f"{stem}: {name}")


@pytest.mark.parametrize(("stem", "case"), list(near_cases()))
def test_a_case_near_a_threshold_turns_over_when_it_moves(stem: str, case: dict[str, Any]) -> None:
    rule = RULES[stem]
    answer = answer_of(rule, case)
    moved = [
        answer_of(dataclasses.replace(rule, options=options), case)
        for options in moved_options(rule.options, case["near"])
    ]
    assert any(each != answer for each in moved)


def answer_of(rule: Rule[Any], case: dict[str, Any]) -> object:
    return [
        (each.status, each.severity, each.confidence, each.claim is None, each.fix, each.message)
        for each in answers(rule, case)
    ]


def moved_options(options: Any, name: str) -> Iterator[Any]:
    value = getattr(options, name)
    for factor in (0.9, 1.1):
        step = -1 if factor < 1 else 1
        is_small = isinstance(value, int) and value < SMALL
        moved = value + step if is_small else type(value)(value * factor)
        yield dataclasses.replace(options, **{name: moved})


# Completeness


@pytest.mark.parametrize("stem", sorted(RULES))
def test_a_rule_has_cases_in_which_it_fires_is_silent_and_does_not_apply(stem: str) -> None:
    path = HERE / f"{stem}.yml"
    assert path.exists(), f"rule {stem} has no cases: write tests/rules/{stem}.yml"
    document = loading.document_at(path)
    assert document["rule"] == RULES[stem].id
    found = cases_of(document).values()
    assert any(case.get("finds") for case in found), "no case in which it fires"
    assert any(case.get("finds") == [] for case in found), "no case in which it stays silent"
    declared = "never_not_applicable" in document
    assert declared != any("not_applicable" in case or "cannot_tell" in case for case in found)
    assert any("message" in finding for case in found for finding in case.get("finds") or ()), (
        "no case that states the whole message"
    )


@pytest.mark.parametrize("stem", sorted(RULES))
def test_every_threshold_has_a_case_on_each_side(stem: str) -> None:
    near = cases_of(documents()[stem])
    for field in dataclasses.fields(RULES[stem].options):
        if not field.metadata["is_threshold"]:
            continue
        beside = [case for case in near.values() if case.get("near") == field.name]
        assert len(beside) >= 2, f"{stem}: {field.name} needs a case on each side"
        keys = ("finds", "rejects", "not_applicable", "cannot_tell")
        said = {json.dumps([case.get(key) for key in keys]) for case in beside}
        assert len(said) > 1, f"{stem}: {field.name} has the same answer on both sides"


@pytest.mark.parametrize("stem", sorted(RULES))
def test_a_rule_fires_on_todays_format_on_that_of_2021_and_on_amd(stem: str) -> None:
    document = documents()[stem]
    firing = [case for case in cases_of(document).values() if case.get("finds")]
    machines = {machine_of(case) for case in firing}
    assert machines - {"v100-2021", "mi250"}
    assert ("v100-2021" in machines) != ("never_in_2021" in document)
    assert ("mi250" in machines) != ("never_on_amd" in document)


def machine_of(case: dict[str, Any]) -> str:
    ranks = case.get("ranks") or [case]
    schedule = ranks[0].get("schedule")
    return schedule.get("machine", "h100") if isinstance(schedule, dict) else "h100"


def test_no_case_is_left_of_a_rule_that_is_gone() -> None:
    assert set(documents()) == set(RULES)


# Laws of all rules


@pytest.mark.parametrize("rule", RULES.values(), ids=sorted(RULES))
def test_a_rule_says_all_that_its_card_shows(rule: Rule[Any]) -> None:
    words = (rule.why, rule.detects, rule.saving, rule.fix.summary, *rule.silent)
    for text in (rule.title, rule.category, rule.origin, rule.since, *words):
        assert text.strip()
    for state in (rule.title, rule.passed):
        assert state, "title is the bad state, passed the good one"
        assert not state.endswith(".")
    names = ("title", "passed", "category", "why", "detects", "saving")
    left = [name for name in names if "TODO" in getattr(rule, name)]
    left += ["silent"] * any("TODO" in text for text in rule.silent)
    left += ["fix"] * ("TODO" in rule.fix.summary)
    assert not left, f"replace TODO in: {', '.join(left)}"
    for text in words:
        assert text.endswith((".", "?", ")")), text
    assert (rule.check is None) != (rule.check_run is None)
    assert rule.links
    for link in rule.links:
        assert link.startswith("https://"), link


@pytest.mark.parametrize("stem", sorted(RULES))
def test_a_rule_is_named_as_its_file(stem: str) -> None:
    assert (PACKAGE / "rules" / f"{stem}.py").exists()
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", RULES[stem].id)


@pytest.mark.parametrize("stem", sorted(RULES))
def test_options_are_frozen_defaulted_and_explained(stem: str) -> None:
    options = RULES[stem].options
    assert dataclasses.is_dataclass(options)
    assert type(options).__doc__
    fields = dataclasses.fields(options)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(options, fields[0].name if fields else "any", 0)
    for field in fields:
        assert isinstance(field.default, bool | int | float | str)
        for words in ("meaning", "origin"):
            if words == "meaning" or field.metadata["is_threshold"]:
                assert field.metadata[words].strip(), f"{stem}: {field.name} has no {words}"


def test_claims_of_special_causes_come_before_those_of_general_ones() -> None:
    order = rules.claim_order(rules.all_rules())
    for special, general in (
        ("dataloader-no-workers", "dataloader-bound"),
        ("pageable-h2d-copy", "exposed-h2d-copy"),
        ("host-device-pingpong", "blocking-d2h-copy"),
        ("item-sync", "launch-bound"),
        ("gpu-idle-gap", "launch-bound"),
    ):
        assert order[special] < order[general]
    symptoms = {rule.id for rule in rules.all_rules() if rule.is_symptom}
    assert symptoms == set(sorted(order, key=order.__getitem__)[-len(symptoms) :])


def test_two_rules_keep_their_order_where_the_rules_between_them_were_not_run() -> None:
    some = (RULES["dataloader_bound"], RULES["dataloader_no_workers"])
    order = rules.claim_order(some)
    assert order["dataloader-no-workers"] < order["dataloader-bound"]


@pytest.mark.parametrize("rule", RULES.values(), ids=sorted(RULES))
def test_a_rule_comes_after_rules_of_its_own_stage(rule: Rule[Any]) -> None:
    stages = {each.id: each.stage for each in RULES.values()}
    assert rule.stage in {*rules.Priority}, "name a stage of rules.Priority, such as `runtime`"
    for special in rule.after:
        assert stages.get(special) == rule.stage, f"{special} is no rule of {rule.priority!r}"


MARKUP = re.compile(r"</?[a-zA-Z][^>]*>|&[a-z]+;|</")


@pytest.mark.parametrize(("stem", "case"), list(cases()))
def test_a_finding_is_words_and_numbers_never_markup(stem: str, case: dict[str, Any]) -> None:
    for outcome in said_of(stem, case):
        evidence = [text for each in outcome.evidence for text in (each.label, str(each.value))]
        assert all(each.value is not None for each in outcome.evidence), "unknown is left out"
        for text in (outcome.title, outcome.message, outcome.why, outcome.reason or "", *evidence):
            assert not MARKUP.search(text), text
        if outcome.status == "found":
            assert outcome.message.endswith(".")
            assert "  " not in outcome.message
            assert outcome.fix is not None
            assert outcome.fix.verify, "a finding says how to see that its fix worked"


@pytest.mark.parametrize(("stem", "case"), list(cases()))
def test_a_finding_promises_no_more_than_the_step(stem: str, case: dict[str, Any]) -> None:
    rule = RULES[stem]
    traces = ranks_of(case) if rule.scope == "run" else [trace_of(case)]
    longest_ns = max(window(trace).per_step(window(trace).duration_ns) for trace in traces)
    promised = [outcome.claim for outcome in said_of(stem, case) if outcome.claim]
    assert sum(claim.net_high_ns for claim in promised) <= longest_ns + len(promised)
    for claim in promised:
        assert 0 <= claim.net_low_ns <= claim.net_high_ns <= claim.high_ns <= longest_ns + 1
        assert claim.method.endswith("."), "it says how it was reckoned"
        assert not (rule.is_symptom and claim.net_low_ns), "a symptom is sure of no saving"


def test_only_the_dialects_name_a_vendor() -> None:
    vendors = {each.name for each in dialects.all_dialects().values()} - {"cpu", "generic"}
    words = "|".join(sorted(vendors | {"nvidia", "amd"}))
    named = re.compile(
        rf"dialect\.name\b|dialect\.vendor\s*[=!]=|[=!]=\s*[\"'](?:{words})[\"']", re.IGNORECASE
    )
    for folder in ("rules", "analyses"):
        for path in (PACKAGE / folder).rglob("*.py"):
            hits = [line for line in path.read_text().splitlines() if named.search(line)]
            assert not hits, f"{path.name}: {hits}"
