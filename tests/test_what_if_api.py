"""Simulated steps for the page: `traces/<trace>/what-if` and the names that it can scale."""

import gzip
import json
from pathlib import Path
from typing import Any

import flask.testing
import msgspec
import pytest

from loading import trace_at, trace_of
from stepscope.advice.settings import DEFAULT, AdviceSettings, Changes
from stepscope.api.app import create_app
from stepscope.api.endpoint import Query
from stepscope.api.endpoints.what_if import (
    WhatIfNames,
    WhatIfQuery,
    WhatIfTimelineQuery,
    file,
    names,
    timeline,
    what_if,
)
from stepscope.base.errors import UnknownNameError
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
    return client_by(None)


def client_by(advice: AdviceSettings | None) -> flask.testing.FlaskClient:
    catalog = Catalog(
        [LogDirectory(path=str(SAMPLE))],
        CatalogOptions(executor=AtOnce(), reader=InProcessReader(), advice=advice),
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
    prediction = predict(trace_at(FILE), WhatIf(scales=tuple(map(parse_scale, scales))))
    assert step["matches"] == list(prediction.matches)
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
        "batches": 0,
    }


def test_a_trace_of_a_cpu_has_no_kernels_and_no_waits() -> None:
    assert as_rows(names(trace_of(ROWS[1:3]), Query())) == {
        "kernels": [],
        "operators": [("aten::mm", 40_000, 2)],
        "waits": 0,
        "batches": 0,
    }


def as_rows(message: WhatIfNames) -> dict[str, Any]:
    columns = {"kernels": message.kernels, "operators": message.operators}
    rows: dict[str, Any] = {
        key: list(zip(column.names, column.times_ns, column.counts, strict=True))
        for key, column in columns.items()
    }
    return rows | {"waits": message.wait_count, "batches": message.batch_count}


def test_loading_moves_to_workers_and_the_assumptions_are_stated() -> None:
    folder = SAMPLE.parents[1] / "synthetic_dataloader" / "fault"
    [file] = folder.iterdir()
    step = what_if(trace_at(file), DEFAULT, WhatIfQuery(workers=4, cores=8))
    assert step.simulated_ns < step.recorded_ns
    [assumption] = step.assumptions
    assert "4 workers" in assumption
    assert names(trace_at(file), Query()).batch_count == 6


def test_the_timeline_has_both_versions_of_a_step_from_its_start() -> None:
    trace = trace_at(FILE)
    message = timeline(trace, DEFAULT, WhatIfTimelineQuery(device=0.5, pixels=200))
    assert message.step in message.steps
    assert message.simulated_ns < message.recorded_ns
    assert [lane.label for lane in message.lanes] == ["host", "host, inside", "waits", "stream 7"]
    stream = message.lanes[-1]
    assert {message.categories[code] for code in stream.recorded.categories} <= {"kernel", "memcpy"}
    assert sum(stream.simulated.changes_ns) < 0
    for lane in message.lanes:
        for blocks in (lane.recorded, lane.simulated):
            assert max(blocks.names) < len(lane.names)
            assert len({len(column) for column in msgspec.structs.astuple(blocks)}) == 1


def test_a_step_that_is_not_in_the_trace_is_not_found() -> None:
    with pytest.raises(UnknownNameError, match="no complete step 99"):
        timeline(trace_at(FILE), DEFAULT, WhatIfTimelineQuery(step=99))


def test_the_file_has_recorded_and_simulated_events() -> None:
    response = file(trace_at(FILE), DEFAULT, WhatIfQuery(device=0.5))
    assert not isinstance(response.body, bytes)
    document = json.loads(gzip.decompress(b"".join(response.body)))
    processes = [
        event["args"]["name"]
        for event in document["traceEvents"]
        if event["name"] == "process_name"
    ]
    assert processes == [
        "Host, recorded",
        "Host, simulated",
        "Device 0, recorded",
        "Device 0, simulated",
    ]
    assert response.file_name == "worker0_what-if.1.pt.trace.json.gz"


@pytest.mark.parametrize(
    ("ignored", "listed"),
    [((), ["item-sync", "optimizer-not-fused"]), (("item-sync",), ["optimizer-not-fused"])],
)
def test_fixes_follow_the_servers_configuration(
    ignored: tuple[str, ...], listed: list[str]
) -> None:
    client = client_by(AdviceSettings(changes=Changes(ignore=ignored)))
    trace = client.get("/api/runs").json["runs"][0]["workers"][0]["spans"][0]["trace"]  # type: ignore[index]
    response = client.get(f"/api/traces/{trace}/what-if/fixes").json
    assert [fix["rule"] for fix in response["fixes"]] == listed  # type: ignore[index]
