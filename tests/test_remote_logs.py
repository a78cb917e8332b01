"""Logs in S3, read over HTTP from moto's real server by the real s3fs and botocore."""

import base64
import gzip
import json
import logging
import os
import random
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import fsspec
import pytest
import s3fs
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer

import tracebuild
from logs import EVENT_COUNT, ROWS
from s3_environment import environment
from stepscope import ingest, storage
from stepscope.base.errors import UnreadableError
from stepscope.catalog.catalog import Catalog
from stepscope.storage import discover
from stepscope.storage.remote import BLOCK_BYTES, BUFFER_BYTES
from stepscope.tensorboard import log_directories
from waiting import LONG_SECONDS

TRACE = gzip.compress(json.dumps(tracebuild.document(rows=ROWS)).encode())
NAME = "w.1700000000000.pt.trace.json.gz"
REQUEST = re.compile(r"([A-Z]+) (/\S*) HTTP")
BLOB_COUNT = 6_000


class Server:
    """A server of moto's own making, and what was asked of it."""

    def __init__(self) -> None:
        self._moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._moto.start()
        self.port = self._moto.get_host_and_port()[1]
        self.address = f"http://127.0.0.1:{self.port}"
        self.requests: list[str] = []

    def stop(self) -> None:
        self._moto.stop()

    def refuse_strangers(self, *, is_on: bool) -> None:
        """Have the server look at who asks, or believe everyone, as at first."""
        self.post("reset-auth", b"0" if is_on else b"inf")

    def post(self, what: str, content: bytes = b"") -> None:
        """Tell the server itself something."""
        post = urllib.request.Request(f"{self.address}/moto-api/{what}", content)  # noqa: S310
        post.add_header("Content-Type", "text/plain")
        urllib.request.urlopen(post).close()  # noqa: S310


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    started = Server()

    class Requests(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if match := REQUEST.search(record.getMessage()):
                started.requests.append(f"{match[1]} {match[2].partition('?')[0]}")

    log = logging.getLogger("werkzeug")
    log.setLevel(logging.INFO)
    log.addHandler(handler := Requests())
    yield started
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)
    started.stop()


@pytest.fixture
def s3(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The bucket `logs`, empty, and an environment that leads to it."""
    for name, value in environment(server.address).items():
        monkeypatch.setenv(name, value)
    server.post("reset")
    s3fs.S3FileSystem.clear_instance_cache()
    system = s3fs.S3FileSystem(use_listings_cache=False)
    system.mkdir("logs")
    server.requests.clear()
    yield system
    s3fs.S3FileSystem.clear_instance_cache()


def test_a_log_of_many_objects_is_listed_by_pages_and_none_is_asked_for(
    s3: Any, server: Server
) -> None:
    store = s3_backends["123456789012"]["aws"]  # the server's own: a thousand requests take long
    for n in range(1_100):
        store.put_object("logs", f"exp/run{n % 7}/w{n}.1.pt.trace.json", b"never opened")
    s3.pipe("logs/exp/run0/w0.2.pt.trace.json", b"never opened")
    s3.touch("logs/exp/run0/")
    s3.pipe("logs/experiment/w.1.pt.trace.json", b"of another log")
    server.requests.clear()
    files = discover.in_folder("s3://logs/exp")
    assert server.requests == ["GET /logs", "GET /logs"]
    assert len(files) == 1_101
    assert {file.run for file in files} == {f"run{n}" for n in range(7)}
    spans = [(file.span, file.path) for file in files if file.worker == "w0"]
    assert spans == [
        ("1", "s3://logs/exp/run0/w0.1.pt.trace.json"),
        ("2", "s3://logs/exp/run0/w0.2.pt.trace.json"),
    ]
    assert files[5].listed == storage.stamp(files[5].path)


def test_a_large_trace_arrives_in_few_parts_one_behind_the_other(
    s3: Any, server: Server, tmp_path: Path
) -> None:
    rng = random.Random(0)  # noqa: S311
    rows = [
        ["cpu_op", "aten::mm", n, 1, {"blob": base64.b64encode(rng.randbytes(1_500)).decode()}]
        for n in range(BLOB_COUNT)
    ]
    text = json.dumps(tracebuild.document(rows=rows)).encode()
    path = tmp_path / NAME
    path.write_bytes(gzip.compress(text, compresslevel=1))
    size = path.stat().st_size
    assert size > BLOCK_BYTES
    s3.pipe(f"logs/run/{NAME}", path.read_bytes())
    server.requests.clear()
    told: list[tuple[int, int]] = []
    there = ingest.read(f"s3://logs/run/{NAME}", lambda done, total, _: told.append((done, total)))
    here = ingest.read(str(path))
    asked = [request for request in server.requests if request != f"HEAD /logs/run/{NAME}"]
    assert asked == [f"GET /logs/run/{NAME}"] * -(-size // (BLOCK_BYTES + BUFFER_BYTES))
    assert len(server.requests) - len(asked) <= 2
    assert (len(there), there.incidents) == (len(here), here.incidents)
    assert told
    assert {total for _, total in told} == {size}


def test_several_threads_read_one_bucket(s3: Any) -> None:
    s3.pipe({f"logs/run/w{n}.pt.trace.json.gz": TRACE for n in range(8)})
    paths = [file.path for file in discover.in_folder("s3://logs")]
    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(lambda path: len(ingest.read(path)), paths))
    assert counts == [EVENT_COUNT] * 8


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_reads_what_its_parent_found(s3: Any, method: str, tmp_path: Path) -> None:
    s3.pipe(f"logs/run/{NAME}", TRACE)
    script = tmp_path / "main.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from stepscope import ingest, storage\n"
        "from stepscope.storage import discover\n"
        "def events(path):\n"
        "    return len(ingest.read(path))\n"
        "if __name__ == '__main__':\n"
        "    [file] = discover.at('s3://logs')\n"
        "    storage.open_binary(file.path).read(1)\n"
        "    context = multiprocessing.get_context(sys.argv[1])\n"
        "    with context.Pool(2) as pool:\n"
        "        print(pool.map(events, [file.path] * 4))\n"
    )
    command = [sys.executable, str(script), method]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LONG_SECONDS, check=False
    )
    assert (done.stdout, done.stderr) == (f"{[EVENT_COUNT] * 4}\n", "")


@pytest.mark.parametrize(
    ("path", "said", "remedy"),
    [
        ("s3://nosuch/run", "There is no bucket 'nosuch'.", "Check its name"),
        ("s3://nosuch", "There is no bucket 'nosuch'.", "Check its name"),
        ("s3://logs/none", "There is no such file or folder.", "Check the path."),
        ("s3://logs", "There is no trace here", "Record one"),
    ],
)
@pytest.mark.usefixtures("s3")
def test_what_is_not_there_is_said(path: str, said: str, remedy: str) -> None:
    with pytest.raises(UnreadableError) as caught:
        discover.at(path)
    assert caught.value.path == path
    assert said in caught.value.message
    assert remedy in caught.value.remedy


def test_who_is_not_allowed_is_told_so(s3: Any, server: Server) -> None:
    s3.pipe(f"logs/run/{NAME}", TRACE)
    server.refuse_strangers(is_on=True)
    try:
        with pytest.raises(UnreadableError) as to_look:
            storage.exists("s3://logs/run")
        with pytest.raises(UnreadableError) as to_list:
            discover.in_folder("s3://logs/run")
        with pytest.raises(UnreadableError) as to_read:
            ingest.read(f"s3://logs/run/{NAME}")
    finally:
        server.refuse_strangers(is_on=False)
    assert (
        to_look.value.message == to_read.value.message == "Access to 'logs' is denied: Forbidden."
    )
    assert to_list.value.message.startswith("Access to 'logs' is denied: The AWS Access Key Id you")
    assert "AWS_PROFILE" in to_list.value.remedy


@pytest.mark.usefixtures("s3")
def test_who_has_no_credentials_is_told_which(monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(UnreadableError) as caught:
        storage.exists("s3://logs/run")
    assert caught.value.message.startswith("There are no credentials for 'logs': Unable to locate")
    assert "FSSPEC_S3_ANON=true" in caught.value.remedy
    with monkeypatch.context() as since_then:
        since_then.setenv("AWS_ACCESS_KEY_ID", "key")
        since_then.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        assert storage.is_folder("s3://logs")
    monkeypatch.setitem(fsspec.config.conf, "s3", {"anon": True})
    assert storage.is_folder("s3://logs")


def test_a_server_that_goes_in_the_middle_costs_the_file_and_is_named(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Server()
    monkeypatch.setenv("AWS_ENDPOINT_URL", other.address)
    s3fs.S3FileSystem.clear_instance_cache()
    s3.pipe("logs/big.json", bytes(2 * BLOCK_BYTES))
    with storage.open_binary("s3://logs/big.json") as stream:
        assert len(stream.read(BUFFER_BYTES)) == BUFFER_BYTES
        other.stop()
        begun_at = time.monotonic()
        with pytest.raises(UnreadableError) as caught:
            stream.read()
    assert time.monotonic() - begun_at < LONG_SECONDS
    assert caught.value.path == "s3://logs/big.json"
    assert caught.value.message.startswith(
        "The server of 'logs' does not answer: Could not connect"
    )
    assert caught.value.remedy == "Check the network and AWS_ENDPOINT_URL."


@pytest.mark.usefixtures("s3")
def test_a_server_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    s3fs.S3FileSystem.clear_instance_cache()
    impatient = {"read_timeout": 0.2, "retries": {"total_max_attempts": 1}}
    monkeypatch.setitem(fsspec.config.conf, "s3", {"config_kwargs": impatient})
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        begun_at = time.monotonic()
        with pytest.raises(UnreadableError, match="The server of 'logs' does not answer"):
            discover.at("s3://logs/run")
    assert time.monotonic() - begun_at < LONG_SECONDS


def test_an_object_that_is_replaced_while_it_is_read_is_not_mixed(s3: Any) -> None:
    s3.pipe("logs/big.json", bytes(2 * BLOCK_BYTES))
    with storage.open_binary("s3://logs/big.json") as stream:
        stream.read(1)
        s3.pipe("logs/big.json", b"1" * 2 * BLOCK_BYTES)
        with pytest.raises(UnreadableError, match="The file was replaced while it was read"):
            stream.read()


def test_the_catalog_sees_what_changes_and_keeps_what_it_cannot_see(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.pipe(f"logs/run/{NAME}", TRACE)
    directories = log_directories("", "mine:s3://logs,s3://nosuch/log")
    catalog = Catalog(directories)
    catalog.scan()
    [entry] = catalog.entries()
    assert (entry.file.run, entry.stamp.size_bytes) == ("mine/run", len(TRACE))
    assert [(problem.path, problem.message) for problem in catalog.problems] == [
        ("s3://nosuch/log", "There is no bucket 'nosuch'.")
    ]
    s3.pipe(f"logs/run/{NAME}", TRACE + b"\0")
    catalog.scan()
    assert [each.stamp.size_bytes for each in catalog.entries()] == [len(TRACE) + 1]
    s3fs.S3FileSystem.clear_instance_cache()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    catalog.scan()
    assert [each.file.path for each in catalog.entries()] == [entry.file.path]
    assert ["does not answer" in problem.message for problem in catalog.problems] == [True, True]


def stepscope(server: Server, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stepscope", *arguments]
    variables = {**os.environ, **environment(server.address), **more}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=LONG_SECONDS, check=False, env=variables
    )


def test_the_command_line_advises_on_a_bucket(s3: Any, server: Server) -> None:
    s3.pipe(f"logs/run/{NAME}", TRACE)
    done = stepscope(server, "advise", "s3://logs", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    [run] = json.loads(done.stdout)["runs"]
    assert run["name"] == "run"


@pytest.mark.parametrize("command", ["advise", "serve"])
def test_the_command_line_says_what_is_wrong_in_a_line(server: Server, command: str) -> None:
    done = stepscope(server, command, "s3://nosuch/log")
    assert done.returncode != 0
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "s3://nosuch/log: There is no bucket 'nosuch'." in line
