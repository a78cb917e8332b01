"""Connection to a cluster's scheduler, given by its address or its scheduler file."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stepscope.readers.cluster.replies import NoClusterError, Timeouts

if TYPE_CHECKING:
    from distributed import Client

FILE = "file://"
CHECK_SECONDS = 0.1
PROBE_SECONDS = 2.0
SLACK_SECONDS = 5.0
"""Dask's own limit should expire first: its error includes the reason."""


async def connect_client(target: str, timeouts: Timeouts) -> "Client":
    """Return a client of the scheduler at an address or of a scheduler file.

    Raises:
        NoClusterError: Dask is missing, or no scheduler responds.
    """
    try:
        from distributed import Client
    except ImportError as error:
        message = f"Reading on a cluster needs Dask, which is not installed here ({error})."
        raise NoClusterError(message, "pip install 'stepscope[dask]'") from error
    address = await _address(target, timeouts)
    client = Client(  # type: ignore[no-untyped-call]
        address,
        asynchronous=True,
        timeout=timeouts.connect_seconds,
        set_as_default=False,
        name="stepscope",
    )
    try:
        await asyncio.wait_for(client, timeouts.connect_seconds + SLACK_SECONDS)
    except (OSError, ValueError, TypeError, RuntimeError, ImportError) as error:
        with suppress(Exception):
            await asyncio.wait_for(client.close(), SLACK_SECONDS)  # type: ignore[no-untyped-call]
        raise _no_scheduler(target, address, error) from error
    return client


async def reaches_worker(client: "Client", worker: str) -> bool:
    """Return whether this machine reaches a worker, so that results can come directly from it."""
    from distributed.comm.core import connect

    arguments = client.security.get_connection_args("client")
    try:
        comm = await connect(worker, timeout=PROBE_SECONDS, **arguments)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError, RuntimeError):
        return False
    await comm.close()
    return True


async def _address(target: str, timeouts: Timeouts) -> str:
    """Return the scheduler's address; wait for a scheduler file that is not written yet."""
    if target.startswith(FILE) or target.endswith(".json"):
        path = Path(target.removeprefix(FILE)).expanduser()
        for _ in range(max(1, int(timeouts.connect_seconds / CHECK_SECONDS))):
            if (address := _address_in(path)) is not None:
                return address
            await asyncio.sleep(CHECK_SECONDS)
        message = f"{path} is not a Dask scheduler file, or does not exist."
        raise NoClusterError(message, f"Start one with `dask scheduler --scheduler-file {path}`.")
    return target if "://" in target else f"tcp://{target}"


def _address_in(path: Path) -> str | None:
    try:
        address = json.loads(path.read_text(encoding="utf-8"))["address"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return address if isinstance(address, str) else None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _no_scheduler(target: str, address: str, error: BaseException) -> NoClusterError:
    location = address if address.endswith(target) else f"{address} ({target})"
    # Dask reports how long it tried, and the system why, unless the last attempt was cut short
    texts = [text for link in _chain(error) if (text := str(link).partition("\n")[0].rstrip("."))]
    reason = texts[-1] if texts else type(error).__name__
    message = f"No Dask scheduler responds at {location}: {reason}."
    remedy = "Start one (dask scheduler), or pass --scheduler the address that it prints"
    if address.startswith("tls://"):
        remedy += "; for tls:// configure Dask's certificates (distributed.comm.tls)"
    return NoClusterError(message, f"{remedy}.")
