"""Clients that stall do not keep others out of `stepscope serve`."""

import http.client
import math
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, cast

import pytest

from stepscope.api import web_server
from waiting import LONG_SECONDS, until

if TYPE_CHECKING:
    from waitress.server import BaseWSGIServer

HALF = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: "
LARGE = b"x" * (1 << 20)
LARGE_COUNT = 64


def app(environment: dict[str, str], start: Callable[..., object]) -> Iterator[bytes]:
    start("200 OK", [("Content-Type", "text/plain")])
    if environment["PATH_INFO"] == "/large":
        yield from [LARGE] * LARGE_COUNT
    yield b"hello"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> "Iterator[BaseWSGIServer]":
    monkeypatch.setattr(web_server, "THREADS", 8)
    listening = socket.create_server(("127.0.0.1", 0))
    server = web_server.web_server(app, listening)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    yield server
    stop(server)


def stop(server: "BaseWSGIServer") -> None:
    for connection in web_server.connections_of(server):
        connection.will_close = True
    server.pull_trigger()
    server.task_dispatcher.shutdown()


@pytest.fixture
def port(server: "BaseWSGIServer") -> int:
    return int(server.getsockname()[1])


def seconds_until_answered(port: int) -> float:
    start = time.monotonic()
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONG_SECONDS)) as client:
        client.request("GET", "/")
        assert client.getresponse().read() == b"hello"
    return time.monotonic() - start


def half_requests(port: int, count: int) -> list[socket.socket]:
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
    for client in clients:
        client.sendall(HALF)
    return clients


def is_closed(client: socket.socket) -> bool:
    client.settimeout(0)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def close(clients: list[socket.socket]) -> None:
    for client in clients:
        client.close()


def test_another_client_is_answered_at_once(port: int) -> None:
    clients = half_requests(port, 100)
    assert seconds_until_answered(port) < 2
    close(clients)


def test_with_many_connections_those_that_wait_longest_are_closed(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "MOST_CONNECTIONS", 20)
    first = half_requests(port, 10)
    second = half_requests(port, 20)
    until(lambda: sum(map(is_closed, first)) == 10)
    assert seconds_until_answered(port) < 2
    assert sum(map(is_closed, second)) <= 2
    close([*first, *second])


def test_a_request_has_to_arrive_within_the_time_limit(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "REQUEST_SECONDS", 1.0)
    clients = half_requests(port, 100)
    silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
    ends = time.monotonic() + 5
    while not is_closed(clients[0]) and time.monotonic() < ends:
        with_a_letter_more(clients[0])
        time.sleep(0.1)
    until(lambda: all(map(is_closed, [*clients, *silent])))
    close([*clients, *silent])


def test_a_request_that_arrives_as_the_time_ends_is_answered() -> None:
    server = web_server.web_server(app, socket.create_server(("127.0.0.1", 0)))
    with closing(socket.create_connection(server.getsockname())) as client:
        until(lambda: web_server.connections_of(server) or turn(server))
        [connection] = web_server.connections_of(server)
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connection.waits_since = -math.inf
        until(lambda: select.select([client], [], [], 0)[0] or turn(server))
        assert client.recv(12) == b"HTTP/1.1 200"
    connection.handle_close()
    server.task_dispatcher.shutdown()
    server.close()


def turn(server: "BaseWSGIServer") -> bool:
    """Handle what has arrived, and return False."""
    cast("Any", server).asyncore.loop(timeout=0.01, map=vars(server)["_map"], count=1)
    return False


def with_a_letter_more(client: socket.socket) -> None:
    with suppress(BlockingIOError, ConnectionError):
        client.send(b"x")


def test_clients_that_receive_nothing_do_not_occupy_the_threads(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits in a thread, until the client has received what was sent."""
    monkeypatch.setattr(web_server, "RECEIVING_SECONDS", 1.0)
    monkeypatch.setattr(web_server, "MOST_WAIT_SECONDS", LONG_SECONDS)
    clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(web_server.THREADS)]
    for client in clients:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert seconds_until_answered(port) < LONG_SECONDS
    close(clients)


def test_a_client_that_receives_slowly_receives_everything(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "RECEIVING_SECONDS", 3.0)
    monkeypatch.setattr(web_server, "REQUEST_SECONDS", 0.5)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONG_SECONDS)) as client:
        client.request("GET", "/large")
        response, count = client.getresponse(), 0
        for _ in range(8):
            count += len(response.read(8 << 20))
            time.sleep(0.3)
        assert count + len(response.read()) == LARGE_COUNT * len(LARGE) + len(b"hello")


def test_a_client_that_receives_a_byte_at_a_time_is_disconnected(
    server: "BaseWSGIServer", port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "RECEIVING_SECONDS", 0.3)
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(lambda: web_server.connections_of(server))
    ends = time.monotonic() + LONG_SECONDS
    while web_server.connections_of(server):
        assert time.monotonic() < ends
        client.recv(1)
        time.sleep(0.02)
    client.close()


def test_a_request_that_waits_too_long_for_a_thread_is_refused(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_server, "MOST_WAIT_SECONDS", -1.0)
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=LONG_SECONDS)) as client:
        client.request("GET", "/")
        response = client.getresponse()
        assert (response.status, response.headers["Retry-After"]) == (503, "2")
        assert b'"busy"' in response.read()


@pytest.mark.parametrize("header", [b"Content-Length: 1073741824", b"Transfer-Encoding: chunked"])
def test_a_body_of_a_gigabyte_is_refused_early(port: int, header: bytes) -> None:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=LONG_SECONDS)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
        piece, sent = b"10000\r\n" + b"x" * 0x10000 + b"\r\n", 0
        while not select.select([client], [], [], 0.001)[0]:
            client.sendall(piece)
            sent += len(piece)
        assert client.recv(1 << 16).startswith(b"HTTP/1.1 413")
    assert sent < 1 << 26


def test_a_client_that_sends_on_receives_its_refusal(port: int) -> None:
    with closing(socket.create_connection(("127.0.0.1", port), timeout=LONG_SECONDS)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        client.sendall(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
        received = b""
        while piece := client.recv(1 << 16):
            received += piece
    assert received.startswith(b"HTTP/1.1 413")


def test_the_server_stops_at_once_with_requests_running() -> None:
    release = threading.Event()

    def slow(_: dict[str, str], start: Callable[..., object]) -> list[bytes]:
        release.wait(LONG_SECONDS)
        start("200 OK", [])
        return [b""]

    listening = socket.create_server(("127.0.0.1", 0))
    server = web_server.web_server(slow, listening)
    port = listening.getsockname()[1]
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(lambda: server.task_dispatcher.active_count)
    start = time.monotonic()
    server.task_dispatcher.shutdown()
    assert time.monotonic() - start < 1
    release.set()
    client.close()
    stop(server)
