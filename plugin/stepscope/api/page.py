"""The built page: `index.html`, its assets, and the module that TensorBoard imports."""

from functools import lru_cache
from pathlib import Path, PurePosixPath
from types import MappingProxyType

import flask
from werkzeug.exceptions import NotFound
from werkzeug.security import safe_join

STATIC = Path(__file__).parent.parent / "static"
TYPES = MappingProxyType(
    # Spelled out: what the machine's own registry says differs, and `nosniff` makes that fatal.
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
"""Vite puts what has a content hash in its name there; such a file never changes."""
FOR_EVER = "public, max-age=31536000, immutable"

NOT_BUILT = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>stepscope</title></head>
<body>
<h1>The page of stepscope is not built</h1>
<p>This installation was made from a clone, without its frontend. In the clone, run</p>
<pre>make demo</pre>
<p>or, with Node 20.19 or later,</p>
<pre>cd frontend &amp;&amp; npm ci &amp;&amp; npm run build</pre>
<p>and reload. Meanwhile <code>stepscope advise LOGDIR</code> prints the advice in a terminal.</p>
</body>
</html>
"""
ENTRY = """export function render() {
  window.location.replace(new URL('index.html', import.meta.url));
}
"""
"""What TensorBoard imports where the page is not built: it leads to the words above."""


@lru_cache(maxsize=256)
def _content(path: str, modified_ns: int) -> bytes:  # noqa: ARG001 (part of the cache's key)
    return Path(path).read_bytes()


def _stored(static: Path, name: str) -> bytes | None:
    found = safe_join(str(static), name)
    try:
        if found is None or not Path(found).is_file():
            return None
        return _content(found, Path(found).stat().st_mtime_ns)
    except OSError:  # a name too long for any file, or a file that may not be read
        return None


def file(static: Path, name: str) -> flask.Response:
    """Return one file of the page."""
    body = _stored(static, name)
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
        # Relative, so that it holds behind any prefix that a proxy takes away.
        return flask.redirect("index.html")

    @app.get("/<path:name>")
    def named(name: str) -> flask.Response:
        return file(static, name)
