"""Each rule on real recordings: what its `real:` says, in `tests/rules/<name>.yml`.

    real:
      resnet50_num_workers_0/worker0: {severity: critical, says: "num_workers=0", share: [0.3, 0.4]}
      h100/Qwen: silent

A key is a part of the path that one recording has alone: of the shared traces (below
`shared/traces`), or of our own (`sample_logs/...`). `found`, `rejected`, `cannot-tell` and
`not-applicable` are the rule's answers; `silent` is none of `found`. `share` bounds what can be
saved of the decisive step.
"""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from loading import SAMPLE_LOGS, SHARED_TRACES, document_at, shared_trace_names, trace_at
from stepscope.advice import rule_outcomes
from stepscope.base.findings import Outcome
from stepscope.rules import all_rules

HERE = Path(__file__).parent
RULES = {rule.id: rule for rule in all_rules()}


def recordings() -> dict[str, Path]:
    known = {name: SHARED_TRACES / name for name in shared_trace_names()}
    for path in sorted(SAMPLE_LOGS.rglob("*.json.gz")):
        known[f"sample_logs/{path.relative_to(SAMPLE_LOGS)}"] = path
    return known


def expectations() -> dict[str, list[tuple[str, Any]]]:
    """Recordings with what each rule is expected to say of them; so each is read once."""
    expected: dict[str, list[tuple[str, Any]]] = {}
    known = recordings()
    for path in sorted(HERE.glob("*.yml")):
        document = document_at(path)
        for part, answer in (document.get("real") or {}).items():
            fits = [name for name in known if part in name]
            fits = [name for name in fits if f"/{part}" in f"/{name}"] or fits  # a whole folder
            if not fits and not part.startswith("sample_logs") and not SHARED_TRACES.exists():
                continue
            assert len(fits) == 1, f"{path.name}: {part} fits {fits}"
            expected.setdefault(fits[0], []).append((document["rule"], answer))
    return expected


def cases() -> Iterator[Any]:
    for name, answers in sorted(expectations().items()):
        for rule, answer in answers:
            yield pytest.param(name, rule, answer, id=f"{name}: {rule}")


@lru_cache(maxsize=1)
def outcomes(name: str) -> dict[str, list[Outcome]]:
    said: dict[str, list[Outcome]] = {}
    for outcome in rule_outcomes(trace_at(recordings()[name]), list(RULES.values())):
        said.setdefault(outcome.rule, []).append(outcome)
    return said


@pytest.mark.parametrize(("name", "rule", "expected"), list(cases()))
def test_a_rule_says_of_a_real_recording_what_is_true(name: str, rule: str, expected: Any) -> None:
    said = outcomes(name)[rule]
    statuses = {outcome.status for outcome in said}
    if expected == "silent":
        assert "found" not in statuses, said
        assert "failed" not in statuses, said
        return
    if isinstance(expected, str):
        assert expected in statuses, said
        return
    [found] = [outcome for outcome in said if outcome.status == "found"][:1]
    assert expected.keys() <= {"severity", "says", "share", "confidence"}
    assert found.severity == expected.get("severity", found.severity), found
    assert found.confidence == expected.get("confidence", found.confidence)
    assert expected.get("says", "") in found.message
    if "share" in expected:
        low, high = expected["share"]
        assert found.claim is not None
        assert low <= found.claim.decisive.share <= high, found.claim
