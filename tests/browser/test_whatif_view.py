"""What if in Chromium: a slider, a scale by search, the link, and the back way to the recording."""

import gzip
import json
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from browser.test_flame_view import DRAWN
from browser.visits import PATIENCE_MS, Visit

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def opened(seen: Visit, **options: str) -> Locator:
    """Open the view of a trace with a device, and return its prediction."""
    seen.open()
    state = {f"o.{name}": value for name, value in options.items()}
    seen.go("whatif", run="synthetic_dataloader/fault", **state)
    prediction = seen.main.get_by_role("region", name="Prediction")
    expect(prediction).to_be_visible(timeout=PATIENCE_MS)
    return prediction


def test_a_slider_moved_by_keys_predicts_another_step(alone: Visit) -> None:
    prediction = opened(alone)
    expect(prediction).to_contain_text("The step takes 51.4 ms, as recorded.")
    slider = alone.main.get_by_role("slider", name="Device time")
    slider.focus()
    for _ in range(10):
        slider.press("ArrowLeft")
    expect(prediction).to_contain_text("The step takes 37.8 ms instead of 51.4 ms")
    alone.until(lambda: alone.state().get("o.device") == "0.5")
    assert not alone.inaccessible()
    alone.assert_clean()


def test_a_scale_is_added_by_search_and_holds_over_a_reload(alone: Visit) -> None:
    prediction = opened(alone)
    box = alone.main.get_by_role("combobox", name="Add a scale")
    box.fill("dataloader")
    box.press("Enter")
    expect(prediction).to_contain_text("it saves")
    words = prediction.get_by_text("it saves").inner_text()
    alone.page.reload()
    expect(prediction.get_by_text(words)).to_be_visible(timeout=PATIENCE_MS)
    alone.main.get_by_role("button", name="Reset").click()
    expect(prediction).to_contain_text("as recorded")
    assert "o.scale" not in alone.state()
    alone.assert_clean()


def test_a_scale_without_a_match_says_so_and_can_be_removed(alone: Visit) -> None:
    alone.open()
    state = {"o.scale": "kernels:gone=0.5"}
    alone.go("whatif", run="synthetic_dataloader/fault", **state)
    expect(alone.main).to_contain_text("No kernels of this trace match", timeout=PATIENCE_MS)
    alone.main.get_by_role("button", name="Remove gone").click()
    expect(alone.main.get_by_role("region", name="Prediction")).to_contain_text("as recorded")


def test_the_simulated_timeline_is_drawn_below_the_recorded_one(alone: Visit) -> None:
    opened(alone, device="0.5")
    timeline = alone.main.get_by_role("region", name="Timeline")
    canvas = timeline.get_by_role("img", name="Recorded 51.6 ms, simulated 3")
    expect(canvas).to_be_visible(timeout=PATIENCE_MS)
    assert canvas.evaluate(DRAWN) > 0.3
    canvas.hover(position={"x": 300, "y": 28})
    expect(timeline.get_by_text("enumerate(DataLoader)")).to_be_visible()
    timeline.get_by_role("button", name="Next step").click()
    expect(timeline.get_by_text("Step 17")).to_be_visible()
    assert alone.state()["o.at"] == "17"
    alone.assert_clean()


def test_both_timelines_are_downloaded_as_one_trace(alone: Visit, tmp_path: Path) -> None:
    opened(alone, device="0.5")
    alone.main.locator("summary", has_text="Open as a trace").click()
    with alone.page.expect_download(timeout=PATIENCE_MS) as download:
        alone.main.get_by_role("link", name="Download as a trace").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    processes = [event["args"]["name"] for event in events if event["name"] == "process_name"]
    assert processes[:2] == ["Host, recorded", "Host, simulated"]


def test_a_finding_leads_here_ticked_and_can_be_unticked(alone: Visit) -> None:
    alone.open()
    alone.go("advice", run="synthetic_item_sync/fault", open="item-sync")
    alone.main.get_by_role("link", name="What if this were fixed").click(timeout=PATIENCE_MS)
    alone.at_view("whatif")
    box = alone.main.get_by_role("checkbox", name="Reading values")
    expect(box).to_be_checked(timeout=PATIENCE_MS)
    prediction = alone.main.get_by_role("region", name="Prediction")
    expect(prediction).to_contain_text("instead of 10.9 ms: it saves")
    assert alone.state()["o.fix"] == "item-sync"
    box.uncheck()
    expect(prediction).to_contain_text("The step takes 10.9 ms, as recorded.")
    alone.settled()
    assert not alone.inaccessible()
    alone.assert_clean()
