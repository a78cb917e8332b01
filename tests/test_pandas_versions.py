"""What `make test` leaves out under the oldest pandas, which is told by name: new files are in."""

import re

import pytest

from loading import ROOT

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
[LISTED] = re.findall(r"^WITHOUT_FRAMES := ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
NAMES = LISTED.replace("\\\n", " ").split()
FRAMES = re.compile(
    r"^\s*(?:from|import) (?:pandas|stepscope\.(?:frames|analyses|tables|trends)\b)", re.MULTILINE
)
IN_SPITE = {
    "docs_site": "it asks for names and words of tables",
    "readers": "it asks how children are started, told and stopped",
}
"""Files that import frames or analyses, and why their answers are the same under any pandas."""


@pytest.mark.parametrize("name", NAMES)
def test_what_is_tested_under_one_pandas_alone_asks_nothing_of_a_frame(name: str) -> None:
    text = (ROOT / "tests" / f"test_{name}.py").read_text(encoding="utf-8")
    assert bool(FRAMES.search(text)) == (name in IN_SPITE)


def test_each_is_listed_once_in_order() -> None:
    assert sorted(set(NAMES)) == NAMES
