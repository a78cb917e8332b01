"""All about a rule is read where its finding stands, without the web."""

import pytest
from playwright.sync_api import expect

from browser.visits import Visit

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.slow,
]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_finding_leads_to_all_about_its_rule(alone: Visit, theme: str) -> None:
    run = next(each for each in alone.server.runs().runs if "dataloader/fault" in each.name)
    alone.open(alone.fragment("advice", run=run.id, open="dataloader-no-workers"))
    alone.settled()
    alone.in_theme("dark" if theme == "dark" else "light")
    finding = alone.main.locator(".finding-body").first
    finding.get_by_text("Learn more about this check").click()
    for heading in ("What it checks", "When it does not report", "Options", "Origin"):
        expect(finding.get_by_role("heading", name=heading)).to_be_visible()
    assert alone.inaccessible() == []
    alone.assert_clean()
