"""Both servers under load: `python -m benchmarks.server_load`, in `tests`. Linux only.

Real HTTP clients, on this machine, against a process of `stepscope serve` and of TensorBoard. One
table per server is printed. A client waits as long as `Retry-After` of a refusal says; a refusal
without it, a lost connection, and any status from 500 but 503 is an error.
"""

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import aiohttp
from rich.console import Console
from rich.table import Table

from benchmarks.process_tree import descendants, pss_bytes
from benchmarks.processes import of_module, variables
from benchmarks.scaled import SEED, scaled

Kind = Literal["small", "heavy", "other tab"]
RUN_COUNT = 8
TENSORBOARD = """
import sys
from tensorboard import default, program
from stepscope.tensorboard import StepscopeLoader
server = program.TensorBoard(plugins=[*default.get_static_plugins(), StepscopeLoader])
server.configure(sys.argv)
sys.exit(server.main())
"""
"""TensorBoard without the plugins of other packages, which may read the traces, too."""
POLL_SECONDS = 1.0
"""Pause of an open page between two requests for the runs while files are read."""
READER_SHARE = 0.05
"""Fraction of the clients that also open views."""
LONG_SECONDS = 120.0
REFUSALS = frozenset({429, 503})
SMALL = ("api/tools", "api/tables", "api/query-tables", "index.html", "api/rules/blocking-d2h-copy")
"""Answers that need no trace."""
HEAVY = (
    "api/traces/{trace}/overview",
    "api/traces/{trace}/operators",
    "api/traces/{trace}/kernels",
    "api/traces/{trace}/modules",
    "api/traces/{trace}/what-if/names",
    "api/traces/{trace}/tables/kernel-events",
    "api/traces/{trace}/tables/critical-path",
    "api/traces/{trace}/timeline/tracks",
    "api/traces/{trace}/flame/graph",
    "api/traces/{trace}/what-if/fixes",
    "api/runs/{run}/advice",
    "api/distributed?run={run}",
    "api/comparison?run={run}&base_run={other}",
    "api/runs/{run}/tables/ranks",
)
OTHER_TABS = ("data/environment", "data/plugins_listing", "data/runs")
MEBIBYTE = 2**20
GIBIBYTE = 2**30
RANDOM = random.Random(21)  # noqa: S311 (no secret)
console = Console(highlight=False, soft_wrap=True, width=160)


@dataclass(kw_only=True)
class Answers:
    """Durations and statuses of the answers to one kind of requests."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)

    def text(self) -> str:
        """Return the counts and the percentiles."""
        if not self.seconds:
            return f"no answer; {_counts(self.errors)}"
        ordered = sorted(self.seconds)
        p50, p99 = (ordered[int(len(ordered) * share)] for share in (0.5, 0.99))
        return (
            f"{len(ordered):,} answers, p50 {p50:.3f} s, p99 {p99:.3f} s, most {ordered[-1]:.2f} s;"
            f" {_counts(self.statuses)}; errors: {_counts(self.errors) or 0}"
        )


def _counts(counter: Counter[str]) -> str:
    return ", ".join(f"{name}: {count:,}" for name, count in sorted(counter.items()))


@dataclass(kw_only=True)
class Server:
    """A server's process."""

    name: str
    process: subprocess.Popen[bytes]
    address: str
    """Of the page, with a slash at the end."""
    port: int
    log: Path

    def memory_bytes(self) -> int:
        """Return the proportional memory of the process and its children."""
        pids = (self.process.pid, *descendants(self.process.pid))
        return sum(map(pss_bytes, pids))

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process."""
        text = Path(f"/proc/{self.process.pid}/stat").read_text()
        user, system = text.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(name: str, folder: Path, memory: str) -> Iterator[Server]:
    """Start a server of the traces of a folder."""
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    commands = {
        "serve": of_module("stepscope", "serve", str(folder), "--port", str(port)),
        "tensorboard": [
            *(sys.executable, "-c", TENSORBOARD, f"--logdir={folder}", f"--port={port}"),
            "--host=127.0.0.1",
        ],
    }
    paths = {"serve": "", "tensorboard": "data/plugin/stepscope/"}
    environment = {
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "STEPSCOPE_MEMORY": memory,
        "STEPSCOPE_SUMMARIES": "0",
    }
    log = Path(tempfile.gettempdir(), f"server_load-{name}-{os.getpid()}.log")
    with log.open("wb") as output:
        process = subprocess.Popen(
            commands[name], stdout=output, stderr=subprocess.STDOUT, env=variables(environment)
        )
    address = f"http://127.0.0.1:{port}/{paths[name]}"
    server = Server(name=name, process=process, address=address, port=port, log=log)
    try:
        yield server
    finally:
        process.kill()
        process.wait()


class Load:
    """Requests to one server, and what becomes of them."""

    def __init__(self, server: Server, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session
        self.answers: dict[Kind, Answers] = {}
        self.runs: list[dict[str, Any]] = []
        self._tag = ""

    def begin(self) -> None:
        """Forget the answers so far."""
        self.answers = {kind: Answers() for kind in ("small", "heavy", "other tab")}

    async def get(self, path: str, kind: Kind, tag: str = "") -> tuple[int, bytes, str]:
        """Request a path; return the status, the body and the entity tag."""
        answers = self.answers[kind]
        base = self.server.address
        url = base if kind != "other tab" else f"http://127.0.0.1:{self.server.port}/"
        headers = {"If-None-Match": tag} if tag else {}
        start = time.perf_counter()
        try:
            async with self._session.get(url + path, headers=headers) as response:
                body = await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            answers.errors[type(error).__name__] += 1
            return 0, b"", ""
        status = response.status
        is_refused = status in REFUSALS and "Retry-After" in response.headers
        if status >= 500 and not is_refused:
            answers.errors[f"status {status}"] += 1
            console.print(f"status {status} {path}: {body[:200]!r}")
        else:
            answers.statuses[str(status)] += 1
            answers.seconds.append(time.perf_counter() - start)
        if is_refused:
            await asyncio.sleep(float(response.headers["Retry-After"]) * RANDOM.uniform(1, 2))
        return status, body, response.headers.get("ETag", "")

    async def list_runs(self, tag: str) -> str:
        """Request the list of runs as an open page does."""
        status, body, new = await self.get("api/runs", "small", tag)
        if status == 200:
            self.runs = json.loads(body)["runs"]
        return new or tag

    def heavy_path(self) -> str | None:
        """Return a random heavy request about a trace that is read."""
        ready = [
            (run["id"], span["trace"])
            for run in self.runs
            for worker in run["workers"]
            for span in worker["spans"]
            if span["state"] == "ready"
        ]
        if not ready:
            return None
        run, trace = RANDOM.choice(ready)
        return RANDOM.choice(HEAVY).format(trace=trace, run=run, other=RANDOM.choice(ready)[0])

    async def page(self, ends: float, *, opens_views: bool) -> None:
        """Be an open page until a time."""
        tag = ""
        await asyncio.sleep(RANDOM.uniform(0, POLL_SECONDS))
        while time.perf_counter() < ends:
            tag = await self.list_runs(tag)
            if RANDOM.random() < 0.1:
                await self.get(RANDOM.choice(SMALL), "small")
            path = self.heavy_path() if opens_views else None
            if path is not None:
                await self.get(path, "heavy")
            await asyncio.sleep(POLL_SECONDS)

    async def other_tab(self, ends: float) -> None:
        """Request answers of TensorBoard itself until a time."""
        while time.perf_counter() < ends:
            await self.get(RANDOM.choice(OTHER_TABS), "other tab")
            await asyncio.sleep(POLL_SECONDS / 4)

    async def until_read(self) -> float:
        """Wait until all files are read; return the seconds."""
        start = time.perf_counter()
        while True:
            _, body, _ = await self.get("api/runs", "small")
            if body and not json.loads(body)["loading"] and json.loads(body)["runs"]:
                self.runs = json.loads(body)["runs"]
                return time.perf_counter() - start
            await asyncio.sleep(POLL_SECONDS)


Row = tuple[str, str]


@asynccontextmanager
async def _watched(server: Server, rows: list[Row]) -> AsyncIterator[None]:
    """Add the peak memory of the server, its CPU time and the delays of the clients' loop."""
    peak, delays, is_done = server.memory_bytes(), [0.0], False

    async def watch() -> None:
        nonlocal peak
        while not is_done:
            start = time.perf_counter()
            await asyncio.sleep(0.25)
            delays.append(time.perf_counter() - start - 0.25)
            peak = max(peak, await asyncio.to_thread(server.memory_bytes))

    watching, cpu, start = asyncio.create_task(watch()), server.cpu_seconds(), time.perf_counter()
    try:
        yield
    finally:
        is_done = True
        await watching
    used = (server.cpu_seconds() - cpu) / (time.perf_counter() - start)
    p99 = sorted(delays)[int(len(delays) * 0.99)]
    rows.append(("  peak memory with children", f"{peak / MEBIBYTE:,.0f} MiB"))
    rows.append(
        (
            "  machine",
            f"load {os.getloadavg()[0]:.1f}, server {used:.2f} cores,"
            f" delay of the clients p99 {p99:.3f} s",
        )
    )


async def many_pages(load: Load, count: int, seconds: float) -> list[Row]:
    """Let clients be open pages while the files are read."""
    load.begin()
    rows: list[Row] = []
    ends = time.perf_counter() + seconds
    async with _watched(load.server, rows):
        pages = [
            load.page(ends, opens_views=number < count * READER_SHARE) for number in range(count)
        ]
        if load.server.name == "tensorboard":
            pages.append(load.other_tab(ends))
        await asyncio.gather(*pages)
    title = f"{count} clients, {seconds:.0f} s"
    states = Counter(
        span["state"] for run in load.runs for worker in run["workers"] for span in worker["spans"]
    )
    return [
        *((f"{title}: {kind}", of.text()) for kind, of in load.answers.items() if of.statuses),
        *rows,
        ("  files at the end", _counts(states)),
    ]


async def stalling(load: Load, seconds: float) -> list[Row]:
    """Let clients read a byte a second, or send half a request, while others are open pages."""
    load.begin()
    path = f"{load.server.address.partition('127.0.0.1')[2].partition('/')[2]}"
    traces = [span["trace"] for run in load.runs for span in run["workers"][0]["spans"]]
    whole = f"GET /{path}api/traces/{traces[0]}/file HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
    half = f"GET /{path}api/runs HTTP/1.1\r\nHost: localhost\r\nX-Half: ".encode()
    stalled = [
        *[asyncio.create_task(_slowly(load.server.port, whole, seconds)) for _ in range(50)],
        *[asyncio.create_task(_slowly(load.server.port, half, seconds)) for _ in range(150)],
    ]
    rows: list[Row] = []
    async with _watched(load.server, rows):
        ends = time.perf_counter() + seconds
        await asyncio.gather(*(load.page(ends, opens_views=False) for _ in range(20)))
    outcomes = Counter(await asyncio.gather(*stalled))
    title = "50 read a byte a second, 150 send half"
    return [(title, load.answers["small"].text()), *rows, ("  the 200", _counts(outcomes))]


async def _slowly(port: int, sent: bytes, seconds: float) -> str:
    ends = time.perf_counter() + seconds
    with closing(socket.socket()) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.setblocking(False)  # noqa: FBT003 (its signature)
        loop = asyncio.get_running_loop()
        try:
            await loop.sock_connect(client, ("127.0.0.1", port))
            await loop.sock_sendall(client, sent)
            while time.perf_counter() < ends:
                with suppress(TimeoutError):
                    if not await asyncio.wait_for(loop.sock_recv(client, 1), 1):
                        return "closed by the server"
                await asyncio.sleep(1)
        except OSError:
            return "closed by the server"
    return "open at the end"


async def cancelled(load: Load, count: int) -> list[Row]:
    """Send heavy requests that the clients give up, and see how long the server works on."""
    load.begin()
    paths = [path for _ in range(count) if (path := load.heavy_path())]
    rows: list[Row] = []

    async def give_up(path: str) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(load.get(path, "heavy"), 0.2)

    async with _watched(load.server, rows):
        await asyncio.gather(*map(give_up, paths))
        start = time.perf_counter()
        await load.get("api/tools", "small")
        small = time.perf_counter() - start
        before = load.server.cpu_seconds()
        while time.perf_counter() - start < LONG_SECONDS:
            await asyncio.sleep(1)
            now = load.server.cpu_seconds()
            if now - before < 0.2:
                break
            before = now
        idle = time.perf_counter() - start
    text = f"next small answer {small:.3f} s, idle again after {idle:.0f} s"
    return [(f"{count} heavy requests given up after 0.2 s", text), *rows]


async def changing(load: Load, folder: Path, seconds: float) -> list[Row]:
    """Replace and rewrite files while they are read and requested."""
    load.begin()
    files = sorted(folder.glob("*/*.gz"))[:8]
    content = files[0].read_bytes()

    async def change(ends: float) -> None:
        while time.perf_counter() < ends:
            path = RANDOM.choice(files)
            if RANDOM.random() < 0.5:  # in place, cut off
                path.write_bytes(content[: RANDOM.randrange(len(content))])
            else:
                new = path.with_suffix(".new")
                new.write_bytes(content)
                new.replace(path)
            await asyncio.sleep(0.5)

    ends = time.perf_counter() + seconds
    rows: list[Row] = []
    async with _watched(load.server, rows):
        await asyncio.gather(change(ends), *(load.page(ends, opens_views=True) for _ in range(20)))
    for path in files:
        path.write_bytes(content)
    return [
        *((f"8 files change: {kind}", load.answers[kind].text()) for kind in ("small", "heavy")),
        *rows,
    ]


async def large_post(load: Load) -> list[Row]:
    """Send a body of 1 GiB, with its length and in chunks."""
    rows: list[Row] = []
    path = f"/{load.server.address.partition('127.0.0.1')[2].partition('/')[2]}api/listing/read"
    for title, header in (
        ("Content-Length", f"Content-Length: {GIBIBYTE}"),
        ("chunked", "Transfer-Encoding: chunked"),
    ):
        before = load.server.memory_bytes()
        start, sent, most = time.perf_counter(), 0, before
        reader, writer = await asyncio.open_connection("127.0.0.1", load.server.port)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nX-Stepscope: 1\r\n{header}\r\n\r\n"
        writer.write(head.encode())
        piece = b"x" * MEBIBYTE
        if title == "chunked":
            piece = b"%x\r\n%b\r\n" % (len(piece), piece)
        answer = asyncio.create_task(reader.readline())
        files = 0
        with suppress(OSError):
            while sent < GIBIBYTE and not answer.done():
                writer.write(piece)
                drained = asyncio.create_task(_drained(writer))
                await asyncio.wait([drained, answer], timeout=5, return_when="FIRST_COMPLETED")
                sent += MEBIBYTE
                if sent % (64 * MEBIBYTE) == MEBIBYTE:
                    most = max(most, load.server.memory_bytes())
                    files = max(files, _deleted_bytes(load.server.process.pid))
        line = b"no answer"
        with suppress(OSError, TimeoutError):
            line = await asyncio.wait_for(answer, 30)
        writer.close()
        rows.append(
            (
                f"POST of 1 GiB, {title}",
                f"{line.decode().strip() or 'closed'} after {time.perf_counter() - start:.2f} s and"
                f" {sent / MEBIBYTE:,.0f} MiB; memory +{(most - before) / MEBIBYTE:,.0f} MiB,"
                f" temporary files {files / MEBIBYTE:,.0f} MiB",
            )
        )
    return rows


async def _drained(writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        await writer.drain()


def _deleted_bytes(pid: int) -> int:
    total = 0
    with suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                if "(deleted)" in str(link.readlink()):
                    total += link.stat().st_size
    return total


async def in_a_row(load: Load, count: int) -> list[Row]:
    """Send requests one after the other, and compare the memory after a fifth and after all."""
    load.begin()
    memory = [load.server.memory_bytes()]
    trace = next(span["trace"] for run in load.runs for span in run["workers"][0]["spans"])
    paths = ("api/runs", "api/tools", f"api/traces/{trace}/operators", f"api/traces/{trace}/names")
    for number in range(count):
        await load.get(paths[number % len(paths)], "small")
        if number % (count // 5) == count // 5 - 1:
            memory.append(load.server.memory_bytes())
    sizes = ", ".join(f"{size / MEBIBYTE:,.0f}" for size in memory)
    return [
        (f"{count:,} requests in a row", load.answers["small"].text()),
        ("  memory at each fifth, MiB", sizes),
    ]


async def interrupted(load: Load) -> list[Row]:
    """Send Ctrl-C while heavy requests are running."""
    load.begin()
    paths = [path for _ in range(24) if (path := load.heavy_path())]
    running = [asyncio.create_task(load.get(path, "heavy")) for path in paths]
    await asyncio.sleep(0.5)
    waiting = sum(not task.done() for task in running)
    start = time.perf_counter()
    load.server.process.send_signal(signal.SIGINT)
    status = "still running"
    with suppress(subprocess.TimeoutExpired):
        status = f"exit status {await asyncio.to_thread(load.server.process.wait, 30)}"
    took = time.perf_counter() - start
    for task in running:
        task.cancel()
    return [("Ctrl-C", f"{took:.2f} s, {status}, {waiting} requests were running")]


def files_in(folder: Path, count: int, size: str) -> None:
    """Write the traces of the runs."""
    source = scaled(size, SEED)
    for number in range(count):
        run = folder / f"run{number % RUN_COUNT}"
        run.mkdir(exist_ok=True)
        target = run / f"worker{number // RUN_COUNT}.1700000000000.pt.trace.json.gz"
        shutil.copyfile(source, target)


Scenario = Callable[[Load], Coroutine[Any, Any, list[Row]]]


async def measure(server: Server, folder: Path, options: argparse.Namespace) -> None:
    """Run the scenarios against a server, and print the table."""
    connector = aiohttp.TCPConnector(limit=0, force_close=False)
    timeout = aiohttp.ClientTimeout(total=LONG_SECONDS)
    table = Table("", "figures", title=server.name)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        load = Load(server, session)
        load.begin()
        async with asyncio.timeout(LONG_SECONDS):
            while (await load.get("api/tools", "small"))[0] != 200:
                await asyncio.sleep(0.2)
        scenarios: dict[str, Scenario] = {
            "pages": lambda load: many_pages(load, options.clients, options.seconds),
            "stalling": lambda load: stalling(load, min(options.seconds, 30)),
            "cancelled": lambda load: cancelled(load, 100),
            "changing": lambda load: changing(load, folder, min(options.seconds, 20)),
            "post": large_post,
            "row": lambda load: in_a_row(load, 5_000),
            "interrupt": interrupted,
        }
        for name, scenario in scenarios.items():
            if name not in options.only:
                continue
            if name != "pages":
                load.begin()
                console.print(f"{name}: all read after {await load.until_read():.0f} s")
            for row in await scenario(load):
                console.print(*row, sep=": ")
                table.add_row(*row)
    console.print(table)
    lines = server.log.read_text().splitlines()
    console.print(f"The server's log has {len(lines)} lines: {server.log}")


SCENARIOS = ("pages", "stalling", "cancelled", "changing", "post", "row", "interrupt")


def main() -> None:
    """Measure the servers that the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", nargs="+", default=["serve", "tensorboard"])
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--files", type=int, default=64)
    parser.add_argument("--size", default="43MB", help="of a file's JSON")
    parser.add_argument("--memory", default="1G", help="memory limit of the servers")
    parser.add_argument("--only", nargs="+", default=SCENARIOS, choices=SCENARIOS)
    options = parser.parse_args()
    for name in options.servers:
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            files_in(folder, options.files, options.size)
            with served(name, folder, options.memory) as server:
                asyncio.run(measure(server, folder, options))


if __name__ == "__main__":
    main()
