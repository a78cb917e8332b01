"""What the API says changed between two sides, and what it says where a side is not there yet."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import flask.testing
import msgspec
import pytest

import stepscope
import tracebuild
from loading import trace_of
from logs import write_long_ago, write_trace
from stepscope.api.app import create_app
from stepscope.api.endpoints.comparison import Candidates, ComparisonResult
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.comparison import compare
from stepscope.comparison.operator_changes import module_rows
from stepscope.comparison.samples import sample
from stepscope.comparison.side import side_samples
from stepscope.readers.pool import InProcessReader

STEP_US = 10_000
JITTER_US = (0, 13, 7, 21, 4, 17)
FIRST_SPAN, SECOND_SPAN = 1700000000000, 1700000060000


class InTurn:
    """Does one job when it is told to."""

    def __init__(self) -> None:
        self._jobs: list[Callable[[], None]] = []

    def submit(self, job: Callable[[], None], /) -> None:
        self._jobs.append(job)

    def work(self) -> None:
        while self._jobs:
            self._jobs.pop(0)()


def rows(kernel_us: int, steps: int = 6) -> tuple[tracebuild.Row, ...]:
    """Steps with one kernel each, some jitter, and a module around the operator."""
    found: list[tracebuild.Row] = []
    for step in range(steps):
        begin = step * STEP_US
        launch = {"correlation": step + 1}
        took = kernel_us + JITTER_US[step % len(JITTER_US)]
        module = {"Python id": step + 1, "Python module id": 1}
        found += [
            ["user_annotation", f"ProfilerStep#{step}", begin, STEP_US - 10],
            ["python_function", "nn.Module: Linear_0", begin + 50, 400, module],
            ["cpu_op", "aten::mm", begin + 100, 200],
            ["cuda_runtime", "cudaLaunchKernel", begin + 150, 10, launch],
            ["kernel", "gemm", begin + 200, took, launch],
        ]
    return tuple(found)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A run of two spans, one of a slower kernel on another device, and one that is broken."""
    folder = tmp_path / "log"
    for time, kernel_us in ((FIRST_SPAN, 4000), (SECOND_SPAN, 3000)):
        write_trace(folder / "a" / f"w.{time}.pt.trace.json", rows(kernel_us))
    other = [{"id": 0, "name": "Other GPU"}]
    write_trace(folder / "b" / "w.1700000120000.pt.trace.json", rows(6000), deviceProperties=other)
    write_long_ago(folder / "broken" / "w.1.pt.trace.json")
    return folder


@pytest.fixture
def turns() -> InTurn:
    return InTurn()


@pytest.fixture
def client(log: Path, turns: InTurn) -> flask.testing.FlaskClient:
    catalog = Catalog(
        [LogDirectory(path=str(log))], CatalogOptions(executor=turns, reader=InProcessReader())
    )
    catalog.scan()
    catalog.start_reading()
    return create_app(catalog).test_client()


def ids(client: flask.testing.FlaskClient) -> dict[str, str]:
    return {run["name"]: run["id"] for run in json.loads(client.get("/api/runs").data)["runs"]}


def compared(
    client: flask.testing.FlaskClient, before: str, after: str, **choice: str
) -> ComparisonResult:
    known = ids(client)
    query = {"base_run": known[before], "run": known[after], **choice}
    response = client.get("/api/comparison", query_string=query)
    assert response.status_code == 200, response.data
    return msgspec.json.decode(response.data, type=ComparisonResult)


def refusal(client: flask.testing.FlaskClient, **query: str) -> tuple[int, dict[str, Any]]:
    response = client.get("/api/comparison", query_string=query)
    return response.status_code, json.loads(response.data)


def test_a_run_beside_another_is_what_the_library_says(
    client: flask.testing.FlaskClient, turns: InTurn, log: Path
) -> None:
    turns.work()
    found = compared(client, "a", "b")
    runs = {run.name: run for run in stepscope.load_all(log / "a") + stepscope.load_all(log / "b")}
    sides = [(name, [sample(each) for each in runs[name].workers]) for name in ("a", "b")]
    assert found.comparison == compare(*sides[0], *sides[1])
    [gemm] = found.comparison.device_work
    assert (gemm.name, gemm.status) == ("gemm", "slower")
    assert (found.before.waiting_count, found.after.waiting_count) == (0, 0)


def test_a_side_may_be_one_span_of_one_worker(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    one = {"base_worker": "w", "base_span": "1", "worker": "w", "span": "2"}
    found = compared(client, "a", "a", **one)
    assert (found.comparison.before.name, found.comparison.after.name) == (
        "a, w, span 1",
        "a, w, span 2",
    )
    work = {row.name: row.device for row in found.comparison.device_work}
    assert work["gemm"].before - work["gemm"].after == pytest.approx(1e6)
    assert not found.is_same


def test_every_step_of_a_side_is_told(client: flask.testing.FlaskClient, turns: InTurn) -> None:
    turns.work()
    found = compared(client, "a", "b")
    assert [len(found.before.step_ns), len(found.after.step_ns)] == [12, 6]
    mean_ns = sum(found.after.step_ns) / len(found.after.step_ns)
    assert mean_ns == pytest.approx(found.comparison.after.mean_step_ns, abs=1)


def test_what_is_held_against_itself_is_called_the_same(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    found = compared(client, "b", "b")
    assert found.is_same
    assert (found.comparison.step.delta, found.comparison.step.verdict) == (0, "same")


def test_two_steps_of_one_run_are_compared(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    found = compared(client, "b", "b", base_steps="1", steps="3-4")
    sides = found.comparison.before, found.comparison.after
    assert [(side.name, side.step_count) for side in sides] == [
        ("b, step 1", 1),
        ("b, steps 3-4", 2),
    ]
    assert (len(found.before.step_ns), len(found.after.step_ns)) == (1, 2)
    assert found.before.step_numbers == found.after.step_numbers == "0-5"
    assert not found.is_same
    assert compared(client, "b", "b", base_steps="1", steps="1").is_same


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ("9", "there is no step 9: the complete steps are 0-5"),
        ("5-1", "steps takes a number, or two as in 3-5, not '5-1'"),
    ],
)
def test_steps_that_are_not_there_are_refused(
    client: flask.testing.FlaskClient, turns: InTurn, steps: str, message: str
) -> None:
    turns.work()
    known = ids(client)
    status, error = refusal(client, base_run=known["b"], run=known["b"], steps=steps)
    assert status == 400
    assert message in error["message"]


def test_other_devices_are_named_where_both_sides_name_theirs(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    found = compared(client, "a", "b")
    assert found.after.devices == "Other GPU"
    of = found.comparison.comparability
    assert of.level == "not-comparable"
    assert "Other GPU" in of.reasons[0]
    assert "slower" not in found.status_labels.values()
    assert compared(client, "a", "a").comparison.comparability.level == "comparable"


def test_runs_to_compare_with_come_by_likeness(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    known = ids(client)
    response = client.get("/api/comparison/candidates", query_string={"run": known["b"]})
    found = msgspec.json.decode(response.data, type=Candidates).candidates
    assert [(each.run, each.is_same_model, each.likeness) for each in found] == [
        (known["a"], True, 1.0)
    ]
    assert found[0].reason.startswith("models 100.0 % alike, device ")


def test_before_the_run_is_read_there_are_no_candidates(client: flask.testing.FlaskClient) -> None:
    response = client.get("/api/comparison/candidates", query_string={"run": ids(client)["b"]})
    assert response.status_code == 409


def test_a_side_that_is_being_read_says_so_and_half_a_side_counts_what_is_to_come(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    known = ids(client)
    status, error = refusal(client, base_run=known["a"], run=known["b"])
    assert (status, error["code"]) == (409, "still-loading")
    turns.work()
    assert compared(client, "a", "b").before.waiting_count == 0


def test_a_side_that_cannot_be_read_says_why(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    known = ids(client)
    status, error = refusal(client, base_run=known["a"], run=known["broken"])
    assert (status, error["code"]) == (422, "unreadable")
    assert "empty" in error["message"]


@pytest.mark.parametrize(
    ("choice", "named"),
    [
        ({"base_span": "9"}, "a, span 9"),
        ({"base_worker": "nobody"}, "a, nobody"),
        ({"base_run": "gone"}, "gone"),
    ],
)
def test_what_is_not_there_is_named(
    client: flask.testing.FlaskClient, turns: InTurn, choice: dict[str, str], named: str
) -> None:
    turns.work()
    known = ids(client)
    status, error = refusal(client, **{"base_run": known["a"], "run": known["b"], **choice})
    assert (status, error["code"]) == (404, "not-found")
    assert named in error["message"]


def test_both_sides_must_be_named(client: flask.testing.FlaskClient) -> None:
    status, error = refusal(client, run="x")
    assert (status, error["code"]) == (400, "bad-request")
    assert "base_run" in error["message"]


def test_totals_hold_what_is_called_within(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    rows = {row.name: row for row in compared(client, "a", "b").comparison.operators}
    step, product = rows["ProfilerStep*"], rows["aten::mm"]
    assert (step.device.after, product.device_total) == (0, product.device)
    assert step.device_total.after == pytest.approx(product.device.after)
    assert step.host_total.after == pytest.approx((STEP_US - 10) * 1000)
    assert step.host.after < step.host_total.after


def test_modules_sum_to_what_ran_in_them_and_are_left_out_where_not_recorded(
    client: flask.testing.FlaskClient, turns: InTurn
) -> None:
    turns.work()
    found = compared(client, "a", "b")
    [linear] = [row for row in found.modules if row.name == "Linear_0"]
    [mm] = [row for row in found.comparison.operators if row.name == "aten::mm"]
    assert (linear.status, linear.device) == ("slower", mm.device)
    plain = [row for row in rows(4000) if row[0] != "python_function"]
    side = side_samples("plain", [sample(trace_of(plain))])
    assert module_rows((side, side)) == ()
