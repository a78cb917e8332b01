"""Which names a stand-alone server answers to.

A page on the internet can point a name of its own at 127.0.0.1 and then ask us, as the same
origin (DNS rebinding). Its requests carry that name in `Host`, so only our own names are answered.
An address instead of a name cannot be rebound.
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
    """Return the names that a server bound to this host answers to.

    One that is bound beyond the loopback is reached by the machine's own name too.
    """
    names = {*LOOPBACK, bound.lower(), *(name.lower() for name in extra)}
    if bound.lower() not in LOOPBACK:
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


def is_accepted(host: str, names: frozenset[str]) -> bool:
    """Tell whether a request that names this host is for us."""
    name = bare(host)
    is_exposed = not names <= LOOPBACK
    return name in names or (is_exposed and _is_address(name))


def register(app: flask.Flask, names: frozenset[str]) -> None:
    """Refuse requests that name another host."""

    @app.before_request
    def check() -> None:
        host = flask.request.headers.get("Host", "")
        if not is_accepted(host, names):
            hint = "Open the address that stepscope printed, or allow the name: --allow-host NAME."
            message = f"this server does not answer to the name {bare(host)!r}"
            raise RefusalError(403, ApiError("host-not-allowed", message, hint))
