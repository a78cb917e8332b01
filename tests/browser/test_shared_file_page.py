"""The file that `share` writes, from a disk in a browser without a network."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

import pytest
from click.testing import CliRunner
from playwright.sync_api import Browser, Locator, Page, expect

from browser.visits import PATIENCE_MS, SHOWN, VIEWS, WATCH_POLICY, Visit
from stepscope.cli import cli

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

SAMPLE_LOGS = Path(__file__).resolve().parents[2] / "sample_logs"
STEPS_ROW_PX = 12
MISSING = "This shared file does not hold this selection."


def written(folder: Path, *arguments: str | Path) -> Path:
    path = folder / "report.html"
    result = CliRunner().invoke(cli, ["share", *map(str, arguments), "-o", str(path)])
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture(scope="module")
def item_sync(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    return written(folder, SAMPLE_LOGS / "synthetic_item_sync" / "fault")


@contextmanager
def offline(browser: Browser, width: int = 1440) -> Iterator[tuple[Page, list[str]]]:
    """Yield a page without a network, and what it must not do."""
    faults: list[str] = []
    with browser.new_context(viewport={"width": width, "height": 900}) as context:
        context.set_offline(True)
        context.set_default_timeout(PATIENCE_MS)
        context.add_init_script(WATCH_POLICY)
        page = context.new_page()
        page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: faults.append(f"page error: {error}"))
        page.on("request", lambda request: faults.append(f"request: {request.url}"))
        yield page, faults


def opened(page: Page, path: Path, fragment: str = "") -> None:
    page.goto(f"{path.as_uri()}{fragment}")
    expect(page.locator("main#main")).to_be_visible()


def settled(page: Page) -> Locator:
    main = page.locator("main#main")
    expect(main.get_by_role("status", name="Loading")).to_have_count(0)
    expect(main.locator(".stale, .empty-bad")).to_have_count(0)
    return main


def each_view(page: Page) -> Iterator[str]:
    """Go to each view of a shared file, and yield its name once it shows something."""
    for view in VIEWS:
        page.evaluate("(view) => { window.location.hash = `view=${view}`; }", view)
        item = page.locator(".rail-item").nth(VIEWS.index(view))
        expect(item).to_have_attribute("aria-current", "page")
        expect(settled(page).locator(SHOWN).first).to_be_visible()
        yield view


def see_every_view(browser: Browser, path: Path, width: int) -> None:
    with offline(browser, width) as (page, faults):
        opened(page, path)
        for _ in each_view(page):
            expect(settled(page).get_by_text(MISSING)).to_have_count(0)
        assert faults == [f"request: {path.as_uri()}"]


@pytest.mark.parametrize("width", [900, 1440])
def test_every_view_is_in_the_file_and_asks_for_nothing(
    browser: Browser, item_sync: Path, width: int
) -> None:
    see_every_view(browser, item_sync, width)


@pytest.mark.every
def test_every_view_of_two_real_traces_is_in_five_megabytes(
    browser: Browser, shared_traces: Path, tmp_path: Path
) -> None:
    path = written(tmp_path, shared_traces / "kineto" / "resnet50_num_workers_0")
    assert path.stat().st_size <= 5_000_000
    see_every_view(browser, path, 1440)


def test_the_timeline_is_drawn_at_every_zoom_and_names_a_clicked_slice(
    browser: Browser, item_sync: Path
) -> None:
    with offline(browser) as (page, faults):
        opened(page, item_sync, "#view=timeline")
        main = settled(page)
        canvas = main.locator(".timeline-canvas")
        expect(canvas).to_be_visible()
        for _ in range(12):
            main.get_by_role("button", name="Zoom in").click()
        canvas.click(position={"x": 500, "y": STEPS_ROW_PX})
        expect(main.locator(".timeline-panel")).to_contain_text("ProfilerStep")
        expect(main.locator(".slice-facts")).to_contain_text("Duration")
        expect(page.get_by_text(MISSING)).to_have_count(0)
        assert faults == [f"request: {page.url.partition('#')[0]}"]


def test_other_selections_are_named_as_missing_without_an_error(
    browser: Browser, item_sync: Path
) -> None:
    with offline(browser) as (page, faults):
        opened(page, item_sync, "#view=operators&time=1000-2000000")
        expect(page.get_by_text(MISSING)).to_be_visible()
        page.evaluate("() => { window.location.hash = 'view=operators'; }")
        expect(page.get_by_text(MISSING)).to_have_count(0)
        page.locator("summary", has_text="Shared file").click()
        expect(page.get_by_text("It loads nothing from a network")).to_be_visible()
        assert [fault for fault in faults if not fault.startswith("request: file:")] == []


def test_a_chart_is_saved_as_a_picture(browser: Browser, item_sync: Path) -> None:
    with offline(browser) as (page, faults):
        opened(page, item_sync, "#view=overview")
        menu = settled(page).locator(".menu", has_text="Export").first
        menu.locator("summary").click()
        with page.expect_download() as download:
            menu.get_by_role("button", name=re.compile("^PNG")).first.click()
        assert download.value.path().read_bytes().startswith(b"\x89PNG")
        assert [
            fault for fault in faults if not re.match("request: (file|data|blob):", fault)
        ] == []


def test_it_works_in_the_frame_of_a_notebook(
    browser: Browser, item_sync: Path, tmp_path: Path
) -> None:
    text = escape(item_sync.read_text(encoding="utf-8"))
    notebook = tmp_path / "notebook.html"
    notebook.write_text(
        f'<iframe srcdoc="{text}" sandbox="allow-scripts" width=1200 height=800></iframe>',
        encoding="utf-8",
    )
    with offline(browser) as (page, faults):
        page.goto(notebook.as_uri())
        frame = page.frame_locator("iframe")
        expect(frame.get_by_role("heading", name="Advice", exact=True)).to_be_visible()
        frame.locator(".rail-item", has_text="Overview").click()
        expect(frame.get_by_role("heading", name="Overview", exact=True)).to_be_visible()
        assert [fault for fault in faults if not fault.startswith("request: ")] == []


def test_the_page_of_a_server_saves_a_run_as_such_a_file(
    alone: Visit, browser: Browser, tmp_path: Path
) -> None:
    run = next(run for run in alone.server.runs().runs if "item_sync/fault" in run.name)
    alone.open(alone.fragment("advice", run=run.id))
    alone.settled()
    with alone.page.expect_download(timeout=PATIENCE_MS) as download:
        alone.frame.get_by_role("button", name="Share", exact=True).click()
    path = tmp_path / "saved.html"
    download.value.save_as(path)
    alone.assert_clean()
    with offline(browser) as (page, _):
        opened(page, path)
        expect(page.get_by_role("heading", name="Advice", exact=True)).to_be_visible()
