"""The timeline in Chromium: real keys and a real mouse, and what the page then says in words."""

import re
from typing import Literal

import pytest
from playwright.sync_api import Locator, expect

from browser.visits import PATIENCE_MS, Visit

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

RUN = "synthetic_dataloader/fault"
OPERATOR, KERNEL = "aten::cudnn_convolution", "sm90_xmma_fprop"
CALLS = 102
"""Of the operator; each launches one kernel, in a stream of its own row."""
STREAM = "Stream 7"
Range = tuple[int, int]
CUT = """(labels) => labels
  .filter((label) => label.scrollWidth > label.clientWidth)
  .map((label) => label.textContent)"""
"""The labels that do not fit."""


@pytest.fixture
def seen(alone: Visit) -> Visit:
    """The timeline of a recording with a device, all of it in sight.

    It moves at once: no part on the way to another is taken for where that leads.
    """
    alone.page.emulate_media(reduced_motion="reduce")
    alone.open(alone.fragment("timeline", run=RUN))
    expect(canvas(alone)).to_be_visible(timeout=PATIENCE_MS)
    alone.settled()
    return alone


def canvas(seen: Visit) -> Locator:
    return seen.main.get_by_role("application")


def panel(seen: Visit) -> Locator:
    return seen.main.get_by_role("region", name="Details")


def chosen(seen: Visit) -> Locator:
    """The name of the selected slice."""
    return panel(seen).get_by_role("heading", level=3)


def tracks(seen: Visit) -> Locator:
    return seen.main.get_by_role("list", name=re.compile("^Tracks")).get_by_role("listitem")


def track(seen: Visit, name: str) -> Locator:
    return tracks(seen).filter(has_text=re.compile(f"^{name}"))


def place(seen: Visit, share: float, name: str = STREAM) -> tuple[float, float]:
    """Return a place on a track: so far from the left edge, at the height of its name."""
    on, beside = canvas(seen).bounding_box(), track(seen, name).bounding_box()
    assert on
    assert beside
    return on["x"] + share * on["width"], beside["y"] + beside["height"] / 2


def drag(
    seen: Visit,
    start: tuple[float, float],
    end: tuple[float, float],
    button: Literal["left", "middle"] = "left",
) -> None:
    mouse = seen.page.mouse
    mouse.move(*start)
    mouse.down(button=button)
    mouse.move(*end, steps=4)
    mouse.up(button=button)


def in_sight(seen: Visit) -> Range | None:
    """Return the part of time that the address says is in sight; None: all of it."""
    found = re.fullmatch(r"(\d+)-(\d+)", seen.state().get("o.at", ""))
    return (int(found[1]), int(found[2])) if found else None


def until_rested(seen: Visit, before: Range | None) -> Range:
    """Wait until another part is in sight than before, and return it."""
    seen.until(lambda: in_sight(seen) not in {None, before})
    found = in_sight(seen)
    assert found
    return found


def until_in_sight(seen: Visit, start: float, end: float, within_ns: float = 2) -> None:
    """Wait until the view rests on a part; the address rounds, and a pointer stands on a pixel."""
    seen.until(lambda: in_sight(seen) == pytest.approx((start, end), rel=0, abs=within_ns))


def until_selected(seen: Visit, event: str | None) -> None:
    seen.until(lambda: seen.state().get("event") == event)


def exact_ns(seen: Visit, fact: str) -> int:
    """Return a time that the panel tells, from its title: its text is rounded."""
    term = panel(seen).get_by_role("term").filter(has_text=re.compile(f"^{fact}$"))
    title = term.locator("xpath=following-sibling::dd[1]//*[@title]").get_attribute("title")
    assert title
    return int(title.removesuffix(" ns").replace(",", ""))


def find(seen: Visit, words: str) -> Locator:
    """Search by keys alone; return how many were found, or which of them is selected."""
    seen.page.keyboard.press("/")
    expect(seen.main.get_by_role("searchbox", name="Search the whole trace")).to_be_focused()
    seen.page.keyboard.type(words)
    return seen.main.get_by_role("status").filter(has_text=re.compile(r"results?$|\d of \d"))


def operator_chosen(seen: Visit) -> str:
    """Select the first call of the operator; return its event."""
    expect(find(seen, OPERATOR)).to_have_text(f"{CALLS} results")
    seen.main.get_by_role("button", name="Next result").click()
    expect(chosen(seen)).to_have_text(OPERATOR)
    return seen.state()["event"]


def kernel_chosen(seen: Visit) -> str:
    """Select the kernel that the first call launches, by the panel's link; return its event."""
    operator_chosen(seen)
    panel(seen).get_by_role("button", name=re.compile("^launches")).click()
    expect(chosen(seen)).to_contain_text(KERNEL)
    return seen.state()["event"]


def fit_chosen(seen: Visit) -> None:
    """Have the selected slice stand in the middle, with a quarter of its length at either side."""
    start, length = exact_ns(seen, "Start"), exact_ns(seen, "Duration")
    seen.page.keyboard.press("f")
    until_in_sight(seen, start - length / 4, start + length * 5 / 4)


def test_w_and_s_zoom_a_and_d_move_and_0_shows_the_whole_recording(seen: Visit) -> None:
    press = seen.page.keyboard.press
    assert in_sight(seen) is None
    press("w")
    start, end = until_rested(seen, None)
    length = end - start
    assert start == pytest.approx(length / 3, abs=2), "six tenths of all are in sight, the middle"
    press("d")
    until_in_sight(seen, start + length / 4, end + length / 4)
    press("a")
    until_in_sight(seen, start, end)
    press("w")
    until_in_sight(seen, start + length / 5, end - length / 5)
    press("s")
    until_in_sight(seen, start, end)
    press("0")
    seen.until(lambda: in_sight(seen) is None)
    seen.assert_clean()


def test_the_wheel_zooms_at_the_pointer_and_dragging_with_space_moves(seen: Visit) -> None:
    seen.page.keyboard.press("w")
    start, end = until_rested(seen, None)
    x, y = place(seen, 0.25)
    seen.page.mouse.move(x, y)
    seen.page.keyboard.down("Control")
    seen.page.mouse.wheel(0, -50)
    seen.page.keyboard.up("Control")
    near = until_rested(seen, (start, end))
    length = near[1] - near[0]
    assert length < end - start
    under = start + (end - start) / 4
    assert near[0] + length / 4 == pytest.approx(under, abs=length / 100), "it stays where it is"
    seen.page.keyboard.down("Space")
    drag(seen, place(seen, 0.75), place(seen, 0.25))
    seen.page.keyboard.up("Space")
    until_in_sight(seen, near[0] + length / 2, near[1] + length / 2, within_ns=length / 100)
    drag(seen, place(seen, 0.25), place(seen, 0.75), button="middle")
    until_in_sight(seen, *near, within_ns=length / 50)
    until_selected(seen, None)
    assert "o.area" not in seen.state()
    seen.assert_clean()


def test_a_slice_is_chosen_by_a_click_and_left_for_the_next_by_arrow_keys(seen: Visit) -> None:
    kernel = kernel_chosen(seen)
    fit_chosen(seen)
    press = seen.page.keyboard.press
    press("Escape")
    until_selected(seen, None)
    expect(panel(seen)).to_contain_text("Nothing is selected")
    middle = place(seen, 0.5)
    seen.page.mouse.move(*middle)
    tip = seen.main.locator(".timeline-tip")
    expect(tip).to_contain_text(KERNEL)  # what lies there is known by then
    seen.page.mouse.click(*middle)
    until_selected(seen, kernel)
    expect(chosen(seen)).to_contain_text(KERNEL)
    expect(panel(seen)).to_contain_text(f"GPU 0, {STREAM}")
    start = exact_ns(seen, "Start")
    press("ArrowRight")
    seen.until(lambda: seen.state()["event"] != kernel)
    expect(chosen(seen)).not_to_contain_text(KERNEL)
    expect(panel(seen)).to_contain_text(f"GPU 0, {STREAM}")
    assert exact_ns(seen, "Start") > start
    press("ArrowLeft")
    until_selected(seen, kernel)
    said = seen.main.locator("[aria-live=polite]").filter(has_text=f"on GPU 0, {STREAM}")
    expect(said).to_contain_text(KERNEL)
    press("Enter")
    expect(panel(seen).get_by_role("tab", name="Selection")).to_be_focused()
    seen.assert_clean()


@pytest.mark.slow
def test_an_operator_leads_to_its_kernel_and_back_by_links_and_by_brackets(seen: Visit) -> None:
    operator = operator_chosen(seen)
    expect(panel(seen)).to_contain_text("Process 4242, Main thread")
    recorded = panel(seen).get_by_role("term").filter(has_text="Input Dims")
    expect(recorded.locator("xpath=following-sibling::dd[1]")).to_have_text(
        "[[128,3,112,112],[64,3,3,3]]"
    )
    expect(panel(seen).get_by_role("button", name="aten::conv2d")).to_be_visible()
    ended = exact_ns(seen, "Start") + exact_ns(seen, "Duration")
    panel(seen).get_by_role("button", name=re.compile("^launches")).click()
    expect(chosen(seen)).to_contain_text(KERNEL)
    assert exact_ns(seen, "Start") > ended, "the device begins later"
    panel(seen).get_by_role("button", name=re.compile("^launched by operator")).click()
    until_selected(seen, operator)
    expect(chosen(seen)).to_have_text(OPERATOR)
    for key, name in (("]", KERNEL), ("[", "cuLaunchKernelEx"), ("]", KERNEL)):
        seen.page.keyboard.press(key)
        expect(chosen(seen)).to_contain_text(name)
    assert seen.inaccessible() == []
    seen.assert_clean()


def test_a_search_counts_goes_from_hit_to_hit_and_lists_them(seen: Visit) -> None:
    count = find(seen, OPERATOR)
    expect(count).to_have_text(f"{CALLS} results")
    press = seen.page.keyboard.press
    press("Enter")
    expect(count).to_have_text(f"1 of {CALLS}")
    expect(chosen(seen)).to_have_text(OPERATOR)
    first = seen.state()["event"]
    near = until_rested(seen, None)
    assert near[0] < exact_ns(seen, "Start") < near[1], "it is in sight"
    for key, number in (("Enter", 2), ("Shift+Enter", 1)):
        press(key)
        expect(count).to_have_text(f"{number} of {CALLS}")
    seen.main.get_by_role("button", name="Next result").click()
    expect(count).to_have_text(f"2 of {CALLS}")
    for key, number in (("n", 3), ("p", 2), ("p", 1)):
        press(key)
        expect(count).to_have_text(f"{number} of {CALLS}")
    until_selected(seen, first)
    panel(seen).get_by_role("tab", name="Search").click()
    hits = panel(seen).get_by_role("table", name=f"Results for {OPERATOR}")
    expect(hits.get_by_role("row")).to_have_count(1 + CALLS)
    expect(hits.get_by_role("row", selected=True)).to_have_count(1)
    hits.get_by_role("row").last.get_by_role("button").click()
    expect(count).to_have_text(f"{CALLS} of {CALLS}")
    seen.until(lambda: seen.state()["event"] != first)
    assert seen.inaccessible() == []
    seen.assert_clean()


@pytest.mark.slow
def test_an_area_is_summed_up_by_name_and_by_track(seen: Visit) -> None:
    drag(seen, place(seen, 0.2), place(seen, 0.6, "Stream 20"))
    names = panel(seen).get_by_role("grid", name="Time in the area by name")
    expect(names.get_by_role("gridcell", name=KERNEL).first).to_be_visible()
    heads = names.get_by_role("columnheader")
    expect(heads).to_have_count(9)
    assert heads.locator("button > span:first-child").evaluate_all(CUT) == []
    panel(seen).get_by_text("By track", exact=True).click()
    busy = panel(seen).get_by_role("grid", name="Busy and idle time of the tracks in the area")
    expect(busy.get_by_role("row")).to_have_count(3)
    for name in (STREAM, "Stream 20"):
        expect(busy.get_by_role("gridcell", name=f"GPU 0, {name}")).to_be_visible()
    state = seen.state()
    assert state["o.tab"] == "area"
    assert in_sight(seen) is None, "the tracks stay where they are"
    seen.page.reload()
    expect(busy.get_by_role("row")).to_have_count(3, timeout=PATIENCE_MS)
    assert seen.state() == state
    assert seen.inaccessible() == []
    start, end = map(int, state["o.area"].split("-"))
    seen.page.keyboard.press("f")
    until_in_sight(seen, start - (end - start) / 4, end + (end - start) / 4)
    panel(seen).get_by_role("button", name="Filter to selection").click()
    seen.until(lambda: seen.state().get("time") == state["o.area"])
    panel(seen).get_by_role("button", name="Clear selection").click()
    expect(panel(seen)).to_contain_text("No area is selected")
    assert "o.area" not in seen.state()
    seen.assert_clean()


@pytest.mark.slow
def test_times_are_marked_at_the_pointer_and_marks_are_taken_away(seen: Visit) -> None:
    for share in (0.5, 0.25):
        seen.page.mouse.move(*place(seen, share))
        seen.page.keyboard.press("m")
    seen.until(lambda: seen.state().get("o.marks", "").count(".") == 1)
    first, second = map(int, seen.state()["o.marks"].split("."))
    assert second == pytest.approx(2 * first, rel=0.01)
    menu = seen.main.locator("summary").filter(has_text="2 marks")
    menu.click()
    table = seen.main.get_by_role("table", name="Marked times")
    expect(table.get_by_role("row")).to_have_count(2)
    expect(table).to_contain_text("from A")
    table.get_by_role("button", name="Remove mark A").click()
    seen.until(lambda: seen.state()["o.marks"] == str(second))
    seen.page.keyboard.press("Escape")
    seen.page.mouse.move(*place(seen, 0.5))
    seen.page.keyboard.press("m")
    seen.until(lambda: "o.marks" not in seen.state())
    seen.assert_clean()


def test_what_dragging_does_is_set_and_stays_so(seen: Visit) -> None:
    seen.main.get_by_text("Pan", exact=True).click()
    seen.page.keyboard.press("w")
    before = until_rested(seen, None)
    seen.page.reload()
    expect(canvas(seen)).to_be_visible(timeout=PATIENCE_MS)
    expect(seen.main.get_by_role("radio", name="Pan")).to_be_checked()
    seen.settled()
    drag(seen, place(seen, 0.25), place(seen, 0.5))
    until_rested(seen, before)
    assert "o.area" not in seen.state()
    seen.page.keyboard.down("Shift")
    drag(seen, place(seen, 0.25), place(seen, 0.5))
    seen.page.keyboard.up("Shift")
    seen.until(lambda: "o.area" in seen.state())
    seen.assert_clean()


def test_a_link_out_of_sight_has_a_label_that_leads_there(seen: Visit) -> None:
    operator = operator_chosen(seen)
    fit_chosen(seen)
    seen.page.mouse.move(*place(seen, 0.3))
    for _ in range(4):
        before = in_sight(seen)
        seen.page.keyboard.press("w")
        until_rested(seen, before)
    on = canvas(seen).bounding_box()
    assert on
    tip = seen.main.locator(".timeline-tip")
    # The label is at the right edge, below the operator: its row is one of the thread's.
    rows = track(seen, "Main thread").bounding_box()
    assert rows
    for y in range(int(rows["y"]), int(rows["y"] + rows["height"] + 30), 6):
        seen.page.mouse.move(on["x"] + on["width"] - 40, y)
        if tip.is_visible() and "Click to show it" in tip.inner_text():
            break
    expect(tip).to_contain_text("launches · ")
    expect(tip).to_contain_text(f"GPU 0, {STREAM}")
    seen.page.mouse.down()
    seen.page.mouse.up()
    seen.until(lambda: seen.state()["event"] != operator)
    expect(chosen(seen)).to_contain_text(KERNEL)
    seen.assert_clean()


def test_the_name_of_a_deep_track_stays_in_sight_and_counters_are_below(seen: Visit) -> None:
    expect(tracks(seen).last).to_contain_text("Counters")
    expect(track(seen, "Busy")).to_have_count(0)
    seen.page.set_viewport_size({"width": 1280, "height": 420})
    name = track(seen, "Main thread").locator(".track-label")
    row = track(seen, "Main thread").bounding_box()
    shown = canvas(seen).bounding_box()
    assert row
    assert shown
    seen.page.mouse.move(shown["x"] + 100, shown["y"] + 20)
    seen.page.mouse.wheel(0, row["y"] - shown["y"] + row["height"] / 2)
    seen.until(lambda: (track(seen, "Main thread").bounding_box() or row)["y"] < shown["y"])
    label = name.bounding_box()
    assert label
    assert label["y"] >= shown["y"]
    seen.main.get_by_role("button", name=re.compile("^Counters")).click()
    expect(track(seen, "Busy")).to_have_count(1)
    seen.assert_clean()


def test_tracks_that_were_pinned_hidden_and_shut_stay_so_over_a_reload(seen: Visit) -> None:
    for act, name in (("Pin", STREAM), ("Hide", "Stream 20")):
        track(seen, name).hover()
        seen.main.get_by_role("button", name=f"{act} {name}", exact=True).click()
    group = seen.main.get_by_role("button", name=re.compile("^Process 4242"))
    expect(group).to_have_attribute("aria-expanded", "true")
    group.click()

    def is_so() -> None:
        pinned = seen.main.get_by_role("list", name="Pinned tracks").get_by_role("listitem")
        expect(pinned).to_have_count(1, timeout=PATIENCE_MS)
        expect(pinned).to_contain_text(STREAM)
        expect(track(seen, "Stream 20")).to_have_count(0)
        expect(group).to_have_attribute("aria-expanded", "false")
        expect(track(seen, "Main thread")).to_have_count(0)
        expect(seen.main.locator("summary").filter(has_text="1 hidden")).to_be_visible()

    is_so()
    state = seen.state()
    assert {"o.pin", "o.hide", "o.toggle"} <= state.keys()
    seen.page.reload()
    is_so()
    assert seen.state() == state
    seen.assert_clean()


@pytest.mark.slow
def test_what_is_in_sight_of_a_track_is_read_as_a_table(seen: Visit) -> None:
    kernel = kernel_chosen(seen)
    fit_chosen(seen)
    track(seen, STREAM).hover()
    seen.main.get_by_role("button", name=f"List the slices of {STREAM}").click()
    listed = panel(seen).get_by_role("table", name=f"Visible slices of GPU 0, {STREAM}")
    expect(listed.get_by_role("row", selected=True).get_by_role("button")).to_contain_text(KERNEL)
    seen.page.keyboard.press("Escape")
    until_selected(seen, None)
    listed.get_by_role("button", name=KERNEL).first.click()
    until_selected(seen, kernel)
    seen.assert_clean()


@pytest.mark.slow
def test_back_leads_to_the_timeline_as_it_was_left_and_then_out_of_it(alone: Visit) -> None:
    seen = alone
    seen.page.emulate_media(reduced_motion="reduce")
    seen.open(seen.fragment("overview", run=RUN))
    expect(seen.main.locator(".overview-verdict")).to_be_visible(timeout=PATIENCE_MS)
    seen.frame.get_by_role("navigation", name="Views").get_by_role("link", name="Timeline").click()
    expect(canvas(seen)).to_be_visible(timeout=PATIENCE_MS)
    kernel_chosen(seen)
    fit_chosen(seen)
    state = seen.state()
    panel(seen).get_by_role("link", name="All slices of this name").click()
    seen.at_view("kernels")
    seen.page.go_back()
    seen.at_view("timeline")
    expect(chosen(seen)).to_contain_text(KERNEL, timeout=PATIENCE_MS)
    assert seen.state() == state
    seen.page.go_back()
    seen.at_view("overview")
    seen.assert_clean()
