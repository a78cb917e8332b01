"""The web server of `stepscope serve`: waitress, with limits for clients and for waiting requests.

waitress closes connections after two minutes of silence and accepts a hundred: clients that send
half a request keep all others out. Here a whole request has to arrive within a time limit, a client
has to receive bytes at a least rate, and with many connections the one that waits longest
is closed. Limits per address would not help: on a loopback or behind a proxy all clients have the
same. A request that waits for a thread for too long is refused.
"""

import logging
import math
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from waitress.channel import HTTPChannel
from waitress.server import create_server
from waitress.task import ThreadedTaskDispatcher

from stepscope.api.app import MOST_BODY_BYTES
from stepscope.api.request_gate import MOST_WAIT_SECONDS, REQUEST_COUNT, refused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from waitress.adjustments import Adjustments
    from waitress.server import BaseWSGIServer
    from waitress.task import Task

THREADS = REQUEST_COUNT
REQUEST_SECONDS = 15.0
"""Time limit for the arrival of a whole request, from the connection or the request before."""
RECEIVING_SECONDS = 60.0
"""Time in which a client has to receive a part of a response."""
RECEIVED_BYTES = 64 * 1024
"""The part, or the rest: a client that receives less keeps a thread from others."""
MOST_UNSENT_BYTES = 1 << 20
"""Part of a download that is read ahead of its client."""
MOST_CONNECTIONS = 1000
"""Number of connections beyond which those that wait for a request are closed."""
CONNECTION_LIMIT = 2000
"""Number of connections at which no more are accepted: all others are busy."""
OTHER_FILES = 256
"""Open files that are no connections: traces, pipes of readers, libraries."""
CLOSING_SECONDS = 0.1
"""Time for running requests to end after Ctrl-C."""
LINGER_SECONDS = 0.5
"""Time in which the rest of a refused body is received, and dropped."""


class Connection(HTTPChannel):
    """A client's connection, which is closed when the client stalls."""

    def __init__(
        self,
        server: "BaseWSGIServer",
        sock: socket.socket,
        addr: tuple[str, int],
        adj: "Adjustments",
        map: "Mapping[int, socket.socket] | None" = None,  # noqa: A002 (passed by name)
    ) -> None:
        self.waits_since = time.monotonic()
        """Time of the connection, or of the last whole request."""
        self.queued_at = 0.0
        """Time since which a request waits for a thread."""
        self._part_began_at = time.monotonic()
        self._part_bytes = 0
        self._is_refused = False
        self._lingers_until = 0.0
        """End of the time in which arriving bytes are dropped; 0: not begun."""
        super().__init__(server, sock, addr, adj, map=map)
        connections = connections_of(server)
        if len(connections) > most_connections(adj):
            waiting = [other for other in connections if other is not self and other.is_waiting]
            if waiting:
                min(waiting, key=lambda other: other.waits_since).will_close = True

    @property
    def is_waiting(self) -> bool:
        """Whether the server waits for a request, or the rest of one."""
        return not (self.requests or self.total_outbufs_len or self.will_close)

    def readable(self) -> bool:
        """Return whether to read from the connection; close it where the client stalls."""
        if self._is_stalled():
            if self._has_new_request():
                self.waits_since = time.monotonic()
            else:
                self.handle_close()
        return self.connected and super().readable()

    def writable(self) -> bool:
        """Return whether to write to the connection."""
        return self.connected and bool(super().writable())

    def received(self, data: bytes) -> bool:
        """Handle received data."""
        if self._lingers_until:
            return False
        is_accepted = super().received(data)
        if self.requests:  # until it is served, as its response may reach the client before
            self.waits_since = math.inf
        return is_accepted

    def write_soon(self, data: bytes) -> int:
        """Send data to the client, or queue it."""
        if not self.total_outbufs_len:
            self._begin_part()
        return int(super().write_soon(data))

    def service(self) -> None:
        """Respond to a request."""
        self._is_refused = self.requests[0].error is not None
        super().service()
        self.waits_since = time.monotonic()

    def handle_write(self) -> None:
        """Send the queued bytes, and close the connection where it ends with a refusal.

        The rest of a refused body is received for a moment, since closing before would make the
        client lose the response.
        """
        if self._is_refused and self.close_when_flushed and not self.total_outbufs_len:
            self._is_refused = self.close_when_flushed = False
            self._lingers_until = time.monotonic() + LINGER_SECONDS
            with suppress(OSError):
                cast("socket.socket", self.socket).shutdown(socket.SHUT_WR)
        else:
            super().handle_write()

    def send(self, data: bytes, do_close: bool = True) -> int:  # noqa: FBT001, FBT002 (its signature)
        """Send data to the client; return the number of bytes that it accepts."""
        count = int(super().send(data, do_close=do_close))
        self._part_bytes += count
        if self._part_bytes >= RECEIVED_BYTES:
            self._begin_part()
        return count

    def _begin_part(self) -> None:
        self._part_began_at, self._part_bytes = time.monotonic(), 0

    def _is_stalled(self) -> bool:
        if self._lingers_until:
            return time.monotonic() > self._lingers_until
        if self.total_outbufs_len:
            return time.monotonic() - self._part_began_at > RECEIVING_SECONDS
        return self.is_waiting and time.monotonic() - self.waits_since > REQUEST_SECONDS

    def _has_new_request(self) -> bool:
        """Return whether a request has begun to arrive, of which nothing is read yet."""
        if self._lingers_until or not self.is_waiting or self.request is not None:
            return False
        try:
            return bool(cast("socket.socket", self.socket).recv(1, socket.MSG_PEEK))
        except OSError:
            return False


def connections_of(server: "BaseWSGIServer") -> "list[Connection]":
    """Return a server's open connections."""
    channels = cast("dict[int, Connection]", server.active_channels)
    return list(channels.values())


def most_connections(adjustments: "Adjustments") -> int:
    """Return the number of connections beyond which those that wait for a request are closed."""
    return min(MOST_CONNECTIONS, adjustments.connection_limit // 2)


class Threads(ThreadedTaskDispatcher):
    """The threads that respond, which note how long a request has waited for one of them."""

    def add_task(self, task: "Task") -> None:
        """Queue a request."""
        cast("Connection", task).queued_at = time.monotonic()
        super().add_task(task)

    def shutdown(self, cancel_pending: bool = True, timeout: float = CLOSING_SECONDS) -> bool:  # noqa: FBT001, FBT002 (its signature)
        """Stop the threads; those that still compute end with the process."""
        self.logger.setLevel(logging.ERROR)  # it warns of them
        return bool(super().shutdown(cancel_pending, cast("int", timeout)))


logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # it warns of every waiting request


def web_server(app: "WSGIApplication", listening: socket.socket) -> "BaseWSGIServer":
    """Return a server of an app on a listening socket; `run()` serves until Ctrl-C."""
    threads = Threads()
    threads.set_thread_count(THREADS)
    created = create_server(
        _unless_late(app),
        _dispatcher=threads,
        sockets=[listening],
        threads=THREADS,
        ident="stepscope",
        connection_limit=connection_limit(),
        channel_request_lookahead=1,  # otherwise it is not noticed that a client has gone
        max_request_body_size=MOST_BODY_BYTES,
        outbuf_high_watermark=MOST_UNSENT_BYTES,
        asyncore_use_poll=True,  # select() accepts no files above number 1023
    )
    server = cast("BaseWSGIServer", created)  # of one socket
    server.channel_class = Connection
    return server


def connection_limit() -> int:
    """Return the number of connections for which there are files, after raising their limit."""
    try:
        import resource  # noqa: PLC0415 (Windows has none)
    except ImportError:
        return CONNECTION_LIMIT
    needed = CONNECTION_LIMIT + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        with suppress(ValueError, OSError):
            soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        return max(soft - OTHER_FILES, soft // 2)
    return CONNECTION_LIMIT


def _unless_late(app: "WSGIApplication") -> "WSGIApplication":
    """Refuse requests that have waited for a thread for too long."""

    def respond(environ: "WSGIEnvironment", start: "StartResponse") -> "Iterable[bytes]":
        connection = environ["waitress.client_disconnected"].__self__
        if time.monotonic() - connection.queued_at > MOST_WAIT_SECONDS:
            return refused(start)
        return app(environ, start)

    return respond
