"""Addresses as text, and remote files that need no server of their own kind."""

import errno
import gzip
import http.server
import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest

import stepscope
import tracebuild
from logs import EVENT_COUNT, ROWS
from stepscope import ingest, storage
from stepscope.base import urls
from stepscope.base.errors import UnreadableError, as_unreadable, in_one_line
from stepscope.catalog.catalog import Catalog
from stepscope.catalog.log_directories import LogDirectory
from stepscope.catalog.options import CatalogOptions
from stepscope.model.read import read_trace
from stepscope.storage import discover, error_messages

TRACE = json.dumps(tracebuild.document(rows=ROWS)).encode()


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("s3://bucket/log", "s3"),
        ("abfs://container@account/log", "abfs"),
        ("git+ssh://host/log", "git+ssh"),
        ("log/run", ""),
        ("/a/s3://b", ""),
        ("C:\\logs", ""),
        ("://bucket", ""),
        ("3d://bucket", ""),
        ("s3:/bucket", ""),
    ],
)
def test_an_address_begins_with_its_kind(path: str, kind: str) -> None:
    assert urls.scheme(path) == kind
    assert urls.is_remote(path) == bool(kind)


@pytest.mark.parametrize(
    ("path", "parent", "name"),
    [
        ("s3://bucket/a/w.json", "s3://bucket/a", "w.json"),
        ("s3://bucket/a//w.json", "s3://bucket/a/", "w.json"),
        ("s3://bucket/why?.json", "s3://bucket", "why?.json"),
        ("s3://bucket", "s3://bucket", "bucket"),
        ("memory:///w.json", "memory://", "w.json"),
        ("https://host/a/w.json?sign=a/b#c", "https://host/a", "w.json"),
        ("a/w.json", "a", "w.json"),
    ],
)
def test_a_path_is_a_folder_and_a_name(path: str, parent: str, name: str) -> None:
    assert (urls.parent(path), urls.name(path)) == (parent, name)
    if "https" not in path and parent != path:
        assert urls.join(parent, name).replace("memory://w", "memory:///w") == path


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sftp://ann:secret@host/log", "sftp://***@host/log"),
        ("https://token@host/t.json", "https://***@host/t.json"),
        ("ftp://ann:p@ss@host/log", "ftp://***@host/log"),
        ("https://host/t.json?X-Amz-Signature=5", "https://host/t.json?***"),
        ('no "http://host/a?sig=1" here', 'no "http://host/a?***" here'),
        ("s3://key:12/s+e=t@bucket/log", "s3://***@bucket/log"),
        ("hdfs://host:8020/a@b", "hdfs://host:8020/a@b"),
        ("https://host/x#access_token=5", "https://host/x#***"),
        ("abfs://container@account/log?sig=5", "abfs://container@account/log?***"),
        ("s3://bucket/why?.json", "s3://bucket/why?.json"),
        ("abfs://container@account/log", "abfs://container@account/log"),
        ("abfs://user:secret@account/log", "abfs://***@account/log"),
        ("log/a@b?c", "log/a@b?c"),
    ],
)
def test_secrets_are_not_shown(text: str, shown: str) -> None:
    assert urls.redacted(text) == shown


def test_no_error_shows_the_secrets_of_its_address() -> None:
    path = "https://zoe:pass%20word@host/t.json?sig=5f"
    library = OSError("zoe:pass word cannot open https://zoe:pass%20word@host/t.json?sig=5f")
    for error in (
        UnreadableError(path, "It is empty.", ""),
        as_unreadable(path, library),
        error_messages.problem(path, library),
    ):
        said = f"{error} {error.path} {error.message} {error.remedy}"
        assert not [secret for secret in ("zoe", "pass", "5f") if secret in said], said
    without_path = "OSError: zoe:pass word cannot open https://***@host/t.json?***"
    assert in_one_line(library) == without_path


def test_a_full_disk_is_not_told_as_a_bug() -> None:
    problem = as_unreadable("log/a.json", OSError(errno.ENOSPC, "No space left on device"))
    assert problem.message == (
        "There is no space to write the result (OSError: [Errno 28] No space left on device)."
    )
    assert "TMPDIR" in problem.remedy


def test_the_causes_that_hold_secrets_are_cut_off() -> None:
    error = OSError("no")
    with (
        pytest.raises(UnreadableError) as caught,
        error_messages.translate_errors("ftp://ann:secret@host/t"),
    ):
        raise error
    assert caught.value.__cause__ is None
    with pytest.raises(UnreadableError) as caught, error_messages.translate_errors("ftp://host/t"):
        raise error
    assert caught.value.__cause__ is error


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nosuch://x/log", r"stepscope cannot read addresses that begin with nosuch://\."),
        ("s3://", r"There is no bucket in this address\. Pass s3://BUCKET/FOLDER\."),
        ("s3://key:secret@bucket/a", r"^s3://\*\*\*@bucket/a: There is no bucket '\*\*\*@bucket'"),
        ("https://127.0.0.1:1/t.json", r"The server of '127\.0\.0\.1:1' does not answer: Cannot"),
        ("memory://nothing", r"There is no such file or folder\. Check the path\."),
        ("s3:/bucket/log", r"Pass an address as text: pathlib removes a slash from s3://bucket\."),
    ],
)
def test_an_address_that_cannot_be_read_is_refused_with_the_reason(path: str, said: str) -> None:
    with pytest.raises(UnreadableError, match=said):
        discover.at(path)


@pytest.mark.parametrize(
    ("kind", "package", "remedy"),
    [
        ("s3", "s3fs", "pip install 'stepscope[s3]'"),
        ("s3", "fsspec", "pip install 'stepscope[s3]'"),
        ("gs", "gcsfs", "pip install 'stepscope[gs]'"),
        ("abfs", "adlfs", "pip install 'stepscope[az]'"),
        ("https", "aiohttp", "pip install 'stepscope[http]'"),
        ("hdfs", "pyarrow", "pip install 'stepscope[hdfs]'"),
    ],
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    kind: str, package: str, remedy: str
) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from stepscope import storage\nfrom stepscope.base import errors\n"
        "try: storage.exists(sys.argv[1])\n"
        "except errors.UnreadableError as error: print(error.message, error.remedy)"
    )
    command = [sys.executable, "-c", code, f"{kind}://place/log"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == f"The package that reads {kind}:// is not installed. {remedy}\n"
    assert done.stderr == ""


def test_local_paths_never_import_fsspec(tmp_path: Path) -> None:
    (tmp_path / "w.1.pt.trace.json").write_bytes(TRACE)
    code = (
        "import sys, stepscope, stepscope.tensorboard\n"
        "stepscope.advise(stepscope.load(sys.argv[1]))\n"
        "print({'fsspec', 's3fs', 'aiohttp'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"


def test_runs_workers_and_spans_are_found_in_memory(memory: Any) -> None:
    for name in (
        "log/a/w.20.pt.trace.json",
        "log/a/w.3.pt.trace.json.gz",
        "log/a//w.4.pt.trace.json",
        "log/deep/er/v.1.pt.trace.json",
        "log/x.1.pt.trace.json",
        "log/.hidden/w.1.pt.trace.json",
        "log/a/notes.txt",
        "logs/w.1.pt.trace.json",
    ):
        memory.pipe(f"memory://{name}", b"never opened")
    files = discover.at("memory://log/")
    assert [(file.run, file.worker, file.span, file.path) for file in files] == [
        ("log", "x", "1", "memory://log/x.1.pt.trace.json"),
        ("memory://log/a", "w", "1", "memory://log/a/w.3.pt.trace.json.gz"),
        ("memory://log/a", "w", "2", "memory://log/a/w.20.pt.trace.json"),
        ("memory://log/a/", "w", "1", "memory://log/a//w.4.pt.trace.json"),
        ("deep/er", "v", "1", "memory://log/deep/er/v.1.pt.trace.json"),
    ]
    assert files[3].recorded_ns == 4_000_000
    assert files[3].folder == "memory://log/a/"
    assert [file.listed for file in files] == [storage.stamp(file.path) for file in files]


def test_a_whole_memory_is_a_log_directory(memory: Any) -> None:
    memory.pipe("memory://run/w.1.pt.trace.json", b"never opened")
    memory.pipe("memory://w.1.pt.trace.json", b"never opened")
    found = [(file.run, file.folder) for file in discover.in_folder("memory://")]
    assert found == [("memory://", "memory://"), ("run", "memory:///run")]


def test_a_folder_without_a_trace_names_a_file_that_may_be_one(memory: Any) -> None:
    memory.pipe("memory://log/a/other.json", TRACE)
    with pytest.raises(UnreadableError, match=r"such as memory://log/a/other\.json"):
        discover.at("memory://log")


def test_a_remote_run_is_loaded_and_advised_upon(memory: Any) -> None:
    memory.pipe("memory://log/run/w.1.pt.trace.json.gz", gzip.compress(TRACE))
    run = stepscope.load("memory://log/run")
    assert [(trace.worker, len(trace)) for trace in run.workers] == [("w", EVENT_COUNT)]
    assert stepscope.advise(run).report.workers
    assert len(stepscope.load("memory://log/run/w.1.pt.trace.json.gz").workers[0]) == EVENT_COUNT


def test_two_who_read_one_file_do_not_move_each_other(memory: Any) -> None:
    memory.pipe("memory://a.json", bytes(range(256)))
    with (
        storage.open_binary("memory://a.json") as one,
        storage.open_binary("memory://a.json") as two,
    ):
        assert one.read(3) == two.read(3) == b"\0\1\2"
        assert one.read(2) == b"\3\4"


def test_a_stamp_changes_with_the_file(memory: Any) -> None:
    memory.pipe("memory://a.json", b"1")
    before = storage.stamp("memory://a.json")
    memory.pipe("memory://a.json", b"2")
    assert storage.stamp("memory://a.json") != before
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        storage.stamp("memory://")
    with pytest.raises(UnreadableError, match="There is no such file"):
        storage.stamp("memory://none.json")


def test_the_catalog_reads_what_lies_in_memory_and_sees_it_change(memory: Any) -> None:
    jobs: list[Any] = []

    class Later:
        submit = jobs.append

    path = "memory://log/run/w.1.pt.trace.json"
    memory.pipe(path, TRACE)
    directories = [LogDirectory(path="memory://log")]
    catalog = Catalog(directories, CatalogOptions(executor=Later()))
    catalog.start_reading()
    for content in (TRACE, TRACE + b"\n"):
        memory.pipe(path, content)
        catalog.scan()
        jobs.pop()()
        assert [entry.facts and entry.facts.events for entry in catalog.entries()] == [EVENT_COUNT]
    assert not jobs
    memory.rm(path)
    catalog.scan()
    assert [problem.message for problem in catalog.problems] == ["There is no such folder."]
    assert not catalog.has_traces


def test_a_pipe_given_as_an_address_is_never_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "w.1.pt.trace.json")
    [file] = discover.at(f"file://{tmp_path}/w.1.pt.trace.json")
    with pytest.raises(UnreadableError, match="it is a pipe, a socket or a device"):
        read_trace(file)


def test_a_file_address_reads_as_its_path_does(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "w.1.pt.trace.json").write_bytes(TRACE)
    [file] = discover.at(f"file://{tmp_path}")
    assert (file.run, file.path) == ("run", f"file://{tmp_path}/run/w.1.pt.trace.json")
    assert len(read_trace(file)) == EVENT_COUNT


class Site(http.server.SimpleHTTPRequestHandler):
    """Serves a folder; the names of three files say how they are answered."""

    protocol_version = "HTTP/1.1"
    refusals: ClassVar[dict[str, int]] = {"/refused.json": 403, "/broken.json": 503}

    def log_message(self, *_: object) -> None: ...

    def end_headers(self) -> None:
        if ".gz" in self.path:
            self.send_header("Content-Encoding", "gzip")
        super().end_headers()

    def send_head(self) -> Any:
        name = self.path.partition("?")[0]
        if name in self.refusals:
            return self.send_error(self.refusals[name])
        if name != "/cut.json":
            return super().send_head()
        self.send_response(200)
        self.send_header("Content-Length", str(len(TRACE) + 1))
        self.end_headers()
        self.close_connection = True
        return io.BytesIO(TRACE)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    (tmp_path / "t.json").write_bytes(TRACE)
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(TRACE))

    def handler(*given: Any) -> Site:
        return Site(*given, directory=str(tmp_path))

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.json?X-Amz-Signature=5f"])
def test_a_trace_is_read_from_a_web_server(site: str, name: str) -> None:
    [file] = discover.at(f"{site}/{name}")
    assert (file.worker, file.run) == ("t", site.removeprefix("http://"))
    assert len(read_trace(file)) == EVENT_COUNT


def test_a_web_server_is_no_log_directory(site: str) -> None:
    catalog = Catalog([LogDirectory(path=f"{site}/t.json")])
    catalog.scan()
    assert [problem.message for problem in catalog.problems] == ["This is a file, not a folder."]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("none.json", "There is no such file or folder."),
        ("refused.json?sig=5f", "Access to '127.0.0.1:[0-9]+' is denied: 403"),
        ("broken.json", "The server of '127.0.0.1:[0-9]+' fails: 503"),
    ],
)
def test_a_web_server_that_refuses_says_why(site: str, name: str, said: str) -> None:
    with pytest.raises(UnreadableError, match=said) as caught:
        discover.at(f"{site}/{name}")
    assert "5f" not in str(caught.value)


def test_an_answer_that_breaks_off_is_no_shorter_file(site: str) -> None:
    with pytest.raises(UnreadableError, match="does not answer"):
        ingest.read(f"{site}/cut.json")


def test_libraries_log_nothing_unless_asked_to(memory: Any) -> None:
    for name, level in (("gcsfs", logging.NOTSET), ("s3fs", logging.INFO)):
        logging.getLogger(name).setLevel(level)
    memory.pipe("memory://a.json", b"1")
    storage.stamp("memory://a.json")
    assert logging.getLogger("gcsfs").level == logging.CRITICAL
    assert logging.getLogger("s3fs").level == logging.INFO
    logging.getLogger("s3fs").setLevel(logging.NOTSET)


@pytest.mark.parametrize("content", [b"2", b"22"])
def test_a_remote_file_that_changed_is_not_taken_for_the_one_that_was_read(
    memory: Any, content: bytes
) -> None:
    memory.pipe("memory://a.json", b"1")
    stream, stamp = storage.open_with_stamp("memory://a.json")
    assert stream.read() == b"1"
    assert storage.open_unchanged("memory://a.json", stamp).read() == b"1"
    memory.pipe("memory://a.json", content)
    with pytest.raises(storage.ChangedFileError):
        storage.open_unchanged("memory://a.json", stamp)


@pytest.mark.timeout(60)
def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="it is a pipe"):
        storage.open_binary(str(tmp_path / "pipe"))
    with pytest.raises(IsADirectoryError):
        storage.open_binary(str(tmp_path))
