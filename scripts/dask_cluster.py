"""Start a Dask scheduler and workers on this machine, and print the command that uses them."""

import argparse
import signal
import socket
import subprocess
import sys
import time

LOOPBACK = "127.0.0.1"
PATIENCE_S = 120
"""A cold start on a slow disk reads some 100 MB of Python modules."""
DASK = (sys.executable, "-m", "dask")


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--workers", type=int, default=2, help="number of workers with one thread each"
    )
    parser.add_argument("--port", type=int, default=8786, help="port of the scheduler")
    return parser.parse_args()


def is_up(scheduler: "subprocess.Popen[bytes]", port: int) -> bool:
    """Wait until the scheduler listens; return False if it ends before that."""
    deadline_s = time.monotonic() + PATIENCE_S
    while scheduler.poll() is None and time.monotonic() < deadline_s:
        with socket.socket() as probe:
            if probe.connect_ex((LOOPBACK, port)) == 0:
                return True
        time.sleep(0.1)
    return False


def main() -> int:
    """Run the cluster until Ctrl-C; return the exit status."""
    arguments = options()
    address = f"tcp://{LOOPBACK}:{arguments.port}"
    listening = ("--host", LOOPBACK, "--port", str(arguments.port), "--no-dashboard")
    scheduler = subprocess.Popen([*DASK, "scheduler", *listening])
    workers: list[subprocess.Popen[bytes]] = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not is_up(scheduler, arguments.port):
            return 1
        one = ("--nworkers", "1", "--nthreads", "1", "--no-dashboard")
        workers += [
            subprocess.Popen([*DASK, "worker", address, *one]) for _ in range(arguments.workers)
        ]
        print(f"\nstepscope advise LOGDIR --scheduler {address}    (Ctrl-C ends the cluster)\n")
        return scheduler.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        for process in (*workers, scheduler):
            process.terminate()
        for process in (*workers, scheduler):
            process.wait()


if __name__ == "__main__":
    sys.exit(main())
