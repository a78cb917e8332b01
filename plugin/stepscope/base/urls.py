"""Paths and remote addresses as text: their parts, and what of them may be shown.

`pathlib` makes `s3:/bucket` of `s3://bucket`, so the names of traces are taken apart here.
"""

import re
from pathlib import PurePath, PureWindowsPath
from urllib.parse import unquote

WEB = ("http", "https")
AROUND_A_HOST = re.compile(r"(?P<scheme>[a-zA-Z][\w+.-]*)://(?P<user>[^/\s'\"]*)@")
WEB_QUERY = re.compile(r"(?P<page>https?://[^\s?'\"]*)\?[^\s'\"]*")
CONTAINER_AT_ACCOUNT = ("abfs", "abfss", "wasb", "wasbs")
"""Where the word before the `@` names a container; elsewhere it is a user or a token."""


def scheme(path: str) -> str:
    """Return `s3` of `s3://bucket/log`; nothing of a local path, a Windows drive's too."""
    name, mark, _ = path.partition("://")
    is_one = name[:1].isalpha() and name.isascii() and name.translate(_SIGNS).isalnum()
    return name if mark and is_one else ""


_SIGNS = str.maketrans("", "", "+.-")


def is_remote(path: str) -> bool:
    """Tell whether a path is an address: `s3://…`, `https://…`."""
    return bool(scheme(path))


def bucket(path: str) -> str:
    """Return the first part of an address: the bucket, container or host."""
    place = path.partition("://")[2].partition("/")[0]
    return place.partition("@")[0] if scheme(path) in CONTAINER_AT_ACCOUNT else place


def tidy(path: str) -> str:
    """Return the path without a slash at its end."""
    if not is_remote(path):
        return str(PurePath(path))
    kind, _, place = path.partition("://")
    return f"{kind}://{place.rstrip('/')}"


def join(folder: str, name: str) -> str:
    """Return the path of a file in a folder."""
    return f"{folder}/{name}" if is_remote(folder) else str(PurePath(folder, name))


def name(path: str) -> str:
    """Return the last part of a path; of an address that is all host, the host."""
    if not is_remote(path):
        return PurePath(path).name
    return _page(path).partition("://")[2].rstrip("/").rpartition("/")[2]


def source_name(path: str) -> str:
    """Return the last part of a path that a recording holds, of whatever system it was made on."""
    return PureWindowsPath(path).name


def parent(path: str) -> str:
    """Return the folder that a path lies in; what lies in none is its own."""
    if not is_remote(path):
        return str(PurePath(path).parent)
    kind, _, place = _page(path).partition("://")
    folder, slash, _ = place.rpartition("/")
    return f"{kind}://{folder if slash else place}"


def relative(root: str, folder: str) -> str:
    """Return what leads from `root` to a folder below it, with `/`; nothing for `root` itself."""
    if is_remote(root):
        return folder[len(tidy(root)) :].strip("/")
    below = PurePath(folder).relative_to(root).as_posix()
    return "" if below == "." else below


def redacted(text: str, path: str = "") -> str:
    """Return text as it may be shown: users, passwords and queries of its addresses are left out.

    A query (`?X-Amz-Signature=…`) is often as good as a password. What `path` holds of them is
    left out wherever it stands.
    """
    for secret in _secrets(path):
        text = text.replace(secret, "***")
    if "://" not in text:
        return text
    return WEB_QUERY.sub(r"\g<page>?***", AROUND_A_HOST.sub(_without_user, text))


def _secrets(path: str) -> list[str]:
    """Return what may not be shown of an address, the longest first."""
    found = [path.partition("?")[2]] if scheme(path) in WEB else []
    match = AROUND_A_HOST.match(path)
    if match and _without_user(match) != match[0]:
        found += [match["user"], match["user"].partition(":")[2]]
    as_meant = [unquote(secret) for secret in found]
    return sorted(filter(None, {*found, *as_meant}), key=len, reverse=True)


def _without_user(match: re.Match[str]) -> str:
    is_container = match["scheme"] in CONTAINER_AT_ACCOUNT and ":" not in match["user"]
    return match[0] if is_container else f"{match['scheme']}://***@"


def _page(path: str) -> str:
    """Return a web address without its query; a `?` elsewhere is part of a name."""
    return re.split(r"[?#]", path, maxsplit=1)[0] if scheme(path) in WEB else path
