"""The page: one file that needs nothing else, acts on nothing, and can be read by all."""

import hashlib
import re
from base64 import b64encode
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from generated import examples
from reports import CODE, FOUND, HOSTILE, RANKS, REPORT, WORKER, run_of, with_texts
from stepscope.advice import advise
from stepscope.base.report import OverallStatus, Report
from stepscope.library import load
from stepscope.render import html

SAMPLES = Path(__file__).parents[1] / "sample_logs"
CSS = Path(html.__file__).parent / "templates" / "report.css"
EMPTY = {"meta", "rect", "br", "link", "img"}


class Page(HTMLParser):
    """What a page is made of: its elements with their attributes, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert self._open == [], "every element is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not self._open or self._open[-1] != "style":
            self.texts.append(data)

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [given for tag, given in self.elements if tag in tags]

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.texts).split())


def page(report: Report) -> Page:
    return Page(html.render(report))


def test_it_tells_the_verdict_then_the_time_then_what_to_change() -> None:
    said = page(REPORT).said
    places = [
        said.index(part)
        for part in (
            "resnet50 Step 178 ms (6 steps). The GPU is busy 56.6 %.",
            "The trace: the stream ends early. Copy it again.",
            "Where the time goes",
            "DataLoader 79.4 ms 44.6 % 44.4–59.3 ms dataloader-no-workers",
            "Mean step 178 ms 100.0 % 44.4–59.3 ms",
            "What to change",
            "1. critical The DataLoader runs in the training process",
            "Saves 44.4–59.3 ms per step (25.4–33.9 %) · high confidence, takes an "
            "argument or a line, needs more memory · dataloader-no-workers",
            "How this was estimated: All of it.",
            "Fix: Load in workers.",
            CODE,
            "Check: It takes less than 1 %.",
            "Caveat: Needs CPU cores.",
            "Exposed loading 33.9 %",
            "aten::div – 8.4 %",
            "At train.py:42 (main) , data/images.py:7",
            "next, 73.4 ms on thread 7 at 350 ms",
            "2. critical The step waits for the DataLoader",
            "Related symptom; the same time is counted above.",
            "3. info The device draws little power new preview symptom from acme-rules",
            "Ruled out",
            "saves nothing.",
            "Suppressed (1)",
            "suppressed by the configuration: the machine has no memory to pin.",
            "Inconclusive (1) No shapes were recorded.",
            "profile(record_shapes=True)",
            "Failed (1)",
            "Not applicable (1)",
            "Passed (1)",
            "Not read log/x.json: the file is empty.",
        )
    ]
    assert places == sorted(places)


def test_several_recordings_are_told_of_once() -> None:
    said = page(RANKS).said
    assert said.count("The DataLoader runs in the training process") == 1
    assert "In ranks 0-5 of 8, in step 5 of 6." in said
    assert "worker0, rank 7, span 1 157 ms 56.6 %" in said


@pytest.mark.parametrize(
    ("state", "label"),
    [("healthy", "Healthy"), ("not-applicable", "Not applicable"), ("cannot-tell", "Inconclusive")],
)
def test_three_empty_states_say_why_nothing_was_found(state: str, label: str) -> None:
    standing = msgspec.convert({"state": state, "message": "18 rules looked."}, OverallStatus)
    worker = msgspec.structs.replace(WORKER, standing=standing)
    assert f"{label}: 18 rules looked." in page(Report((run_of(workers=(worker,)),))).said


def test_it_needs_nothing_else_and_runs_nothing() -> None:
    shown = page(REPORT)
    assert not shown.all("script", "link", "img", "iframe", "object", "form")
    for _, attributes in shown.elements:
        assert not [
            name for name in attributes if name.startswith("on") or name in ("src", "style")
        ]
    assert "url(" not in CSS.read_text()
    assert "@import" not in CSS.read_text()


def test_its_policy_lets_in_nothing_but_its_own_style() -> None:
    rendered = html.render(REPORT)
    [style] = re.findall(r"<style>(.*?)</style>", rendered, re.DOTALL)
    digest = b64encode(hashlib.sha256(style.encode()).digest()).decode()
    [policy] = [each for each in page(REPORT).all("meta") if each.get("http-equiv")]
    assert policy["content"] == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_only_web_addresses_become_links() -> None:
    found = msgspec.structs.replace(
        FOUND, links=("https://docs.pytorch.org/x", "javascript:alert(1)", 'https://x/"onclick=')
    )
    assert [each["href"] for each in page(Report((run_of(found),))).all("a")] == [
        "https://docs.pytorch.org/x"
    ]


def shape(report: Report) -> list[tuple[str, tuple[str, ...]]]:
    """Return a page's elements and the names of their attributes."""
    return [(tag, tuple(given)) for tag, given in page(report).elements]


@given(st.text(st.one_of(st.sampled_from("<>&\"'`={}%/\x1b\u202e"), st.characters()), min_size=1))
@examples(60)
def test_no_text_of_a_trace_adds_or_removes_anything_of_the_page(found: str) -> None:
    rendered = html.render(with_texts(found))
    rendered.encode()
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", rendered)
    assert shape(with_texts(f"{found} text")) == shape(with_texts("harmless text"))


def test_what_acts_on_text_is_shown_as_what_it_is() -> None:
    shown = page(with_texts(HOSTILE))
    assert "<script>alert(1)</script>" in shown.said
    assert not shown.all("script")


# For all to read


@pytest.mark.parametrize("report", [REPORT, RANKS], ids=["one", "ranks"])
def test_headings_go_down_one_level_at_a_time(report: Report) -> None:
    levels = [int(tag[1]) for tag, _ in page(report).elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert all(later - former <= 1 for former, later in pairwise(levels))


def test_every_heading_of_a_table_says_what_it_heads() -> None:
    headings = page(REPORT).all("th")
    assert headings
    assert {each.get("scope") for each in headings} == {"col", "row"}


def test_what_is_drawn_is_told_in_words_beside_it() -> None:
    drawn = page(REPORT).all("svg")
    assert drawn
    assert all(each.get("aria-hidden") == "true" for each in drawn)


def colours(scheme: str) -> dict[str, str]:
    """Return the page's colours by name, for a light or a dark screen."""
    light, dark = re.findall(r":root \{(.*?)\}", CSS.read_text(), re.DOTALL)[:2]
    return dict(re.findall(r"--(\w+): (#\w{6})", light if scheme == "light" else dark))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", ["background", "surface", "sunken"])
@pytest.mark.parametrize("ink", ["text", "muted", "link", "critical", "warning", "info", "good"])
def test_text_stands_out_from_its_ground(scheme: str, ground: str, ink: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1."""
    named = colours(scheme)
    dark, bright = sorted(luminance(named[each]) for each in (ground, ink))
    assert (bright + 0.05) / (dark + 0.05) >= 4.5


def test_a_real_recording_has_a_page() -> None:
    run = advise(load(SAMPLES / "synthetic_item_sync" / "fault"))
    shown = page(Report((run,), version="1.2.3"))
    assert run.verdict in shown.said
    for merged in run.merged:
        assert merged.outcome.title in shown.said
    assert "stepscope 1.2.3" in shown.said
