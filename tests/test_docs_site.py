"""The user's site: it builds without a network, holds all that there is, and fetches nothing."""

import html
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from stepscope.base.report import json_schema
from stepscope.cli import COMMANDS
from stepscope.render import rule_page
from stepscope.rules import all_rules
from stepscope.tables import all_tables

ROOT = Path(__file__).resolve().parents[1]
BUILD_WITHOUT_NETWORK = """
import socket, sys

def refuse(*_):
    raise OSError("the site is built without a network")

socket.socket.connect = socket.getaddrinfo = refuse
from mkdocs.__main__ import cli

cli(["build", "--strict", "--site-dir", sys.argv[1]])
"""
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-c", BUILD_WITHOUT_NETWORK, str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


def test_every_table_and_column_is_described(site: Path) -> None:
    page, text = (site / "tables.html").read_text(), text_of(site / "tables.html")
    words = " ".join(text.split())
    for name, table in all_tables().items():
        assert f'id="{name}"' in page
        assert " ".join(table.meaning.replace("`", "").split()) in words
        for column in table.schema:
            assert column.name in words


def test_names_of_columns_are_not_broken(site: Path) -> None:
    assert 'href="stylesheets/tables.css"' in (site / "tables.html").read_text()
    style = " ".join((site / "stylesheets" / "tables.css").read_text().split())
    assert "td:first-child code { white-space: nowrap; }" in style


def test_every_rule_is_described(site: Path) -> None:
    page = (site / "rules.html").read_text()
    for rule in all_rules():
        name = rule_page.file_name(rule).removesuffix(".md")
        assert f'href="rules/{name}.html"' in page
        assert rule.title in text_of(site / "rules" / f"{name}.html").replace("\u2019", "'")


def test_every_command_is_described_with_all_its_options(site: Path) -> None:
    text = text_of(site / "cli.html")
    for command in COMMANDS:
        assert f"Usage: stepscope {command.name}" in text
        for parameter in command.params:
            for option in parameter.opts:
                assert option in text or not option.startswith("-")


def test_all_that_python_offers_is_described(site: Path) -> None:
    import stepscope

    page = (site / "python.html").read_text()
    for name in stepscope.__all__:
        assert f'id="stepscope.{name}"' in page or name == "__version__"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        found = re.findall(r"<(?:script|img|iframe|link)\b[^>]*>", page.read_text())
        assert not [tag for tag in found if re.search(r"""(?:src|href)=["']?(?:https?:)?//""", tag)]
    for style in site.rglob("*.css"):
        assert not re.search(r"@import|url\(\s*[\"']?https?:", style.read_text())


def test_the_reports_schema_is_published(site: Path) -> None:
    written = json.loads((site / "report.schema.json").read_text())
    assert written == json.loads(msgspec.json.encode(json_schema()))
    assert 'href="report.schema.json"' in (site / "ci.html").read_text()
