"""Every view of the page: it renders, holds over a reload, can be reached and read by everyone."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from playwright.sync_api import BrowserContext, expect

from browser import damaged, servers
from browser.servers import Server
from browser.visits import COMPARED, CONTRAST, OF_ALL_RUNS, PATIENCE_MS, SHOWN, VIEWS, Visit, visit
from stepscope.api.messages import RunState

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

SAMPLE_LOGS = Path(__file__).resolve().parents[2] / "sample_logs"
RICH = ("synthetic_dataloader", "language_model", "ranks")
"""With a device; with stacks, modules, memory and two spans; with several ranks."""
WINDOWS = (pytest.param((1440, 900), marks=pytest.mark.every), (900, 800))
TABS_ENOUGH = 400
BRIEF_VIEWS = ("advice", "timeline", "tables")
"""A list, a canvas and a table: `make test` opens these, `make test-every` the others too."""


def all_but_brief(*names: str) -> list[ParameterSet]:
    return [
        pytest.param(name, marks=pytest.mark.every) for name in names if name not in BRIEF_VIEWS
    ]


BRIEF_AND_OTHER_VIEWS = (*BRIEF_VIEWS, *all_but_brief(*VIEWS))


@pytest.fixture(scope="module")
def rich_server(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[Server]:
    assert chromium
    folder = tmp_path_factory.mktemp("log")
    for name in RICH:
        (folder / name).symlink_to(SAMPLE_LOGS / name)
    damaged.write(folder)
    with servers.stand_alone(tmp_path_factory.mktemp("server") / "log", folder) as server:
        yield server


@pytest.fixture
def seen(context: BrowserContext, rich_server: Server) -> Visit:
    return visit(context, rich_server)


def run_named(server: Server, part: str) -> RunState:
    return next(run for run in server.runs().runs if part in run.name)


def see(seen: Visit, view: str, run: RunState, **state: str) -> None:
    if view == "compare":
        state = {"base": run_named(seen.server, "synthetic_dataloader/fix").id, **state}
    seen.go(view, run=run.id, **state)
    seen.shows_something()


@pytest.mark.every
def test_every_view_of_every_scenario_shows_something_in_tensorboard(
    all_in_tensorboard: Visit,
) -> None:
    """Runs of one scenario differ by a setting.

    Of the last ones, `test_page` sees that the other views show what the server says.
    """
    runs = all_in_tensorboard.server.runs().runs
    scenarios = {run.name.partition("/")[0]: run for run in reversed(runs)}
    assert len(scenarios) > 1
    all_in_tensorboard.open()
    for view in OF_ALL_RUNS:
        see(all_in_tensorboard, view, runs[0])
    for run in scenarios.values():
        for view in VIEWS:
            if view not in COMPARED.union(OF_ALL_RUNS):
                see(all_in_tensorboard, view, run)
    all_in_tensorboard.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize(
    "part", ["synthetic_dataloader/fault", *all_but_brief("long_job", "one_slow_rank")]
)
def test_every_view_can_be_read_by_everyone_in_both_themes(seen: Visit, part: str) -> None:
    run = run_named(seen.server, part)
    seen.open(seen.fragment(VIEWS[0], run=run.id))
    found: list[str] = []
    for view in VIEWS:
        see(seen, view, run)
        seen.in_theme("light")
        found += [f"{view}: {each}" for each in seen.inaccessible()]
        seen.in_theme("dark")
        found += [f"{view}, dark: {each}" for each in seen.inaccessible(CONTRAST)]
    assert found == []
    seen.assert_clean()


@pytest.mark.parametrize("size", WINDOWS, ids=str)
def test_every_view_fits_the_window(seen: Visit, size: tuple[int, int]) -> None:
    width, height = size
    seen.page.set_viewport_size({"width": width, "height": height})
    run = run_named(seen.server, "synthetic_dataloader/fault")
    seen.open(seen.fragment(VIEWS[0], run=run.id))
    for view in VIEWS:
        see(seen, view, run)
        overflow = seen.frame.evaluate(
            "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert overflow <= 0, f"{view} scrolls sideways"
    seen.assert_clean()


@pytest.mark.parametrize("view", BRIEF_AND_OTHER_VIEWS)
def test_a_link_to_a_view_holds_over_a_reload(seen: Visit, view: str) -> None:
    run = run_named(seen.server, "synthetic_dataloader/fault")
    step = {"step": "2"} if view in {"operators", "kernels", "timeline"} else {}
    seen.open(seen.fragment(view, run=run.id, **step))
    see(seen, view, run, **step)
    address = seen.page.url
    seen.page.reload()
    expect(seen.main.locator(SHOWN).first).to_be_visible(timeout=PATIENCE_MS)
    seen.settled()
    assert f"view={view}" in seen.page.url
    assert f"run={run.id}" in seen.page.url
    for part in address.partition("#")[2].split("&"):
        assert part in seen.page.url, "what the link said is still said"
    seen.assert_clean()


@pytest.mark.slow
def test_back_leads_through_the_views_that_were_seen(seen: Visit) -> None:
    run = run_named(seen.server, "synthetic_dataloader/fault")
    seen.open(seen.fragment(VIEWS[0], run=run.id))
    for view in VIEWS[1:]:
        seen.frame.locator(".rail-item").nth(VIEWS.index(view)).click()
        seen.at_view(view)
        expect(seen.main.locator(SHOWN).first).to_be_visible(timeout=PATIENCE_MS)
        seen.settled()
    for view in reversed(VIEWS[:-1]):
        seen.page.go_back()
        seen.at_view(view)
        seen.settled()
    seen.assert_clean()


@pytest.mark.parametrize("view", BRIEF_AND_OTHER_VIEWS)
def test_the_keyboard_reaches_everything_and_is_never_caught(seen: Visit, view: str) -> None:
    """Tab goes through the view and comes out of it again, and every stop can be seen."""
    run = run_named(seen.server, "synthetic_dataloader/fault")
    seen.open(seen.fragment(view, run=run.id))
    see(seen, view, run)
    seen.frame.evaluate("() => document.getElementById('main').focus()")
    stops = 0
    for _ in range(TABS_ENOUGH):
        seen.page.keyboard.press("Tab")
        where = seen.frame.evaluate(
            """() => { const at = document.activeElement;
            if (!at || at === document.body) return 'out';
            const box = at.getBoundingClientRect();
            return box.width > 0 && box.height > 0 ? 'seen' : `hidden: ${at.outerHTML}`; }"""
        )
        if where == "out":
            break
        assert where == "seen", where
        stops += 1
    else:
        pytest.fail(f"after {TABS_ENOUGH} tabs the focus is still inside")
    assert stops > 0
    seen.assert_clean()


@pytest.mark.slow
def test_keys_lead_to_every_view(seen: Visit) -> None:
    run = run_named(seen.server, "synthetic_dataloader/fault")
    seen.open(seen.fragment("advice", run=run.id))
    see(seen, "advice", run)
    titles = seen.frame.locator(".rail-item").evaluate_all(
        "items => items.map((item) => item.title || item.getAttribute('aria-label') || '')"
    )
    assert len(titles) == len(VIEWS)
    for view, title in zip(VIEWS, titles, strict=True):
        key = title.partition("(g ")[2][:1]
        assert key, f"the rail tells no key for {view}: {title!r}"
        seen.page.keyboard.press("g")
        seen.page.keyboard.press(key)
        seen.at_view(view)
        seen.settled()
    seen.assert_clean()
