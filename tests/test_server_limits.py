"""What a server does with more requests than it can answer at once."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import flask
import pytest
from werkzeug.test import Client, EnvironBuilder

from loading import trace_of
from logs import ROWS
from stepscope.api import computations, http_errors, request_gate
from stepscope.api.app import MOST_BODY_BYTES, create_app
from stepscope.api.computations import Computations, is_client_gone
from stepscope.base import interruption
from stepscope.catalog.catalog import Catalog
from stepscope.model.trace import Trace, computed
from waiting import until

SLOW = 0.2
"""Time limit of an answer, in seconds."""


class Requests:
    """Requests on threads, which wait for the results of computations."""

    def __init__(self, limit: float = 60.0) -> None:
        self.computations = Computations(limit)
        self.results: dict[str, Any] = {}
        self.gone: set[str] = set()
        self._app = flask.Flask("test")

    def begin(self, name: str, key: str, compute: Callable[[], object]) -> threading.Thread:
        def request() -> None:
            environ = EnvironBuilder().get_environ()
            environ["waitress.client_disconnected"] = lambda: name in self.gone
            with self._app.request_context(environ):
                try:
                    self.results[name] = self.computations.result("long", key, compute)
                except http_errors.RefusalError as error:
                    self.results[name] = error

        thread = threading.Thread(target=request, daemon=True)
        thread.start()
        return thread

    def code(self, name: str) -> str:
        until(lambda: name in self.results)
        return str(self.results[name].error.code)


class Work:
    """Computations that run until they are released."""

    def __init__(self) -> None:
        self.begun = 0
        self.ended: list[str] = []
        self.release = threading.Event()

    def __call__(self) -> str:
        self.begun += 1
        self.release.wait(30)
        return "done"

    def checking(self) -> None:
        """Compute until nobody needs the result."""
        self.begun += 1
        try:
            while True:
                interruption.check()
                time.sleep(0.005)
        except interruption.InterruptedComputation:
            self.ended.append("interrupted")
            raise


@pytest.fixture
def work() -> Iterator[Work]:
    work = Work()
    yield work
    work.release.set()


def test_equal_requests_share_a_computation(work: Work) -> None:
    requests = Requests()
    threads = [requests.begin(f"{number}", "same", work) for number in range(5)]
    until(lambda: work.begun)
    time.sleep(0.05)
    work.release.set()
    for thread in threads:
        thread.join()
    assert set(requests.results.values()) == {"done"}
    assert len(requests.results) == 5
    assert work.begun == 1
    requests.begin("later", "same", work).join()
    assert work.begun == 2


def test_a_few_run_at_once_some_wait_and_others_are_refused(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(computations.WAITING_COUNTS, "long", 4)
    requests = Requests()
    threads = [requests.begin(f"{number}", f"{number}", work) for number in range(5)]
    until(lambda: requests.results and work.begun == computations.RUNNING_COUNTS["long"])
    [refused] = requests.results.values()
    assert (refused.status, refused.error.code) == (503, "busy")
    assert refused.retry_seconds == http_errors.RETRY_SECONDS
    work.release.set()
    for thread in threads:
        thread.join()
    assert list(requests.results.values()).count("done") == 4


def test_an_answer_that_takes_too_long_is_refused_and_ends(work: Work) -> None:
    requests = Requests(SLOW)
    requests.begin("slow", "slow", work.checking)
    assert requests.code("slow") == "too-slow"
    error = requests.results["slow"].error
    assert "0.2 s" in error.message
    assert "--response-seconds" in error.hint
    until(lambda: work.ended)


def test_computations_that_do_not_end_are_replaced(work: Work) -> None:
    requests = Requests(SLOW)
    stuck = [f"stuck {number}" for number in range(computations.RUNNING_COUNTS["long"])]
    for name in stuck:
        requests.begin(name, name, work)
    assert {requests.code(name) for name in stuck} == {"too-slow"}
    requests.begin("next", "next", lambda: "done").join()
    assert requests.results["next"] == "done"


def test_a_computation_ends_when_all_its_clients_have_gone(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(computations, "LOOK_SECONDS", 0.02)
    requests = Requests()
    requests.begin("first", "same", work.checking)
    until(lambda: work.begun)
    requests.begin("second", "same", work.checking)
    requests.begin("waiting", "other", work)
    requests.gone |= {"first", "waiting"}
    until(lambda: {"first", "waiting"} <= requests.results.keys())
    assert not work.ended
    requests.gone.add("second")
    until(lambda: work.ended)
    requests.begin("last", "last", lambda: "done").join()
    assert requests.results["last"] == "done"
    assert work.begun == 1  # what waited for a client that has gone was not computed


def test_an_error_reaches_every_request() -> None:
    def fail() -> None:
        name = "a trace"
        raise http_errors.still_loading(name)

    requests = Requests()
    requests.begin("request", "key", fail)
    assert requests.code("request") == "still-loading"


def test_an_interrupted_computation_ends_before_its_next_analysis() -> None:
    trace, is_needed = trace_of(ROWS), True

    @computed
    def first(_: Trace) -> str:
        nonlocal is_needed
        is_needed = False
        return "first"

    @computed
    def second(_: Trace) -> str:
        return "second"

    with interruption.interruptible(lambda: is_needed):
        assert first(trace) == "first"
        with pytest.raises(interruption.InterruptedComputation):
            second(trace)
        assert first(trace) == "first"  # what is computed remains
    assert second(trace) == "second"


def test_too_many_downloads_are_refused_until_one_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computations, "DOWNLOAD_COUNT", 1)
    sent = Computations(60.0)
    first = sent.sent(iter([b"a", b"b"]))
    assert next(first) == b"a"
    with pytest.raises(http_errors.RefusalError, match="downloads"):
        sent.sent([b"c"])
    first.close()  # type: ignore[attr-defined]
    assert list(sent.sent([b"c"])) == [b"c"]


def test_a_server_with_a_thread_for_each_request_serves_some_at_once(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request_gate, "REQUEST_COUNT", 1)
    monkeypatch.setattr(request_gate, "MOST_WAIT_SECONDS", 0.05)

    def app(_: object, start: Callable[..., object]) -> list[bytes]:
        work()
        start("200 OK", [])
        return [b"done"]

    gated = request_gate.gated(app)
    running = threading.Thread(target=Client(gated).get, args=("/",), daemon=True)
    running.start()
    until(lambda: work.begun)
    refused = Client(gated).get("/")
    assert (refused.status_code, refused.headers["Retry-After"]) == (503, "2")
    assert refused.json is not None
    assert refused.json["code"] == "busy"
    assert refused.json["hint"]
    work.release.set()
    running.join()
    assert Client(gated).get("/").data == b"done"


@pytest.mark.parametrize(
    ("body", "headers"),
    [(b"x" * (MOST_BODY_BYTES + 1), {}), (b"", {"Transfer-Encoding": "chunked"})],
)
def test_a_large_body_is_refused(body: bytes, headers: dict[str, str]) -> None:
    client = create_app(Catalog([])).test_client()
    sent = {"X-Stepscope": "page", **headers}
    refused = client.post("/api/listing/read", data=body, headers=sent)
    assert refused.status_code == 413
    assert refused.get_json()["code"] == "too-large"


def test_a_client_of_tensorboard_that_has_gone_is_noticed() -> None:
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert not is_client_gone({"werkzeug.socket": ours})
        theirs.sendall(b"next")
        assert not is_client_gone({"werkzeug.socket": ours})
        assert ours.recv(4) == b"next"
        theirs.close()
        assert is_client_gone({"werkzeug.socket": ours})
    with suppress(OSError):
        assert not is_client_gone({})
