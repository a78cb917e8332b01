"""What the page shows while files are read: progress, and how to end it or begin again."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

from benchmarks import scaled
from browser import damaged, servers
from browser.servers import Server
from browser.visits import OF_ALL_RUNS, PATIENCE_MS, VIEWS, Visit, visit
from logs import write_long_ago
from stepscope.api.messages import Runs

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

SIZE = "80MB"
"""Large enough to be read in a process of its own, which goes in slow motion here."""


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two such files, and a small run that was recorded later."""
    folder = tmp_path_factory.mktemp("log")
    (folder / "large").mkdir()
    for rank in (0, 1):
        place = folder / "large" / f"rank{rank}.1700000000000.pt.trace.json.gz"
        place.symlink_to(scaled.scaled(SIZE))
    write_long_ago(folder / "small" / "w.1700000000010.pt.trace.json.gz", damaged.recording())
    return folder


@contextmanager
def started(kind: str, log: Path, folder: Path) -> Iterator[Server]:
    if kind == "alone":
        with slow(folder / "log", log) as server:
            yield server
    else:
        flags = ("--logdir", str(log), "--load_fast=false")
        with servers.tensorboard(
            folder / "log", *flags, prefix="/team/boards", is_slow=True
        ) as server:
            yield server


def slow(log: Path, folder: Path) -> AbstractContextManager[Server]:
    """A server that reads one file at a time, and large ones in slow motion."""
    return servers.stand_alone(log, folder, "--jobs", "1", is_slow=True)


def begin_again(context: BrowserContext, server: Server) -> Visit:
    """Open the page on the large run; its reading begins then, however fast the machine is."""
    server.cancel("large")
    seen = visit(context, server)
    seen.open(seen.fragment("health", run="large", worker="rank0"))
    seen.main.get_by_role("button", name="Read all 2 again").click(timeout=PATIENCE_MS)
    return seen


def row_of(seen: Visit, worker: str) -> Locator:
    return seen.main.locator(".file").filter(has_text=f"{worker}.17")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["alone", "tensorboard"])
def test_reading_is_cancelled_and_begun_again(
    context: BrowserContext, log: Path, tmp_path: Path, kind: str
) -> None:
    with started(kind, log, tmp_path) as server:
        server.cancel("large")
        seen = visit(context, server)
        seen.open(seen.fragment("advice", run="large", worker="rank0"))
        heading = seen.main.get_by_role("heading", name="Reading large was cancelled")
        for view in (each for each in VIEWS if each not in OF_ALL_RUNS):
            seen.go(view, run="large", worker="rank0")
            expect(heading).to_be_visible(timeout=PATIENCE_MS)
        small = next(run for run in server.runs().runs if run.name == "small")
        assert small.state == "ready", "the others are read"
        seen.frame.get_by_role("button", name="Run").click()
        options = seen.frame.get_by_role("option")
        expect(options.filter(has_text="large")).to_contain_text("cancelled")
        seen.page.keyboard.press("Escape")
        row = row_of(seen, "rank0")
        row.get_by_role("button", name="Read again").click()
        row.get_by_role("button", name="Cancel").click()
        expect(row.get_by_role("button", name="Read again")).to_be_focused()
        expect(heading).to_be_visible()
        seen.main.get_by_role("button", name="Read all 2 again").click()
        seen.main.get_by_role("button", name="Cancel all").click()
        expect(heading).to_be_visible()
        seen.assert_clean()


def test_reading_is_watched_until_the_views_open(
    context: BrowserContext, log: Path, tmp_path: Path
) -> None:
    with slow(tmp_path / "log", log) as server:
        seen = begin_again(context, server)
        first, second = row_of(seen, "rank0"), row_of(seen, "rank1")
        expect(first).to_contain_text(re.compile(r"reading.* of .*MiB"), timeout=PATIENCE_MS)
        expect(first.get_by_role("progressbar")).to_have_attribute("max", re.compile(r"\d+"))
        expect(second).to_contain_text("next")
        second.get_by_role("button", name="Cancel").click()
        expect(second).to_contain_text("cancelled")
        server.at_full_speed()
        expect(seen.main.locator(".worth")).to_be_visible(timeout=PATIENCE_MS)
        seen.assert_clean()


@pytest.mark.slow
def test_what_is_ready_opens_while_the_rest_is_read(
    context: BrowserContext, tmp_path: Path
) -> None:
    folder = tmp_path / "log"
    write_long_ago(folder / "run" / "w.1700000000010.pt.trace.json.gz", damaged.recording())
    large = scaled.scaled(SIZE)
    (folder / "run" / "x.1700000000001.pt.trace.json.gz").symlink_to(large)
    with slow(tmp_path / "server.log", folder) as server:
        servers.waited(lambda: server.get("runs", Runs), is_one_ready, servers.READ_SECONDS)
        server.cancel("run")
        seen = visit(context, server)
        seen.open(seen.fragment("operators", run="run", worker="x"))
        row_of(seen, "x").get_by_role("button", name="Read again").click(timeout=PATIENCE_MS)
        seen.main.get_by_role("link", name="show w, span 1").click()
        expect(seen.main.get_by_role("grid").first).to_be_visible(timeout=PATIENCE_MS)
        note = seen.frame.locator("summary").filter(has_text="1 file")
        note.click()
        panel = seen.frame.locator(".all-reading")
        expect(panel.get_by_role("progressbar")).to_be_visible()
        panel.get_by_role("button", name="Cancel").click()
        expect(note).to_have_count(0)
        expect(seen.frame.get_by_role("status").filter(has_text="1 cancelled")).to_have_count(1)
        seen.assert_clean()


def is_one_ready(runs: Runs) -> bool:
    return any(
        span.state == "ready" for run in runs.runs for each in run.workers for span in each.spans
    )


@pytest.mark.slow
def test_many_files_come_in_the_order_of_their_numbers(
    context: BrowserContext, tmp_path: Path
) -> None:
    folder, content = tmp_path / "log", damaged.recording()
    for number in range(1, 13):
        place = folder / f"run_{number}" / "w.1700000000000.pt.trace.json.gz"
        write_long_ago(place, content)
    for rank in range(24):
        place = folder / "run_12" / f"rank{rank}.1700000000001.pt.trace.json.gz"
        write_long_ago(place, content)
    with servers.stand_alone(tmp_path / "server.log", folder) as server:
        seen = visit(context, server)
        seen.open(seen.fragment("health", run="run_12", worker="rank10"))
        expect(seen.main.locator(".worth")).to_be_visible(timeout=PATIENCE_MS)
        server.runs()
        seen.frame.get_by_role("button", name="Run").click()
        labels = seen.frame.locator(".picker-option-label")
        others = [f"run_{number}" for number in range(1, 12)]
        expect(labels).to_have_text(["run_12", *others])  # what was looked at lately goes first
        seen.page.keyboard.press("Escape")
        files = seen.main.get_by_role("region", name="Files of this run").locator("tbody th")
        expect(files).to_have_text([*(f"rank{rank}, span 1" for rank in range(24)), "w, span 1"])
        seen.assert_clean()


@pytest.mark.slow
def test_a_server_that_is_gone_is_said_beside_the_button(
    context: BrowserContext, log: Path, tmp_path: Path
) -> None:
    with slow(tmp_path / "log", log) as server:
        server.cancel("large")
        seen = visit(context, server)
        seen.open(seen.fragment("health", run="large", worker="rank0"))
        button = row_of(seen, "rank0").get_by_role("button", name="Read again")
        expect(button).to_be_visible(timeout=PATIENCE_MS)
    button.click()
    expect(row_of(seen, "rank0").get_by_role("alert")).to_contain_text(
        "The server does not answer."
    )


@pytest.mark.parametrize(
    ("width", "theme"), [(900, "light"), pytest.param(1440, "dark", marks=pytest.mark.slow)]
)
def test_reading_is_accessible_and_fits(
    context: BrowserContext, log: Path, tmp_path: Path, width: int, theme: str
) -> None:
    with slow(tmp_path / "log", log) as server:
        seen = begin_again(context, server)
        seen.page.set_viewport_size({"width": width, "height": 900})
        seen.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
        expect(seen.main.get_by_role("progressbar").first).to_be_visible(timeout=PATIENCE_MS)
        seen.frame.locator(".menu > summary").click()
        found = seen.inaccessible()
        seen.page.keyboard.press("Escape")
        seen.main.get_by_role("button", name="Cancel all").click()
        expect(seen.main.get_by_role("heading", name="was cancelled")).to_be_visible()
        assert [*found, *seen.inaccessible()] == []
