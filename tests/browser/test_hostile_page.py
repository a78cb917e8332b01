"""A trace in which every text is markup, in every view of the page and of a shared file."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, BrowserContext, Dialog, Frame

import hostile
from browser import servers
from browser.servers import Server
from browser.test_shared_file_page import each_view, offline, opened
from browser.visits import VIEWS, Visit, visit
from stepscope.cli import cli

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

INJECTED = """
() => [...document.querySelectorAll('body *')].filter((element) =>
  element.matches('img, iframe, object, embed, base, form[action], #root script')
  || [...element.attributes].some(({ name, value }) =>
    name.startsWith('on') || /^\\s*(javascript|vbscript|data:text)/i.test(value))
).map((element) => element.outerHTML.slice(0, 200))
"""
"""Elements and attributes that no view makes, and that act."""
UNFOLD = """
() => {
  for (const fold of document.querySelectorAll('main details')) fold.open = true;
  document.querySelector('main tbody tr td')?.click();
}
"""
"""Shows the details, and those of the first row of a table."""
WITH_DEVICE, WITH_STACKS = hostile.SAMPLES


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile.write_log(tmp_path_factory.mktemp("hostile"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, log: Path, chromium: str) -> Iterator[Server]:
    assert chromium
    with servers.stand_alone(tmp_path_factory.mktemp("server") / "log", log) as started:
        yield started


def injected(frame: Frame) -> list[str]:
    found: list[str] = frame.evaluate(INJECTED)
    return found


def dismissing(faults: list[str]) -> Callable[[Dialog], None]:
    def dismiss(dialog: Dialog) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    return dismiss


@pytest.fixture
def seen(context: BrowserContext, server: Server) -> Visit:
    found = visit(context, server)
    found.page.on("dialog", dismissing(found.faults))
    return found


@pytest.mark.parametrize("sample", [WITH_DEVICE, pytest.param(WITH_STACKS, marks=pytest.mark.slow)])
def test_no_view_of_the_page_lets_a_text_act(seen: Visit, sample: str) -> None:
    runs = seen.server.runs().runs
    [run] = [each for each in runs if hostile.run_name(sample) in each.name]
    seen.open(seen.fragment("advice", run=run.id))
    for view in VIEWS:
        state = {"base": runs[0].id} if view == "compare" else {}
        seen.go(view, run=run.id, **state)
        seen.shows_something()
        seen.frame.evaluate(UNFOLD)
        seen.settled()
        assert injected(seen.frame) == [], view
    assert "onerror" in seen.frame.locator("body").inner_text(), "the texts are shown"
    seen.assert_clean()


@pytest.mark.slow
def test_no_view_of_a_shared_file_lets_a_text_act(
    browser: Browser, log: Path, tmp_path: Path
) -> None:
    path = tmp_path / "shared.html"
    folder = log / hostile.FOLDER / hostile.run_name(WITH_DEVICE)
    result = CliRunner().invoke(cli, ["share", str(folder), "-o", str(path)])
    assert result.exit_code == 0, result.output
    with offline(browser) as (page, faults):
        page.on("dialog", dismissing(faults))
        opened(page, path)
        for view in each_view(page):
            page.evaluate(UNFOLD)
            assert injected(page.main_frame) == [], view
        assert faults == [f"request: {path.as_uri()}"]
