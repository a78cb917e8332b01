"""Frame times of the timeline on a large trace, in headless Chromium without a GPU.

`python -m benchmarks.timeline_frames http://127.0.0.1:6007 [RUN]`, in `tests`, while `stepscope
serve` has read the trace and serves the built page. Wheel events pan and zoom; times between
frames are those of `requestAnimationFrame`; the CPU time of a frame does not depend on other
load. The first paint counts from the click.
"""

import argparse
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from playwright.sync_api import CDPSession, Page, ViewportSize, sync_playwright
from rich.console import Console

CHROMIUM = "/usr/bin/chromium"
SIZE: ViewportSize = {"width": 1440, "height": 900}
MOST_FRAME_MS = 20.0
"""50 frames per second."""
MOST_FIRST_PAINT_MS = 300.0
WHEELS = 90
console = Console(highlight=False, soft_wrap=True)

RECORD = """() => {
  window.frames = [];
  let last = performance.now();
  const next = (now) => {
    window.frames.push(now - last);
    last = now;
    window.frame = requestAnimationFrame(next);
  };
  window.frame = requestAnimationFrame((now) => {
    last = now;
    window.frame = requestAnimationFrame(next);
  });
}"""
STOP = "() => { cancelAnimationFrame(window.frame); return window.frames; }"
MOVES = """async ([kind, count]) => {
  const canvas = document.querySelector('.timeline-canvas');
  const box = canvas.getBoundingClientRect();
  for (let at = 0; at < count; at += 1) {
    const way = at < count / 2 ? -24 : 24;
    canvas.dispatchEvent(new WheelEvent('wheel', {
      bubbles: true,
      cancelable: true,
      ctrlKey: kind === 'zoom',
      shiftKey: kind === 'pan',
      deltaY: kind === 'zoom' ? way : way * 2,
      clientX: box.left + box.width * 0.6,
      clientY: box.top + 60,
    }));
    await new Promise((done) => requestAnimationFrame(done));
  }
}"""
PAINTED = """() => {
  const canvas = document.querySelector('.timeline-canvas');
  if (!canvas || canvas.width < 10) return false;
  const seen = canvas.getContext('2d').getImageData(0, 0, canvas.width, 300).data;
  const colours = new Set();
  for (let at = 0; at < seen.length; at += 4 * 97) {
    colours.add((seen[at] << 16) | (seen[at + 1] << 8) | seen[at + 2]);
  }
  return colours.size > 8;
}"""
OPEN = """() => {
  const began = performance.now();
  document.querySelector('nav.rail a[title^="Timeline"]').click();
  return began;
}"""


def line(name: str, value: float, limit: float) -> str:
    """Return a figure with its limit."""
    return f"{name}: {value:.1f}, limit {limit:.0f}: {'met' if value <= limit else 'MISSED'}"


@dataclass(frozen=True, kw_only=True)
class Motion:
    """Frame times while the view moves."""

    between_ms: Sequence[float]
    """Times between frames."""
    processor_ms: float
    """CPU time of the page's main thread per frame: script, layout and paint."""


def moved(page: Page, kind: str) -> Motion:
    """Move the view, and measure."""
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _task_seconds(tools)
    page.evaluate(RECORD)
    page.evaluate(MOVES, [kind, WHEELS])
    frames: list[float] = page.evaluate(STOP)
    spent = _task_seconds(tools) - before
    tools.detach()
    return Motion(between_ms=frames[2:], processor_ms=1e3 * spent / WHEELS)


def _task_seconds(tools: CDPSession) -> float:
    metrics = tools.send("Performance.getMetrics")["metrics"]
    return sum(float(row["value"]) for row in metrics if row["name"] == "TaskDuration")


def first_paint_ms(page: Page) -> tuple[float, float]:
    """Return the time from the click until slices are visible, and its CPU time, ms."""
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _task_seconds(tools)
    started: float = page.evaluate(OPEN)
    page.wait_for_function(PAINTED, polling="raf", timeout=30_000)
    ended: float = page.evaluate("() => performance.now()")
    spent = _task_seconds(tools) - before
    tools.detach()
    return ended - started, 1e3 * spent


def show(name: str, motion: Motion) -> None:
    """Print the frames per second, and the cost of a frame."""
    mean = statistics.fmean(motion.between_ms)
    console.print(f"{name}: {1e3 / mean:.0f} frames/s; {_spread(motion.between_ms)}")
    console.print(line(f"{name}, ms between frames", mean, MOST_FRAME_MS))
    console.print(line(f"{name}, ms of CPU time per frame", motion.processor_ms, MOST_FRAME_MS))


def _spread(times_ms: Sequence[float]) -> str:
    ordered = sorted(times_ms) or [0.0]
    most = ordered[int(len(ordered) * 0.95)]
    return f"median {statistics.median(ordered):.1f}, 95 % {most:.1f}, most {ordered[-1]:.1f} ms"


def main() -> None:
    """Measure, and print the figures with their limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("run", nargs="?")
    arguments = parser.parse_args()
    run = f"&run={arguments.run}" if arguments.run else ""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        # The server builds tracks once per trace, which `benchmarks.timeline` measures.
        page.goto(f"{arguments.url}/#view=timeline{run}")
        page.wait_for_function(PAINTED, timeout=120_000)
        page.goto("about:blank")
        page.goto(f"{arguments.url}/#view=health{run}")
        page.wait_for_timeout(3000)
        painted_ms, processor_ms = first_paint_ms(page)
        console.print(line("first paint, ms", painted_ms, MOST_FIRST_PAINT_MS))
        console.print(line("first paint, ms of CPU time", processor_ms, MOST_FIRST_PAINT_MS))
        page.wait_for_timeout(1500)
        show("zoom over the whole trace", moved(page, "zoom"))
        for _ in range(3):
            page.evaluate(MOVES, ["zoom", 12])
        page.keyboard.press("w")
        page.keyboard.press("w")
        page.wait_for_timeout(1500)
        show("pan", moved(page, "pan"))
        show("pan, with cached tiles", moved(page, "pan"))
        browser.close()


if __name__ == "__main__":
    main()
