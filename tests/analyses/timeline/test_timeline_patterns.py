"""What may be searched for: words, expressions and globs."""

import fnmatch
import time

import pytest

from stepscope.analyses.timeline import search as search_patterns
from stepscope.analyses.timeline.search import predicate, time_limit
from stepscope.base.errors import UsageError

NAMES = ("aten::mm", "ampere_bf16_s16816gemm_bf16_128x64", "nn.Module: Linear_3", "Straße")


def found(text: str, *, is_exact: bool = False, is_expression: bool = True) -> list[str]:
    is_found = predicate(
        text, is_exact=is_exact, is_expression=is_expression, check_time=time_limit()
    )
    return [name for name in NAMES if is_found(name)]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("^aten::(mm|bmm)$", ["aten::mm"]),
        (r"gemm.*\d+x\d+", ["ampere_bf16_s16816gemm_bf16_128x64"]),
        (r"Linear_[0-9]{1,3}$", ["nn.Module: Linear_3"]),
        ("(?:bf16|fp16).*128", ["ampere_bf16_s16816gemm_bf16_128x64"]),
        ("LINEAR", ["nn.Module: Linear_3"]),
        ("s?gemm", ["ampere_bf16_s16816gemm_bf16_128x64"]),
        ("", list(NAMES)),
    ],
)
def test_expressions_that_people_write_are_understood(expression: str, names: list[str]) -> None:
    assert found(expression) == names


def test_letters_differ_only_where_that_is_asked_for() -> None:
    assert found("linear", is_exact=True) == []
    assert found("LINEAR", is_expression=False) == ["nn.Module: Linear_3"]
    assert found("LINEAR", is_exact=True, is_expression=False) == []
    assert found("STRASSE", is_expression=False) == ["Straße"]


def test_signs_of_expressions_are_plain_letters_in_words() -> None:
    assert found("aten::(", is_expression=False) == []
    assert found("n.M", is_expression=False) == ["nn.Module: Linear_3"]


def test_a_search_ends_at_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_patterns, "MOST_SECONDS", -1.0)
    is_found = predicate("a", is_exact=True, is_expression=True, check_time=time_limit())

    with pytest.raises(UsageError, match="make the expression simpler"):
        is_found("aten::mm")


@pytest.mark.parametrize("pattern", ["*a" * 100 + "*b", "a*" * 200, "*?" * 100 + "b"])
def test_globs_take_linear_time(pattern: str) -> None:
    """Those of `whatif` and of settings: Python matches each `*` once, without going back."""
    start = time.process_time()

    fnmatch.fnmatchcase("a" * 10_000 + "c", pattern)

    assert time.process_time() - start < 5
