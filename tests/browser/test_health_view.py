"""What the page says of files that are damaged, or lack something."""

import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import BrowserContext, expect

from browser import damaged, servers
from browser.servers import Server
from browser.visits import PATIENCE_MS, VIEWS, Visit, visit
from logs import write_long_ago
from stepscope.base.report import RunReport, WorkerReport

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[Server]:
    assert chromium
    folder = damaged.write(tmp_path_factory.mktemp("log"))
    write_long_ago(folder / "empty" / "w.1.pt.trace.json")
    log = tmp_path_factory.mktemp("server") / "log"
    with servers.stand_alone(log, folder) as started:
        started.runs()
        yield started


@pytest.fixture
def seen(context: BrowserContext, server: Server) -> Visit:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    opened = visit(context, server)
    opened.open()
    return opened


def report_of(server: Server, worker: str) -> WorkerReport:
    [run] = [run for run in server.runs().runs if run.name == "damaged"]
    report = server.get(f"runs/{run.id}/advice", RunReport)
    [found] = [each for each in report.workers if each.name == worker]
    return found


def copied(seen: Visit) -> str:
    text = seen.page.evaluate("() => navigator.clipboard.readText()")
    return str(text)


def test_damage_is_told_with_its_places_and_what_was_done(seen: Visit) -> None:
    seen.go("health", run="damaged", worker="rank0")
    expect(seen.main.get_by_role("heading", name="cut off")).to_be_visible(timeout=PATIENCE_MS)
    found = [item for item in report_of(seen.server, "rank0").health if item.nature == "damage"]
    assert {item.kind for item in found} == {"truncated-gzip", "truncated-json", "skipped-events"}
    items = seen.main.get_by_role("region", name="Damage").locator(".item")
    for item, row in zip(found, items.all(), strict=True):
        expect(row).to_contain_text(item.action)
        for example in item.examples:
            expect(row).to_contain_text(f"{example.offset_bytes:,}")
        row.get_by_role("button", name="Copy positions").click()
        expect(row.get_by_role("button", name="Copied")).to_be_visible()
        lines = copied(seen).splitlines()
        assert lines[0].startswith(f"{item.kind} at byte {item.examples[0].offset_bytes}")
    seen.assert_clean()


@pytest.mark.slow
def test_what_rests_on_damage_is_linked_and_says_so_itself(seen: Visit) -> None:
    seen.go("health", run="damaged", worker="rank0")
    damage = seen.main.get_by_role("region", name="Damage")
    damage.get_by_text(re.compile(r"and \d+ checks")).first.click(timeout=PATIENCE_MS)
    damage.get_by_role("link", name="Long stalls of the device").first.click()
    finding = seen.main.locator("[data-rule='gpu-idle-gap']")
    expect(finding.locator(".doubts")).to_contain_text("The file ends in the middle.")
    expect(finding).to_be_in_viewport()
    for view in ("advice", "overview", "operators", "kernels"):
        seen.go(view, run="damaged", worker="rank0")
        caution = seen.main.get_by_role("complementary", name="Caution")
        expect(caution).to_contain_text("The file ends in the middle.", timeout=PATIENCE_MS)
        seen.settled()
    seen.go("operators", run="damaged", worker="rank1")
    expect(seen.main.get_by_role("grid").first).to_be_visible(timeout=PATIENCE_MS)
    expect(seen.main.get_by_role("complementary", name="Caution")).to_have_count(0)
    seen.assert_clean()


def test_the_rail_marks_a_damaged_file_and_no_other(seen: Visit) -> None:
    mark = seen.frame.locator(".rail-mark")
    seen.go("kernels", run="damaged", worker="rank0")
    expect(mark).to_have_count(1)
    seen.go("kernels", run="damaged", worker="rank1")
    expect(mark).to_have_count(0)


def test_the_call_that_is_copied_is_python_with_every_flag(seen: Visit) -> None:
    seen.go("health", run="damaged", worker="rank1")
    section = seen.main.get_by_role("region", name="Record next time")
    section.get_by_role("button", name="Copy").click(timeout=PATIENCE_MS)
    expect(section.get_by_role("button", name="Copied")).to_be_visible()
    text = copied(seen)
    compile(text, "copied", "exec")
    wanted = report_of(seen.server, "rank1").record_next
    assert wanted
    assert [each.code for each in wanted if each.code not in text] == []
    for each in wanted:
        expect(section).to_contain_text(each.why)


def test_what_was_found_is_taken_along(seen: Visit, tmp_path: Path) -> None:
    seen.go("health", run="damaged", worker="rank0")
    seen.main.get_by_text("Export").click(timeout=PATIENCE_MS)
    with seen.page.expect_download() as download:
        seen.main.get_by_role("button", name="CSV").click()
    assert download.value.suggested_filename == "damaged_rank0_1_health.csv"
    download.value.save_as(tmp_path / "health.csv")
    with (tmp_path / "health.csv").open(newline="") as file:
        kinds = [row["kind"] for row in csv.DictReader(file)]
    assert kinds == [item.kind for item in report_of(seen.server, "rank0").health]


def test_all_of_it_can_be_reached_by_keyboard(seen: Visit) -> None:
    seen.go("advice", run="damaged", worker="rank0")
    expect(seen.main.locator(".verdict-words")).to_be_visible(timeout=PATIENCE_MS)
    seen.page.keyboard.press("g")
    seen.page.keyboard.press("h")
    expect(seen.main.locator(".worth")).to_be_visible(timeout=PATIENCE_MS)
    seen.main.focus()
    reached = set()
    for _ in range(40):
        seen.page.keyboard.press("Tab")
        reached.add(seen.frame.evaluate("() => document.activeElement.textContent.trim()"))
    assert {"Copy name", "Export", "operators", "Copy positions", "Copy"} <= reached
    assert any(re.fullmatch(r"and \d+ checks", text) for text in reached)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "theme"), [(900, "light"), (1440, "dark")])
def test_every_view_of_a_damaged_file_is_accessible_and_fits(
    seen: Visit, width: int, theme: Literal["light", "dark"]
) -> None:
    seen.page.set_viewport_size({"width": width, "height": 900})
    seen.in_theme(theme)
    found = []
    for view in VIEWS:
        seen.go(view, run="damaged", worker="rank0")
        title = seen.main.get_by_role("heading", level=1)
        name = {"whatif": "what if"}.get(view, view)
        said = re.compile(rf"{name}\b.* of damaged, rank0", re.IGNORECASE)
        expect(title).to_contain_text(said)
        seen.settled()
        found += [f"{view}: {each}" for each in seen.inaccessible()]
        found += [f"{view} is too wide"] * is_too_wide(seen)
    seen.go("health", run="empty")
    expect(seen.main.get_by_role("alert")).to_be_visible()
    found += seen.inaccessible()
    assert found == []


def is_too_wide(seen: Visit) -> bool:
    main = seen.main.element_handle()
    return bool(seen.frame.evaluate("(main) => main.scrollWidth > main.clientWidth", main))
