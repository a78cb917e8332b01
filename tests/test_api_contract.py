"""The API keeps the promises of its OpenAPI document, whatever it is asked."""

import json
from pathlib import Path
from typing import Any

import flask
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from stepscope.api.app import create_app
from stepscope.api.endpoint import address, all_endpoints
from stepscope.api.openapi import braced, document
from stepscope.api.post_actions import CHANGES, Change
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.pool import InProcessReader
from stepscope.rules import all_rules

SAMPLE_LOGS = Path(__file__).resolve().parents[1] / "sample_logs"
SAMPLES = ("synthetic_dataloader", "masking", "ranks")
"""With a device, on a CPU alone, and several ranks."""
PROMISES = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
QUESTIONS = min(12, settings().max_examples // 3)
"""Of each endpoint; five in `make test`."""


class _AtOnce:
    def submit(self, job: Any, /) -> None:
        job()


def _app() -> flask.Flask:
    catalog = Catalog(
        [LogDirectory(path=str(SAMPLE_LOGS / name), name=name) for name in SAMPLES],
        CatalogOptions(executor=_AtOnce(), reader=InProcessReader()),
    )
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog)


APP = _app()
RUNS: list[Any] = json.loads(APP.test_client().get("/api/runs").data)["runs"]
IDS = {
    "run": [run["id"] for run in RUNS],
    "trace": [run["workers"][0]["spans"][0]["trace"] for run in RUNS],
    "rule": [rule.id for rule in all_rules()[:3]],
}


def _told() -> dict[str, Any]:
    """Return the document, with the ids of what there is: made-up ones are all not found."""
    told = document(all_endpoints())
    for path in told["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] in IDS:
                    parameter["schema"] = {"enum": [*IDS[parameter["name"]], "no-such-id"]}
    told["servers"] = [{"url": "/api"}]
    return told


SHARED = "/runs/{run}/share"
"""It calls most other endpoints, which takes seconds: see `test_shared_file.py`."""
SCHEMA = schemathesis.openapi.from_dict(_told()).exclude(path=SHARED)
SCHEMA.app = APP
PLAIN = {"Accept-Encoding": "identity"}


@SCHEMA.parametrize()
@settings(
    max_examples=QUESTIONS,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
def test_an_answer_is_what_the_document_promises(case: schemathesis.Case[Any]) -> None:
    case.call_and_validate(headers=PLAIN, checks=list(PROMISES))


def test_the_document_names_every_route_and_how_it_is_asked() -> None:
    routes = {
        (braced(rule.rule).removeprefix("/api"), method.lower())
        for rule in APP.url_map.iter_rules()
        if rule.rule.startswith("/api/")
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    paths = document(all_endpoints())["paths"]
    assert {(path, method) for path, own in paths.items() for method in own} == routes


def test_what_is_posted_needs_the_header_of_our_own_page() -> None:
    posted = [own["post"] for own in document(all_endpoints())["paths"].values() if "post" in own]
    assert len(posted) == 6
    for operation in posted:
        [header] = [each for each in operation["parameters"] if each["in"] == "header"]
        assert (header["name"], header["required"]) == ("X-Stepscope", True)
        assert "403" in operation["responses"]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.path)
def test_what_is_posted_without_that_header_is_refused(change: Change) -> None:
    client = APP.test_client()
    before = client.get("/api/runs").data
    path = change.path.replace("<run>", IDS["run"][0]).replace("<trace>", IDS["trace"][0])
    assert client.post(f"/api/{path}").status_code == 403
    assert client.get("/api/runs").data == before


def test_the_advice_on_a_run_can_be_asked_of_one_recording() -> None:
    parameters = document(all_endpoints())["paths"]["/runs/{run}/advice"]["get"]["parameters"]
    assert [(each["name"], each["in"], each["required"]) for each in parameters] == [
        ("run", "path", True),
        ("trace", "query", False),
    ]


@pytest.mark.parametrize("endpoint", all_endpoints(), ids=address)
def test_every_field_of_a_question_says_what_it_is(endpoint: Any) -> None:
    path = braced(address(endpoint))
    parameters = document(all_endpoints())["paths"][f"/{path}"]["get"]["parameters"]
    unexplained = [
        each["name"] for each in parameters if each["in"] == "query" and not each.get("description")
    ]
    assert unexplained == []
