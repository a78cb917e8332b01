"""The flame graph in Chromium: what is pressed, found and compared, and speedscope beside it."""

import re
from urllib.parse import unquote

import pytest
from playwright.sync_api import Locator, Page, expect

from browser.visits import PATIENCE_MS, Visit

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

ROW_PX = 20
DRAWN = """(canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let drawn = 0;
  for (let at = 3; at < data.length; at += 4) drawn += data[at] > 0;
  return drawn / (data.length / 4);
}"""
"""The share of a canvas' pixels that something was drawn on."""


def opened(seen: Visit, **options: str) -> Locator:
    """Open the view of a recording with stacks, and return what takes keys and presses."""
    seen.open()
    state = {f"o.{name}": value for name, value in options.items()}
    seen.go("flame", run="masking/numpy", **state)
    picture = seen.main.get_by_role("application", name="Flame graph")
    expect(picture).to_be_visible(timeout=PATIENCE_MS)
    seen.settled()
    return picture


def press_row(picture: Locator, row: int) -> None:
    picture.click(position={"x": 30, "y": row * ROW_PX + ROW_PX // 2})


def test_frames_are_drawn_and_read_without_fault(alone: Visit) -> None:
    opened(alone)
    assert alone.main.locator("canvas").evaluate(DRAWN) > 0.1
    functions = alone.main.get_by_role("grid", name="Functions")
    expect(functions.get_by_role("row")).not_to_have_count(1)
    assert not alone.inaccessible()
    alone.assert_clean()


def test_a_pressed_frame_fills_the_picture_and_the_way_leads_back(alone: Visit) -> None:
    picture = opened(alone)
    press_row(picture, 2)
    way = alone.main.get_by_role("navigation", name="Frames")
    expect(way.get_by_role("button")).to_have_count(4)  # all, and three frames
    expect(alone.main.get_by_role("complementary", name="Selected frame")).to_be_visible()
    picture.press("Escape")
    expect(way.get_by_role("button")).to_have_count(3)
    way.get_by_role("button", name="All").click()
    expect(way).to_have_count(0)
    alone.assert_clean()


def test_the_frame_that_fills_the_picture_is_part_of_the_link(alone: Visit) -> None:
    press_row(opened(alone), 3)
    chosen = alone.main.get_by_role("complementary", name="Selected frame")
    expect(chosen).to_be_visible()
    words = chosen.inner_text()
    alone.page.reload()
    expect(chosen).to_be_visible(timeout=PATIENCE_MS)
    assert chosen.inner_text() == words


def test_arrow_keys_lead_inwards_and_each_frame_is_said(alone: Visit) -> None:
    picture = opened(alone)
    picture.focus()
    said = alone.main.locator("[aria-live='polite']").filter(has_text="of all, self")
    heard: list[str] = []
    for _ in range(3):
        picture.press("ArrowDown")
        expect(said).not_to_have_text(heard[-1] if heard else "")
        heard.append(said.inner_text())
    assert len(set(heard)) == 3
    picture.press("ArrowUp")
    expect(said).to_have_text(heard[1])


def test_what_is_searched_is_counted_and_listed(alone: Visit) -> None:
    opened(alone)
    alone.page.keyboard.press("/")
    alone.page.keyboard.type("numpy_mask")
    expect(alone.main.get_by_text(re.compile(r"1 frame matches: [\d.]+ % of all"))).to_be_visible()
    listed = alone.main.get_by_role("grid", name="Functions").get_by_role("row")
    expect(listed).to_have_count(2)  # the head, and one function
    listed.last.click()
    expect(alone.main.get_by_role("button", name="Show all functions")).to_be_visible()
    alone.assert_clean()


def test_one_thread_is_shown_alone_and_waits_are_hidden(alone: Visit) -> None:
    alone.open()
    alone.go("flame", run="synthetic_dataloader/fault")
    note = alone.main.locator(".view-header > .note")
    expect(note).to_contain_text("of the host", timeout=PATIENCE_MS)
    alone.settled()
    every = note.inner_text()
    idle = alone.main.get_by_role("checkbox", name="Hide idle")
    idle.check()
    expect(note).to_contain_text("of waiting hidden")
    functions = alone.main.get_by_role("grid", name="Functions")
    expect(functions.get_by_text("cudaEventSynchronize")).to_have_count(0)
    assert not alone.inaccessible()
    alone.page.reload()
    expect(note).to_contain_text("of waiting hidden", timeout=PATIENCE_MS)
    idle.uncheck()
    expect(note).to_have_text(every)
    picker = alone.main.get_by_role("combobox", name="Thread")
    picker.select_option(index=2)
    expect(functions.get_by_text("ProfilerStep")).to_have_count(0)
    assert "o.thread" in alone.state()
    alone.assert_clean()


@pytest.mark.slow
def test_another_recording_is_compared_frame_by_frame(alone: Visit) -> None:
    opened(alone)
    alone.main.get_by_text("Compare", exact=True).click()
    alone.main.get_by_role("button", name="masking/tensor").click()
    expect(alone.main.get_by_text("Widths are the sum of both sides.")).to_be_visible(
        timeout=PATIENCE_MS
    )
    expect(alone.main.get_by_role("columnheader", name="Change")).to_be_visible()
    alone.settled()
    assert not alone.inaccessible()
    alone.assert_clean()


def test_what_was_not_recorded_says_how_to_record_it(alone: Visit) -> None:
    alone.open()
    alone.go("flame", run="masking/numpy", **{"o.of": "memory"})
    expect(alone.main.get_by_text("profile_memory").first).to_be_visible(timeout=PATIENCE_MS)
    alone.assert_clean()


def speedscope_from(seen: Visit) -> Page:
    opened(seen)
    with seen.page.context.expect_page() as opening:
        seen.main.get_by_role("link", name="speedscope").click()
    return opening.value


@pytest.mark.slow
@pytest.mark.parametrize("place", ["alone", "in_tensorboard"])
def test_speedscope_opens_beside_it_without_leaving_the_machine(
    place: str, request: pytest.FixtureRequest
) -> None:
    seen: Visit = request.getfixturevalue(place)
    asked: list[str] = []
    faults: list[str] = []

    def watch(page: Page) -> None:
        page.on("request", lambda each: asked.append(each.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda said: faults.append(said.text) if said.type == "error" else None,
        )

    seen.page.context.on("page", watch)
    page = speedscope_from(seen)
    expect(page.get_by_text("trainer: host time")).to_be_visible(timeout=PATIENCE_MS)
    own = seen.server.page.split("/index.html")[0].rstrip("/").split("/data/")[0]
    assert all(url.startswith((own, "data:", "blob:")) for url in asked), asked
    assert any(url.endswith(".woff2") for url in asked), asked
    assert "flame/speedscope" in unquote(page.url)
    assert not faults
    seen.assert_clean()
