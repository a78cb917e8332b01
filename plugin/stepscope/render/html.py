"""A report as one HTML file without scripts or network access.

The page is `templates/report.html.j2`, which escapes every value; its content security policy
allows nothing but its style sheet.
"""

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from stepscope.base.formatting import capitalized, count
from stepscope.base.plain_text import plain_lines
from stepscope.base.report import Report
from stepscope.render import advice_phrases as labels
from stepscope.render import job_phrases, outlook_phrases, phrases
from stepscope.render.advice_sections import Reason, advice_sections
from stepscope.render.evidence_table import is_text
from stepscope.render.markdown_escape import ADDRESS

ROWS_SHOWN = 20
EVENTS_SHOWN = 5
LINES_SHOWN = 10


def render(report: Report) -> str:
    """Return the report as a page."""
    style = _source("report.css")
    style_hash = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    runs = report.runs
    return (
        _environment()
        .from_string(_source("report.html.j2"))
        .render(
            report=report,
            runs=[advice_sections(run) for run in runs],
            problems=phrases.problems(report),
            title=runs[0].name if len(runs) == 1 else count(len(runs), "run"),
            style=style,
            style_hash=f"sha256-{style_hash}",
        )
    )


@cache
def _environment() -> Environment:
    """Return the template engine: it escapes, and refuses undefined names."""
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_without_controls,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["css_class"] = lambda name: re.sub(r"[^a-z-]", "", name)
    environment.filters["sum_rules"] = _sum_rules
    environment.globals.update(
        labels=labels,
        capitalized=capitalized,
        phrases=phrases,
        job_phrases=job_phrases,
        outlook_phrases=outlook_phrases,
        is_text=is_text,
        is_address=ADDRESS.fullmatch,
        rows_shown=ROWS_SHOWN,
        events_shown=EVENTS_SHOWN,
        lines_shown=LINES_SHOWN,
    )
    return environment


def _without_controls(value: object) -> object:
    """Return a text without control characters; markup of the engine stays as it is."""
    return plain_lines(value) if type(value) is str else value


def _sum_rules(reasons: Iterable[Reason]) -> int:
    return sum(len(reason.rules) for reason in reasons)


@cache
def _source(name: str) -> str:
    return files("stepscope.render").joinpath("templates", name).read_text(encoding="utf-8")
