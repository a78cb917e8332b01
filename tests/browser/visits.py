"""A browser page that keeps book of everything that must not happen."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from playwright.sync_api import (
    BrowserContext,
    ConsoleMessage,
    Frame,
    Locator,
    Page,
    Request,
    Route,
    expect,
)

from browser.servers import Server

ORDER = re.compile(r"\border: (\d+)")
VIEWS = tuple(
    meta.parent.name
    for meta in sorted(
        (Path(__file__).resolve().parents[2] / "frontend/src/views").glob("*/index.tsx"),
        key=lambda meta: int(ORDER.findall(meta.read_text())[0]),
    )
)
"""Every view of the page, as the rail has them."""
COMPARED = frozenset({"advice", "overview", "operators", "kernels", "health"})
"""Views that `test_page` holds against what the server says."""
OF_ALL_RUNS = ("trends", "runs")
"""Views that do not wait for the chosen file."""
SHOWN = (
    "canvas, table, dl, [role=grid], [role=treegrid], [role=img], .verdict-words, .item, .empty,"
    " .compare-question"
)
"""A view shows at least one of these, or says why it has nothing."""
OURS = re.compile(r"/data/plugin/stepscope/index\.html")
LOCAL = frozenset({"localhost", "127.0.0.1"})
HARMLESS_SCHEMES = frozenset({"data", "blob", "about"})
TENSORBOARDS_OWN = re.compile(r"/font-roboto/")
"""Under --path_prefix TensorBoard asks for its own fonts without the prefix."""
PATIENCE_MS = 120_000
"""A machine on which others are busy shows things late, and that is no fault."""
AGAIN_MS = 20
AXE = Path(__file__).resolve().parents[2] / "frontend/node_modules/axe-core/axe.min.js"
RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']"
"""WCAG 2.2 AA, and axe's own advice."""
CONTRAST = "{ type: 'rule', values: ['color-contrast'] }"
"""The one rule of those whose answer depends on the theme."""
RUN_AXE = """
;(async () => {
  const { violations } = await axe.run(document, { runOnly: %s });
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map((node) => `${id}: ${help}: ${node.html.slice(0, 200)} ${node.failureSummary}`));
})()
"""
WATCH_POLICY = """
document.addEventListener('securitypolicyviolation', (event) =>
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
"""


@dataclass
class Visit:
    """One page on one server."""

    server: Server
    page: Page
    faults: list[str] = field(default_factory=list)

    @property
    def frame(self) -> Frame:
        """Our document: a frame inside TensorBoard, else the page itself."""
        if not self.in_tensorboard:
            return self.page.main_frame
        frame = next((each for each in self.page.frames if OURS.search(each.url)), None)
        if frame is None:
            self.page.wait_for_event(
                "framenavigated", lambda each: bool(OURS.search(each.url)), timeout=PATIENCE_MS
            )
            return self.frame
        return frame

    @property
    def main(self) -> Locator:
        """The view's place in our document."""
        return self.frame.locator("main#main")

    def fragment(self, view: str, **state: str) -> str:
        """Return the hash that leads to a view."""
        inside = "p.stepscope." if self.in_tensorboard else ""
        pairs = {"view": view, **state}.items()
        ours = "&".join(f"{inside}{key}={quote(value, safe='')}" for key, value in pairs)
        return f"#stepscope&{ours}" if inside else f"#{ours}"

    @property
    def in_tensorboard(self) -> bool:
        """Whether we are a frame in TensorBoard's page."""
        return self.server.page.endswith("/")

    def open(self, fragment: str = "") -> None:
        """Reload the page."""
        start = fragment or ("#stepscope" if self.in_tensorboard else "")
        self.page.goto("about:blank")
        self.page.goto(f"{self.server.page}{start}")
        expect(self.frame.locator("#root > *").first).to_be_visible(timeout=PATIENCE_MS)

    def state(self) -> dict[str, str]:
        """Return what the address says now."""
        pairs = (each.partition("=") for each in urlsplit(self.page.url).fragment.split("&"))
        return {key.removeprefix("p.stepscope."): unquote(value) for key, _, value in pairs}

    def go(self, view: str, **state: str) -> None:
        """Follow a link, as a user does who types it into the address bar."""
        self.page.evaluate(
            "(hash) => { window.location.hash = hash; }", self.fragment(view, **state)
        )
        self.at_view(view)

    def at_view(self, view: str) -> None:
        """Wait until the rail says that a view is the one that is shown."""
        item = self.frame.locator(".rail-item").nth(VIEWS.index(view))
        expect(item).to_have_attribute("aria-current", "page", timeout=PATIENCE_MS)
        self.until(lambda: f"view={view}" in self.page.url)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds, while the page goes on."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not condition():
            assert time.monotonic() < deadline, f"not within {PATIENCE_MS} ms"
            self.page.wait_for_timeout(AGAIN_MS)

    def in_theme(self, theme: Literal["light", "dark"]) -> None:
        """Have the system ask for a theme, and wait until our page has it."""
        self.page.emulate_media(color_scheme=theme)
        expect(self.frame.locator("html")).to_have_attribute("data-theme", theme)

    def inaccessible(self, rules: str = RULES) -> list[str]:
        """Return what axe finds against WCAG 2.2 AA in what is shown, once nothing is dimmed."""
        expect(self.frame.locator(".stale")).to_have_count(0, timeout=PATIENCE_MS)
        has_axe = self.frame.evaluate("() => 'axe' in window")
        library = "" if has_axe else AXE.read_text()
        found: list[str] = self.frame.evaluate(library + RUN_AXE % rules)
        return found

    def settled(self) -> None:
        """Wait until nothing is loading, and see that nothing failed."""
        expect(self.main.get_by_role("status", name="Loading")).to_have_count(
            0, timeout=PATIENCE_MS
        )
        expect(self.main.locator(".stale")).to_have_count(0, timeout=PATIENCE_MS)
        expect(self.main.locator(".empty-bad")).to_have_count(0)

    def shows_something(self) -> None:
        """Wait until the view shows what it has, or says why it has nothing."""
        self.settled()
        expect(self.main.locator(SHOWN).first).to_be_visible(timeout=PATIENCE_MS)
        self.settled()

    def assert_clean(self) -> None:
        """Nothing happened that must not, in the browser or in the server's log."""
        assert not self.faults, "\n".join(self.faults)
        assert not self.server.complaints(), "\n".join(self.server.complaints())


def visit(context: BrowserContext, server: Server) -> Visit:
    """Return a watched page. Requests to other machines are refused, and written down."""
    context.set_default_timeout(PATIENCE_MS)
    context.add_init_script(WATCH_POLICY)
    found = Visit(server=server, page=context.new_page())

    def local_only(route: Route) -> None:
        address = urlsplit(route.request.url)
        if address.hostname in LOCAL or address.scheme in HARMLESS_SCHEMES:
            route.continue_()
        else:
            found.faults.append(f"request to another machine: {route.request.url}")
            route.abort()

    def told(message: ConsoleMessage) -> None:
        address = str(message.location.get("url"))
        if message.type == "error" and not TENSORBOARDS_OWN.search(address):
            found.faults.append(f"console: {message.text} ({address})")

    def failed(request: Request) -> None:
        # A page that is left, or an answer no longer wanted, ends its requests.
        if request.failure != "net::ERR_ABORTED":
            found.faults.append(f"failed: {request.url} {request.failure}")

    context.route("**/*", local_only)
    found.page.on("console", told)
    found.page.on("pageerror", lambda error: found.faults.append(f"page error: {error}"))
    found.page.on("requestfailed", failed)
    return found
