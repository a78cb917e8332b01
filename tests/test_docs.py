"""What the README and the changelog say exists, exists; and nothing that exists is left out."""

import re
from pathlib import Path

import pytest

from stepscope._version import __version__
from stepscope.advice.rule_packages import API_VERSION
from stepscope.base.report import SCHEMA_VERSION
from stepscope.cli import FAILED, INTERRUPTED, UNUSABLE
from stepscope.model.trace import Trace
from stepscope.rules import all_rules

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
RULES = [rule.id for rule in all_rules()]


def test_the_readme_says_about_how_many_rules_there_are() -> None:
    assert "some ninety rules" in README
    assert 85 <= len(RULES) < 100


@pytest.mark.parametrize("rule", RULES)
def test_the_changelog_names_every_rule(rule: str) -> None:
    is_named = f"`{rule}`" in (ROOT / "CHANGELOG.md").read_text()
    assert is_named, f"add `{rule}` to the list of its category in CHANGELOG.md"


def test_the_readmes_frames_are_a_traces() -> None:
    [comment] = re.findall(r"# pandas frames: (.*)", README)
    for frame in comment.split(", "):
        assert isinstance(getattr(Trace, frame), property), frame


def test_the_files_that_the_readme_points_to_are_there() -> None:
    paths = re.findall(r"`([\w./]+\.md)`|\]\(([\w./]+)\)", README)
    for path in (first or second for first, second in paths):
        assert (ROOT / path).exists(), path


def test_the_page_of_versions_states_the_versions_and_statuses_of_the_code() -> None:
    page = (ROOT / "docs" / "versions.md").read_text()
    assert f"within schema {SCHEMA_VERSION}," in page
    assert f"`STEPSCOPE_API = {API_VERSION}`" in page
    statuses = [int(status) for status in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)]
    assert statuses == [0, 1, UNUSABLE, FAILED, INTERRUPTED]


def test_the_version_is_the_same_everywhere() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    [newest, date] = re.findall(r"^## \[(\S+)\] - (\S+)$", changelog, re.MULTILINE)[0]
    citation = (ROOT / "CITATION.cff").read_text()
    assert newest == __version__
    assert f'version: {__version__}\ndate-released: "{date}"\n' in citation


def test_the_map_of_the_code_is_short() -> None:
    assert len((ROOT / "plugin" / "ARCHITECTURE.md").read_text().splitlines()) <= 120
