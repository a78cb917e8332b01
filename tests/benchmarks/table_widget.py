"""Duration of sorting, filtering and scrolling the page's table with 200,000 rows.

`PYTHONPATH=tests:sample_logs/record python -m benchmarks.table_widget`, with the page built.
Headless Chromium shows the real page of a real server; only the response with the table is
generated, so that its size is fixed. A time is from the event that starts it until the frame after
the rows appear.
"""

import argparse
import json
import random
import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import Page, Route, sync_playwright
from rich.console import Console
from rich.table import Table

from benchmarks.growth import line
from browser.servers import stand_alone

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "sample_logs" / "synthetic_item_sync"
ROW_COUNT = 200_000
NAME_COUNT = 5_000
"""Distinct names: more than a trace has kernels, fewer than events."""
MOST_MS = 150.0
TURNS = 7
SORTED = ("name", "duration_ns", "event", "grid")
SEARCHES = (
    "functor7",
    r"/functor1\d*>/",
    "duration_ns:>200us",
    "stream:7 name:kernel<3",
    "nothing at all",
    "",
)
FAST_PX = 400
"""Pixels per frame: 24,000 per second at 60 frames, faster than a mouse wheel."""
FRAMES = 120
CHROMIUM = "/usr/bin/chromium"
console = Console(highlight=False, soft_wrap=True)

MEASURED = """
async ([act, isDone]) => {
  const done = new Function(`return (${isDone})`);
  const begin = performance.now();
  new Function(act)();
  while (!done()) {
    if (performance.now() - begin > 10000) throw new Error(`never: ${isDone}`);
    await new Promise((next) => requestAnimationFrame(next));
  }
  await new Promise((next) => requestAnimationFrame(next));
  return performance.now() - begin;
}
"""
SCROLLED = """
async ([stepPx, frames]) => {
  const grid = document.querySelector('.grid');
  const head = grid.querySelector('th').getBoundingClientRect().bottom;
  const foot = grid.querySelector('tfoot')?.getBoundingClientRect().top ?? Infinity;
  const end = Math.min(foot, grid.getBoundingClientRect().bottom);
  const covers = () => {
    const rows = [...grid.querySelectorAll('tbody tr[data-at]')];
    const first = rows[0]?.getBoundingClientRect().top ?? Infinity;
    const last = rows.at(-1)?.getBoundingClientRect().bottom ?? -Infinity;
    return first <= head + 1 && last >= end - 1;
  };
  let blank = 0;
  const times = [];
  let before = performance.now();
  for (let frame = 0; frame < frames; frame += 1) {
    grid.scrollTop += stepPx;
    if (!covers()) blank += 1;
    await new Promise((next) => requestAnimationFrame(next));
    const now = performance.now();
    times.push(now - before);
    before = now;
  }
  return [blank, times];
}
"""
JUMPED = """
async ([places]) => {
  const grid = document.querySelector('.grid');
  const waits = [];
  for (const place of places) {
    grid.scrollTop = place * grid.scrollHeight;
    const begin = performance.now();
    const wanted = () => {
      const head = grid.querySelector('th').getBoundingClientRect().bottom;
      const row = document.elementFromPoint(400, head + 200)?.closest('tr[data-at]');
      return row !== null && row !== undefined;
    };
    while (!wanted()) {
      if (performance.now() - begin > 10000) throw new Error(`no rows at ${place}`);
      await new Promise((next) => requestAnimationFrame(next));
    }
    waits.push(performance.now() - begin);
  }
  return waits;
}
"""


def table_response(row_count: int) -> dict[str, Any]:
    """Return a table of kernel events as the API sends it, with random values."""
    chance = random.Random(7)  # noqa: S311 (the same rows each time)
    names = [
        f"void at::native::elementwise_kernel<{at % 17}, Functor{at}>(int, float*)"
        for at in range(NAME_COUNT)
    ]
    units = {
        "name": "text",
        "grid": "code",
        "start_ns": "ns",
        "duration_ns": "ns",
        "stream": "text",
        "occupancy_share": "share",
        "event": "text",
    }
    values: dict[str, list[Any]] = {
        "name": [chance.choice(names) for _ in range(row_count)],
        "grid": [f"[{chance.randrange(1, 4000)},1,1]" for _ in range(row_count)],
        "start_ns": [at * 5_000 + chance.randrange(4_000) for at in range(row_count)],
        "duration_ns": [int(chance.expovariate(1e-5)) + 900 for _ in range(row_count)],
        "stream": [chance.choice((7, 13, 20)) for _ in range(row_count)],
        "occupancy_share": [None if at % 50 == 0 else chance.random() for at in range(row_count)],
        "event": chance.sample(range(10 * row_count), row_count),
    }
    columns = [
        {"key": key, "label": key, "unit": unit, "help": "", "hidden": False}
        for key, unit in units.items()
    ]
    return {
        "schema": 1,
        "columns": columns,
        "row_count": row_count,
        "values": values,
        "sort": "",
        "groups": [],
        "group": "",
        "total_ns": 1,
        "empty": "",
        "all_row_count": row_count,
        "sums": ["duration_ns"],
        "title": "Kernel events",
        "meaning": "Made up.",
    }


@contextmanager
def opened(row_count: int) -> Iterator[Page]:
    """Open the page on a table with a number of rows."""
    body = json.dumps(table_response(row_count))

    def put(route: Route) -> None:
        route.fulfill(status=200, content_type="application/json", body=body)

    with (
        TemporaryDirectory() as folder,
        stand_alone(Path(folder, "log"), LOGS) as server,
        sync_playwright() as playwright,
    ):
        server.runs()
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.route("**/tables/kernel-events*", put)
        page.goto(f"{server.page}#view=tables&o.table=kernel-events")
        page.get_by_role("grid").wait_for(timeout=240_000)
        page.wait_for_timeout(3_000)  # sort orders are prepared in the background
        yield page
        browser.close()


@dataclass(frozen=True, kw_only=True)
class Took:
    """Duration of an action: until it is visible, and of CPU time."""

    wall_ms: float
    processor_ms: float


class Meter:
    """Measures actions in a page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._session = page.context.new_cdp_session(page)
        self._session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def _processor_ms(self) -> float:
        """Return the CPU time of the page's main thread so far, ms."""
        metrics = self._session.send("Performance.getMetrics")["metrics"]
        [seconds] = [row["value"] for row in metrics if row["name"] == "TaskDuration"]
        return 1000 * float(seconds)

    def act(self, script: str, is_done: str) -> Took:
        """Run a script, and wait until a condition holds and is drawn."""
        before = self._processor_ms()
        wall_ms = self.page.evaluate(MEASURED, [script, is_done])
        return Took(wall_ms=wall_ms, processor_ms=self._processor_ms() - before)

    def scroll(self) -> tuple[int, list[Took]]:
        """Scroll continuously; return the number of frames with missing rows, and all frames."""
        before = self._processor_ms()
        blank, times = self.page.evaluate(SCROLLED, [FAST_PX, FRAMES])
        mean_ms = (self._processor_ms() - before) / FRAMES
        return blank, [Took(wall_ms=wall_ms, processor_ms=mean_ms) for wall_ms in times]


def sorting(meter: Meter, label: str) -> list[Took]:
    """Return the durations of clicks on a column header."""
    button = f"[...document.querySelectorAll('th button')].find(b => b.innerText === '{label}')"
    order = f"{button}.closest('th').ariaSort"
    times = []
    for _ in range(TURNS):
        before = meter.page.evaluate(order)
        times.append(meter.act(f"{button}.click()", f"{order} !== '{before}'"))
    return times


def filtering(meter: Meter, searches: Sequence[str]) -> list[Took]:
    """Return the durations of searches in the URL until the row count changes."""
    times = []
    for search in searches:
        count = "document.querySelector('.row-count').innerText"
        before = meter.page.evaluate(count)
        act = (
            "const kept = location.hash.split('&').filter(part => !part.startsWith('search='));"
            f"const wanted = 'search=' + encodeURIComponent({json.dumps(search)});"
            "location.hash = [...kept, wanted].join('&')"
        )
        times.append(meter.act(act, f"{count} !== {json.dumps(before)}"))
    return times


def measure(row_count: int) -> None:
    """Measure all actions, and print them with their limits."""
    shown = Table("", "CPU: median", "max, ms", "visible: median", "max, ms")
    with opened(row_count) as page:
        meter = Meter(page)
        actions = {f"sort by {label}": sorting(meter, label) for label in SORTED}
        actions["filter"] = filtering(meter, SEARCHES)
        slowest = max(took.processor_ms for times in actions.values() for took in times)
        blank, actions["frame while scrolling"] = meter.scroll()
        places = [random.Random(3).random() for _ in range(20)]  # noqa: S311
        jumps = page.evaluate(JUMPED, [places])
    for name, times in actions.items():
        columns = [[took.processor_ms for took in times], [took.wall_ms for took in times]]
        figures = [f"{of(column):.0f}" for column in columns for of in (statistics.median, max)]
        shown.add_row(name, *figures)
    shown.add_row(
        "rows after a jump", "", "", f"{statistics.median(jumps):.0f}", f"{max(jumps):.0f}"
    )
    console.print(f"\n{row_count:,} rows")
    console.print(shown)
    console.print(line("slowest sort or filter, ms of CPU time", slowest, MOST_MS))
    console.print(line(f"frames without rows, of {FRAMES}", blank, 0))


def main() -> None:
    """Measure a table with the number of rows from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=ROW_COUNT)
    measure(parser.parse_args().rows)


if __name__ == "__main__":
    main()
