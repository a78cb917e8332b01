"""A rule's page, asked of the server: the same text as `stepscope explain` prints."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import flask.testing
import pytest

from stepscope.advice import settings as advice_settings
from stepscope.advice.settings import AdviceSettings
from stepscope.api.app import create_app
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.render import rule_page
from stepscope.rules import all_rules
from test_advice import rule

OWN = all_rules()


def client_of(folder: Path, **options: Any) -> flask.testing.FlaskClient:
    return create_app(
        Catalog([LogDirectory(path=str(folder))], CatalogOptions(**options))
    ).test_client()


def test_every_rule_has_a_page_that_explain_prints_too(tmp_path: Path) -> None:
    client = client_of(tmp_path)
    for own in OWN:
        said = client.get(f"/api/rules/{own.id}").json
        assert said is not None
        assert (said["rule"], said["title"]) == (own.id, own.title)
        assert said["text"] == rule_page.render(own)


def test_an_alias_leads_to_its_rule(tmp_path: Path) -> None:
    client = client_of(tmp_path)
    for own in OWN:
        for alias in own.aliases:
            said = client.get(f"/api/rules/{alias}").json
            assert said is not None
            assert said["rule"] == own.id


def test_a_rule_that_is_not_there_is_not_found_and_what_is_near_it_is_named(
    tmp_path: Path,
) -> None:
    said = client_of(tmp_path).get(f"/api/rules/{OWN[0].id}x")
    assert said.status_code == 404
    assert said.json is not None
    assert said.json["code"] == "not-found"
    assert f"Did you mean {OWN[0].id}" in said.json["message"]


@pytest.mark.parametrize("path", ["acme/one", "acme%2Fone"])
def test_a_rule_of_a_package_has_one_too_unless_packages_are_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    packaged = replace(rule("acme/one"), package="acme-rules")
    monkeypatch.setattr(advice_settings, "package_rules", lambda: ((packaged,), ()))
    said = client_of(tmp_path).get(f"/api/rules/{path}").json
    assert said is not None
    assert said["rule"] == "acme/one"
    assert "| Package | acme-rules |" in said["text"]
    without = client_of(tmp_path, advice=AdviceSettings(has_packages=False))
    assert without.get(f"/api/rules/{path}").status_code == 404
