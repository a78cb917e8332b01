"""Views that are worked with: the memory's curve, the modules, two runs compared, a query."""

import re

import pytest
from playwright.sync_api import Locator, expect

from browser.visits import PATIENCE_MS, Visit
from stepscope.base.report import RunReport

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]

MINUS = "\N{MINUS SIGN}"
NAMES_PX = 10
"""From an icicle's upper edge into its first row."""


def drag_over(seen: Visit, chart: Locator, start: float, end: float) -> None:
    """Drag from one share of a chart's width to another, once it is drawn."""
    seen.settled()
    box = chart.bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    seen.page.mouse.move(box["x"] + start * box["width"], middle)
    seen.page.mouse.down()
    seen.page.mouse.move(box["x"] + end * box["width"], middle, steps=4)
    seen.page.mouse.up()


def row_count(grid: Locator) -> int:
    return int(grid.get_attribute("aria-rowcount") or 0)


def test_dragging_over_the_memory_curve_narrows_every_view_to_that_time(alone: Visit) -> None:
    seen = alone
    seen.open(seen.fragment("memory", run="synthetic_item_sync/fault", **{"o.tab": "allocations"}))
    curve = seen.main.get_by_role("group", name=re.compile("^Memory of CUDA 0"))
    grid = seen.main.get_by_role("grid", name="Allocations")
    expect(grid).to_be_visible(timeout=PATIENCE_MS)
    whole = row_count(grid)
    drag_over(seen, curve, 0.4, 0.6)
    expect(grid).not_to_have_attribute("aria-rowcount", str(whole))
    assert row_count(grid) < whole
    narrowed = seen.state()
    start, end = map(int, narrowed["time"].split("-"))
    assert 0 < start < end
    let_go = seen.frame.get_by_role("button", name="Show the whole trace")
    seen.page.reload()
    expect(let_go).to_be_visible(timeout=PATIENCE_MS)
    assert seen.state() == narrowed
    seen.main.get_by_role("button", name="Whole trace").click()
    expect(let_go).to_have_count(0)
    expect(grid).to_have_attribute("aria-rowcount", str(whole))
    seen.page.go_back()
    expect(let_go).to_be_visible()
    assert seen.state() == narrowed
    seen.assert_clean()


def test_a_press_on_the_memory_curve_looks_at_a_moment(alone: Visit) -> None:
    seen = alone
    seen.open(seen.fragment("memory", run="synthetic_item_sync/fault"))
    curve = seen.main.get_by_role("group", name=re.compile("^Memory of CUDA 0"))
    expect(seen.main.get_by_role("tab", name="At the peak")).to_be_visible(timeout=PATIENCE_MS)
    seen.settled()
    curve.click()
    expect(seen.main.get_by_role("tab", name=re.compile(r"^At \d"))).to_be_visible()
    assert "o.at" in seen.state()
    assert "time" not in seen.state(), "a press is no dragging"
    seen.settled()  # while a moment is read, the view is dimmed
    assert seen.inaccessible() == []
    seen.assert_clean()


def test_a_module_is_opened_from_its_row_and_from_the_icicle_and_stays_open(alone: Visit) -> None:
    seen = alone
    seen.open(seen.fragment("modules", run="masking/numpy"))
    drawer = seen.main.get_by_role("complementary", name="Details")
    row = seen.main.get_by_role("treegrid").get_by_role("row", name=re.compile("^Linear_0"))
    row.click(timeout=PATIENCE_MS)
    expect(drawer).to_contain_text("Linear_0")
    expect(row).to_have_attribute("aria-selected", "true")
    state = seen.state()
    seen.page.reload()
    expect(drawer).to_contain_text("Linear_0", timeout=PATIENCE_MS)
    assert seen.state() == state
    icicle = seen.main.get_by_role("img", name=re.compile("^Modules by cost"))
    icicle.click(position={"x": NAMES_PX, "y": NAMES_PX})
    expect(drawer).to_contain_text("MaskedLinear_0")
    expect(row).to_have_attribute("aria-selected", "false")
    seen.page.reload()
    expect(drawer).to_contain_text("MaskedLinear_0", timeout=PATIENCE_MS)
    assert seen.inaccessible() == []
    icicle.click(position={"x": NAMES_PX, "y": NAMES_PX})
    expect(drawer).to_have_count(0)
    seen.assert_clean()


def advised(seen: Visit, run: str) -> dict[str, str]:
    """Return what the server advises for a run of one recording: rules with their titles."""
    report = seen.server.get(f"runs/{run}/advice", RunReport)
    return {each.rule: each.title for each in report.outcomes if each.status == "found"}


def test_a_run_to_compare_with_is_chosen_and_what_became_of_its_advice_is_told(
    alone: Visit,
) -> None:
    seen = alone
    runs = {run.name: run.id for run in seen.server.runs().runs}
    fault, fix, other = (
        runs[name]
        for name in ("synthetic_item_sync/fault", "synthetic_item_sync/fix", "masking/numpy")
    )
    seen.open(seen.fragment("compare", run=fix, base=other))
    verdict = seen.main.locator(".compare-headline")
    expect(verdict).to_contain_text("Step", timeout=PATIENCE_MS)
    against_other = verdict.inner_text()
    before = seen.main.get_by_role("group", name=re.compile("^Before"))
    before.get_by_role("button", name=re.compile("^Run")).click()
    seen.frame.get_by_role("option").filter(has_text="synthetic_item_sync/fault").click()
    seen.until(lambda: seen.state().get("base") == fault)
    expect(verdict).not_to_have_text(against_other)
    expect(verdict).to_contain_text(re.compile(rf"Step [\d.]+ ms → [\d.]+ ms, {MINUS}"))
    advice = seen.main.get_by_role("table", name="Advice before and after")
    old, new = advised(seen, fault), advised(seen, fix)
    assert old.keys() > new.keys(), "what is slow in the sample is mended in its twin"
    expect(advice.get_by_role("row")).to_have_count(1 + len(old))
    for rule, title in old.items():
        said = "unchanged" if rule in new else "fixed"
        expect(advice.get_by_role("row").filter(has_text=title)).to_contain_text(said)
    assert seen.inaccessible() == []
    seen.main.get_by_role("button", name="Swap before and after").click()
    expect(verdict).to_contain_text(re.compile(r", \+"))
    seen.page.go_back()
    expect(verdict).to_contain_text(f", {MINUS}")
    seen.assert_clean()


def test_the_baseline_is_of_the_same_family_or_asked_for(alone: Visit) -> None:
    seen = alone
    runs = {run.name: run.id for run in seen.server.runs().runs}
    seen.open(seen.fragment("compare", run=runs["synthetic_item_sync/fix"]))
    before = seen.main.get_by_role("group", name=re.compile("^Before"))
    expect(before).to_contain_text("an earlier run of the same model", timeout=PATIENCE_MS)
    expect(before).to_contain_text("synthetic_item_sync/fault")
    seen.go("compare", run=runs["synthetic_item_sync/fault"])
    question = "Compare synthetic_item_sync/fault with which run?"
    expect(seen.main.get_by_role("heading", name=question)).to_be_visible(timeout=PATIENCE_MS)
    candidates = seen.main.get_by_role("list", name="Likely baselines").get_by_role("link")
    expect(candidates.first).to_contain_text("synthetic_item_sync/fix")
    expect(candidates.first).to_contain_text(re.compile(r"models [\d.]+ % alike"))
    assert seen.inaccessible() == []
    stranger = candidates.filter(has_text="masking/numpy").first
    expect(stranger).to_contain_text("not comparable")
    stranger.click()
    notice = seen.main.get_by_role("region", name="Not comparable")
    expect(notice).to_contain_text("The devices are different", timeout=PATIENCE_MS)
    expect(notice).to_contain_text("The models are different")
    expect(seen.main.locator(".compare-headline")).to_contain_text("not comparable")
    expect(seen.main.locator(".headline-change")).to_have_class(re.compile("tone-same"))
    assert seen.inaccessible() == []
    seen.assert_clean()


def test_a_query_is_typed_with_completion_run_and_kept_in_the_link(alone: Visit) -> None:
    seen = alone
    seen.open(seen.fragment("tables", run="synthetic_item_sync/fault", **{"o.table": "query"}))
    box = seen.main.get_by_role("combobox", name="SQL query")
    box.press_sequentially("select name, total_ns from kernels order by tot")
    expect(seen.main.get_by_role("option").first).to_contain_text("total_ns")
    box.press("Enter")
    box.press("Control+Enter")
    grid = seen.main.get_by_role("grid", name="Rows")
    expect(grid).to_be_visible(timeout=PATIENCE_MS)
    sql = "select name, total_ns from kernels order by total_ns"
    assert seen.state()["o.sql"] == sql
    seen.page.reload()
    expect(grid).to_be_visible(timeout=PATIENCE_MS)
    expect(box).to_have_value(sql)
    box.fill("select nme from kernels")
    seen.main.get_by_role("button", name="Run").click()
    expect(seen.main.get_by_role("alert")).to_contain_text("Candidate bindings")
    seen.assert_clean()
