"""What holds for every view: search, narrowing, keys, links, pictures, paper; in real Chromium."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from browser.visits import PATIENCE_MS, VIEWS, Visit

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

RUN = "synthetic_item_sync/fault"
PNG = b"\x89PNG\r\n\x1a\n"
WIDTHS_PX = (720, 900, 1440, 3840)


@pytest.fixture
def seen(alone: Visit) -> Visit:
    alone.open(alone.fragment("advice", run=RUN))
    expect(alone.main.locator(".verdict-words")).to_be_visible(timeout=PATIENCE_MS)
    return alone


def found(seen: Visit, typed: str) -> Locator:
    """Type into the search over everything; return its list."""
    seen.page.keyboard.press("Control+k")
    seen.frame.get_by_role("combobox", name="Find anything").fill(typed)
    return seen.frame.get_by_role("listbox", name="Results")


def location(seen: Visit) -> str:
    return str(seen.page.evaluate("() => decodeURIComponent(window.location.hash)"))


def until_at(seen: Visit, *parts: str) -> None:
    """Wait until the address holds all of these."""
    seen.until(lambda: all(part in location(seen) for part in parts))


def test_an_operator_is_found_from_anywhere_by_keyboard_alone(seen: Visit) -> None:
    hits = found(seen, "foreach add")
    expect(hits.get_by_role("option", name="aten::_foreach_add_")).to_be_visible(
        timeout=PATIENCE_MS
    )
    seen.page.keyboard.press("Enter")
    expect(seen.frame.get_by_role("dialog")).to_have_count(0)
    until_at(seen, "view=operators", "search=aten::_foreach_add_")
    seen.assert_clean()


def test_the_search_and_the_help_are_accessible(seen: Visit) -> None:
    expect(found(seen, "a").get_by_role("option").first).to_be_visible(timeout=PATIENCE_MS)
    assert seen.inaccessible() == []
    seen.page.keyboard.press("Escape")
    expect(seen.frame.get_by_role("dialog")).to_have_count(0)
    seen.page.keyboard.press("?")
    heading = seen.frame.get_by_role("heading", name="Reading this page")
    expect(heading).to_be_visible(timeout=PATIENCE_MS)
    assert seen.inaccessible() == []


def test_a_step_is_chosen_by_key_and_holds_in_every_view(seen: Visit) -> None:
    seen.page.keyboard.press(".")
    chip = seen.frame.get_by_role("group", name="Filter of all views")
    expect(chip).to_contain_text("Step 12", timeout=PATIENCE_MS)
    seen.page.keyboard.press("g")
    seen.page.keyboard.press("p")
    expect(seen.main.get_by_role("heading", name="Operators", exact=True)).to_be_visible(
        timeout=PATIENCE_MS
    )
    until_at(seen, "step=12")
    chip.get_by_role("button", name="Show the whole trace").click()
    seen.until(lambda: "step=" not in location(seen))
    seen.frame.get_by_role("button", name="Undo").click()
    until_at(seen, "step=12")
    assert seen.inaccessible() == []
    seen.assert_clean()


def test_a_view_is_come_back_to_as_it_was_left(seen: Visit) -> None:
    seen.go("operators", run=RUN, search="foreach")
    box = seen.main.get_by_role("searchbox")
    expect(box).to_have_value("foreach", timeout=PATIENCE_MS)
    rail = seen.frame.get_by_role("navigation", name="Views")
    rail.get_by_role("link", name="Kernels").click()
    expect(seen.main.get_by_role("searchbox")).to_have_value("", timeout=PATIENCE_MS)
    rail.get_by_role("link", name="Operators").click()
    expect(seen.main.get_by_role("searchbox")).to_have_value("foreach", timeout=PATIENCE_MS)


def scroll_top(seen: Visit) -> float:
    return float(seen.main.evaluate("main => main.scrollTop"))


@pytest.mark.parametrize("way", ["back", "rail"])
def test_a_view_is_come_back_to_where_it_was_scrolled(seen: Visit, way: str) -> None:
    rail = seen.frame.get_by_role("navigation", name="Views")
    rail.get_by_role("link", name="Overview").click()
    table = seen.main.locator("details.as-table")
    table.locator("summary").click(timeout=PATIENCE_MS)
    seen.main.evaluate("main => { main.scrollTop = 300; }")
    left = scroll_top(seen)
    assert left > 0
    rail.get_by_role("link", name="Health").click()
    expect(seen.main.get_by_role("heading", name="Health", exact=True)).to_be_visible(
        timeout=PATIENCE_MS
    )
    assert scroll_top(seen) == 0
    if way == "back":
        seen.page.go_back()
    else:
        rail.get_by_role("link", name="Overview").click()
    expect(seen.main.locator(".step-table")).to_be_visible(timeout=PATIENCE_MS)
    seen.until(lambda: scroll_top(seen) == left)
    seen.assert_clean()


def test_a_step_narrows_the_overview(seen: Visit) -> None:
    seen.go("overview", run=RUN)
    verdict = seen.main.locator(".overview-verdict")
    expect(verdict).to_contain_text("6 steps", timeout=PATIENCE_MS)
    seen.page.keyboard.press(".")
    expect(verdict).to_contain_text("Step 12 takes", timeout=PATIENCE_MS)
    expect(seen.main.get_by_role("heading", name="Selected step")).to_be_visible()
    seen.page.keyboard.press(".")
    expect(verdict).to_contain_text("Step 13 takes", timeout=PATIENCE_MS)
    seen.page.keyboard.press(",")
    expect(verdict).to_contain_text("Step 12 takes", timeout=PATIENCE_MS)
    assert seen.inaccessible() == []
    seen.assert_clean()


def test_the_copied_link_holds_step_event_and_options(seen: Visit, context: BrowserContext) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    state = {"run": RUN, "step": "13", "event": "40", "o.tab": "events"}
    seen.go("memory", **state)
    seen.frame.get_by_role("button", name="Copy link").click(timeout=PATIENCE_MS)
    link = str(seen.page.evaluate("() => navigator.clipboard.readText()"))
    for part in ("view=memory", "step=13", "event=40", "o.tab=events", "worker=worker0"):
        assert part in link


@pytest.mark.slow
def test_all_of_the_state_holds_over_reload_and_back_in_tensorboard(in_tensorboard: Visit) -> None:
    state = {"run": RUN, "step": "13", "event": "40", "o.unit": "share"}
    in_tensorboard.open(in_tensorboard.fragment("kernels", **state))
    chip = in_tensorboard.frame.get_by_role("group", name="Filter of all views")
    expect(chip).to_contain_text("Step 13", timeout=PATIENCE_MS)
    in_tensorboard.page.reload()
    chip = in_tensorboard.frame.get_by_role("group", name="Filter of all views")
    expect(chip).to_contain_text("Step 13", timeout=PATIENCE_MS)
    before = location(in_tensorboard)
    assert "p.stepscope.o.unit=share" in before, "the chip is shown, so it was read"
    rail = in_tensorboard.frame.get_by_role("navigation", name="Views")
    rail.get_by_role("link", name="Overview").click()
    expect(in_tensorboard.main.locator(".overview-verdict")).to_be_visible(timeout=PATIENCE_MS)
    until_at(in_tensorboard, "view=overview", "p.stepscope.step=13")
    in_tensorboard.page.go_back()
    in_tensorboard.until(lambda: location(in_tensorboard) == before)
    in_tensorboard.assert_clean()


def test_a_chart_is_taken_along_as_a_picture(seen: Visit, tmp_path: Path) -> None:
    seen.go("memory", run=RUN)
    menu = seen.main.locator(".menu", has_text=re.compile("PNG of the chart")).first
    menu.locator("summary").click(timeout=PATIENCE_MS)
    with seen.page.expect_download() as download:
        menu.get_by_role("button", name="PNG of the chart").click()
    assert download.value.suggested_filename.endswith(".png")
    download.value.save_as(tmp_path / "chart.png")
    content = (tmp_path / "chart.png").read_bytes()
    assert content.startswith(PNG)
    assert len(content) > 4000  # a blank one of this size is smaller
    seen.assert_clean()


def test_nothing_of_the_frame_is_cut_at_any_width(seen: Visit) -> None:
    for width_px in WIDTHS_PX:
        seen.page.set_viewport_size({"width": width_px, "height": 900})
        rail = seen.frame.get_by_role("navigation", name="Views")
        assert rail.get_by_role("link").count() == len(VIEWS)
        for name in ("Find anything", "Help and keyboard"):
            box = seen.frame.get_by_role("button", name=name).bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= width_px
        fits = "() => document.documentElement.scrollWidth <= window.innerWidth"
        assert seen.frame.evaluate(fits)


def test_the_rail_needs_no_scrolling_on_a_usual_screen(seen: Visit) -> None:
    rail = seen.frame.get_by_role("navigation", name="Views")
    for width_px, height_px in ((1280, 720), (1440, 900), (900, 800)):
        seen.page.set_viewport_size({"width": width_px, "height": height_px})
        assert rail.evaluate("(rail) => rail.scrollHeight <= rail.clientHeight")


def test_on_paper_there_is_the_advice_and_nothing_to_press(seen: Visit) -> None:
    seen.page.emulate_media(media="print")
    expect(seen.main.locator(".verdict-words")).to_be_visible()
    expect(seen.frame.get_by_role("navigation", name="Views")).to_be_hidden()
    expect(seen.frame.get_by_role("button", name="Find anything")).to_be_hidden()
    overflow = seen.main.evaluate("(main) => getComputedStyle(main).overflowY")
    assert overflow == "visible"


@pytest.mark.slow
def test_forced_colours_and_high_contrast_leave_the_page_whole(seen: Visit) -> None:
    seen.page.emulate_media(forced_colors="active", contrast="more", reduced_motion="reduce")
    rail = seen.frame.get_by_role("navigation", name="Views")
    expect(rail.get_by_role("link", name="Advice")).to_be_visible()
    assert seen.inaccessible() == []


def test_no_key_acts_while_somebody_types(seen: Visit) -> None:
    seen.go("operators", run=RUN)
    box = seen.main.get_by_role("searchbox")
    box.fill("", timeout=PATIENCE_MS)
    box.press_sequentially("gk,.?")
    expect(box).to_have_value("gk,.?")
    assert "view=operators" in location(seen)
    assert "step=" not in location(seen)
