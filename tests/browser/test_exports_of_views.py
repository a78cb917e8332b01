"""What the overview and the advice hand out as files."""

import csv
import json
from pathlib import Path

import pytest

from browser.visits import PATIENCE_MS, Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.slow,
]

PNG = b"\x89PNG\r\n\x1a\n"
PICTURES = ("PNG: Mean step", "PNG: Steps", "PNG: Devices")


def opened(seen: Visit, view: str) -> None:
    run = next(each for each in seen.server.runs().runs if "dataloader/fault" in each.name)
    seen.open(seen.fragment(view, run=run.id))
    seen.settled()


def saved(seen: Visit, folder: Path, choice: str) -> Path:
    """Return the file that a choice of the view's first Export hands out."""
    menu = seen.main.locator(".menu", has_text="Export").first
    if menu.get_attribute("open") is None:
        menu.locator("summary").click()
    with seen.page.expect_download(timeout=PATIENCE_MS) as download:
        menu.get_by_role("button", name=choice, exact=True).click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_the_overview_hands_out_its_steps_and_its_charts(alone: Visit, tmp_path: Path) -> None:
    opened(alone, "overview")
    rows = list(csv.DictReader(saved(alone, tmp_path, "CSV").read_text().splitlines()))
    told = json.loads(saved(alone, tmp_path, "JSON").read_text())
    assert [int(row["step"]) for row in rows] == [row["number"] for row in told["rows"]]
    assert rows
    for choice in PICTURES:
        picture = saved(alone, tmp_path, choice)
        assert picture.read_bytes().startswith(PNG), picture
    alone.assert_clean()


def test_the_advice_hands_out_its_findings_and_its_report(alone: Visit, tmp_path: Path) -> None:
    opened(alone, "advice")
    rows = list(csv.DictReader(saved(alone, tmp_path, "CSV").read_text().splitlines()))
    report = json.loads(saved(alone, tmp_path, "JSON").read_text())
    found = [each["rule"] for each in report["outcomes"] if each["status"] == "found"]
    assert found
    assert sorted(row["rule"] for row in rows) == sorted(found)
    alone.assert_clean()
