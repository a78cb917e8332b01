"""What may be searched for: words, and expressions that cannot take for ever."""

import time

import pytest

from stepscope.analyses.timeline import search as search_patterns
from stepscope.analyses.timeline.search import MOST_SECONDS, matches, predicate
from stepscope.base.errors import UsageError

NAMES = ("aten::mm", "ampere_bf16_s16816gemm_bf16_128x64", "nn.Module: Linear_3", "Straße")


def found(text: str, *, is_exact: bool = False, is_expression: bool = True) -> list[str]:
    is_found = predicate(text, is_exact=is_exact, is_expression=is_expression)
    return [name for name in NAMES if is_found(name)]


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("^aten::(mm|bmm)$", ["aten::mm"]),
        (r"gemm.*\d+x\d+", ["ampere_bf16_s16816gemm_bf16_128x64"]),
        (r"Linear_[0-9]{1,3}$", ["nn.Module: Linear_3"]),
        ("(?:bf16|fp16).*128", ["ampere_bf16_s16816gemm_bf16_128x64"]),
        ("LINEAR", ["nn.Module: Linear_3"]),
        ("(?=aten)", ["aten::mm"]),
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


@pytest.mark.parametrize("expression", ["a*a*a*c", "a*a*c", "[ab]+[ab]+c", "a*c"])
def test_what_is_let_in_ends_on_the_longest_of_names(expression: str) -> None:
    is_found = predicate(expression, is_exact=True, is_expression=True)

    start = time.process_time()
    is_found("a" * 100_000)

    assert time.process_time() - start < 10


def test_names_are_asked_for_so_long_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_patterns, "MOST_SECONDS", -1.0)

    with pytest.raises(UsageError, match="make it simpler"):
        matches(predicate("a", is_exact=True, is_expression=True), NAMES)
    assert MOST_SECONDS > 0
