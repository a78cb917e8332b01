"""A report as one HTML file that needs nothing else: no network, no script.

The page is `templates/report.html.j2`, which escapes whatever it is given. Its own style is the
only thing that its content security policy lets in.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from stepscope.base.formatting import count
from stepscope.base.report import Report
from stepscope.render import advice_phrases as told
from stepscope.render import job_phrases, phrases
from stepscope.render.advice_sections import Reason, advised
from stepscope.render.evidence_table import is_text
from stepscope.render.markdown_escape import ADDRESS

TEMPLATES = "templates"
ROWS_SHOWN = 20
EVENTS_SHOWN = 5
LINES_SHOWN = 10


def render(report: Report) -> str:
    """Return the report as a page."""
    style = _source("report.css")
    template = _environment().from_string(_source("report.html.j2"))
    return template.render(
        report=report,
        runs=[advised(run) for run in report.runs],
        problems=phrases.problems(report),
        title=_title(report),
        style=style,
        style_hash=_hash(style),
    )


def _title(report: Report) -> str:
    if len(report.runs) == 1:
        return report.runs[0].name
    return count(len(report.runs), "run")


@cache
def _environment() -> Environment:
    """Return the template engine: it escapes, and a name that there is not is an error."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["css_class"] = _css_class
    environment.filters["sum_rules"] = _sum_rules
    environment.globals.update(
        told=told,
        words=phrases,
        job_words=job_phrases,
        is_text=is_text,
        is_address=ADDRESS.fullmatch,
        rows_shown=ROWS_SHOWN,
        events_shown=EVENTS_SHOWN,
        lines_shown=LINES_SHOWN,
    )
    return environment


def _finalized(value: object) -> object:
    """Return what is about to be shown without characters that act; markup is the engine's own."""
    return phrases.plain(value) if type(value) is str else value


def _css_class(name: str) -> str:
    return re.sub(r"[^a-z-]", "", name)


def _sum_rules(reasons: Iterable[Reason]) -> int:
    return sum(len(each.rules) for each in reasons)


@cache
def _source(name: str) -> str:
    return files("stepscope.render").joinpath(TEMPLATES, name).read_text(encoding="utf-8")


def _hash(style: str) -> str:
    """Return what a content security policy calls a style by."""
    return f"sha256-{b64encode(hashlib.sha256(style.encode()).digest()).decode()}"
