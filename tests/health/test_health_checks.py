"""Each check of a recording against its own cases, `tests/health/<name>.yml`.

A case is a sentence with a recording and every item that the check yields for it:

    trace       rows (see `tracebuild`)
    repeat      rows that occur again and again: `rows`, `times`, and `every` so many microseconds;
                each time their correlations are 1000 higher
    metadata    top-level keys of the file
    execution_trace  fields of `ExecutionTraceLink`: an execution trace in its folder
    text        the whole file instead, where it is no valid JSON
    items       what is found: fields of `HealthItem`, `of` for `of_count`, `says` parts of the
                message, `examples` the texts of all examples

Fields that a case leaves out are not compared, but `kind`, `severity` and `count` must stand there.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tracebuild
from loading import columns_of, document_at
from stepscope.analyses import health
from stepscope.analyses.health import damaged_parts, with_effect
from stepscope.base.report import HealthItem
from stepscope.ingest.incidents import MEANINGS
from stepscope.model.execution_trace_link import ExecutionTraceLink
from stepscope.model.trace import Trace, trace_from_columns

HERE = Path(__file__).parent
CHECKS = dict(health.all_checks())
NEEDED = {"kind", "severity", "count"}
FIELDS = NEEDED | {"of", "nature", "effect", "message", "says", "action", "remedy", "examples"}
Case = Mapping[str, Any]


def documents() -> dict[str, dict[str, Case]]:
    return {path.stem: document_at(path) for path in sorted(HERE.glob("*.yml"))}


def cases() -> Iterator[Any]:
    for stem, document in documents().items():
        for name, case in document.items():
            yield pytest.param(stem, case, id=f"{stem}: {name}")


def text_of(case: Case) -> str:
    if "text" in case:
        return str(case["text"])
    rows = [*case.get("trace", ()), *repeated(case.get("repeat"))]
    return json.dumps(tracebuild.document(rows=rows, metadata=case.get("metadata")), default=str)


def repeated(repeat: Mapping[str, Any] | None) -> Iterator[list[Any]]:
    for time in range(repeat["times"] if repeat else 0):
        for category, name, start, *rest in (repeat or {})["rows"]:
            yield [category, name, start + time * (repeat or {})["every"], *shifted(rest, time)]


def shifted(rest: list[Any], time: int) -> Iterator[Any]:
    for part in rest:
        if isinstance(part, dict) and "correlation" in part:
            yield {**part, "correlation": part["correlation"] + 1000 * time}
        else:
            yield part


def found(stem: str, case: Case) -> tuple[Trace, list[HealthItem]]:
    trace = trace_from_columns(columns_of(text_of(case)), worker="worker")
    if link := case.get("execution_trace"):
        trace = replace(trace, execution_trace=ExecutionTraceLink(**link))
    return trace, [with_effect(item) for item in CHECKS[stem].check(trace)]


@pytest.mark.parametrize(("stem", "case"), list(cases()))
def test_a_case_has_the_items_that_it_states(stem: str, case: Case) -> None:
    _, items = found(stem, case)
    expected = case["items"]
    assert [item.kind for item in items] == [each["kind"] for each in expected]
    for item, each in zip(items, expected, strict=True):
        assert NEEDED <= each.keys() <= FIELDS
        for part in each.get("says", ()):
            assert part in item.message
        values = {
            **{name: getattr(item, name, None) for name in FIELDS},
            "of": item.of_count,
            "examples": [example.text for example in item.examples],
        }
        stated = {name: value for name, value in each.items() if name != "says"}
        assert {name: values[name] for name in stated} == stated


@pytest.mark.parametrize(("stem", "case"), list(cases()))
def test_an_example_is_where_it_says(stem: str, case: Case) -> None:
    text = text_of(case)
    trace, items = found(stem, case)
    for item in items:
        assert len(item.examples) <= min(3, item.count)
        for example in item.examples:
            if example.start_ns is None:
                assert 0 <= example.offset_bytes <= len(text.encode())
                continue
            event, _ = json.JSONDecoder().raw_decode(text[example.offset_bytes :])
            assert example.text.startswith(f"{event['name'][:59]}")
            began_ns = round(float(event["ts"]) * 1000) - trace.columns.origin_ns
            assert example.start_ns == began_ns


@pytest.mark.parametrize(("stem", "case"), list(cases()))
def test_an_item_has_words_for_people(stem: str, case: Case) -> None:
    for item in found(stem, case)[1]:
        for words in (item.message, item.action):
            assert not words.endswith("."), "other words follow"
            assert "  " not in words
        assert item.message[:1] not in {"", " "}
        assert (item.nature == "gap") <= bool(item.remedy or item.action)


@pytest.mark.parametrize("stem", sorted(CHECKS))
def test_a_check_has_cases_in_which_it_speaks_and_is_silent(stem: str) -> None:
    assert (HERE / f"{stem}.yml").exists(), f"check {stem} has no cases: write {stem}.yml"
    stated = [case["items"] for case in documents()[stem].values()]
    assert [] in stated, "no case in which it is silent"
    kinds = {item["kind"] for items in stated for item in items}
    if stem != "incidents":  # the reader's own tests have all of its kinds
        assert kinds == set(CHECKS[stem].damages), "each kind that it declares has a case"
    assert any("message" in item for items in stated for item in items)


def test_no_case_is_left_of_a_check_that_is_gone() -> None:
    assert set(documents()) == set(CHECKS)


def test_the_table_knows_everything_that_a_reader_reports() -> None:
    assert set(CHECKS["incidents"].damages) == set(MEANINGS)


def test_the_table_has_each_kind_once() -> None:
    declared = [kind for check in CHECKS.values() for kind in check.damages]
    assert len(declared) == len(set(declared))
    assert set(declared) < set(damaged_parts())
