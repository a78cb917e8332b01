"""Simulated steps for the page: `traces/<trace>/what-if` and the names that it can scale."""

from pathlib import Path
from typing import Any

import flask.testing
import pytest

from loading import trace_at, trace_of
from stepscope.api.app import create_app
from stepscope.api.endpoint import Query
from stepscope.api.endpoints.what_if import WhatIfNames, names
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.pool import InProcessReader
from stepscope.render import prediction as rendered
from stepscope.replay.what_if import WhatIf, parse_scale, predict
from test_api import AtOnce

SAMPLE = Path(__file__).parents[1] / "sample_logs" / "synthetic_item_sync" / "fault"
[FILE] = SAMPLE.iterdir()
ROWS = (
    ("user_annotation", "ProfilerStep#1", 0, 1000),
    ("cpu_op", "aten::mm", 10, 20),
    ("cpu_op", "aten::mm", 40, 20),
    ("cuda_runtime", "cudaLaunchKernel", 12, 5, {"correlation": 1}),
    ("kernel", "void gemm<float>(float*)", 30, 40, {"correlation": 1}),
    ("cuda_runtime", "cudaStreamSynchronize", 70, 30, {"correlation": 2}),
)


@pytest.fixture(scope="module")
def client() -> flask.testing.FlaskClient:
    catalog = Catalog(
        [LogDirectory(path=str(SAMPLE))],
        CatalogOptions(executor=AtOnce(), reader=InProcessReader()),
    )
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog).test_client()


def ask(client: flask.testing.FlaskClient, **parameters: Any) -> tuple[int, dict[str, Any]]:
    [run] = client.get("/api/runs").json["runs"]  # type: ignore[index]
    trace = run["workers"][0]["spans"][0]["trace"]
    response = client.get(f"/api/traces/{trace}/what-if", query_string=parameters)
    assert response.json is not None
    return response.status_code, response.json


def test_the_page_has_the_terminals_sentences_and_numbers(
    client: flask.testing.FlaskClient,
) -> None:
    status, step = ask(client, host=0.7, device=0.5, no_waits="true")
    prediction = predict(trace_at(FILE), WhatIf(host=0.7, device=0.5, is_unblocked=True))
    assert status == 200
    assert step["headline"] == rendered.headline(prediction)
    assert step["limit"] == rendered.limit(prediction)
    assert step["fidelity"] == rendered.fidelity(prediction)
    assert step["simulated_ns"] == round(prediction.simulated_ns) < step["recorded_ns"]
    assert [part["name"] for part in step["parts"]] == ["host", "device", "launches and waits"]


def test_a_repeated_scale_is_several_scales(client: flask.testing.FlaskClient) -> None:
    scales = ["kernels:*=0.5", "operators:aten::*=0"]
    _, step = ask(client, scale=scales)
    what_if = WhatIf(scales=tuple(map(parse_scale, scales)))
    assert step["matches"] == list(predict(trace_at(FILE), what_if).matches)
    assert step["simulated_ns"] < ask(client, scale=scales[:1])[1]["simulated_ns"]


def test_without_changes_the_step_is_the_recorded_one(client: flask.testing.FlaskClient) -> None:
    _, step = ask(client)
    assert step["simulated_ns"] == step["recorded_ns"]
    assert step["headline"] == "The step takes 10.9 ms, as recorded."


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"scale": "kernels:nothing=0.5"}, "no kernels of this trace match 'nothing'"),
        ({"scale": "gemm=0.5"}, "is not of the form"),
        ({"scale": "kernels:*=101"}, "a factor is at most 100"),
        ({"scale": ["kernels:*=1"] * 51}, "length <= 50"),
        ({"host": "-1"}, ">= 0.0"),
        ({"device": "101"}, "<= 100.0"),
        ({"host": "nan"}, "host"),
        ({"hots": "1"}, "unknown field"),
    ],
)
def test_a_change_that_cannot_be_made_is_refused(
    client: flask.testing.FlaskClient, parameters: dict[str, Any], message: str
) -> None:
    status, refusal = ask(client, **parameters)
    assert (status, refusal["code"]) == (400, "bad-request")
    assert message in refusal["message"]


def test_names_are_those_that_patterns_match_the_longest_first() -> None:
    assert as_rows(names(trace_of(ROWS), Query())) == {
        "kernels": [("void gemm<float>(float*)", 40_000, 1)],
        "operators": [("aten::mm", 40_000, 2)],
        "waits": 1,
    }


def test_a_trace_of_a_cpu_has_no_kernels_and_no_waits() -> None:
    assert as_rows(names(trace_of(ROWS[1:3]), Query())) == {
        "kernels": [],
        "operators": [("aten::mm", 40_000, 2)],
        "waits": 0,
    }


def as_rows(message: WhatIfNames) -> dict[str, Any]:
    columns = {"kernels": message.kernels, "operators": message.operators}
    rows: dict[str, Any] = {
        key: list(zip(column.names, column.times_ns, column.counts, strict=True))
        for key, column in columns.items()
    }
    return rows | {"waits": message.wait_count}
