"""The page that `advise --format html` writes, in a browser: light, dark, narrow and wide."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from reports import RANKS, REPORT, with_texts
from stepscope.base.report import Report
from stepscope.render import html

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

LONG = "void at::native::vectorized_elementwise_kernel<4, " + "at::native::lambda, " * 30
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
BACKGROUNDS = {"light": "rgb(245, 246, 248)", "dark": "rgb(14, 17, 22)"}
BEYOND = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.mark.parametrize("width", [900, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "report", [REPORT, RANKS, with_texts(LONG), Report(())], ids=["one", "ranks", "long", "empty"]
)
def test_it_is_styled_stays_within_its_width_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, report: Report, scheme: str, width: int
) -> None:
    (tmp_path / "report.html").write_text(html.render(report), encoding="utf-8")
    said: list[str] = []
    asked: list[str] = []
    with browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    ) as context:
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "report.html").as_uri())
        assert page.evaluate(BACKGROUND) == BACKGROUNDS[scheme]
        assert page.evaluate(BEYOND) <= 0
    assert said == []
    assert asked == [(tmp_path / "report.html").as_uri()]
