"""Reports of real traces in every form: within their bounds, valid, and made of closed elements."""

import json
import re
from pathlib import Path

import pytest

from loading import SHARED_TRACES, shared_trace_names, trace_at
from stepscope.advice import advise
from stepscope.base.report import Report
from stepscope.model.trace import Run
from stepscope.render import brief, github, html, markdown, sarif, text
from test_render import CONTROL, acts_in_markdown
from test_render_github import COMMAND
from test_render_html import Page
from test_render_sarif import SCHEMA

pytestmark = pytest.mark.slow

SAMPLES = Path(__file__).parents[1] / "sample_logs"
TRACES = [
    *(SHARED_TRACES / name for name in shared_trace_names()),
    *sorted(SAMPLES.rglob("*.pt.trace.json.gz")),
]


@pytest.fixture(scope="module", params=TRACES, ids=lambda path: f"{path.parent.name}/{path.name}")
def report(request: pytest.FixtureRequest) -> Report:
    run = Run(name=request.param.parent.name, workers=(trace_at(request.param),))
    return Report((advise(run),), version="1.2.3")


def code_of(report: Report) -> set[str]:
    """Return the lines of code that a report shows, which are never wrapped."""
    texts = [
        code
        for outcome in report.runs[0].outcomes
        for code in (outcome.remedy, outcome.fix and outcome.fix.code)
        if code
    ]
    return {line.strip() for code in texts for line in code.splitlines()}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_text_keeps_to_its_width_but_for_code(report: Report, width: int) -> None:
    rendered = text.render(report, width=width)
    code = code_of(report)
    wide = [line for line in rendered.splitlines() if len(line) > width]
    assert [line for line in wide if line.strip() not in code] == []
    assert not re.search(CONTROL, rendered)


def test_the_rest_stays_short(report: Report) -> None:
    """What passed, and what does not apply: not more than a screen or two."""
    lines = text.render(report).splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("Passed"))
    applicable = [place for place, line in enumerate(lines) if line.startswith("Not applicable")]
    assert len(lines) - min([first, *applicable]) <= 50


def test_markdown_holds_nothing_that_acts(report: Report) -> None:
    assert acts_in_markdown(markdown.render(report)) == []


def test_the_brief_is_brief(report: Report) -> None:
    assert len(brief.render(report)) <= brief.LIMIT


def test_annotations_are_commands(report: Report) -> None:
    lines = github.render(report).splitlines()
    assert [
        line for line in lines if not (COMMAND.fullmatch(line) or line.startswith("and "))
    ] == []


def test_the_page_is_whole(report: Report) -> None:
    assert report.runs[0].verdict in Page(html.render(report)).said


def test_the_log_for_code_scanning_is_valid(report: Report) -> None:
    SCHEMA.validate(json.loads(sarif.render(report)))
