"""A job of many ranks on the page: one late, one missing, one damaged; in real Chromium."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Locator, expect

import rankbuild
from browser import servers
from browser.servers import Server
from browser.visits import Visit, visit
from rankbuild import Plan

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.slow,
]

WORLD, HOST_RANKS = 24, 8
LATE, MISSING, DAMAGED = 13, 5, 20
LONG_AGO = 1_700_000_000
PLAN = Plan(
    groups=rankbuild.grid(WORLD, HOST_RANKS),
    world_size=WORLD,
    slow_us={LATE: 400.0},
    offset_us={rank: rank // HOST_RANKS * 50.0 for rank in range(WORLD)},
)


def written(folder: Path) -> Path:
    """Write the recordings of the job."""
    truth = rankbuild.run(PLAN)
    (folder / "job").mkdir()
    for rank in range(WORLD):
        if rank == MISSING:
            continue
        host = f"node{rank // HOST_RANKS}"
        document = rankbuild.document(truth, rank, host=host)
        begin = document["traceEvents"][0]
        update = {"name": "Optimizer.step#SGD.step", "cat": "user_annotation", "dur": 5.0}
        document["traceEvents"].append(begin | update)
        text = json.dumps(document)
        if rank == DAMAGED:
            text = text[: len(text) * 3 // 4]
        path = folder / "job" / f"rank{rank}.1700000000000.pt.trace.json"
        path.write_text(text)
        os.utime(path, (LONG_AGO, LONG_AGO))  # what ends in the middle may still be written
    return folder


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory, chromium: str) -> Iterator[Server]:
    assert chromium
    folder = tmp_path_factory.mktemp("many")
    with servers.stand_alone(folder / "log", written(folder)) as server:
        server.runs()
        yield server


@pytest.fixture
def seen(context: BrowserContext, job: Server) -> Visit:
    return visit(context, job)


def card(seen: Visit, name: str) -> Locator:
    return seen.main.get_by_role("region", name=name)


def location(seen: Visit) -> str:
    return str(seen.page.evaluate("() => decodeURIComponent(window.location.hash)"))


def test_advice_is_on_the_job_and_leads_to_any_of_its_ranks(seen: Visit) -> None:
    seen.open(seen.fragment("advice"))
    verdict = card(seen, "Verdict")
    expect(verdict).to_contain_text("Step of the job")
    expect(card(seen, "Missing and damaged traces")).to_contain_text("damaged")
    late = seen.main.locator("[data-rule=straggler-rank]")
    expect(late).to_contain_text(re.compile(rf"rank {LATE}\b", re.IGNORECASE))
    price = verdict.get_by_label("Price of a GPU-hour")
    price.fill("2.5")
    price.press("Enter")
    seen.until(lambda: "o.price=2.5" in location(seen))
    expect(verdict).to_contain_text("Cost saving per day")
    assert seen.inaccessible() == []
    seen.frame.get_by_role("button", name=re.compile("^Worker")).click()
    seen.frame.get_by_role("combobox", name="Find a worker").fill("node1")
    hosts = seen.frame.get_by_role("listbox", name="Worker").get_by_role("option")
    expect(hosts).to_have_count(HOST_RANKS)
    hosts.filter(has_text=f"rank{LATE}").click()
    expect(seen.main.get_by_role("radio", name=f"rank {LATE}")).to_be_checked()
    seen.until(lambda: f"worker=rank{LATE}" in location(seen))
    seen.main.get_by_text(f"All {WORLD - 1}", exact=True).click()
    expect(seen.main.locator(".job-verdict")).to_be_visible()
    seen.settled()
    seen.assert_clean()


def test_ranks_stand_beside_each_other_with_who_is_late_and_who_is_missing(seen: Visit) -> None:
    seen.open(seen.fragment("distributed"))
    verdict = card(seen, "Verdict")
    expect(verdict).to_contain_text("Lost to waiting")
    expect(verdict).to_contain_text(f"Rank {LATE}")
    expect(verdict).to_contain_text("1 missing")
    expect(card(seen, "Stragglers")).to_contain_text(f"Rank {LATE}")
    seen.main.get_by_text("Computing", exact=True).first.click()
    spread = card(seen, "Distribution over the ranks")
    expect(spread.get_by_role("heading")).to_have_text("Computing")
    spread.get_by_role("button", name=f"Rank {LATE}").click()
    seen.until(lambda: f"worker=rank{LATE}" in location(seen))
    seen.main.get_by_text("By group", exact=True).click()
    expect(seen.main.get_by_role("button", name=re.compile("^Groups"))).to_be_visible()
    seen.settled()
    assert seen.inaccessible() == []
    seen.assert_clean()
