"""The sentence on a trace and on a run is the same in every form and view."""

from pathlib import Path

import msgspec
import pytest

from loading import SAMPLE_LOGS
from stepscope.api.app import create_app
from stepscope.api.messages import Overview
from stepscope.base.report import Report, RunReport
from stepscope.render import brief, markdown, text
from stepscope.render.brief import VERDICT
from stepscope.render.markdown_escape import line
from stepscope.render.markdown_escape import text as escaped
from test_run_results import catalog_of, result_of, settled

SAMPLES = sorted({path.parent for path in SAMPLE_LOGS.rglob("*.pt.trace.json.gz")})


def flat(rendered: str) -> str:
    return " ".join(rendered.split())


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_a_sample_has_one_verdict(folder: Path) -> None:
    client = create_app(catalog_of(folder)).test_client()
    [run] = settled(client).values()
    advice = client.get(f"/api/runs/{run.id}/advice").data
    report = msgspec.json.decode(advice, type=RunReport)
    assert result_of(run).verdict == report.verdict
    for worker in report.workers:
        overview = client.get(f"/api/traces/{worker.trace}/overview").data
        assert msgspec.json.decode(overview, type=Overview).verdict == worker.verdict
    whole = Report(runs=(report,))
    assert report.verdict in flat(text.render(whole))
    assert f"**{escaped(report.verdict)}**" in markdown.render(whole)
    assert line(report.verdict, VERDICT) in brief.render(whole)
