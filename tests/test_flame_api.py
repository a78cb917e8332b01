"""What the API says of flame graphs: of one recording, of a time of it, and of two compared."""

import json
from pathlib import Path
from typing import Any

import flask.testing
import msgspec
import pytest

from logs import write_trace
from stepscope.api.app import create_app
from stepscope.api.flame import FlameFunctions, FlameGraph
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.readers.pool import InProcessReader
from tracebuild import Row


class AtOnce:
    def submit(self, job: Any, /) -> None:
        job()


def step(number: int, start_us: int, busy_us: int) -> list[Row]:
    """A step of 100 us, in which an operator runs for some of them."""
    return [
        ["user_annotation", f"ProfilerStep#{number}", start_us, 100],
        ["cpu_op", "aten::mm", start_us + 10, busy_us],
    ]


@pytest.fixture
def client(tmp_path: Path) -> flask.testing.FlaskClient:
    rows = (["cpu_op", "aten::zeros", 0, 40], *step(1, 100, 20), *step(2, 200, 60))
    write_trace(tmp_path / "slow" / "a.1700000000000.pt.trace.json", rows)
    fast = tuple(row for number in range(4) for row in step(number, 100 * number, 10))
    write_trace(tmp_path / "fast" / "a.1700000000000.pt.trace.json", fast)
    plain = (["cpu_op", "aten::mm", 0, 40],)
    write_trace(tmp_path / "plain" / "a.1700000000000.pt.trace.json", plain)
    return client_of(tmp_path)


def client_of(log: Path) -> flask.testing.FlaskClient:
    folder = LogDirectory(path=str(log))
    catalog = Catalog([folder], CatalogOptions(executor=AtOnce(), reader=InProcessReader()))
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog).test_client()


def trace_id(client: flask.testing.FlaskClient, run: str) -> str:
    runs = json.loads(client.get("/api/runs").data)["runs"]
    [found] = [each for each in runs if each["name"] == run]
    return str(found["workers"][0]["spans"][0]["trace"])


def get(client: flask.testing.FlaskClient, path: str, **query: Any) -> Any:
    response = client.get(f"/api/{path}", query_string=query)
    assert response.status_code == 200, response.text
    return response.data


def graph(client: flask.testing.FlaskClient, run: str = "slow", **query: Any) -> FlameGraph:
    path = f"traces/{trace_id(client, run)}/flame/graph"
    return msgspec.json.decode(get(client, path, **query), type=FlameGraph)


def lines(said: FlameGraph) -> list[str]:
    """Read the nodes as paths with what they have of their own, and in all."""
    paths: list[str] = []
    for parent, name in zip(said.parent, said.name, strict=True):
        paths.append((f"{paths[parent]} > " if parent >= 0 else "") + (said.names[name] or "…"))
    return [
        f"{path}: {own} of {total}"
        for path, own, total in zip(paths, said.own, said.total, strict=True)
    ]


def test_calls_are_merged_by_name_the_longest_first(client: flask.testing.FlaskClient) -> None:
    said = graph(client)
    assert lines(said) == [
        "ProfilerStep*: 120000 of 200000",
        "aten::zeros: 40000 of 40000",
        "ProfilerStep* > aten::mm: 80000 of 80000",
    ]
    assert (said.whole, said.steps, said.unit, said.node_count) == (240000, 2, "ns", 3)
    kinds = dict(zip(said.names, (said.kinds[kind].id for kind in said.name_kinds), strict=True))
    assert kinds == {
        "ProfilerStep*": "annotation",
        "aten::mm": "operator",
        "aten::zeros": "operator",
    }
    assert said.note == "No Python functions were recorded, so operators are at the top."


def test_a_time_is_shown_alone(client: flask.testing.FlaskClient) -> None:
    said = graph(client, start_ns=200_000, end_ns=300_000)
    assert lines(said) == [
        "ProfilerStep*: 40000 of 100000",
        "ProfilerStep* > aten::mm: 60000 of 60000",
    ]


def test_of_steps_what_lies_outside_of_them_is_left_out(
    client: flask.testing.FlaskClient,
) -> None:
    said = graph(client, per_step=True)
    assert (said.whole, said.steps, said.is_per_step) == (200000, 2, True)


def test_a_time_is_compared_with_another(client: flask.testing.FlaskClient) -> None:
    said = graph(
        client,
        start_ns=200_000,
        end_ns=300_000,
        before_start_ns=100_000,
        before_end_ns=200_000,
    )
    assert (said.own, said.before_own) == ((40000, 60000), (80000, 20000))
    assert (said.whole, said.before_whole) == (100000, 100000)


@pytest.fixture
def threaded(tmp_path: Path) -> flask.testing.FlaskClient:
    """A main thread with two waits, and a loader thread that waits and works."""
    rows: list[Row] = [
        *step(1, 0, 60),
        ["python_function", "threading.py(327): wait", 70, 20],
        ["python_function", "<built-in method acquire of _thread.lock object at 0x7f>", 75, 10],
        ["cuda_runtime", "cudaStreamSynchronize", 92, 5],
    ]
    waits = "<built-in method select of select.epoll object at 0x7f>"
    loader: list[Row] = [
        ["cpu_op", "aten::select", 0, 30, {"tid": 8}],
        ["python_function", waits, 40, 10, {"tid": 8}],
    ]
    write_trace(tmp_path / "slow" / "a.1700000000000.pt.trace.json", (*rows, *loader))
    return client_of(tmp_path)


def test_threads_are_listed_by_their_time_and_shown_alone(
    threaded: flask.testing.FlaskClient,
) -> None:
    both = graph(threaded)
    assert [(thread.label, thread.total_ns) for thread in both.threads] == [
        ("Process 100, Main thread", 100_000),
        ("Process 100, Thread 8", 40_000),
    ]
    assert both.whole == 140_000

    loader = graph(threaded, thread=both.threads[1].name)
    assert lines(loader) == [
        "aten::select: 30000 of 30000",
        "<built-in method select of select.epoll>: 10000 of 10000",
    ]
    assert loader.node_count == 2
    assert loader.threads == both.threads
    assert graph(threaded, thread="1/99").empty


def test_time_in_which_the_host_waits_is_left_out_on_request(
    threaded: flask.testing.FlaskClient,
) -> None:
    shown, hidden = graph(threaded), graph(threaded, without_waits=True)
    assert shown.waiting == hidden.waiting == 35_000
    assert hidden.whole == shown.whole - 35_000
    assert lines(hidden) == [
        "ProfilerStep*: 15000 of 75000",
        "aten::select: 30000 of 30000",
        "ProfilerStep* > aten::mm: 60000 of 60000",
    ]


def test_frames_have_the_kinds_of_the_timeline(tmp_path: Path) -> None:
    launched = [
        ["kernel", "gemm", 20, 30, {"correlation": 1}],
        ["kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 50, 20, {"correlation": 1}],
        ["gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 70, 10, {"correlation": 1}],
        ["gpu_memset", "Memset (Device)", 80, 5, {"correlation": 1}],
    ]
    loading = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
    rows: list[Row] = [
        ["user_annotation", loading, 0, 4],
        ["cuda_runtime", "cudaLaunchKernel", 5, 5, {"correlation": 1}],
        *launched,
    ]
    write_trace(tmp_path / "slow" / "a.1700000000000.pt.trace.json", tuple(rows))
    client = client_of(tmp_path)

    host, device = graph(client), graph(client, measure="device")
    kinds = {
        name: said.kinds[kind].id
        for said in (host, device)
        for name, kind in zip(said.names, said.name_kinds, strict=True)
    }
    assert kinds == {
        loading: "dataloader",
        "cudaLaunchKernel": "runtime",
        **dict(
            zip(
                (str(row[1]) for row in launched),
                ("kernel", "communication", "memcpy", "memset"),
                strict=True,
            )
        ),
    }
    assert host.waiting == 4000
    assert graph(client, without_waits=True).whole == host.whole - 4000


def test_small_frames_are_one_that_says_how_many(client: flask.testing.FlaskClient) -> None:
    said = graph(client, pieces=2)
    assert lines(said) == [
        "ProfilerStep*: 120000 of 200000",
        "…: 40000 of 40000",
        "ProfilerStep* > …: 80000 of 80000",
    ]
    assert said.merged_count == (0, 1, 1)


def test_functions_are_listed_by_their_own_time(client: flask.testing.FlaskClient) -> None:
    path = f"traces/{trace_id(client, 'slow')}/flame/functions"
    said = msgspec.json.decode(get(client, path), type=FlameFunctions)
    assert said.names == ("ProfilerStep*", "aten::mm", "aten::zeros")
    assert (said.own, said.total) == ((120000, 80000, 40000), (200000, 80000, 40000))
    assert (said.calls, said.all_count, said.whole) == ((2, 2, 1), 3, 240000)


def test_two_recordings_are_compared_by_their_steps(client: flask.testing.FlaskClient) -> None:
    asked = {"trace": trace_id(client, "slow"), "baseline": trace_id(client, "fast")}
    said = msgspec.json.decode(get(client, "flame/compared/calls/graph", **asked), type=FlameGraph)
    assert (said.steps, said.before_steps, said.is_per_step) == (2, 4, True)
    assert lines(said) == [
        "ProfilerStep*: 120000 of 200000",
        "ProfilerStep* > aten::mm: 80000 of 80000",
    ]
    assert (said.before_own, said.before_total) == ((360000, 40000), (400000, 40000))


def test_recordings_without_steps_are_compared_as_wholes(
    client: flask.testing.FlaskClient,
) -> None:
    asked = {"trace": trace_id(client, "slow"), "baseline": trace_id(client, "plain")}
    said = msgspec.json.decode(get(client, "flame/compared/calls/graph", **asked), type=FlameGraph)
    assert (said.is_per_step, said.steps, said.before_steps) == (False, 2, 0)
    assert said.note.startswith("Whole traces are compared")


def test_a_time_is_not_of_steps(client: flask.testing.FlaskClient) -> None:
    said = graph(client, start_ns=100_000, end_ns=250_000, per_step=True)
    assert (said.is_per_step, said.whole) == (False, 200_000)


def test_speedscope_gets_the_same_sums(client: flask.testing.FlaskClient) -> None:
    path = f"traces/{trace_id(client, 'slow')}/flame/speedscope"
    said = json.loads(get(client, path))
    [profile] = said["profiles"]
    names = [frame["name"] for frame in said["shared"]["frames"]]
    samples = {
        " > ".join(names[frame] for frame in sample): weight
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True)
    }
    assert samples == {
        "ProfilerStep*": 120000,
        "ProfilerStep* > aten::mm": 80000,
        "aten::zeros": 40000,
    }
    assert (profile["endValue"], profile["unit"]) == (240000, "nanoseconds")


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ({"root": "%"}, 400, "root"),
        ({"pieces": 0}, 400, "pieces"),
        ({"subject": "memory"}, 422, "no memory was recorded"),
        ({"start_ns": 5}, 400, "given together"),
        ({"start_ns": 0, "end_ns": 9, "before_end_ns": 5}, 400, "given together"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    client: flask.testing.FlaskClient, query: dict[str, Any], status: int, words: str
) -> None:
    path = f"/api/traces/{trace_id(client, 'slow')}/flame/graph"
    response = client.get(path, query_string=query)
    assert response.status_code == status
    assert words in response.text


@pytest.mark.parametrize("view", ["flame/graph?subject=memory", "memory/curve"])
def test_memory_whose_sizes_are_absurd_is_not_recorded(tmp_path: Path, view: str) -> None:
    absurd = {"Bytes": 2**62, "Device Type": 1, "Device Id": 0, "Total Allocated": 2**62, "Addr": 1}
    rows: tuple[Row, ...] = (
        ["cpu_op", "aten::zeros", 0, 40],
        ["cpu_instant_event", "[memory]", 10, None, absurd],
    )
    write_trace(tmp_path / "absurd" / "a.1700000000000.pt.trace.json", rows)
    client = client_of(tmp_path)
    response = client.get(f"/api/traces/{trace_id(client, 'absurd')}/{view}")
    assert (response.status_code, json.loads(response.data)["code"]) == (422, "not-recorded")
    assert "their sizes are impossible" in json.loads(response.data)["message"]


def test_where_nothing_ran_on_a_device_it_says_what_records_it(
    client: flask.testing.FlaskClient,
) -> None:
    said = graph(client, measure="device")
    assert (said.whole, said.parent) == (0, ())
    assert said.empty == "No device work was recorded here."
    assert said.remedy.startswith("profile(activities=")
