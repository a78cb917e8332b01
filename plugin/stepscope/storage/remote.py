"""Remote files through fsspec; `stepscope.storage` says what each function promises.

Credentials, endpoints and proxies come from where the field's own tools have them (environment,
`~/.aws`, …) and from fsspec's configuration. No server is waited for without end.
"""

import errno
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from io import BufferedReader, BytesIO, RawIOBase
from typing import TYPE_CHECKING, Any, BinaryIO

import fsspec
from fsspec.config import conf

from stepscope.base import urls
from stepscope.base.errors import UnreadableError
from stepscope.storage import error_messages, remote_listing
from stepscope.storage.file_stamp import FileStamp
from stepscope.storage.listing import Listing, NameFilter
from stepscope.storage.local import SPECIAL

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK_BYTES = 8 << 20
"""What one request brings: few requests, and little memory."""
BUFFER_BYTES = 1 << 20
CONNECT_SECONDS = 5
SILENCE_SECONDS = 15
"""A server that says nothing for so long is given up."""
ANSWER_SECONDS = 30
"""Within these a server tells whether something is there, retries included."""
LISTING_SECONDS = 600
TALKATIVE = ("adlfs", "azure", "fsspec", "gcsfs", "s3fs")
"""Libraries that log, with tracebacks, what they raise as well."""

Options = dict[str, Any]
Info = Mapping[str, Any]

S3 = ("s3", "s3a")
GOOGLE = ("gs", "gcs")
AZURE = ("az", "abfs", "abfss")
FAMILIES = (S3, GOOGLE, AZURE, urls.WEB)
PATIENCE: tuple[tuple[tuple[str, ...], Options], ...] = (
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
"""How long each library waits; listings are not kept, since logs grow while they are looked at."""
TIMES = ("mtime", "LastModified", "last_modified", "modified", "created")
TAGS = ("ETag", "etag", "generation", "Last-Modified", "modify")


def stamp(path: str) -> FileStamp:
    """Return the file's size and time of change."""
    info = _info(path)
    if info is None:
        raise error_messages.problem(path, FileNotFoundError(path))
    if info["type"] == "directory":
        raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
    if info["type"] != "file":
        raise OSError(errno.EINVAL, SPECIAL, path)
    return stamp_of(info)


def open_binary(path: str) -> BinaryIO:
    """Open a file for reading; it arrives in blocks, one after the other."""
    with open_system(path) as (system, inside):
        kind = urls.scheme(path)
        if kind == "memory":  # its files have one place for all who read them
            return BytesIO(system.cat_file(inside))
        # A web server may know no parts of files: one answer is read as it comes.
        block_bytes = 0 if kind in urls.WEB else BLOCK_BYTES
        source = system.open(inside, "rb", block_size=block_bytes, cache_type="readahead")
    return BufferedReader(_Source(path, source), BUFFER_BYTES)


def walk(root: str, _is_wanted: NameFilter) -> Iterator[Listing]:
    """Yield the folders under `root` that have files; what is listed is known of all of them."""
    if urls.scheme(root) in urls.WEB:
        return
    root = urls.tidy(root)
    with open_system(root) as (system, inside):
        base = inside.rstrip("/")
        pages = remote_listing.below(system, base, timeout_options(system, LISTING_SECONDS))
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


def _by_folder(root: str, base: str, page: Iterable[Info]) -> Iterator[Listing]:
    """Yield what a page holds, a folder at a time; an empty page where it holds nothing for us."""
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
    """Tell whether `path` is a folder."""
    info = _info(path)
    return info is not None and info["type"] == "directory"


def exists(path: str) -> bool:
    """Tell whether `path` is there at all."""
    return _info(path) is not None


def real_path(path: str) -> str:
    """Return the path; what else leads to the same file, remote storage does not tell."""
    return urls.tidy(path)


class _Source(RawIOBase):
    """A file of fsspec's whose errors are told as ours."""

    def __init__(self, path: str, source: BinaryIO) -> None:
        self._path = path
        self._source = source

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        room = memoryview(buffer)
        with error_messages.translate_errors(self._path):
            piece = self._source.read(len(room))
        room[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._source.close()
        super().close()


def _info(path: str) -> Info | None:
    """Return what is known of a path; None where nothing is there."""
    with open_system(path) as (system, inside):
        try:
            info: Info = system.info(inside, **timeout_options(system, ANSWER_SECONDS))
        except Exception as error:
            if error_messages.is_absence(path, error):
                return None
            raise
    return info


@contextmanager
def open_system(path: str) -> Iterator[tuple[fsspec.AbstractFileSystem, str]]:
    """Give the file system of an address, and the path in it; tell its errors as ours.

    After an error it is made anew: credentials that have come since then would not be seen.
    """
    with error_messages.translate_errors(path):
        system, inside = _system(path)
        try:
            yield system, inside
        except Exception:
            system.clear_instance_cache()
            raise


def _system(path: str) -> tuple[fsspec.AbstractFileSystem, str]:
    kind = urls.scheme(path)
    if kind in (*S3, *GOOGLE, *AZURE) and not urls.bucket(path):
        message = "There is no bucket in this address."
        raise UnreadableError(path, message, f"Give {kind}://BUCKET/FOLDER.")
    _quieten()
    system, inside = fsspec.url_to_fs(path, **_options(kind))
    return system, inside


def _quieten() -> None:
    """Leave what libraries log to those who set a level for it: it comes as an error, too."""
    for logger in map(logging.getLogger, TALKATIVE):
        logger.setLevel(logger.level or logging.CRITICAL)


def _options(kind: str) -> Options:
    """Return what bounds a library's patience; fsspec's configuration has the last word."""
    family = next((names for names in FAMILIES if kind in names), (kind,))
    theirs = {name: value for each in family for name, value in conf.get(each, {}).items()}
    return {
        name: {**own, **theirs.get(name, {})} if isinstance(own, dict) else theirs.get(name, own)
        for name, own in _own_options(kind).items()
    }


def _own_options(kind: str) -> Options:
    if kind in urls.WEB:
        return _web_options()
    return next((own for kinds, own in PATIENCE if kind in kinds), {})


def _web_options() -> Options:
    from aiohttp import ClientTimeout

    patience = ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS)
    # A `.gz` that is sent as `Content-Encoding: gzip` stays what it is: the reader inflates it.
    client = {"timeout": patience, "auto_decompress": False}
    return {"client_kwargs": client, "headers": {"Accept-Encoding": "identity"}}


def timeout_options(system: fsspec.AbstractFileSystem, seconds: int) -> Options:
    """Return what bounds a whole call, where fsspec can: hdfs and the like wait by themselves."""
    return {"timeout": seconds} if system.async_impl else {}


def _below(root: str, base: str, inside: str) -> str:
    """Return the address of what a listing found; nothing for `root` itself and for its markers."""
    rest = inside[len(base) :] if inside.startswith(base) else ""
    if not rest or rest.endswith("/"):
        return ""
    if rest.startswith("/"):
        return root + rest
    return "" if base else f"{root}/{rest}"


def stamp_of(info: Info) -> FileStamp:
    """Return the state of a file by what its storage says of it."""
    tag = " ".join(str(info[name]).strip('"') for name in TAGS if info.get(name))
    times = (info.get(name) for name in TIMES)
    time = next((each for each in times if isinstance(each, datetime | int | float)), 0)
    seconds = time.timestamp() if isinstance(time, datetime) else time
    if tag:  # that tells enough, and some listings know the time finer than the file itself does
        seconds = int(seconds)
    return FileStamp(
        size_bytes=int(info.get("size") or 0), modified_ns=int(seconds * 10**9), tag=tag
    )
