"""The page and the responses that it shows as one HTML file, which loads nothing.

Everything is in the file: the page's style sheet, its script, and the responses, both compressed.
Its content security policy allows these alone; an inline script is allowed by the hash of its text.
"""

import hashlib
import zlib
from base64 import b64encode
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec
from jinja2 import Environment, StrictUndefined, Template

POLICY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; img-src data: blob:; "
    "font-src data:; base-uri 'none'; form-action 'none'"
)
"""Charts set styles of elements, and a chart as a picture holds a copy of the styles."""
SCRIPT, STYLE = "page.js", "page.css"
"""Files of the page, as one script and one style sheet."""


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """The responses in a file, and what it leaves out."""

    version: str
    written: str
    """Time of writing, for display."""
    notes: tuple[str, ...]
    """What the file leaves out, as sentences."""
    responses: dict[str, str]
    """Responses by the key of their request, from `packed`."""
    statuses: dict[str, int]
    """HTTP statuses of the responses that are refusals."""


def packed(body: bytes) -> str:
    """Return bytes as text: deflated, in Base64."""
    return b64encode(zlib.compress(body, 9)).decode()


def encoded(value: object) -> str:
    """Return JSON without any `<`, which would end its block of the file."""
    return msgspec.json.encode(value).decode().replace("<", "\\u003c")


def is_built(folder: Path) -> bool:
    """Return whether the folder holds the page for shared files."""
    return all((folder / name).is_file() for name in (SCRIPT, STYLE))


def render(content: Content, title: str, folder: Path) -> bytes:
    """Return the file, with the page in a folder."""
    script, style = _page(folder)
    start = _source("shared_file.js")
    hashes = " ".join(f"'sha256-{_digest(text)}'" for text in (start, script))
    page = _template("shared_file.html.j2").render(
        policy=POLICY.format(scripts=hashes),
        version=content.version,
        title=title,
        style=style,
        data=encoded(content),
        page=packed(script.encode()),
        start=start,
    )
    return page.encode()


def frame(page: bytes, title: str) -> str:
    """Return a frame that shows a file, for a notebook."""
    return _template("shared_frame.html.j2").render(page=page.decode(), title=title)


def _template(name: str) -> Template:
    return Environment(autoescape=True, undefined=StrictUndefined).from_string(_source(name))


def _digest(text: str) -> str:
    return b64encode(hashlib.sha256(text.encode()).digest()).decode()


@cache
def _page(folder: Path) -> tuple[str, str]:
    script, style = ((folder / name).read_text(encoding="utf-8") for name in (SCRIPT, STYLE))
    return script, style


@cache
def _source(name: str) -> str:
    return files("stepscope.render").joinpath("templates", name).read_text(encoding="utf-8")
