"""Where code scanning looks for a line: paths below the repository, and addresses of files."""

import re
from pathlib import Path
from urllib.parse import quote

WINDOWS = re.compile(r"[A-Za-z]:/")
SAFE = "/-._~"


def below_repository(path: str, root: str = "") -> str:
    """Return a path as it stands below the repository; one elsewhere stays as it is.

    `root` is the repository's folder: by default the one that the program runs in.
    """
    posix = path.replace("\\", "/")
    folder = (root or str(Path.cwd())).replace("\\", "/").rstrip("/")
    below = posix.removeprefix(f"{folder}/")
    return below.removeprefix("./")


def address(path: str) -> str:
    """Return a path as an address, relative where the path is, without `..` or empty parts."""
    posix = path.replace("\\", "/")
    parts = [part for part in posix.split("/") if part not in ("", ".", "..")]
    quoted = quote("/".join(parts), safe=SAFE, errors="replace") or "unknown"
    if WINDOWS.match(posix):
        return f"file:///{posix[0]}:/{quote('/'.join(parts[1:]), safe=SAFE, errors='replace')}"
    return f"file:///{quoted}" if posix.startswith("/") else quoted
