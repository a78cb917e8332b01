"""The page in real Chromium, inside real TensorBoard and stand-alone."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, expect

from browser import servers
from browser.servers import Server
from browser.visits import (
    COMPARED,
    CONTRAST,
    OF_ALL_RUNS,
    PATIENCE_MS,
    RULES,
    VIEWS,
    Visit,
    visit,
)
from logs import write_long_ago
from stepscope.api.messages import Overview, RunState, Span, Table, Worker
from stepscope.base.report import RunReport

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::ResourceWarning")]


def spans_of(run: RunState) -> Iterator[tuple[Worker, Span]]:
    for worker in run.workers:
        for span in worker.spans:
            yield worker, span


def see_advice(seen: Visit, run: RunState) -> None:
    report = seen.server.get(f"runs/{run.id}/advice", RunReport)
    for worker, span in spans_of(run):
        seen.go("advice", run=run.id, worker=worker.name, span=span.label)
        [said] = [each for each in report.workers if each.trace == span.trace]
        expect(seen.main.locator(".verdict-words")).to_contain_text(
            said.verdict, timeout=PATIENCE_MS
        )
        symptoms = seen.main.locator("summary", has_text="Related symptoms")
        if symptoms.count():
            symptoms.click()
        for outcome in report.outcomes:
            if outcome.status == "found" and outcome.worker == worker.name:
                expect(seen.main.get_by_text(outcome.title).first).to_be_visible()
        seen.settled()


def see_overview(seen: Visit, run: RunState, worker: Worker, span: Span) -> None:
    overview = seen.server.get(f"traces/{span.trace}/overview", Overview)
    seen.go("overview", run=run.id, worker=worker.name, span=span.label)
    expect(seen.main.locator(".overview-verdict")).to_contain_text(
        overview.verdict, timeout=PATIENCE_MS
    )
    seen.settled()


def see_table(seen: Visit, run: RunState, worker: Worker, span: Span, view: str) -> None:
    table = seen.server.get(f"traces/{span.trace}/{view}", Table)
    seen.go(view, run=run.id, worker=worker.name, span=span.label)
    if table.row_count:
        grid = seen.main.get_by_role("table").or_(seen.main.get_by_role("grid")).first
        expect(grid).to_have_attribute(
            "aria-rowcount", str(table.row_count + 1), timeout=PATIENCE_MS
        )
        expect(grid.locator("tbody tr[data-at='0'] td").first).not_to_be_empty()
    else:
        expect(seen.main).to_contain_text(table.empty, timeout=PATIENCE_MS)
    seen.settled()


def see_health(seen: Visit, run: RunState, worker: Worker, span: Span) -> None:
    report = seen.server.get(f"runs/{run.id}/advice", RunReport)
    [said] = [each for each in report.workers if each.trace == span.trace]
    seen.go("health", run=run.id, worker=worker.name, span=span.label)
    expect(seen.main.locator(".worth-file")).to_contain_text(span.file, timeout=PATIENCE_MS)
    expect(seen.main.locator(".item")).to_have_count(len(said.health))
    shown = seen.main.locator(".record-next pre")
    expect(shown).to_have_count(1 if said.profile_call else 0)
    seen.settled()


def see_compared_views(seen: Visit, run: RunState) -> None:
    see_advice(seen, run)
    for worker, span in spans_of(run):
        see_overview(seen, run, worker, span)
        see_table(seen, run, worker, span, "operators")
        see_table(seen, run, worker, span, "kernels")
        see_health(seen, run, worker, span)


def see_other_views(seen: Visit, run: RunState) -> None:
    """What they say is tested with samples; here they show something, or say why they do not."""
    for view in (each for each in VIEWS if each not in COMPARED.union(OF_ALL_RUNS)):
        for worker, span in spans_of(run):
            seen.go(view, run=run.id, worker=worker.name, span=span.label)
            seen.shows_something()


@pytest.mark.every
def test_the_views_of_each_scenarios_last_run_say_what_the_server_says_in_tensorboard(
    all_in_tensorboard: Visit,
) -> None:
    """Of the first ones, `test_views` sees that every view shows something."""
    runs = all_in_tensorboard.server.runs().runs
    assert {run.state for run in runs} == {"ready"}
    scenarios = {run.name.partition("/")[0]: run for run in runs}
    assert len(scenarios) >= 10
    all_in_tensorboard.open()
    for run in scenarios.values():
        see_compared_views(all_in_tensorboard, run)
    all_in_tensorboard.assert_clean()


@pytest.mark.every
def test_every_view_of_real_traces_renders_stand_alone(
    context: BrowserContext, shared_traces: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "log"
    for path in sorted(shared_traces.rglob("*.json.gz")):
        place = folder / "_".join(path.relative_to(shared_traces).parts)
        place.mkdir(parents=True)
        (place / "w.1.pt.trace.json.gz").symlink_to(path)
    with servers.stand_alone(tmp_path / "server.log", folder) as server:
        seen = visit(context, server)
        seen.open()
        for run in server.runs().runs:
            assert run.state == "ready", run.name
            see_compared_views(seen, run)
            see_other_views(seen, run)
        seen.assert_clean()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "prefix"),
    [
        pytest.param("auto", "", marks=pytest.mark.every),
        ("true", ""),
        ("false", "/team/boards"),
    ],
)
def test_every_way_of_loading_shows_the_views(
    context: BrowserContext, few_samples: Path, tmp_path: Path, mode: str, prefix: str
) -> None:
    if mode == "true" and not pytest.importorskip("tensorboard_data_server").server_binary():
        pytest.skip("TensorBoard has no data server for this platform, and refuses to start")
    flags = ("--logdir", str(few_samples), f"--load_fast={mode}")
    with servers.tensorboard(
        tmp_path / "log", *flags, prefix=prefix, has_busy_peer=mode == "auto"
    ) as server:
        seen = visit(context, server)
        runs = server.runs().runs
        seen.open()
        for run in runs[:2]:
            see_compared_views(seen, run)
        seen.assert_clean()


@pytest.mark.slow
def test_the_page_works_below_an_experiments_path(
    context: BrowserContext, tensorboard_server: Server
) -> None:
    """TensorBoard strips `/experiment/<id>`; all that we ask for is relative, so it stays."""
    ours = "experiment/abc/data/plugin/stepscope/index.html"
    server = replace(tensorboard_server, page=f"{tensorboard_server.page}{ours}")
    seen = visit(context, server)
    seen.open(seen.fragment("overview", run=server.runs().runs[0].id))
    expect(seen.main.locator(".overview-verdict")).to_be_visible(timeout=PATIENCE_MS)
    assert "/experiment/abc/" in seen.page.url
    seen.assert_clean()


@pytest.mark.slow
def test_several_log_directories_are_one_list(
    context: BrowserContext, few_samples: Path, tmp_path: Path
) -> None:
    first, second = (few_samples / name for name in ("synthetic_dataloader", "masking"))
    specification = f"device:{first},host:{second}"
    with servers.tensorboard(tmp_path / "log", "--logdir_spec", specification) as server:
        seen = visit(context, server)
        runs = server.runs().runs
        assert {run.name.split("/")[0] for run in runs} == {"device", "host"}
        seen.open()
        see_compared_views(seen, runs[0])
        seen.assert_clean()


@pytest.mark.slow
def test_the_tab_is_there_beside_the_old_plugins(in_tensorboard: Visit) -> None:
    in_tensorboard.server.runs()
    in_tensorboard.page.goto(f"{in_tensorboard.server.page}#timeseries")
    tab = in_tensorboard.page.get_by_role("tab", name=re.compile("^stepscope$", re.IGNORECASE))
    tab.click(timeout=PATIENCE_MS)
    expect(in_tensorboard.main.locator(".runs-grid")).to_be_visible(timeout=PATIENCE_MS)
    assert "pytorch_profiler" in in_tensorboard.page.content().lower()
    in_tensorboard.assert_clean()


@pytest.mark.parametrize("where", [pytest.param("in_tensorboard", marks=pytest.mark.slow), "alone"])
def test_a_link_holds_over_reload_and_back(request: pytest.FixtureRequest, where: str) -> None:
    seen: Visit = request.getfixturevalue(where)
    run = next(run for run in seen.server.runs().runs if "synthetic_item_sync" in run.name)
    seen.open(seen.fragment("kernels", run=run.id))
    grid = seen.main.get_by_role("grid").first
    expect(grid).to_be_visible(timeout=PATIENCE_MS)
    address = seen.page.url
    seen.page.reload()
    expect(seen.main.get_by_role("grid").first).to_be_visible(timeout=PATIENCE_MS)
    assert seen.page.url == address
    seen.frame.get_by_role("link", name="Overview").first.click()
    expect(seen.main.locator(".overview-verdict")).to_be_visible(timeout=PATIENCE_MS)
    seen.at_view("overview")
    seen.page.go_back()
    expect(seen.main.get_by_role("grid").first).to_be_visible(timeout=PATIENCE_MS)
    seen.until(lambda: seen.page.url == address)
    seen.assert_clean()


@pytest.mark.slow
def test_it_follows_tensorboards_dark_mode(in_tensorboard: Visit) -> None:
    in_tensorboard.open()
    root = in_tensorboard.frame.locator("html")
    expect(root).to_have_attribute("data-theme", "light")
    light = background_of(in_tensorboard)
    choose_theme(in_tensorboard, "Dark")
    expect(root).to_have_attribute("data-theme", "dark")
    assert background_of(in_tensorboard) != light
    choose_theme(in_tensorboard, "Light")
    expect(root).to_have_attribute("data-theme", "light")
    in_tensorboard.assert_clean()


def test_it_follows_the_systems_dark_mode_stand_alone(alone: Visit) -> None:
    alone.page.emulate_media(color_scheme="dark")
    alone.open()
    expect(alone.frame.locator("html")).to_have_attribute("data-theme", "dark")
    alone.assert_clean()


def choose_theme(seen: Visit, name: str) -> None:
    seen.page.get_by_role("button", name=re.compile("dark theme", re.IGNORECASE)).click()
    seen.page.get_by_role("menuitem", name=name).click()


def background_of(seen: Visit) -> str:
    colour = seen.frame.evaluate("() => getComputedStyle(document.body).backgroundColor")
    return str(colour)


def test_an_empty_folder_says_what_was_looked_for(context: BrowserContext, tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    with servers.tensorboard(tmp_path / "log", "--logdir", str(folder)) as server:
        seen = visit(context, server)
        seen.open()
        expect(seen.main).to_contain_text("pt.trace.json", timeout=PATIENCE_MS)
        expect(seen.main).to_contain_text("stepscope.trace_handler")
        seen.assert_clean()


@pytest.mark.slow
def test_a_damaged_file_is_told_and_the_others_are_shown(
    context: BrowserContext, few_samples: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    (folder / "good").symlink_to(few_samples / "synthetic_item_sync" / "fault")
    for name, content in (("empty", b""), ("text", b"no trace")):
        write_long_ago(folder / name / "w.1.pt.trace.json", content)
    with servers.stand_alone(tmp_path / "server.log", folder) as server:
        seen = visit(context, server)
        runs = {run.name: run for run in server.runs().runs}
        seen.open()
        see_compared_views(seen, runs["good"])
        expect(seen.frame.locator(".problems")).to_have_count(0)
        seen.go("runs")
        expect(seen.frame.locator(".problems")).to_contain_text("2", timeout=PATIENCE_MS)
        for view in (each for each in VIEWS if each not in OF_ALL_RUNS):
            seen.go(view, run=runs["empty"].id)
            expect(seen.main.get_by_role("alert")).to_contain_text(
                "The file is empty", ignore_case=True
            )
            expect(seen.frame.locator(".problems")).to_contain_text("empty")
        seen.frame.get_by_role("button", name="Close the notice").click()
        expect(seen.frame.locator(".problems")).to_have_count(0)
        seen.page.reload()
        expect(seen.main.get_by_role("alert")).to_be_visible(timeout=PATIENCE_MS)
        expect(seen.frame.locator(".problems")).to_have_count(0)
        seen.assert_clean()


@pytest.mark.slow
def test_a_new_run_appears_without_a_restart(
    context: BrowserContext, few_samples: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    with servers.stand_alone(tmp_path / "server.log", folder) as server:
        seen = visit(context, server)
        seen.open()
        expect(seen.main).to_contain_text("pt.trace.json", timeout=PATIENCE_MS)
        (folder / "new").symlink_to(few_samples / "synthetic_item_sync" / "fault")
        expect(seen.main.locator(".verdict-words")).to_be_visible(timeout=PATIENCE_MS)
        seen.at_view("advice")
        (folder / "newer").symlink_to(few_samples / "synthetic_item_sync" / "fix")
        notice = seen.main.get_by_role("complementary", name="New runs")
        expect(notice).to_contain_text("1 new run: newer", timeout=PATIENCE_MS)
        notice.get_by_role("button", name="Open").click()
        [newer] = [run for run in server.runs().runs if run.name == "newer"]
        seen.until(lambda: f"run={newer.id}" in seen.page.url)
        expect(notice).to_have_count(0)
        seen.assert_clean()


def urgency(run: RunState) -> tuple[int, float]:
    """The order of the list of runs, as its help says it."""
    finding = run.result.finding if run.result else None
    if finding is None:
        return 0, 0.0
    saving = finding.saving
    likely = saving.share * math.sqrt(saving.low_ns / saving.high_ns) if saving else 0.0
    return ("info", "warning", "critical").index(finding.severity) + 1, likely


def test_several_runs_open_as_a_list_with_the_worst_first(alone: Visit) -> None:
    alone.server.runs()
    alone.open()
    alone.at_view("runs")
    expect(alone.main.get_by_text("Computing results")).to_have_count(0, timeout=PATIENCE_MS)
    runs = alone.server.runs().runs
    worst = max(runs, key=urgency)
    assert worst.result is not None
    assert worst.result.finding is not None
    row = alone.main.locator("tbody tr").first
    expect(row.get_by_role("link", name=worst.name)).to_be_visible()
    expect(alone.frame.locator(".picker-value").first).to_have_text(worst.name)
    for theme in ("light", "dark"):
        alone.in_theme(theme)
        assert alone.inaccessible() == []
    row.get_by_role("link", name=worst.result.finding.title).click()
    alone.at_view("advice")
    assert f"run={worst.id}" in alone.page.url
    head = alone.main.get_by_role("button", name=worst.result.finding.title)
    expect(head).to_have_attribute("aria-expanded", "true", timeout=PATIENCE_MS)
    alone.page.go_back()
    alone.at_view("runs")
    alone.assert_clean()


def test_two_runs_of_the_list_are_compared(alone: Visit) -> None:
    runs = {run.name: run for run in alone.server.runs().runs}
    alone.open()
    for kind in ("fault", "fix"):
        name = f"synthetic_item_sync/{kind}"
        alone.main.get_by_role("checkbox", name=f"Select {name} to compare").check(
            timeout=PATIENCE_MS
        )
    alone.main.get_by_role("button", name="Compare 2 of 2").click()
    alone.at_view("compare")
    for kind in ("fault", "fix"):
        assert runs[f"synthetic_item_sync/{kind}"].id in alone.page.url
    alone.assert_clean()


@pytest.mark.slow
def test_no_server_stays_silent_about_a_page_that_is_not_there(alone: Visit) -> None:
    """The watch itself works: what must not happen is written down when it does."""
    alone.open(alone.fragment("advice"))
    expect(alone.main.locator(".verdict-words")).to_be_visible(timeout=PATIENCE_MS)
    alone.frame.evaluate("() => { document.querySelector('.verdict-words').style.color = '#ddd'; }")
    for rules in (RULES, CONTRAST):
        found = alone.inaccessible(rules)
        assert [each.partition(":")[0] for each in found] == ["color-contrast"]
    alone.frame.evaluate("() => fetch('http://stepscope.invalid/').catch(() => null)")
    alone.frame.evaluate("() => fetch('api/nope')")
    assert len(alone.faults) >= 2
