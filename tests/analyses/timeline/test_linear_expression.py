"""Expressions give Python's results, in time linear in the text."""

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.analyses.timeline import linear_expression
from stepscope.analyses.timeline.linear_expression import LinearExpression
from stepscope.base.errors import UsageError

ATOMS = ("a", "b", "A", ".", r"\n", "é", "ß", "_", " ", "1", r"\d", r"\W", r"\s", "[ab]", "[^a]",
         r"[^\w1]", "[a-c]", "^", "$", r"\b", r"\B", r"\A", r"\Z", "")  # fmt: skip
REPEATS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{,3}")


def _larger(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(part, part).map("".join),
        st.tuples(part, part).map(lambda parts: f"(?:{parts[0]}|{parts[1]})"),
        st.tuples(part, st.sampled_from(REPEATS)).map(lambda parts: f"(?:{parts[0]}){parts[1]}"),
        st.tuples(st.sampled_from(("", "?s:", "?m:", "?i:", "?-i:")), part).map(
            lambda parts: f"({parts[0]}{parts[1]})"
        ),
    )


EXPRESSIONS = st.tuples(
    st.sampled_from(("", "(?a)", "(?m)")),
    st.recursive(st.sampled_from(ATOMS), _larger, max_leaves=8),
).map("".join)
TEXTS = st.text(st.sampled_from("abcAéßÉ_1 \n-"), min_size=1, max_size=8)


def is_in(expression: str, text: str, *, is_exact: bool = True) -> bool:
    return LinearExpression(expression, is_exact=is_exact).is_in(text, lambda: None)


@given(
    expression=EXPRESSIONS, texts=st.lists(TEXTS, min_size=1, max_size=5), is_exact=st.booleans()
)
def test_results_are_those_of_re(expression: str, texts: list[str], is_exact: bool) -> None:  # noqa: FBT001
    compiled = re.compile(expression, 0 if is_exact else re.IGNORECASE)
    linear = LinearExpression(expression, is_exact=is_exact)
    for text in texts:
        expected = compiled.search(text) is not None
        assert linear.is_in(text, lambda: None) is expected, (expression, text)


@pytest.mark.parametrize(
    "expression", ["", "^$", "a*", r"\b", "a", r"\Z", "(?m)$", "(?x) a * # any"]
)
def test_the_empty_text_is_one_too(expression: str) -> None:
    assert is_in(expression, "") is (re.search(expression, "") is not None)


def test_cached_states_are_bounded_and_forgetting_them_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(linear_expression, "MOST_CACHED", 10)
    expression = LinearExpression("(?:a|b)*c[^a]{3}b$", is_exact=True)
    text = "abcab" * 50 + "acxyzb"
    assert expression.is_in(text, lambda: None)
    assert expression._cached < 10 + linear_expression.MOST_NODES  # noqa: SLF001
    assert not expression.is_in(text + "a", lambda: None)


@pytest.mark.parametrize(
    "expression",
    ["a?" * 13 + "a*a*a*b", "(a+)+$b", "(?:a|aa)+$b", "(.*)*x", ".*.*.*.*x", "(a?){200}b"],
)
def test_time_is_linear_in_the_text(expression: str) -> None:
    """Python's engine would take days; a state is computed once, however long the text."""
    start = time.process_time()
    counted: list[int] = []
    assert not LinearExpression(expression, is_exact=True).is_in(
        "a" * 100_000, lambda: counted.append(1)
    )
    assert len(counted) < 500
    assert time.process_time() - start < 10


def test_a_state_is_computed_per_character_at_most() -> None:
    """The states of these are all texts of twelve letters."""
    expression = LinearExpression("a[ab]{12}c", is_exact=True)
    text = f"{0x9E3779B97F4A7C15F39CC0605CEDC834:b}".replace("0", "a").replace("1", "b") * 20
    counted: list[int] = []
    assert not expression.is_in(text, lambda: counted.append(1))
    assert len(counted) <= len(text) + 2


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("(?=aten)", "look-ahead"),
        ("(?<=a)b", "look-behind"),
        ("(?!nccl)", "negative look-ahead"),
        ("(?!)", "look-ahead"),
        (r"(a)\1", "references to groups"),
        ("(a)?(?(1)b|c)", "conditions on groups"),
        ("(?>a*)b", "atomic groups"),
        ("a*+b", "possessive repeats"),
        ("((a?){25}){25}", "1000 characters"),
        ("(?:){1000000000}a{1000000000}", "1000 characters"),
        ("(", "no regular expression"),
        ("a{1,9999999999}", "no regular expression"),
        ("(" * 200 + ")" * 200 + "(?L)", "no regular expression"),
    ],
)
def test_errors_name_what_is_not_supported(expression: str, named: str) -> None:
    with pytest.raises(UsageError, match=named):
        LinearExpression(expression, is_exact=True)


def test_groups_nest_as_deep_as_python_reads_them() -> None:
    assert is_in("(" * 40 + "a" + ")" * 40, "ba")
