"""The built page: `index.html`, its assets, and the module for TensorBoard."""

from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType

import flask
from werkzeug.exceptions import NotFound
from werkzeug.security import safe_join

STATIC = Path(__file__).parent.parent / "static"
FOLDER = "STEPSCOPE_PAGE"
"""Key of the app's configuration for the folder of the page."""
TYPES = MappingProxyType(
    # Spelled out: registries of machines differ, and `nosniff` makes a wrong type fatal.
    {
        ".css": "text/css",
        ".html": "text/html",
        ".ico": "image/x-icon",
        ".js": "text/javascript",
        ".json": "application/json",
        ".map": "application/json",
        ".png": "image/png",
        ".svg": "image/svg+xml",
        ".txt": "text/plain",
        ".woff2": "font/woff2",
    }
)
ASSETS = "assets/"
"""Vite writes files with a content hash in their names there; such a file never changes."""
FOR_EVER = "public, max-age=31536000, immutable"

NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>stepscope</title></head>
<body>
<h1>The page of stepscope is not built</h1>
<p>This installation comes from a clone without a built frontend. In the clone, run</p>
<pre>make demo</pre>
<p>or, with Node 20.19 or later,</p>
<pre>cd frontend &amp;&amp; npm ci &amp;&amp; npm run build</pre>
<p>and reload. <code>stepscope advise LOGDIR</code> prints the advice in a terminal.</p>
</body>
</html>
"""
ENTRY = """export function render() {
  window.location.replace(new URL('index.html', import.meta.url));
}
"""
"""Module for TensorBoard where the page is not built: it opens `NOT_BUILT`."""


@lru_cache(maxsize=256)
def _content(path: str, modified_ns: int) -> bytes:  # noqa: ARG001 (part of the cache's key)
    return Path(path).read_bytes()


def stored(static: Path, name: str) -> bytes | None:
    """Return the content of a file below a folder; None if there is none."""
    path = safe_join(str(static), name)
    try:
        if path is None or not Path(path).is_file():
            return None
        return _content(path, Path(path).stat().st_mtime_ns)
    except OSError:  # a name too long for any file, or a file that may not be read
        return None


def file(static: Path, name: str) -> flask.Response:
    """Return one file of the page."""
    body = stored(static, name)
    if body is None:
        body = {"index.html": NOT_BUILT, "index.js": ENTRY}.get(name, "").encode()
    kind = TYPES.get(PurePosixPath(name).suffix)
    if not body or kind is None:
        msg = f"the page has no file {name!r}"
        raise NotFound(msg)
    response = flask.Response(body, mimetype=kind)
    response.headers["Cache-Control"] = FOR_EVER if name.startswith(ASSETS) else "no-cache"
    return response


def register(app: flask.Flask, static: Path) -> None:
    """Serve the page."""

    @app.get("/")
    def root() -> flask.typing.ResponseReturnValue:
        # Relative, so that it works behind any prefix that a proxy removes.
        return flask.redirect("index.html")

    @app.get("/<path:name>")
    def named(name: str) -> flask.Response:
        return file(static, name)
