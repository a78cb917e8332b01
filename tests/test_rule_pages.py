"""`stepscope explain` and the committed pages in docs/rules/ are one."""

import dataclasses
from pathlib import Path

import pytest
from click.testing import CliRunner

from stepscope.cli import cli
from stepscope.render import rule_page
from stepscope.rules import all_rules

PAGES = Path(__file__).resolve().parents[1] / "docs" / "rules"
RULES = {rule.id: rule for rule in all_rules()}


def explain(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["explain", *arguments])
    return result.exit_code, result.output


@pytest.mark.parametrize("name", sorted(RULES))
def test_the_page_of_a_rule_is_what_explain_prints(name: str) -> None:
    page = PAGES / rule_page.file_name(RULES[name])
    assert page.exists(), "run `python scripts/rule_pages.py`"
    assert explain(name) == (0, page.read_text(encoding="utf-8")), "run scripts/rule_pages.py"


def test_no_page_is_left_of_a_rule_that_is_gone() -> None:
    known = {rule_page.file_name(rule) for rule in RULES.values()}
    assert {page.name for page in PAGES.glob("*.md")} == known


@pytest.mark.parametrize("name", sorted(RULES))
def test_a_page_tells_every_option_with_its_origin_and_how_to_set_it(name: str) -> None:
    page = rule_page.render(RULES[name])
    for part in (
        "## What it checks",
        "## Why it matters",
        "## What to change",
        "## Estimated saving",
    ):
        assert part in page
    for option in dataclasses.fields(RULES[name].options):
        [row] = [line for line in page.splitlines() if line.startswith(f"| `{option.name}` |")]
        assert option.metadata["origin"].replace("|", "\\|") in row
    assert f'rule = "{name}"' in page


def test_a_rule_that_there_is_not_is_refused_with_the_nearest() -> None:
    status, text = explain("item-syn")
    assert status == 2
    assert "there is no rule 'item-syn'. Did you mean item-sync" in text
