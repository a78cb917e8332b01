"""The findings of a trace: rows on one screen, which open in place."""

import copy
import re

import pytest
from playwright.sync_api import Route, expect

from browser.visits import PATIENCE_MS, Visit

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

RUN = "synthetic_item_sync/fault"
ROWS = 6
"""Findings that a screen shows without scrolling."""
FITS = "(main) => main.scrollWidth <= main.clientWidth"
PARTS = ("Fix", "Around the worst event", "Measured", "Evidence", "How this was estimated")


def with_more_findings(route: Route) -> None:
    """Answer with each finding twice, the second time by another name, and with long lines."""
    response = route.fetch()
    report = response.json()
    found = [outcome for outcome in report["outcomes"] if outcome["status"] == "found"]
    for outcome in found:
        outcome["fix"]["code"] += f"\nlong({'x' * 300})"
    for outcome in copy.deepcopy(found):
        outcome["rule"] += "-again"
        outcome["locations"] = [{"path": "/job/train.py", "line": 12, "function": "step"}]
        report["outcomes"].append(outcome)
    route.fulfill(response=response, json=report)


@pytest.fixture
def seen(alone: Visit) -> Visit:
    alone.page.route("**/api/runs/*/advice*", with_more_findings)
    alone.open(alone.fragment("advice", run=RUN))
    expect(alone.main.locator(".finding-head")).to_have_count(2 * 4, timeout=PATIENCE_MS)
    alone.settled()
    return alone


@pytest.mark.parametrize(("width_px", "theme"), [(1440, "light"), (900, "dark")])
def test_a_screen_shows_the_summary_and_six_findings(
    seen: Visit, width_px: int, theme: str
) -> None:
    seen.in_theme("dark" if theme == "dark" else "light")
    seen.page.set_viewport_size({"width": width_px, "height": 900})
    expect(seen.main.locator(".verdict-words")).to_be_in_viewport(ratio=1)
    expect(seen.main.locator(".verdict .facts")).to_be_in_viewport(ratio=1)
    for at in range(ROWS):
        expect(seen.main.locator(".finding").nth(at)).to_be_in_viewport(ratio=1)
    assert seen.main.evaluate(FITS)
    assert seen.inaccessible() == []
    seen.assert_clean()


def test_rows_open_in_place_by_keyboard_and_a_link_opens_them_again(seen: Visit) -> None:
    heads = seen.main.locator(".finding-head")
    heads.first.focus()
    for key in ("ArrowDown", "Enter", "ArrowUp", "Space"):
        seen.page.keyboard.press(key)
    expect(heads.nth(0)).to_have_attribute("aria-expanded", "true")
    expect(heads.nth(1)).to_have_attribute("aria-expanded", "true")
    rules = seen.state()["open"].split(",")
    assert rules[1] == "item-sync"
    body = seen.main.locator("[data-rule='item-sync'] .finding-body")
    expect(body.locator(".mini-timeline")).to_be_visible(timeout=PATIENCE_MS)
    text = body.inner_text()
    positions = [text.index(part) for part in PARTS]
    assert positions == sorted(positions)
    assert "-running += loss.item()\n+running += loss.detach()" in text
    assert seen.inaccessible() == []
    seen.page.set_viewport_size({"width": 900, "height": 900})
    assert seen.main.evaluate(FITS)
    seen.page.reload()
    for rule in rules:
        head = seen.main.locator(f"[data-rule='{rule}'] .finding-head")
        expect(head).to_have_attribute("aria-expanded", "true", timeout=PATIENCE_MS)
    seen.assert_clean()


def test_a_row_names_line_range_confidence_effort_and_fix(seen: Visit) -> None:
    row = seen.main.locator("[data-rule='item-sync-again'] .finding-head")
    expect(row).to_contain_text("train.py:12")
    expect(row).to_contain_text(re.compile(r"\d[\d.]*–[\d.]+\s% of the step"))
    expect(row).to_contain_text("confidence")
    expect(row).to_contain_text("effort: an hour")
    expect(row).to_contain_text("Keep values on the device")


def test_a_link_to_a_passed_check_shows_its_sentence(seen: Visit) -> None:
    seen.go("advice", run=RUN, open="pageable-h2d-copy")
    check = seen.main.locator("li[data-rule='pageable-h2d-copy']")
    expect(check).to_be_in_viewport()
    expect(check).to_contain_text("Copies to the device come from pinned memory, or are short.")
    seen.assert_clean()


def test_paper_has_all_findings_with_their_caveats(seen: Visit) -> None:
    seen.frame.evaluate("() => window.dispatchEvent(new Event('beforeprint'))")
    seen.page.emulate_media(media="print")
    expect(seen.main.locator(".finding-body")).to_have_count(2 * 4)
    caveat = seen.main.locator("[data-rule='item-sync'] .more li").first
    expect(caveat).to_be_visible()
    seen.frame.evaluate("() => window.dispatchEvent(new Event('afterprint'))")
    expect(seen.main.locator(".finding-body")).to_have_count(0)
