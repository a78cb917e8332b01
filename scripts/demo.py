"""Starts TensorBoard on a log directory and prints the address of stepscope's tab."""

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
    """Tell whether nothing listens on a port of this machine."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port(wanted: int) -> int:
    """Return the port that was asked for, or the next free one."""
    return next((port for port in range(wanted, wanted + 100) if is_free(port)), wanted)


def lists_stepscope(port: int) -> bool:
    """Tell whether TensorBoard answers on this port and has the plugin."""
    connection = http.client.HTTPConnection("localhost", port, timeout=5)
    try:
        connection.request("GET", "/data/plugins_listing")
        return b'"stepscope"' in connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def is_up(server: "subprocess.Popen[bytes]", port: int) -> bool:
    """Wait until the tab can be opened; False when the server ends before that."""
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
    parser.add_argument("--port", type=int, default=6006, help="the port to begin looking at")
    return parser.parse_args()


def main() -> int:
    """Serve until interrupted, and return TensorBoard's exit status."""
    asked = options()
    port = free_port(asked.port)
    if port != asked.port:
        print(f"Port {asked.port} is taken: using {port}.", flush=True)
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", asked.logdir]
    server = subprocess.Popen([*command, "--port", str(port)])
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: server.terminate())
    try:
        if is_up(server, port):
            print(f"\n    stepscope: http://localhost:{port}/#stepscope\n", flush=True)
        elif server.poll() is None:
            print("TensorBoard runs, but does not list stepscope; its words are above.", flush=True)
            server.terminate()
        return server.wait()
    except KeyboardInterrupt:  # the terminal has interrupted TensorBoard too
        server.wait()
        return 0


if __name__ == "__main__":
    sys.exit(main())
