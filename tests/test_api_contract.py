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
from stepscope.api.openapi import document
from stepscope.catalog import Catalog
from stepscope.config import Settings
from stepscope.log_directories import LogDirectory
from stepscope.readers.pool import Here

SAMPLE_LOGS = Path(__file__).resolve().parents[1] / "sample_logs"
SAMPLES = ("synthetic_dataloader", "masking", "ranks")
"""With a device, on a CPU alone, and several ranks."""
PROMISES = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)
QUESTIONS = 12
"""Of each endpoint."""


class _AtOnce:
    def submit(self, job: Any, /) -> None:
        job()


def _app() -> flask.Flask:
    catalog = Catalog(
        [LogDirectory(path=str(SAMPLE_LOGS / name), name=name) for name in SAMPLES],
        settings=Settings(),
        executor=_AtOnce(),
        reader=Here(),
    )
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog)


APP = _app()
RUNS: list[Any] = json.loads(APP.test_client().get("/api/runs").data)["runs"]
IDS = {
    "run": [run["id"] for run in RUNS],
    "trace": [run["workers"][0]["spans"][0]["trace"] for run in RUNS],
}


def _told() -> dict[str, Any]:
    """Return the document, with the ids of what there is: made-up ones are all not found."""
    told = document(all_endpoints())
    for path in told["paths"].values():
        for parameter in path["get"].get("parameters", ()):
            if parameter["name"] in IDS:
                parameter["schema"] = {"enum": [*IDS[parameter["name"]], "no-such-id"]}
    told["servers"] = [{"url": "/api"}]
    return told


SCHEMA = schemathesis.openapi.from_dict(_told())
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


def test_the_document_names_every_endpoint() -> None:
    paths = document(all_endpoints())["paths"]
    for endpoint in all_endpoints():
        assert f"/{address(endpoint).replace('<', '{').replace('>', '}')}" in paths


@pytest.mark.parametrize("endpoint", all_endpoints(), ids=address)
def test_every_field_of_a_question_says_what_it_is(endpoint: Any) -> None:
    path = f"/{address(endpoint).replace('<', '{').replace('>', '}')}"
    parameters = document(all_endpoints())["paths"][path]["get"]["parameters"]
    unexplained = [
        each["name"] for each in parameters if each["in"] == "query" and not each.get("description")
    ]
    assert unexplained == []
