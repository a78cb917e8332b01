"""Start TensorBoard on a log directory, and print the URL of stepscope's tab."""

import argparse
import http.client
import signal
import socket
import subprocess
import sys
import time

PATIENCE_S = 120
"""A cold start on a slow disk reads some 100 MB of Python modules."""


def is_free(port: int) -> bool:
    """Return whether a port of this machine is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port(first: int) -> int:
    """Return a port if it is free, or the next free one."""
    return next((port for port in range(first, first + 100) if is_free(port)), first)


def lists_stepscope(port: int) -> bool:
    """Return whether TensorBoard responds on a port and has the plugin."""
    connection = http.client.HTTPConnection("localhost", port, timeout=5)
    try:
        connection.request("GET", "/data/plugins_listing")
        return b'"stepscope"' in connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def is_up(server: "subprocess.Popen[bytes]", port: int) -> bool:
    """Wait until the tab is available; return False if the server ends before that."""
    deadline_s = time.monotonic() + PATIENCE_S
    while server.poll() is None and time.monotonic() < deadline_s:
        if lists_stepscope(port):
            return True
        time.sleep(0.1)
    return False


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logdir", help="the folder with the traces")
    parser.add_argument("--port", type=int, default=6006, help="the first port to try")
    return parser.parse_args()


def main() -> int:
    """Serve until interrupted, and return TensorBoard's exit status."""
    arguments = options()
    port = free_port(arguments.port)
    if port != arguments.port:
        print(f"Port {arguments.port} is in use; using {port}.", flush=True)
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", arguments.logdir]
    server = subprocess.Popen([*command, "--port", str(port)])
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: server.terminate())
    try:
        if is_up(server, port):
            print(f"\n    stepscope: http://localhost:{port}/#stepscope\n", flush=True)
        elif server.poll() is None:
            print(
                "TensorBoard runs, but does not list stepscope; its messages are above.", flush=True
            )
            server.terminate()
        return server.wait()
    except KeyboardInterrupt:  # the terminal has interrupted TensorBoard too
        server.wait()
        return 0


if __name__ == "__main__":
    sys.exit(main())
