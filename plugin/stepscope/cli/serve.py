"""`stepscope serve`: serve the page without TensorBoard."""

import errno
import socket
import webbrowser
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from stepscope.base.plain_text import plain
from stepscope.cli import completion
from stepscope.cli.advice_options import RuleOptions, with_rules
from stepscope.cli.file_reading import Effort, with_effort, with_summaries
from stepscope.cli.output import log_formatter

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIApplication

    from stepscope.catalog.catalog import Catalog
    from stepscope.catalog.log_directories import LogDirectory
    from stepscope.readers.cluster import Cluster

DEFAULT_PORT = 6007
"""One above TensorBoard's."""
LOOPBACK = "127.0.0.1"
IS_FILE = "This is a file, not a folder."
CLOSING_SECONDS = 0.5
"""Time for writing the last summaries after Ctrl-C; the rest is computed again another time."""


@click.command(short_help="Serve the page for the traces below LOGDIR.")
@click.argument(
    "logdirs", metavar="LOGDIR...", nargs=-1, required=True, shell_complete=completion.files
)
@click.option("--host", default=LOOPBACK, show_default=True, help="Listen on this address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help=f"Listen on this port; 0: any free port.  [default: {DEFAULT_PORT}, or a free port]",
)
@click.option(
    "--allow-host",
    "allowed",
    multiple=True,
    metavar="NAME",
    help="Accept requests for this host name, such as a proxy's; repeatable.",
)
@click.option(
    "--response-seconds",
    type=click.IntRange(min=1),
    help="Time limit of a response that is computed from traces.  [default: 60]",
)
@click.option("--open", "is_opened", is_flag=True, help="Open the page in the browser.")
@with_rules
@with_effort
@with_summaries
def serve(  # noqa: PLR0913 (one parameter per option)
    *,
    logdirs: tuple[str, ...],
    host: str,
    port: int | None,
    allowed: tuple[str, ...],
    response_seconds: int | None,
    is_opened: bool,
    rule_options: RuleOptions,
    effort: Effort,
) -> None:
    """Serve the page for the traces below each LOGDIR, until Ctrl-C.

    LOGDIR is a folder, or one trace file of any name that ends in .json or .json.gz.

    Only this machine can open it, unless --host is given; there is no password.

    \b
    stepscope serve log/
    stepscope serve log/ --port 8080 --open
    stepscope serve trace.json.gz
    ssh -L 6007:localhost:6007 gpu-machine stepscope serve log/
    """
    import logging

    from stepscope.api.catalog_factory import catalog_for, cluster_of
    from stepscope.api.web_server import web_server
    from stepscope.base.urls import redacted

    handler = logging.StreamHandler()
    handler.setFormatter(log_formatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler])
    directories = _directories(logdirs)
    settings = effort.settings(response_seconds=response_seconds)
    cluster = cluster_of(settings)
    if cluster is not None:
        cluster.connect()
    catalog = catalog_for(directories, settings, rule_options.settings(), cluster)
    app = _app(catalog, host, allowed)
    listening = _listening(host, port)
    address = _address(host, int(listening.getsockname()[1]))
    folders = plain(", ".join(map(redacted, logdirs)))
    click.echo(f"stepscope serves {folders} at {address} (stop it with Ctrl-C)")
    if is_opened:
        webbrowser.open(address)
    catalog.watch()
    catalog.start_reading()
    web_server(app, listening).run()
    _close(catalog, cluster)


def _close(catalog: "Catalog", cluster: "Cluster | None") -> None:
    """Write the last summaries; storage that does not respond must not delay the end."""
    from threading import Thread

    def close() -> None:
        catalog.close()
        if cluster is not None:
            cluster.close()

    closing = Thread(target=close, daemon=True)
    closing.start()
    closing.join(CLOSING_SECONDS)


def _app(catalog: "Catalog", host: str, allowed: Iterable[str]) -> "WSGIApplication":
    from stepscope.api import allowed_hosts
    from stepscope.api.app import create_app

    return create_app(
        catalog,
        host_names=allowed_hosts.accepted_names(host, allowed),
        response_seconds=catalog.settings.response_seconds,
    )


def _directories(logdirs: tuple[str, ...]) -> "list[LogDirectory]":
    """Return the log directories; if there are several, each has a name that its runs begin with.

    Raises:
        UnreadableError: The folder or file does not exist, or remote storage cannot be read.
    """
    from stepscope.base.urls import redacted
    from stepscope.catalog.log_directories import LogDirectory

    is_named = len(logdirs) > 1
    return [
        LogDirectory(path=path, name=redacted(path) if is_named else "", is_file=_is_file(path))
        for path in logdirs
    ]


def _is_file(path: str) -> bool:
    """Return whether a path is that of a trace; False for a folder.

    Raises:
        UnreadableError: It is neither.
    """
    from stepscope import storage
    from stepscope.base.errors import UnreadableError
    from stepscope.storage.discover import OTHER_NAMES

    if storage.is_folder(path):
        return False
    message, remedy = _missing_folder(path)
    if message == IS_FILE and path.endswith(OTHER_NAMES):
        return True
    raise UnreadableError(path, message, remedy)


def _missing_folder(path: str) -> tuple[str, str]:
    """Return why a path is no folder, and the remedy."""
    from stepscope import storage
    from stepscope.storage.discover import similar_path_remedy

    remedy = "Pass the folder that contains the traces, or a trace (.json, .json.gz)."
    try:
        if storage.exists(path):
            return IS_FILE, remedy
    except OSError as error:
        return f"This cannot be opened: {error.strerror}.", remedy
    return "There is no such folder.", similar_path_remedy(path)


def _listening(host: str, port: int | None) -> socket.socket:
    """Return a listening socket; without `port` on the default port, or a free one.

    Raises:
        UsageError: The port or address is not available.
    """
    from stepscope.base.errors import UsageError

    number = DEFAULT_PORT if port is None else port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, number), family=family)
    except OSError as error:
        is_taken = error.errno == errno.EADDRINUSE
        if is_taken and port is None:
            return _listening(host, 0)
        reason = "it is in use" if is_taken else error.strerror or str(error)
        remedy = "Choose another --port (0: any free port) or --host"
        msg = f"cannot listen on {host}, port {number}: {reason}. {remedy}"
        raise UsageError(msg) from error


def _address(host: str, port: int) -> str:
    address = {"0.0.0.0": LOOPBACK, "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{address}:{port}/"
