"""Remote files through fsspec; `stepscope.storage` documents these functions.

Credentials, endpoints and proxies come from the usual places (environment, `~/.aws`, …) and from
fsspec's configuration. Every request has a time limit.
"""

import errno
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from io import BufferedReader, BytesIO, RawIOBase
from typing import TYPE_CHECKING, Any, BinaryIO

from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.storage import error_messages
from stepscope.storage.listing import FileStamp, Listing, NameFilter
from stepscope.storage.local import SPECIAL

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer
    from fsspec import AbstractFileSystem

BLOCK_BYTES = 8 << 20
"""Bytes per request: a compromise between few requests and little memory."""
BUFFER_BYTES = 1 << 20
CONNECT_SECONDS = 5
SILENCE_SECONDS = 15
"""Maximum time without a response from the server."""
ANSWER_SECONDS = 30
"""Time limit for a file's metadata, including retries."""
LISTING_SECONDS = 600
NOISY_LIBRARIES = ("adlfs", "azure", "fsspec", "gcsfs", "s3fs")
"""Libraries that log the exceptions that they raise."""

Options = dict[str, Any]
Info = Mapping[str, Any]
Page = Sequence[Info]
SKIPPED = (FileNotFoundError, NotADirectoryError, PermissionError)
"""Errors of a subfolder that was removed or is not accessible; it is skipped."""

S3 = ("s3", "s3a")
GOOGLE = ("gs", "gcs")
AZURE = ("az", "abfs", "abfss")
FAMILIES = (S3, GOOGLE, AZURE, urls.WEB)
TIME_LIMITS: tuple[tuple[tuple[str, ...], Options], ...] = (
    (
        S3,
        {
            "use_listings_cache": False,
            "config_kwargs": {
                "connect_timeout": CONNECT_SECONDS,
                "read_timeout": SILENCE_SECONDS,
                "retries": {"mode": "standard", "total_max_attempts": 2},
            },
        },
    ),
    (GOOGLE, {"use_listings_cache": False, "requests_timeout": ANSWER_SECONDS}),
    (
        AZURE,
        {
            "use_listings_cache": False,
            "connection_timeout": CONNECT_SECONDS,
            "read_timeout": SILENCE_SECONDS,
        },
    ),
)
"""Time limits of each library; listings are not cached, since logs grow while they are open."""
TIMES = ("mtime", "LastModified", "last_modified", "modified", "created")
TAGS = ("ETag", "etag", "generation", "Last-Modified", "modify")


def stamp(path: str) -> FileStamp:
    """Return the file's size and modification time."""
    info = _info(path)
    if info is None:
        raise error_messages.problem(path, FileNotFoundError(path))
    if info["type"] == "directory":
        raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
    if info["type"] != "file":
        raise OSError(errno.EINVAL, SPECIAL, path)
    return stamp_of(info)


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading; it is fetched in consecutive blocks."""
    with open_system(path) as (system, inside):
        kind = urls.scheme(path)
        if kind == "memory":  # all readers of such a file share one position
            return BytesIO(system.cat_file(inside))
        # A web server may not support ranges: a single response is read as it arrives.
        block_bytes = 0 if kind in urls.WEB else BLOCK_BYTES
        source = system.open(inside, "rb", block_size=block_bytes, cache_type="readahead")
    return BufferedReader(_Source(path, source), BUFFER_BYTES)


def open_with_stamp(path: str) -> tuple[BinaryIO, FileStamp]:
    """Open a file for reading, and return its stamp before that."""
    before = stamp(path)
    return open_binary(path), before


def walk(root: str, _needs_stamp: NameFilter) -> Iterator[Listing]:
    """Yield the folders under `root` that have files."""
    if urls.scheme(root) in urls.WEB:
        return
    root = urls.tidy(root)
    with open_system(root) as (system, inside):
        base = inside.rstrip("/")
        pages = _pages_below(system, base, timeout_options(system, LISTING_SECONDS))
        try:
            for page in pages:
                yield from _by_folder(root, base, page)
        except Exception as error:
            if not error_messages.is_absence(root, error):
                raise


def files_in(folder: str) -> Iterator[Listing]:
    """Yield the files of one folder."""
    folder = urls.tidy(folder)
    with open_system(folder) as (system, base):
        page = system.ls(base, detail=True, **timeout_options(system, LISTING_SECONDS))
    yield from _by_folder(folder, base.rstrip("/"), page)


def _pages_below(
    system: "AbstractFileSystem", base: str, timeout: Mapping[str, int]
) -> Iterator[Page]:
    """Yield the files below a folder: in S3's pages, elsewhere one subfolder at a time."""
    pages: Callable[..., Iterator[Page]] = _s3_pages if hasattr(system, "call_s3") else _find_pages
    return pages(system, base, timeout)


def _s3_pages(system: Any, base: str, timeout: Mapping[str, int]) -> Iterator[Page]:  # noqa: ANN401 (s3fs')
    bucket, key, _ = system.split_path(base)
    request = {"Bucket": bucket, "Prefix": f"{key}/" if key else "", **system.req_kw}
    while True:
        response = system.call_s3("list_objects_v2", **request, **timeout)
        yield [
            {**info, "name": f"{bucket}/{info['Key']}", "size": info["Size"]}
            for info in response.get("Contents", ())
        ]
        if not response.get("IsTruncated"):
            return
        request["ContinuationToken"] = response["NextContinuationToken"]


def _find_pages(
    system: "AbstractFileSystem", base: str, timeout: Mapping[str, int]
) -> Iterator[Page]:
    infos = system.ls(base, detail=True, **timeout)
    yield [info for info in infos if info["type"] != "directory"]
    for folder in sorted(info["name"] for info in infos if info["type"] == "directory"):
        if folder.rstrip("/") == base or folder.rpartition("/")[2].startswith("."):
            continue
        with suppress(*SKIPPED):
            yield list(system.find(folder, detail=True, **timeout).values())


def _by_folder(root: str, base: str, page: Iterable[Info]) -> Iterator[Listing]:
    """Yield a page's files folder by folder; an empty page if there are no files."""
    folders: dict[str, dict[str, FileStamp | None]] = {}
    for info in page:
        path = _below(root, base, info["name"])
        if path and info.get("type", "file") == "file":
            folders.setdefault(urls.parent(path), {})[urls.name(path)] = stamp_of(info)
    shown = [folder for folder in folders if not _is_hidden(root, folder)]
    for folder in shown:
        yield folder, folders[folder]
    if not shown:
        yield root, {}


def _is_hidden(root: str, folder: str) -> bool:
    return any(part.startswith(".") for part in urls.relative(root, folder).split("/"))


def is_folder(path: str) -> bool:
    """Return whether `path` is a folder."""
    info = _info(path)
    return info is not None and info["type"] == "directory"


def exists(path: str) -> bool:
    """Return whether `path` exists."""
    return _info(path) is not None


def real_path(path: str) -> str:
    """Return the path: remote storage has no links."""
    return urls.tidy(path)


class _Source(RawIOBase):
    """A file of fsspec that raises `UnreadableError`."""

    def __init__(self, path: str, source: BinaryIO) -> None:
        self._path = path
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        target = memoryview(buffer)
        with error_messages.translate_errors(self._path):
            piece = self._source.read(len(target))
        target[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


def _info(path: str) -> Info | None:
    """Return the metadata of a path; None for a missing one."""
    with open_system(path) as (system, inside):
        try:
            info: Info = system.info(inside, **timeout_options(system, ANSWER_SECONDS))
        except Exception as error:
            if error_messages.is_absence(path, error):
                return None
            raise
    return info


@contextmanager
def open_system(path: str) -> "Iterator[tuple[AbstractFileSystem, str]]":
    """Yield the file system of an address and the path in it; convert errors to `UnreadableError`.

    After an error, the file system is created again at the next use, with the then current
    credentials.
    """
    with error_messages.translate_errors(path):
        system, inside = _system(path)
        try:
            yield system, inside
        except Exception:
            system.clear_instance_cache()
            raise


def _system(path: str) -> "tuple[AbstractFileSystem, str]":
    kind = urls.scheme(path)
    if kind in (*S3, *GOOGLE, *AZURE) and not urls.bucket(path):
        message = "There is no bucket in this address."
        raise UnreadableError(path, message, f"Pass {kind}://BUCKET/FOLDER.")
    _quieten()
    import fsspec  # the extras of remote storage bring it

    system, inside = fsspec.url_to_fs(path, **_options(kind))
    return system, inside


def _quieten() -> None:
    """Silence libraries, which raise the same errors, unless the user set a log level."""
    for logger in map(logging.getLogger, NOISY_LIBRARIES):
        logger.setLevel(logger.level or logging.CRITICAL)


def _options(kind: str) -> Options:
    """Return a library's time limits, overridden by fsspec's configuration."""
    from fsspec.config import conf

    family = next((names for names in FAMILIES if kind in names), (kind,))
    users = {name: value for alias in family for name, value in conf.get(alias, {}).items()}
    limits = next((options for kinds, options in TIME_LIMITS if kind in kinds), {})
    return {
        name: {**value, **users.get(name, {})}
        if isinstance(value, dict)
        else users.get(name, value)
        for name, value in (_web_options() if kind in urls.WEB else limits).items()
    }


def _web_options() -> Options:
    from aiohttp import ClientTimeout

    patience = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
    # A `.gz` sent as `Content-Encoding: gzip` is not decoded: the reader inflates it.
    client = {"timeout": patience, "auto_decompress": False}
    return {"client_kwargs": client, "headers": {"Accept-Encoding": "identity"}}


def timeout_options(system: "AbstractFileSystem", seconds: int) -> Options:
    """Return the time limit of a call, for file systems that support one."""
    return {"timeout": seconds} if system.async_impl else {}


def _below(root: str, base: str, inside: str) -> str:
    """Return the address of a listed file; empty for `root` itself and for folder markers."""
    rest = inside[len(base) :] if inside.startswith(base) else ""
    if not rest or rest.endswith("/"):
        return ""
    if rest.startswith("/"):
        return root + rest
    return "" if base else f"{root}/{rest}"


def stamp_of(info: Info) -> FileStamp:
    """Return a file's stamp from its metadata."""
    tag = " ".join(str(info[name]).strip('"') for name in TAGS if info.get(name))
    times = (info.get(name) for name in TIMES)
    time = next((value for value in times if isinstance(value, datetime | int | float)), 0)
    seconds = time.timestamp() if isinstance(time, datetime) else time
    if tag:  # some listings have a finer time resolution than the file's metadata
        seconds = int(seconds)
    return FileStamp(
        size_bytes=int(info.get("size") or 0), modified_ns=int(seconds * 10**9), tag=tag
    )
