"""The web server of `stepscope serve`: waitress, with time limits for clients that stall.

waitress closes connections after two minutes of silence and accepts a hundred: clients that send
half a request keep all others out. Here a whole request has to arrive within a time limit, a client
has to receive what was sent, and with many connections the one that waits longest is closed. Limits
per address would not help: on a loopback or behind a proxy all clients have the same.
"""

import math
import socket
import time
from typing import TYPE_CHECKING, cast

from waitress.channel import HTTPChannel
from waitress.server import create_server

if TYPE_CHECKING:
    from collections.abc import Mapping

    from _typeshed.wsgi import WSGIApplication
    from waitress.adjustments import Adjustments
    from waitress.server import BaseWSGIServer

THREADS = 8
REQUEST_SECONDS = 15.0
"""Time limit for the arrival of a whole request, from the connection or the request before."""
RECEIVING_SECONDS = 60.0
"""Longest time in which a client receives nothing of a response."""
MOST_CONNECTIONS = 200
"""Number of connections beyond which those that wait for a request are closed."""
CONNECTION_LIMIT = 1000
"""Number of connections at which no more are accepted: all others are busy."""


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
        super().__init__(server, sock, addr, adj, map=map)
        connections = connections_of(server)
        if len(connections) > MOST_CONNECTIONS:
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
            self.handle_close()
        return self.connected and super().readable()

    def writable(self) -> bool:
        """Return whether to write to the connection."""
        return self.connected and bool(super().writable())

    def received(self, data: bytes) -> bool:
        """Handle received data."""
        is_accepted = super().received(data)
        if self.requests:  # until it is served, as its response may reach the client before
            self.waits_since = math.inf
        return is_accepted

    def service(self) -> None:
        """Respond to a request."""
        super().service()
        self.waits_since = time.monotonic()

    def _is_stalled(self) -> bool:
        if self.total_outbufs_len:
            return time.time() - self.last_activity > RECEIVING_SECONDS
        return self.is_waiting and time.monotonic() - self.waits_since > REQUEST_SECONDS


def connections_of(server: "BaseWSGIServer") -> "list[Connection]":
    """Return a server's open connections."""
    channels = cast("dict[int, Connection]", server.active_channels)
    return list(channels.values())


def web_server(app: "WSGIApplication", listening: socket.socket) -> "BaseWSGIServer":
    """Return a server of an app on a listening socket; `run()` serves until Ctrl-C."""
    created = create_server(
        app,
        sockets=[listening],
        threads=THREADS,
        ident="stepscope",
        connection_limit=CONNECTION_LIMIT,
        asyncore_use_poll=True,  # select() accepts no files above number 1023
    )
    server = cast("BaseWSGIServer", created)  # of one socket
    server.channel_class = Connection
    return server
