"""Host names that a stand-alone server accepts.

A page on the internet can resolve its name to 127.0.0.1 and then send requests to this server as
the same origin (DNS rebinding). Those requests carry the page's name in `Host`, so only the
server's names are accepted. An address instead of a name cannot be rebound.
"""

import socket
from collections.abc import Iterable
from ipaddress import ip_address

import flask

from stepscope.api.http_errors import RefusalError
from stepscope.api.messages import ApiError

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def bare(host: str) -> str:
    """Return a `Host` header's name or address, without the port and the brackets of IPv6."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.rpartition(":")[0].lower() if host.count(":") == 1 else host.lower()


def accepted_names(bound: str, extra: Iterable[str] = ()) -> frozenset[str]:
    """Return the names that a server bound to this host accepts.

    A server bound beyond the loopback is also reachable by the machine's name.
    """
    names = {*LOOPBACK, bound.lower(), *(name.lower() for name in extra)}
    if bound.lower() not in LOOPBACK:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


def is_accepted(host: str, names: frozenset[str]) -> bool:
    """Return whether a request with this `Host` header is accepted."""
    name = bare(host)
    is_exposed = not names <= LOOPBACK
    return name in names or (is_exposed and _is_address(name))


def register(app: flask.Flask, names: frozenset[str]) -> None:
    """Refuse requests with another host name."""

    @app.before_request
    def check() -> None:
        host = flask.request.headers.get("Host", "")
        if not is_accepted(host, names):
            hint = (
                "Open the address that stepscope printed, or add the name with --allow-host NAME."
            )
            message = f"This server does not accept the host name {bare(host)!r}."
            raise RefusalError(403, ApiError("host-not-allowed", message, hint))
