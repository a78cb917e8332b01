"""What if in Chromium: a slider, a scale by search, the link, and the back way to the recording."""

import pytest
from playwright.sync_api import Locator, expect

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
