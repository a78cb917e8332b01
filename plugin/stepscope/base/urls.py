"""Parts of local paths and URLs as text, and URLs without their secrets.

`pathlib` turns `s3://bucket` into `s3:/bucket`, so URLs are split here.
"""

import os
import re
import shlex
from pathlib import PurePath, PureWindowsPath
from urllib.parse import unquote

WEB = ("http", "https")
AROUND_A_HOST = re.compile(
    r"(?P<scheme>[a-zA-Z][\w+.-]{0,30})://(?P<user>[^/\s'\"]*"
    r"|(?:(?<=s3://)|(?![^/:@\s'\"]*:\d*/))[^/:@\s'\"]*:[^@\s'\"]{0,300})@"
)
"""A password may contain slashes, as those of S3 do; elsewhere, digits before one are a port."""
QUERY = re.compile(
    r"(?P<page>https?://[^\s?#'\"]*[?#]|\w[\w+.-]{0,30}://[^\s?'\"]*\?(?=[^\s'\"=]*=))[^\s'\"]*"
)
"""Elsewhere than on the web, a `?` without a `=` is part of a name."""
CONTAINER_AT_ACCOUNT = ("abfs", "abfss", "wasb", "wasbs")
"""Schemes whose part before the `@` is a container; elsewhere it is a user or a token."""


def scheme(path: str) -> str:
    """Return `s3` for `s3://bucket/log`; "" for a local path, also on a Windows drive."""
    name, separator, _ = path.partition("://")
    is_scheme = name[:1].isalpha() and name.isascii() and name.translate(_SIGNS).isalnum()
    return name if separator and is_scheme else ""


_SIGNS = str.maketrans("", "", "+.-")


def is_remote(path: str) -> bool:
    """Return whether a path is a URL: `s3://…`, `https://…`."""
    return bool(scheme(path))


def bucket(path: str) -> str:
    """Return the first part of a URL: the bucket, container or host."""
    first = path.partition("://")[2].partition("/")[0]
    return first.partition("@")[0] if scheme(path) in CONTAINER_AT_ACCOUNT else first


def tidy(path: str) -> str:
    """Return the path without a trailing slash."""
    if not is_remote(path):
        return str(PurePath(path))
    kind, _, rest = path.partition("://")
    return f"{kind}://{rest.rstrip('/')}"


def join(folder: str, name: str) -> str:
    """Return the path of a file in a folder."""
    return f"{folder}/{name}" if is_remote(folder) else str(PurePath(folder, name))


def displayed(path: str) -> str:
    """Return a path as text of UTF-8, whatever the bytes of its names are."""
    return path.encode(errors="backslashreplace").decode()


def name(path: str) -> str:
    """Return the last part of a path, for display; the host of a URL without a path."""
    path = displayed(path)
    if not is_remote(path):
        return PurePath(path).name
    return _page(path).partition("://")[2].rstrip("/").rpartition("/")[2]


def source_name(path: str) -> str:
    """Return the last part of a path from a trace, of any operating system."""
    return PureWindowsPath(path).name


def parent(path: str) -> str:
    """Return the folder of a path; a path without a folder is returned unchanged."""
    if not is_remote(path):
        return str(PurePath(path).parent)
    kind, _, rest = _page(path).partition("://")
    folder, slash, _ = rest.rpartition("/")
    return f"{kind}://{folder if slash else rest}"


def relative(root: str, folder: str) -> str:
    """Return the path from `root` to a folder below it, with `/`; empty for `root` itself."""
    if is_remote(root):
        return folder[len(tidy(root)) :].strip("/")
    below = PurePath(folder).relative_to(root).as_posix()
    return "" if below == "." else below


def shell_argument(text: str) -> str:
    """Return text as one argument of this system's shell, to be copied."""
    if os.name == "nt":
        return f'"{text}"' if " " in text else text
    return shlex.quote(text)


def redacted(text: str, path: str = "") -> str:
    """Return text for display, without users, passwords and queries of its URLs.

    A query (`?X-Amz-Signature=…`) is often equivalent to a password. The secrets of `path` are
    removed wherever they occur. Bytes of a file's name that are not UTF-8 are escaped.
    """
    text = displayed(text)
    for secret in _secrets(path):
        text = text.replace(secret, "***")
    if "://" not in text:
        return text
    return QUERY.sub(r"\g<page>***", AROUND_A_HOST.sub(_without_user, text))


def _secrets(path: str) -> list[str]:
    """Return the secret parts of a URL, the longest first."""
    secrets = [path.partition(sign)[2] for sign in "?#"] if scheme(path) in WEB else []
    match = AROUND_A_HOST.match(path)
    if match and _without_user(match) != match[0]:
        secrets += [match["user"], match["user"].partition(":")[2]]
    decoded = [unquote(secret) for secret in secrets]
    return sorted(filter(None, {*secrets, *decoded}), key=len, reverse=True)


def _without_user(match: re.Match[str]) -> str:
    is_container = match["scheme"] in CONTAINER_AT_ACCOUNT and ":" not in match["user"]
    return match[0] if is_container else f"{match['scheme']}://***@"


def _page(path: str) -> str:
    """Return a web URL without its query; a `?` elsewhere is part of a name."""
    return re.split(r"[?#]", path, maxsplit=1)[0] if scheme(path) in WEB else path
